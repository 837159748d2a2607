"""A Tile of a model file, as far as the file determines it before the model runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from dml_tile.dialects import onnx, openvino
from dml_tile.errors import DialectError
from dml_tile.tile_request import Dialect, Request, promoted

if TYPE_CHECKING:
    from numpy.typing import NDArray

Dimension: TypeAlias = int | str | None
"""A size, or, where it is known at run time only, the name that the file gives it, or None."""

DIALECTS: Final = {dialect.name: dialect for dialect in (*onnx.TILES.values(), openvino.TILE_1)}
"""The dialects of model files, by name."""

_ASSUMED_SHAPE: Final = (1, 1, 1, 1)  # every feature level accepts 4 dimensions


@dataclass(frozen=True, slots=True)
class KnownShapes:
    """Sizes that a caller gives for a model's dynamic parts: of named dimensions, and of whole inputs by name."""

    dims: Mapping[str, int] = field(default_factory=dict)
    input_shapes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TileNode:
    """One Tile. ``pointer`` is its place in the file, ``data_type`` the dialect's name of it, None if unknown.

    ``shape`` is None where not even the rank is known, ``repeats`` where they are computed at run time; both are
    promoted as the dialect says. ``error`` is the dialect's, in its own terms; empty if it accepts the tile.
    """

    pointer: str
    dialect: Dialect
    data_type: str | None
    shape: tuple[Dimension, ...] | None
    repeats: tuple[int, ...] | None
    error: str = ""

    @property
    def unknown(self) -> tuple[str, ...]:
        """The fields, in C names, that are known at run time only; none if the dialect rejects the tile."""
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
        """The tile; unknown parts are assumed to be float32, sizes of 1 and repeats of 1, which break no rule."""
        sizes = _assumed(self.shape)
        repeats = (1,) * len(sizes) if self.repeats is None else self.repeats
        return Request(self.dialect, _assumed_type(self.dialect, self.data_type), sizes, repeats)


def tile_node(
    pointer: str,
    dialect: Dialect,
    data_type: str | None,
    shape: Sequence[Dimension] | None,
    arguments: Sequence[NDArray[Any] | None],
) -> TileNode:
    """The Tile of a node, checked and promoted by its dialect.

    ``arguments`` are the dialect's own; None stands for one that is computed at run time.
    """
    sizes = None if shape is None else tuple(shape)
    if sizes is None and dialect.one_repeat_a_dimension and arguments[0] is not None:
        sizes = (None,) * arguments[0].size
    assumed = _assumed(sizes)
    is_known = sizes is not None and all(argument is not None for argument in arguments)
    try:
        request = dialect.request(
            _assumed_type(dialect, data_type),
            assumed,
            *(arguments if is_known else dialect.no_repeats(len(assumed))),
        )
    except DialectError as error:
        return TileNode(pointer, dialect, data_type, sizes, None, f"{error.field}: {error.message}")
    if sizes is None or not is_known:
        return TileNode(pointer, dialect, data_type, sizes, None)
    shape, _ = promoted(sizes, request.repeats)
    return TileNode(pointer, dialect, data_type, shape, request.repeats)


def _assumed(shape: Sequence[Dimension] | None) -> tuple[int, ...]:
    return _ASSUMED_SHAPE if shape is None else tuple(size if isinstance(size, int) else 1 for size in shape)


def _assumed_type(dialect: Dialect, data_type: str | None) -> str:
    return data_type or dialect.type_name("float32")
