"""A Tile of a model file, as far as the file determines it before the model runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, TypeAlias

from pydantic import Field, PlainValidator

from dml_tile.back_ends.dialects import INT64_MAX, ONNX_TILES, OPENVINO_TILE_1, Dialect, Request
from dml_tile.descriptors.tile import array_text, tensor_text, tile_line
from dml_tile.directml.data_types import CARRIERS
from dml_tile.errors import DialectError, input_error
from dml_tile.geometry.axes import promoted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Dimension: TypeAlias = int | str | None
"""A size; or, if it is known at run time only, its name in the file, or None."""

DIALECTS: Final = {dialect.name: dialect for dialect in (*ONNX_TILES.values(), OPENVINO_TILE_1)}
"""The dialects of model files, by name."""

MAX_DIMENSIONS: Final = 64
"""The most dimensions of a Tile that is read: NumPy's most, and far more than DirectML's."""

_ASSUMED_SHAPE: Final = (1, 1, 1, 1)  # every feature level accepts 4 dimensions


def _dialect_named(name: object) -> Dialect:
    """Return the dialect with this name. Raises ValueError if there is none."""
    if not isinstance(name, str) or name not in DIALECTS:
        raise ValueError("is not a known dialect")
    return DIALECTS[name]


# pydantic checks these in a child process's answer
_Size = Annotated[int, Field(ge=0, le=INT64_MAX)]
_FIRST_ERROR: Final = Field(fail_fast=True)
_Texts = Annotated[tuple[str, ...], _FIRST_ERROR]


class ValueSource(NamedTuple):
    """A part of a model that values come from."""

    kind: Literal["elements of the input", "input", "dimension", "tensor"]
    name: str

    def __str__(self) -> str:
        return f"the {self.kind} {self.name!r}"


class ValueOrigin(NamedTuple):
    """The cause of an unknown value: the node that computes it, the source of its inputs, and advice."""

    node: str = ""
    source: ValueSource | None = None
    advice: str = ""

    def __str__(self) -> str:
        parts = (self.node and f"computed by {self.node}", str(self.source or ""))
        origin = " from ".join(filter(None, parts))
        return f"{origin} ({self.advice})" if self.advice else origin


NO_ORIGIN: Final = ValueOrigin()
_Origins = Annotated[tuple[ValueOrigin, ...], _FIRST_ERROR]


@dataclass(frozen=True, slots=True)
class UnknownField:
    """A field, in C names, that is known at run time only; its ``name``, if it is a named size, and else its origin."""

    field: str
    name: str = ""
    origin: ValueOrigin = NO_ORIGIN

    def __str__(self) -> str:
        if self.name:
            return f"{self.field} ({self.name})"
        origin = str(self.origin)
        return f"{self.field}: {origin}" if origin else self.field

    @property
    def is_size(self) -> bool:
        """True for a size of the input, or their number."""
        return self.field.startswith(("InputTensor.Sizes", "InputTensor.DimensionCount"))


@dataclass(frozen=True, slots=True)
class TileNode:
    """A Tile. ``pointer`` is its place in the file, ``data_type`` the dialect's name, None if unknown.

    ``shape`` is None if not even the rank is known, ``repeats`` if no repeat is known before the model runs; an entry
    is None if it alone is unknown. Both are promoted as the dialect says. ``error`` is the dialect's, in its own terms;
    empty if it accepts the tile.

    ``input_origins`` and ``repeats_origins`` name, for each size and each repeat, the node that computes the unknown
    and the input that the node depends on; a single origin is for all. A Tile is ``emptied`` if sizes given beside the
    model leave it no elements.
    ``given_repeats`` are the model's, where the dialect computes some as 0; else it is empty.
    ``inputs`` and ``output`` have an ONNX model's names, ``place`` its node's place by numbers; a value of a
    function's own has ``#``, the number of the call, and ``/`` before its name. The Tile is between a
    DequantizeLinear and a QuantizeLinear of one scale if ``quantised`` is not empty, but their data type; behind
    Transposes that move behind it if ``transposed`` is not empty, but their permutation.
    """

    pointer: str
    dialect: Annotated[Dialect, PlainValidator(_dialect_named)]
    data_type: str | None
    shape: Annotated[tuple[_Size | str | None, ...], _FIRST_ERROR] | None
    repeats: Annotated[tuple[_Size | None, ...], _FIRST_ERROR] | None
    error: str = ""
    input_origins: _Origins = ()
    repeats_origins: _Origins = ()
    emptied: bool = False
    given_repeats: Annotated[tuple[int | None, ...], _FIRST_ERROR] = ()
    inputs: _Texts = ()
    output: str = ""
    place: str = field(default="", compare=False)
    quantised: str = ""
    transposed: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        """Raise InputError for too many dimensions: each may be a finding, and their product any number."""
        require_few_dimensions(self.pointer, len(self.shape or ()))
        if self.repeats is not None and (self.shape is None or len(self.shape) != len(self.repeats)):
            raise ValueError("shape and repeats must have the same length")
        if self.transposed and sorted(self.transposed) != [*range(len(self.shape or ()))]:
            raise ValueError("transposed must be a permutation of the input's dimensions")

    def __str__(self) -> str:
        """Return the tile in one line, with DirectML's name of the data type: ``FLOAT32 {N,3} x {2,1} -> {2*N,3}``.

        A size that is known at run time only is its name in the file, or a question mark.
        """
        source = tensor_text(self.type_name or "?", _listed(self.shape))
        return tile_line(source, _listed(self.given_repeats or self.repeats), _listed(self.output_sizes))

    @property
    def type_name(self) -> str | None:
        """DirectML's name of the data type or, if there is none, the dialect's; None if it is unknown."""
        carrier = CARRIERS.get(self.data_type or "")
        return carrier.name if carrier else self.data_type

    @property
    def output_sizes(self) -> tuple[Dimension, ...] | None:
        """The output's sizes; one that is computed from an unknown size has its name, or is None without one."""
        return None if self.repeats is None else tuple(map(_product, self.shape or (), self.repeats))

    @property
    def unknown(self) -> tuple[UnknownField, ...]:
        """The fields, in C names, known at run time only, with what computes them; none if there is an error."""
        if self.error:
            return ()
        fields: list[UnknownField] = []
        if self.data_type is None:
            fields.append(UnknownField("InputTensor.DataType", "", _origin(self.input_origins, 0)))
        if self.shape is None:
            fields.append(UnknownField("InputTensor.DimensionCount", "", _origin(self.input_origins, 0)))
        rank, repeats = len(self.shape or ()), self.repeats
        for i, size in enumerate(self.shape or ()):
            if not isinstance(size, int):
                origin = NO_ORIGIN if size else _origin(self.input_origins, i - rank)
                fields.append(UnknownField(f"InputTensor.Sizes[{i}]", size or "", origin))
        if repeats is None and len(set(self.repeats_origins)) > 1:
            repeats = (None,) * len(self.repeats_origins)
            repeats = (1,) * (rank - len(repeats)) + repeats  # the dialect's repeats of 1 come first
        if repeats is None:
            fields.append(UnknownField("Repeats", "", _origin(self.repeats_origins, 0)))
        for i, repeat in enumerate(repeats or ()):
            if repeat is None:
                fields.append(UnknownField(f"Repeats[{i}]", "", _origin(self.repeats_origins, i - len(repeats or ()))))
        return tuple(fields)

    @property
    def request(self) -> Request:
        """The tile; float32, sizes of 1 and repeats of 1, which break no rule, stand for unknown parts."""
        sizes = _assumed(self.shape)
        repeats = (1,) * len(sizes) if self.repeats is None else _assumed(self.repeats)
        data_type = self.data_type or self.dialect.type_name("float32")
        return Request(self.dialect, data_type, sizes, repeats, _assumed(self.given_repeats))


