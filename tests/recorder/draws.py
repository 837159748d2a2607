"""Random descriptors, the same ones for the same seed: near the edge of what is valid, recorded ones with changes, and
those of ``tests.helpers.strategies``.

They are JSON values in C names, as in the recorded files.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Final

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.directml.data_types import ELEMENT_SIZES
from dml_tile.directml.enums import UINT64_MAX, UINT_MAX
from dml_tile.geometry.layout import extent, packed_strides, round_up_4
from tests.helpers.recorded_answers import ROWS
from tests.helpers.strategies import invalid_tiles, nearly_valid_tiles, tiles

Tile = dict[str, Any]

FROM_STRATEGIES: Final = 200
"""One of so many descriptors is drawn by hypothesis, which takes fifty times as long as the others do."""

CRASHING: Final = 0.04
"""How many descriptors may have arrays that are null or too short, at which DirectML crashes, and a worker with it."""

DATA_TYPES: Final = (*range(1, 12), 1, 2, 5, 10, *range(14))
EDGES: Final = (0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 255, 256, 2**16, 2**30, 2**31 - 1, 2**31, UINT_MAX - 1, UINT_MAX)
ALIGNMENTS: Final = (0, 0, 0, 16, 64, 256, 2**31, 1, 2, 4, 8, 3, 15, 24, 48, UINT_MAX)
SMALL: Final = (1, 1, 2, 3, 4, 5)
LARGE: Final = (2**8, 2**11, 2**15, 2**16, 2**16 + 1, 2**20, 2**24, 2**30, 2**31, UINT_MAX)
TOTAL_CHANGES: Final = (-8, -4, -3, -1, 1, 2, 4, 100, 2**32, 2**33, 2**34, 2**35)
ODD_WITH_INVERSES: Final = ((3, 0xAAAAAAAB), (5, 0xCCCCCCCD), (7, 0xB6DB6DB7), (2**16, 2**16 + 1), (2, 2**31 + 1))
"""Sizes and repeats whose product is beyond a UINT, and small modulo 2^32."""


def draw(count: int, draw_seed: int | str) -> Iterator[TileOperatorDesc]:
    """``count`` descriptors, the same ones for the same count and seed."""
    random = Random(draw_seed)
    recorded = [row["desc"] for row in ROWS]
    by_hypothesis = iter(_from_strategies(count // FROM_STRATEGIES, draw_seed))
    for i in range(1, count + 1):
        drawn = next(by_hypothesis, None) if i % FROM_STRATEGIES == 0 else None
        if drawn is not None:
            yield drawn
            continue
        tile = near_valid(random) if random.random() < 0.7 else changed(random, copy.deepcopy(random.choice(recorded)))
        if random.random() >= CRASHING:
            _calm(tile)
        yield TileOperatorDesc.model_validate(tile)


def near_valid(random: Random) -> Tile:
    """A tile, strided or not, with its totals at or near their minimum, and mostly with a fault or two."""
    rank = random.randint(1, 8)
    sizes = [random.choice(SMALL) for _ in range(rank)]
    repeats = [random.choice(SMALL) for _ in range(rank)]
    for _ in range(random.choice((0, 0, 0, 1, 2))):
        array = random.choice((sizes, repeats))
        array[random.randrange(rank)] = random.choice(LARGE)
    if random.random() < 0.05:
        i = random.randrange(rank)
        sizes[i], repeats[i] = random.choice(ODD_WITH_INVERSES)
    data_type = random.choice(DATA_TYPES)
    products = [size * repeat & UINT_MAX for size, repeat in zip(sizes, repeats, strict=True)]
    tile: Tile = {
        "InputTensor": _tensor(random, data_type, sizes),
        "OutputTensor": _tensor(random, data_type, products),
        "RepeatsCount": rank,
        "Repeats": repeats,
    }
    tile["InputTensor"]["Flags"] = random.choice((0, 0, 0, 1))
    for _ in range(random.choice((0, 0, 1, 1, 2))):
        random.choice(FAULTS)(random, tile)
    return tile


def changed(random: Random, tile: Tile) -> Tile:
    """A recorded tile with a few of its values changed, wherever they are."""
    for _ in range(random.choice((1, 1, 2, 3, 4))):
        places = list(_places(tile))
        if not places:
            break
        holder, key = random.choice(places)
        holder[key] = _other(random, holder[key])
    return tile


def _calm(tile: Tile) -> None:
    """Give the tile arrays that are as long as their counts promise, and repeats."""
    tile["Repeats"] = long_enough(tile["Repeats"] or [], tile["RepeatsCount"])
    for tensor in filter(None, (tile["InputTensor"], tile["OutputTensor"])):
        for array in ("Sizes", "Strides"):
            if tensor[array]:
                tensor[array] = long_enough(tensor[array], tensor["DimensionCount"])


def long_enough(values: list[int], count: int) -> list[int]:
    return values + [1] * (min(count, 9) - len(values))


def _tensor(random: Random, data_type: int, sizes: list[int]) -> Tile:
    strides = random.choice(STRIDES)(random, sizes)
    implied = math.prod(sizes) if strides is None else extent(sizes, strides)
    if strides is not None and random.random() < 0.3:
        implied &= UINT_MAX
    total = round_up_4(implied * ELEMENT_SIZES.get(data_type, 4))
    if random.random() < 0.15:
        total += random.choice(TOTAL_CHANGES)
    return {
        "DataType": data_type,
        "Flags": 0,
        "DimensionCount": len(sizes),
        "Sizes": list(sizes),
        "Strides": strides,
        "TotalTensorSizeInBytes": min(max(total, 0), UINT64_MAX),
        "GuaranteedBaseOffsetAlignment": random.choice(ALIGNMENTS) if random.random() < 0.15 else 0,
    }


def packed(random: Random, sizes: list[int]) -> list[int]:
    return [stride & UINT_MAX for stride in packed_strides(sizes)]


def padded(random: Random, sizes: list[int]) -> list[int]:
    strides, reach = [], 1
    for size in reversed(sizes):
        strides.append(min(reach + random.choice((0, 0, 1, 3)), UINT_MAX))
        reach = strides[-1] * size
    return strides[::-1]


def permuted(random: Random, sizes: list[int]) -> list[int]:
    order = random.sample(range(len(sizes)), len(sizes))
    strides, reach = [0] * len(sizes), 1
    for i in order:
        strides[i] = min(reach, UINT_MAX)
        reach *= sizes[i]
    return strides


def _any_strides(random: Random, sizes: list[int]) -> list[int]:
    return [random.choice((*SMALL, 6, 8, 12, 24)) if random.random() < 0.9 else random.choice(EDGES) for _ in sizes]


def broadcast(random: Random, sizes: list[int]) -> list[int]:
    return [0 if random.random() < 0.4 else stride for stride in packed(random, sizes)]


def _at_the_wrap(random: Random, sizes: list[int]) -> list[int]:
    """Strides whose extent is at or around a multiple of 2^32."""
    strides = packed(random, sizes)
    walked = [i for i, size in enumerate(sizes) if size > 1]
    if walked:
        i = random.choice(walked)
        others = extent(sizes, strides) - (sizes[i] - 1) * strides[i]
        wanted = random.choice((1, 2, 3)) * 2**32 + random.choice((-2, -1, 0, 1, 2, 7)) - others
        strides[i] = min(max(wanted // (sizes[i] - 1) + random.choice((0, 0, 1)), 0), UINT_MAX)
    return strides


STRIDES: Final[tuple[Callable[[Random, list[int]], list[int] | None], ...]] = (
    *(lambda random, sizes: None,) * 8,
    *(packed, padded, padded, permuted, _any_strides, _any_strides, broadcast, _at_the_wrap),
)


def _uint(random: Random) -> int:
    return random.choice(EDGES) if random.random() < 0.8 else random.randint(0, UINT_MAX)


def _with_equal_counts(random: Random, tile: Tile) -> Tile:
    """All three counts are the same, whatever the arrays' lengths are."""
    tile["RepeatsCount"] = count = random.randint(0, 9)
    for tensor in filter(None, (tile["InputTensor"], tile["OutputTensor"])):
        tensor["DimensionCount"] = count
    return tile


