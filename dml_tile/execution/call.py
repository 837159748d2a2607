"""An operator as its kernel sees it, and the bounds and refusals of kernels.

A kernel takes an KernelCall and returns the values of its output, or a tuple of those of all outputs in C's
order: a list for an array of tensors. Values are rounded to the output's type by ``rounding``. FLOAT32 and FLOAT16 are
computed in FLOAT32, FLOAT64 in FLOAT64, integers in their own type, in which they wrap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dml_tile.descriptors.operator import OperatorFields
from dml_tile.directml.data_types import TensorDataType
from dml_tile.directml.dtypes import DTYPES
from dml_tile.directml.targets import Target
from dml_tile.errors import DmlError
from dml_tile.findings import Finding
from dml_tile.rules.execution import Element, Work, index_is_in_range, region_is_finite, work_is_bounded

Array: TypeAlias = NDArray[Any]
OperatorKernel: TypeAlias = Callable[["KernelCall"], Any]
OperatorKernels: TypeAlias = dict[str, OperatorKernel]
"""Kernels by the operators' names."""
Lengths: TypeAlias = tuple[int, ...]

MAX_BYTES: Final = 2**32
"""The most memory of one intermediate array."""
MAX_STEPS: Final = 2**36
"""The most multiplications, or other steps of one element, of one operator."""
STEPS_OF_A_LOOP: Final = 2**14
"""The steps of elements that one pass of a loop in Python counts as."""

_CARRIERS: Final = {TensorDataType.UINT4: np.dtype(np.uint8), TensorDataType.INT4: np.dtype(np.int8)}
"""The dtypes in which elements of four bits are computed."""


def computed_dtype(data_type: TensorDataType | int) -> np.dtype[Any]:
    """Return the dtype of a tensor's elements while they are computed: one byte for an element of four bits."""
    return DTYPES[data_type] if data_type in DTYPES else _CARRIERS[TensorDataType(data_type)]


