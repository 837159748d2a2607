"""Tile as ONNX, OpenVINO, WebNN and NumPy define it, before it becomes a descriptor.

Dialect    one version of a specification's operator: its data types, its arguments, its function
Request    a tile that a dialect accepts, with shape and repeats promoted to one length

Pages: https://onnx.ai/onnx/operators/onnx__Tile.html,
https://docs.openvino.ai/2025/documentation/openvino-ir-format/operation-sets/operation-specs/movement/tile-1.html,
https://www.w3.org/TR/webnn/#api-mlgraphbuilder-tile and
https://numpy.org/doc/stable/reference/generated/numpy.tile.html
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import mul
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from dml_tile.descriptors.tile import array_text, tensor_text, tile_line
from dml_tile.directml.data_types import CARRIERS, ONNX_NAMES, OPENVINO_NAMES, TensorDataType
from dml_tile.directml.enums import UINT_MAX
from dml_tile.errors import DialectError, integer_of
from dml_tile.geometry.axes import promoted

if TYPE_CHECKING:  # importing NumPy takes longer than checking a descriptor
    from numpy.typing import NDArray

INT64_MAX: Final = 2**63 - 1

Integers: TypeAlias = "Sequence[int] | NDArray[Any]"
"""A sequence of Python integers, or an array; the dtype of an array is checked."""

Specification: TypeAlias = Literal["ONNX", "OpenVINO", "WebNN", "NumPy"]
"""A specification that defines a tile operator, as rule ids and messages name it."""

ShapeAndRepeats: TypeAlias = tuple[tuple[int, ...], ...]
"""An input's sizes and its repeats, as many of either; then the repeats as given, where some are computed as 0."""


@dataclass(frozen=True, slots=True)
class Dialect:
    """One version of a specification's tile operator.

    ``data_types`` are the names of those that it takes, empty for any. ``normalise`` checks a shape and the
    ``arguments``, and returns shape and repeats at one length; it raises DialectError.
    """

    name: str
    """As messages give it: ``ONNX Tile-13``."""
    specification: Specification = field(repr=False)
    data_types: frozenset[str] = field(repr=False)
    normalise: Callable[..., ShapeAndRepeats] = field(repr=False)
    arguments: tuple[str, ...] = field(default=("repeats",), repr=False)
    one_repeat_a_dimension: bool = field(default=False, repr=False)
    """True if there are as many repeats as input dimensions, so that either count gives the other."""
    type_names: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    """Its names of data types by ONNX's, where they differ."""
    largest_size: int = field(default=INT64_MAX, repr=False)
    """The largest size of an output."""

    def __str__(self) -> str:
        return self.name

    def request(self, data_type: str, shape: Sequence[int], *arguments: Any) -> Request:
        """Return the request of a tile: a data type by the dialect's name, a shape, and the dialect's ``arguments``.

        Raises DialectError where the specification rejects the tile: for a data type that it does not list, arguments
        of another type, rank or length, values out of range, and an output size that exceeds the largest. Raises
        TypeError for another number of arguments.
        """
        if len(arguments) != len(self.arguments):
            raise TypeError(f"{self.name} takes {' and '.join(self.arguments)}; {len(arguments)} arguments were given")
        if self.data_types and data_type not in self.data_types:
            raise self.error("data type", f"{data_type} is not one of {', '.join(sorted(self.data_types))}")
        request = Request(self, data_type, *self.normalise(self, shape, *arguments))
        for i, (size, repeat) in enumerate(zip(request.shape, request.repeats, strict=True)):
            if size * repeat > self.largest_size:
                product = f"{size} * {repeat} = {size * repeat}"
                raise self.error(f"repeats[{i}]", f"{product} overflows; an output size is at most {self.largest_size}")
        return request

    def type_name(self, onnx_name: str) -> str:
        """Return the dialect's name of a data type, by ONNX's."""
        return self.type_names.get(onnx_name, onnx_name)

    def no_repeats(self, rank: int) -> tuple[Any, ...]:
        """Return arguments that repeat nothing of an input of this rank, which is at least 1."""
        return (1, 0) if self.arguments == ("tiles", "axis") else ((1,) * rank,)

    def error(self, field: str, message: str) -> DialectError:
        """Return the error of an input."""
        return DialectError(self.name, field, message)


