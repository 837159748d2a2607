"""Descriptors in memory that ends where their arrays end, so that DirectML crashes where it reads past one."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence
from ctypes import POINTER, c_size_t, c_uint32, c_void_p, cast, pointer
from typing import Any, Final

from dml_tile.descriptors import OperatorDesc, TensorDesc, TileOperatorDesc
from dml_tile.enums import OperatorType
from dml_tile.readers.c_structs import (
    DML_BUFFER_TENSOR_DESC,
    DML_OPERATOR_DESC,
    DML_TENSOR_DESC,
    DML_TILE_OPERATOR_DESC,
)

MAX_ENTRIES: Final = mmap.PAGESIZE // 4
"""Of an array: it lies in one page."""

_ARRAYS_OF_A_TILE: Final = 5
_PROT_NONE: Final = 0


class GuardedMemory:
    """Room for one descriptor at a time; behind each of its arrays is a page that nobody may read."""

    def __init__(self) -> None:
        size = 2 * _ARRAYS_OF_A_TILE * mmap.PAGESIZE
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = c_void_p
        libc.mmap.argtypes = (c_void_p, c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
        libc.mprotect.argtypes = (c_void_p, c_size_t, ctypes.c_int)
        start = libc.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        self._ends = [start + (2 * i + 1) * mmap.PAGESIZE for i in range(_ARRAYS_OF_A_TILE)]
        for end in self._ends:
            if libc.mprotect(end, mmap.PAGESIZE, _PROT_NONE):
                raise OSError(ctypes.get_errno(), "mprotect failed")

    def write(self, desc: OperatorDesc | TileOperatorDesc) -> DML_OPERATOR_DESC:
        """A DML_OPERATOR_DESC, also of a bare tile, whose arrays are good until the next is written.

        Raises ValueError for an array of more than ``MAX_ENTRIES``.
        """
        if isinstance(desc, TileOperatorDesc):
            desc = OperatorDesc(type=OperatorType.TILE, desc=desc)
        ends = iter(self._ends)

        def array(values: Sequence[int] | None) -> Any:
            end = next(ends)
            if values is None:
                return None
            if len(values) > MAX_ENTRIES:
                raise ValueError(f"an array has {len(values)} entries; at most {MAX_ENTRIES} fit")
            address = end - 4 * len(values)
            (c_uint32 * len(values)).from_address(address)[:] = list(values)
            return cast(address, POINTER(c_uint32))

        def tensor(given: TensorDesc | None) -> Any:
            if given is None:
                return None
            if given.desc is None:
                return pointer(DML_TENSOR_DESC(given.type, None))
            buffer = given.desc
            struct = DML_BUFFER_TENSOR_DESC(
                buffer.data_type,
                buffer.flags,
                buffer.dimension_count,
                array(buffer.sizes),
                array(buffer.strides),
                buffer.total_tensor_size_in_bytes,
                buffer.guaranteed_base_offset_alignment,
            )
            return pointer(DML_TENSOR_DESC(given.type, cast(pointer(struct), c_void_p)))

        tile = desc.desc
        if tile is None:
            return DML_OPERATOR_DESC(desc.type, None)
        written = DML_TILE_OPERATOR_DESC(
            tensor(tile.input_tensor), tensor(tile.output_tensor), tile.repeats_count, array(tile.repeats)
        )
        return DML_OPERATOR_DESC(desc.type, cast(pointer(written), c_void_p))
