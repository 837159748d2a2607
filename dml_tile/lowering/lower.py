"""Lowers a tile to tiles that a target accepts, and runs them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from dml_tile.back_ends import directml
from dml_tile.back_ends.dialects import Request
from dml_tile.back_ends.directml import dimensions_are_few_enough, elements_can_be_held, sizes_fit, tile_is_not_empty
from dml_tile.descriptors.operator import OperatorDesc, OperatorFields, tile_of
from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.directml.data_types import ELEMENT_SIZES, FLOATS, NAMED_SIZES, TensorDataType
from dml_tile.directml.enums import DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT
from dml_tile.directml.operators import operator_name
from dml_tile.directml.targets import Target, TargetLike
from dml_tile.errors import DmlError, require_instance
from dml_tile.findings import Finding, apply_rules
from dml_tile.geometry.axes import Dimension, TileInBytes
from dml_tile.geometry.layout import packed_strides, round_up_4
from dml_tile.lowering.chains import Chain, chains_of
from dml_tile.lowering.steps import (
    Lowering,
    LoweringStep,
    StepBuffer,
    Task,
    TensorMemory,
    carrier_exists,
    elements_stay_whole,
    gaps_fit_a_tile,
    step_desc,
    with_dimensions_of,
)
from dml_tile.rules.descriptor import not_a_tile, refusals_of
from dml_tile.rules.tensor import Operand, TensorView, alignment_is_a_power_of_two, view_of
from dml_tile.rules.tile import DATA_TYPE_RULES, LOWERED_RULES, dimension_count_is_supported_at_level
from dml_tile.simulation.calls import record
from dml_tile.simulation.target import origin_of, resolve

if TYPE_CHECKING:
    from dml_tile.bindings.memory import BufferLike

REPAIRABLE_RULES: Final = LOWERED_RULES | {
    rule.id for rule in (elements_can_be_held, dimensions_are_few_enough, sizes_fit)
}
"""The rules that a lowering can satisfy, of descriptors and of requests."""


def lower(
    tile: OperatorDesc | TileOperatorDesc | Request | None,
    target: TargetLike | None = None,
    *,
    allow_float_reinterpretation: bool = True,
) -> Lowering:
    """Return a few tiles that pass ``check`` at the target and, run in order, write the bytes of ``tile``.

        >>> desc = TileOperatorDesc.from_input(data_type="INT64", sizes=[1, 1, 2, 3], repeats=[1, 1, 3, 3])
        >>> for step in lower(desc, "windows-11-21h2").steps:
        ...     print(step.desc)
        UINT32 {1,1,2,6} x {1,1,3,3} -> {1,1,6,18}

    A tile that passes is its own lowering. Lowering repairs a descriptor's data types, dimension counts and alignments
    below 16, and nothing else. A request of another specification has packed tensors of any rank, complex numbers
    included. Without ``allow_float_reinterpretation``, elements of other types never travel as floats.

    Raises DmlError with the findings that cannot be repaired (for a request, on an empty tensor or on elements that are
    not whole bytes), or with findings of ``DML-LOWER-…`` rules if no chain does it; ValueError for an unknown target;
    TypeError if ``tile`` is neither a descriptor nor a request.
    """
    named, target = target, resolve(target)
    desc = None if isinstance(tile, Request) else tile
    try:
        task = _task_of_request(tile, target) if isinstance(tile, Request) else _task_of(desc, target)
        lowering = _lowered(task, target, allow_floats=allow_float_reinterpretation)
    except DmlError as error:
        record("lower", target, desc, error.findings)
        raise
    record("lower", target, desc)
    origin = origin_of("lowering", named, target)
    return replace(lowering, _origin=origin) if origin else lowering


def run_lowering(lowering: Lowering, input: BufferLike, output: BufferLike) -> None:  # noqa: A002
    """Run the steps in order, at the lowering's target. Raises as ``execute`` does, before anything is written."""
    import numpy as np  # here: a check does not need it

    from dml_tile.bindings.memory import POISON, byte_view, element_dtype, require_data_type
    from dml_tile.execution.executor import compile_tile

    require_instance(lowering, Lowering)
    if lowering.data_type is not None:
        require_data_type(element_dtype(input, "input"), lowering.data_type, "input")
        require_data_type(element_dtype(output, "output"), lowering.data_type, "output")
    scratch = [np.full(size, POISON, np.uint8) for size in lowering.scratch_sizes]
    buffers: dict[StepBuffer, BufferLike] = {
        "input": byte_view(input, "input"),
        "output": byte_view(output, "output", writable=True),
        **dict(enumerate(scratch)),
    }
    prepared = [
        compile_tile(step.desc, lowering.target).bind(buffers[step.reads], buffers[step.writes])
        for step in lowering.steps
    ]
    for step in prepared:
        step.run()


