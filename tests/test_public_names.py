"""The names of the package: complete, sorted, lazy, imported one way, with types that can be named, and frozen."""

from __future__ import annotations

import doctest
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import pytest
from pydantic import BaseModel

import dml_tile
import dml_tile.testing
from tests.helpers.paths import ROOT

PACKAGE = Path(dml_tile.__file__).parent
CHANGING: Final = {
    # what counts, or holds what changes, while something runs
    "dml_tile.back_ends.placement.Edge",
    "dml_tile.back_ends.placement.ModelNode",
    "dml_tile.checks.placements.ModelNodes",
    "dml_tile.checks.result.CheckedFile",
    "dml_tile.checks.sweep.Workers",
    "dml_tile.device.state.DeviceState",
    "dml_tile.input_errors.ProblemList",
    "dml_tile.readers.sandbox.parent.ModelReader",
    "dml_tile.simulation.process.OpenSimulation",
}


@pytest.mark.parametrize("module", [dml_tile, dml_tile.testing])
def test_the_names_are_sorted_and_each_is_there(module: Any) -> None:
    assert module.__all__ == sorted(module.__all__)
    for name in module.__all__:
        assert getattr(module, name) is not None
        assert name in dir(module)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'tiles'"):
        _ = dml_tile.tiles  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "module",
    [
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
        for path in PACKAGE.rglob("*.py")
        if ">>>" in path.read_text("utf-8")
    ],
)
def test_the_examples_in_docstrings_are_true(module: str) -> None:
    found = doctest.testmod(import_module(module))
    assert found.attempted
    assert found.failed == 0


def test_the_package_is_typed_and_every_module_says_what_it_is_for() -> None:
    assert (PACKAGE / "py.typed").exists()
    assert not [path for path in PACKAGE.rglob("*.py") if not path.read_text().startswith('"""')]


def test_every_type_that_the_page_of_the_api_shows_is_public() -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    shown = " ".join(map("".join, re.findall(r"^```py\n(.*?)^```$|^- (`[^`]*`)", page, re.M | re.S)))
    sources = "".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    defined = map("".join, re.findall(r"^class (\w+)|^(\w+)(?:: TypeAlias\b| = \w+(?:\[| \|))", sources, re.M))
    public = re.findall(r"^### (\w+)$", page, re.M)
    assert len(public) > 100
    used = {*re.findall(r"\b\w+\b(?!\()", shown)}  # without what annotates types
    assert not {*defined} & used - {*public}


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


CLASSES: Final = {name: value for name, value in classes() if is_dataclass(value) or issubclass(value, BaseModel)}


@pytest.mark.parametrize("name", CLASSES)
def test_a_dataclass_and_a_model_are_frozen_unless_they_are_made_to_change(name: str) -> None:
    parameters = getattr(CLASSES[name], "__dataclass_params__", None)
    is_frozen = parameters.frozen if parameters else CLASSES[name].model_config["frozen"]
    assert is_frozen == (name not in CHANGING)
