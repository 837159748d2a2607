"""By search: where UINT8 cannot be lowered to 2-byte elements, no chain of them writes the same bytes."""

from __future__ import annotations

from itertools import product
from typing import Final

from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.errors import DmlError
from dml_tile.lowering.lower import lower

BYTES: Final = 8
UNTOUCHED: Final = -1
Dimensions = tuple[tuple[int, int, int, int], ...]
"""Of each: its size, its repeat, and its strides in the input and the output."""

Contents = tuple[int, ...]
"""For each byte of a buffer, the byte of the input that it holds."""

INPUT: Final[Contents] = tuple(range(BYTES))
BLANK: Final[Contents] = (UNTOUCHED,) * BYTES


def tiled(source: Contents, size: int, dimensions: Dimensions) -> Contents | None:
    """Returns what a tile of elements of ``size`` bytes writes over a blank buffer; None where it leaves a buffer."""
    written = list(BLANK)
    for index in product(*(range(length * repeat) for length, repeat, _, _ in dimensions)):
        read = write = 0
        for i, (length, _, gather, spread) in zip(index, dimensions, strict=True):
            read, write = read + i % length * gather * size, write + i * spread * size
        if max(read, write) + size > BYTES:
            return None
        written[write : write + size] = source[read : read + size]
    return tuple(written)


def dimensions(elements: int, most: int) -> list[Dimensions]:
    """All tiles of two dimensions with up to so many elements, and strides of up to ``most``, that never overlap."""
    found: list[Dimensions] = []
    for sizes in product(range(1, elements + 1), repeat=4):
        outer, outer_repeat, inner, inner_repeat = sizes
        if outer * outer_repeat * inner * inner_repeat > elements:
            continue
        walked = [range(most + 1) if size > 1 else (0,) for size in (outer, inner)]
        spread = [range(1, most + 1) if count > 1 else (0,) for count in (outer * outer_repeat, inner * inner_repeat)]
        for strides in product(*walked, *spread):
            places = [
                i * strides[2] + j * strides[3]
                for i in range(outer * outer_repeat)
                for j in range(inner * inner_repeat)
            ]
            if len(set(places)) == len(places):
                found.append(
                    ((outer, outer_repeat, strides[0], strides[2]), (inner, inner_repeat, strides[1], strides[3]))
                )
    return found


def reachable() -> set[Contents]:
    """Returns all that chains of 2-byte tiles of any length, and of any layout between them, can write."""
    tiles = dimensions(BYTES // 2, BYTES // 2 - 1)
    known: set[Contents] = set()
    new = {INPUT}
    while new:
        new = {result for source in new for tile in tiles if (result := tiled(source, 2, tile))} - known
        known |= new
    return known


def refusals(desc: TileOperatorDesc) -> set[str]:
    """Return the rules that keep a tile from being lowered to level 1_0."""
    try:
        lower(desc, "1_0")
    except DmlError as error:
        return {finding.rule for finding in error.findings}
    return set()


def test_bytes_are_lowered_wherever_elements_of_two_can_do_it() -> None:
    """4-byte elements are pairs of 2-byte ones, so what these cannot do, no type of level 1_0 can."""
    possible = reachable()
    outcomes = {True: 0, False: 0}
    for outer, inner in dimensions(6, 5):
        wanted = tiled(INPUT, 1, (outer, inner))
        if wanted is None:
            continue
        desc = TileOperatorDesc.from_input(
            data_type="UINT8",
            sizes=[outer[0], inner[0]],
            repeats=[outer[1], inner[1]],
            strides=[outer[2], inner[2]],
            output_strides=[outer[3], inner[3]],
        )
        refused = refusals(desc)
        assert refused == (set() if wanted in possible else {"DML-LOWER-elements"})
        outcomes[not refused] += 1
    assert outcomes[True] > 30
    assert outcomes[False] > 100
