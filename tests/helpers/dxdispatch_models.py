"""DxDispatch models for tests, as JSON values."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def tile_json(sizes: list[int], repeats: list[int], data_type: str = "FLOAT32", **fields: Any) -> Json:
    """A tile's fields, as a model writes them."""
    products = [size * repeat for size, repeat in zip(sizes, repeats, strict=True)]
    return {
        "InputTensor": {"DataType": data_type, "Sizes": sizes} | fields.pop("input", {}),
        "OutputTensor": {"DataType": data_type, "Sizes": products} | fields.pop("output", {}),
        "RepeatsCount": len(repeats),
        "Repeats": repeats,
    } | fields


def values(*numbers: Any, data_type: str = "FLOAT32", **fields: Any) -> Json:
    return {"initialValuesDataType": data_type, "initialValues": list(numbers)} | fields


def zeros(count: int, data_type: str = "FLOAT32", **fields: Any) -> Json:
    return {"initialValuesDataType": data_type, "initialValues": {"valueCount": count, "value": 0}} | fields


def source(path: str, data_type: str = "UNKNOWN") -> Json:
    return {"initialValuesDataType": data_type, "initialValues": {"sourcePath": path}}


def dispatch(dispatchable: str = "tile", /, **bindings: Any) -> Json:
    return {"type": "dispatch", "dispatchable": dispatchable, "bindings": bindings}


def show(resource: str, **fields: Any) -> Json:
    return {"type": "print", "resource": resource} | fields


def write_file(resource: str, path: str, **fields: Any) -> Json:
    return {"type": "writeFile", "resource": resource, "targetPath": path} | fields


def model(**changes: Any) -> Json:
    """A model that tiles [1, 2] twice and prints the result, with some of its parts replaced."""
    return {
        "resources": {"In": values(1, 2), "Out": zeros(4)},
        "dispatchables": {"tile": {"type": "DML_OPERATOR_TILE", "desc": tile_json([2], [2])}},
        "commands": [dispatch(InputTensor="In", OutputTensor="Out"), show("Out")],
    } | changes


def printing(resource: Json, **fields: Any) -> Json:
    """A model that prints a resource."""
    return model(resources={"R": resource}, dispatchables={}, commands=[show("R", **fields)])


OWNED = {
    "type": "TILE",
    "desc": tile_json([2], [2], input={"Flags": "OWNED_BY_DML"}),
    "bindings": {"InputTensor": "In"},
}
