"""Executing a tile on the CPU: validation first, then the moves of its plan."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from operator import mul
from typing import Any, Final, Literal, NamedTuple, TypeVar, get_args

import numpy as np
from numpy import may_share_memory, ndarray
from numpy.typing import NDArray

from dml_tile.bindings.memory import BufferLike, Bytes, byte_view, contiguous, element_dtype, require_data_type
from dml_tile.bindings.slots import TENSOR, BindingPair, BoundRange, Slot
from dml_tile.descriptors.tile import BufferTensorDesc, TileOperatorDesc
from dml_tile.directml.data_types import ELEMENT_SIZES
from dml_tile.directml.dtypes import DTYPES
from dml_tile.directml.targets import Target, TargetLike
from dml_tile.errors import DmlError
from dml_tile.execution.assignment import MAX_STARTS, Assignment, assignment_of, starts
from dml_tile.execution.numpy_calls import Region
from dml_tile.execution.plan import Plan
from dml_tile.execution.planner import plan_tile
from dml_tile.execution.threads import Progress, Work, run_once
from dml_tile.findings import Against, Finding
from dml_tile.geometry.axes import tile_axes
from dml_tile.geometry.layout import lie_alike, packed_strides
from dml_tile.rules.binding import output_is_apart, range_is_large_enough
from dml_tile.rules.check import findings_of
from dml_tile.rules.tensor import output_elements_are_apart, total_is_large_enough
from dml_tile.rules.tile import output_sizes_are_the_products
from dml_tile.simulation.calls import record
from dml_tile.simulation.target import resolve

NEVER_EXECUTED: Final = frozenset(
    rule.id for rule in (output_elements_are_apart, total_is_large_enough, output_sizes_are_the_products)
)
"""The rules whose documented side holds for execution also where the runtime, by wrapping, accepts the descriptor."""

Padding = Literal["preserve", "poison"]
"""The treatment of the bytes between an output's elements: they stay as they are, or are filled with POISON."""

_PADDINGS: Final = get_args(Padding)

POISON: Final = 0xCD
"""The byte that stands for whatever DirectML may leave between the elements; debuggers mark unset memory with it."""


class BoundTile:
    """A tile whose descriptor and buffers are known to be good; it can be run any number of times."""

    def __init__(self, plan: Plan, source: Bytes, output: Bytes, *, poison: bool = False) -> None:
        self.plan = plan
        self._work = Work(plan, Region(source), Region(output))
        self._poisoned = output if poison else None
        self._steps = self._work.steps

    def run(self, threads: int | None = None, progress: Progress | None = None) -> None:
        """Write the output tensor's elements, of which each block is told to ``progress``, in bytes.

        ``threads`` is the largest number of threads to use; by default the variable DML_TILE_THREADS, else one for each
        CPU that the process may use. Ctrl-C stops within a block. Raises ValueError for a number that is not positive.
        """
        if self._poisoned is not None:
            self._poisoned.fill(POISON)
        if self._steps is None:
            self._work.run(threads, progress)
            return
        for step in self._steps:
            step()
        if progress is not None:
            progress(self.plan.size, self.plan.size)


