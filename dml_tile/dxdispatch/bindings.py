"""Checks a DxDispatch model's bindings to an operator's tensors, before the model runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from dml_tile.bindings.resources import Buffer, BufferBinding
from dml_tile.bindings.slots import INITIALIZER_INPUT, TENSOR, BoundRange, Slot
from dml_tile.descriptors.operator import OperatorDesc, OperatorFields
from dml_tile.descriptors.tile import TensorDesc, TileOperatorDesc
from dml_tile.directml.enums import UINT64_MAX
from dml_tile.directml.targets import DEFAULT_TARGET
from dml_tile.dxdispatch.rules import ModelPart
from dml_tile.findings import Finding, apply_rules, unreadable
from dml_tile.input_errors import MAX_PROBLEMS
from dml_tile.rules.binding import RANGE_RULES
from dml_tile.text import json_pointer

if TYPE_CHECKING:
    from dml_tile.descriptors.graph import Descriptor

_RESOURCE: Final = Buffer(0)
"""Stands for any resource: the rules of ranges do not look at it."""


def binding_problems(part: ModelPart, desc: Descriptor | None, pointer: str) -> Iterator[Finding]:
    """Yield what DxDispatch refuses of the resources that a part binds to another operator than Tile."""
    if not isinstance(desc, OperatorDesc) or not isinstance(desc.desc, OperatorFields):
        return
    for point in part.bindings if part.kind == "dispatchable" else ():
        for source in part.sources(point) or ():
            if (name := source.get("name")) not in part.resources:
                yield unreadable(_pointer_to(point, pointer), f"no resource is called {name!r}")
    for field in desc.desc.operator.fields:
        sources = part.sources(field.name) if field.name in part.bind_points else None
        expected = desc.desc[field.counted_by] if field.is_array else 1
        if sources is not None and len(sources) != expected:
            are = "resource is" if len(sources) == 1 else "resources are"
            takes = f"{field.counted_by} is {expected}" if field.is_array else "a tensor takes one"
            yield unreadable(_pointer_to(field.name, pointer), f"{len(sources)} {are} bound; {takes}")


def _pointer_to(point: str, pointer: str) -> str:
    return f"{pointer}{json_pointer(['bindings', point])}"


def binding_findings(part: ModelPart, dispatchable: ModelPart, desc: Descriptor | None) -> tuple[Finding, ...]:
    """Return the findings on a part's bindings to an operator's tensors; few of each rule, with the number of others.

    The part is a command, or the dispatchable itself, whose bindings are for its initialisation.
    """
    if not isinstance(desc, OperatorDesc):
        return ()
    is_graph = dispatchable.fields.get("dmlCompileType") == "DmlCompileGraph"  # of which the runtime compares less
    kind = TENSOR if part.kind == "command" else INITIALIZER_INPUT
    by_rule: dict[str, list[Finding]] = {}
    for point in part.bind_points:
        sources = part.sources(point)
        for i, (name, tensor) in enumerate(_tensors(desc, point, None if sources is None else len(sources))):
            slot = Slot.tensor(name, tensor, kind)._replace(checked_by_runtime=not is_graph)
            binding = None if sources is None else _binding(slot, *part.place_of(sources[i]))
            for finding in apply_rules(RANGE_RULES, BoundRange(slot, binding), DEFAULT_TARGET):
                by_rule.setdefault(finding.rule, []).append(finding)
    found: list[Finding] = []
    for findings in by_rule.values():
        found += findings[:MAX_PROBLEMS]
        if (more := len(findings) - MAX_PROBLEMS) > 0:
            found.append(replace(findings[0], path="bindings", message=f"{more} more are like these"))
    return tuple(found)


def _binding(slot: Slot, offset: int | None, size: int | None) -> BufferBinding:
    """Return the binding that DxDispatch makes, where a resource of unknown size is large enough."""
    offset = offset or 0
    size_in_bytes = slot.size_in_bytes if size is None else size - offset
    return BufferBinding(_RESOURCE, offset & UINT64_MAX, size_in_bytes & UINT64_MAX)  # as DxDispatch subtracts


def _tensors(desc: OperatorDesc, point: str, count: int | None) -> Iterator[tuple[str, TensorDesc | None]]:
    """Yield the tensors at a bind point to which ``count`` resources are bound, with their names.

    These are the first ones of an array where None is bound, so that no command costs more than it says, and none where
    there are not as many as resources.
    """
    if isinstance(desc.desc, TileOperatorDesc):
        if count != 0:
            yield point, desc.desc.input_tensor if point == "InputTensor" else desc.desc.output_tensor
    elif isinstance(desc.desc, OperatorFields):
        value, field = desc.desc[point], desc.desc.operator.named[point]
        if not field.is_array:
            value = (value,)
        expected = desc.desc[field.counted_by] if field.is_array else 1
        shown = min(expected, MAX_PROBLEMS) if count is None else expected if count == expected else 0
        for i, tensor in enumerate((value or ())[:shown]):
            yield f"{point}[{i}]" if field.is_array else point, tensor
