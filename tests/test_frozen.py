"""What the package's dataclasses and pydantic models share: nobody changes their values once they are made."""

from __future__ import annotations

import pkgutil
from collections.abc import Iterator
from dataclasses import is_dataclass
from importlib import import_module
from typing import Any, Final

import pytest
from pydantic import BaseModel

import dml_tile

CHANGING: Final = {
    # what counts, or holds what changes, while something runs
    "dml_tile.checks.file_check.SourceSummary",
    "dml_tile.checks.sweep.Workers",
    "dml_tile.simulation.process.Entered",
}


def classes() -> Iterator[tuple[str, Any]]:
    """The classes of all modules, by their whole names."""
    for module in pkgutil.walk_packages(dml_tile.__path__, "dml_tile."):
        if not module.name.endswith("__main__"):
            try:
                imported = import_module(module.name)
            except ImportError:  # of a reader whose package is not installed
                continue
            for value in vars(imported).values():
                if isinstance(value, type) and value.__module__ == module.name:
                    yield f"{module.name}.{value.__qualname__}", value


DATACLASSES: dict[str, Any] = {name: value for name, value in classes() if is_dataclass(value)}
MODELS = {name: value for name, value in classes() if issubclass(value, BaseModel)}


@pytest.mark.parametrize("name", DATACLASSES)
def test_a_dataclass_is_frozen_unless_it_is_made_to_change(name: str) -> None:
    assert DATACLASSES[name].__dataclass_params__.frozen == (name not in CHANGING)


@pytest.mark.parametrize("name", MODELS)
def test_a_model_is_frozen(name: str) -> None:
    assert MODELS[name].model_config["frozen"]
