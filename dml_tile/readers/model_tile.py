"""A Tile of a model file: as much of it as the file tells before it is run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from dml_tile.dialects import onnx, openvino
from dml_tile.errors import DialectError
from dml_tile.tile_request import Request

if TYPE_CHECKING:
    from numpy.typing import NDArray

Dimension: TypeAlias = int | str | None
"""A size; where it is known at run time only, the name that the file gives it, or None."""

DIALECTS: Final[dict[str, Callable[..., Request]]] = {
    "ONNX Tile-1": onnx.tile_1,
    "ONNX Tile-6": onnx.tile_6,
    "ONNX Tile-13": onnx.tile_13,
    "OpenVINO Tile-1": openvino.tile_1,
}

_ONE_REPEAT_A_DIMENSION: Final = ("ONNX Tile-6", "ONNX Tile-13")


@dataclass(frozen=True, slots=True)
class KnownShapes:
    """Sizes that a caller gives for a model's dynamic parts: of named dimensions, and of whole inputs by name."""

    dims: Mapping[str, int] = field(default_factory=dict)
    input_shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TileNode:
    """One Tile; ``pointer`` tells its place in the file, ``data_type`` is its dialect's name, None if unknown.

    ``shape`` is None where not even the rank is known, ``repeats`` where they are computed at run time; both are
    promoted as the dialect says. ``error`` is what the dialect rules out, in its own terms.
    """

    pointer: str
    dialect: str
    data_type: str | None
    shape: tuple[Dimension, ...] | None
    repeats: tuple[int, ...] | None
    error: str = ""

    @property
    def unknown(self) -> tuple[str, ...]:
        """What is known at run time only, in DirectML's terms; nothing if the file tells all of the tile."""
        if self.error:
            return ()
        fields = []
        if self.data_type is None:
            fields.append("InputTensor.DataType")
        if self.shape is None:
            fields.append("InputTensor.DimensionCount")
        for i, size in enumerate(self.shape or ()):
            if not isinstance(size, int):
                fields.append(f"InputTensor.Sizes[{i}]{f' ({size})' if size else ''}")
        if self.repeats is None:
            fields.append("Repeats")
        return tuple(fields)

    @property
    def request(self) -> Request:
        """The tile, with what breaks no rule of its own in the place of what is unknown: FLOAT32, and sizes of 1."""
        shape = _ASSUMED_SHAPE if self.shape is None else self.shape
        sizes = _assumed(shape)
        return Request(self.dialect, self.data_type or _FLOAT32[self.dialect], sizes, self.repeats or (1,) * len(sizes))


def tile_node(
    pointer: str,
    dialect: str,
    data_type: str | None,
    shape: Sequence[Dimension] | None,
    arguments: Sequence[NDArray[Any] | None],
) -> TileNode:
    """What the dialect makes of a node.

    ``arguments`` are what its function in DIALECTS takes behind the shape: the repeats, or Tile-1's tiles and axis;
    None stands for what is computed at run time.
    """
    sizes = None if shape is None else tuple(shape)
    if sizes is None and dialect in _ONE_REPEAT_A_DIMENSION and arguments[0] is not None:
        sizes = (None,) * arguments[0].size
    assumed = _assumed(_ASSUMED_SHAPE if sizes is None else sizes)
    is_known = sizes is not None and all(argument is not None for argument in arguments)
    try:
        request = DIALECTS[dialect](
            data_type or _FLOAT32[dialect], assumed, *(arguments if is_known else _no_repeats(dialect, len(assumed)))
        )
    except DialectError as error:
        return TileNode(pointer, dialect, data_type, sizes, None, f"{error.field}: {error.message}")
    if sizes is None or not is_known:
        return TileNode(pointer, dialect, data_type, sizes, None)
    promoted = (1,) * (len(request.shape) - len(sizes)) + sizes
    return TileNode(pointer, dialect, data_type, promoted, request.repeats)


_FLOAT32: Final = {dialect: "f32" if dialect.startswith("OpenVINO") else "float32" for dialect in DIALECTS}
_ASSUMED_SHAPE: Final = (1, 1, 1, 1)  # as many dimensions as every feature level takes


def _no_repeats(dialect: str, rank: int) -> tuple[Any, ...]:
    return (1, 0) if dialect == "ONNX Tile-1" else ((1,) * rank,)


def _assumed(shape: Sequence[Dimension]) -> tuple[int, ...]:
    return tuple(size if isinstance(size, int) else 1 for size in shape)