@dataclass(frozen=True, slots=True)
class Request:
    """A tile that a dialect accepts; ``shape`` and ``repeats`` have the same length.

    Values are in elements. ``shape`` is the input's, with the leading 1s that the dialect gives it. ``data_type`` is
    the dialect's name of it, such as ``float32`` or, for OpenVINO, ``f32``. ``given`` has the repeats that were given
    where the dialect computes some as 0; else it is empty.
    """

    dialect: Dialect
    data_type: str
    shape: tuple[int, ...]
    repeats: tuple[int, ...]
    given: tuple[int, ...] = field(default=(), repr=False)

    def __str__(self) -> str:
        """Return the tile in one line: ``float32 {2,3} x {1,2} -> {2,6}``."""
        source = tensor_text(self.data_type, array_text(self.shape))
        return tile_line(source, array_text(self.repeats), array_text(self.output_shape))

    @property
    def output_shape(self) -> tuple[int, ...]:
        """The sizes of the output: shape times repeats."""
        return tuple(map(mul, self.shape, self.repeats))

    @property
    def onnx_type(self) -> str:
        """ONNX's name of the data type; where ONNX has none, the dialect's."""
        return ONNX_NAMES.get(self.data_type, self.data_type)

    @property
    def carrier(self) -> TensorDataType | None:
        """The DirectML data type that holds the bits, UINT8 for bool; None if there is none."""
        return CARRIERS.get(self.data_type)


