"""Models that read files stop at the first wrong value of a list, and report no unknown key where there are many."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, ValidationError

import dml_tile
from dml_tile.descriptors.structs import Struct
from dml_tile.input_errors import MAX_KEYS, Record

ONLY_WRITTEN = ("dml_tile.reports.json", "dml_tile.back_ends.webnn_limits")
"""The modules whose models read nothing."""

READ_ONE_BY_ONE = {"Model": ("resources", "dispatchables", "commands")}
"""Fields whose parts are validated one by one, until there are too many problems."""

FEW = {
    "TileDispatchable": ("bindings",),
    "DispatchCommand": ("bindings",),
}
"""Fields of which no more entries are looked at than a bound allows."""


def subclasses(kind: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for each in kind.__subclasses__():
        yield each
        yield from subclasses(each)


def models() -> list[type[BaseModel]]:
    for module in pkgutil.walk_packages(dml_tile.__path__, "dml_tile."):
        if not module.name.endswith("__main__"):
            import_module(module.name)
    found = {each for each in subclasses(BaseModel) if each.__module__.startswith("dml_tile.")}
    return sorted((each for each in found if each.__module__ not in ONLY_WRITTEN), key=lambda each: each.__qualname__)


def parts(schema: Any) -> Iterator[dict[str, Any]]:
    """The schemas inside one of pydantic's, but for those of other models."""
    if isinstance(schema, dict) and schema.get("type") != "model":
        if isinstance(schema.get("type"), str):
            yield schema
        for value in schema.values():
            yield from parts(value)
    elif isinstance(schema, list | tuple):
        for value in schema:
            yield from parts(value)


def slow_parts(schema: Any) -> list[str]:
    """The kinds of containers in a schema that may make an error for each of their values."""
    return [part["type"] for part in parts(schema) if may_be_wrong_often(part) and not part.get("fail_fast")]


def may_be_wrong_often(schema: dict[str, Any]) -> bool:
    match schema["type"]:
        case "list" | "set" | "frozenset" | "generator":
            return bool(schema.get("items_schema", {"type": "any"})["type"] != "any")
        case "tuple":
            return schema.get("variadic_item_index") is not None
        case "dict":
            return bool(schema.get("values_schema", {"type": "any"})["type"] != "any")
    return False


def fields_of(model: type[BaseModel]) -> Iterator[tuple[str, Any]]:
    whole: Any = model.__pydantic_core_schema__
    for schema in (whole, *whole.get("definitions", ())):
        while schema["type"] != "model" and "schema" in schema:
            schema = schema["schema"]
        while schema["type"] == "model" or schema["type"].startswith("function-"):
            schema = schema["schema"]
        if schema["type"] == "model-fields" and schema["model_name"] == model.__name__:
            yield from schema["fields"].items()


@pytest.mark.parametrize("model", models(), ids=lambda model: model.__qualname__)
def test_a_list_from_a_file_is_read_up_to_its_first_wrong_value(model: type[BaseModel]) -> None:
    fields = dict(fields_of(model))
    assert fields.keys() == model.model_fields.keys()
    bounded = READ_ONE_BY_ONE.get(model.__name__, ()) + FEW.get(model.__name__, ())
    assert {name: slow_parts(schema) for name, schema in fields.items() if name not in bounded} == {
        name: [] for name in fields if name not in bounded
    }


@pytest.mark.parametrize("model", models(), ids=lambda model: model.__qualname__)
def test_an_object_from_a_file_has_few_errors_for_unknown_keys(model: type[BaseModel]) -> None:
    """Others ignore unknown keys; the readers of C structs drop most of them, which test_costs.py tries."""
    assert model.model_config.get("extra") != "forbid" or issubclass(model, Record | Struct)


def test_a_container_that_goes_on_is_found() -> None:
    class Slow(Record):
        values: tuple[int, ...]
        inner: dict[str, list[str] | None]
        several: list[Any]

    assert {name: slow_parts(schema) for name, schema in fields_of(Slow)} == {
        "values": ["tuple"],
        "inner": ["dict", "list"],
        "several": [],
    }


@pytest.mark.parametrize("strict", [True, False])
def test_of_many_keys_none_is_reported(strict: bool) -> None:
    class One(Record):
        model_config = ConfigDict(strict=strict)
        key: int = 0

    for count, errors in ((MAX_KEYS, MAX_KEYS), (MAX_KEYS + 1, 1), (10**5, 1)):
        with pytest.raises(ValidationError) as caught:
            One.model_validate({f"{i}": 1 for i in range(count)})
        assert caught.value.error_count() == errors
