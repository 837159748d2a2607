"""Tells whether ONNX Runtime makes a session of a model at a target and runs it, and where its nodes are."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Final

from dml_tile.back_ends.described_node import NodePlace
from dml_tile.back_ends.placement import Placement, Reason
from dml_tile.checks.placements import MEMORIES, PLACED, ModelNodes, PlacedSummary, named
from dml_tile.checks.verdict import Verdict
from dml_tile.findings import EXTERNAL_DATA, OWN, Severity
from dml_tile.text import abridged, plural, printable


class Session(StrEnum):
    """Whether a session of a model is made at a target, and runs."""

    LOADS = "loads"
    LOADS_SO_FAR = "loads so far"
    """The fields of some operators are known at run time only."""
    OPEN = ""
    """The providers of some nodes, or their operators, are not known, or not all fields are looked at."""
    RUN_FAILS = "loads; running fails"
    FAILS = "the session fails"
    """An operator that is created with the session is refused."""
    NO_PROVIDER = "does not load"
    """The release refuses the model, or no provider takes a node."""
    NO_DEVICE = "no device"

    @property
    def fails(self) -> bool:
        """True if the model is known to fail."""
        return self in (Session.RUN_FAILS, Session.FAILS, Session.NO_PROVIDER, Session.NO_DEVICE)


def session_at(nodes: ModelNodes, target: int) -> Session:
    """Return the outcome of a session at a target, by its number."""
    if not nodes.has_device[target]:
        return Session.NO_DEVICE
    numbers = {*nodes.placed.errors[target], *nodes.placed.placed[target]} - {-1}
    rules = {nodes.placed.reasons[number].rule for number in numbers}
    if EXTERNAL_DATA in rules or any(OWN[rule].usual_severity is Severity.ERROR for rule in rules if rule):
        return Session.NO_PROVIDER
    if nodes.lacks_graphs[target]:
        return Session.FAILS
    verdicts = nodes.verdicts[target]
    if verdicts[Verdict.REFUSED]:
        return Session.FAILS if any(is_static for _, _, is_static in _refused(nodes, target)) else Session.RUN_FAILS
    if nodes.counts[target][Placement.UNKNOWN] or verdicts[None] or verdicts[Verdict.ACCEPTED_IN_PART]:
        return Session.OPEN
    return Session.LOADS_SO_FAR if verdicts[Verdict.ACCEPTED_SO_FAR] else Session.LOADS


def placed_summary(nodes: ModelNodes) -> PlacedSummary:
    """Return the outcome of a model whose nodes were placed, for the summary of a run."""
    fails = any(session_at(nodes, i).fails for i, _ in enumerate(nodes.targets))
    return PlacedSummary(len(nodes.placed.nodes), not fails, bool(nodes.counted), bool(nodes.known))


def _refused(nodes: ModelNodes, target: int) -> Iterator[tuple[NodePlace, Reason, bool]]:
    """Yield the nodes whose operators are refused, why, and whether they are created with the session."""
    for node, reason, described in nodes.at(target):
        if reason.placement is Placement.DIRECTML:
            judged = nodes.judged_of(target, described)
            if judged.verdict is Verdict.REFUSED and judged.reason:
                yield node, judged.reason, nodes.placed.descriptions[described].is_static


JUDGED: Final = {
    Verdict.ACCEPTED: "accepted",
    Verdict.ACCEPTED_SO_FAR: "known at run time only",
    Verdict.ACCEPTED_IN_PART: "accepted in part",
    Verdict.UNDOCUMENTED: "undocumented",
    Verdict.REFUSED: "refused",
    None: "not described",
}
"""The verdicts on nodes on DirectML in words, behind a number of nodes."""


def summary_of(nodes: ModelNodes, target: int) -> list[str]:
    """Return lines: the outcome of the session, the nodes by placement and verdict, and an opset that is better."""
    session = session_at(nodes, target)
    if session is Session.NO_DEVICE:
        return [str(session)]
    lines = "; ".join(_outcome(nodes, target, session)), "; ".join(_counts(nodes, target)), _better(nodes, target)
    return [*filter(None, lines)]


def _counts(nodes: ModelNodes, target: int) -> Iterator[str]:
    """Yield the numbers of nodes by placement, those on DirectML by verdict, and of values that cross between them."""
    counts, verdicts = nodes.counts[target], nodes.verdicts[target]
    first, *others = [placement for placement in PLACED if counts[placement]] or [Placement.DIRECTML]
    judged = [f"{verdicts[verdict]:,} {words}" for verdict, words in JUDGED.items() if verdicts[verdict]]
    more = [f"{counts[placement]:,} {PLACED[placement]}" for placement in others]
    begin = f"{plural(counts[first], 'node', ',')} {PLACED[first]}"
    if judged:
        yield f"{begin}: {', '.join(judged)}"
    else:
        more.insert(0, begin)
    if more:
        yield ", ".join(more)
    if crossing := len([*nodes.crossings_at(target)]):
        between = " and ".join(MEMORIES.values())
        yield f"{plural(crossing, 'value')} cross{'es' * (crossing == 1)} between {between}"


def _outcome(nodes: ModelNodes, target: int, session: Session) -> Iterator[str]:
    """Yield the outcome of a session, and why it fails, if it does."""
    if session is Session.OPEN:
        yield from _open(nodes, target)
    elif session is Session.FAILS and nodes.lacks_graphs[target]:
        yield f"{session}: {nodes.lacks_graphs[target]}"
    elif session in (Session.FAILS, Session.RUN_FAILS):
        of_session = session is Session.FAILS
        node, reason = next((node, why) for node, why, is_static in _refused(nodes, target) if is_static is of_session)
        outcome = session if of_session else f"it {session}"
        yield f"{outcome}: {printable(abridged(f'{named(node)}{reason.joint}{reason.why}'))}"
    else:
        yield f"it {session}"


def _open(nodes: ModelNodes, target: int) -> Iterator[str]:
    """Yield the reasons why it is open whether a model loads whose nodes all have a provider."""
    if nodes.counts[target][Placement.UNKNOWN]:
        return
    yield "every node has a provider"
    for verdict in (None, Verdict.ACCEPTED_IN_PART):
        if count := nodes.verdicts[target][verdict]:
            yield f"{plural(count, 'node')} on DirectML {'is' if count == 1 else 'are'} {JUDGED[verdict]}"


def _better(nodes: ModelNodes, target: int) -> str:
    """Return the opset that serves more nodes; empty if none does."""
    if not (advice := nodes.opset_at(target)):
        return ""
    return f"exported at opset {advice.opset}, {advice.on_directml:,} of {advice.nodes:,} would be on DirectML"
