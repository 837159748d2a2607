"""Writes ``dml-tile levels``: tables of Tile and of targets, and a page of all operators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from rich.table import Table

from dml_tile.directml import pages
from dml_tile.directml.data_types import types_of
from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.levels import LEVELS
from dml_tile.directml.operator_table import tables_of
from dml_tile.directml.operators import operators
from dml_tile.directml.targets import DIRECTML_VERSIONS, PACKAGES, WINDOWS_RELEASES, Target, oldest_windows, tile_rows
from dml_tile.reports.operator_levels import rows_of, sentences, types_text
from dml_tile.text import counts_text

KINDS: Final = {kind: types_of(kind) for kind in dict.fromkeys(row.kind for row in sorted(tile_rows()[-1].data_types))}
"""The data types that Tile has in the same rows."""

KINDS_TEXT: Final = "float: 16 and 32 bits; int: 8 to 32 bits, signed and unsigned; int64: signed and unsigned"
"""The kinds in words."""


NOT_TAKEN: Final = "-"

_MATRIX_HEADINGS: Final = ("Windows", "DirectML in the box", "feature level", *KINDS)
_PACKAGE_HEADINGS: Final = ("package", "releases", "DirectML", "level")


def tables() -> list[Table | str]:
    """Return what accepts which tile, the packages, Tile's documented rows and the levels, with blank lines between.

    All are within 80 columns.
    """
    made = Table("target", "level", "dimensions", "data types", "DirectML", title="What accepts which tile")
    for release, directml, *_ in matrix_rows():
        made.add_row(release, *_accepted(release), directml)
    made.add_section()
    for version in DIRECTML_VERSIONS:
        name = f"directml-{version.version}"
        made.add_row(name, *_accepted(name), version.remark)
    made.columns[0].no_wrap = True  # a name that is cut off is no target
    made.caption = KINDS_TEXT
    support = ((row.since.short, counts_text(row.dimension_counts), types_text(row.data_types)) for row in tile_rows())
    return [
        made,
        "",
        _table("The DirectML in packages", _PACKAGE_HEADINGS, _package_rows()),
        "",
        _table("Tile, input and output", ("since level", "dimensions", "data types"), support),
        "",
        _table("Feature levels", ("level", "value", "DirectML"), _level_rows()),
    ]


def _table(title: str, headings: Iterable[str], rows: Iterable[Iterable[str]]) -> Table:
    table = Table(*headings, title=title)
    for row in rows:
        table.add_row(*row)
    return table


def _accepted(name: str) -> tuple[str, str, str]:
    """Return a target's level, dimension counts and kinds of data types."""
    target = Target.parse(name)
    return target.feature_level.short, counts_text(target.tile_support.dimension_counts), " ".join(_kinds_taken(target))


def _kinds_taken(target: Target) -> list[str]:
    return [kind for kind, types in KINDS.items() if target.tile_support.data_types.issuperset(types)]


def _package_rows() -> Iterator[tuple[str, ...]]:
    for row in PACKAGES:
        releases = row.first if row.first == row.last else f"{row.first} to {row.last}"
        level = Target.parse(f"directml-{row.directml}").feature_level.short if row.directml else "-"
        yield row.package, releases, row.directml or "none", level


def _level_rows() -> Iterator[tuple[str, ...]]:
    for level in FeatureLevel:
        versions = [f"{row.version}.x" for row in DIRECTML_VERSIONS if row.level == level]
        yield level.short, f"{level.value:#x}", ", ".join(versions)


def matrix_rows() -> Iterator[tuple[str, ...]]:
    """Yield the Windows releases, the oldest first: DirectML in the box, its level, and dimension counts by kind."""
    for release in WINDOWS_RELEASES:
        target = Target.parse(release.name)
        counts, taken = counts_text(target.tile_support.dimension_counts), _kinds_taken(target)
        directml = f"{release.directml} inferred" if release.note else release.directml
        dimensions = (counts if kind in taken else NOT_TAKEN for kind in KINDS)
        yield release.name, directml, target.feature_level.short, *dimensions


def matrix_markdown() -> str:
    """Return the matrix as a Markdown table."""
    lines = _MATRIX_HEADINGS, ["---"] * len(_MATRIX_HEADINGS), *matrix_rows()
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def levels_html() -> str:
    """Return a page of all operators, with a search field, that needs nothing else."""
    from dml_tile.reports.templates import html_page  # with its library

    page = html_page(
        "levels",
        matrix_headings=_MATRIX_HEADINGS,
        matrix=zip(WINDOWS_RELEASES, matrix_rows(), strict=True),
        all_counts=counts_text(tile_rows()[-1].dimension_counts),
        not_taken=NOT_TAKEN,
        kinds=KINDS_TEXT,
        tile_page=pages.TILE,
        package_headings=_PACKAGE_HEADINGS,
        packages=_package_rows(),
        measured=[row.level.short for row in LEVELS.values() if row.operators_are_measured],
        operators=[(operator, [*tables_of(operator)]) for operator in operators().values()],
        level_text=_level_text,
        rows_of=rows_of,
        counts_text=counts_text,
        types_text=types_text,
        sentences=sentences,
    )
    return "".join(page)


def _level_text(level: FeatureLevel) -> str:
    """Return a level, with the oldest Windows that has it in the box."""
    windows = oldest_windows(level)
    return f"{level.short} ({windows or 'no Windows'})"
