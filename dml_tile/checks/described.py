"""Judges the operators that ONNX Runtime's DirectML provider creates of a model's nodes, at a target."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from dml_tile.back_ends.deployment import Deployment, shipped
from dml_tile.back_ends.described_node import DescribedNode, DescriptionOutcome
from dml_tile.back_ends.placement import Placement, Reason
from dml_tile.checks.verdict import Verdict, verdict_of
from dml_tile.descriptors.graph import GraphDesc
from dml_tile.descriptors.operator import OperatorDesc
from dml_tile.directml.levels import CONSTANT_NODES
from dml_tile.directml.operators import operator_named
from dml_tile.directml.targets import Target
from dml_tile.findings import Against, Finding, Severity
from dml_tile.rules.descriptor import findings_of, not_looked_at
from dml_tile.rules.known import known_in_graph

LEVEL: Final = "ORT-OPERATOR-level"
PROVIDER: Final = "ORT-OPERATOR-provider"
GRAPH: Final = "ORT-OPERATOR-graph"
CONSTANT: Final = "DML-GRAPH-Type"
"""The rule of graphs that a constant breaks."""
AT_RUN_TIME: Final = "ORT-OPERATOR-run-time"
NOT_DESCRIBED: Final = "ORT-OPERATOR-not-described"

VERDICTS: Final = {AT_RUN_TIME: Verdict.ACCEPTED_SO_FAR, NOT_DESCRIBED: None}
"""The verdicts on nodes that are not refused, by the rule of the reason that is reported."""

RANKS: Final = {verdict: rank for rank, verdict in enumerate(Verdict)}
"""Verdicts by how bad they are."""


class Judged(NamedTuple):
    """The verdict on a node's operators at a target, the worst of them, and the reason that is reported.

    The verdict is None for a node that is not described, and "so far" where its fields are known at run time only.
    ``notes`` are the known departures of operators that are not refused.
    """

    verdict: Verdict | None
    reason: Reason | None = None
    notes: tuple[Reason, ...] = ()


def judge(described: DescribedNode, deployments: Iterable[Deployment], against: Against) -> Iterator[Judged]:
    """Yield the verdicts on the operators of a node on DirectML, one for each deployment."""
    descs = [*map(OperatorDesc.model_validate, described.descs)]
    passed = dict[tuple[object, ...], Judged]()  # a target's name and release stand in refusals and notes alone
    for deployment in deployments:
        target = deployment.target
        simulated = target.feature_level, target.capabilities
        judged = passed.get(simulated) or _judged(described, descs, deployment, against)
        if judged.verdict is not Verdict.REFUSED:
            passed[simulated] = judged
            notes = (
                _reason(described, finding.rule, finding.about, finding.suggestion)
                for finding in known_in_graph(described.operators, descs, target)
            )
            judged = judged._replace(notes=tuple(dict.fromkeys(notes)))
        yield judged


def _judged(
    described: DescribedNode, descs: Sequence[OperatorDesc], deployment: Deployment, against: Against
) -> Judged:
    target = deployment.target
    if described.outcome is DescriptionOutcome.REFUSED:
        why = f"ONNX Runtime's provider refuses it before DirectML is asked: {described.reason}"
        return Judged(Verdict.REFUSED, _reason(described, PROVIDER, why))
    if lacking := _lacking(described.operators, target):
        return Judged(Verdict.REFUSED, _reason(described, LEVEL, lacking, shipped(deployment), " "))
    if described.outcome is not DescriptionOutcome.DESCRIBED:
        if described.outcome is DescriptionOutcome.AT_RUN_TIME:
            why = f"its fields are known at run time only{described.known}"
            return Judged(Verdict.ACCEPTED_SO_FAR, _reason(described, AT_RUN_TIME, why))
        why = f"it is not described{described.reason and f': {described.reason}'}{described.known}"
        return Judged(None, _reason(described, NOT_DESCRIBED, why))
    worst, reason = Verdict.ACCEPTED, None
    for fields, desc in zip(described.descs, descs, strict=True):
        findings = findings_of(desc, target, against)
        verdict = verdict_of(findings, (), not_looked_at(desc))
        if RANKS[verdict] > RANKS[worst]:
            worst = verdict
            broken = next((each for each in findings if each.severity is Severity.ERROR), None)
            reason = _refusal(described, fields["Type"], broken) if broken else None
    if described.graph and target.level.has_graphs and worst is not Verdict.REFUSED:
        findings = findings_of(GraphDesc.model_validate(described.graph), target, against)
        if broken := next((each for each in findings if each.severity is Severity.ERROR), None):
            if broken.rule == CONSTANT:
                why = f"needs nodes of type CONSTANT ({CONSTANT_NODES.short}) in its graph, for constants below 8 bytes"
                return Judged(Verdict.REFUSED, _reason(described, GRAPH, why, shipped(deployment), " "))
            why = f"CompileGraph refuses it: {broken.message} ({broken.rule})"
            return Judged(Verdict.REFUSED, _reason(described, GRAPH, why))
    return Judged(worst, reason)


def _refusal(described: DescribedNode, operator: str, finding: Finding) -> Reason:
    path = f"{finding.path}: " if finding.path else ""
    why = f"{operator}: {path}{finding.message}"
    return _reason(described, finding.rule, why)  # nobody can mend what the provider writes


def _lacking(names: tuple[str, ...], target: Target) -> str:
    """Return that a node needs operators that a target's DirectML lacks, with their levels; empty if it has all."""
    needed = {name: found.level for name in names if (found := operator_named(name))}
    lacking = [f"{name} ({level.short})" for name, level in needed.items() if level > target.feature_level]
    return f"needs {', '.join(lacking)}" if lacking else ""


def _reason(described: DescribedNode, rule: str, why: str, suggestion: str | None = None, joint: str = ": ") -> Reason:
    return Reason(Placement.DIRECTML, rule, why, suggestion, described.place.operator, joint)
