"""The verdicts on tiles, and findings grouped for reports."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dml_tile.findings import Finding
from dml_tile.rules.tile import operator_is_a_tile

ACCEPTED: Final = "accepted"
SO_FAR: Final = "accepted so far"
REFUSED: Final = "refused"
NOT_CHECKED: Final = "not checked"
NOT_READ: Final = "not read"


def verdict_word(findings: tuple[Finding, ...], unknown: tuple[str, ...] = ()) -> str:
    """The verdict on a tile with these findings, of which the ``unknown`` fields are known at run time only."""
    if any(finding.rule == operator_is_a_tile.id for finding in findings):
        return NOT_CHECKED
    if findings:
        return REFUSED
    return SO_FAR if unknown else ACCEPTED


def alike(findings: Iterable[Finding]) -> Iterable[list[Finding]]:
    """Group the findings that differ in their paths only."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.rule, finding.message), []).append(finding)
    return groups.values()
