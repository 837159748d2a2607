"""Lowerings for programs: a DxDispatch model that runs, and C++ or Python that builds the steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

from dml_tile.checks.lowerings import LoweringResult
from dml_tile.descriptors.tile import DATA_TYPE, BufferTensorDesc, described
from dml_tile.directml.data_types import ELEMENT_SIZES, TensorDataType
from dml_tile.directml.enums import TensorFlags
from dml_tile.emit.source import NO_NAMES, Commented, Names, commented_text
from dml_tile.geometry.layout import extent, round_up_4
from dml_tile.lowering.steps import Lowering, LoweringStep
from dml_tile.reports.wording import cost_of, place_name


def lowering_model(lowering: Lowering) -> dict[str, Any]:
    """Return a DxDispatch model that counts up the input's elements, does the steps, and prints the output.

    The input and the output have values of the original's data type, where DirectML has it, else of the steps'.
    """
    first, last = lowering.steps[0], lowering.steps[-1]
    source, destination = described(first.desc)[0], described(last.desc)[1]
    shown = lowering.data_type or TensorDataType(source.data_type)
    resources = {
        "input": _resource(source, shown, {"valueStart": 0, "valueDelta": 1}),
        "output": _resource(destination, shown, {"value": 0}),
    }
    for number, size in enumerate(lowering.scratch_sizes):
        resources[place_name(number)] = {
            "initialValuesDataType": DATA_TYPE.write(TensorDataType.UINT32),
            "initialValues": {"valueCount": size // 4, "value": 0},
        }
    dispatchables, commands = {}, []
    for name, step in _named(lowering.steps):
        tensors = {"InputTensor": place_name(step.reads), "OutputTensor": place_name(step.writes)}
        dispatchables[name] = {
            "type": "DML_OPERATOR_TILE",
            "desc": step.desc.model_dump(mode="json", by_alias=True, exclude_none=True),
        }
        if described(step.desc)[0].flags & TensorFlags.OWNED_BY_DML:
            dispatchables[name]["bindings"] = {"InputTensor": tensors.pop("InputTensor")}
        commands.append({"type": "dispatch", "dispatchable": name, "bindings": tensors})
    commands.append({"type": "print", "resource": "output"})
    return {"resources": resources, "dispatchables": dispatchables, "commands": commands}


def lowering_source(
    language: Literal["cpp", "python"], tiles: Iterable[LoweringResult], names: Names = NO_NAMES
) -> Iterator[str]:
    """Yield source text that builds each step of each tile that has a lowering, in parts.

    Comments say which buffers each step reads and writes, and how much scratch memory the steps take.
    """
    parts = [
        Commented(f"{tile.pointer} {name}", step.desc, tuple(_comments(tile, tile.lowering, i)))
        for tile in tiles
        if tile.lowering
        for i, (name, step) in enumerate(_named(tile.lowering.steps))
    ]
    yield from commented_text(language, parts, names)


def _named(steps: Sequence[LoweringStep]) -> Iterator[tuple[str, LoweringStep]]:
    return ((f"step{i}", step) for i, step in enumerate(steps, start=1))


def _comments(tile: LoweringResult, lowering: Lowering, i: int) -> Iterator[str]:
    """Yield a step's line of comment; before the first step, also the lowering's cost, notes and scratch buffers."""
    if i == 0:
        where = f"{tile.source}#{tile.pointer}" if tile.pointer else tile.source
        yield "; ".join([f"{where} at {tile.target.label}", cost_of(lowering), *lowering.notes])
        for number, size in enumerate(lowering.scratch_sizes):
            yield f"{place_name(number)} has {size} bytes"
    step = lowering.steps[i]
    read, written = (
        f"{buffer.total_tensor_size_in_bytes} bytes at offset 0 of {place_name(place)}"
        for buffer, place in zip(described(step.desc), (step.reads, step.writes), strict=True)
    )
    yield f"step {i + 1} of {len(lowering.steps)} reads {read}, writes {written}"


def _resource(buffer: BufferTensorDesc, shown: TensorDataType, values: dict[str, int]) -> dict[str, Any]:
    """Return a resource of the tensor's size, whose initial values of the shown type end with the last element."""
    reach = extent(buffer.sizes or (), buffer.strides) * ELEMENT_SIZES[buffer.data_type]
    return {
        "initialValuesDataType": DATA_TYPE.write(shown),
        "initialValues": {"valueCount": reach // ELEMENT_SIZES[shown], **values},
        "sizeInBytes": round_up_4(buffer.total_tensor_size_in_bytes),
    }
