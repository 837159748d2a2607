"""Executing a tile on the CPU: validation first, then the moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from operator import mul
from typing import Any, Final, cast, overload

import numpy as np
from numpy import may_share_memory, ndarray
from numpy.typing import NDArray

from dml_tile.bindings.memory import (
    POISON,
    BufferLike,
    Padding,
    byte_view,
    contiguous,
    element_dtype,
    parts_overlap,
    require_data_type,
    require_padding,
)
from dml_tile.descriptors.operator import OperatorDesc
from dml_tile.descriptors.tile import TileOperatorDesc, described
from dml_tile.directml.data_types import ELEMENT_SIZES
from dml_tile.directml.dtypes import DTYPES
from dml_tile.directml.targets import Target, TargetLike
from dml_tile.errors import DmlError, require_instance
from dml_tile.execution.mover import BoundTile, Mover, mover_of
from dml_tile.findings import Against
from dml_tile.geometry.layout import packed_strides
from dml_tile.rules.binding import buffer_findings
from dml_tile.rules.descriptor import refusals_of, why_never_executed
from dml_tile.simulation.calls import record
from dml_tile.simulation.target import Origin, origin_of, resolve

_BYTES: Final = np.dtype(np.uint8)


@dataclass(frozen=True, slots=True)
class CompiledTile:
    """A descriptor that passed ``check`` at a target, as ``compile_tile`` makes it, ready to be executed."""

    desc: TileOperatorDesc
    target: Target
    padding: Padding
    sizes_in_bytes: tuple[int, int]
    """The TotalTensorSizeInBytes of input and output."""
    _dtype: np.dtype[Any] | None
    _move: Mover
    _origin: Origin | None = field(default=None, compare=False, repr=False)

    def bind(self, input: BufferLike, output: BufferLike) -> BoundTile:  # noqa: A002
        """Return the tile between two buffers, each of at least the tensor's TotalTensorSizeInBytes.

        Nothing is read or written yet. Bytes and arrays of uint8 are raw memory; other arrays have the tensors' dtype.
        Raises DmlError with the findings of the buffers, TypeError if a buffer is none, is masked, or has elements of
        another type or byte order, ValueError if a buffer is not contiguous, or ``output`` is read-only.
        """
        source, destination = self._memory("bind", input, output)
        first: list[Callable[[], object]] = [] if self._origin is None else [self._origin.require_test]
        first += [partial(self._poison, destination)] if self.padding == "poison" else []
        bound = BoundTile(self._move.plan, source, destination, first)
        record("bind", self.target, self.desc)
        return bound

    def execute(self, input: BufferLike, output: BufferLike) -> None:  # noqa: A002
        """Tile ``input`` into ``output``, once; raises what ``bind`` raises."""
        source, destination = self._memory("execute", input, output)
        if self.padding == "poison":
            self._poison(destination)
        self._move.write(source, destination)
        record("execute", self.target, self.desc)

    def _memory(self, call: str, input_: BufferLike, output: BufferLike) -> tuple[NDArray[Any], NDArray[Any]]:
        """Return contiguous arrays that begin with the tensors. Raises as ``bind`` does."""
        if self._origin is not None:
            self._origin.require_test()
        read, written = self.sizes_in_bytes
        if type(input_) is ndarray and type(output) is ndarray:
            input_flags, output_flags = input_.flags, output.flags
            if (
                ((dtype := input_.dtype) is _BYTES or dtype is self._dtype)
                and ((dtype := output.dtype) is _BYTES or dtype is self._dtype)
                and input_flags.c_contiguous
                and output_flags.carray
                and input_.nbytes >= read
                and output.nbytes >= written
                and (
                    (input_ is not output and input_flags.owndata and output_flags.owndata)
                    or not may_share_memory(input_, output)
                )
            ):
                return input_, output
        source, destination = contiguous(input_, "input"), contiguous(output, "output", writable=True)
        for buffer, name in (input_, "input"), (output, "output"):
            require_data_type(element_dtype(buffer, name), described(self.desc)[0].data_type, name)
        overlap = parts_overlap(source, read, destination, written)
        if source.nbytes < read or destination.nbytes < written or overlap:
            sizes = source.nbytes, destination.nbytes
            findings = buffer_findings(self.sizes_in_bytes, sizes, overlap=overlap, target=self.target)
            record(call, self.target, self.desc, findings)
            del source, destination  # else the traceback would keep the caller from closing an mmap
            raise DmlError(findings)
        return source, destination

    def _poison(self, destination: NDArray[Any]) -> None:
        byte_view(destination)[: self.sizes_in_bytes[1]].fill(POISON)


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
    require_instance(desc, TileOperatorDesc)
    named, target = target, resolve(target)
    compiled = _compile("compile_tile", desc, target, against, padding)
    if origin := origin_of("compiled tile", named, target):
        compiled = replace(compiled, _origin=origin)
    record("compile_tile", compiled.target, desc)
    return compiled


@lru_cache(maxsize=256)
def _compile(call: str, desc: TileOperatorDesc, target: Target, against: Against, padding: Padding) -> CompiledTile:
    require_padding(padding)
    require_executable(call, desc, target, against)
    source, destination = described(desc)
    totals = source.total_tensor_size_in_bytes, destination.total_tensor_size_in_bytes
    return CompiledTile(desc, target, padding, totals, DTYPES.get(source.data_type), mover_of_tile(desc))


@overload
def execute(
    desc: TileOperatorDesc,
    input: BufferLike,
    output: BufferLike,
    target: TargetLike | None = None,
    against: Against = "both",
    *,
    padding: Padding = "preserve",
) -> None: ...


@overload
def execute(
    desc: OperatorDesc,
    buffers: Mapping[str, Any],
    target: TargetLike | None = None,
    against: Against = "both",
    *,
    padding: Padding = "preserve",
) -> None: ...


def execute(desc: TileOperatorDesc | OperatorDesc, *buffers: Any, **options: Any) -> None:
    """Tile ``input`` into ``output``, or execute any operator on the ``buffers`` of its tensors.

        >>> from dml_tile import OperatorDesc, TileOperatorDesc
        >>> output = bytearray(8)
        >>> execute(TileOperatorDesc.from_input(data_type="UINT8", sizes=[4], repeats=[2]), b"tile", output)
        >>> output
        bytearray(b'tiletile')
        >>> tensors = dict.fromkeys(["ATensor", "BTensor", "OutputTensor"], {"DataType": "UINT8", "Sizes": [4]})
        >>> desc = OperatorDesc(type="ELEMENT_WISE_MAX", desc=tensors)
        >>> execute(desc, {"ATensor": b"dash", "BTensor": b"best", "OutputTensor": output})
        >>> output
        bytearray(b'desttile')

    Buffers are any contiguous objects with the buffer protocol, read and written from byte 0. Those of an OperatorDesc
    are in one mapping, by field, in C's names or in snake_case: a list for an array of tensors, None, or nothing, for a
    null tensor; ``evaluate`` takes arrays in place of memory. docs/operators.md says how true the values are.

    Nothing is written before the descriptor, the buffers' sizes and their overlap are checked. In outputs, only the
    bytes of the tensors' elements are written. DirectML was not seen to write the bytes between elements, within
    TotalTensorSizeInBytes, but its documentation allows it: ``padding="poison"`` fills them with the byte POISON, 0xCD,
    so that code which relies on them fails.

    Bytes, memoryviews of bytes and arrays of uint8 are raw memory; other arrays have the tensors' dtype.

    Raises what ``compile_tile`` raises, and TypeError if a buffer is none, is masked, or has elements of another type
    or byte order, ValueError if a buffer is not contiguous, or ``output`` is read-only, and DmlError if a buffer is too
    small, or the buffers overlap; for another operator, also what ``evaluate`` raises.
    """
    if type(desc) is OperatorDesc:  # isinstance of a pydantic model takes as long as a small tile
        from dml_tile.execution.evaluation import execute_operator  # most programs execute tiles alone

        execute_operator(desc, *buffers, **options)
    else:
        execute_tile(cast("TileOperatorDesc", desc), *buffers, **options)


def execute_tile(
    desc: TileOperatorDesc,
    input: BufferLike,  # noqa: A002
    output: BufferLike,
    target: TargetLike | None = None,
    against: Against = "both",
    *,
    padding: Padding = "preserve",
) -> None:
    target = resolve(target)
    key = id(desc), id(target), against, padding
    kept = _compiled.get(key)
    if kept is None:
        require_instance(desc, TileOperatorDesc)
        kept = _compile("execute", desc, target, against, padding), desc, target
        if len(_compiled) >= _MAX_COMPILED:
            _compiled.clear()
        _compiled[key] = kept
    kept[0].execute(input, output)


_compiled: Final[dict[tuple[int, int, Against, Padding], tuple[CompiledTile, TileOperatorDesc, Target]]] = {}
"""By the ids of a descriptor and a target, which the value keeps alive: to hash them takes as long as a small tile."""
_MAX_COMPILED: Final = 256


def mover_of_tile(desc: TileOperatorDesc) -> Mover:
    """Return the mover of a tile that is known to be executable."""
    layouts = []
    for buffer in described(desc):
        size, sizes = ELEMENT_SIZES[buffer.data_type], (buffer.sizes or ())[: buffer.dimension_count]
        strides = packed_strides(sizes) if buffer.strides is None else buffer.strides[: buffer.dimension_count]
        layouts.append((sizes, tuple(stride * size for stride in strides)))
    (sizes, source_strides), (produced, output_strides) = layouts
    repeats = (desc.repeats or ())[: desc.repeats_count]  # an array may be longer than its count, as in C
    assert produced == tuple(map(mul, sizes, repeats)), "the bytes would leave the output"
    return mover_of(size, sizes, repeats, source_strides, output_strides)


def require_executable(call: str, desc: TileOperatorDesc, target: Target, against: Against) -> None:
    """Raise DmlError unless the descriptor passes, also without 32-bit arithmetic."""
    findings = refusals_of(desc, target, against)
    if not findings and against == "runtime":
        findings = why_never_executed(desc, target)
    if findings:
        record(call, target, desc, findings)
        raise DmlError(findings)