@dataclass(frozen=True, slots=True)
class CompiledTile:
    """A descriptor that passed ``check`` at a target, and the plan for it: what ``compile_tile`` makes."""

    desc: TileOperatorDesc
    target: Target
    padding: Padding
    plan: Plan
    sizes_in_bytes: tuple[int, int]
    """The TotalTensorSizeInBytes of input and output."""
    _dtypes: tuple[np.dtype[Any], ...]
    """The dtypes that arrays mostly have: that of the tensors, and uint8 for raw memory."""
    _assignment: Assignment | None
    """The quickest way between arrays of the tensors' dtype, where there is one; it leaves no byte of them out."""

    def bind(self, input: BufferLike, output: BufferLike) -> BoundTile:  # noqa: A002
        """The tile between two buffers, of which each has at least the tensor's TotalTensorSizeInBytes.

        Nothing is read or written yet. Bytes and arrays of uint8 are raw memory; other arrays have the tensors' dtype.
        Raises DmlError with the findings of the buffers, TypeError where a buffer is none, is masked, or has elements
        of another type or byte order, ValueError where one is not contiguous, or ``output`` is read-only.
        """
        source, destination = map(byte_view, self._memory("bind", input, output))
        bound = BoundTile(self.plan, source, destination, poison=self.padding == "poison")
        record("bind", self.target, self.desc)
        return bound

    def execute(self, input: BufferLike, output: BufferLike) -> None:  # noqa: A002
        """Tile ``input`` into ``output``, once; raises what ``bind`` raises."""
        read, written = self.sizes_in_bytes
        if (
            type(input) is ndarray
            and type(output) is ndarray
            and input is not output
            and input.dtype in self._dtypes
            and output.dtype in self._dtypes
            and input.nbytes >= read
            and output.nbytes >= written
            and (input_flags := input.flags).c_contiguous
            and (output_flags := output.flags).carray
            and ((input_flags.owndata and output_flags.owndata) or not may_share_memory(input, output))
        ):
            source, destination = input, output
        else:
            source, destination = self._memory("execute", input, output)
        is_exact = source.nbytes == read and destination.nbytes == written
        if self._assignment is not None and is_exact and source.dtype is destination.dtype is self._dtypes[0]:
            self._assignment.make(source, destination)
        else:
            if self.padding == "poison":
                byte_view(destination)[:written].fill(POISON)
            run_once(self.plan, source, destination)
        record("execute", self.target, self.desc)

    def _memory(
        self,
        call: str,
        input: BufferLike,  # noqa: A002
        output: BufferLike,
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """The memory of the two tensors; raises what ``bind`` raises."""
        source, destination = contiguous(input, "input"), contiguous(output, "output", writable=True)
        for buffer, name in (input, "input"), (output, "output"):
            if type(buffer) is not ndarray or buffer.dtype not in self._dtypes:
                require_data_type(element_dtype(buffer, name), described(self.desc)[0].data_type, name)
        read, written = self.sizes_in_bytes
        if source.nbytes > read:  # what lies behind may overlap
            source = byte_view(source)[:read]
        if destination.nbytes > written:
            destination = byte_view(destination)[:written]
        if source.nbytes < read or destination.nbytes < written or may_share_memory(source, destination):
            findings = self._buffer_findings(source, destination)
            record(call, self.target, self.desc, findings)
            del source, destination  # else the traceback would keep the caller from closing an mmap
            raise DmlError(findings)
        return source, destination

    def _buffer_findings(self, source: NDArray[Any], destination: NDArray[Any]) -> list[Finding]:
        findings: list[Finding] = []
        for name, size, memory in zip(_NAMES, self.sizes_in_bytes, (source, destination), strict=True):
            if memory.nbytes < size:
                findings += range_is_large_enough.findings(
                    BoundRange(Slot(name, TENSOR, size, 1), memory.nbytes), self.target
                )
        if may_share_memory(source, destination):
            findings += output_is_apart.findings(BindingPair("OutputTensor", "InputTensor", True), self.target)
        return findings


_NAMES: Final = ("InputTensor", "OutputTensor")


def compile_tile(
    desc: TileOperatorDesc,
    target: TargetLike | None = None,
    against: Against = "both",
    *,
    padding: Padding = "preserve",
) -> CompiledTile:
    """Check and plan a tile once, to be executed many times.

    Raises DmlError with the findings of ``check`` at ``target``. What the runtime accepts only because it computes in
    32 bits, and outputs whose elements share addresses, are refused also against ``"runtime"``. For ``padding``, see
    ``execute``.
    """
    compiled = _compile("compile_tile", desc, resolve(target), against, padding)
    record("compile_tile", compiled.target, desc)
    return compiled


def _compile(call: str, desc: TileOperatorDesc, target: Target, against: Against, padding: Padding) -> CompiledTile:
    require_padding(padding)
    require_executable(call, desc, target, against)
    source, destination = described(desc)
    totals = source.total_tensor_size_in_bytes, destination.total_tensor_size_in_bytes
    dtypes = DTYPES[source.data_type], np.dtype(np.uint8)
    plan = plan_of(desc)
    return CompiledTile(desc, target, padding, plan, totals, dtypes, _assignment(desc, plan, totals))


def _assignment(desc: TileOperatorDesc, plan: Plan, totals: tuple[int, int]) -> Assignment | None:
    """The assignment for arrays that have just the elements of both tensors, if those are packed and it pays."""
    size, sizes, repeats, read, written = _walk(desc)
    produced = tuple(map(mul, sizes, repeats))
    is_packed = (
        totals == (size * math.prod(sizes), plan.size)
        and lie_alike(sizes, read, packed_strides(sizes, size))
        and lie_alike(produced, written, packed_strides(produced, size))
    )
    if not is_packed or len(plan.blocks) > 1 or starts(tile_axes(sizes, repeats, read, written)) > MAX_STARTS:
        return None
    return assignment_of(sizes, repeats, is_packed=True)


MAX_CACHED_TILES: Final = 256
"""The descriptors of which ``execute`` keeps the plans, and so do devices."""

Key = TypeVar("Key")
Value = TypeVar("Value")

_compiled_tiles: Final[dict[tuple[int, int, Against, Padding], CompiledTile]] = {}


def store(cache: dict[Key, Value], key: Key, value: Value) -> None:
    """Store a value in a cache of at most MAX_CACHED_TILES; the oldest values are dropped."""
    while len(cache) >= MAX_CACHED_TILES:
        with suppress(KeyError, RuntimeError):  # another thread may have been faster
            del cache[next(iter(cache))]
    cache[key] = value


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

    Bytes, memoryviews of bytes and arrays of uint8 are raw memory; other arrays have the tensors' dtype.

    Raises what ``compile_tile`` raises, and TypeError where a buffer is none, is masked, or has elements of another
    type or byte order, ValueError where one is not contiguous, or ``output`` is read-only, and DmlError where one is
    too small, or they overlap.
    """
    target = resolve(target)
    key = id(desc), id(target), against, padding  # comparing descriptors and targets would take longer
    compiled = _compiled_tiles.get(key)
    if compiled is None:  # what is kept holds its descriptor and target, so that no others have their ids
        compiled = _compile("execute", desc, target, against, padding)
        store(_compiled_tiles, key, compiled)
    compiled.execute(input, output)


def plan_of(desc: TileOperatorDesc) -> Plan:
    """The plan of a tile that is known to be executable."""
    return plan_tile(*_walk(desc))


class _Walk(NamedTuple):
    """The size of an element and the strides of both tensors, in bytes, and the sizes and repeats between them."""

    size: int
    sizes: tuple[int, ...]
    repeats: tuple[int, ...]
    read: tuple[int, ...]
    written: tuple[int, ...]


def _walk(desc: TileOperatorDesc) -> _Walk:
    source, destination = described(desc)
    size = ELEMENT_SIZES[source.data_type]
    sizes, produced = ((buffer.sizes or ())[: buffer.dimension_count] for buffer in (source, destination))
    repeats = (desc.repeats or ())[: desc.repeats_count]
    assert produced == tuple(map(mul, sizes, repeats)), "the plan would leave the output"
    return _Walk(size, sizes, repeats, _strides(source, sizes, size), _strides(destination, produced, size))


def _strides(buffer: BufferTensorDesc, sizes: tuple[int, ...], element_size: int) -> tuple[int, ...]:
    """In bytes; C arrays, and so these, may go on behind the count."""
    if buffer.strides is None:
        return packed_strides(sizes, element_size)
    return tuple(stride * element_size for stride in buffer.strides[: buffer.dimension_count])


def require_padding(padding: Padding) -> None:
    """Raise ValueError for an unknown word."""
    if padding not in _PADDINGS:
        raise ValueError(f"padding is {padding!r}; it must be one of {', '.join(map(repr, _PADDINGS))}")


def require_executable(call: str, desc: TileOperatorDesc, target: Target, against: Against) -> None:
    """Raise DmlError unless the descriptor passes, and means what it says also without 32-bit arithmetic."""
    if not isinstance(desc, TileOperatorDesc):
        raise TypeError(f"a TileOperatorDesc was expected, not a {type(desc).__name__}")
    findings = findings_of(desc, target, against)
    if not findings and against == "runtime":
        findings = why_never_executed(desc, target)
    if findings:
        record(call, target, desc, findings)
        raise DmlError(findings)


def why_never_executed(desc: TileOperatorDesc, target: Target) -> tuple[Finding, ...]:
    """Return the findings that prevent execution even where the runtime, by wrapping, accepts the descriptor."""
    documented = findings_of(desc, target, "documentation")
    return tuple(finding for finding in documented if finding.rule in NEVER_EXECUTED)


def described(desc: TileOperatorDesc) -> tuple[BufferTensorDesc, BufferTensorDesc]:
    """The two buffers of a descriptor that passed ``check``, which refuses null ones."""
    assert desc.input_tensor is not None
    assert desc.input_tensor.desc is not None
    assert desc.output_tensor is not None
    assert desc.output_tensor.desc is not None
    return desc.input_tensor.desc, desc.output_tensor.desc
