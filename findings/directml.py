"""Loads Microsoft's DirectML for Linux over the stand-in of tests/recorder, for the scripts beside this file.

The wheel of torch-directml (MIT) is in the current folder. It takes x86-64, a C++ compiler and Debian's
directx-headers-dev. Nothing of dml_tile is imported.
"""

from __future__ import annotations

import ctypes
import math
import sys
import zipfile
from collections.abc import Sequence
from ctypes import addressof, byref, c_uint32, c_uint64, c_void_p
from pathlib import Path
from typing import Any
from uuid import UUID

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.recorder.stand_in import LIBRARIES, build

IDML_DEVICE = UUID("6dbd6437-96fd-423f-a98c-ae5e7c2a573f").bytes_le
IDML_OPERATOR = UUID("26caae7a-3081-4633-9581-226fbe57695d").bytes_le
CREATE_OPERATOR = 8
"""IDMLDevice's method, by its number."""


class BufferTensorDesc(ctypes.Structure):
    """DML_BUFFER_TENSOR_DESC."""

    _fields_ = [
        ("DataType", c_uint32),
        ("Flags", c_uint32),
        ("DimensionCount", c_uint32),
        ("Sizes", c_void_p),
        ("Strides", c_void_p),
        ("TotalTensorSizeInBytes", c_uint64),
        ("GuaranteedBaseOffsetAlignment", c_uint32),
    ]


class Desc(ctypes.Structure):
    """DML_TENSOR_DESC and DML_OPERATOR_DESC."""

    _fields_ = [("Type", c_uint32), ("Desc", c_void_p)]


class Tensor:
    """A packed tensor of elements of four bytes, described as DML_TENSOR_DESC at ``address``."""

    def __init__(self, data_type: int, sizes: Sequence[int], alignment: int = 0) -> None:
        self._sizes = (c_uint32 * len(sizes))(*sizes)
        where = addressof(self._sizes)
        self._buffer = BufferTensorDesc(data_type, 0, len(sizes), where, None, 4 * math.prod(sizes), alignment)
        self._desc = Desc(1, addressof(self._buffer))
        self.address = addressof(self._desc)


def load() -> tuple[ctypes.CDLL, c_void_p]:
    """Return the library, and a device of Direct3D 12 that executes nothing."""
    (wheel,) = Path().glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        Path("libdirectml.so").write_bytes(archive.read("torch_directml/libdirectml.so"))
    build(Path("stand_in"))
    direct3d, _ = (ctypes.CDLL(str(Path("stand_in", name).resolve()), ctypes.RTLD_GLOBAL) for name in LIBRARIES)
    direct3d.stand_in_device.restype = c_void_p
    library = ctypes.CDLL(str(Path("libdirectml.so").resolve()))
    library.DMLCreateDevice1.restype = c_uint32
    return library, c_void_p(direct3d.stand_in_device(1, 1, 1))


def create_device(library: ctypes.CDLL, direct3d_device: c_void_p, minimum: int) -> tuple[int, c_void_p]:
    """Return DMLCreateDevice1's HRESULT, and the IDMLDevice."""
    made = c_void_p()
    result = library.DMLCreateDevice1(direct3d_device, 0, c_uint32(minimum), IDML_DEVICE, byref(made))
    return result, made


def create_operator(device: c_void_p, kind: int, desc: ctypes.Structure) -> int:
    """Return CreateOperator's HRESULT for a struct of a DML_OPERATOR_TYPE."""
    operator, made = Desc(kind, addressof(desc)), c_void_p()
    return call(device, CREATE_OPERATOR, c_void_p(addressof(operator)), IDML_OPERATOR, c_void_p(addressof(made)))


def call(made: c_void_p, method: int, *arguments: Any) -> int:
    """Call a method of a COM object by its number; returns the HRESULT."""
    table = ctypes.cast(made, ctypes.POINTER(ctypes.POINTER(c_void_p)))[0]
    kinds: list[Any] = [c_void_p, *(ctypes.c_char_p if isinstance(each, bytes) else type(each) for each in arguments)]
    return int(ctypes.CFUNCTYPE(c_uint32, *kinds)(table[method])(made, *arguments))
