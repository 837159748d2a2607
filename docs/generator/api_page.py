"""docs/api.md: every public name, with its signature and its docstring. What it does not list is private."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from textwrap import indent
from typing import Any, Final

import dml_tile
from docs.generator.sources import (
    Constant,
    Definition,
    Function,
    constants,
    definition,
    overloads,
    public_names,
    signature,
    written,
)

_ABOUT: Final = """\
# The API

This page is for Python: every public name by what it is for, from the docstrings; everything else in the package is
private and may change in any release. Sizes and strides are in elements, totals and offsets in bytes, unless stated
otherwise. A `target` is anything that [`Target.parse`](#target) takes; see [the concepts](concepts.md).
"""
_NEXT: Final = "Next: [tests](testing.md), which use it; [rules](rules.md), for what findings say.\n"

TASKS: Final = {
    "describe a tile": ("TileOperatorDesc", "BufferTensorDesc", "data_type_of"),
    "describe a graph of tiles": ("GraphDesc", "OperatorGraphNodeDesc", "IntermediateGraphEdge"),
    "learn why it is refused": ("check", "require", "lowest_level", "RULES"),
    "check the tiles of a model": ("check_model", "check_via"),
    "choose whose DirectML is meant": ("Target", "simulate", "current_target"),
    "tile an array as DirectML would": ("tile", "execute", "compile_tile"),
    "execute any operator": ("evaluate", "execute"),
    "find what an older DirectML takes": ("lower", "run_lowering"),
    "exchange descriptors with C": ("read_operator_desc", "write_operator_desc"),
    "test code that calls DirectML": ("Device", "Buffer", "BufferBinding"),
}
"""The names to begin with, by what they are for."""

GROUPS: Final = {
    # the modules that the names of dml_tile come from
    "Describe a tile": ("descriptors.tile", "directml.dtypes"),
    "Describe any operator": ("descriptors.numbers", "descriptors.operator"),
    "Describe a graph of operators": ("descriptors.graph",),
    "Check a descriptor": ("checking", "rules.descriptor", "findings", "errors", "checks.catalogue"),
    "Check models": (
        *(
            "checks.questions",
            "checks.result",
            "checks.verdict",
            "checks.via",
            "readers.item",
            "readers.model_tile",
            "checks.sweep",
            "readers.sources",
        ),
        *("checks.placements", "back_ends.placement", "back_ends.described_node", "checks.described"),
    ),
    "Choose a target": ("directml.targets", "directml.levels", "simulation.target", "back_ends.chromium"),
    "Tile arrays": ("arrays", "execution.executor", "execution.mover", "bindings.memory", "geometry.layout"),
    "Execute any operator": ("execution.evaluation",),
    "Lower a tile": ("lowering.lower", "lowering.steps"),
    "Exchange structs with C": ("readers.c_structs",),
    "Draw a tile, and write its code": ("pictures.picture", "emit.cpp"),
    "Test against a device": (
        *("device.device", "device.plans", "device.dispatchables", "device.table", "device.dispatches"),
        *("rules.device", "bindings.resources"),
    ),
    "Enumerations": ("directml.enums", "directml.data_types"),
}

MODULES: Final = (
    # the other public modules; what is public of them is their __all__, or all that has no underscore
    "dml_tile.errors",
    "dml_tile.testing",
    "dml_tile.back_ends",
    "dml_tile.back_ends.dialects",
    "dml_tile.back_ends.directml",
    "dml_tile.arrays",
)

MADE_BY_OTHERS: Final = {
    *("BindingTable", "BoundTile", "CommandRecorder", "CompiledOperator", "Operator", "OperatorFields"),
    *("Crossing", "Item", "ModelNodes", "ModelResults", "NodePlace", "OperatorInitializer", "PlacedModel"),
    *("DescribedNode", "Judged", "OpsetAdvice", "Reason", "Result"),
}
"""Classes that are made by calls of others, not by their own."""


def api_page() -> str:
    """The page. Raises ValueError for a public name without a group."""
    homes = dml_tile._HOMES
    if homeless := set(homes.values()) - {home for group in GROUPS.values() for home in group}:
        raise ValueError(f"no group for the names of {', '.join(sorted(homeless))}: see {__file__}")
    lines = [_ABOUT, "## dml_tile", "", _first_paragraph(dml_tile.__doc__), ""]
    lines += [
        "| to | begin with |",
        "|---|---|",
        *(f"| {task} | {_links(names)} |" for task, names in TASKS.items()),
        "",
    ]
    listed: set[int] = set()  # the definitions that have an entry
    for title, group in GROUPS.items():
        lines += [f"## {title}", ""]
        ranks = {name: _rank(homes[name], name, group) for name in homes if homes[name] in group}
        for name in sorted(ranks, key=ranks.__getitem__):
            lines += _entries(f"dml_tile.{homes[name]}", [name], listed)
    for module in MODULES:
        lines += [f"## {module}", "", _first_paragraph(import_module(module).__doc__), ""]
        lines += _entries(module, public_names(module), listed)
    return "\n".join([*lines, _NEXT])


def _rank(home: str, name: str, group: Sequence[str]) -> tuple[int, int]:
    """The place of a name in its group: functions first, then classes, then aliases and constants."""
    defined = definition(f"dml_tile.{home}", name)
    kind = 2 if isinstance(defined, Constant) else int(isinstance(defined, ast.ClassDef))
    return kind, group.index(home)


def _entries(module: str, names: Sequence[str], listed: set[int]) -> Iterator[str]:
    """An entry for each name; of those that are ``listed`` further up, links."""
    definitions = {name: definition(module, name) for name in names}
    again = [name for name in names if id(definitions[name]) in listed]
    if again:
        yield from (f"Also {_links(again)}.", "")
    for name in names:
        if name not in again:
            listed.add(id(definitions[name]))
            yield from _entry(name, definitions[name], getattr(import_module(module), name))


PRIVATE: Final = {"OperatorRow", "Struct", "TileNode"}
"""The models' base, and what a reader of models sends: neither is public, nor is a member that is one."""


def _links(names: Iterable[str]) -> str:
    return ", ".join(f"[`{name}`](#{name.lower()})" for name in names)


def _entry(name: str, defined: Definition, described: object) -> Iterator[str]:
    yield from (f"### {name}", "")
    match defined:
        case Constant():
            yield from (*_code(_assignment(defined)), _prose(defined.doc), "")
        case ast.ClassDef():
            yield from _class(defined, described)
        case _:
            decorators = [f"@{decorator}" for decorator in sorted(_decorators(defined))]
            functions = overloads(described.__module__, name) or [defined]
            text = "\n".join([*decorators, "\n\n".join(f"def {signature(each)}" for each in functions)])
            yield from (*_code(text), _prose(_docstring(defined)), "")


def _assignment(constant: Constant) -> str:
    if constant.annotation not in ("", "Final", "TypeAlias"):  # then the type tells more than how it is filled
        return f"{constant.name}: {constant.annotation}"
    return f"{constant.name} = {constant.value}"


def _class(defined: ast.ClassDef, described: object) -> Iterator[str]:
    functions = {
        node.name: node for node in _members(defined) if isinstance(node, ast.FunctionDef)
    }  # of overloads, one
    bases = ", ".join(
        written(base) for base in defined.bases if not written(base).startswith("_") and written(base) not in PRIVATE
    )
    if "__init__" in functions and defined.name not in MADE_BY_OTHERS:
        yield from _code(f"class {signature(functions['__init__'], defined.name)}")
    else:
        yield from _code(f"class {defined.name}({bases})" if bases else f"class {defined.name}")
    yield from (_prose(_docstring(defined)), "")
    fields = [one for one in constants(defined) if not one.name.startswith("_") and one.name != "model_config"]
    if members := [one for one in fields if not one.annotation]:  # an enumeration; of several values, the first is C's
        values = (one.value.removeprefix("(").partition(",")[0] for one in members)
        yield from (", ".join(f"`{one.name}` {value}" for one, value in zip(members, values, strict=True)) + ".", "")
        lines = [f"- `{one.name}`: {_line(one.doc)}" for one in members if one.doc]
        yield from (*lines, "") if lines else ()
    # a field that is in neither equality nor repr is the package's own
    of_dataclass = dataclasses.fields(described) if dataclasses.is_dataclass(described) else ()
    own = {one.name for one in of_dataclass if not (one.compare or one.repr)}
    if attributes := [one for one in fields if one.annotation and one.name not in own and _is_public(one.annotation)]:
        yield from (*map(_field, attributes), "")
    for function in functions.values():
        if not function.name.startswith("_") and (function.returns is None or _is_public(written(function.returns))):
            yield from _method(function)


def _is_public(annotation: str) -> bool:
    return PRIVATE.isdisjoint(re.findall(r"\w+", annotation))


def _members(defined: ast.ClassDef) -> Iterator[ast.stmt]:
    """The statements of a class, also those for type checkers alone."""
    for node in defined.body:
        yield from node.body if isinstance(node, ast.If) else [node]


def _method(function: Function) -> Iterator[str]:
    decorators = _decorators(function)
    if decorators & {"property", "cached_property"}:
        assert function.returns is not None
        yield f"- `{function.name}: {written(function.returns)}`"
    else:
        kind = "*class method* " if "classmethod" in decorators else ""
        yield f"- {kind}`{signature(function, width=math.inf)}`"
    yield from ("", indent(_prose(_docstring(function)), "  "), "")


def _field(field: Constant) -> str:
    """A field as an item of a list, with what pydantic's ``Annotated`` and ``Field`` tell of it."""
    annotation, value = field.annotation, field.value
    match ast.parse(annotation, mode="eval").body:
        case ast.Subscript(value=ast.Name(id="Annotated"), slice=ast.Tuple(elts=[first, *_])):
            annotation = written(first)
    match ast.parse(value or "None", mode="eval").body:
        case ast.Call(func=ast.Name(id="Field"), keywords=keywords):
            told: dict[str, Any] = {keyword.arg: keyword.value for keyword in keywords if keyword.arg}
            value = written(told["default"]) if "default" in told else ""
        case ast.Call(func=ast.Name(id="left_out")):
            value = "…"  # it is worked out
    shown = f"`{field.name}: {annotation}{f' = {value}' if value else ''}`"
    return f"- {shown}: {_line(field.doc)}" if field.doc else f"- {shown}"


def _decorators(function: Function) -> set[str]:
    return {written(decorator) for decorator in function.decorator_list}


def _docstring(defined: ast.ClassDef | Function) -> str:
    if docstring := ast.get_docstring(defined):
        return docstring
    raise ValueError(f"{defined.name}, in line {defined.lineno} of its module, has no docstring")


def _prose(docstring: str) -> str:
    return inspect.cleandoc(docstring).replace("``", "`")


def _line(text: str) -> str:
    return " ".join(text.split()).replace("``", "`")


def _first_paragraph(docstring: str | None) -> str:
    assert docstring, "each module has a docstring"
    return _prose(docstring).split("\n\n")[0]


def _code(text: str) -> list[str]:
    return ["```py", text, "```", ""]
