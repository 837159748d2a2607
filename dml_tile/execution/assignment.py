"""Small tiles as one assignment of NumPy's between reshaped arrays, which is the quickest to start."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import dropwhile
from operator import mul
from typing import Any, Final, NamedTuple

from numpy.typing import NDArray

from dml_tile.geometry.axes import Axis, coalesce, tile_axes
from dml_tile.geometry.layout import packed_strides

MAX_STARTS: Final = 64
"""The loops of NumPy that an assignment may start: 0.4 µs, which it takes to make views of longer elements."""
MAX_STRIDED_STARTS: Final = 1000
"""The loops of an assignment of strided arrays: 7 µs, which it takes to find the memory that two of them span."""


class Assignment(NamedTuple):
    """The shapes of output and input that make a tile one assignment; a repeat's axis has the length 1 in the input.

    None stands for the shape that the array has.
    """

    written: tuple[int, ...] | None
    read: tuple[int, ...] | None

    def make(self, array: NDArray[Any], out: NDArray[Any]) -> None:
        """Write the tile, between arrays of one dtype that do not overlap."""
        if self.written is not None:
            out = out.reshape(self.written)
        out[...] = array if self.read is None else array.reshape(self.read)

    def between(self, shape: tuple[int, ...], out_shape: tuple[int, ...]) -> Assignment:
        """The same assignment for arrays of these shapes."""
        return Assignment(
            None if self.written == out_shape else self.written,
            None if self.read is not None and _without_leading_ones(self.read) == shape else self.read,
        )


def assignment_of(shape: Sequence[int], repeats: Sequence[int], *, is_packed: bool) -> Assignment:
    """The assignment that tiles an array; in as few axes as can be, if both arrays are packed."""
    produced = tuple(map(mul, shape, repeats))
    axes = tile_axes(shape, repeats, packed_strides(shape), packed_strides(produced))
    if is_packed:
        axes = coalesce(axes)
    walked = [axis for axis in axes if axis.length > 1]
    return Assignment(
        tuple(axis.length for axis in walked), tuple(axis.length if axis.source else 1 for axis in walked)
    )


def starts(axes: Iterable[Axis]) -> int:
    """The number of NumPy's inner loops along axes."""
    return math.prod(axis.length for axis in coalesce(axes)[:-1])


def _without_leading_ones(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(dropwhile(lambda length: length == 1, shape))
