"""Rules for tiles that a back end is to hand to DirectML."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.directml.pages import TILE_PAGE
from dml_tile.directml.targets import Target
from dml_tile.findings import Basis, Rule, Severity, Violation, rule


class Fate(Enum):
    """The action of a back end on a tile."""

    TILE = "hands DirectML a tile"
    OTHER_OPERATOR = "hands DirectML another operator with the same result"
    NOTHING = "dispatches nothing: the result has no elements"
    ELSEWHERE = "leaves the tile to something other than DirectML"
    REFUSED = "raises an error"


@dataclass(frozen=True, slots=True)
class Handover:
    """The descriptor that a back end hands to DirectML, or the reason why it hands over no tile.

    ``desc`` is None unless the fate is TILE. ``note`` gives the reason, or a remark on the descriptor; ``path`` is the
    field in C names that the reason is about, else empty.
    """

    fate: Fate
    desc: TileOperatorDesc | None = None
    note: str = ""
    path: str = ""
    suggestion: str | None = None


@rule(
    "DML-VIA-refused",
    basis=Basis.INFERRED,
    url=TILE_PAGE,
    says="The back end must accept the tile.",
    hresult=None,
)
def back_end_accepts_the_tile(handover: Handover, target: Target) -> Iterator[Violation]:
    if handover.fate is Fate.REFUSED:
        yield Violation(handover.path, handover.note, handover.suggestion)


@rule(
    "DML-VIA-elsewhere",
    basis=Basis.INFERRED,
    url=TILE_PAGE,
    says="The back end must hand the tile to DirectML.",
    hresult=None,
    severity=Severity.NOTE,
)
def back_end_hands_the_tile_to_directml(handover: Handover, target: Target) -> Iterator[Violation]:
    if handover.fate in (Fate.ELSEWHERE, Fate.NOTHING):
        yield Violation(handover.path, handover.note, handover.suggestion)


@rule(
    "DML-VIA-other-operator",
    basis=Basis.INFERRED,
    url=TILE_PAGE,
    says="The back end must hand DirectML a tile; other operators are not checked.",
    hresult=None,
    severity=Severity.NOTE,
)
def back_end_hands_over_a_tile(handover: Handover, target: Target) -> Iterator[Violation]:
    if handover.fate is Fate.OTHER_OPERATOR:
        yield Violation(handover.path, handover.note, handover.suggestion)


BACK_END_RULES: Final[tuple[Rule[Handover], ...]] = (
    back_end_accepts_the_tile,
    back_end_hands_the_tile_to_directml,
    back_end_hands_over_a_tile,
)
