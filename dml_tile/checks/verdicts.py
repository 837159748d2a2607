"""The verdicts on tiles, and findings grouped for reports."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from dml_tile.back_ends.rules import tile_reaches_directml
from dml_tile.findings import Finding, Severity
from dml_tile.rules.tile import operator_is_a_tile


class Verdict(StrEnum):
    """The outcome of a tile at a target."""

    ACCEPTED = "accepted"
    """DirectML takes it, and its documentation allows it."""
    UNDOCUMENTED = "undocumented"
    """DirectML takes it, and only its documentation rules it out."""
    REFUSED = "refused"
    """DirectML refuses it or crashes, or a specification or a back end raises an error."""
    ELSEWHERE = "elsewhere"
    """The back end keeps it from DirectML: another provider runs it, or nothing does."""
    NOT_CHECKED = "not checked"
    """It is another operator."""


SO_FAR: Final = "so far"
"""Follows a verdict that may change with what is known at run time only."""

NOT_READ: Final = "not read"
"""Stands beside the verdicts where a part of a source cannot be read."""

_UNCALLED: Final = {
    # the rules that leave nothing for DirectML to judge
    operator_is_a_tile.id: Verdict.NOT_CHECKED,
    tile_reaches_directml.id: Verdict.ELSEWHERE,
}


def verdict_of(findings: Iterable[Finding]) -> Verdict:
    """The verdict on a tile with these findings."""
    severities, uncalled = set(), None
    for finding in findings:
        severities.add(finding.severity)
        uncalled = uncalled or _UNCALLED.get(finding.rule)
    if Severity.ERROR in severities:
        return Verdict.REFUSED
    if uncalled:
        return uncalled
    return Verdict.UNDOCUMENTED if Severity.WARNING in severities else Verdict.ACCEPTED


def alike(findings: Iterable[Finding]) -> Iterable[list[Finding]]:
    """Group the findings that differ in their paths only."""
    groups: dict[tuple[str, str, Severity], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.rule, finding.message, finding.severity), []).append(finding)
    return groups.values()
