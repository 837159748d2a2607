"""Writes descriptors, and the steps of lowerings, as source text that builds them: Python, C++ or JSON."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import Enum
from typing import Any, Final, Literal, TypeAlias

from pydantic import BaseModel

from dml_tile.back_ends.described_node import DescribedNode
from dml_tile.checks.result import Result
from dml_tile.descriptors.graph import Descriptor, GraphDesc, OperatorGraphNodeDesc
from dml_tile.descriptors.operator import OperatorDesc
from dml_tile.descriptors.tile import DATA_TYPE, BufferTensorDesc, TileOperatorDesc, described
from dml_tile.directml.data_types import ELEMENT_SIZES, TensorDataType
from dml_tile.directml.enums import GraphNodeType, OperatorType, TensorFlags
from dml_tile.directml.operators import operator_name
from dml_tile.emit.cpp import cpp_text
from dml_tile.findings import location_of
from dml_tile.geometry.layout import extent, round_up_4
from dml_tile.lowering.steps import Lowering, LoweringStep
from dml_tile.readers.item import Item
from dml_tile.reports.wording import buffer_name, cost_of
from dml_tile.text import pointer_steps, printable

MAX_WIDTH: Final = 88
"""The width, in characters, above which Python's formatters break a line by default."""


def python_text(desc: Descriptor | None, name: str) -> str:
    """Return Python that defines ``NAME_desc``, after ``import dml_tile``. ``name`` is an identifier."""
    return f"{name}_desc = {_value(desc, 0)}\n"


def _value(value: object, indent: int) -> str:
    match value:
        case BaseModel():
            kind = GraphDesc if isinstance(value, GraphDesc) else type(value)  # a captured graph is built as any other
            fields = [_field(name, getattr(value, name), indent + 4) for name in kind.model_fields]
            return f"dml_tile.{kind.__name__}(\n{''.join(fields)}{' ' * indent})"
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


CodeName = Literal["cpp", "python"]
LanguageName = Literal[CodeName, "json"]

MAX_NAME_LENGTH: Final = 40


_Commented: TypeAlias = tuple[str, Descriptor | None, Sequence[str]]
"""The name of a descriptor, the descriptor, and the lines of comment before it."""


def source_text(
    language: LanguageName, source: str, parts: Sequence[Item], name: str = "", namespace: str = ""
) -> Iterator[str]:
    """Yield a file that builds each descriptor of a source, in parts; comments name where each comes from.

    In C++ each has variables ``NAME_desc`` (a DML_TILE_OPERATOR_DESC) and ``NAME_operator`` (a DML_OPERATOR_DESC), in
    Python ``NAME_desc``. ``name`` is that of a lone descriptor, and begins those of several; without it, they come from
    the JSON pointers. JSON, with the full C names, is one value, or an array of several.
    """
    if language == "json":
        values = [part.desc and part.desc.model_dump(mode="json", by_alias=True) for part in parts]
        yield f"{json.dumps(values[0] if len(values) == 1 else values, indent=2)}\n"
        return
    named = zip(_names_of([part.pointer for part in parts], name), parts, strict=True)
    commented = ((own_name, part.desc, [location_of(source, part.pointer)]) for own_name, part in named)
    yield from _commented_text(language, commented, namespace)


def nodes_source(
    source: str, nodes: Iterable[tuple[DescribedNode, Sequence[OperatorDesc]]], name: str = "", namespace: str = ""
) -> Iterator[str]:
    """Yield C++ that builds the operators of a model's nodes, in parts.

    Names are those of ``source_text``, of a node's number in its graph.
    """
    operators = [(node, desc) for node, descs in nodes for desc in descs]
    names = _names_of([node.place.pointer for node, _ in operators], name or "node")
    commented = (
        (own_name, desc, [f"{location_of(source, node.label)}"])
        for own_name, (node, desc) in zip(names, operators, strict=True)
    )
    yield "#include <limits>\n"  # for numbers that are not finite
    yield from _commented_text("cpp", commented, namespace)


def _commented_text(language: CodeName, parts: Iterable[_Commented], namespace: str) -> Iterator[str]:
    """Yield a file that builds each descriptor, in parts."""
    prelude, mark, text_of = _LANGUAGES[language]
    namespaces = namespace.split("::") if namespace else []
    yield f"{prelude}\n"
    yield "".join(f"\nnamespace {name} {{" for name in namespaces) + ("\n" if namespaces else "")
    for name, desc, comments in parts:
        for comment in comments:  # it ends in a colon, since what ends in a backslash would go on with the next line
            yield f"\n{mark} {printable(comment).encode('ascii', 'backslashreplace').decode()}:"
        yield f"\n{text_of(desc, name)}"
    yield "".join(f"\n}}  // namespace {name}" for name in reversed(namespaces)) + ("\n" if namespaces else "")


def why_left_out(part: Item) -> str | None:
    """Return why no source text builds a descriptor: it is, or its graph has, an operator other than Tile; else None.

    In a graph, the first such node is named. A null graph is left out too.
    """
    if part.other is not None:
        return f"{part.other} is not a tile; it is left out"
    if part.is_null_graph:
        return "the graph is null; it is left out"
    if isinstance(part.desc, GraphDesc):
        for i, node in enumerate(part.desc.nodes or ()):
            if node is not None and (other := _other_operator(node)):
                return f"Nodes[{i}] is {other}, which is not a tile; the graph is left out"
    elif other := _other_operator(part.desc):
        return f"{other} is not a tile; it is left out"
    return None


