"""Running a lowering with the executor."""

from __future__ import annotations

import numpy as np

from dml_tile.bindings.memory import BufferLike, byte_view, element_dtype, require_data_type
from dml_tile.execution.executor import POISON, compile_tile, described
from dml_tile.lowering.steps import Lowering, StepBuffer
from dml_tile.tile_request import Request


def run_lowering(lowering: Lowering, input: BufferLike, output: BufferLike) -> None:  # noqa: A002
    """Run the steps in order, at the lowering's target. Raises what ``execute`` raises, before anything is written."""
    carrier = _data_type(lowering)
    if carrier is not None:
        require_data_type(element_dtype(input, "input"), carrier, "input")
        require_data_type(element_dtype(output, "output"), carrier, "output")
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


def _data_type(lowering: Lowering) -> int | None:
    """The data type of the original's tensors; None for elements that no data type carries, such as complex ones."""
    if isinstance(lowering.original, Request):
        return lowering.original.carrier
    return described(lowering.original)[0].data_type
