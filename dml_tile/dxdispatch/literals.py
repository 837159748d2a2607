"""Reads the initial values that are written in a model itself, and holds them to their types and their resource's size.

It takes no NumPy, whose import takes longer than a check.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from pydantic import ValidationError

from dml_tile.descriptors.structs import JSON_DOCUMENT
from dml_tile.descriptors.tile import DATA_TYPE
from dml_tile.directml.data_types import FLOATS, TensorDataType
from dml_tile.dxdispatch.model import ConstantValues, FileValues, Model, Resource, TypedValue
from dml_tile.dxdispatch.rules import as_float64
from dml_tile.errors import InputError, input_error
from dml_tile.findings import Finding
from dml_tile.geometry.layout import round_up_4
from dml_tile.input_errors import problems_of
from dml_tile.text import json_pointer, shown


class LiteralValues(NamedTuple):
    """Numbers that fit their types, and the bytes that all values take.

    A list is one part, or a part a number where types are mixed. A constant has one number, a sequence two: its start
    and its step.
    """

    data_type: int
    nbytes: int
    parts: list[tuple[TensorDataType, list[float]]]


def literal_problems(model: Model) -> Iterator[Finding]:
    """Yield the problems of initial values written in the model itself; files are not read."""
    # an ONNX dispatchable fills deferred resources
    fills = any(dispatchable.type.lower() == "onnx" for dispatchable in model.dispatchables.values())
    for name, resource in model.resources.items():
        if not (isinstance(resource.initial_values, FileValues) or (fills and resource.initial_values == "deferred")):
            try:
                values = literal_values(resource, f"{resource_pointer(name)}/initialValues")
                resource_size(resource, values.nbytes, resource_pointer(name))
            except InputError as error:
                yield from error.problems


def resource_pointer(name: str) -> str:
    """Return the JSON pointer of a resource."""
    return json_pointer(["resources", name])


def resource_size(resource: Resource, needed: int, pointer: str) -> int:
    """Return a resource's size in bytes. Raises InputError if its initial values need more."""
    offset = resource.initial_values_offset_in_bytes
    size = resource.size_in_bytes if resource.size_in_bytes is not None else round_up_4(needed)
    if offset + needed > size:
        message = f"sizeInBytes is {size}; the initial values need {needed} bytes at offset {offset}"
        raise input_error(f"{pointer}/sizeInBytes", message)
    return size


def literal_values(resource: Resource, pointer: str) -> LiteralValues:
    """Return initial values that are no file's. Raises InputError for values that do not fit their type."""
    values, data_type = resource.initial_values, resource.initial_values_data_type
    if isinstance(values, str):
        raise input_error(pointer, "deferred resources are made by ONNX models only; a tile cannot fill them")
    assert not isinstance(values, FileValues)
    if isinstance(values, list) and data_type == TensorDataType.UNKNOWN:
        mixed = [_typed_value(value, f"{pointer}/{i}") for i, value in enumerate(values)]
        return LiteralValues(data_type, sum(each.bits // 8 for each, _ in mixed), mixed)
    type_ = numpy_type(data_type, f"{pointer}DataType")
    if isinstance(values, list):
        return LiteralValues(data_type, len(values) * type_.bits // 8, [(type_, _numbers(values, type_, pointer))])
    if isinstance(values, ConstantValues):
        parts = [(type_, _numbers([values.value], type_, f"{pointer}/value"))]
    else:
        ends = {"valueStart": values.value_start, "valueDelta": values.value_delta}
        parts = [(type_, _numbers([number], type_, f"{pointer}/{key}")) for key, number in ends.items()]
    return LiteralValues(data_type, values.value_count * type_.bits // 8, parts)


def _typed_value(value: Any, pointer: str) -> tuple[TensorDataType, list[float]]:
    try:
        typed = TypedValue.model_validate(value, context=JSON_DOCUMENT)
    except ValidationError as error:
        raise InputError(problems_of(error, value, pointer)) from None
    type_ = numpy_type(typed.type, f"{pointer}/type")
    return type_, _numbers([typed.value], type_, f"{pointer}/value")


def _numbers(values: list[Any], data_type: TensorDataType, pointer: str) -> list[float]:
    """Return JSON values as numbers of a type: floats in double precision, integers that fit."""
    is_float = data_type in FLOATS
    least = -(2 ** (data_type.bits - 1)) if data_type.name.startswith("INT") else 0
    most = least + 2**data_type.bits - 1
    numbers = []
    for i, value in enumerate(values):
        number = _float(value) if is_float else value if type(value) is int else None
        if number is None or not (is_float or least <= number <= most):
            wanted = 'a number, "nan", "inf" or "-inf"' if is_float else f"an integer that fits {data_type.name}"
            at = f"{pointer}/{i}" if len(values) > 1 else pointer
            raise input_error(at, f"{shown(value)} was provided, but {wanted} was expected")
        numbers.append(number)
    return numbers


def _float(value: Any) -> float | None:
    if type(value) in (int, float):
        return as_float64(value)
    spelled = value.lower() if isinstance(value, str) else None
    return float(spelled) if spelled in ("nan", "inf", "-inf") else None


def numpy_type(data_type: int, pointer: str) -> TensorDataType:
    """Return the data type. Raises InputError unless NumPy has a dtype of its name."""
    found = next((each for each in TensorDataType if each == data_type), TensorDataType.UNKNOWN)
    if not found.in_numpy:
        raise input_error(pointer, f"{DATA_TYPE.write(data_type)} was provided, but a type that NumPy has was expected")
    return found
