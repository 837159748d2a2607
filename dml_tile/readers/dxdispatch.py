"""Finds the operators, and other parts with findings, in a DxDispatch model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dml_tile.descriptors.operator import OperatorDesc
from dml_tile.directml.operators import OperatorRow, operator_named
from dml_tile.dxdispatch.bindings import binding_findings, binding_problems
from dml_tile.dxdispatch.literals import literal_problems
from dml_tile.dxdispatch.model import TileDispatchable, known_fields_of_operator, read_parts
from dml_tile.dxdispatch.rules import ModelPart, desc_of, model_parts, part_findings
from dml_tile.findings import unreadable
from dml_tile.json_text import Document
from dml_tile.readers.item import Item, ItemOrProblem, validated
from dml_tile.text import json_pointer


def read_model_parts(document: Document) -> Iterator[ItemOrProblem]:
    """Yield the operators of a model, its other parts that may have findings, and its problems."""
    model, problems = read_parts(document.value)
    yield from problems or literal_problems(model)
    parts = dict(model_parts(document))
    read: dict[str, Item] = {}
    for name, dispatchable in model.dispatchables.items():
        pointer = json_pointer(["dispatchables", name])
        part = parts.pop(pointer)
        if isinstance(dispatchable, TileDispatchable):
            each: ItemOrProblem = Item(pointer, dispatchable.operator, part=part)
        elif operator := operator_named(dispatchable.type):
            each = _read_operator_of_model(operator, part, pointer)
        else:
            each = Item(pointer, dispatchable.type if part.is_operator else None, part=part)
        if isinstance(each, Item):
            read[name] = each
            yield from binding_problems(part, each.desc, pointer)
            each = replace(each, part=replace(part, of_bindings=binding_findings(part, part, each.desc)))
        yield each
    for pointer, part in parts.items():
        dispatched = read.get(part.fields["dispatchable"]) if part.kind == "command" else None
        if dispatched and dispatched.part:
            yield from binding_problems(part, dispatched.desc, pointer)
            part = replace(part, of_bindings=binding_findings(part, dispatched.part, dispatched.desc))
        if part.kind == "model" or part_findings(part):  # a model needs a device, which depends on the target
            yield Item(pointer, part=part)


def _read_operator_of_model(operator: OperatorRow, part: ModelPart, pointer: str) -> ItemOrProblem:
    """Read another operator than Tile; DxDispatch requires the counts of arrays, which other JSON may leave out."""
    data = {"Type": operator.value, "Desc": known_fields_of_operator(operator, desc_of(part.fields))}
    read = validated(OperatorDesc, data, pointer)
    problems = [f"{count} is missing; DxDispatch requires it" for count in part.missing_counts()]
    if isinstance(read, Item):
        return unreadable(pointer, "; ".join(problems)) if problems else replace(read, part=part)
    return replace(read, message="; ".join([*problems, read.message]))
