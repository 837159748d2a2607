"""Plans how the bytes of a tile are moved: in blocks of the output, each by a few calls of NumPy.

A tile is a copy along axes around a run of bytes; a repeat has no stride in the input. NumPy copies a run as one
element, in nanoseconds, but starts an inner loop for each index of the axes around the last axis; and a short run takes
as long as a run of 100 bytes. So runs that are repeated are first made long:

    (1024, 3) by (7, 5) in float32: R7 S1024 R5 around runs of 12 bytes (S: a size, R: a repeat), in 1 block:
    1. abc -> abcabcabcabcabc: packed in scratch memory, which 7 repeats will read; left is R7 around runs of 61440
    2. assigned to the output, 7 times

Runs are assigned, or taken by index (numpy.take): taking 3 parts of 4 bytes is faster than assigning 12 bytes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from dml_tile.execution.steps import INPUT, OUTPUT, SCRATCH, Place, Plan, Step
from dml_tile.geometry.axes import Axis, coalesce, indices, offsets
from dml_tile.geometry.layout import packed_strides

SHORT_RUN: Final = 512
"""Runs of fewer bytes are made longer: of 40 bytes NumPy writes 18 GB/s, of 128 bytes 65, of 512 bytes 90."""
ASSIGNED_AT_ONCE: Final = 256
"""Up to this many elements are written in one call, however they lie: that takes 0.6 µs, as does one more call."""
FAST_SIZES: Final = 1, 2, 4, 8, 16
"""Element sizes that NumPy assigns in 0.3 ns an element; other sizes take 2.3, and each start of a loop takes 4."""
TAKE_NS_BY_WIDTH: Final = (16, 0.65), (32, 0.8)
"""The ns for a row of numpy.take: up to 16 bytes, up to 32; rows whose size is no power of 2 take 2.1."""
CACHE_LINE: Final = 64
"""A line of the cache in bytes."""
MAX_SCRATCH_BYTES: Final = 2**19
"""The most bytes of scratch memory; half of the second-level cache."""
BLOCK_BYTES: Final = 2**22
"""The bytes of a block: 50 to 130 µs, of which Python takes 2 to 5."""
BYTEWISE_RUN_BYTES: Final = 2**13
"""Runs of this size or more are assigned as bytes: while NumPy assigns 500 elements or fewer, no other thread runs."""
THREADED_BYTES: Final = 2**24
"""The bytes from which on threads share the blocks: two gained 1.1 from 12 to 17 MB, and nothing from 3 to 12."""


def plan_tile(size: int, axes: Iterable[Axis]) -> Plan:
    """Plan a tile of elements of ``size`` bytes along its axes, with strides in bytes."""
    size, axes = _joined(size, sorted(axes, key=lambda axis: -abs(axis.destination)))
    if size > BLOCK_BYTES:
        lane = math.gcd(size, 4096)
        size, axes = lane, (*axes, Axis(size // lane, lane, lane))
    block = BLOCK_BYTES  # the scratch memory or the indexes of smaller blocks are smaller
    while (plan := _plan(size, axes or (Axis(1, 0, 0),), block)).memory > MAX_SCRATCH_BYTES:
        block //= 2
    return plan


def _plan(size: int, axes: Sequence[Axis], block: int) -> Plan:
    """Plan blocks that are chunks of one axis, for each index of the sizes around the axis.

    A block that has room for fewer than 4 passes of an outer repeat includes all passes: they are packed once.
    """
    total = written = size * indices(axes)
    loops: list[Axis] = []
    repeats: list[Axis] = []
    for place, chunked in enumerate(axes):
        written //= chunked.length
        most = block // written
        if most >= min(chunked.length, 4) or (most and chunked.source) or place == len(axes) - 1:
            break
        (loops if chunked.source else repeats).append(chunked)
    length = -(-chunked.length // -(-chunked.length // max(1, most)))
    first, lowest = (-sum(min(0, (axis.length - 1) * axis[k]) for axis in axes) for k in (1, 2))
    blocks = [
        (first + read + i * chunked.source, lowest + to + i * chunked.destination, min(length, chunked.length - i))
        for read, to in offsets(loops)
        for i in range(0, chunked.length, length)
    ]
    places = [Place(OUTPUT, offset) for _, offset in offsets(repeats)]
    steps, scratch = {}, 0
    for length in {length for *_, length in blocks}:
        steps[length], taken = _steps(*_joined(size, [chunked._replace(length=length), *axes[place + 1 :]]), places)
        scratch = max(scratch, taken)
    return Plan(total, blocks, steps, scratch)


def _steps(size: int, axes: Sequence[Axis], places: Sequence[Place]) -> tuple[list[Step], int]:
    """Return the steps that write a block to each place, and the bytes of scratch memory that they take."""
    steps: list[Step] = []
    source, scratch, rest = Place(INPUT), 0, 0
    while not rest and size < SHORT_RUN and indices(axes) > ASSIGNED_AT_ONCE and axes[-1].destination == size:
        *outer, inner = (*axes, Axis(1, 0, size)) if axes[-1].source else axes
        uses = len(places) * indices(axis for axis in outer if not axis.source)  # of the packed runs
        is_long = uses == 1 or size * inner.length >= SHORT_RUN
        if (size in FAST_SIZES and is_long) or (size >= CACHE_LINE and 1 < uses < 4):
            break  # NumPy is fast enough, or packing gains nothing for fewer than 4 reads
        if uses == 1 or size * inner.length > 8 * SHORT_RUN:  # many repeats are made of some, and a rest
            some = min(SHORT_RUN // size, inner.length // 4)
            if some < 4:
                break
            whole, rest = divmod(inner.length, some)
            outer, inner = [*outer, Axis(whole, 0, size * some)], Axis(some, 0, size)
        rest, wide = rest * size, size * inner.length
        walked = [axis for axis in outer if axis.source]
        strides = packed_strides([axis.length for axis in walked], wide)
        rows = [axis._replace(destination=stride) for axis, stride in zip(walked, strides, strict=True)]
        steps += _copied(*_joined(size, [*rows, inner]), source, Place(SCRATCH, scratch))
        packed = iter(strides)
        size, axes = _joined(wide, [axis._replace(source=axis.source and next(packed)) for axis in outer])
        source = Place(SCRATCH, scratch)
        scratch += -(-wide * indices(rows) // CACHE_LINE) * CACHE_LINE
    for output in places:
        steps += _copied(size, axes, source, output)
        if rest:
            steps += _assigned(*_joined(rest, axes[:-1]), source, output.moved(size * axes[-1].length))
    return steps, scratch


def _copied(size: int, axes: Sequence[Axis], source: Place, output: Place) -> list[Step]:
    """Take runs by index, whole or in parts, if that takes fewer ns than assigning them."""
    number, whole = indices(axes), math.gcd(size, *(axis.source for axis in axes))
    loops = 0 if _is_short(size, axes) else indices(axes[:-1])
    # either way, 100 bytes take 1 ns
    assigned = number * ((0.3 if size in FAST_SIZES else 2.3) + size / 100) + 4 * loops
    parts = [(math.gcd(whole, most), ns) for most, ns in TAKE_NS_BY_WIDTH] + [(whole, 2.1)]
    taken, part = min((number * (ns * size / part + size / 100) + 100, part) for part, ns in parts)
    if (
        taken > 0.9 * assigned  # the sums are right to a tenth
        or any(axis.source < 0 for axis in axes)
        or [axis.destination for axis in axes] != list(packed_strides([axis.length for axis in axes], size))
    ):
        return _assigned(size, axes, source, output)
    rows = tuple(axis._replace(source=axis.source // part) for axis in (*axes, Axis(size // part, part, part)))
    return [Step(source, output, _dtype(part), (1 + sum((row.length - 1) * row.source for row in rows),), rows=rows)]


def _assigned(size: int, axes: Sequence[Axis], source: Place, output: Place) -> list[Step]:
    """Assign runs along joined axes, in a pass for each index of a short last one, so that NumPy's loops are long."""
    kept = len(axes) - _is_short(size, axes)
    lengths, reads, writes = zip(*axes[:kept], strict=True) if kept else ((), (), ())
    dtype = _dtype(size) if size < BYTEWISE_RUN_BYTES else np.dtype(("u1", size))
    return [
        Step(source.moved(read), output.moved(to), dtype, lengths, reads, writes) for read, to in offsets(axes[kept:])
    ]


def _is_short(size: int, axes: Sequence[Axis]) -> bool:
    """Return True if the last axis is so short that Python loops over it, around long loops of NumPy's."""
    *outer, last = axes or (Axis(1, 0, 0),)
    if not outer or size * last.length > CACHE_LINE // 2:
        return False
    return outer[-1].length > 2 * last.length and indices(outer) >= ASSIGNED_AT_ONCE // 2 * last.length


def _joined(size: int, axes: Iterable[Axis]) -> tuple[int, tuple[Axis, ...]]:
    """Return the same copy in as few axes, and with as long runs, as possible."""
    axes = coalesce(axes)
    while axes and axes[-1].source == axes[-1].destination == size:
        size *= axes[-1].length
        axes = axes[:-1]
    return size, axes


def _dtype(size: int) -> np.dtype[Any]:
    """Return NumPy's fastest type of ``size`` bytes."""
    return np.dtype({1: "u1", 2: "u2", 4: "u4", 8: "u8", 16: "c16"}.get(size, f"V{size}"))
