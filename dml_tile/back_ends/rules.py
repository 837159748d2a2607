"""Rules for tiles that a back end is to describe to DirectML."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.directml.pages import TILE_PAGE
from dml_tile.directml.targets import Target
from dml_tile.findings import Basis, Rule, Severity, Violation, rule


class Outcome(Enum):
    """The action of a back end on a tile."""

    TILE = "describes a tile to DirectML"
    NOTHING = "dispatches nothing"
    ELSEWHERE = "leaves the tile to something other than DirectML"
    REFUSED = "raises an error"


@dataclass(frozen=True, slots=True)
class BackEndResult:
    """The descriptor that a back end makes of a tile, or the reason why it makes none.

    ``desc`` is None unless the outcome is TILE; otherwise ``reason`` says why, and ``path`` is the field that it is
    about, in C names, if there is one.
    """

    outcome: Outcome
    path: str = ""
    reason: str = ""
    suggestion: str | None = None
    desc: TileOperatorDesc | None = None


@rule(
    "DML-VIA-refused",
    basis=Basis.INFERRED,
    url=TILE_PAGE,
    says="The back end must accept the tile.",
    hresult=None,
)
def back_end_accepts_the_tile(result: BackEndResult, target: Target) -> Iterator[Violation]:
    if result.outcome is Outcome.REFUSED:
        yield Violation(result.path, result.reason, result.suggestion)


@rule(
    "DML-VIA-elsewhere",
    basis=Basis.INFERRED,
    url=TILE_PAGE,
    says="The back end must hand the tile to DirectML.",
    hresult=None,
    severity=Severity.NOTE,
)
def tile_reaches_directml(result: BackEndResult, target: Target) -> Iterator[Violation]:
    if result.outcome in (Outcome.ELSEWHERE, Outcome.NOTHING):
        yield Violation(result.path, result.reason, result.suggestion)


BACK_END_RULES: Final[tuple[Rule[BackEndResult], ...]] = (back_end_accepts_the_tile, tile_reaches_directml)
