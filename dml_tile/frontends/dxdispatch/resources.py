"""The bytes of a model's resources before its first command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from dml_tile.descriptors import DATA_TYPE
from dml_tile.enums import TensorDataType
from dml_tile.frontends.dxdispatch.model import ConstantValues, FileValues, Resource, SequenceValues, TypedValue
from dml_tile.frontends.folders import Folders
from dml_tile.frontends.problems import InputError, json_pointer, problems_of, refuse, shown
from dml_tile.layout import round_up_4
from dml_tile.memory import DTYPES, Bytes

MAX_RESOURCE_BYTES: Final = 2**32
"""How much memory the resources of one model may take together."""

_IMAGES: Final = (".jpg", ".jpeg", ".png")
_DATA_TYPES: Final = {dtype: TensorDataType(data_type) for data_type, dtype in DTYPES.items()}


class Memory:
    """One resource's buffer.

    ``data_type`` is that of its initial values; ``shown_bytes`` is how many bytes those take, which is what DxDispatch
    prints.
    """

    def __init__(self, data_type: int, values: NDArray[Any], resource: Resource, pointer: str) -> None:
        size = resource.size_in_bytes if resource.size_in_bytes is not None else round_up_4(values.nbytes)
        offset = resource.initial_values_offset_in_bytes
        if offset + values.nbytes > size:
            raise refuse(
                f"{pointer}/sizeInBytes",
                f"sizeInBytes is {size}; the initial values need {values.nbytes} bytes at offset {offset}",
            )
        _require_sane(size, pointer)
        self.data_type = data_type
        self.shown_bytes = values.nbytes
        self.bytes: Bytes = np.zeros(size, np.uint8)
        self.bytes[offset : offset + values.nbytes] = np.frombuffer(values, np.uint8)


def allocate(resources: Mapping[str, Resource], folders: Folders) -> dict[str, Memory]:
    """The memory of all resources. Raises InputError for values that do not fit their type, and for unusable files."""
    allocated: dict[str, Memory] = {}
    for name, resource in resources.items():
        pointer = json_pointer(["resources", name])
        data_type, values = _initial_values(resource, pointer, folders)
        allocated[name] = Memory(data_type, values, resource, pointer)
        _require_sane(sum(memory.bytes.nbytes for memory in allocated.values()), pointer)
    return allocated


def _initial_values(resource: Resource, pointer: str, folders: Folders) -> tuple[int, NDArray[Any]]:
    values, data_type = resource.initial_values, resource.initial_values_data_type
    pointer = f"{pointer}/initialValues"
    if isinstance(values, FileValues):
        return _from_file(values, data_type, pointer, folders)
    if isinstance(values, str):
        raise refuse(pointer, "deferred resources are made by ONNX models only; a tile cannot fill them")
    if isinstance(values, list) and data_type == TensorDataType.UNKNOWN:
        return data_type, _from_typed_values(values, pointer)
    dtype = _dtype(data_type, pointer.replace("/initialValues", "/initialValuesDataType"))
    if isinstance(values, list):
        return data_type, _array(values, dtype, pointer)
    _require_sane(values.value_count * dtype.itemsize, pointer)
    if isinstance(values, ConstantValues):
        return data_type, np.full(values.value_count, _array([values.value], dtype, f"{pointer}/value")[0], dtype)
    return data_type, _from_sequence(values, dtype, pointer)


def _from_sequence(values: SequenceValues, dtype: np.dtype[Any], pointer: str) -> NDArray[Any]:
    steps = np.full(values.value_count, _array([values.value_delta], dtype, f"{pointer}/valueDelta")[0], dtype)
    steps[0] = _array([values.value_start], dtype, f"{pointer}/valueStart")[0]
    return np.cumsum(steps, dtype=dtype)  # added up one by one in the type itself, as DxDispatch does


def _from_typed_values(values: list[Any], pointer: str) -> NDArray[np.uint8]:
    parts = []
    for i, value in enumerate(values):
        try:
            typed = TypedValue.model_validate(value)
        except ValidationError as error:
            raise InputError(problems_of(error, value, f"{pointer}/{i}")) from None
        parts.append(_array([typed.value], _dtype(typed.type, f"{pointer}/{i}/type"), f"{pointer}/{i}/value").tobytes())
    return np.frombuffer(b"".join(parts), np.uint8)


def _from_file(values: FileValues, data_type: int, pointer: str, folders: Folders) -> tuple[int, NDArray[Any]]:
    pointer = f"{pointer}/sourcePath"
    path = folders.source(values.source_path, pointer)
    suffix = path.suffix.lower()
    if suffix in _IMAGES:
        raise refuse(pointer, f"{values.source_path!r} is an image; only .npy files and raw bytes are read")
    _require_sane(path.stat().st_size, pointer)
    if suffix != ".npy":
        _dtype(data_type, pointer.replace("/initialValues/sourcePath", "/initialValuesDataType"))
        contents = np.fromfile(path, np.uint8)
    else:
        try:  # mapped, so that a header that promises more than the file has costs nothing
            contents = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError) as error:
            raise refuse(pointer, f"{values.source_path!r} cannot be read as .npy: {error}") from None
        contents = np.ascontiguousarray(contents, contents.dtype.newbyteorder("="))
        held = _DATA_TYPES.get(contents.dtype)
        if held is None:
            raise refuse(pointer, f"{values.source_path!r} holds {contents.dtype}, which is no tensor data type")
        if data_type not in (TensorDataType.UNKNOWN, held):
            raise refuse(
                pointer, f"{values.source_path!r} holds {held.name}, but initialValuesDataType is {_name(data_type)}"
            )
        data_type = held
    if contents.nbytes == 0:
        raise refuse(pointer, f"{values.source_path!r} holds no values")
    return data_type, contents.ravel()


def _array(values: list[Any], dtype: np.dtype[Any], pointer: str) -> NDArray[Any]:
    """JSON values as an array of a type; floats are rounded to it, integers must fit."""
    floating = dtype.kind == "f"
    numbers = []
    for i, value in enumerate(values):
        number = _float(value) if floating else value if type(value) is int else None
        if number is None or not (floating or np.iinfo(dtype).min <= number <= np.iinfo(dtype).max):
            wanted = 'a number, "nan", "inf" or "-inf"' if floating else f"an integer that fits {dtype.name.upper()}"
            at = f"{pointer}/{i}" if len(values) > 1 else pointer
            raise refuse(at, f"{shown(value)} was provided, but {wanted} was expected")
        numbers.append(number)
    with np.errstate(over="ignore"):  # what is too large for a float is infinite, as in C++
        if dtype == np.float16:
            return np.array(numbers, np.float32).astype(dtype)  # DxDispatch rounds twice
        return np.array(numbers, np.float64 if floating else dtype).astype(dtype)


def _float(value: Any) -> float | None:
    if type(value) in (int, float):
        try:
            return float(value)
        except OverflowError:
            return float("inf") if value > 0 else float("-inf")
    spelled = value.lower() if isinstance(value, str) else None
    return float(spelled) if spelled in ("nan", "inf", "-inf") else None


def _dtype(data_type: int, pointer: str) -> np.dtype[Any]:
    dtype = DTYPES.get(data_type)
    if dtype is None:
        raise refuse(pointer, f"{_name(data_type)} was provided, but a type with whole bytes was expected")
    return dtype


def _name(data_type: int) -> str:
    return str(DATA_TYPE.write(data_type))


def _require_sane(size: int, pointer: str) -> None:
    if size > MAX_RESOURCE_BYTES:
        raise refuse(pointer, f"{size} bytes would be needed; the resources of a model may take {MAX_RESOURCE_BYTES}")
