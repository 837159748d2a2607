"""Planning how to move the bytes of one tile, from its axes alone.

NumPy is slow at short runs of bytes. So where repeats of short runs have more repeats around them, they are first
written to scratch memory that stays in the processor's cache, the innermost first, until the runs are long. One copy
then writes them, with all other repeats, to the output.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from dml_tile.execution.moves import in_lanes, joined
from dml_tile.execution.plan import Copy, Plan
from dml_tile.execution.thresholds import BLOCK, FEW, LARGE, LINE, SCRATCH, SHORT
from dml_tile.geometry.axes import Axis, coalesce, tile_axes

_LONG: Final = SCRATCH // 4
"""Runs of so many bytes are long for main memory."""
_LANES: Final = 1, 2, 4, 8, 16
"""The bytes of the elements of which NumPy copies ten in the time of one of any other size."""


@lru_cache(maxsize=256)
def plan_tile(
    element_size: int,
    sizes: tuple[int, ...],
    repeats: tuple[int, ...],
    source_strides: tuple[int, ...],
    output_strides: tuple[int, ...],
) -> Plan:
    """Plan the tile of an input of ``sizes``; the strides, in bytes, are the input's and the output's."""
    axes = tile_axes(sizes, repeats, source_strides, output_strides)
    return plan_axes(element_size, coalesce(sorted(axes, key=lambda axis: -abs(axis.destination))))


def plan_axes(element_size: int, axes: Sequence[Axis]) -> Plan:
    """Plan a copy along axes, those with the larger destination strides first; all strides are in bytes."""
    size, axes = joined(element_size, axes)
    total = size * math.prod(axis.length for axis in axes)
    if size >= _LONG and total > LARGE:
        size, axes = in_lanes(size, axes)
    if not axes or (total <= LARGE and total <= FEW * size):
        return Plan(total, (), Axis(1, 0, 0), 1, (Copy(size, tuple(axes)),))
    runs, held = _runs(total, size, axes)
    end, run = runs[-1] if runs else (len(axes), size)
    chunks = _chunks(total, axes[:end], run, has_scratch=bool(runs))
    loops = tuple(axes[i] for i in chunks.loops)
    return Plan(total, loops, axes[chunks.place], chunks.length, _copies(size, axes, runs, held, chunks))


class _Run(NamedTuple):
    """A run of ``size`` bytes in scratch memory, made of the axes from ``place`` on."""

    place: int
    size: int


def _runs(total: int, size: int, axes: Sequence[Axis]) -> tuple[list[_Run], int]:
    """The runs that are made in scratch memory, one of another, and how many repeats of its own the last one holds."""
    runs: list[_Run] = []
    place = len(axes)
    while place and size < SHORT and total > FEW * size and axes[place - 1].destination == size:
        axis = axes[place - 1]
        is_last = all(outer.source for outer in axes[: place - 1])
        is_fast = not axis.source and size in _LANES and size * axis.length >= (LINE if is_last else SHORT)
        if is_fast or axis.source == size:
            break
        if not axis.source and (is_last or size * axis.length > SCRATCH):
            held = _held(size, axis.length) if size not in _LANES else 1
            return ([*runs, _Run(place, size * held)], held) if held > 1 else (runs, 1)
        if is_last or size * axis.length > SCRATCH:
            break
        place, size = place - 1, size * axis.length
        while place and axes[place - 1].source and axes[place - 1].destination == size:
            if size * axes[place - 1].length > SCRATCH:
                break
            place, size = place - 1, size * axes[place - 1].length
        runs.append(_Run(place, size))
    return runs, 1


def _held(size: int, length: int) -> int:
    """The number of a repeat's runs that make SHORT bytes, and whole lines of the cache; 1 if none pays."""
    held = min(SHORT, size * length // 8) // size
    whole_lines = LINE // math.gcd(size, LINE)
    if held > whole_lines:
        held -= held % whole_lines
    return held if held >= 4 else 1


class _Chunks(NamedTuple):
    """The axis of which a block takes ``length`` indices, and the places of the ``loops`` around it."""

    place: int
    length: int
    loops: tuple[int, ...] = ()


def _chunks(total: int, axes: Sequence[Axis], run: int, *, has_scratch: bool) -> _Chunks:
    """Blocks that write about BLOCK bytes of the output, and read at most SCRATCH bytes again and again."""
    read = run * math.prod(axis.length for axis in axes if axis.source)
    if total <= LARGE and (read <= SCRATCH or (axes[0].source and not has_scratch)):
        return _Chunks(0, axes[0].length)
    loops: list[int] = []
    written = total  # for each index of the axis, and of the repeats around it
    for place, axis in enumerate(axes):
        written //= axis.length
        read //= axis.length if axis.source else 1
        around = math.prod(axes[i].length for i in range(place) if i not in loops)
        most = min(max(BLOCK, _LONG * around), total // 4)
        fits = written * around <= most and (read <= SCRATCH or (axis.source and not has_scratch))
        if fits or place == len(axes) - 1:
            length = most // (written * around)
            if axis.source and (has_scratch or around > 1):
                length = min(length, SCRATCH // read)
            blocks = -(-axis.length // max(1, length))
            return _Chunks(place, -(-axis.length // blocks), tuple(loops))
        if axis.source or around * axis.length > FEW or (read <= SCRATCH and not has_scratch):
            loops.append(place)
    raise AssertionError("a tile has at least one axis")


def _copies(size: int, axes: Sequence[Axis], runs: Sequence[_Run], held: int, chunks: _Chunks) -> tuple[Copy, ...]:
    """A copy to scratch memory for each run, and one to the output; scratch memory has the order of the output."""
    copies: list[Copy] = []
    read = [axis.source for axis in axes]
    end = len(axes)
    for place, run in runs:
        walked = [i for i in range(end) if i >= place or (axes[i].source and i not in chunks.loops)]
        written, stride = {i: axes[i].destination for i in walked}, run
        for i in reversed([i for i in walked if i < place]):
            written[i] = stride
            stride *= axes[i].length
        along = [Axis(axes[i].length, read[i], written[i]) for i in walked]
        if held > 1 and (place, run) == runs[-1]:
            along.append(Axis(held, 0, run // held))
        chunked = walked.index(chunks.place) if chunks.place in walked else None
        copies.append(Copy(size, tuple(along), chunked))
        read = [written.get(i, 0) for i in range(place)]
        end, size = place, run
    walked = [i for i in range(end) if i not in chunks.loops]
    along = [Axis(axes[i].length, read[i], axes[i].destination) for i in walked]
    return (*copies, Copy(size // held, tuple(along), walked.index(chunks.place), held))
