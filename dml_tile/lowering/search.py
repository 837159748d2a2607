"""Chains of tiles, each of a data type that carries the bits."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from dml_tile.directml.data_types import ELEMENT_SIZES, TensorDataType
from dml_tile.directml.enums import UINT_MAX
from dml_tile.geometry.axes import Axis, coalesce
from dml_tile.geometry.byte_walk import Dimension, axes_in_units, dimensions_of
from dml_tile.geometry.layout import packed_strides


class CarriedTile(NamedTuple):
    """The dimensions of one tile, in elements of the data type that carries the bits."""

    carrier: TensorDataType
    dimensions: tuple[Dimension, ...]


@dataclass(frozen=True, slots=True)
class Chain:
    """Tiles in their order: one for each scratch buffer, then those that write the output from the last of them."""

    tiles: tuple[CarriedTile, ...]
    scratch_sizes: tuple[int, ...]
    """In bytes, of what each of the first tiles writes."""

    @property
    def expense(self) -> tuple[int, int]:
        """The number of tiles, then the bytes of scratch memory; the cheapest chain has the least."""
        return len(self.tiles), sum(self.scratch_sizes)


def as_one_tile(axes: Sequence[Axis], types: Sequence[TensorDataType], most: int) -> CarriedTile | None:
    """One tile of at most ``most`` dimensions that walks coalesced axes in bytes, in the first type that allows it."""
    for carrier in types:
        in_elements = axes_in_units(axes, ELEMENT_SIZES[carrier])
        if in_elements is not None and len(dimensions := dimensions_of(in_elements)) <= most:
            return CarriedTile(carrier, dimensions)
    return None


MAX_BUFFERS: Final = 8
"""With so many contents of a buffer the search goes on after each copy."""

Axes = tuple[Axis, ...]


def search_chain(
    axes: Axes, types: Sequence[TensorDataType], most: int, max_tiles: int, *, copies_gaps: bool
) -> Chain | None:
    """The shortest chain found, and among those one with little scratch memory; None if none is short enough.

    ``axes`` are coalesced, in bytes, in the order of the output. Each tile has at most ``most`` dimensions, and the
    first of ``types`` that allows it.
    """
    buffers = {axes: Chain((), ())}
    for _ in range(max_tiles):
        finished = [
            Chain((*chain.tiles, last), chain.scratch_sizes)
            for held, chain in buffers.items()
            if (last := as_one_tile(held, types, most))
        ]
        if finished:
            return min(finished, key=lambda chain: chain.expense)
        following: dict[Axes, Chain] = {}
        for held, chain in buffers.items():
            for written, longer in _longer(held, chain, types, most, copies_gaps=copies_gaps):
                if written not in following or longer.expense < following[written].expense:
                    following[written] = longer
        best_first = sorted(following.items(), key=lambda item: (len(dimensions_of(item[0])), item[1].expense))
        buffers = dict(best_first[:MAX_BUFFERS])
    return None


def _longer(
    held: Axes, chain: Chain, types: Sequence[TensorDataType], most: int, *, copies_gaps: bool
) -> Iterator[tuple[Axes, Chain]]:
    """Yield each layout that one more copy can write, with the chain that writes it."""
    largest = UINT_MAX * min(ELEMENT_SIZES[carrier] for carrier in types)
    for copy, written in _copies(held, copies_gaps=copies_gaps):
        size = math.prod(axis.length for axis in copy)
        if len(written) < len(held) and size <= largest and (tile := as_one_tile(coalesce(copy), types, most)):
            yield written, Chain((*chain.tiles, tile), (*chain.scratch_sizes, size))


def _copies(held: Axes, *, copies_gaps: bool) -> Iterator[tuple[list[Axis], Axes]]:
    """The axes of each copy that puts neighbours in order, and the tile's axes as they lie in what it writes."""
    for first in range(len(held)):
        for end in range(first + 1, len(held) + 1):
            placed = list(range(first, end))
            others = [i for i, axis in enumerate(held) if axis.source and i not in placed]
            others.sort(key=lambda i: held[i].source, reverse=True)
            if copies_gaps and others:
                yield from _with_a_run(held, placed, others)
            else:
                yield _packed(held, [*placed, *others])
                yield _packed(held, [*others, *placed])


def _packed(held: Axes, order: Sequence[int]) -> tuple[list[Axis], Axes]:
    strides = packed_strides([held[i].length for i in order])
    copy = [Axis(held[i].length, held[i].source, stride) for i, stride in zip(order, strides, strict=True)]
    return copy, _relocated(held, dict(zip(order, strides, strict=True)))


def _with_a_run(held: Axes, placed: Sequence[int], others: Sequence[int]) -> Iterator[tuple[list[Axis], Axes]]:
    """The copies that put the run inside what is placed, and around it."""
    advance = math.gcd(*(held[i].source for i in others))
    length = 1 + sum((held[i].length - 1) * held[i].source // advance for i in others)
    lengths = [held[i].length for i in placed]
    for run_is_inside in (True, False):
        if run_is_inside:
            *strides, run = packed_strides([*lengths, length])
        else:
            run, *strides = packed_strides([length, *lengths])
        copy = [Axis(held[i].length, held[i].source, stride) for i, stride in zip(placed, strides, strict=True)]
        copy.insert(len(copy) if run_is_inside else 0, Axis(length, advance, run))
        sources = dict(zip(placed, strides, strict=True)) | {i: held[i].source // advance * run for i in others}
        yield copy, _relocated(held, sources)


def _relocated(held: Axes, sources: dict[int, int]) -> Axes:
    return coalesce(Axis(axis.length, sources.get(i, 0), axis.destination) for i, axis in enumerate(held))
