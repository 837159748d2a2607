"""Descriptors in memory that ends where their structs and arrays end: DirectML crashes where it reads past one."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator, Sequence
from ctypes import POINTER, Array, Structure, addressof, c_size_t, c_uint32, c_void_p, cast, memmove, sizeof
from functools import cache
from typing import Any, Final

from dml_tile.descriptors.operator import OperatorDesc, OperatorFields
from dml_tile.descriptors.structs import c_names
from dml_tile.descriptors.tile import TensorDesc, TileOperatorDesc
from dml_tile.directml.enums import OperatorType
from dml_tile.directml.operators import operators
from dml_tile.readers.c_structs import (
    DML_BUFFER_TENSOR_DESC,
    DML_OPERATOR_DESC,
    DML_SCALE_BIAS,
    DML_TENSOR_DESC,
    c_type_of,
    structure_of,
    write_operator_desc,
)

MAX_ENTRIES: Final = mmap.PAGESIZE // sizeof(c_uint32)
"""Of an array: it lies in one page."""

_PARTS: Final = 128
"""Of a descriptor, at most: its structs and arrays, four for each tensor."""
_PROT_NONE: Final = 0
_POINTERS: Final = "tToOUIFs"
"""The kinds of fields that are pointers."""
_TILE: Final = {c_name: name for name, c_name in c_names(TileOperatorDesc).items()}


class GuardedMemory:
    """Room for one descriptor at a time; behind each of its structs and arrays is a page that nobody may read."""

    def __init__(self) -> None:
        size = 2 * _PARTS * mmap.PAGESIZE
        libc = ctypes.CDLL(None, use_errno=True)
        libc.mmap.restype = c_void_p
        libc.mmap.argtypes = (c_void_p, c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
        libc.mprotect.argtypes = (c_void_p, c_size_t, ctypes.c_int)
        start = libc.mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, -1, 0)
        self._ends = [start + (2 * i + 1) * mmap.PAGESIZE for i in range(_PARTS)]
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
        return DML_OPERATOR_DESC.from_address(_copy(_operator(desc, ends), ends))


@cache
def guarded_memory() -> GuardedMemory:
    """The memory of this process: a process may map 255 of them."""
    return GuardedMemory()


def _operator(desc: OperatorDesc, ends: Iterator[int]) -> DML_OPERATOR_DESC:
    written = write_operator_desc(desc)
    if desc.desc is None:
        return written
    operator = operators().get(desc.type, operators()[OperatorType.TILE])  # an unknown one is asked with a tile
    struct = structure_of(operator).from_address(written.Desc)
    for field in operator.fields:
        if field.kind in _POINTERS:
            value = (
                desc.desc[field.name]
                if isinstance(desc.desc, OperatorFields)
                else getattr(desc.desc, _TILE[field.name])
            )
            setattr(
                struct,
                field.name,
                None if value is None else cast(_pointed(field.kind, value, ends), c_type_of(field.kind)),
            )
    return DML_OPERATOR_DESC(desc.type, _copy(struct, ends))


def _pointed(kind: str, value: Any, ends: Iterator[int]) -> int:
    """The address of what a field points to."""
    match kind:
        case "t":
            return _copy(_tensor(value, ends), ends)
        case "o":
            return _copy(_operator(value, ends), ends)
        case "s":
            return _copy(DML_SCALE_BIAS(value.scale, value.bias), ends)
        case "T":
            value = [_tensor(tensor, ends) for tensor in value]
        case "O":
            value = [_operator(operator, ends) for operator in value]
    return _array(c_type_of(kind)._type_, value, ends)


def _tensor(tensor: TensorDesc, ends: Iterator[int]) -> DML_TENSOR_DESC:
    address = None
    if buffer := tensor.desc:
        sizes, strides = (
            None if array is None else cast(_array(c_uint32, array, ends), POINTER(c_uint32))
            for array in (buffer.sizes, buffer.strides)
        )
        desc = DML_BUFFER_TENSOR_DESC(
            buffer.data_type,
            buffer.flags,
            buffer.dimension_count,
            sizes,
            strides,
            buffer.total_tensor_size_in_bytes,
            buffer.guaranteed_base_offset_alignment,
        )
        address = _copy(desc, ends)
    return DML_TENSOR_DESC(tensor.type, address)


def _array(kind: Any, values: Sequence[Any], ends: Iterator[int]) -> int:
    """The address of a copy of an array at the end of the next page."""
    if len(values) * sizeof(kind) > mmap.PAGESIZE:
        raise ValueError(f"an array has {len(values)} entries; at most {MAX_ENTRIES} fit")
    return _copy((kind * len(values))(*values), ends)


def _copy(value: Structure | Array[Any], ends: Iterator[int]) -> int:
    """The address of a copy that ends where the next page does."""
    address = next(ends) - sizeof(value)
    memmove(address, addressof(value), sizeof(value))
    return address
