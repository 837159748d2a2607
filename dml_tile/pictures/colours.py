"""Colours of the copies in a picture: no two that touch have the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise

Cells = Sequence[int | None]
"""A row of a picture: the number of the copy that each cell belongs to, None for no copy's."""


def colours_of(rows: Sequence[Cells], preferred: Callable[[int], int], count: int) -> dict[int, int]:
    """A colour, from 0 to ``count - 1``, for each copy in the rows.

    Copies touch where cells of theirs are beside or above each other, or the last and the first of two rows. Each gets
    its preferred colour where no copy that it touches has that one, those that touch the most colours first.
    """
    touching: dict[int, set[int]] = {copy: set() for row in rows for copy in row if copy is not None}
    for one, other in _touching(rows):
        touching[one].add(other)
        touching[other].add(one)
    taken: dict[int, set[int]] = {copy: set() for copy in touching}
    colours: dict[int, int] = {}
    while taken:
        copy = max(taken, key=lambda each: (len(taken[each]), len(touching[each]), -each))
        used = taken.pop(copy)
        choices = (preferred(copy), *range(count))
        colours[copy] = colour = next((each for each in choices if each not in used), choices[0])
        for other in touching[copy] & taken.keys():
            taken[other].add(colour)
    return colours


def _touching(rows: Sequence[Cells]) -> Iterator[tuple[int, int]]:
    beside = (pair for row in rows for pair in pairwise(row))
    above = (pair for row, below in pairwise(rows) for pair in zip(row, below, strict=False))
    around = ((row[-1], below[0]) for row, below in pairwise(rows) if row and below)
    for pairs in (beside, above, around):
        for one, other in pairs:
            if one is not None and other is not None and one != other:
                yield one, other
