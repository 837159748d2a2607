"""Lowerings for programs: a DxDispatch model that runs, and C++ or Python that builds the steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from dml_tile.checks.lowering_result import LoweringResult
from dml_tile.descriptors import DATA_TYPE, BufferTensorDesc, TensorDesc
from dml_tile.emit.cpp import cpp_text
from dml_tile.emit.source import Commented, comment_line, commented_text, names_of
from dml_tile.enums import TensorDataType, TensorFlags
from dml_tile.geometry.layout import ELEMENT_SIZES, extent, round_up_4
from dml_tile.headers import get_include
from dml_tile.lowering.steps import Lowering, LoweringStep, StepBuffer
from dml_tile.reports.wording import place_name
from dml_tile.text import braced
from dml_tile.tile_request import Request


def lowering_model(lowering: Lowering) -> dict[str, Any]:
    """A DxDispatch model that counts up the input's elements, does the steps, and prints the output.

    The input and the output have values of the original's data type, where DirectML has it, else of the steps'.
    """
    first, last = lowering.steps[0], lowering.steps[-1]
    shown = _shown_type(lowering)
    source, destination = _buffer(first.desc.input_tensor), _buffer(last.desc.output_tensor)
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
        if _buffer(step.desc.input_tensor).flags & TensorFlags.OWNED_BY_DML:
            dispatchables[name]["bindings"] = {"InputTensor": tensors.pop("InputTensor")}
        commands.append({"type": "dispatch", "dispatchable": name, "bindings": tensors})
    commands.append({"type": "print", "resource": "output"})
    return {"resources": resources, "dispatchables": dispatchables, "commands": commands}


def lowering_source(language: Literal["cpp", "python"], tiles: Iterable[LoweringResult]) -> Iterator[str]:
    """Source text that builds each step of each tile that has a lowering, in parts; comments tell the buffers."""
    parts = [
        Commented(f"{tile.pointer} {name}", step.desc, _comment(tile, tile.lowering, i))
        for tile in tiles
        if tile.lowering
        for i, (name, step) in enumerate(_named(tile.lowering.steps))
    ]
    yield from commented_text(language, parts)


def lowering_program(tiles: Iterable[LoweringResult]) -> Iterator[str]:
    """C++ that runs each tile that has a lowering by DirectML's own calls, in parts: a class, then tables for it.

    For each tile there is ``create_NAME``; the class records its initialisation and its steps.
    """
    yield Path(get_include(), "dml_tile", "tile_chain.h").read_text(encoding="utf-8")
    lowered = [tile for tile in tiles if tile.lowering]
    steps = [
        (tile, i, name) for tile in lowered if tile.lowering for i, (name, _) in enumerate(_named(tile.lowering.steps))
    ]
    names = names_of(f"{tile.pointer} {name}" for tile, _, name in steps)
    for chain, tile in zip(names_of(tile.pointer for tile in lowered), lowered, strict=True):
        assert tile.lowering
        operators = []
        for i, step in enumerate(tile.lowering.steps):
            operators.append(name := next(names))
            yield f"\n{comment_line('//', _comment(tile, tile.lowering, i))}\n{cpp_text(step.desc, name)}"
        yield "\n" + "".join(f"{line}\n" for line in _tables(tile.lowering, chain, operators))


def _tables(lowering: Lowering, chain: str, operators: Sequence[str]) -> Iterator[str]:
    yield f"const TileStep {chain}_steps[] = {{"
    for name, step in zip(operators, lowering.steps, strict=True):
        owns = str(bool(_buffer(step.desc.input_tensor).flags & TensorFlags.OWNED_BY_DML)).lower()
        yield f"    {{&{name}_operator, {_number(step.reads)}, {_number(step.writes)}, {owns}}},"
    yield "};"
    scratch = "nullptr"
    if lowering.scratch_sizes:
        scratch = f"{chain}_scratch_sizes"
        yield f"const UINT64 {scratch}[] = {braced(f'{size}ULL' for size in lowering.scratch_sizes)};"
    yield f"inline HRESULT create_{chain}(TileChain& chain, ID3D12Device* d3d12, IDMLDevice* dml)"
    yield "{"
    counts = f"{chain}_steps, {len(operators)}, {scratch}, {len(lowering.scratch_sizes)}"
    yield f"    return chain.create(d3d12, dml, {counts});"
    yield "}"


def _number(place: StepBuffer) -> int:
    """A buffer's number in TileChain."""
    return {"input": 0, "output": 1}[place] if isinstance(place, str) else place + 2


def _named(steps: Sequence[LoweringStep]) -> Iterator[tuple[str, LoweringStep]]:
    return ((f"step{i}", step) for i, step in enumerate(steps, start=1))


def _comment(tile: LoweringResult, lowering: Lowering, i: int) -> str:
    where = f"{tile.source}#{tile.pointer}" if tile.pointer else tile.source
    step = lowering.steps[i]
    reads, writes = (_told(place, lowering) for place in (step.reads, step.writes))
    told = [f"{where} at {tile.target.label}, step {i + 1} of {len(lowering.steps)}, from {reads} to {writes}"]
    return "; ".join([*told, *(lowering.notes if i == 0 else ())])


def _told(place: StepBuffer, lowering: Lowering) -> str:
    name = place_name(place)
    return name if isinstance(place, str) else f"{name} ({lowering.scratch_sizes[place]} bytes)"


def _shown_type(lowering: Lowering) -> TensorDataType:
    original = lowering.original
    if isinstance(original, Request):
        own = original.carrier
    else:
        own = TensorDataType(_buffer(original.input_tensor).data_type)
    return own or TensorDataType(_buffer(lowering.steps[0].desc.input_tensor).data_type)


def _resource(buffer: BufferTensorDesc, shown: TensorDataType, values: dict[str, int]) -> dict[str, Any]:
    """As large as the tensor, with as many initial values of the data type that is shown as its elements reach."""
    reach = extent(buffer.sizes or (), buffer.strides) * ELEMENT_SIZES[buffer.data_type]
    return {
        "initialValuesDataType": DATA_TYPE.write(shown),
        "initialValues": {"valueCount": reach // ELEMENT_SIZES[shown], **values},
        "sizeInBytes": round_up_4(buffer.total_tensor_size_in_bytes),
    }


def _buffer(tensor: TensorDesc | None) -> BufferTensorDesc:
    assert tensor is not None
    assert tensor.desc is not None
    return tensor.desc
