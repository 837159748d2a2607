"""Tile's support table, and the tables of what carries which feature level, for ``dml-tile levels``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rich.table import Table

from dml_tile.data_types import TensorDataType, of_kinds
from dml_tile.enums import FeatureLevel
from dml_tile.targets import DIRECTML_VERSIONS, TILE_SUPPORT, WINDOWS_RELEASES, Target, TileSupport

KINDS: Final = {kind: of_kinds(kind) for kind in dict.fromkeys(row.kind for row in sorted(TILE_SUPPORT[-1].data_types))}
"""The data types that Tile has in the same rows."""


def support_table() -> Table:
    """Tile's documented rows."""
    table = Table("since level", "dimensions", "data types", title="Tile, input and output")
    for row in TILE_SUPPORT:
        table.add_row(row.since.short, dimension_counts(row), data_types(row.data_types))
    return table


def target_table() -> Table:
    """The tiles that each Windows release and DirectML version accepts; narrow enough for 80 columns."""
    table = Table("target", "level", "dimensions", "data types", "DirectML", title="What accepts which tile")
    for release in WINDOWS_RELEASES:
        carried = f"{release.directml}, inferred" if release.note else release.directml
        table.add_row(release.name, *_accepted(release.name), carried)
    table.add_section()
    for row in DIRECTML_VERSIONS:
        table.add_row(f"directml-{row.version}", *_accepted(f"directml-{row.version}"), row.remark)
    table.caption = "int: 8 to 32 bits, signed and unsigned; int64: signed and unsigned"
    return table


def levels_table() -> Table:
    """The feature levels, with the DirectML versions that bring them."""
    table = Table("level", "value", "DirectML", title="Feature levels")
    for level in FeatureLevel:
        versions = [f"{row.version}.x" for row in DIRECTML_VERSIONS if row.level == level]
        table.add_row(level.short, f"{level.value:#x}", ", ".join(versions))
    return table


def dimension_counts(row: TileSupport) -> str:
    """A row's dimension counts: ``4``, or ``1 to 8``."""
    first, last = row.dimension_counts[0], row.dimension_counts[-1]
    return str(first) if first == last else f"{first} to {last}"


def data_types(types: Iterable[TensorDataType]) -> str:
    """Data types in DirectML.h's order."""
    return " ".join(data_type.name for data_type in sorted(types))


def _accepted(name: str) -> tuple[str, str, str]:
    """A target's level, dimension counts and kinds of data types."""
    target = Target.parse(name)
    support = target.tile_support
    kinds = (kind for kind, types in KINDS.items() if support.data_types.issuperset(types))
    return target.feature_level.short, dimension_counts(support), " ".join(kinds)
