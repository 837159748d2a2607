"""Imports go one way, between modules and between rooms."""

from __future__ import annotations

import ast
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


@cache
def modules() -> dict[str, ast.Module]:
    return {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): ast.parse(
            path.read_text(encoding="utf-8")
        )
        for path in PACKAGE.rglob("*.py")
    }


def imported(nodes: Iterator[ast.AST] | list[ast.stmt], known: set[str]) -> set[str]:
    """The modules of the package that import statements name, be it as a module or as the home of a name."""
    found = set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "dml_tile":
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in known else node.module for name in names}
    return found


def test_no_module_imports_one_that_imports_it_not_even_within_a_function() -> None:
    trees = modules()
    imports = {module: imported(ast.walk(tree), {*trees}) - {"dml_tile", module} for module, tree in trees.items()}
    TopologicalSorter(imports).prepare()  # raises CycleError


def floor_of(module: str) -> int:
    return ROOMS.index(module.split(".")[1])


def test_no_room_imports_one_above_it_not_even_within_a_function() -> None:
    trees = modules()
    upward = [
        f"{module} imports {other}"
        for module, tree in trees.items()
        for other in sorted(imported(ast.walk(tree), {*trees}))
        if "dml_tile" not in (module, other) and floor_of(other) > floor_of(module)
    ]
    assert not upward


def test_rules_import_nothing_of_the_simulation() -> None:
    trees = modules()
    rules = (tree for module, tree in trees.items() if module.startswith("dml_tile.rules"))
    assert not [name for tree in rules for name in imported(ast.walk(tree), {*trees}) if ".simulation" in name]


def test_no_rule_names_a_feature_level() -> None:
    """What differs between levels is a field of a level's row, or of an operator's entry."""
    for path in (PACKAGE / "rules").glob("*.py"):
        names = {ast.unparse(node) for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))}
        assert "FeatureLevel.parse" not in names, path
        assert not [name for name in names if name.startswith("FeatureLevel.DML_FEATURE_LEVEL_")], path
