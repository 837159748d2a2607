"""Tile's support table, and the feature levels of Windows releases and DirectML versions, for ``dml-tile levels``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from rich import box
from rich.table import Table

from dml_tile.directml import pages
from dml_tile.directml.data_types import TensorDataType, types_of
from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.targets import DIRECTML_VERSIONS, WINDOWS_RELEASES, Target, TileSupport, tile_rows
from dml_tile.reports.markup import Markup, element, region

KINDS: Final = {kind: types_of(kind) for kind in dict.fromkeys(row.kind for row in sorted(tile_rows()[-1].data_types))}
"""The data types that Tile has in the same rows."""


def support_table() -> Table:
    """Return Tile's documented rows."""
    table = Table("since level", "dimensions", "data types", title="Tile, input and output")
    for row in tile_rows():
        names = " ".join(data_type.name for data_type in sorted(row.data_types))
        table.add_row(row.since.short, dimension_counts(row), names)
    return table


def target_table() -> Table:
    """Return the tiles that each Windows release and DirectML version accepts; narrow enough for 80 columns."""
    table = Table("target", "level", "dimensions", "data types", "DirectML", title="What accepts which tile")
    for row in matrix_rows():
        table.add_row(row.release, *_accepted(row.release), row.directml)
    table.add_section()
    for version in DIRECTML_VERSIONS:
        name = f"directml-{version.version}"
        table.add_row(name, *_accepted(name), version.remark)
    table.caption = "int: 8 to 32 bits, signed and unsigned; int64: signed and unsigned"
    return table


def levels_table() -> Table:
    """Return the feature levels, with the DirectML versions that bring them."""
    table = Table("level", "value", "DirectML", title="Feature levels")
    for level in FeatureLevel:
        versions = [f"{row.version}.x" for row in DIRECTML_VERSIONS if row.level == level]
        table.add_row(level.short, f"{level.value:#x}", ", ".join(versions))
    return table


def dimension_counts(row: TileSupport) -> str:
    """Return a row's dimension counts: ``4``, or ``1 to 8``."""
    first, last = row.dimension_counts[0], row.dimension_counts[-1]
    return str(first) if first == last else f"{first} to {last}"


def _accepted(name: str) -> tuple[str, str, str]:
    """Return a target's level, dimension counts and kinds of data types."""
    target = Target.parse(name)
    support = target.tile_support
    kinds = (kind for kind, types in KINDS.items() if support.data_types.issuperset(types))
    return target.feature_level.short, dimension_counts(support), " ".join(kinds)


NOT_TAKEN: Final = "-"

_TITLE: Final = "Dimensions of the tiles that Windows takes, by data type"
_TYPES: Final = tuple(sorted(tile_rows()[-1].data_types))
_HEADINGS: Final = ["Windows", "DirectML in the box", "feature level", *(each.name for each in _TYPES)]
_WIDTH: Final = 79
"""The width of the matrix in a terminal, in characters, with a column for each data type."""


class MatrixRow(NamedTuple):
    """A Windows release, its page, the DirectML in its box, that one's feature level, and dimension counts by type."""

    release: str
    page: str
    directml: str
    level: str
    dimensions: dict[TensorDataType, str]


def matrix_rows() -> Iterator[MatrixRow]:
    """Yield the rows of the matrix, the oldest release first."""
    for release in WINDOWS_RELEASES:
        target = Target.parse(release.name)
        row = target.tile_support
        taken = {data_type: dimension_counts(row) if data_type in row.data_types else NOT_TAKEN for data_type in _TYPES}
        directml = f"{release.directml}, inferred" if release.note else release.directml
        yield MatrixRow(release.name, release.page, directml, target.feature_level.short, taken)


def matrix_table(width: int) -> Table:
    """Return the matrix for a terminal; where that is narrow, data types that are taken alike share a column."""
    if width >= _WIDTH:
        columns = {data_type.name.replace("T", "T\n"): data_type for data_type in _TYPES}
    else:
        columns = {kind: min(types) for kind, types in KINDS.items()}
    table = Table(title=_TITLE, box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("Windows", no_wrap=True)
    for heading in columns:
        table.add_column(heading, justify="center", no_wrap=True)
    for row in matrix_rows():
        table.add_row(row.release, *(row.dimensions[data_type].replace(" to ", "-") for data_type in columns.values()))
    table.caption = f"{NOT_TAKEN}: not taken"
    return table


def matrix_markdown() -> str:
    """Return the matrix as a Markdown table."""
    lines = [_HEADINGS, ["---"] * len(_HEADINGS)]
    lines += [[row.release, row.directml, row.level, *row.dimensions.values()] for row in matrix_rows()]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def matrix_section() -> Iterator[str]:
    """Yield the matrix as a section of an HTML page."""
    head = element("thead", element("tr", *(element("th", heading, scope="col") for heading in _HEADINGS)), "\n")
    rows = (element("tr", *_cells(row)) for row in matrix_rows())
    table = element("table", head, element("tbody", *rows), class_="matrix")
    yield element("h2", _TITLE)
    yield from region(_TITLE, [table])
    source = element("a", "Tile's tensor support", href=pages.TILE)
    yield element("p", f"{NOT_TAKEN}: not taken. The dimensions and data types are in ", source, ".")


def _cells(row: MatrixRow) -> Iterator[Markup]:
    yield element("th", row.release, scope="row")
    yield element("td", element("a", row.directml, href=row.page))
    yield element("td", row.level)
    for dimensions in row.dimensions.values():
        kinds = {NOT_TAKEN: "none", dimension_counts(tile_rows()[-1]): "all"}
        yield element("td", dimensions, class_=kinds.get(dimensions, "some"))
