"""Writes descriptors as source text that builds them: Python, C++ or JSON."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import Final, Literal, NamedTuple

from pydantic import BaseModel

from dml_tile.descriptors.graph import Descriptor
from dml_tile.descriptors.tile import OperatorDesc
from dml_tile.directml.enums import OperatorType, operator_name
from dml_tile.emit.cpp import cpp_text
from dml_tile.readers.descriptors import JsonDescriptor
from dml_tile.text import pointer_steps, printable

MAX_WIDTH: Final = 88
"""The width, in characters, above which Python's formatters break a line by default."""


def python_text(desc: Descriptor | None, name: str) -> str:
    """Return Python that defines ``NAME_desc``, after ``import dml_tile``. ``name`` is an identifier."""
    return f"{name}_desc = {_value(desc, 0)}\n"


def _value(value: object, indent: int) -> str:
    match value:
        case BaseModel():
            fields = [_field(name, getattr(value, name), indent + 4) for name in type(value).model_fields]
            return f"dml_tile.{type(value).__name__}(\n{''.join(fields)}{' ' * indent})"
        case Enum():
            return f"dml_tile.{type(value).__name__}.{value.name}"
        case _:
            return repr(value)


def _field(name: str, value: object, indent: int) -> str:
    margin = " " * indent
    line = f"{margin}{name}={_value(value, indent)},\n"
    if isinstance(value, tuple) and (len(line) > MAX_WIDTH + 1 or any(isinstance(each, BaseModel) for each in value)):
        entries = "".join(f"{margin}    {_value(entry, indent + 4)},\n" for entry in value)
        return f"{margin}{name}=(\n{entries}{margin}),\n"
    return line


LanguageName = Literal["cpp", "json", "python"]

MAX_NAME_LENGTH: Final = 40


class Names(NamedTuple):
    """The name of a lone descriptor, with which those of several begin, and the C++ namespace, as ``app::tiles``."""

    first: str = ""
    namespace: str = ""


NO_NAMES: Final = Names()


def source_text(
    language: LanguageName, source: str, described: Sequence[JsonDescriptor], names: Names = NO_NAMES
) -> Iterator[str]:
    """Yield a file that builds each descriptor of a source, in parts; comments name where each comes from.

    In C++ each has variables ``NAME_desc`` (a DML_TILE_OPERATOR_DESC) and ``NAME_operator`` (a DML_OPERATOR_DESC), in
    Python ``NAME_desc``; the names come from the JSON pointers. JSON is one value, or an array of several.
    """
    if language == "json":
        yield json_text([part.desc for part in described])
        return
    yield from commented_text(
        language,
        [
            Commented(part.pointer, part.desc, (f"{source}#{part.pointer}" if part.pointer else source,))
            for part in described
        ],
        names,
    )


class Commented(NamedTuple):
    """A descriptor, the lines of comment before it, and a JSON pointer whose last step it is named by."""

    pointer: str
    desc: Descriptor | None
    comments: tuple[str, ...]


def commented_text(
    language: Literal["cpp", "python"], parts: Sequence[Commented], names: Names = NO_NAMES
) -> Iterator[str]:
    """Yield a file that builds each descriptor, in parts."""
    chosen = _LANGUAGES[language]
    namespaces = names.namespace.split("::") if names.namespace else []
    yield f"{chosen.prelude}\n"
    yield "".join(f"\nnamespace {name} {{" for name in namespaces) + ("\n" if namespaces else "")
    for part, name in zip(parts, _names_of([part.pointer for part in parts], names.first), strict=True):
        yield "".join(f"\n{_comment_line(chosen.comment, comment)}" for comment in part.comments)
        yield f"\n{chosen.text(part.desc, name)}"
    yield "".join(f"\n}}  // namespace {name}" for name in reversed(namespaces)) + ("\n" if namespaces else "")


def other_operator(part: JsonDescriptor) -> str | None:
    """Return the C name, or the number, of an operator that is no tile; None for a tile."""
    if part.other is None and isinstance(part.desc, OperatorDesc) and part.desc.type != OperatorType.TILE:
        return operator_name(int(part.desc.type))
    return part.other


def json_text(descs: Sequence[Descriptor | None]) -> str:
    """Return JSON with the full C names, as ``dml-tile check`` reads it: one descriptor, or an array of several."""
    values = [None if desc is None else desc.model_dump(mode="json", by_alias=True) for desc in descs]
    return json.dumps(values[0] if len(values) == 1 else values, indent=2) + "\n"


class _Language(NamedTuple):
    prelude: str
    comment: str
    text: Callable[[Descriptor | None, str], str]


_LANGUAGES: Final = {
    "cpp": _Language("#include <DirectML.h>", "//", cpp_text),
    # A first line of code also keeps a comment of ours from being taken for the file's encoding.
    "python": _Language("import dml_tile", "#", python_text),
}


def _names_of(pointers: Sequence[str], first: str) -> Iterator[str]:
    """Yield a name for each JSON pointer, all different: its last step's letters and digits, after ``first``."""
    if first and len(pointers) == 1:
        yield first
        return
    taken = set[str]()
    repeated = Counter[str]()
    for pointer in pointers:
        step = pointer_steps(f"/{pointer}")[-1]  # of a step of a lowering, the name alone
        word = "_".join(re.findall("[A-Za-z0-9]+", step))[:MAX_NAME_LENGTH].rstrip("_")
        base = name = word if word[:1].isalpha() and not first else f"{first or 'tile'}_{word}".rstrip("_")
        while name in taken:
            repeated[base] += 1
            name = f"{base}_{repeated[base] + 1}"
        taken.add(name)
        yield name


def _comment_line(mark: str, text: str) -> str:
    """Return a line of comment; it ends in a colon, since what ends in a backslash would go on with the next line."""
    return f"{mark} {printable(text).encode('ascii', 'backslashreplace').decode()}:"
