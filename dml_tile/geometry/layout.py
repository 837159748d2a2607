"""The geometry of a buffer tensor: strides, extents and sizes, in exact integers.

Sizes and strides are in elements, totals in bytes. No function takes memory in proportion to a tensor.

Pages: https://learn.microsoft.com/en-us/windows/ai/directml/dml-strides and
https://learn.microsoft.com/en-us/windows/ai/directml/dml-helper-functions
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache, reduce
from itertools import accumulate, combinations
from operator import itemgetter, mul
from typing import Any, Final

from dml_tile.directml.data_types import ELEMENT_SIZES, TensorDataType
from dml_tile.directml.enums import DML_TENSOR_DIMENSION_COUNT_MAX1, UINT64_MAX, UINT_MAX
from dml_tile.errors import require_uint

MAX_DIFFERENCES: Final = 2**17
"""The most differences between elements' addresses that are looked at, of one tensor."""


def packed_strides(sizes: Sequence[int], element_size: int = 1) -> tuple[int, ...]:
    """Return the strides of a packed tensor, in the unit of the element size; the last dimension is contiguous.

    >>> packed_strides([2, 3, 4])
    (12, 4, 1)
    """
    return tuple(accumulate(reversed(sizes[1:]), mul, initial=element_size))[::-1] if sizes else ()


def lie_alike(sizes: Sequence[int], strides: Sequence[int], others: Sequence[int]) -> bool:
    """Return True if all dimensions with several elements have the same strides."""
    return all(size == 1 or a == b for size, a, b in zip(sizes, strides, others, strict=True))


def extent(sizes: Sequence[int], strides: Sequence[int] | None) -> int:
    """Return one past the highest element index of a tensor without a size of 0; ``strides=None`` means packed.

    >>> extent([2, 3], [8, 1])
    11
    """
    if strides is None:
        return math.prod(sizes)
    return 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=False))


def round_up_4(size_in_bytes: int) -> int:
    """Return the next multiple of 4 bytes: DirectML binds buffers whose total sizes are DWORD-aligned."""
    return (size_in_bytes + 3) & ~3


def minimum_size_in_bytes(element_size: int, sizes: Sequence[int], strides: Sequence[int] | None) -> int:
    """Return the least legal TotalTensorSizeInBytes, in exact arithmetic (Microsoft's helper wraps at 32 bits)."""
    return round_up_4(extent(sizes, strides) * element_size)


def calc_buffer_tensor_size(data_type: int, sizes: Sequence[int], strides: Sequence[int] | None) -> int:
    """Return the bytes that Microsoft's DMLCalcBufferTensorSize returns, unsigned overflow included.

    Strided indices are summed in 32 bits, packed sizes multiplied in 64; an unknown data type gives 0.

        >>> calc_buffer_tensor_size(TensorDataType.UINT8, [1, 1, 2, 3], [8, 8, 4, 1])
        8
        >>> calc_buffer_tensor_size(TensorDataType.UINT8, [2, 3], [2**32 - 2, 1])  # 2^32 + 1 elements
        4

    Raises TypeError unless the arguments are integers, and ValueError for an integer that no UINT holds, or for another
    number of strides than of sizes.
    """
    element_size = ELEMENT_SIZES.get(require_data_type_value(data_type), 0)
    return wrapping_size_in_bytes(element_size, *require_sizes_and_strides(sizes, strides))


def wrapping_size_in_bytes(element_size: int, sizes: Sequence[int], strides: Sequence[int] | None) -> int:
    """Return ``calc_buffer_tensor_size`` for an element size; sizes and strides are UINTs."""
    if strides is not None:
        last = sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=False))
        elements = (last & UINT_MAX) + 1
    elif len(sizes) <= DML_TENSOR_DIMENSION_COUNT_MAX1:
        elements = math.prod(sizes)
    else:  # each of many sizes would make an unwrapped number longer
        elements = reduce(lambda product, size: product * size & UINT64_MAX, sizes)
    return round_up_4(elements * element_size) & UINT64_MAX


def require_data_type_value(data_type: int) -> int:
    """Return the value of a DML_TENSOR_DATA_TYPE. Raises as ``require_uint`` does, TypeError for a name."""
    if isinstance(data_type, str):
        name = data_type.upper().removeprefix("DML_TENSOR_DATA_TYPE_")
        wanted = f"TensorDataType.{name}" if name in TensorDataType.__members__ else "its value"
        raise TypeError(f"DataType: {data_type!r} is a name; write {wanted}")
    return require_uint("DataType", data_type)