def _with_another_struct(random: Random, tile: Tile) -> Tile:
    if tensor := tile[random.choice(("InputTensor", "OutputTensor"))]:
        tensor |= random.choice(({"NullDesc": True}, {"Type": random.choice((0, 2, 2**31, UINT_MAX))}))
    return tile


FAULTS: Final = (*(changed,) * 12, _with_equal_counts, _with_another_struct)


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each value inside a tile, by what holds it and where."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield value, key
        if isinstance(inner, dict | list):
            yield from _places(inner)


def _other(random: Random, value: Any) -> Any:
    match value:
        case bool() | None:
            return value
        case int():
            near = (value - 1, value + 1, value * 2, value // 2)
            return min(max(random.choice((*near, *near, _uint(random))), 0), UINT_MAX)
        case list() if value and random.random() < 0.7:
            kept = list(value)
            random.choice((kept.reverse, kept.pop, lambda: kept.append(random.choice(SMALL))))()
            return kept
        case dict() if random.random() < 0.8:
            return value
    return None


def _from_strategies(count: int, draw_seed: int | str) -> list[TileOperatorDesc]:
    if not count:
        return []
    drawn: list[TileOperatorDesc] = []

    @seed(draw_seed)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.one_of(tiles(), nearly_valid_tiles(), invalid_tiles()))
    def collect(desc: TileOperatorDesc) -> None:
        drawn.append(desc)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        collect()
    return drawn[:count]
