"""Planning how to move the bytes of one tile, from its axes alone.

Repeats are taken from the innermost one outwards. As long as that gives short runs of bytes, each has a move of its own
into scratch memory that fits a processor's cache; what they add up to is then streamed to the output in long runs. How
much pays was measured; ``benchmarks/`` holds it against other ways.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from dml_tile.execution.moves import Copy, Crosswise, Move, Multiply, Passes, Stream, Walk
from dml_tile.execution.plan import Plan
from dml_tile.geometry.axes import Axis, coalesce, tile_axes

FEW_BYTES: Final = 2**13
"""Up to so many bytes one plain copy does it."""
MANY_PLAIN_BYTES: Final = 2**23
"""From so many bytes on long runs are copied in blocks: below, one thread copies them as fast as memory takes them."""

_LONG_ENOUGH: Final = 256  # bytes of a run, from which on longer ones bring little
_LONG: Final = 2048  # bytes of a run that is copied as a row of elements, not as one
_SCRATCH: Final = 2**18  # bytes, of the last and largest of a plan's scratch memories
_MOST_SCRATCH: Final = 7 * 2**17
_PATTERN: Final = 2**14  # bytes of a period that is repeated more often than that
_BLOCK: Final = 2**21  # bytes that are written at once where the work is parted
_LINE: Final = 64  # bytes of a processor's cache line
_FEW_PASSES: Final = 8  # over a short axis that lies apart in the source are faster than one copy
_MANY_LINES: Final = 32  # do not stay in the first cache, where so many places are read at once
_MANY_REPEATS: Final = 64  # are a long enough inner loop of their own

_NANOSECONDS: Final = {1: 0.28, 2: 0.31, 4: 0.4, 8: 0.6, 16: 1.0}
"""What an element takes in a long inner loop; others take a call each."""
_CALL: Final = 2.4  # nanoseconds
_BYTE: Final = 0.022  # nanoseconds that it takes to repeat a byte
_START: Final = 3.0  # nanoseconds that NumPy takes to begin an inner loop
_PASS: Final = 600.0  # nanoseconds that Python takes for one more copy

_NO_AXIS: Final = Axis(1, 0, 0)


@lru_cache(maxsize=256)
def plan_tile(
    element_size: int,
    sizes: tuple[int, ...],
    repeats: tuple[int, ...],
    source_strides: tuple[int, ...],
    destination_strides: tuple[int, ...],
) -> Plan:
    """Plan the tile of an input of ``sizes``; the strides, in bytes, are the input's and the output's."""
    axes = tile_axes(sizes, repeats, source_strides, destination_strides)
    return plan_axes(element_size, coalesce(sorted(axes, key=_distance)))


def plan_axes(element_size: int, axes: Sequence[Axis]) -> Plan:
    """Plan a copy along axes, those with the larger destination strides first; their strides are in bytes."""
    size = element_size * math.prod(axis.length for axis in axes)
    if size <= FEW_BYTES:
        return Plan(size, (), _NO_AXIS, 1, (), (_move(element_size, [_NO_AXIS, *axes], 1, few=True),), ())
    run, axes = _run_of(element_size, axes)
    if len(axes) == 1 and axes[0].source == 0 and axes[0].destination == run and run not in _NANOSECONDS:
        return _stream(size, run, axes[0])
    if axes and run < _LONG_ENOUGH:
        axes = _parted(axes, run)
    stages = _stages(axes, run)
    parting = _parting(axes, run, stages, size)
    return _plan(size, run, axes, stages, parting)


class Stage(NamedTuple):
    """A repeat that is written to scratch memory: its place among the axes, and the run of bytes that it makes."""

    place: int
    run: int


class Parting(NamedTuple):
    """Which axis is walked in chunks, if any; the input's axes outside it are walked index by index."""

    place: int | None
    chunk: int


def _distance(axis: Axis) -> int:
    return -abs(axis.destination)


