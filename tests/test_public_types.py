"""Whoever uses a public name can name its types: each that its signature has is public too."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

import dml_tile
from docs.generator.api_page import MADE_BY_OTHERS, MODULES
from docs.generator.sources import Constant, definition, public_names

PUBLIC: Final = {name: f"dml_tile.{module}" for name, module in dml_tile._HOMES.items()} | {
    name: module for module in MODULES for name in public_names(module)
}
"""The module of each public name, or one that imports it."""


def defined_types() -> Iterator[str]:
    """Yield the names of the package's classes and aliases of types."""
    for path in Path(dml_tile.__file__).parent.rglob("*.py"):
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
