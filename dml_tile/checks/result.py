"""The verdict on an operator at a target, also through a back end, and the result that holds it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from dml_tile.back_ends import BackEnd, BackEndResult, Outcome, back_end_named, directml
from dml_tile.back_ends.back_end import BACK_END_RULES, tile_reaches_directml
from dml_tile.back_ends.dialects import Request
from dml_tile.back_ends.directml import sizes_fit
from dml_tile.back_ends.onnxruntime import ORT, QUANTISED_SINCE, TRANSPOSES_CANCEL_SINCE
from dml_tile.back_ends.placement import runtime_at
from dml_tile.checking import check
from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.levels import LEVELS
from dml_tile.directml.targets import DEFAULT_TARGET, Target, TargetLike
from dml_tile.dxdispatch.rules import dispatchable_is_an_operator, graphs_can_be_compiled, part_findings
from dml_tile.errors import require_instance
from dml_tile.findings import (
    NOT_LOOKED_AT,
    RUN_TIME,
    Against,
    Finding,
    Position,
    Severity,
    apply_rules,
    bases_of,
    own_finding,
)
from dml_tile.readers.item import Item, item_of
from dml_tile.readers.model_tile import TileNode, UnknownField
from dml_tile.rules.capture import CAPTURE_RULES, refusal_is_explained
from dml_tile.rules.check import DISTINCT_LEVELS, findings_of_null_graph, lowest_level, not_checked, not_looked_at
from dml_tile.rules.tile import operator_is_checked
from dml_tile.simulation.target import resolve
from dml_tile.text import abridged

if TYPE_CHECKING:  # most checks need none
    from dml_tile.lowering.steps import Lowering


class Verdict(StrEnum):
    """The outcome of an operator at a target, from the best to the worst.

    What is known at run time only may change a verdict "so far".
    """

    ACCEPTED = "accepted"
    """DirectML takes it, and its documentation allows it."""
    ACCEPTED_SO_FAR = "accepted so far"
    """The same holds for what is known before the model runs."""
    ACCEPTED_IN_PART = "accepted in part"
    """The same holds for the fields that rules look at; other fields, never of Tile, are named."""
    ELSEWHERE = "elsewhere"
    """The back end does not call DirectML, or it is a shader or a model, not an operator."""
    NOT_CHECKED = "not checked"
    """It is private to DirectML, or its fields are not given."""
    UNDOCUMENTED = "undocumented"
    """DirectML takes it, and only its documentation rules it out."""
    UNDOCUMENTED_SO_FAR = "undocumented so far"
    """The same holds for what is known before the model runs."""
    REFUSED = "refused"
    """DirectML refuses it or crashes, or a specification or a back end raises an error."""


NOT_FOR_DIRECTML: Final = (Verdict.ELSEWHERE, Verdict.NOT_CHECKED)
_VERDICTS_WITHOUT_DIRECTML: Final = {
    # these rules leave nothing for DirectML to judge
    operator_is_checked.id: Verdict.NOT_CHECKED,
    tile_reaches_directml.id: Verdict.ELSEWHERE,
    dispatchable_is_an_operator.id: Verdict.ELSEWHERE,
}


def verdict_of(
    findings: Iterable[Finding], unknown: Sequence[UnknownField] = (), not_looked_at: Sequence[str] = ()
) -> Verdict:
    """Return the verdict on an operator with these findings.

    ``unknown`` fields are known at run time only; rules do not cover ``not_looked_at``. A captured refusal that no rule
    explains does not change the verdict.
    """
    severities, without_directml = set(), None
    for finding in findings:
        if finding.rule == refusal_is_explained.id:  # which says nothing of the rules
            continue
        severities.add(finding.severity)
        without_directml = without_directml or _VERDICTS_WITHOUT_DIRECTML.get(finding.rule)
    if Severity.ERROR in severities:
        return Verdict.REFUSED
    if without_directml:
        return without_directml
    if Severity.WARNING in severities:
        return Verdict.UNDOCUMENTED_SO_FAR if unknown else Verdict.UNDOCUMENTED
    if not_looked_at:
        return Verdict.ACCEPTED_IN_PART
    return Verdict.ACCEPTED_SO_FAR if unknown else Verdict.ACCEPTED


def alike(findings: Iterable[Finding]) -> Iterable[list[Finding]]:
    """Group the findings that differ in their paths only."""
    groups: dict[tuple[str, str, Severity], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.rule, finding.message, finding.severity), []).append(finding)
    return groups.values()


NOT_SELECTED: Final = "not selected"
IN_BASELINE: Final = "in the baseline"


@dataclass(frozen=True, slots=True)
class Result:
    """The verdict on an item at a target, its findings, and the lowest level at which it passes.

    Rules do not cover the fields ``not_looked_at``; findings are about the other fields that are known, and the lowest
    level is then a lower bound. ``uncounted`` findings, by the reason why they do not count, do count for the lowest
    level, and those in a baseline for the verdict. ``lowering`` has tiles that do what a refused tile does, and
    ``command`` prints them.
    """

    item: Item
    target: Target
    verdict: Verdict
    findings: tuple[Finding, ...]
    lowest_level: FeatureLevel | None
    not_looked_at: tuple[str, ...] = ()
    uncounted: Mapping[str, tuple[Finding, ...]] = field(default_factory=dict)
    lowering: Lowering | None = None
    command: str = ""

    @property
    def first_position(self) -> Position | None:
        """The first finding's position; None without findings, or if the source is not JSON."""
        findings = (*self.findings, *self.uncounted.get(IN_BASELINE, ()))
        return next(filter(None, (self.item.position(finding.path) for finding in findings)), None)

    @property
    def is_checked(self) -> bool:
        """True for an operator whose fields are known; False for a part of a model that is none."""
        return not self.item.part_kind and self.verdict is not Verdict.NOT_CHECKED

    @property
    def is_judged(self) -> bool:
        """True if the operator has a lowest level, or passes at none; False if DirectML is not asked."""
        return self.lowest_level is not None or not (self.item.part_kind or self.verdict in NOT_FOR_DIRECTML)

    @property
    def ok(self) -> bool:
        """True if the operator passes a build by default: it has neither errors nor warnings."""
        return self.passes(Severity.WARNING)

    @property
    def notes(self) -> tuple[Finding, ...]:
        """The finding that fields are known at run time only, or that no rule is about them, if it counts."""
        if not (self.item.unknown or self.not_looked_at):
            return ()
        note = _KNOWN_AT_RUN_TIME if self.item.unknown else _NOT_LOOKED_AT
        return () if any(note in findings for findings in self.uncounted.values()) else (note,)

    @property
    def severity(self) -> Severity | None:
        """The worst finding's severity; fields that are unknown, or not looked at, count as a note."""
        return max((finding.severity for finding in (*self.notes, *self.findings)), default=None)

    def passes(self, fail_on: Severity | None) -> bool:
        """Return True if the severity is below ``fail_on``, or if either is None."""
        return fail_on is None or self.severity is None or self.severity < fail_on

    def without(self, reason: str, is_left_out: Callable[[Finding], bool]) -> Result:
        """Return the result with some of its findings, and notes, moved to ``uncounted``; the verdict stays."""
        kept, left_out = list[Finding](), list[Finding]()
        for finding in self.findings:
            (left_out if is_left_out(finding) else kept).append(finding)
        left_out += filter(is_left_out, self.notes)
        if not left_out:
            return self
        return replace(self, findings=tuple(kept), uncounted={**self.uncounted, reason: tuple(left_out)})