def _run_of(run: int, axes: Sequence[Axis]) -> tuple[int, list[Axis]]:
    """The bytes that are adjacent on both sides, and the axes around them; a long run is left to be an axis."""
    rest = list(axes)
    if rest and rest[-1].source == rest[-1].destination == run:
        run *= rest.pop().length
    if run >= _LONG:
        size = math.gcd(run, 8)
        rest.append(Axis(run // size, size, size))
        run = size
    return run, rest


def _parted(axes: list[Axis], run: int) -> list[Axis]:
    """The axes with their innermost repeat as two where that makes short runs long in fewer copies."""
    length = axes[-1].length
    if axes[-1].source or axes[-1].destination != run:
        return axes
    inner = 1
    if run in _NANOSECONDS:
        if length < _MANY_REPEATS and run * length not in (2, 4, 8):
            inner = next((size // run for size in (8, 4, 2) if size > run and length % (size // run) == 0), 1)
    elif run * length >= 4 * _LONG_ENOUGH:
        inner = _divisor(length, _LONG_ENOUGH // run)
    if inner in (1, length):
        return axes
    return [*axes[:-1], Axis(length // inner, 0, run * inner), Axis(inner, 0, run)]


def _divisor(number: int, limit: int) -> int:
    """The largest divisor that is not above the limit."""
    return next(divisor for divisor in range(limit, 0, -1) if number % divisor == 0)


def _stages(axes: Sequence[Axis], run: int) -> list[Stage]:
    """The repeats, or strided reads, that are done in scratch memory, the innermost first."""
    stages: list[Stage] = []
    place = len(axes)
    while place and run < _LONG_ENOUGH and axes[place - 1].destination == run:
        axis = axes[place - 1]
        if axis.source == run or (axis.source == 0 and axis.length >= _MANY_REPEATS and run in _NANOSECONDS):
            break
        if run * axis.length > _SCRATCH or (axis.source and _LINE * axis.length > _MOST_SCRATCH):
            break
        run *= axis.length
        place -= 1
        stages.append(Stage(place, run))
        while place and _follows(axes[place - 1], run):
            run *= axes[place - 1].length
            place -= 1
    while stages and not any(axis.source == 0 for axis in axes[: stages[-1].place]):
        stages.pop()  # no repeat is left outside: its move writes the output itself
    return stages


def _follows(axis: Axis, run: int) -> bool:
    """Whether an axis of the input goes on where a run in scratch memory ends, and fits there."""
    return axis.source != 0 and axis.destination == run and run * axis.length <= _SCRATCH


def _parting(axes: Sequence[Axis], run: int, stages: Sequence[Stage], size: int) -> Parting:
    outer = axes[: stages[-1].place] if stages else axes
    places = [place for place, axis in enumerate(outer) if axis.source]
    if stages and places:
        return _scratch_parting(outer, places, stages)
    is_long = not stages and (run >= _LONG_ENOUGH or not places or axes[-1].source == run)
    if not outer or (is_long and size < MANY_PLAIN_BYTES):
        return Parting(None, 1)
    return _output_parting(outer, places, run, size)


def _scratch_parting(outer: Sequence[Axis], places: Sequence[int], stages: Sequence[Stage]) -> Parting:
    """As many indices of the input's inner axes as fit into the scratch memory."""
    place, inside = places[-1], stages[-1].run
    while place != places[0] and inside * outer[place].length <= _SCRATCH:
        inside *= outer[place].length
        place = places[places.index(place) - 1]
    chunk = max(1, _SCRATCH // inside)
    whole_lines = _LINE // abs(outer[place].source)
    if len(stages) == 1 and whole_lines > 1 and inside * whole_lines <= _MOST_SCRATCH:
        # else each of the source's lines would be read several times; and wide rectangles are faster
        chunk = _MOST_SCRATCH // inside // whole_lines * whole_lines
    return Parting(place, _even(outer[place].length, chunk))


def _output_parting(outer: Sequence[Axis], places: Sequence[int], run: int, size: int) -> Parting:
    """Blocks of about so many bytes of the output, each of a part of the input if that does not fit a cache."""
    read = run * math.prod(outer[place].length for place in places)
    if read <= _SCRATCH and outer[0].length * _BLOCK > size:
        return Parting(0, _even(outer[0].length, _BLOCK * outer[0].length // size))
    written = size
    for place in places:
        written //= outer[place].length
        read //= outer[place].length
        if written <= _BLOCK or place == places[-1]:
            chunk = max(1, _BLOCK // written, min(_LINE // abs(outer[place].source), 8 * _BLOCK // written))
            if read == outer[place].destination:  # one run: the longer the better, but Ctrl-C is to stop it
                chunk = max(chunk, min(_BLOCK // read, 8 * _BLOCK // written))
            return Parting(place, _even(outer[place].length, chunk))
    return Parting(0, 1)


def _stream(size: int, run: int, repeat: Axis) -> Plan:
    """A run that is repeated, and nothing else: as many as a cache holds, a whole number of its lines, are streamed."""
    held = min(max(1, _PATTERN // run), repeat.length)
    alike = _LINE // math.gcd(run, _LINE)
    if held >= alike:
        held -= held % alike
    chunk = repeat.length if size < MANY_PLAIN_BYTES else min(max(1, _BLOCK // run // held) * held, repeat.length)
    pattern = _move(run, [_NO_AXIS, Axis(held, 0, run)], 1)
    chunked = Axis(repeat.length, 0, run)
    return Plan(size, (), chunked, chunk, (pattern,), (Stream(Walk(run, (Axis(1, 0, run),)), held),), (held * run,))


def _even(length: int, chunk: int) -> int:
    """A chunk of at most so many indices, such that the last is about as long as the others."""
    return -(-length // -(-length // min(chunk, length)))


def _plan(size: int, run: int, axes: Sequence[Axis], stages: Sequence[Stage], parting: Parting) -> Plan:
    chunked = _NO_AXIS if parting.place is None else axes[parting.place]
    depends = chunked.source != 0 or parting.place is None
    first = -1 if parting.place is None else parting.place
    looped = [place for place in range(max(first, 0)) if axes[place].source and chunked.source]
    moves: list[Move] = []
    scratch: list[int] = []
    read = dict(enumerate(axis.source for axis in axes))
    end, read_run = len(axes), run
    for stage in stages:
        kept = [p for p in range(end) if p not in looped and p != first and (p >= stage.place or axes[p].source)]
        packed, stride = {}, stage.run
        for place in reversed([p for p in kept if p < stage.place]):
            packed[place] = stride
            stride *= axes[place].length
        walk = [Axis(1, read.get(first, 0), stride) if chunked.source else _NO_AXIS]
        walk += [Axis(axes[p].length, read[p], packed.get(p, axes[p].destination)) for p in kept]
        count = parting.chunk if chunked.source else 1
        moves.append(_move(read_run, walk, count))
        scratch.append(stride * count)
        read = dict.fromkeys(range(stage.place), 0) | packed | ({first: stride} if chunked.source else {})
        end, read_run = stage.place, stage.run
    walk = [Axis(1, read[first], chunked.destination) if first >= 0 else _NO_AXIS]
    walk += [Axis(axes[p].length, read[p], axes[p].destination) for p in range(end) if p != first and p not in looped]
    moves.append(_move(read_run, walk, parting.chunk))
    once = () if depends else tuple(moves[:-1])
    each = tuple(moves) if depends else (moves[-1],)
    return Plan(size, tuple(axes[p] for p in looped), chunked, parting.chunk, once, each, tuple(scratch))


def _move(run: int, axes: Sequence[Axis], count: int, *, few: bool = False) -> Move:
    """The move along axes, of which the first is walked ``count`` times its length, that is likely to be fastest."""
    run, axes = _joined(run, axes)
    if few:
        return Copy(Walk(run, axes))
    *outer, inner = axes
    repeats = inner.length if outer and inner.source == 0 and inner.destination == run else 1
    if repeats > 1:
        axes = tuple(outer)
    walked = math.prod(axis.length for axis in axes) * count
    loop = axes[-1].length * (count if len(axes) == 1 else 1)
    if repeats * run in (2, 4, 8) and repeats > 1 and loop >= 16:
        return Multiply(Walk(run, axes), np.dtype(f"u{repeats * run}"))
    if repeats == 1 and run <= 16 and inner.source > _LINE:
        across = next((i for i, axis in enumerate(outer) if axis.source == run), None)
        if across is not None and outer[across].length * (count if across == 0 else 1) >= 8:
            if loop <= _FEW_PASSES:
                return Passes(Walk(run, tuple(outer)), inner, 1)
            if loop > _MANY_LINES:
                return Crosswise(Walk(run, axes), across, is_aliased=inner.source % 4096 == 0)
    lane = math.gcd(run, 8)
    in_passes = repeats * (run // lane * (_NANOSECONDS[lane] + _START / loop + _PASS / walked))
    in_one = _START / (1 if repeats > 1 else loop)
    if run not in _NANOSECONDS:
        in_one += repeats * (_CALL + run * _BYTE)
    else:
        in_one += repeats * run * _BYTE if repeats > 1 else _NANOSECONDS[run]
    if in_passes < in_one and (repeats > 1 or lane < run):
        return Passes(Walk(lane, axes), inner if repeats > 1 else _NO_AXIS, run // lane)
    return Copy(Walk(run, axes if repeats == 1 else (*outer, inner)))


def _joined(run: int, axes: Sequence[Axis]) -> tuple[int, tuple[Axis, ...]]:
    """The same walk with what is adjacent on both sides in the run, and axes that walk on alike as one."""
    first, *rest = axes
    joined = [first]
    for axis in rest:
        outer = joined[-1]
        if axis.length == 1:
            continue
        if outer.source == axis.length * axis.source and outer.destination == axis.length * axis.destination:
            joined[-1] = Axis(outer.length * axis.length, axis.source, axis.destination)
        else:
            joined.append(axis)
    if len(joined) > 1 and joined[-1].source == joined[-1].destination == run:
        run *= joined.pop().length
        if run >= _LONG:
            size = math.gcd(run, 8)
            joined.append(Axis(run // size, size, size))
            run = size
    return run, tuple(joined)
