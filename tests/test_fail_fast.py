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
from dml_tile.descriptors.tile import BufferTensorDesc
from dml_tile.input_errors import MAX_KEYS, Record

ONLY_WRITTEN = ("dml_tile.reports.json", "dml_tile.back_ends.chromium")
"""The modules whose models read nothing."""

READ_ONE_BY_ONE = {"resources", "dispatchables", "commands", "bindings", "per_file_ignores"}
"""Fields of DxDispatch's models whose parts are read one by one, until there are too many problems; a setting of which
pyproject.toml has room for few."""

MANY = 1000
WRONG = [object()] * MANY


def subclasses(kind: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for each in kind.__subclasses__():
        yield each
        yield from subclasses(each)


def models() -> list[type[BaseModel]]:
    for module in pkgutil.walk_packages(dml_tile.__path__, "dml_tile."):
        if not module.name.endswith(("__main__", ".readers.openvino")):  # which needs a package, and has no models
            import_module(module.name)
    found = {each for each in subclasses(BaseModel) if each.__module__.startswith("dml_tile.")}
    return sorted((each for each in found if each.__module__ not in ONLY_WRITTEN), key=lambda each: each.__qualname__)


def errors_of(model: type[BaseModel], field: str, value: Any) -> int:
    """Return how many errors a model has of a field's value; readers drop most unknown keys of C structs before."""
    try:
        model.model_validate({field: value})
    except ValidationError as error:
        return sum(one["type"] != "extra_forbidden" for one in error.errors())
    return 0


@pytest.mark.parametrize("model", models(), ids=lambda model: model.__qualname__)
def test_a_list_from_a_file_is_read_up_to_its_first_wrong_value(model: type[BaseModel]) -> None:
    for name, field in model.model_fields.items():
        for value in (WRONG, dict.fromkeys(map(str, range(MANY)), object()), {"x": WRONG}, [WRONG], [{"x": WRONG}]):
            assert errors_of(model, field.alias or name, value) <= MAX_KEYS or name in READ_ONE_BY_ONE, (name, value)


@pytest.mark.parametrize("model", models(), ids=lambda model: model.__qualname__)
def test_an_object_from_a_file_has_few_errors_for_unknown_keys(model: type[BaseModel]) -> None:
    """Others ignore unknown keys; the readers of C structs drop most of them, which test_costs.py tries."""
    assert model.model_config.get("extra") != "forbid" or issubclass(model, Record | Struct)


def test_a_list_of_flags_is_read_up_to_its_first_wrong_value_too() -> None:
    read: list[str] = []

    class Word(str):
        def __hash__(self) -> int:
            read.append(self)
            return super().__hash__()

    assert errors_of(BufferTensorDesc, "Flags", [Word("no such flag")] * MANY)
    assert len(read) < 10


def test_a_list_that_goes_on_is_found() -> None:
    class Slow(Record):
        values: tuple[int, ...]
        inner: dict[str, list[str] | None]
        several: list[Any]

    counts = [errors_of(Slow, name, value) for name, value in (("values", WRONG), ("inner", {"x": WRONG}))]
    assert min(counts) >= MANY
    assert errors_of(Slow, "several", WRONG) <= 2  # the fields that are missing


@pytest.mark.parametrize("strict", [True, False])
def test_of_many_keys_none_is_reported(strict: bool) -> None:
    class One(Record):
        model_config = ConfigDict(strict=strict)
        key: int = 0

    for count, errors in ((MAX_KEYS, MAX_KEYS), (MAX_KEYS + 1, 1), (10**5, 1)):
        with pytest.raises(ValidationError) as caught:
            One.model_validate({f"{i}": 1 for i in range(count)})
        assert caught.value.error_count() == errors
