"""The names of the package: complete, sorted, lazy, imported one way, with types that can be named, and frozen."""

from __future__ import annotations

import ast
import doctest
import pkgutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import is_dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import pytest
from pydantic import BaseModel

import dml_tile
from docs.generator.api_page import MADE_BY_OTHERS, MODULES
from docs.generator.sources import Constant, definition, public_names

PACKAGE = Path(dml_tile.__file__).parent
CHANGING: Final = {
    # what counts, or holds what changes, while something runs
    "dml_tile.checks.file_check.SourceSummary",
    "dml_tile.checks.sweep.Workers",
    "dml_tile.simulation.process.Entered",
}


def test_the_names_are_sorted_and_each_is_there() -> None:
    assert dml_tile.__all__ == sorted(dml_tile.__all__)
    for name in dml_tile.__all__:
        assert getattr(dml_tile, name) is not None
        assert name in dir(dml_tile)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'tiles'"):
        _ = dml_tile.tiles  # type: ignore[attr-defined]


def test_the_version_is_the_installed_one() -> None:
    assert dml_tile.__version__ == version("dml-tile")


def test_importing_the_package_imports_nothing_else() -> None:
    code = "import sys, dml_tile; print(sorted({'numpy', 'pydantic', 'rich', 'typer', 'onnx'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout == "[]\n"


def test_the_docstring_s_example_is_true() -> None:
    assert doctest.testmod(dml_tile).failed == 0


def test_the_package_is_typed() -> None:
    assert (PACKAGE / "py.typed").exists()


def test_every_module_says_what_it_is_for() -> None:
    assert not [path for path in PACKAGE.rglob("*.py") if not path.read_text().startswith('"""')]


PUBLIC: Final = {name: f"dml_tile.{module}" for name, module in dml_tile._HOMES.items()} | {
    name: module for module in MODULES for name in public_names(module)
}
"""The module of each public name, or one that imports it."""


def defined_types() -> Iterator[str]:
    """Yield the names of the package's classes and aliases of types."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            match node:
                case (
                    ast.ClassDef(name=name) | ast.AnnAssign(target=ast.Name(id=name), annotation=ast.Name("TypeAlias"))
                ):
                    yield name
                case ast.Assign(targets=[ast.Name(id=name)], value=ast.Subscript() | ast.BinOp()):
                    yield name


def shown_types(shown: object) -> Iterator[ast.AST]:
    """Yield the types that a public definition shows: of arguments, results, public fields and public methods."""
    match shown:
        case Constant(annotation=written, value=value):
            yield ast.parse(value if written in ("", "TypeAlias") else written)
        case ast.FunctionDef(args=given, returns=returns):
            arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
            yield from (argument.annotation for argument in arguments if argument and argument.annotation)
            if returns:
                yield returns
        case ast.ClassDef(name=name, body=body):
            for inner in body:
                match inner:
                    case ast.FunctionDef(name="__init__") if name not in MADE_BY_OTHERS:
                        yield from shown_types(inner)
                    case ast.FunctionDef(name=method) if not method.startswith("_"):
                        yield from shown_types(inner)
                    case ast.AnnAssign(target=ast.Name(id=field), annotation=annotation) if not field.startswith("_"):
                        yield annotation


def type_names(annotation: ast.AST) -> Iterator[str]:
    """Yield the names in an annotation; of Annotated, those of the type alone."""
    match annotation:
        case ast.Constant(value=str() as text):
            yield from type_names(ast.parse(text, mode="eval").body)
        case ast.Subscript(value=ast.Name(id="Annotated"), slice=ast.Tuple(elts=[first, *_])):
            yield from type_names(first)
        case ast.Subscript(value=ast.Name(id="Literal")):
            pass
        case ast.Name(id=name):
            yield name
        case _:
            for child in ast.iter_child_nodes(annotation):
                yield from type_names(child)


DEFINED: Final = frozenset(defined_types())


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_every_type_in_a_public_signature_is_public(name: str) -> None:
    shown = shown_types(definition(PUBLIC[name], name))
    private = {used for annotation in shown for used in type_names(annotation)} & DEFINED - PUBLIC.keys()
    assert not private, f"{name} shows {', '.join(sorted(private))}"


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
