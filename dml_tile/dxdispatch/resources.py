"""Allocates a model's resources and fills them with their initial values, those of untrusted .npy files among them.

As DxDispatch does, it rounds FLOAT16 numbers toward zero from a FLOAT32, at each step of a sequence too.

Page: https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
"""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from dml_tile.bindings.memory import Bytes
from dml_tile.descriptors.tile import DATA_TYPE
from dml_tile.directml.data_types import TensorDataType
from dml_tile.directml.dtypes import DTYPES, NUMBER_TYPES
from dml_tile.dxdispatch.literals import literal_values, numpy_type, resource_pointer, resource_size
from dml_tile.dxdispatch.model import IMAGE_SUFFIXES, FileValues, Resource, SequenceValues
from dml_tile.errors import input_error
from dml_tile.files.paths import AllowedFolders
from dml_tile.files.whole import open_without_waiting, read_into

MAX_RESOURCE_BYTES: Final = 2**32
"""The most memory that the resources of one model may take, with the copies of them that tiles own."""

_NPY_TYPES: Final = NUMBER_TYPES | {"bool": TensorDataType.INT8}
"""The data types of .npy files by the names of dtypes, as DxDispatch reads them."""


@dataclass(frozen=True, slots=True)
class Contents:
    """The buffer of a resource; its initial values take ``shown_bytes``, which is what DxDispatch prints."""

    data_type: int
    shown_bytes: int
    bytes: Bytes


@dataclass(frozen=True, slots=True)
class _CheckedValues:
    """Initial values that are known to be good: their type, their size in bytes, and a function that writes them."""

    data_type: int
    nbytes: int
    write: Callable[[Bytes], object]


def allocate(resources: Mapping[str, Resource], folders: AllowedFolders) -> dict[str, Contents]:
    """Allocate all resources. Raises InputError for values that do not fit their type, and for unusable files."""
    values = {name: _initial_values(each, resource_pointer(name), folders) for name, each in resources.items()}
    sizes = {name: resource_size(each, values[name].nbytes, resource_pointer(name)) for name, each in resources.items()}
    require_memory(sum(sizes.values()), "/resources")
    contents = {}
    for name, checked in values.items():
        memory = np.zeros(sizes[name], np.uint8)
        checked.write(memory[: checked.nbytes])  # DxDispatch checks initialValuesOffsetInBytes, and does not use it
        contents[name] = Contents(checked.data_type, checked.nbytes, memory)
    return contents


def require_memory(needed: int, pointer: str) -> None:
    """Raise InputError if the resources of a model and their copies need more than MAX_RESOURCE_BYTES."""
    if needed > MAX_RESOURCE_BYTES:
        message = f"{needed} bytes would be needed; the resources of a model may take {MAX_RESOURCE_BYTES}"
        raise input_error(pointer, message)


def _initial_values(resource: Resource, pointer: str, folders: AllowedFolders) -> _CheckedValues:
    if isinstance(resource.initial_values, FileValues):
        return _file_values(resource, resource.initial_values.source_path, pointer, folders)
    literal = literal_values(resource, f"{pointer}/initialValues")
    arrays = [_array(numbers, DTYPES[data_type]) for data_type, numbers in literal.parts]
    if isinstance(resource.initial_values, list):
        arrays = [np.concatenate([array.view(np.uint8) for array in arrays])]
    fill: Callable[..., object] = _fill_steps if isinstance(resource.initial_values, SequenceValues) else np.copyto
    return _CheckedValues(literal.data_type, literal.nbytes, lambda place: fill(place.view(arrays[0].dtype), *arrays))


def _fill_steps(steps: NDArray[Any], start: NDArray[Any], delta: NDArray[Any]) -> None:
    """Fill an array with ``start``, ``start + delta`` and so on, added up one by one in its type as in DxDispatch."""
    if start.dtype == np.float16:
        _fill_halves(steps, start, delta)
        return
    steps[:1], steps[1:] = start, delta
    with np.errstate(all="ignore"):
        np.cumsum(steps, dtype=steps.dtype, out=steps)