_KNOWN_AT_RUN_TIME: Final = own_finding(RUN_TIME, "")
_NOT_LOOKED_AT: Final = own_finding(NOT_LOOKED_AT, "")


def lowest_level_at_all(results: Iterable[Result]) -> FeatureLevel | None:
    """Return the lowest level at which an operator passes as it does at each of its targets; None if there is none.

    Targets that name different releases of a back end may differ in it.
    """
    levels = [result.lowest_level for result in results]
    return None if None in levels else max(filter(None, levels))


def results(
    source: str,
    item: Item,
    targets: Sequence[Target],
    against: Against,
    via: BackEnd | None = None,
    *,
    lists_all: bool = True,
) -> Iterator[Result]:
    """Yield the results of a source's item, one for each target; a model's tile goes through the back end ``via``.

    Without ``lists_all``, descriptors have no lowest level, and those without findings no text.
    """
    if item.node is None:
        return _document_results(source, item, targets, against, lists_all=lists_all)
    return _node_results(source, item.node, targets, against, None if item.node.error else via)


def ruled_out(node: TileNode) -> tuple[Finding, ...]:
    """Return the finding on a model's tile that its own specification rules out, if it does."""
    if not node.error:
        return ()
    rule = directml.SPECIFICATION_RULES[node.dialect.specification]
    return tuple(rule.findings(f"{node.dialect}: {node.error}", DEFAULT_TARGET))


