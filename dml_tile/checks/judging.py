"""Judges an operator, a descriptor's or a model's Tile: one result for each target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dml_tile.checks.result import Result
from dml_tile.checks.verdict import verdict_of
from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.targets import DEFAULT_TARGET, Target
from dml_tile.findings import Against, Finding, Position, apply_rules
from dml_tile.readers.item import Item
from dml_tile.rules.descriptor import findings_of, findings_of_null_graph, lowest_level, not_checked, not_looked_at

if TYPE_CHECKING:
    from dml_tile.back_ends import BackEnd
    from dml_tile.descriptors.graph import Descriptor
    from dml_tile.dxdispatch.rules import ModelPart


def judged(
    source: str,
    item: Item,
    targets: Sequence[Target],
    against: Against,
    via: BackEnd | None = None,
    *,
    locates_all: bool = False,
) -> Iterator[Result]:
    """Yield the results of a source's item, one for each target; a model's tile goes through the back end ``via``.

    With ``locates_all``, each descriptor has its position.
    """
    if (node := item.node) is not None:
        from dml_tile.checks.via import judged_node

        yield from judged_node(source, node, targets, against, None if node.error else via)
        return
    own: tuple[Finding, ...] = ()
    desc, other, part = item.desc, item.other, item.part
    if item.capture:
        from dml_tile.rules.capture import CAPTURE_RULES, with_unmeasured_softened

        own = tuple(apply_rules(CAPTURE_RULES, item.capture, DEFAULT_TARGET))
    is_read = other is None and item.is_operator
    if other is not None:
        own += (not_checked(other),)
    lowest = _lowest_level(desc, part) if is_read else None
    unseen = not_looked_at(desc)
    places = {"": item.position("")} if locates_all else dict[str, Position | None]()
    placed = replace(item, source=source, places=places)
    for target in targets:
        findings = own
        if part:
            from dml_tile.dxdispatch.rules import part_findings

            findings = part_findings(part, target) + own
            if not (findings or is_read):
                continue
        if item.is_null_graph:
            findings += findings_of_null_graph(target, against)
        elif is_read:
            findings += findings_of(desc, target, against)
        if item.capture:
            findings = with_unmeasured_softened(findings, item.capture, target)
        for finding in findings:
            if finding.path not in places:
                places[finding.path] = item.position(finding.path)
        yield Result(placed, target, verdict_of(findings, (), unseen), findings, lowest, unseen)


def _lowest_level(desc: Descriptor | None, part: ModelPart | None) -> FeatureLevel | None:
    """Return the lowest level at which a descriptor passes, with graphs if DxDispatch compiles it as a graph."""
    lowest = lowest_level(desc)
    if lowest is None or part is None:
        return lowest
    from dml_tile.dxdispatch.rules import graphs_can_be_compiled

    levels = (level for level in FeatureLevel if level >= lowest)
    return next(level for level in levels if not any(graphs_can_be_compiled.findings(part, Target(level))))