class Output(NamedTuple):
    """A tensor that is written."""

    data_type: TensorDataType
    shape: Lengths

    @property
    def dtype(self) -> np.dtype[Any]:
        return computed_dtype(self.data_type)

    @property
    def size(self) -> int:
        return prod(self.shape)

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the greatest integer of the type."""
        least = -(2 ** (self.data_type.bits - 1)) if self.dtype.kind == "i" else 0
        return least, least + 2**self.data_type.bits - 1


class FirstRows(NamedTuple):
    """The first rows of an output, in as many dimensions; the others are not written."""

    rows: Array


class KernelCall:
    """An operator that is executed: ``c.Axis`` is a field by its name in C, ``c["InputTensor"]`` an input, widened.

    ``raw`` are the inputs as they are, ``outputs`` the tensors to write, both by name, None for null ones.
    """

    def __init__(
        self,
        fields: OperatorFields,
        raw: Mapping[str, Any],
        outputs: Mapping[str, Output | list[Output] | None],
        target: Target,
    ) -> None:
        self.fields, self.raw, self.outputs, self.target = fields, raw, outputs, target
        self.name = fields.operator.name

    def __getattr__(self, name: str) -> Any:
        """Return a field by its name in C; FLOATs, which descriptors have as they were written, as C holds them."""
        value, field = self.fields.values[name], self.fields.operator.named[name]
        if field.is_array and value is not None:
            value = value[: self.fields.values[field.counted_by]]
        if field.kind == "f":
            return float(np.float32(value))
        return tuple(float(np.float32(each)) for each in value) if field.kind == "F" and value else value

    def get(self, name: str) -> Any:
        """Return a field, None where the operator has none of this name."""
        return getattr(self, name) if name in self.fields.values else None

    def __getitem__(self, name: str) -> Any:
        """Return an input as it is computed with; None for a null tensor, and where there is none of this name."""
        return widened(self.raw.get(name))

    @property
    def x(self) -> Array:
        """InputTensor as it is, not widened."""
        found: Array = self.raw["InputTensor"]
        return found

    @property
    def out(self) -> Output:
        """The first output that is not null, of a field that is no array."""
        return next(output for output in self.outputs.values() if isinstance(output, Output))

    def arrays(self) -> Iterator[Array]:
        """Yield the inputs of an element-wise function, to which ScaleBias is applied: of POW, to the exponent too."""
        scale = self.get("ScaleBias")
        for raw in self.raw.values():
            x = widened(raw)
            yield x if scale is None else x * np.float32(scale.scale) + np.float32(scale.bias)

    def stored(self, values: Array) -> Array:
        """Return values that are computed on after DirectML stored them in the type of the output."""
        if self.out.dtype != np.float16:
            return values
        found = values.astype(np.float16) if self.target.native_16_bit_ops else toward_zero(values)
        return found.astype(values.dtype)

    def require(self, *, memory: int = 0, steps: int = 0, loops: int = 0) -> None:
        """Raise DmlError for more bytes of an array, steps, or passes of a loop, than an operator may take."""
        require_bounded(self.name, self.target, memory=memory, steps=steps + loops * STEPS_OF_A_LOOP)

    def indices(self, name: str, size: int | Array, values: Array | None = None) -> Array:
        """Return a tensor of indices into a dimension, or into several that its last one counts, by their sizes.

        ``values`` are those of the tensor that are indices. Negative ones count from the end. Raises DmlError for the
        first that is out of range.
        """
        given = self.raw[name] if values is None else values
        found: Array = given.astype(np.int64)
        least, most = (np.broadcast_to(limit, found.shape) for limit in (-size * (given.dtype.kind == "i"), size - 1))
        for place in _first((found < least) | (found > most)):
            element = Element(name, place, found[place].item(), least[place].item(), most[place].item())
            refuse(index_is_in_range.findings(element, self.target))
        return np.where(found < 0, found + size, found)

    def regions(self, scales: Sequence[float]) -> Array:
        """Return the coordinates of regions, scaled, which are finite."""
        raw = self.raw["ROITensor"]
        found: Array = widened(raw).reshape(-1, raw.shape[-1])[:, -len(scales) :] * np.array(scales, np.float32)
        self.require_finite("ROITensor", found)
        return found

    def require_finite(self, name: str, values: Array) -> None:
        """Raise DmlError with the first of some coordinates that is NaN or infinite."""
        for place in _first(~np.isfinite(values)):
            element = Element(name, place, values[place].item())
            refuse(region_is_finite.findings(element, self.target))


def require_bounded(operator: str, target: Target, *, memory: int = 0, steps: int = 0) -> None:
    """Raise DmlError for more bytes of an array, or more steps, than an operator may take."""
    if memory > MAX_BYTES or steps > MAX_STEPS:
        of_memory = Work(operator, memory, MAX_BYTES, "bytes of memory for one array")
        for work in (of_memory, Work(operator, steps, MAX_STEPS, "steps")):
            refuse(work_is_bounded.findings(work, target))


def refuse(findings: Iterable[Finding]) -> None:
    """Raise DmlError with the findings, if there are any."""
    if found := [*findings]:
        raise DmlError(found)


def _first(found: Array) -> list[tuple[int, ...]]:
    """Return the index of the first True, if there is any; that of all may take more memory than the array."""
    return [tuple(map(int, np.unravel_index(found.argmax(), found.shape)))] if found.any() else []


def widened(array: Any) -> Any:
    """Return FLOAT16 as FLOAT32, in which it is computed; anything else as it is."""
    return array.astype(np.float32) if isinstance(array, np.ndarray) and array.dtype == np.float16 else array


def scalar_of(value: float | str, dtype: np.dtype[Any]) -> Any:
    """Return a FLOAT or a DML_SCALAR_UNION as an element; the union has FLOAT16 by its bits."""
    if isinstance(value, str):
        return np.array(int(value, 16) & 0xFFFF, np.uint16).view(np.float16).astype(dtype)[()]
    if dtype.kind == "f" or isinstance(value, int):
        return np.array(value).astype(dtype)[()]
    return saturated(np.array(value), dtype)[()]


def saturated(values: Array, dtype: np.dtype[Any]) -> Array:
    """Return floats as integers, toward zero; those beyond the type as its ends, NaN as 0."""
    limits = np.iinfo(dtype)
    values = np.where(np.isnan(values), 0, np.trunc(values)).astype(np.float64)
    above, below = values >= float(limits.max), values <= float(limits.min)
    inside = np.where(above | below, 0, values).astype(dtype)
    return np.where(above, dtype.type(limits.max), np.where(below, dtype.type(limits.min), inside))


def toward_zero(values: Array, *, overflows: bool = False) -> Array:
    """Return FLOAT32 as FLOAT16 toward zero; with ``overflows``, a value rounded to an infinity is one."""
    near = values.astype(np.float16)
    too_far = np.abs(near.astype(np.float32)) > np.abs(values)
    if overflows:
        too_far &= ~np.isinf(near)
    return (near.view(np.uint16) - too_far).view(np.float16)
