"""What every report is made of: one descriptor, held to one target."""

from __future__ import annotations

from dataclasses import dataclass

from dml_tile.enums import FeatureLevel
from dml_tile.findings import Finding
from dml_tile.targets import Target


@dataclass(frozen=True, slots=True)
class Result:
    """The findings of the descriptor at ``pointer`` of ``source``, and the lowest level at which it would pass."""

    source: str
    pointer: str
    target: Target
    findings: tuple[Finding, ...]
    lowest_level: FeatureLevel | None
