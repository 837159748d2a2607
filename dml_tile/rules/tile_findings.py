"""The rules of tiles together: all findings of a tile at a target, and the lowest level at which it has none.

An operator without fields, such as a null one or a private one, is taken for a tile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from itertools import chain, groupby, takewhile
from operator import mul
from typing import TYPE_CHECKING, Final

from dml_tile.descriptors.tile import TileOperatorDesc, described
from dml_tile.directml.enums import OWNED_BY_DML, FeatureLevel
from dml_tile.directml.targets import Target, tile_support
from dml_tile.findings import Edit, Finding, Severity, apply_rules
from dml_tile.rules.tensor import Operand, findings_of_tensor, ordinary_buffer, view_of
from dml_tile.rules.tile import (
    INPUT_OUTPUT_RULES,
    MAX_TEXELS,
    OPERATOR_RULES,
    REPEATS_RULES,
    TILE_BUFFER_RULES,
    TileView,
    elements_beyond_a_view,
    operator_is_checked,
)
from dml_tile.text import braced

if TYPE_CHECKING:
    from dml_tile.descriptors.operator import OperatorDesc

TARGETS: Final = {level: Target(level) for level in FeatureLevel}
_LEVELS_CHECKED_ALIKE: Final = groupby(
    FeatureLevel, lambda at: (tile_support(at), TARGETS[at].level.runtime.wraps_extents)
)
DISTINCT_LEVELS: Final = tuple(next(levels) for _, levels in _LEVELS_CHECKED_ALIKE)
"""The levels at which a tile can begin or cease to pass."""

NEWEST: Final = TARGETS[max(FeatureLevel)]

_OF_WHOLE: Final = (*INPUT_OUTPUT_RULES, *REPEATS_RULES)


@cache
def _lowest_level_of(data_type: int, dimension_count: int) -> FeatureLevel | None:
    """Return the lowest level whose row of Tile takes a tile that breaks no rule at the newest level."""
    rows = ((level, TARGETS[level].tile_support) for level in DISTINCT_LEVELS)
    takes = (level for level, row in rows if data_type in row.data_types and dimension_count in row.dimension_counts)
    return next(takes, None)


def findings(tile: TileOperatorDesc | OperatorDesc | None, target: Target) -> Iterable[Finding]:
    """Return the findings of a tile, or of an operator without fields, at a target."""
    if not isinstance(tile, TileOperatorDesc):
        return apply_rules(OPERATOR_RULES, tile, target)
    return () if is_ordinary_tile(tile, target) else _found_by_rules(tile, target)


def lowest_level(tile: TileOperatorDesc | OperatorDesc | None) -> FeatureLevel | None:
    """Return the lowest feature level from which on the tile passes; None if it does not at the newest."""
    if isinstance(tile, TileOperatorDesc) and is_ordinary_tile(tile, NEWEST):
        source, _ = described(tile)
        return _lowest_level_of(source.data_type, source.dimension_count)
    return lowest_passing(lambda target: findings(tile, target))


def not_looked_at(tile: TileOperatorDesc | OperatorDesc | None) -> tuple[str, ...]:
    """Return nothing: the rules cover all of a tile."""
    return ()


def lowest_passing(
    find: Callable[[Target], Iterable[Finding]], levels: Iterable[FeatureLevel] = DISTINCT_LEVELS
) -> FeatureLevel | None:
    """Return the lowest of some levels from which on no finding prevents creation; None if one does at the newest.

    A higher level may refuse what a lower level takes.
    """
    newest_first = sorted(levels, reverse=True)
    passing = takewhile(lambda level: not any(map(blocks_creation, find(TARGETS[level]))), newest_first)
    return min(passing, default=None)


def blocks_creation(finding: Finding) -> bool:
    """Return True if a finding prevents creating an operator or compiling a graph here."""
    return finding.severity > Severity.NOTE or finding.rule == operator_is_checked.id


def _found_by_rules(tile: TileOperatorDesc, target: Target) -> Iterator[Finding]:
    """Yield the findings of all rules of tiles."""
    operands = Operand("InputTensor", tile.input_tensor), Operand("OutputTensor", tile.output_tensor, is_output=True)
    views = [view_of(operand) for operand in operands]
    for operand, view in zip(operands, views, strict=True):
        of_tile = apply_rules(TILE_BUFFER_RULES, view, target) if view else ()
        for finding in chain(findings_of_tensor(operand, view, target), of_tile):
            is_edited = any(each.edits for each in finding.tries)
            yield _with_repeats(finding, tile.repeats or ()) if is_edited else finding
    yield from apply_rules(_OF_WHOLE, TileView(tile, *views), target)


def _with_repeats(finding: Finding, repeats: tuple[int, ...]) -> Finding:
    """Return a finding whose edit gives a tensor leading sizes of 1, with as many leading repeats of 1."""
    sizes = next((value for path, value in finding.edits if path.endswith(".Sizes")), ())
    if len(sizes) <= len(repeats):
        return finding
    wanted = (1,) * (len(sizes) - len(repeats)) + repeats
    edits = *finding.edits, Edit("Repeats", wanted), Edit("RepeatsCount", len(wanted))
    edited, *others = finding.tries
    edited = edited._replace(text=f"{edited.text}, and set Repeats to {braced(wanted)}", edits=edits)
    return replace(finding, tries=(edited, *others))


def is_ordinary_tile(tile: TileOperatorDesc, target: Target) -> bool:
    """Return True for a common packed tile, which breaks no rule (a property test shows it)."""
    source = ordinary_buffer(tile.input_tensor, OWNED_BY_DML)
    output = ordinary_buffer(tile.output_tensor, allowed_flags=0)
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