def _task_of(desc: OperatorDesc | TileOperatorDesc | None, target: Target) -> Task:
    if isinstance(desc, OperatorDesc) and isinstance(desc.desc, OperatorFields):
        raise DmlError([not_a_tile(operator_name(desc.type))])
    findings, tile = refusals_of(desc, target), tile_of(desc)
    tensors = {} if tile is None else {"InputTensor": tile.input_tensor, "OutputTensor": tile.output_tensor}
    operands = [Operand(name, tensor, is_output=name == "OutputTensor") for name, tensor in tensors.items()]
    views = {operand.name: view for operand in operands if (view := view_of(operand))}
    lasting = [each for each in findings if not _is_repairable(each, views.get(each.path.partition(".")[0]))]
    if lasting or tile is None:
        raise DmlError(lasting)
    source, destination = views.values()
    data_type, sizes = TensorDataType(source.desc.data_type), source.sizes or ()
    repeats = (tile.repeats or ())[: len(sizes)]
    strides = (buffer.strides or packed_strides(buffer.sizes or ()) for buffer in (source, destination))
    walk = TileInBytes.from_elements(ELEMENT_SIZES[data_type], sizes, repeats, *strides)
    accepted = None if findings else tile
    memory, notes = [], list[str]()
    for buffer in (source, destination):
        alignment = buffer.desc.guaranteed_base_offset_alignment
        if 0 < alignment < DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT:
            notes.append(f"{buffer.path('GuaranteedBaseOffsetAlignment')} becomes 0: {alignment} was provided")
            alignment = 0
        memory.append(TensorMemory(buffer.desc.total_tensor_size_in_bytes, buffer.desc.flags, alignment))
    input, output = memory  # noqa: A001
    return Task(tile, data_type.name, data_type, walk, input, output, accepted, tuple(notes))


def _task_of_request(request: Request, target: Target) -> Task:
    element_size = NAMED_SIZES.get(request.data_type)
    findings = [*tile_is_not_empty.findings(request, target)]
    if element_size is None:
        findings += elements_can_be_held.findings(request, target)
    if findings:
        raise DmlError(findings)
    if element_size is None:
        return _task_of(directml.tile_desc(request), target)  # its elements have 4 bits, which every target refuses
    strides = packed_strides(request.shape), packed_strides(request.output_shape)
    walk = TileInBytes.from_elements(element_size, request.shape, request.repeats, *strides)
    desc = None if directml.findings(request) else directml.tile_desc(request)
    accepted = None if desc is None or refusals_of(desc, target) else desc
    input, output = (  # noqa: A001
        TensorMemory(round_up_4(math.prod(shape) * element_size)) for shape in (request.shape, request.output_shape)
    )
    return Task(request, request.data_type, request.carrier, walk, input, output, accepted)


def _is_repairable(finding: Finding, tensor: TensorView | None) -> bool:
    """Return True if a lowering can mend a finding about a tensor, which is None where it is about none."""
    if tensor is None:
        return False
    is_small = tensor.desc.guaranteed_base_offset_alignment < DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT
    return (
        finding.rule == dimension_count_is_supported_at_level.id
        or (finding.rule in DATA_TYPE_RULES and tensor.element_size is not None)
        or (finding.rule == alignment_is_a_power_of_two.id and is_small)
    )


_CARRIERS: Final = tuple(sorted(map(TensorDataType, ELEMENT_SIZES), key=FLOATS.__contains__))
"""The first accepted type of each size is used; floats come last, since hardware may normalise them."""


