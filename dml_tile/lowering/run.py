"""Running a lowering with the executor."""

from __future__ import annotations

import numpy as np

from dml_tile.bindings.memory import BufferLike
from dml_tile.execution.executor import POISON, compile_tile
from dml_tile.lowering.steps import Lowering, StepBuffer


def run_lowering(lowering: Lowering, input: BufferLike, output: BufferLike) -> None:  # noqa: A002
    """Run the steps in order, at the lowering's target. Raises what ``execute`` raises, before anything is written."""
    scratch = [np.full(size, POISON, np.uint8) for size in lowering.scratch_sizes]
    buffers: dict[StepBuffer, BufferLike] = {"input": input, "output": output, **dict(enumerate(scratch))}
    prepared = [
        compile_tile(step.desc, lowering.target).bind(buffers[step.reads], buffers[step.writes])
        for step in lowering.steps
    ]
    for step in prepared:
        step.run()