def _other_operator(desc: OperatorGraphNodeDesc | OperatorDesc | TileOperatorDesc | None) -> str | None:
    """Return the C name, or the number, of an operator that is no tile, or "a constant"; None for a tile."""
    if isinstance(desc, OperatorGraphNodeDesc):
        return "a constant" if desc.type == GraphNodeType.CONSTANT else _other_operator(desc.operator)
    if isinstance(desc, OperatorDesc) and desc.type != OperatorType.TILE:
        return operator_name(int(desc.type))
    return None


_LANGUAGES: Final[dict[CodeName, tuple[str, str, Callable[[Descriptor | None, str], str]]]] = {
    "cpp": ("#include <DirectML.h>", "//", cpp_text),
    # A first line of code also keeps a comment of ours from being taken for the file's encoding.
    "python": ("import dml_tile", "#", python_text),
}
"""The first line of a file, the sign of comments, and what writes a descriptor."""


def _names_of(pointers: Sequence[str], first: str) -> Iterator[str]:
    """Yield a name for each JSON pointer, all different: its last step's letters and digits, after ``first``."""
    if first and len(pointers) == 1:
        yield first
        return
    taken = set[str]()
    repeated = Counter[str]()
    for pointer in pointers:
        word = "_".join(re.findall("[A-Za-z0-9]+", pointer_steps(f"/{pointer}")[-1]))[:MAX_NAME_LENGTH].rstrip("_")
        base = name = word if word[:1].isalpha() and not first else f"{first or 'tile'}_{word}".rstrip("_")
        while name in taken:
            repeated[base] += 1
            name = f"{base}_{repeated[base] + 1}"
        taken.add(name)
        yield name


def lowering_model(lowering: Lowering) -> dict[str, Any]:
    """Return a DxDispatch model that counts up the input's elements, does the steps, and prints the output."""
    first, last = lowering.steps[0], lowering.steps[-1]
    source, destination = described(first.desc)[0], described(last.desc)[1]
    shown = lowering.data_type or TensorDataType(source.data_type)
    resources = {
        "input": _resource(source, shown, {"valueStart": 0, "valueDelta": 1}),
        "output": _resource(destination, shown, {"value": 0}),
    }
    for number, size in enumerate(lowering.scratch_sizes):
        resources[buffer_name(number)] = {
            "initialValuesDataType": DATA_TYPE.write(TensorDataType.UINT32),
            "initialValues": {"valueCount": size // 4, "value": 0},
        }
    dispatchables, commands = {}, []
    for i, step in enumerate(lowering.steps, start=1):
        tensors = {"InputTensor": buffer_name(step.reads), "OutputTensor": buffer_name(step.writes)}
        dispatchables[name := f"step{i}"] = {
            "type": "DML_OPERATOR_TILE",
            "desc": step.desc.model_dump(mode="json", by_alias=True, exclude_none=True),
        }
        if described(step.desc)[0].flags & TensorFlags.OWNED_BY_DML:
            dispatchables[name]["bindings"] = {"InputTensor": tensors.pop("InputTensor")}
        commands.append({"type": "dispatch", "dispatchable": name, "bindings": tensors})
    commands.append({"type": "print", "resource": "output"})
    return {"resources": resources, "dispatchables": dispatchables, "commands": commands}


def lowering_source(language: CodeName, tiles: Iterable[Result], name: str = "", namespace: str = "") -> Iterator[str]:
    """Yield source text that builds each step of each tile that has a lowering, in parts.

    The first step of a tile is named as the tile would be by ``source_text``, with ``_step1`` behind it.
    """
    lowered = [(tile, tile.lowering) for tile in tiles if tile.lowering]
    named = zip(_names_of([tile.item.pointer for tile, _ in lowered], name), lowered, strict=True)
    steps = (
        (f"{tile_name}_step{i}", step.desc, list(_comments(tile, lowering, i, step)))
        for tile_name, (tile, lowering) in named
        for i, step in enumerate(lowering.steps, start=1)
    )
    yield from _commented_text(language, steps, namespace)


def _comments(tile: Result, lowering: Lowering, i: int, step: LoweringStep) -> Iterator[str]:
    """Yield a step's line of comment; before the first step, also the lowering's cost, notes and scratch buffers."""
    if i == 1:
        where = f"{location_of(tile.item.source, tile.item.pointer)} at {tile.target.label}"
        yield "; ".join([where, cost_of(lowering), *lowering.notes])
        for number, size in enumerate(lowering.scratch_sizes):
            yield f"{buffer_name(number)} has {size} bytes"
    read, written = (
        f"{buffer.total_tensor_size_in_bytes} bytes at offset 0 of {buffer_name(location)}"
        for buffer, location in zip(described(step.desc), (step.reads, step.writes), strict=True)
    )
    yield f"step {i} of {len(lowering.steps)} reads {read}, writes {written}"


def _resource(buffer: BufferTensorDesc, shown: TensorDataType, values: dict[str, int]) -> dict[str, Any]:
    """Return a resource of the tensor's size, whose initial values of the shown type end with the last element."""
    reach = extent(buffer.sizes or (), buffer.strides) * ELEMENT_SIZES[buffer.data_type]
    return {
        "initialValuesDataType": DATA_TYPE.write(shown),
        "initialValues": {"valueCount": reach // ELEMENT_SIZES[shown], **values},
        "sizeInBytes": round_up_4(buffer.total_tensor_size_in_bytes),
    }
