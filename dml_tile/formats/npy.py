"""Reads untrusted .npy files: NumPy parses the header, which is then checked against the size of the file.

Page: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
"""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.lib import format as npy

from dml_tile.files.whole import open_without_waiting

_HEADER_BYTES: Final = 2**16
"""The most that is read of a file for its header: NumPy makes room for whatever length a header promises."""

_READERS: Final[dict[tuple[int, int], Callable[[io.BytesIO], Any]]] = {
    (1, 0): npy.read_array_header_1_0,
    (2, 0): npy.read_array_header_2_0,
    (3, 0): npy.read_array_header_2_0,  # the names of fields alone are encoded otherwise
}


@dataclass(frozen=True, slots=True)
class NpyFile:
    """A .npy file that holds the values its header promises, in C order and native byte order, and no more."""

    dtype: np.dtype[Any]
    offset: int
    nbytes: int
    """The place and the size of the values."""


def open_npy(path: Path) -> NpyFile:
    """Read a file's header. Raises ValueError if it is malformed, or the values are not those of an NpyFile."""
    with open_without_waiting(path) as stream:
        start = io.BytesIO(stream.read(_HEADER_BYTES))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about headers written by Python 2
            shape, fortran_order, dtype = _READERS[npy.read_magic(start)](start)
    except Exception:  # of any class: NumPy's reader leaves the header to Python's parser
        raise ValueError("it has no header of .npy format 1.0, 2.0 or 3.0") from None
    if not all(type(size) is int and size >= 0 for size in shape):
        raise ValueError("the shape in its header is none")
    if dtype.hasobject:
        raise ValueError("it holds Python objects")
    if fortran_order:
        raise ValueError("its values are in Fortran order; save np.ascontiguousarray(array)")
    if not dtype.isnative:
        raise ValueError(
            f"it holds {dtype.str}, in the other byte order; save array.astype(array.dtype.newbyteorder('='))"
        )
    promised, held = math.prod(shape) * dtype.itemsize, path.stat().st_size - start.tell()
    if promised != held:
        raise ValueError(f"its header promises {promised} bytes of values, but it has {held}")
    return NpyFile(dtype, start.tell(), promised)