def carriers(
    element_size: int, own: TensorDataType | None, target: Target, *, allow_floats: bool
) -> tuple[TensorDataType, ...]:
    """Return one data type of each element size that the target accepts, the best carrier first.

    ``own`` or another type of ``element_size`` bytes comes first, then the other sizes, largest first; a larger element
    holds several. ``own`` is None if DirectML has no type for the elements.
    """
    by_size: dict[int, TensorDataType] = {}
    for data_type in (own, *_CARRIERS) if own is not None else _CARRIERS:
        taken = data_type in target.tile_support.data_types and target.supports_data_type(data_type)
        if taken and (allow_floats or data_type == own or data_type not in FLOATS):
            by_size.setdefault(ELEMENT_SIZES[data_type], data_type)
    sizes = sorted(by_size, key=lambda size: (size != element_size, -size))
    return tuple(by_size[size] for size in sizes)


def _lowered(task: Task, target: Target, *, allow_floats: bool) -> Lowering:
    """Return the lowering of the cheapest chain that DirectML's limits allow."""
    walk = task.walk
    if task.accepted is not None:
        step = LoweringStep(task.accepted, "input", "output")
        return Lowering(task.original, target, (step,), (), (), walk.bytes_read, walk.bytes_written, is_original=True)
    types = carriers(walk.element_size, task.own, target, allow_floats=allow_floats)
    task = task._replace(carriers=types)
    if findings := list(apply_rules((carrier_exists, elements_stay_whole, gaps_fit_a_tile), task, target)):
        raise DmlError(findings)
    chains = chains_of(walk.axes, types, target.tile_support.dimension_counts[-1])
    refusals: list[DmlError] = []
    for chain in chains:
        try:
            return _lowering(task, target, chain)
        except DmlError as error:
            refusals.append(error)
    raise refusals[0]


def _lowering(task: Task, target: Target, chain: Chain) -> Lowering:
    """Return the lowering of a chain. Raises DmlError if a step exceeds a limit of DirectML."""
    tiles: Sequence[Sequence[Dimension]] = chain.tiles
    if len(tiles) == 1:
        unit, most = ELEMENT_SIZES[chain.carrier], target.tile_support.dimension_counts[-1]
        tiles = [with_dimensions_of(task.walk, unit, chain.tiles[0], most)]
    written = [TensorMemory(round_up_4(size)) for size in chain.scratch_sizes]
    numbers = [i % 2 for i in range(len(written))]  # in turn: a step may overwrite what the step before read
    sizes = [max(held.total_in_bytes for held in written[i::2]) for i in sorted(set(numbers))]
    scratch: list[tuple[StepBuffer, TensorMemory]] = list(zip(numbers, written, strict=True))
    buffers: list[tuple[StepBuffer, TensorMemory]] = [("input", task.input), *scratch, ("output", task.output)]
    steps = tuple(
        LoweringStep(step_desc(chain.carrier, tile, source, destination, target), reads, writes)
        for tile, ((reads, source), (writes, destination)) in zip(tiles, pairwise(buffers), strict=True)
    )
    notes, walk = (*task.notes, *_notes(task, chain, steps)), task.walk
    return Lowering(task.original, target, steps, tuple(sizes), notes, walk.bytes_read, walk.bytes_written)


_BFLOATS: Final = ("bfloat16", "bf16")


def _notes(task: Task, chain: Chain, steps: Sequence[LoweringStep]) -> Iterator[str]:
    if chain.carrier != task.own and chain.carrier in FLOATS:
        yield (
            f"{task.data_type} travels as {chain.carrier.name}: its bits arrive only where nothing normalises NaNs or "
            f"denormals{_values_at_stake(task)}"
        )
    if chain.scratch_sizes and steps[0].is_a_copy:
        yield "step 1 repeats nothing: it packs the input"
    if chain.scratch_sizes and steps[-1].is_a_copy:
        yield f"step {len(steps)} repeats nothing: it spreads the output"


def _values_at_stake(task: Task) -> str:
    """Return the values, in words, whose bits are no ordinary float's; empty if there is no simple rule."""
    if task.data_type in _BFLOATS:
        return "; values below 2^-119 are denormals as FLOAT16, and those above 2^121 NaNs"
    if task.own is None or task.own in FLOATS:
        return ""
    if ELEMENT_SIZES[task.own] == 1:  # several bytes make a float, no denormal if the fourth is above 0
        return "; bools and small integers may be denormals as floats, and would arrive as 0"
    return "; small integers are denormals as floats, and would arrive as 0"
