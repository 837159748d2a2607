"""The verdict on an operator at a target."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from dml_tile.findings import KNOWN, NO_OPERATOR, NOT_RETURNED, OWN, UNEXPLAINED, Finding, Severity
from dml_tile.rules.tile import operator_is_checked

if TYPE_CHECKING:
    from dml_tile.readers.model_tile import UnknownField


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
    """It is a shader or a model, not an operator; or ONNX Runtime runs it on another provider."""
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
    NO_OPERATOR: Verdict.ELSEWHERE,
    **{own.id: Verdict.ELSEWHERE for own in OWN.values() if own.key == "nodes" and own.id not in KNOWN},
}


def verdict_of(
    findings: Iterable[Finding], unknown: Sequence[UnknownField] = (), not_looked_at: Sequence[str] = ()
) -> Verdict:
    """Return the verdict on an operator with these findings.

    ``unknown`` fields are known at run time only; rules do not cover ``not_looked_at``. A captured refusal that no rule
    explains, and a captured call that did not return, do not change the verdict.
    """
    severities, without_directml = set(), None
    for finding in findings:
        if finding.rule in (UNEXPLAINED, NOT_RETURNED):  # which say nothing of the rules
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