def _node_results(
    source: str, node: TileNode, targets: Sequence[Target], against: Against, via: BackEnd | None
) -> Iterator[Result]:
    check_at: Callable[[Target], tuple[Finding, ...]]
    lowest_at: Callable[[Target], FeatureLevel | None]
    if via and (node.quantised or node.transposed):
        for target in targets:
            optimised = replace(as_optimised(node, via, target), quantised="", transposed=())
            yield from _node_results(source, optimised, [target], against, via)
        return
    if via:
        check_at = partial(check_node, node, back_end=via, against=against)
        lowest_at = partial(lowest_level_through, node, via)
    elif refused := ruled_out(node) or directml.findings(node.request):
        check_at, lowest_at = lambda target: refused, lambda target: None
    else:
        desc = directml.tile_desc(node.request)
        of_all = lowest_level(desc)
        check_at, lowest_at = partial(check, desc, against=against), lambda target: of_all
    item = replace(item_of(node), source=source, via=via.name if via else "")
    for target in targets:
        findings = check_at(target)
        yield Result(item, target, verdict_of(findings, item.unknown), findings, lowest_at(target))


def as_optimised(node: TileNode, via: BackEnd, target: Target) -> TileNode:
    """Return the Tile that ONNX Runtime's release leaves of a model's: on quantised values, without Transposes."""
    release = runtime_at(target).release
    if via.name != ORT.name:
        return node
    if node.quantised and release >= QUANTISED_SINCE:
        node = replace(node, data_type=node.quantised)
    order = [node.transposed.index(i) for i in range(len(node.transposed))]
    if order and release >= TRANSPOSES_CANCEL_SINCE:
        node = replace(
            node,
            shape=_ordered(node.shape, order),
            repeats=_ordered(node.repeats, order),
            input_origins=_ordered(node.input_origins, order) or (),
            repeats_origins=_ordered(node.repeats_origins, order) or (),
        )
    return node


_Value = TypeVar("_Value")


def _ordered(values: tuple[_Value, ...] | None, order: Sequence[int]) -> tuple[_Value, ...] | None:
    """Return the values in another order, if there are as many."""
    return tuple(values[i] for i in order) if values is not None and len(values) == len(order) else values


def why_lower(result: Result) -> str:
    """Return why a model's tile that fails at a target passes below it: DirectML is not called for it there."""
    node, lowest = result.item.node, result.lowest_level
    if not node or not result.item.via or lowest is None or lowest >= result.target.feature_level:
        return ""
    via = back_end_named(result.item.via)
    at = _at_level(lowest, via, result.target)
    carrier = node.request.carrier
    if carrier is not None and not at.supports_data_type(carrier):
        return f"the device has no {carrier.name}"
    return "DirectML is not called" if check_node(node, at, via) else ""


def _document_results(
    source: str, item: Item, targets: Sequence[Target], against: Against, *, lists_all: bool
) -> Iterator[Result]:
    own: tuple[Finding, ...] = ()
    capture, part, part_kind, text = item.capture, item.part, item.part_kind, item.text
    if capture:
        own += tuple(apply_rules(CAPTURE_RULES, capture, DEFAULT_TARGET))
    is_read = item.other is None and item.is_operator
    is_null_graph = capture is not None and capture.is_null_graph
    if item.other is not None:
        own += (not_checked(item.other),)
    lowest = _lowest_level(item) if is_read and lists_all else None
    unseen = not_looked_at(item.desc)
    positions: dict[str, Position | None] = {}
    found: list[tuple[Target, tuple[Finding, ...]]] = []
    for target in targets:
        findings = (part_findings(part, target) if part else ()) + own
        if part_kind and not findings:
            continue
        if is_null_graph:
            findings += findings_of_null_graph(target, against)
        elif is_read:
            findings += check(item.desc, target, against)
        for finding in findings:
            if text and finding.path not in positions:
                positions[finding.path] = text.position(item.pointer, finding.path)
        found.append((target, findings))
    is_listed = lists_all or unseen or any(findings for _, findings in found)
    operator = _text(item) if is_listed else ""
    item = replace(item, source=source, operator=operator, text=None, line=None, positions=positions)
    for target, findings in found:
        yield Result(item, target, verdict_of(findings, (), unseen), findings, lowest, unseen)


