"""Descriptors as source text that builds them, whatever they hold: C++, JSON or Python.

File names and JSON keys come from strangers: what becomes of them is ASCII, and stays within its comment or identifier.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from typing import Final, Literal, NamedTuple

from pydantic import BaseModel

from dml_tile.descriptors import (
    DATA_TYPE,
    OPERATOR_TYPE,
    TENSOR_FLAGS,
    TENSOR_TYPE,
    OperatorDesc,
    TensorDesc,
    TileOperatorDesc,
)
from dml_tile.enums import DML_TENSOR_DIMENSION_COUNT_MAX1, OperatorType
from dml_tile.readers.json.descriptors import JsonDescriptor
from dml_tile.spellings import Enumerator
from dml_tile.text import braced, pointer_steps, printable

LanguageName = Literal["cpp", "json", "python"]
Descriptor = OperatorDesc | TileOperatorDesc | None

_INT64_MAX: Final = 2**63 - 1
_LONGEST_NAME: Final = 40
_PYTHON_WIDTH: Final = 88  # Python's formatters break longer lines, unless told otherwise


def source_text(language: LanguageName, source: str, described: Sequence[JsonDescriptor]) -> Iterator[str]:
    """A file that builds each descriptor of a source, in parts; it names where each comes from.

    In C++ each has variables ``NAME_desc`` (a DML_TILE_OPERATOR_DESC) and ``NAME_operator`` (a DML_OPERATOR_DESC), in
    Python ``NAME_desc``; the names come from the JSON pointers. JSON is one value, or an array of several.
    """
    if language == "json":
        yield json_text([part.desc for part in described])
        return
    yield from commented_text(
        language,
        [
            Commented(part.pointer, part.desc, f"{source}#{part.pointer}" if part.pointer else source)
            for part in described
        ],
    )


class Commented(NamedTuple):
    """A descriptor, the comment before it, and a JSON pointer whose last step it is named by."""

    pointer: str
    desc: Descriptor
    comment: str


def commented_text(language: Literal["cpp", "python"], parts: Sequence[Commented]) -> Iterator[str]:
    """A file that builds each descriptor, in parts."""
    chosen = _LANGUAGES[language]
    yield f"{chosen.prelude}\n"
    for part, name in zip(parts, _names(part.pointer for part in parts), strict=True):
        yield f"\n{_comment(chosen.comment, part.comment)}\n{chosen.text(part.desc, name)}"


def other_operator(part: JsonDescriptor) -> str | None:
    """The C name, or the number, of an operator that is no tile, whose fields were not read; None for a tile."""
    if part.other is None and isinstance(part.desc, OperatorDesc) and part.desc.type != OperatorType.TILE:
        return f"operator {int(part.desc.type)}"
    return part.other


def cpp(desc: Descriptor, name: str) -> str:
    """C++11 and later, for namespace or function scope, after DirectML.h; the last line defines ``NAME_operator``.

    ``name`` is an identifier. An array that is shorter than its count is filled with zeros, since DirectML would read
    past its end.
    """
    return "".join(f"{line}\n" for line in _cpp_operator(desc, name))


def python(desc: Descriptor, name: str) -> str:
    """Python that defines ``NAME_desc``, after ``import dml_tile``. ``name`` is an identifier."""
    return f"{name}_desc = {_python_value(desc, 0)}\n"


def json_text(descs: Sequence[Descriptor]) -> str:
    """JSON with the full C names, as ``dml-tile check`` reads it: one descriptor, or an array of several."""
    values = [None if desc is None else desc.model_dump(mode="json", by_alias=True) for desc in descs]
    return json.dumps(values[0] if len(values) == 1 else values, indent=2) + "\n"


class _Language(NamedTuple):
    prelude: str
    comment: str
    text: Callable[[Descriptor, str], str]


_LANGUAGES: Final = {
    "cpp": _Language("#include <DirectML.h>", "//", cpp),
    # A first line of code also keeps a comment of ours from being taken for the file's encoding.
    "python": _Language("import dml_tile", "#", python),
}


def _cpp_operator(desc: Descriptor, name: str) -> Iterator[str]:
    if desc is None:
        yield f"const DML_OPERATOR_DESC* const {name}_operator = nullptr;"
        return
    operator = desc if isinstance(desc, OperatorDesc) else OperatorDesc(type=OperatorType.TILE, desc=desc)
    fields = _enumerator(OPERATOR_TYPE, "DML_OPERATOR_TYPE", operator.type), "nullptr"
    if operator.desc is not None:
        yield from _cpp_tile(operator.desc, name)
        fields = fields[0], f"&{name}_desc"
    yield f"const DML_OPERATOR_DESC {name}_operator = {braced(fields)};"


def _cpp_tile(tile: TileOperatorDesc, name: str) -> Iterator[str]:
    operands = (f"{name}_input", tile.input_tensor), (f"{name}_output", tile.output_tensor)
    for operand, tensor in operands:
        if tensor is not None:
            yield from _cpp_tensor(tensor, operand)
    yield from _cpp_array(f"{name}_repeats", tile.repeats, tile.repeats_count)
    tensors = [f"&{operand}_tensor" if tensor is not None else "nullptr" for operand, tensor in operands]
    fields = *tensors, str(tile.repeats_count), _pointer(f"{name}_repeats", tile.repeats)
    yield f"const DML_TILE_OPERATOR_DESC {name}_desc = {braced(fields)};"


def _cpp_tensor(tensor: TensorDesc, name: str) -> Iterator[str]:
    fields = _enumerator(TENSOR_TYPE, "DML_TENSOR_TYPE", tensor.type), "nullptr"
    if tensor.desc is not None:
        buffer = tensor.desc
        yield from _cpp_array(f"{name}_sizes", buffer.sizes, buffer.dimension_count)
        yield from _cpp_array(f"{name}_strides", buffer.strides, buffer.dimension_count)
        data_type = _enumerator(DATA_TYPE, "DML_TENSOR_DATA_TYPE", buffer.data_type)
        flags = _enumerator(TENSOR_FLAGS, "DML_TENSOR_FLAGS", buffer.flags)
        total = buffer.total_tensor_size_in_bytes
        yield f"const DML_BUFFER_TENSOR_DESC {name}_buffer = {{"
        yield (
            f"    {data_type}, {flags}, {buffer.dimension_count}, {_pointer(f'{name}_sizes', buffer.sizes)}, "
            f"/*Strides*/ {_pointer(f'{name}_strides', buffer.strides)},"
        )
        yield (
            f"    /*TotalTensorSizeInBytes*/ {total}{'ULL' if total > _INT64_MAX else ''}, "
            f"/*GuaranteedBaseOffsetAlignment*/ {buffer.guaranteed_base_offset_alignment}}};"
        )
        fields = fields[0], f"&{name}_buffer"
    yield f"const DML_TENSOR_DESC {name}_tensor = {braced(fields)};"


def _cpp_array(name: str, values: Sequence[int] | None, count: int) -> Iterator[str]:
    """An array with room for what DirectML would read of it; C++ knows none without elements."""
    if values is not None:
        room = max(len(values), count if count <= DML_TENSOR_DIMENSION_COUNT_MAX1 else 0, 1)
        yield f"const UINT {name}[{room if room > len(values) else ''}] = {braced(map(str, values))};"


def _pointer(name: str, values: Sequence[int] | None) -> str:
    return "nullptr" if values is None else name


def _enumerator(spelling: Enumerator, c_type: str, value: int) -> str:
    written = spelling.write(value)
    return written if isinstance(written, str) else f"static_cast<{c_type}>({written})"


def _python_value(value: object, indent: int) -> str:
    match value:
        case BaseModel():
            fields = [_python_field(name, getattr(value, name), indent + 4) for name in type(value).model_fields]
            return f"dml_tile.{type(value).__name__}(\n{''.join(fields)}{' ' * indent})"
        case Enum():
            return f"dml_tile.{type(value).__name__}.{value.name}"
        case _:
            return repr(value)


def _python_field(name: str, value: object, indent: int) -> str:
    margin = " " * indent
    line = f"{margin}{name}={_python_value(value, indent)},\n"
    if isinstance(value, tuple) and len(line) > _PYTHON_WIDTH + 1:
        entries = "".join(f"{margin}    {entry},\n" for entry in value)
        return f"{margin}{name}=(\n{entries}{margin}),\n"
    return line


def _names(pointers: Iterable[str]) -> Iterator[str]:
    """A name for each JSON pointer, all different: its last step's letters and digits."""
    taken = set[str]()
    repeated = Counter[str]()
    for pointer in pointers:
        step = pointer_steps(f"/{pointer}")[-1]  # of a step of a lowering, the name alone
        word = "_".join(re.findall("[A-Za-z0-9]+", step))[:_LONGEST_NAME].rstrip("_")
        base = name = word if word[:1].isalpha() else f"tile_{word}".rstrip("_")
        while name in taken:
            repeated[base] += 1
            name = f"{base}_{repeated[base] + 1}"
        taken.add(name)
        yield name


def _comment(mark: str, text: str) -> str:
    """A line of comment; it ends in a colon, since what ends in a backslash would go on with the next line."""
    return f"{mark} {printable(text).encode('ascii', 'backslashreplace').decode()}:"