def _file_values(resource: Resource, name: str, pointer: str, folders: AllowedFolders) -> _CheckedValues:
    here, data_type = f"{pointer}/initialValues/sourcePath", resource.initial_values_data_type
    path = folders.readable(name, here)
    suffix = path.suffix.lower()
    if suffix in IMAGE_SUFFIXES:
        raise input_error(here, f"{name!r} is an image; only .npy files and raw bytes are read")
    if suffix == ".npy":
        try:
            dtype, offset, nbytes = read_npy_header(path)
        except (OSError, ValueError) as error:
            raise input_error(here, f"{name!r} cannot be read as .npy: {error}") from None
        held = _NPY_TYPES.get(dtype.name)
        if held is None:
            raise input_error(here, f"{name!r} holds {dtype}, which is no tensor data type")
        if data_type not in (TensorDataType.UNKNOWN, held):
            wanted = DATA_TYPE.write(data_type)
            raise input_error(here, f"{name!r} holds {held.name}, but initialValuesDataType is {wanted}")
        data_type = held
    else:
        numpy_type(data_type, f"{pointer}/initialValuesDataType")
        try:
            offset, nbytes = 0, path.stat().st_size
        except OSError as error:
            raise input_error(here, f"{name!r} cannot be read: {error.strerror}") from None
    if nbytes == 0:
        raise input_error(here, f"{name!r} holds no values")

    def write(place: Bytes) -> None:
        try:
            read_into(path, place, offset)
        except (OSError, ValueError) as error:  # it has changed
            raise input_error(here, f"{name!r} cannot be read: {error}") from None

    return _CheckedValues(data_type, nbytes, write)


_HEADER_BYTES: Final = 2**16
"""The most that is read of a file for its header: NumPy makes room for whatever length a header promises."""

_READERS: Final[dict[tuple[int, int], Callable[[io.BytesIO], Any]]] = {
    (1, 0): npy.read_array_header_1_0,
    (2, 0): npy.read_array_header_2_0,
    (3, 0): npy.read_array_header_2_0,  # the names of fields alone are encoded otherwise
}


def read_npy_header(path: Path) -> tuple[np.dtype[Any], int, int]:
    """Return the dtype of a .npy file's values, and where they lie: their offset and size in bytes.

    Raises ValueError unless it has what its header promises, in C order and native byte order, and no more.
    """
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
        message = f"it holds {dtype.str}, in the other byte order; save array.astype(array.dtype.newbyteorder('='))"
        raise ValueError(message)
    promised, held = math.prod(shape) * dtype.itemsize, path.stat().st_size - start.tell()
    if promised != held:
        raise ValueError(f"its header promises {promised} bytes of values, but it has {held}")
    return dtype, start.tell(), promised


def _array(numbers: list[float], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return numbers as an array of a type; floats are rounded to it."""
    with np.errstate(over="ignore"):  # a number too large for a float is infinite, as in C++
        if dtype == np.float16:
            return _round_to_halves(np.array(numbers, np.float32))
        return np.array(numbers, np.float64 if dtype.kind == "f" else dtype).astype(dtype)


def _round_to_halves(singles: NDArray[np.float32]) -> NDArray[np.float16]:
    """Round FLOAT32 numbers to FLOAT16 toward zero; from 65536 on they are infinite, and a NaN keeps its upper bits."""
    nearest = singles.astype(np.float16)
    is_rounded_up = (np.abs(nearest) > np.abs(singles)) & (np.abs(singles) < 2**16)
    return np.where(is_rounded_up, np.nextafter(nearest, np.float16(0)), nearest)


def _fill_halves(steps: NDArray[Any], start: NDArray[Any], delta: NDArray[Any]) -> None:
    """Fill an array of FLOAT16 with ``start``, ``start + delta`` and so on, each step rounded.

    Steps only grow, or only fall: after 65536 at most comes one that ``delta`` no longer changes.
    """
    every = np.arange(2**16, dtype=np.uint16).view(np.float16).astype(np.float32)
    with np.errstate(all="ignore"):
        following = _round_to_halves(every + np.float32(delta[0]))
    after = following.view(np.uint16).tolist()
    path = start.view(np.uint16).tolist()
    while after[path[-1]] != path[-1] and len(path) < len(steps):
        path.append(after[path[-1]])
    bits = steps.view(np.uint16)
    bits[: len(path)] = path
    bits[len(path) :] = path[-1]
