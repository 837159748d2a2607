"""Whoever uses a public name can name its types: each that its signature has is public too."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache

import pytest

import dml_tile
from docs.generator.api_page import MADE_BY_OTHERS, MODULES
from docs.generator.sources import public_names, tree_of

Home = tuple[str, str]
"""The module that defines a name, and the name."""


@cache
def imports_of(module: str) -> dict[str, Home]:
    """Return the names that a module imports from the package, for type checkers too."""
    return {
        alias.asname or alias.name: (node.module, alias.name)
        for node in ast.walk(tree_of(module))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("dml_tile")
        for alias in node.names
    }


@cache
def definitions_in(module: str) -> dict[str, ast.stmt]:
    found: dict[str, ast.stmt] = {}
    for node in tree_of(module).body:
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                found[name] = node
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.Assign(targets=[ast.Name(id=name)]):
                found[name] = node
    return found


def home_of(module: str, name: str) -> Home | None:
    """Return the home of a name that a module uses; None if it is not the package's."""
    if name in definitions_in(module):
        return module, name
    if name in imports_of(module):
        return home_of(*imports_of(module)[name])
    return None


def public_homes() -> dict[Home, str]:
    """Return every public definition, with the public name that leads to it."""
    homes: dict[Home | None, str] = {}
    for name, module in dml_tile._HOMES.items():
        homes[home_of(f"dml_tile.{module}", name)] = f"dml_tile.{name}"
    for module in MODULES:
        for name in public_names(module):
            homes.setdefault(home_of(module, name), f"{module}.{name}")
    return {home: name for home, name in homes.items() if home}


def shown_types(node: ast.AST) -> Iterator[ast.expr]:
    """Yield the types that a public definition shows: of arguments, results, public fields and public methods."""
    match node:
        case ast.FunctionDef(args=given, returns=returns):
            for argument in [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]:
                if argument and argument.annotation:
                    yield argument.annotation
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
        case ast.AnnAssign(annotation=annotation, value=value):
            yield annotation
            if ast.unparse(annotation) == "TypeAlias" and value:
                yield value


def type_names(annotation: ast.expr) -> Iterator[str]:
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
                if isinstance(child, ast.expr):
                    yield from type_names(child)


PUBLIC = public_homes()


def is_a_type_variable(home: Home) -> bool:
    node = definitions_in(home[0])[home[1]]
    value = getattr(node, "value", None)
    return isinstance(value, ast.Call) and ast.unparse(value.func) in ("TypeVar", "ParamSpec")


@pytest.mark.parametrize(("home", "name"), PUBLIC.items(), ids=PUBLIC.values())
def test_every_type_in_a_public_signature_is_public(home: Home, name: str) -> None:
    module, defined = home
    private = {
        used
        for annotation in shown_types(definitions_in(module)[defined])
        for used in type_names(annotation)
        if (found := home_of(module, used)) and found not in PUBLIC and not is_a_type_variable(found)
    }
    assert not private, f"{name} shows {', '.join(sorted(private))}"
