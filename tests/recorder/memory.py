"""Descriptors in memory that ends where their structs and arrays end: DirectML crashes where it reads past one."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator, Sequence
from ctypes import POINTER, Array, Structure, addressof, c_size_t, c_uint32, c_void_p, cast, memmove, sizeof
from typing import Any, Final

from dml_tile.descriptors.tile import OperatorDesc, TensorDesc, TileOperatorDesc
from dml_tile.directml.enums import OperatorType
from dml_tile.readers.c_structs import (
    DML_BUFFER_TENSOR_DESC,
    DML_OPERATOR_DESC,
    DML_TENSOR_DESC,
    DML_TILE_OPERATOR_DESC,
)

MAX_ENTRIES: Final = mmap.PAGESIZE // sizeof(c_uint32)
"""Of an array: it lies in one page."""

_PARTS_OF_A_TILE: Final = 11
"""The operator, the tile, two tensors with a buffer, two arrays each, and the repeats."""
_PROT_NONE: Final = 0


class GuardedMemory:
    """Room for one descriptor at a time; behind each of its structs and arrays is a page that nobody may read."""

    def __init__(self) -> None:
        size = 2 * _PARTS_OF_A_TILE * mmap.PAGESIZE
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = c_void_p
        libc.mmap.argtypes = (c_void_p, c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
        libc.mprotect.argtypes = (c_void_p, c_size_t, ctypes.c_int)
        start = libc.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        self._ends = [start + (2 * i + 1) * mmap.PAGESIZE for i in range(_PARTS_OF_A_TILE)]
        for end in self._ends:
            if libc.mprotect(end, mmap.PAGESIZE, _PROT_NONE):
                raise OSError(ctypes.get_errno(), "mprotect failed")

    def write(self, desc: OperatorDesc | TileOperatorDesc) -> DML_OPERATOR_DESC:
        """A DML_OPERATOR_DESC, also of a bare tile, which is good until the next is written.

        Raises ValueError for an array of more than ``MAX_ENTRIES``.
        """
        if isinstance(desc, TileOperatorDesc):
            desc = OperatorDesc(type=OperatorType.TILE, desc=desc)
        ends = iter(self._ends)
        tile = None if desc.desc is None else _tile(desc.desc, ends)
        return DML_OPERATOR_DESC.from_address(_copy(DML_OPERATOR_DESC(desc.type, tile), ends))


def _tile(tile: TileOperatorDesc, ends: Iterator[int]) -> int:
    tensors = [_tensor(tensor, ends) for tensor in (tile.input_tensor, tile.output_tensor)]
    return _copy(DML_TILE_OPERATOR_DESC(*tensors, tile.repeats_count, _array(tile.repeats, ends)), ends)


def _tensor(tensor: TensorDesc | None, ends: Iterator[int]) -> Any:
    """A pointer to a tensor; null for None."""
    if tensor is None:
        return None
    address = None
    if buffer := tensor.desc:
        desc = DML_BUFFER_TENSOR_DESC(
            buffer.data_type,
            buffer.flags,
            buffer.dimension_count,
            _array(buffer.sizes, ends),
            _array(buffer.strides, ends),
            buffer.total_tensor_size_in_bytes,
            buffer.guaranteed_base_offset_alignment,
        )
        address = _copy(desc, ends)
    return cast(_copy(DML_TENSOR_DESC(tensor.type, address), ends), POINTER(DML_TENSOR_DESC))


def _array(values: Sequence[int] | None, ends: Iterator[int]) -> Any:
    """A pointer to a copy of an array at the end of the next page; null for None."""
    if values is None:
        return None
    if len(values) > MAX_ENTRIES:
        raise ValueError(f"an array has {len(values)} entries; at most {MAX_ENTRIES} fit")
    return cast(_copy((c_uint32 * len(values))(*values), ends), POINTER(c_uint32))


def _copy(value: Structure | Array[c_uint32], ends: Iterator[int]) -> int:
    """The address of a copy that ends where the next page does."""
    address = next(ends) - sizeof(value)
    memmove(address, addressof(value), sizeof(value))
    return address
