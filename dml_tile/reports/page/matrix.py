"""The page's matrix of tiles and targets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from dml_tile.reports.markup.elements import Cell, Markup, body, element, joined, name, region, table
from dml_tile.reports.tile_row import SIGNS, VERDICTS, TileRow
from dml_tile.reports.wording import AT_LEAST, NOWHERE

_RANKS: Final = {word: str(rank) for rank, word in enumerate(VERDICTS)}
_ABOVE_ALL_LEVELS: Final = "9"


def matrix(rows: Sequence[TileRow], targets: Sequence[str]) -> Iterator[Markup]:
    """The table: a tile a row, a target a column."""
    columns = ("Tile", *targets, "Lowest level", "Oldest Windows")
    bodies = (_row(row, i, targets, columns) for i, row in enumerate(rows, start=1))
    yield from region("Tiles by target", table(columns, bodies))


def tile_id(number: int) -> str:
    """The identifier of the findings of the tile in that row of the matrix; rows count from 1."""
    return f"tile-{number}"


def shown_name(row: TileRow) -> Markup:
    """The source of a tile, and its place there."""
    return joined(name(row.source), "#", name(row.pointer)) if row.pointer else name(row.source)


def has_details(row: TileRow) -> bool:
    """True if there is more to tell of a tile than the matrix does."""
    return bool(row.findings or row.unknown or row.notes)


def verdict(word: str) -> Markup:
    """A verdict, which its word and its sign tell, and its colour only besides."""
    sign = element("span", SIGNS[word], aria_hidden="true")
    return element("span", sign, " ", word, class_=f"verdict {word.replace(' ', '-')}")


def level_key(level: str) -> str:
    """The sort key of a level in words."""
    return _ABOVE_ALL_LEVELS if level == NOWHERE else level.removeprefix(AT_LEAST)


def _row(row: TileRow, number: int, targets: Iterable[str], columns: Sequence[str]) -> Markup:
    tile = shown_name(row)
    if has_details(row):
        tile = element("a", tile, href=f"#{tile_id(number)}")
    if row.tile:
        tile = joined(tile, " ", element("code", name(row.tile), class_="tile"))
    cells = [Cell(tile, row.name)]
    for target in targets:
        word = row.verdicts.get(target, "")
        cells.append(Cell(verdict(word), _RANKS[word]) if word else Cell(""))
    cells.append(Cell(row.lowest_level, level_key(row.lowest_level)))
    cells.append(Cell(row.oldest_windows, level_key(row.lowest_level)))
    return body(columns, cells, data_tile=tile_id(number), **_filtered_by(row))


def _filtered_by(row: TileRow) -> dict[str, str]:
    """What the page's script chooses tiles by: verdicts with their targets, and rules."""
    verdicts = [*row.verdicts.values(), *(f"{word} at {target}" for target, word in row.verdicts.items())]
    return {"data_verdicts": "|".join(dict.fromkeys(verdicts)), "data_rules": " ".join(row.rules)}
