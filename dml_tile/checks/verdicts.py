"""What reports say of a result in a few words, whatever their format."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dml_tile.enums import HRESULT
from dml_tile.findings import Basis, Finding
from dml_tile.rules.lowering import LOWERING_RULES
from dml_tile.rules.tile import operator_is_a_tile

ACCEPTED: Final = "accepted"
SO_FAR: Final = "accepted so far"
REFUSED: Final = "refused"
NOT_CHECKED: Final = "not checked"
NOT_READ: Final = "not read"

_RULES_OF_LOWERING: Final = frozenset(rule.id for rule in LOWERING_RULES)


def verdict_word(findings: tuple[Finding, ...], unknown: tuple[str, ...] = ()) -> str:
    """The verdict on a tile with these findings, of which the ``unknown`` fields are known at run time only."""
    if any(finding.rule == operator_is_a_tile.id for finding in findings):
        return NOT_CHECKED
    if findings:
        return REFUSED
    return SO_FAR if unknown else ACCEPTED


def alike(findings: Iterable[Finding]) -> Iterable[list[Finding]]:
    """The findings, those together that differ in their paths only."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.rule, finding.message), []).append(finding)
    return groups.values()


def outcome_of(finding: Finding) -> str:
    """What DirectML makes of it: ``E_INVALIDARG 0x80070057``."""
    if finding.hresult is None and not finding.crash and finding.rule != operator_is_a_tile.id:
        return "there is no lowering" if finding.rule in _RULES_OF_LOWERING else "DirectML is not called"
    if not finding.is_noticed:
        return "documented only: DirectML does not notice"
    undocumented = "" if finding.basis & Basis.DOCUMENTED else ", undocumented"
    return f"{outcome(finding.hresult, finding.crash)}{undocumented}"


def outcome(hresult: HRESULT | None, crash: bool) -> str:
    """What DirectML returns, if it does."""
    if hresult is not None:
        return str(hresult)
    return "no HRESULT, the process dies" if crash else "not known"
