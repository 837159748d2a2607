"""Runs a lowering with the executor; lowering alone, as a check does it, needs no NumPy."""

from __future__ import annotations

import numpy as np

from dml_tile.bindings.memory import POISON, BufferLike, byte_view, element_dtype, require_data_type
from dml_tile.errors import require_instance
from dml_tile.execution.executor import compile_tile
from dml_tile.lowering.steps import Lowering, StepBuffer


def run_lowering(lowering: Lowering, input: BufferLike, output: BufferLike) -> None:  # noqa: A002
    """Run the steps in order, at the lowering's target. Raises as ``execute`` does, before anything is written."""
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
