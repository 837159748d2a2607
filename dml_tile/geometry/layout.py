"""The geometry of a buffer tensor: strides, extents and sizes, in exact integers.

Sizes and strides are in elements, totals in bytes. Nothing here takes memory in proportion to a tensor.

Pages: https://learn.microsoft.com/en-us/windows/ai/directml/dml-strides and
https://learn.microsoft.com/en-us/windows/ai/directml/dml-helper-functions
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, pairwise
from operator import mul
from typing import Final

from dml_tile.enums import UINT64_MAX, UINT_MAX, TensorDataType

ELEMENT_SIZES: Final[dict[int, int]] = {
    # bytes; the 4-bit types have no whole number of them, nor has Microsoft's helper
    TensorDataType.FLOAT32: 4,
    TensorDataType.FLOAT16: 2,
    TensorDataType.UINT32: 4,
    TensorDataType.UINT16: 2,
    TensorDataType.UINT8: 1,
    TensorDataType.INT32: 4,
    TensorDataType.INT16: 2,
    TensorDataType.INT8: 1,
    TensorDataType.FLOAT64: 8,
    TensorDataType.UINT64: 8,
    TensorDataType.INT64: 8,
}

MAX_ENUMERATED_ADDRESSES: Final = 2**22
_DENSE: Final = 8  # times as many addresses as elements, or fewer


def packed_strides(sizes: Sequence[int]) -> tuple[int, ...]:
    """The strides, in elements, of a tensor without padding: the last dimension is contiguous."""
    return tuple(accumulate(reversed(sizes[1:]), mul, initial=1))[::-1] if sizes else ()


def extent(sizes: Sequence[int], strides: Sequence[int] | None) -> int:
    """One past the highest element index that the tensor addresses; ``strides=None`` means packed.

    Every size must be at least 1.
    """
    if strides is None:
        return math.prod(sizes)
    return 1 + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=False))


def round_up_4(size_in_bytes: int) -> int:
    """The next multiple of 4 bytes: DirectML binds buffers whose total sizes are DWORD-aligned."""
    return (size_in_bytes + 3) & ~3


def minimum_size_in_bytes(element_size: int, sizes: Sequence[int], strides: Sequence[int] | None) -> int:
    """The least legal TotalTensorSizeInBytes, in exact arithmetic (Microsoft's helper wraps at 32 bits)."""
    return round_up_4(extent(sizes, strides) * element_size)


def calc_buffer_tensor_size(data_type: int, sizes: Sequence[int], strides: Sequence[int] | None) -> int:
    """DMLCalcBufferTensorSize as on today's page, its unsigned overflow included; in bytes.

    The strided index is summed in 32 bits, a packed product in 64; an unknown data type gives 0.
    """
    element_size = ELEMENT_SIZES.get(data_type)
    if element_size is None:
        return 0
    if strides is None:
        size = element_size
        for each in sizes:  # of however many: numbers that do not wrap would grow with each
            size = size * each & UINT64_MAX
    else:
        last = sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=False))
        size = ((last & UINT_MAX) + 1) * element_size
    return round_up_4(size & UINT64_MAX) & UINT64_MAX


def shares_addresses(sizes: Sequence[int], strides: Sequence[int]) -> bool | None:
    """True if two elements of a strided tensor share an address; None if there are too many to enumerate.

    A layout whose dimensions nest, each stride beyond all that the smaller ones reach, has distinct addresses. What
    does not nest is enumerated, up to 2^22 addresses.
    """
    dimensions = sorted((stride, size) for size, stride in zip(sizes, strides, strict=True) if size > 1)
    if any(inner[0] == outer[0] for inner, outer in pairwise(dimensions)):
        return True
    if dimensions and dimensions[0][0] == 0:
        return True
    while dimensions and dimensions[-1][0] > _reach(dimensions[:-1]):
        dimensions.pop()
    count = math.prod(size for _, size in dimensions)
    if count > 1 + _reach(dimensions):
        return True  # more elements than addresses
    if count > MAX_ENUMERATED_ADDRESSES:
        return None
    return _has_repeated_address(tuple(dimensions))


def _reach(dimensions: Sequence[tuple[int, int]]) -> int:
    return sum((size - 1) * stride for stride, size in dimensions)


@lru_cache(maxsize=64)  # a descriptor may be checked at many targets
def _has_repeated_address(dimensions: tuple[tuple[int, int], ...]) -> bool:
    if len(dimensions) < 2:
        return False
    import numpy as np  # here, so that checking a descriptor that nests does not pay for it

    addresses = np.zeros(1, np.int64)
    for stride, size in dimensions:
        addresses = np.add.outer(addresses, np.arange(size, dtype=np.int64) * stride).ravel()
    reach = _reach(dimensions)
    if reach <= _DENSE * addresses.size:  # then marking them is some ten times as fast as sorting them
        seen = np.zeros(reach + 1, np.bool_)
        seen[addresses] = True
        return int(np.count_nonzero(seen)) < addresses.size
    addresses.sort()
    return bool((addresses[1:] == addresses[:-1]).any())
