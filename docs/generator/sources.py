"""Public names as they stand in the source: signatures, docstrings, fields and members, without running anything."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Final, NamedTuple, TypeAlias

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


class Constant(NamedTuple):
    """A name that a module, or a class, gives a value or a type, and the string that stands below it."""

    name: str
    annotation: str
    value: str
    doc: str


Definition: TypeAlias = ast.ClassDef | Function | Constant


@cache
def tree_of(module: str) -> ast.Module:
    """A module's source, parsed; numbers in hexadecimal stay so."""
    source = inspect.getsource(import_module(module))
    return _Hexadecimals(source).visit(ast.parse(source))  # type: ignore[no-any-return]


class _Hexadecimals(ast.NodeTransformer):
    def __init__(self, source: str) -> None:
        self._lines = source.encode().splitlines()

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        text = self._lines[node.lineno - 1][node.col_offset : node.end_col_offset].decode()
        return ast.Name(text) if type(node.value) is int and text.startswith("0x") else node


def public_names(module: str) -> list[str]:
    """The names of ``__all__``; else what the module defines, and imports ``as`` the same name, without underscores."""
    listed = getattr(import_module(module), "__all__", None)
    if listed is not None:
        return list(listed)
    names = []
    for node in tree_of(module).body:
        match node:
            case ast.ClassDef() | ast.FunctionDef():
                names.append(node.name)
            case ast.ImportFrom():
                names += [alias.name for alias in node.names if alias.asname == alias.name]
    names += [constant.name for constant in constants(tree_of(module)) if constant.doc]
    return [name for name in names if not name.startswith("_")]


@cache  # so that each definition is one object
def definition(module: str, name: str) -> Definition:
    """Return the definition of a name, in the module or in one it is imported from; the last, behind its overloads.

    Raises LookupError without one.
    """
    for node in reversed(tree_of(module).body):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == name:
            return node
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return definition(node.module, alias.name)
    for constant in constants(tree_of(module)):
        if constant.name == name:
            return constant
    raise LookupError(f"{module} defines no {name}")


def overloads(module: str, name: str) -> list[Function]:
    """The overloads of a function of a module, without the function itself."""
    functions = [node for node in tree_of(module).body if isinstance(node, ast.FunctionDef) and node.name == name]
    return [each for each in functions if "overload" in map(written, each.decorator_list)]


def constants(node: ast.Module | ast.ClassDef) -> Iterator[Constant]:
    """Yield the assignments of a module or a class, in order; fields without a value too."""
    for statement, following in zip(node.body, [*node.body[1:], None], strict=True):
        doc = ""
        if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant):
            doc = inspect.cleandoc(str(following.value.value))
        match statement:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=value):
                yield Constant(name, written(annotation), written(value) if value else "", doc)
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                yield Constant(name, "", written(value), doc)


def written(node: ast.AST) -> str:
    """A node as source text, in double quotes where there are no others."""
    text = ast.unparse(node)
    return text if '"' in text else text.replace("'", '"')


def signature(function: Function, name: str | None = None, width: float = 100) -> str:
    """A function's signature, without ``self`` and ``cls``; beyond the width with one parameter a line."""
    given = function.args
    positional = [*given.posonlyargs, *given.args]
    defaults = [None] * (len(positional) - len(given.defaults)) + list(given.defaults)
    parameters = [_parameter(*one) for one in zip(positional, defaults, strict=True) if one[0].arg not in _IMPLIED]
    if given.vararg:
        parameters.append(f"*{_parameter(given.vararg, None)}")
    elif given.kwonlyargs:
        parameters.append("*")
    parameters += map(_parameter, given.kwonlyargs, given.kw_defaults)
    if given.kwarg:
        parameters.append(f"**{_parameter(given.kwarg, None)}")
    end = f") -> {written(function.returns)}" if function.returns and function.name != "__init__" else ")"
    start = f"{name or function.name}("
    line = f"{start}{', '.join(parameters)}{end}"
    return line if len(line) <= width else "\n".join([start, *(f"    {one}," for one in parameters), end])


_IMPLIED: Final = ("self", "cls")


def _parameter(argument: ast.arg, default: ast.expr | None) -> str:
    annotation = f": {written(argument.annotation)}" if argument.annotation else ""
    equals = " = " if annotation else "="
    return f"{argument.arg}{annotation}{equals}{written(default)}" if default else f"{argument.arg}{annotation}"