def _shape_of(dialect: Dialect, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the input's shape. Raises DialectError for a size that is no integer, negative, or exceeds an int64."""
    sizes = _vector(dialect, "shape", tuple(shape))
    _require_range(dialect, "shape", sizes, 0, INT64_MAX, f"is {{}}; sizes are from 0 to {INT64_MAX}")
    return sizes


def _require_range(dialect: Dialect, field: str, values: Sequence[int], least: int, most: float, message: str) -> None:
    for i, value in enumerate(values):
        if not least <= value <= most:
            raise dialect.error(f"{field}[{i}]", message.format(value))


def _vector(
    dialect: Dialect, field: str, values: Integers, wanted: Literal["int64", "an integer type"] = "an integer type"
) -> tuple[int, ...]:
    """Return the values of a 1-D array of integers. Raises DialectError for another rank, dtype or value."""
    if type(values) is tuple and all(type(value) is int for value in values):
        return values
    if not isinstance(values, Sequence):
        import numpy as np

        if not isinstance(values, np.ndarray):
            raise dialect.error(field, f"is {values!r}; a sequence of integers was expected")
        if not (values.dtype == np.int64 if wanted == "int64" else values.dtype.kind in "iu"):
            raise dialect.error(field, f"is of {values.dtype}; {wanted} was expected")
        if values.ndim != 1:
            raise dialect.error(field, f"has {values.ndim} dimensions; 1 was expected")
        values = list[int](values.tolist())
    integers = []
    for i, value in enumerate(values):
        if (integer := integer_of(value)) is None:
            raise dialect.error(f"{field}[{i}]", f"is {value!r}; an integer was expected")
        integers.append(integer)
    return tuple(integers)


def _onnx(dialect: Dialect, shape: Sequence[int], repeats: Integers) -> ShapeAndRepeats:
    sizes = _shape_of(dialect, shape)
    counts = _vector(dialect, "repeats", repeats, "int64")
    if len(counts) != len(sizes):
        message = f"has {len(counts)} values; the input has {len(sizes)} dimensions, and as many repeats"
        raise dialect.error("repeats", message)
    _require_range(dialect, "repeats", counts, 0, math.inf, "is {}; repeats must not contain negative values")
    return sizes, counts


def _onnx_1(
    dialect: Dialect, shape: Sequence[int], tiles: float | NDArray[Any], axis: float | NDArray[Any]
) -> ShapeAndRepeats:
    sizes = _shape_of(dialect, shape)
    count, dimension = _integral(dialect, "tiles", tiles), _integral(dialect, "axis", axis)
    if dimension >= len(sizes):
        raise dialect.error("axis", f"is {dimension}; the input has {len(sizes)} dimensions")
    repeats = [1] * len(sizes)
    repeats[dimension] = count
    return sizes, tuple(repeats)


def _integral(dialect: Dialect, field: str, value: float | NDArray[Any]) -> int:
    import numpy as np

    array = np.asarray(value)
    if array.size != 1 or array.dtype.kind not in "iuf":
        raise dialect.error(field, f"is {value!r}; a single number was expected")
    number = array.reshape(()).item()
    if not math.isfinite(number) or number != int(number) or number < 0:
        raise dialect.error(field, f"is {number}; an integer of at least 0 was expected")
    return int(number)


def _openvino(dialect: Dialect, shape: Sequence[int], repeats: Integers) -> ShapeAndRepeats:
    sizes, given = promoted(_shape_of(dialect, shape), _vector(dialect, "repeats", repeats))
    counts = tuple(max(count, 0) for count in given)
    return (sizes, counts) if counts == given else (sizes, counts, given)


def _webnn(dialect: Dialect, shape: Sequence[int], repetitions: Integers) -> ShapeAndRepeats:
    sizes = _vector(dialect, "shape", tuple(shape))
    counts = _vector(dialect, "repetitions", repetitions)
    for name, values in (("shape", sizes), ("repetitions", counts)):
        message = f"TypeError: is {{}}; it must be from 1 to {UINT_MAX}"
        _require_range(dialect, name, values, 1, UINT_MAX, message)
    if len(counts) != len(sizes):
        message = f"TypeError: has {len(counts)} values; the input has {len(sizes)} dimensions"
        raise dialect.error("repetitions", message)
    return sizes, counts


def _numpy(dialect: Dialect, shape: Sequence[int], repeats: Integers) -> ShapeAndRepeats:
    sizes = _shape_of(dialect, shape)
    counts = _vector(dialect, "reps", repeats)
    _require_range(dialect, "reps", counts, 0, math.inf, "is {}; negative values are not allowed")
    return promoted(sizes, counts)


_ONNX_1_TYPES: Final = frozenset({"float16", "float32", "float64"})
_INTEGERS: Final = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"})
_ONNX_6_TYPES: Final = _ONNX_1_TYPES | _INTEGERS | {"bool", "complex64", "complex128", "string"}
_OPENVINO_TYPES: Final = frozenset(
    {
        *("boolean", "string", "bf16", "f16", "f32", "f64", "f4e2m1", "f8e4m3", "f8e5m2", "f8e8m0", "nf4"),
        *("i4", "i8", "i16", "i32", "i64", "u1", "u2", "u3", "u4", "u6", "u8", "u16", "u32", "u64"),
    }
)
_WEBNN_TYPES: Final = (_INTEGERS - {"int16", "uint16"}) | {"float16", "float32", "int4", "uint4"}

ONNX_TILE_1: Final[Dialect] = Dialect("ONNX Tile-1", "ONNX", _ONNX_1_TYPES, _onnx_1, arguments=("tiles", "axis"))
"""Repeats the input ``tiles`` times along ``axis``, counted from 0.

Both are single values, integral and not negative, of the input's type as the page declares, or of int64 as its text
says. The page gives the output the input's shape, which cannot be meant: the axis grows.
"""

ONNX_TILE_6: Final[Dialect] = Dialect("ONNX Tile-6", "ONNX", _ONNX_6_TYPES, _onnx, one_repeat_a_dimension=True)
"""``repeats`` is a 1-D int64 with one value for each dimension, none of them negative."""

ONNX_TILE_13: Final[Dialect] = Dialect(
    "ONNX Tile-13", "ONNX", _ONNX_6_TYPES | {"bfloat16"}, _onnx, one_repeat_a_dimension=True
)
"""The same as Tile-6, with bfloat16."""

ONNX_TILES: Final = {1: ONNX_TILE_1, 6: ONNX_TILE_6, 13: ONNX_TILE_13}
"""ONNX's dialects by the opset that introduced them."""

OPENVINO_TILE_1: Final[Dialect] = Dialect(
    "OpenVINO Tile-1", "OpenVINO", _OPENVINO_TYPES, _openvino, type_names=OPENVINO_NAMES
)
"""Tile-1 of opset1: the shorter of shape and ``repeats`` gets leading 1s; a negative repeat counts as 0."""

WEBNN_TILE: Final[Dialect] = Dialect(
    "WebNN tile",
    "WebNN",
    _WEBNN_TYPES,
    _webnn,
    arguments=("repetitions",),
    one_repeat_a_dimension=True,
    largest_size=UINT_MAX,
)
"""MLGraphBuilder.tile(): one repetition for each dimension, a scalar has none.

Sizes and repetitions are from 1 to that of a uint32. DialectError stands for a browser's TypeError.
"""

NUMPY_TILE: Final[Dialect] = Dialect("numpy.tile", "NumPy", frozenset(), _numpy, arguments=("reps",))
"""The shorter of shape and ``reps`` gets leading 1s; no repeat is negative, and any data type is accepted."""


def onnx_tile(opset: int) -> Dialect:
    """Return the dialect of ONNX's Tile in an opset, which is at least 1."""
    return ONNX_TILES[max(since for since in ONNX_TILES if since <= opset)]
