"""Tiles as bare geometry, and the reference that their moves are held against: one strided copy by NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import mul

import numpy as np
import pytest

from dml_tile.bindings.memory import Bytes
from dml_tile.execution import mover, plan
from dml_tile.execution.mover import BoundTile, Progress
from dml_tile.execution.plan import plan_tile
from dml_tile.execution.steps import Plan
from dml_tile.geometry.axes import tile_axes
from dml_tile.geometry.layout import packed_strides

GUARD = 64


@dataclass(frozen=True)
class Tiling:
    """A tile of elements of ``size`` bytes; strides are in bytes, and None means packed."""

    size: int
    sizes: tuple[int, ...]
    repeats: tuple[int, ...]
    source_strides: tuple[int, ...] | None = None
    destination_strides: tuple[int, ...] | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(map(mul, self.sizes, self.repeats))

    @property
    def strides(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        given = (self.sizes, self.source_strides), (self.shape, self.destination_strides)
        source, destination = (
            packed_strides(sizes, self.size) if strides is None else strides for sizes, strides in given
        )
        return source, destination

    @property
    def plan(self) -> Plan:
        """The plan by the constants of the moment, which a test may have changed."""
        return plan_tile(self.size, tile_axes(self.sizes, self.repeats, *self.strides))


def span(size: int, shape: Sequence[int], strides: Sequence[int]) -> tuple[int, int]:
    """Returns the offset of the first element in the bytes that a tensor spans, and their number."""
    steps = [(length - 1) * stride for length, stride in zip(shape, strides, strict=True)]
    before = -sum(step for step in steps if step < 0)
    return before, before + sum(step for step in steps if step > 0) + size


def set_sizes(patch: pytest.MonkeyPatch, **sizes: int) -> None:
    """Set constants of plans; ``THREADED_BYTES`` for those who share blocks too."""
    for name, size in sizes.items():
        for module in (plan, mover) if name == "THREADED_BYTES" else (plan,):
            patch.setattr(module, name, size)


def copied_at_once(tiling: Tiling, source: Bytes, offset: int, output: Bytes, start: int) -> None:
    """Write the tiling, from and to these first elements, as one strided copy."""
    pairs = list(zip(tiling.sizes, tiling.repeats, *tiling.strides, strict=True))
    shape = [length for size, repeat, _, _ in pairs for length in (repeat, size)]
    read = [stride for _, _, source_stride, _ in pairs for stride in (0, source_stride)]
    written = [stride for size, _, _, stride in pairs for stride in (size * stride, stride)]
    dtype = np.dtype(f"u{tiling.size}")
    np.ndarray(shape, dtype, output, start, written)[...] = np.ndarray(shape, dtype, source, offset, read)


def executed(tiling: Tiling, number: int | None = None, progress: Progress | None = None) -> tuple[Bytes, Bytes]:
    """The output's bytes, guards and what lies between the elements included: by the plan, and by the reference."""
    source_strides, destination_strides = tiling.strides
    offset, length = span(tiling.size, tiling.sizes, source_strides)
    source = np.random.default_rng(length).integers(0, 256, length, np.uint8)
    start, reach = span(tiling.size, tiling.shape, destination_strides)
    ours = np.full(reach + 2 * GUARD, 0xAB, np.uint8)
    theirs = ours.copy()
    BoundTile(tiling.plan, source, ours[GUARD:-GUARD]).run(number, progress)
    copied_at_once(tiling, source, offset, theirs, GUARD + start)
    return ours, theirs


def assert_equal(tiling: Tiling, number: int | None = None) -> None:
    ours, theirs = executed(tiling, number)
    np.testing.assert_array_equal(ours, theirs)
