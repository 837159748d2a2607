"""Executing a tile on the CPU: validation first, then one vectorised copy."""

from __future__ import annotations

from dataclasses import dataclass
from operator import mul
from typing import Any, Final, Literal, get_args

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from dml_tile.binding_rules import output_is_apart, range_is_large_enough
from dml_tile.buffer_rules import output_elements_are_apart, total_is_large_enough
from dml_tile.descriptors import BufferTensorDesc, TileOperatorDesc
from dml_tile.enums import TensorDataType
from dml_tile.findings import Against, DmlError, Finding
from dml_tile.memory import BufferLike, Bytes, byte_view, tensor_view
from dml_tile.plan import Plan, plan_tile
from dml_tile.rules import check
from dml_tile.simulation import resolve
from dml_tile.slots import TENSOR, Binding, BindingPair, Slot
from dml_tile.targets import Target, TargetLike
from dml_tile.tile_rules import output_sizes_are_the_products

NEVER_EXECUTED: Final = frozenset(
    rule.id for rule in (output_elements_are_apart, total_is_large_enough, output_sizes_are_the_products)
)
"""The rules whose documented side holds for execution also where the runtime, by wrapping, accepts the descriptor."""

Padding = Literal["preserve", "poison"]

POISON: Final = 0xCD
"""The byte that stands for whatever DirectML may leave between the elements; debuggers mark unset memory with it."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A tile whose descriptor and buffers are known to be good; it can be run any number of times."""

    plan: Plan
    source: NDArray[Any]
    destination: NDArray[Any]
    poisoned: Bytes | None = None
    """What is filled with POISON before the elements are written."""

    def run(self) -> None:
        """Write the output tensor's elements."""
        if self.poisoned is not None:
            self.poisoned.fill(POISON)
        run(self.plan, self.source, self.destination)


def execute(
    desc: TileOperatorDesc,
    input: BufferLike,  # noqa: A002
    output: BufferLike,
    target: TargetLike | None = None,
    against: Against = "both",
    *,
    padding: Padding = "preserve",
) -> None:
    """Tile ``input`` into ``output``: any contiguous objects with the buffer protocol, read and written from byte 0.

    Nothing is written before the descriptor, the buffers' sizes and their overlap are known to be good. Of ``output``,
    only the bytes of the output tensor's elements are written, not those between or after them. DirectML may clobber
    those that lie within TotalTensorSizeInBytes: with ``padding="poison"`` they are filled with the byte POISON, 0xCD,
    so that code which relies on them fails here too.

    Raises DmlError with the findings of ``check`` at ``target`` and of the buffers, TypeError where a buffer is none,
    ValueError where one is not contiguous, or ``output`` is read-only. What the runtime accepts only because it
    computes in 32 bits, and outputs whose elements share addresses, are refused also against ``"runtime"``.
    """
    prepare(desc, input, output, target, against, padding=padding).run()


def prepare(
    desc: TileOperatorDesc,
    input: BufferLike,  # noqa: A002
    output: BufferLike,
    target: TargetLike | None = None,
    against: Against = "both",
    *,
    padding: Padding = "preserve",
) -> Prepared:
    """All of ``execute`` but the writing; raises what it raises."""
    target = resolve(target)
    require_padding(padding)
    require_executable(desc, target, against)
    buffers = described(desc)
    memory = [byte_view(input), byte_view(output, writable=True)]
    findings: list[Finding] = []
    for name, buffer, size in zip(("InputTensor", "OutputTensor"), buffers, map(len, memory), strict=True):
        slot = Slot(name, TENSOR, buffer.total_tensor_size_in_bytes, 1)
        findings += range_is_large_enough.findings(Binding(slot, size), target)
    for i, buffer in enumerate(buffers):
        memory[i] = memory[i][: buffer.total_tensor_size_in_bytes]
    overlap = np.may_share_memory(memory[0], memory[1])
    findings += output_is_apart.findings(BindingPair("OutputTensor", "InputTensor", overlap), target)
    if findings:
        del memory  # else the traceback would keep the caller from closing an mmap
        raise DmlError(findings)
    return prepare_regions(desc, memory[0], memory[1], padding)


def prepare_regions(desc: TileOperatorDesc, source: Bytes, destination: Bytes, padding: Padding) -> Prepared:
    """Prepare a tile that is known to be executable, between regions of TotalTensorSizeInBytes that do not overlap."""
    views = [_view(buffer, memory) for buffer, memory in zip(described(desc), (source, destination), strict=True)]
    repeats = (desc.repeats or ())[: desc.repeats_count]
    assert views[1].shape == tuple(map(mul, views[0].shape, repeats)), "the plan would leave the output"
    plan = plan_tile(views[0].itemsize, views[0].shape, repeats, views[0].strides, views[1].strides)
    return Prepared(plan, views[0], views[1], destination if padding == "poison" else None)


def require_padding(padding: Padding) -> None:
    """Raise ValueError for an unknown word."""
    if padding not in get_args(Padding):
        raise ValueError(f"padding is {padding!r}; it must be one of {', '.join(map(repr, get_args(Padding)))}")


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
        findings = why_never_executed(desc, target)
    if findings:
        raise DmlError(findings)


def why_never_executed(desc: TileOperatorDesc, target: Target) -> tuple[Finding, ...]:
    """What keeps a descriptor from being executed, also where the runtime, by wrapping, accepts it."""
    documented = check(desc, target, "documentation")
    return tuple(finding for finding in documented if finding.rule in NEVER_EXECUTED)


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
