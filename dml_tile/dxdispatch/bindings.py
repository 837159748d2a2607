"""What a DxDispatch model binds to the tensors of any operator, where ``check`` can know it before the model runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from dml_tile.bindings.slots import INITIALIZER_INPUT, TENSOR, BoundRange, Slot, SlotState
from dml_tile.descriptors.graph import Descriptor
from dml_tile.descriptors.operator import OperatorDesc, OperatorFields
from dml_tile.descriptors.tile import TensorDesc, TileOperatorDesc
from dml_tile.directml.enums import UINT64_MAX
from dml_tile.directml.targets import DEFAULT_TARGET
from dml_tile.dxdispatch.rules import ModelPart, bytes_of
from dml_tile.errors import Problem
from dml_tile.findings import Finding, apply_rules
from dml_tile.input_errors import MAX_PROBLEMS
from dml_tile.rules.binding import RANGE_RULES, SLOT_STATE_RULES, offset_is_aligned
from dml_tile.text import json_pointer


def binding_problems(part: ModelPart, desc: Descriptor | None, pointer: str) -> Iterator[Problem]:
    """Yield what DxDispatch refuses of the resources that a part binds to another operator than Tile."""
    if not isinstance(desc, OperatorDesc) or not isinstance(desc.desc, OperatorFields):
        return
    for point in part.bindings if part.kind == "dispatchable" else ():
        for source in part.sources(point) or ():
            if (name := source.get("name")) not in part.resources:
                yield Problem(_pointer_to(point, pointer), f"no resource is called {name!r}")
    for field in desc.desc.operator.fields:
        sources = part.sources(field.name) if field.name in part.bind_points else None
        expected = desc.desc[field.counted_by] if field.is_array else 1
        if sources is not None and len(sources) != expected:
            are = "resource is" if len(sources) == 1 else "resources are"
            takes = f"{field.counted_by} is {expected}" if field.is_array else "a tensor takes one"
            yield Problem(_pointer_to(field.name, pointer), f"{len(sources)} {are} bound; {takes}")


def _pointer_to(point: str, pointer: str) -> str:
    return f"{pointer}{json_pointer(['bindings', point])}"


def with_findings(part: ModelPart, dispatchable: ModelPart, desc: Descriptor | None) -> ModelPart:
    """Return a part with the findings on what it binds to an operator's tensors; of one rule, few, and how many more.

    The part is a command, or the dispatchable itself, whose bindings are for its initialisation.
    """
    if not isinstance(desc, OperatorDesc):
        return part
    is_graph = dispatchable.fields.get("dmlCompileType") == "DmlCompileGraph"
    by_rule: dict[str, list[Finding]] = {}
    for finding in _binding_findings(part, desc, is_graph):
        by_rule.setdefault(finding.rule, []).append(finding)
    found: list[Finding] = []
    for findings in by_rule.values():
        found += findings[:MAX_PROBLEMS]
        if (more := len(findings) - MAX_PROBLEMS) > 0:
            found.append(replace(findings[0], path="bindings", message=f"{more} more are like these"))
    return replace(part, of_bindings=tuple(found))


def _binding_findings(part: ModelPart, desc: OperatorDesc, is_graph: bool) -> Iterator[Finding]:
    """Yield the findings; the runtime compares less where the operator is compiled as a graph."""
    kind, points = TENSOR if part.kind == "command" else INITIALIZER_INPUT, part.bind_points
    for name, tensor in _tensors(desc).items():
        point, _, index = name.partition("[")
        if point not in points:
            continue
        sources, i = part.sources(point), int(index.rstrip("]") or 0)
        if sources is not None and len(sources) <= i:
            continue  # so many resources are not taken
        slot = Slot.tensor(name, tensor.desc, kind) if tensor and tensor.desc else Slot.absent(name, kind)
        yield from apply_rules(SLOT_STATE_RULES, SlotState(slot, sources is not None), DEFAULT_TARGET)
        if sources is None or not slot.size_in_bytes:
            continue
        slot = slot._replace(checked_by_runtime=not is_graph)
        offset, size = bytes_of(sources[i], part.resources)
        if offset is not None and size is not None:
            binding = BoundRange(slot, (size - offset) & UINT64_MAX, offset)  # as DxDispatch subtracts
            yield from apply_rules(RANGE_RULES, binding, DEFAULT_TARGET)
        elif offset is not None:
            yield from offset_is_aligned.findings(BoundRange(slot, slot.size_in_bytes, offset), DEFAULT_TARGET)


def _tensors(desc: OperatorDesc) -> dict[str, TensorDesc | None]:
    fields = desc.desc
    if isinstance(fields, OperatorFields):
        from dml_tile.rules.operator_view import tensors_of  # not needed for Tile

        inputs, outputs = tensors_of(fields)
        return inputs | outputs
    if isinstance(fields, TileOperatorDesc):
        return {"InputTensor": fields.input_tensor, "OutputTensor": fields.output_tensor}
    return {}
