"""Executing a tile on the CPU: validation first, then one vectorised copy."""

from __future__ import annotations

from dataclasses import dataclass
from operator import mul
from typing import Any, Final

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from dml_tile.binding import Binding, BindingPair, output_is_apart, range_is_large_enough
from dml_tile.buffer_rules import output_elements_are_apart, total_is_large_enough
from dml_tile.descriptors import BufferTensorDesc, TileOperatorDesc
from dml_tile.enums import TensorDataType
from dml_tile.findings import Against, DmlError, Finding
from dml_tile.memory import BufferLike, Bytes, byte_view, tensor_view
from dml_tile.plan import Plan, plan_tile
from dml_tile.rules import check
from dml_tile.simulation import resolve
from dml_tile.targets import Target, TargetLike
from dml_tile.tile_rules import output_sizes_are_the_products

NEVER_EXECUTED: Final = frozenset(
    rule.id for rule in (output_elements_are_apart, total_is_large_enough, output_sizes_are_the_products)
)
"""The rules whose documented side holds for execution also where the runtime, by wrapping, accepts the descriptor."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A tile whose descriptor and buffers are known to be good; it can be run any number of times."""

    plan: Plan
    source: NDArray[Any]
    destination: NDArray[Any]

    def run(self) -> None:
        """Write the output tensor's elements."""
        run(self.plan, self.source, self.destination)


def execute(
    desc: TileOperatorDesc,
    input: BufferLike,  # noqa: A002
    output: BufferLike,
    target: TargetLike | None = None,
    against: Against = "both",
) -> None:
    """Tile ``input`` into ``output``: any contiguous objects with the buffer protocol, read and written from byte 0.

    Nothing is written before the descriptor, the buffers' sizes and their overlap are known to be good. Of ``output``,
    only the bytes of the output tensor's elements are written, not those between or after them.

    Raises DmlError with the findings of ``check`` at ``target`` and of the buffers, TypeError where a buffer is none,
    ValueError where one is not contiguous, or ``output`` is read-only. What the runtime accepts only because it
    computes in 32 bits, and outputs whose elements share addresses, are refused also against ``"runtime"``.
    """
    prepare(desc, input, output, target, against).run()


def prepare(
    desc: TileOperatorDesc,
    input: BufferLike,  # noqa: A002
    output: BufferLike,
    target: TargetLike | None = None,
    against: Against = "both",
) -> Prepared:
    """All of ``execute`` but the writing; raises what it raises."""
    target = resolve(target)
    require_executable(desc, target, against)
    buffers = described(desc)
    memory = [byte_view(input), byte_view(output, writable=True)]
    findings: list[Finding] = []
    for name, buffer, size in zip(("InputTensor", "OutputTensor"), buffers, map(len, memory), strict=True):
        findings += range_is_large_enough.findings(Binding(name, buffer, size), target)
    for i, buffer in enumerate(buffers):
        memory[i] = memory[i][: buffer.total_tensor_size_in_bytes]
    findings += output_is_apart.findings(BindingPair(np.may_share_memory(memory[0], memory[1])), target)
    if findings:
        del memory  # else the traceback would keep the caller from closing an mmap
        raise DmlError(findings)
    source, destination = map(_view, buffers, memory)
    repeats = (desc.repeats or ())[: desc.repeats_count]
    assert destination.shape == tuple(map(mul, source.shape, repeats)), "the plan would leave the output"
    plan = plan_tile(source.itemsize, source.shape, repeats, source.strides, destination.strides)
    return Prepared(plan, source, destination)


def _view(buffer: BufferTensorDesc, memory: Bytes) -> NDArray[Any]:
    count = buffer.dimension_count  # C arrays, and so these, may go on behind it
    strides = buffer.strides[:count] if buffer.strides is not None else None
    return tensor_view(memory, TensorDataType(buffer.data_type), (buffer.sizes or ())[:count], strides)


def require_executable(desc: TileOperatorDesc, target: Target, against: Against) -> None:
    """Raise DmlError unless the descriptor passes, and means what it says also without 32-bit arithmetic."""
    if not isinstance(desc, TileOperatorDesc):
        raise TypeError(f"a TileOperatorDesc was expected, not a {type(desc).__name__}")
    findings = check(desc, target, against)
    if not findings and against == "runtime":
        documented = check(desc, target, "documentation")
        findings = tuple(finding for finding in documented if finding.rule in NEVER_EXECUTED)
    if findings:
        raise DmlError(findings)


def run(plan: Plan, source: NDArray[Any], destination: NDArray[Any]) -> None:
    """Execute a plan between the two views that it was made for."""
    bits = np.dtype(f"u{plan.element_size}")  # as bits, so that no NaN is touched
    np.copyto(
        as_strided(destination.view(bits), plan.shape, plan.destination_strides),
        as_strided(source.view(bits), plan.shape, plan.source_strides),
    )


def described(desc: TileOperatorDesc) -> tuple[BufferTensorDesc, BufferTensorDesc]:
    """The two buffers of a descriptor that passed ``check``, which refuses null ones."""
    assert desc.input_tensor is not None
    assert desc.input_tensor.desc is not None
    assert desc.output_tensor is not None
    assert desc.output_tensor.desc is not None
    return desc.input_tensor.desc, desc.output_tensor.desc
