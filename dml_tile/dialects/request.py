"""A tile in the terms of a specification, before it becomes a descriptor.

Dialect    one version of a specification's operator: its data types, its arguments, its function
Request    a tile that a dialect accepts, with shape and repeats promoted to one length

The functions below them check and promote arguments; the dialects are made of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import index, mul
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar

from dml_tile.descriptors.tile import array_text, tensor_text, tile_line
from dml_tile.directml.data_types import CARRIERS, ONNX_NAMES, TensorDataType
from dml_tile.errors import DialectError

if TYPE_CHECKING:  # importing NumPy takes longer than checking a descriptor
    from numpy.typing import NDArray

INT64_MAX: Final = 2**63 - 1

Integers: TypeAlias = "Sequence[int] | NDArray[Any]"
"""A sequence of Python integers, or an array; the dtype of an array is checked."""

Specification: TypeAlias = Literal["ONNX", "OpenVINO", "WebNN", "NumPy"]
"""A specification that defines a tile operator, as rule ids and messages name it."""

ShapeAndRepeats: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]
"""An input's sizes and its repeats, as many of either."""

_Size = TypeVar("_Size")


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
    type_names: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    """Its names of data types by ONNX's, where they differ."""
    largest_size: int = field(default=INT64_MAX, repr=False)
    """The largest size of an output."""

    def __str__(self) -> str:
        return self.name

    def request(self, data_type: str, shape: Sequence[int], *arguments: Any) -> Request:
        """Return the request of a tile: a data type by the dialect's name, a shape, and the dialect's ``arguments``.

        Raises DialectError where the specification rejects the tile: for a data type that it does not list, arguments
        of another type, rank or length, values out of range, and an output size that exceeds the largest.
        """
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
    the dialect's name of it, such as ``float32`` or, for OpenVINO, ``f32``.
    """

    dialect: Dialect
    data_type: str
    shape: tuple[int, ...]
    repeats: tuple[int, ...]

    def __str__(self) -> str:
        """Return the tile in one line: ``float32 {2,3} x {1,2} -> {2,6}``."""
        return tile_line(
            tensor_text(self.data_type, array_text(self.shape)), array_text(self.repeats), array_text(self.output_shape)
        )

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


def shape_of(dialect: Dialect, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the input's shape. Raises DialectError for a size that is negative or exceeds an int64."""
    sizes = tuple(map(index, shape))
    for i, size in enumerate(sizes):
        if not 0 <= size <= INT64_MAX:
            raise dialect.error(f"shape[{i}]", f"is {size}; sizes are from 0 to {INT64_MAX}")
    return sizes


def vector(
    dialect: Dialect, field: str, values: Integers, wanted: Literal["int64", "an integer type"] = "an integer type"
) -> tuple[int, ...]:
    """Return the values of a 1-D array. Raises DialectError for another rank or dtype, and for what is no integer."""
    if not isinstance(values, Sequence):
        values = _listed(dialect, field, values, wanted)
    integers = []
    for i, value in enumerate(values):
        try:
            integers.append(index(value))
        except TypeError:
            raise dialect.error(f"{field}[{i}]", f"is {value!r}; an integer was expected") from None
    return tuple(integers)


def _listed(dialect: Dialect, field: str, values: NDArray[Any], wanted: str) -> list[int]:
    import numpy as np

    if not isinstance(values, np.ndarray):
        raise dialect.error(field, f"is {values!r}; a sequence of integers was expected")
    if not (values.dtype == np.int64 if wanted == "int64" else values.dtype.kind in "iu"):
        raise dialect.error(field, f"is of {values.dtype}; {wanted} was expected")
    if values.ndim != 1:
        raise dialect.error(field, f"has {values.ndim} dimensions; 1 was expected")
    return list(values.tolist())


def promoted(shape: Sequence[_Size], repeats: Sequence[int]) -> tuple[tuple[_Size | int, ...], tuple[int, ...]]:
    """Return shape and repeats at the same length: the shorter gets leading 1s."""
    rank = max(len(shape), len(repeats))
    return (1,) * (rank - len(shape)) + tuple(shape), (1,) * (rank - len(repeats)) + tuple(repeats)
