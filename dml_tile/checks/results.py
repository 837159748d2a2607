"""The results of an operator, one for each target: of a descriptor's, or of a model's Tile."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from dml_tile.checking import check
from dml_tile.checks.result import Result, verdict_of
from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.targets import DEFAULT_TARGET, Target
from dml_tile.findings import Against, Finding, Position, apply_rules
from dml_tile.readers.item import Item
from dml_tile.rules.check import findings_of_null_graph, lowest_level, not_checked, not_looked_at

if TYPE_CHECKING:
    from dml_tile.back_ends import BackEnd
    from dml_tile.dxdispatch.rules import ModelPart


def results(
    source: str,
    item: Item,
    targets: Sequence[Target],
    against: Against,
    via: BackEnd | None = None,
    *,
    lists_all: bool = True,
    locates_all: bool = False,
) -> Iterator[Result]:
    """Yield the results of a source's item, one for each target; a model's tile goes through the back end ``via``.

    Without ``lists_all``, descriptors have no lowest level; with ``locates_all``, each has its position.
    """
    if item.node is None:
        return _document_results(source, item, targets, against, lists_all=lists_all, locates_all=locates_all)
    from dml_tile.checks.via import node_results

    return node_results(source, item.node, targets, against, None if item.node.error else via)


def _document_results(
    source: str, item: Item, targets: Sequence[Target], against: Against, *, lists_all: bool, locates_all: bool
) -> Iterator[Result]:
    own: tuple[Finding, ...] = ()
    capture, part, part_kind = item.capture, item.part, item.part_kind
    if capture:
        from dml_tile.rules.capture import CAPTURE_RULES

        own += tuple(apply_rules(CAPTURE_RULES, capture, DEFAULT_TARGET))
    is_read = item.other is None and item.is_operator
    if item.other is not None:
        own += (not_checked(item.other),)
    lowest = _lowest_level(item) if is_read and lists_all else None
    unseen = not_looked_at(item.desc)
    places = {"": item.position("")} if locates_all else dict[str, Position | None]()
    found: list[tuple[Target, tuple[Finding, ...]]] = []
    for target in targets:
        findings = (_part_findings(part, target)) + own
        if part_kind and not findings:
            continue
        if item.is_null_graph:
            findings += findings_of_null_graph(target, against)
        elif is_read:
            findings += check(item.desc, target, against)
        for finding in findings:
            if finding.path not in places:
                places[finding.path] = item.position(finding.path)
        found.append((target, findings))
    item = replace(item, source=source, places=places)
    for target, findings in found:
        yield Result(item, target, verdict_of(findings, (), unseen), findings, lowest, unseen)


def _part_findings(part: ModelPart | None, target: Target) -> tuple[Finding, ...]:
    if part is None:
        return ()
    from dml_tile.dxdispatch.rules import part_findings

    return part_findings(part, target)


def _lowest_level(item: Item) -> FeatureLevel | None:
    """Return the lowest level at which a descriptor passes, with graphs if DxDispatch compiles it as a graph."""
    lowest = lowest_level(item.desc)
    if lowest is None or item.part is None:
        return lowest
    from dml_tile.dxdispatch.rules import graphs_can_be_compiled

    levels = (level for level in FeatureLevel if level >= lowest)
    return next(level for level in levels if not any(graphs_can_be_compiled.findings(item.part, Target(level))))