def require_sizes_and_strides(
    sizes: Iterable[Any], strides: Iterable[Any] | None
) -> tuple[tuple[int, ...], tuple[int, ...] | None]:
    """Return both as Python's integers. Raises as ``require_uint`` does, and ValueError if their counts differ."""
    sizes = _require_uints("Sizes", sizes)
    if strides is None:
        return sizes, None
    strides = _require_uints("Strides", strides)
    if len(strides) != len(sizes):
        raise ValueError(f"Strides: {len(strides)} were provided for {len(sizes)} Sizes; write as many")
    return sizes, strides


def _require_uints(field: str, values: Iterable[Any]) -> tuple[int, ...]:
    if isinstance(values, str | bytes | bytearray | Set | Mapping):
        raise TypeError(f"{field}: {values!r} was provided; write a list of integers")
    return tuple(require_uint(f"{field}[{i}]", value) for i, value in enumerate(values))


def shares_addresses(sizes: Sequence[int], strides: Sequence[int]) -> bool | None:
    """Return True if two elements of a strided tensor share an address; None if there are too many to enumerate.

        >>> shares_addresses([2, 3], [3, 1]), shares_addresses([2, 3], [2, 1])
        (False, True)

    Groups of dimensions that no steps along other groups can make up are decided apart: two dimensions by arithmetic;
    of more, up to 2^17 differences of all but the longest dimension are enumerated.
    """
    dimensions = sorted((stride, size) for size, stride in zip(sizes, strides, strict=True) if size > 1)
    if dimensions and dimensions[0][0] == 0:
        return True
    answers = [_group_shares(group) for group in _independent(dimensions)]
    return True if True in answers else None if None in answers else False


def _reach(dimensions: Sequence[tuple[int, int]]) -> int:
    return sum((size - 1) * stride for stride, size in dimensions)


def _independent(dimensions: list[tuple[int, int]]) -> Iterator[tuple[tuple[int, int], ...]]:
    """Yield groups of the sorted dimensions; elements of the tensor share an address exactly if those of a group do.

    Inner dimensions whose reach is less than the greatest common divisor of the outer strides make up no outer step:
    they are a group. A stride beyond the reach of all smaller strides shares nothing, and is left out.
    """
    start = 0
    for i in range(1, len(dimensions)):
        if _reach(dimensions[start:i]) < math.gcd(*(stride for stride, _ in dimensions[i:])):
            yield tuple(dimensions[start:i])
            start = i
    rest = dimensions[start:]
    while rest and rest[-1][0] > _reach(rest[:-1]):
        rest.pop()
    yield tuple(rest)


def _group_shares(dimensions: tuple[tuple[int, int], ...]) -> bool | None:
    if any(_pair_shares(inner, outer) for inner, outer in combinations(dimensions, 2)):
        return True
    if len(dimensions) <= 2:
        return False
    if math.prod(size for _, size in dimensions) > 1 + _reach(dimensions):
        return True  # more elements than addresses
    *others, last = sorted(dimensions, key=itemgetter(1))
    return _differences_make_up_steps(tuple(others), last)


def _pair_shares(inner: tuple[int, int], outer: tuple[int, int]) -> bool:
    """Return True if steps along one dimension reach the same address as steps along the other."""
    divisor = math.gcd(inner[0], outer[0])
    return inner[1] > outer[0] // divisor and outer[1] > inner[0] // divisor


_FEW: Final = 4096
"""Up to this count, Python compares differences in less time than importing NumPy takes."""


@lru_cache(maxsize=64)  # a descriptor may be checked at many targets
def _differences_make_up_steps(others: tuple[tuple[int, int], ...], last: tuple[int, int]) -> bool | None:
    """Return True if elements that differ in other dimensions lie whole steps of the last one apart, few enough for it.

    None if there are too many differences to look at each.
    """
    stride, size = last
    count = math.prod(2 * each - 1 for _, each in others)
    if count > MAX_DIFFERENCES:
        return None
    if count <= _FEW:
        few = [0]
        for step, each in others:
            few = [difference + i * step for difference in few for i in range(1 - each, each)]
        return sum(difference % stride == 0 and abs(difference) < size * stride for difference in few) > 1
    import numpy as np  # here, since most checks do not need it

    differences = np.zeros(1, np.int64)
    for step, each in others:
        differences = np.add.outer(differences, np.arange(1 - each, each, dtype=np.int64) * step).ravel()
    steps, rests = np.divmod(differences, stride)
    return int(np.count_nonzero((rests == 0) & (abs(steps) < size))) > 1  # one of them is that of an element to itself
