"""Checks tiles that reach DirectML through a back end.

check_via()             the findings on a request, by the back end's name
check_node()            the findings on a model's tile, and a remark
lowest_level_through()  the lowest feature level at which a model's tile has no findings
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from dml_tile.back_ends import BackEnd, Fate, Handover, back_end_named
from dml_tile.back_ends.rules import BACK_END_RULES, back_end_hands_over_a_tile
from dml_tile.dialects.directml import sizes_fit
from dml_tile.dialects.request import Request
from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.targets import DATA_TYPES, Target, TargetLike
from dml_tile.findings import Against, Finding, bases_of, found_by
from dml_tile.readers.model_tile import TileNode
from dml_tile.rules.check import DISTINCT_LEVELS, check
from dml_tile.simulation.target import resolve


class ThroughBackEnd(NamedTuple):
    """The findings on a tile through a back end; if there are none, a ``note`` on what is handed over, or empty."""

    findings: tuple[Finding, ...]
    note: str


def check_via(
    request: Request, target: TargetLike | None, back_end: str, against: Against = "both"
) -> tuple[Finding, ...]:
    """All findings of a tile that goes through the named back end: the back end's own, else those of its descriptor.

    ``target`` None means the current target. ``against`` applies to the descriptor, not to the back end's own findings.
    A tile that another operator replaces, and one that is not handed to DirectML, have a note. Raises ValueError for an
    unknown target, back end or ``against``.
    """
    bases_of(against)
    chosen, target = back_end_named(back_end), resolve(target)
    return _findings(request, chosen.hand_over(request, target), chosen, target, against)


def check_node(node: TileNode, target: Target, back_end: BackEnd, against: Against = "both") -> ThroughBackEnd:
    """The findings on a model's tile that its dialect accepts, and the back end's note.

    Of a tile that is known in part only, these are the back end's own findings, those on the data type, and those on
    known sizes that fit no UINT; also those on the number of dimensions and on known repeats, where the former is known
    and the back end keeps it. A tile that the back end folds away has a note that says so.
    """
    if node.folded and back_end.folds_constants and target.feature_level >= back_end.minimum_level:
        folded = Handover(Fate.NOTHING, note=node.folded)
        return ThroughBackEnd(_own_findings(folded, back_end, target), "")
    request = node.request
    handover = back_end.hand_over(request, target)
    findings = _findings(request, handover, back_end, target, against)
    if node.unknown:
        findings = _known_findings(findings, node, back_end, target)
    return ThroughBackEnd(findings, handover.note if handover.desc and not findings else "")


def lowest_level_through(node: TileNode, back_end: BackEnd) -> FeatureLevel | None:
    """The lowest feature level at which a model's tile has no findings, against both; None if it has some at each."""
    # a back end may ask which data types the device has
    levels = sorted({*DISTINCT_LEVELS, *(since for since, _, _ in DATA_TYPES), back_end.minimum_level})
    return next((level for level in levels if not check_node(node, Target(level), back_end).findings), None)


def _findings(
    request: Request, handover: Handover, back_end: BackEnd, target: Target, against: Against
) -> tuple[Finding, ...]:
    own = _own_findings(handover, back_end, target)
    lost = tuple(sizes_fit.findings(request, target))  # a back end that converts to UINT describes another tile
    if own and (handover.fate in (Fate.ELSEWHERE, Fate.REFUSED) or not lost):
        return own
    return lost + (check(handover.desc, target, against) if handover.desc else ())


def _own_findings(handover: Handover, back_end: BackEnd, target: Target) -> tuple[Finding, ...]:
    found = found_by(BACK_END_RULES, handover, target)
    return tuple(replace(finding, url=back_end.source) for finding in found)


def _known_findings(
    findings: tuple[Finding, ...], node: TileNode, back_end: BackEnd, target: Target
) -> tuple[Finding, ...]:
    """Those of the findings that do not depend on what is known at run time only."""
    # another operator may depend on what is known at run time only
    kept_rules = {sizes_fit.id, *(rule.id for rule in BACK_END_RULES)} - {back_end_hands_over_a_tile.id}
    fields: tuple[str, ...] = (".DataType",)
    if back_end.keeps_dimensions and node.shape is not None:
        # what is assumed of an unknown repeat breaks no rule
        fields += (".DimensionCount", *(f"Repeats[{i}]" for i in range(len(node.shape))))
    known = tuple(finding for finding in findings if finding.rule in kept_rules or finding.path.endswith(fields))
    if node.has_computed_repeats and back_end.needs_constant_repeats:
        note = "they are computed at run time; what is taken is numbers, when a graph is built"
        known += _own_findings(Handover(Fate.REFUSED, note=note, path="Repeats"), back_end, target)
    return known
