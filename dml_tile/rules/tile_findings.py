"""The rules of tiles together: all findings of a tile at a target, and the lowest level at which it has none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import groupby
from operator import mul
from typing import Final

from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.directml.enums import OWNED_BY_DML, FeatureLevel, TensorFlags
from dml_tile.directml.targets import Target, tile_support
from dml_tile.findings import Finding, Severity, apply_rules
from dml_tile.rules.tensor import BUFFER_RULES, TENSOR_RULES, Operand, ordinary_buffer, view_of
from dml_tile.rules.tile import (
    INPUT_OUTPUT_RULES,
    MAX_TEXELS,
    REPEATS_RULES,
    TILE_BUFFER_RULES,
    TileView,
    elements_beyond_a_view,
    operator_is_checked,
)

TARGETS: Final = {level: Target(level) for level in FeatureLevel}
_LEVELS_CHECKED_ALIKE: Final = groupby(
    FeatureLevel, lambda at: (tile_support(at), TARGETS[at].level.runtime.wraps_extents)
)
DISTINCT_LEVELS: Final = tuple(next(levels) for _, levels in _LEVELS_CHECKED_ALIKE)
"""The levels at which a tile can begin or cease to pass."""

NEWEST: Final = TARGETS[max(FeatureLevel)]

_OF_BUFFERS: Final = (*BUFFER_RULES, *TILE_BUFFER_RULES)
_OF_WHOLE: Final = (*INPUT_OUTPUT_RULES, *REPEATS_RULES)


@cache
def _lowest_level_of(data_type: int, dimension_count: int) -> FeatureLevel | None:
    """Return the lowest level whose row of Tile takes a tile that breaks no rule at the newest level."""
    rows = ((level, TARGETS[level].tile_support) for level in DISTINCT_LEVELS)
    takes = (level for level, row in rows if data_type in row.data_types and dimension_count in row.dimension_counts)
    return next(takes, None)


_NO_FLAGS: Final = int(TensorFlags.NONE)


def findings_of_tile(tile: TileOperatorDesc, target: Target) -> Iterable[Finding]:
    """Return the findings of a tile at a target."""
    return () if is_ordinary_tile(tile, target) else _found_by_rules(tile, target)


def lowest_level_of_tile(tile: TileOperatorDesc) -> FeatureLevel | None:
    """Return the lowest feature level from which on the tile passes; None if it does not at the newest."""
    if is_ordinary_tile(tile, NEWEST) and (source := view_of(Operand("", tile.input_tensor))):
        return _lowest_level_of(source.desc.data_type, source.desc.dimension_count)
    return next((level for level in DISTINCT_LEVELS if passes(findings_of_tile(tile, TARGETS[level]))), None)


def passes(findings: Iterable[Finding]) -> bool:
    """Return True if no finding prevents creating an operator or compiling a graph."""
    return not any(map(blocks_creation, findings))


def blocks_creation(finding: Finding) -> bool:
    """Return True if a finding prevents creating an operator or compiling a graph here."""
    return finding.severity > Severity.NOTE or finding.rule == operator_is_checked.id


def _found_by_rules(tile: TileOperatorDesc, target: Target) -> Iterator[Finding]:
    """Yield the findings of all rules of tiles."""
    operands = Operand("InputTensor", tile.input_tensor), Operand("OutputTensor", tile.output_tensor, is_output=True)
    whole = TileView(tile, view_of(operands[0]), view_of(operands[1]))
    for operand, view in zip(operands, (whole.input, whole.output), strict=True):
        yield from apply_rules(TENSOR_RULES, operand, target)
        if view is not None:
            yield from apply_rules(_OF_BUFFERS, view, target)
    yield from apply_rules(_OF_WHOLE, whole, target)


def is_ordinary_tile(tile: TileOperatorDesc, target: Target) -> bool:
    """Return True for a common packed tile, which breaks no rule (a property test shows it)."""
    source = ordinary_buffer(tile.input_tensor, OWNED_BY_DML)
    output = ordinary_buffer(tile.output_tensor, _NO_FLAGS)
    if source is None or output is None:
        return False
    support, repeats = target.tile_support, tile.repeats
    is_small = source.total_tensor_size_in_bytes <= MAX_TEXELS >= output.total_tensor_size_in_bytes
    return (
        (is_small or not (elements_beyond_a_view(source, target) or elements_beyond_a_view(output, target)))
        and source.data_type in support.data_types
        and source.dimension_count in support.dimension_counts
        and target.typed_uav_loads
        and repeats is not None
        and 0 not in repeats
        and source.data_type == output.data_type  # so the output is supported too
        and source.dimension_count == output.dimension_count == tile.repeats_count == len(repeats)
        and tuple(map(mul, source.sizes or (), repeats)) == output.sizes
    )
