"""What a specification makes of a tile: a request whose shapes are promoted, or an error in its own terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import index, mul
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from dml_tile.errors import DialectError

if TYPE_CHECKING:  # NumPy costs more than most descriptors deserve
    from numpy.typing import NDArray

INT64_MAX: Final = 2**63 - 1

Integers: TypeAlias = "Sequence[int] | NDArray[Any]"
"""Python's integers, which fit any type, or an array, whose dtype counts."""


@dataclass(frozen=True, slots=True)
class Request:
    """A tile that a specification accepts: its data type by its lower-case name, and shape and repeats of one length.

    Values are in elements; ``shape`` is the input's, with the leading 1s that the specification gives it.
    """

    dialect: str
    data_type: str
    shape: tuple[int, ...]
    repeats: tuple[int, ...]

    @property
    def output_shape(self) -> tuple[int, ...]:
        """The sizes of the output: shape times repeats."""
        return tuple(map(mul, self.shape, self.repeats))

    @property
    def is_empty(self) -> bool:
        """Whether the output has no elements."""
        return 0 in self.output_shape


def require_data_type(dialect: str, data_type: str, allowed: frozenset[str]) -> None:
    """Raise DialectError for a data type that the specification does not list."""
    if data_type not in allowed:
        raise DialectError(dialect, "data type", f"{data_type} is not one of {', '.join(sorted(allowed))}")


def shape_of(dialect: str, shape: Sequence[int]) -> tuple[int, ...]:
    """The input's shape. Raises DialectError for a negative size, or one past int64."""
    sizes = tuple(map(index, shape))
    for i, size in enumerate(sizes):
        if not 0 <= size <= INT64_MAX:
            raise DialectError(dialect, f"shape[{i}]", f"is {size}; sizes are from 0 to {INT64_MAX}")
    return sizes


def vector(
    dialect: str, field: str, values: Integers, wanted: Literal["int64", "an integer type"] = "an integer type"
) -> tuple[int, ...]:
    """The values of a 1-D array. Raises DialectError for one of another type or rank, and for what is no integer."""
    if not isinstance(values, Sequence):
        values = _listed(dialect, field, values, wanted)
    integers = []
    for i, value in enumerate(values):
        try:
            integers.append(index(value))
        except TypeError:
            raise DialectError(dialect, f"{field}[{i}]", f"is {value!r}; an integer was expected") from None
    return tuple(integers)


def _listed(dialect: str, field: str, values: NDArray[Any], wanted: str) -> list[int]:
    import numpy as np

    if not isinstance(values, np.ndarray):
        raise DialectError(dialect, field, f"is {values!r}; a sequence of integers was expected")
    if not (values.dtype == np.int64 if wanted == "int64" else values.dtype.kind in "iu"):
        raise DialectError(dialect, field, f"is of {values.dtype}; {wanted} was expected")
    if values.ndim != 1:
        raise DialectError(dialect, field, f"has {values.ndim} dimensions; 1 was expected")
    return list(values.tolist())


def require_fitting(request: Request, limit: int = INT64_MAX) -> Request:
    """The request. Raises DialectError if a size of its output exceeds the limit."""
    for i, (size, repeat, product) in enumerate(zip(request.shape, request.repeats, request.output_shape, strict=True)):
        if product > limit:
            message = f"{size} * {repeat} = {product} overflows; an output size is at most {limit}"
            raise DialectError(request.dialect, f"repeats[{i}]", message)
    return request