def require_few_dimensions(pointer: str, count: int) -> None:
    """Raise InputError for a Tile whose input has more than MAX_DIMENSIONS."""
    if count > MAX_DIMENSIONS:
        raise input_error(pointer, f"the input has {count} dimensions; at most {MAX_DIMENSIONS} are read")


def tile_node(
    pointer: str,
    dialect: Dialect,
    data_type: str | None,
    shape: Sequence[Dimension] | None,
    arguments: Sequence[NDArray[Any] | None],
) -> TileNode:
    """Return the Tile of a node, checked and promoted by its dialect.

    ``arguments`` are the dialect's own; None, or a masked element of an array, is computed at run time.
    """
    import numpy as np  # here, since most checks do not need it

    masks = [np.zeros(0, bool) if each is None else np.ma.getmaskarray(each) for each in arguments]
    arguments = [  # 1, which breaks no rule, stands for an unknown element
        None if argument is None or (mask.size and mask.all()) else np.ma.filled(argument, 1)
        for argument, mask in zip(arguments, masks, strict=True)
    ]
    sizes = None if shape is None else tuple(shape)
    if sizes is None and dialect.one_repeat_a_dimension and arguments[0] is not None:
        sizes = (None,) * arguments[0].size
    assumed = _assumed(sizes)
    is_known = sizes is not None and all(argument is not None for argument in arguments)
    given = arguments if is_known else dialect.no_repeats(len(assumed))
    try:
        request = dialect.request(data_type or dialect.type_name("float32"), assumed, *given)
    except DialectError as error:
        return TileNode(pointer, dialect, data_type, sizes, None, f"{error.field}: {error.message}")
    if sizes is None or not is_known:
        return TileNode(pointer, dialect, data_type, sizes, None)
    shape, _ = promoted(sizes, request.repeats)
    repeats, given_repeats = _masked(request.repeats, masks[0]), _masked(request.given, masks[0])
    return TileNode(pointer, dialect, data_type, shape, repeats, given_repeats=given_repeats)


def _masked(repeats: tuple[int, ...], mask: NDArray[np.bool_]) -> tuple[int | None, ...]:
    """Return the repeats, None if unknown; the mask has an element for each, or for the last."""
    padding = [False] * (len(repeats) - mask.size)  # the promotion's repeats of 1 come first
    return tuple(None if flag else repeat for repeat, flag in zip(repeats, [*padding, *mask.flat], strict=False))


def _origin(origins: Sequence[ValueOrigin], i: int) -> ValueOrigin:
    """Return the origin of an unknown field; a negative ``i`` counts from the end."""
    return origins[max(i, -len(origins))] if origins else NO_ORIGIN


def _listed(sizes: Sequence[Dimension] | None) -> str:
    return "?" if sizes is None else array_text(["?" if size is None else size for size in sizes])


def _product(size: Dimension, repeat: Dimension) -> Dimension:
    if repeat == 1:
        return size
    if size is None or repeat is None:
        return None
    if isinstance(size, int):
        return size * repeat
    return f"{repeat}*{size}" if f"_{size}".replace("*", "").isidentifier() else f"{repeat}*({size})"


def _assumed(shape: Sequence[Dimension] | None) -> tuple[int, ...]:
    return _ASSUMED_SHAPE if shape is None else tuple(size if isinstance(size, int) else 1 for size in shape)
