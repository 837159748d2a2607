"""Descriptors in memory that ends where their structs and arrays end: DirectML crashes where it reads past one."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator
from ctypes import Array, Structure, addressof, c_size_t, c_uint32, c_void_p, cast, memmove, sizeof
from functools import cache
from typing import Any, Final

from dml_tile.descriptors.numbers import ScaleBias
from dml_tile.descriptors.operator import OperatorDesc, OperatorFields
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


def guarded(desc: OperatorDesc | TileOperatorDesc) -> DML_OPERATOR_DESC:
    """Write a DML_OPERATOR_DESC, also of a bare tile, which is good until the next is written.

    Raises ValueError for an array of more than ``MAX_ENTRIES``.
    """
    ends = iter(_ends())
    return DML_OPERATOR_DESC.from_address(_copy(_operator(desc, ends), ends))


@cache
def _ends() -> list[int]:
    """The ends of pages, behind each of which is one that nobody may read; a process may map 255 such."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = c_void_p
    libc.mmap.argtypes = (c_void_p, c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long)
    libc.mprotect.argtypes = (c_void_p, c_size_t, ctypes.c_int)
    access, kind = mmap.PROT_READ | mmap.PROT_WRITE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    start = libc.mmap(None, 2 * _PARTS * mmap.PAGESIZE, access, kind, -1, 0)
    ends = [start + (2 * i + 1) * mmap.PAGESIZE for i in range(_PARTS)]
    if any(libc.mprotect(end, mmap.PAGESIZE, _PROT_NONE) for end in ends):
        raise OSError(ctypes.get_errno(), "mprotect failed")
    return ends


def _operator(desc: OperatorDesc | TileOperatorDesc, ends: Iterator[int]) -> DML_OPERATOR_DESC:
    """A copy whose pointers are to copies at the ends of pages; numbers are as ``write_operator_desc`` has them."""
    written = write_operator_desc(desc)
    fields = desc.desc if isinstance(desc, OperatorDesc) else desc
    if fields is None:
        return written
    operator = operators().get(written.Type, operators()[OperatorType.TILE])  # an unknown one is asked with a tile
    struct = structure_of(operator).from_address(written.Desc)
    values = fields.values if isinstance(fields, OperatorFields) else fields.__dict__
    for field, value in zip(operator.fields, values.values(), strict=True):
        if field.kind in _POINTERS and value is not None:
            entries = value if field.is_array else [value]
            setattr(struct, field.name, _array(c_type_of(field.kind), entries, ends))
    return DML_OPERATOR_DESC(written.Type, _copy(struct, ends))


def _array(pointer: Any, values: Any, ends: Iterator[int]) -> Any:
    """A pointer to a copy of an array, or of one struct, at the end of the next page."""
    entries = [_entry(value, ends) for value in values]
    if len(entries) * sizeof(pointer._type_) > mmap.PAGESIZE:
        raise ValueError(f"an array has {len(entries)} entries; at most {MAX_ENTRIES} fit")
    return cast(_copy((pointer._type_ * len(entries))(*entries), ends), pointer)


def _entry(value: Any, ends: Iterator[int]) -> Any:
    match value:
        case OperatorDesc():
            return _operator(value, ends)
        case ScaleBias():
            return DML_SCALE_BIAS(value.scale, value.bias)
        case TensorDesc(desc=None):
            return DML_TENSOR_DESC(value.type, None)
        case TensorDesc():
            fields = (
                _array(c_type_of("U"), each, ends) if isinstance(each, tuple) else each
                for each in value.desc.__dict__.values()
            )
            return DML_TENSOR_DESC(value.type, _copy(DML_BUFFER_TENSOR_DESC(*fields), ends))
    return value


def _copy(value: Structure | Array[Any], ends: Iterator[int]) -> int:
    """The address of a copy that ends where the next page does."""
    address = next(ends) - sizeof(value)
    memmove(address, addressof(value), sizeof(value))
    return address
