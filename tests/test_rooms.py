"""Imports go one way, between modules and between rooms."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Final

import dml_tile

PACKAGE: Final = Path(dml_tile.__file__).parent

ROOMS: Final = (
    # each may import those before it
    *("text", "directml", "findings", "errors", "geometry", "descriptors", "simulation", "input_errors", "files"),
    *("json_text", "bindings", "rules", "checking", "back_ends", "execution", "lowering", "device", "dxdispatch"),
    *("readers", "arrays", "checks", "testing", "pytest_plugin", "reports", "pictures", "emit", "cli"),
    "__main__",
)


def imported(tree: ast.Module) -> Iterator[str]:
    """Yield what a module imports of the package, also within functions: modules, and names in modules."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "dml_tile":
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


@cache
def imports() -> dict[str, set[str]]:
    """Return the modules of the package, each with those that it imports."""
    texts = {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path.read_text(
            "utf-8"
        )
        for path in PACKAGE.rglob("*.py")
    }
    return {
        module: {name if name in texts else name.rpartition(".")[0] for name in imported(ast.parse(text))}
        - {module, "dml_tile"}
        for module, text in texts.items()
    }


def floor_of(module: str) -> int:
    return ROOMS.index(module.split(".")[1])


def test_no_module_imports_one_that_imports_it_not_even_within_a_function() -> None:
    TopologicalSorter(imports()).prepare()  # raises CycleError


def test_no_room_imports_one_above_it_not_even_within_a_function() -> None:
    both = ((module, other) for module, others in imports().items() for other in others)
    assert not [f"{module} imports {other}" for module, other in both if floor_of(other) > floor_of(module)]


def test_rules_import_nothing_of_the_simulation() -> None:
    rules = {name for module, names in imports().items() if module.startswith("dml_tile.rules") for name in names}
    assert rules
    assert not [name for name in rules if name.startswith("dml_tile.simulation")]


def test_no_rule_names_a_feature_level() -> None:
    """What differs between levels is a field of a level's row, or of an operator's entry."""
    for path in (PACKAGE / "rules").glob("*.py"):
        assert not re.search(r"FeatureLevel\.(parse|DML_FEATURE_LEVEL_)", path.read_text("utf-8")), path
