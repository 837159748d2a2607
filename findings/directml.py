"""Loads Microsoft's DirectML for Linux over the stand-in of tests/recorder, for the scripts beside this file.

The wheel of torch-directml (MIT) is in the current folder. It takes x86-64, a C++ compiler and Debian's
directx-headers-dev. Nothing of dml_tile is imported.
"""

from __future__ import annotations

import ctypes
import sys
import zipfile
from pathlib import Path
from typing import Any
from uuid import UUID

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tests.recorder.stand_in import LIBRARIES, build

IDML_DEVICE = UUID("6dbd6437-96fd-423f-a98c-ae5e7c2a573f").bytes_le
IDML_OPERATOR = UUID("26caae7a-3081-4633-9581-226fbe57695d").bytes_le


def load() -> tuple[ctypes.CDLL, ctypes.c_void_p]:
    """Return the library, and a device of Direct3D 12 that executes nothing."""
    (wheel,) = Path().glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        Path("libdirectml.so").write_bytes(archive.read("torch_directml/libdirectml.so"))
    build(Path("stand_in"))
    direct3d, _ = (ctypes.CDLL(str(Path("stand_in", name).resolve()), ctypes.RTLD_GLOBAL) for name in LIBRARIES)
    direct3d.stand_in_device.restype = ctypes.c_void_p
    library = ctypes.CDLL(str(Path("libdirectml.so").resolve()))
    library.DMLCreateDevice1.restype = ctypes.c_uint32
    return library, ctypes.c_void_p(direct3d.stand_in_device(1, 1, 1))


def create_device(library: ctypes.CDLL, direct3d_device: ctypes.c_void_p, minimum: int) -> tuple[int, ctypes.c_void_p]:
    """Return DMLCreateDevice1's HRESULT, and the IDMLDevice."""
    made = ctypes.c_void_p()
    level = ctypes.c_uint32(minimum)
    result = library.DMLCreateDevice1(direct3d_device, 0, level, IDML_DEVICE, ctypes.byref(made))
    return result, made


def call(made: ctypes.c_void_p, method: int, *arguments: Any) -> int:
    """Call a method of a COM object by its number; returns the HRESULT."""
    table = ctypes.cast(made, ctypes.POINTER(ctypes.POINTER(ctypes.c_void_p)))[0]
    kinds: list[Any] = [ctypes.c_void_p, *(type(argument) for argument in arguments)]
    return int(ctypes.CFUNCTYPE(ctypes.c_uint32, *kinds)(table[method])(made, *arguments))