def _text(item: Item) -> str:
    """Return an operator, or the kind of a model's part, in one line, after the label of a capture."""
    text = item.other or item.part_kind or ("null" if item.desc is None else str(item.desc))
    return f"{abridged(item.capture.label)}: {text}" if item.capture and item.capture.label else text


def _lowest_level(item: Item) -> FeatureLevel | None:
    """Return the lowest level at which a descriptor passes, with graphs if DxDispatch compiles it as a graph."""
    lowest = lowest_level(item.desc)
    if lowest is None or item.part is None:
        return lowest
    levels = (level for level in FeatureLevel if level >= lowest)
    return next(level for level in levels if not any(graphs_can_be_compiled.findings(item.part, Target(level))))


def check_via(
    request: Request, target: TargetLike | None, back_end: str, against: Against = "both"
) -> tuple[Finding, ...]:
    """Return the findings of a tile that goes through a back end: the back end's, else its descriptor's.

    ``target`` None means the current target. ``against`` applies to the descriptor, not to the back end's own findings.
    A tile that does not reach DirectML has a finding that is a note. Raises ValueError for an unknown target, back end
    or ``against``.
    """
    require_instance(request, Request)
    bases_of(against)
    chosen, target = back_end_named(back_end), resolve(target)
    return _findings(request, chosen.describe(request, target), chosen, target, against)


def check_node(node: TileNode, target: Target, back_end: BackEnd, against: Against = "both") -> tuple[Finding, ...]:
    """Return the findings on a model's tile that its dialect accepts.

    For a tile that is known in part only, or empty in this run of the model only, these are the back end's own findings
    and those on the data type and on known sizes that fit no UINT. A tile that the back end folds away has a finding
    that says so.
    """
    if node.folded and back_end.folds_constants and back_end.creates_a_device(target):
        return _own_findings(BackEndResult(Outcome.NOTHING, reason=node.folded), back_end, target)
    request = node.request
    findings = _findings(request, back_end.describe(request, target), back_end, target, against)
    if node.emptied:
        shape, repeats = (tuple(value or 1 for value in values) for values in (request.shape, request.repeats))
        filled = replace(request, shape=shape, repeats=repeats)
        return _of_any_run(_findings(filled, back_end.describe(filled, target), back_end, target, against)) or findings
    return _of_any_run(findings) if node.unknown else findings


def _of_any_run(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings that hold whatever a tile's assumed values are."""
    rules = {sizes_fit.id, *(rule.id for rule in BACK_END_RULES)}
    return tuple(finding for finding in findings if finding.rule in rules or finding.field == "DataType")


def lowest_level_through(node: TileNode, back_end: BackEnd, target: Target | None = None) -> FeatureLevel | None:
    """Return the lowest feature level at which a model's tile has at most notes, against both; None if none.

    ``target`` names the release. For a tile that DirectML does not run, this is the level of the back end's device.
    """
    # a back end may ask which data types the device has
    needed = {release.minimum_level for release in back_end.releases}
    levels = sorted({*DISTINCT_LEVELS, *(row.level for row in LEVELS.values() if row.new_types), *needed})
    for level in levels:
        found = check_node(node, _at_level(level, back_end, target), back_end)
        if all(finding.severity is Severity.NOTE for finding in found):
            return level
    return None


def _at_level(level: FeatureLevel, back_end: BackEnd, target: Target | None) -> Target:
    """Return the target of a level, with the back end's release that a target names."""
    return Target(level, target.name if target and back_end.release_named(target) else "")


def _findings(
    request: Request, result: BackEndResult, back_end: BackEnd, target: Target, against: Against
) -> tuple[Finding, ...]:
    own = _own_findings(result, back_end, target)
    # a back end that converts to UINT describes another tile, unless the tile is empty
    lost = () if 0 in request.output_shape else tuple(sizes_fit.findings(request, target))
    if own and (result.outcome in (Outcome.ELSEWHERE, Outcome.REFUSED) or not lost):
        return own
    return lost + (check(result.desc, target, against) if result.desc else ())


def _own_findings(result: BackEndResult, back_end: BackEnd, target: Target) -> tuple[Finding, ...]:
    found = apply_rules(BACK_END_RULES, result, target)
    return tuple(replace(finding, url=result.url or back_end.source) for finding in found)
