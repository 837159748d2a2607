"""What keeps a tile from DirectML before DirectML sees it: the back end that was to hand it over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from dml_tile.descriptors import TileOperatorDesc
from dml_tile.findings import Basis, Rule, Violation, rule
from dml_tile.pages import TILE_PAGE
from dml_tile.targets import Target


class Fate(Enum):
    """What becomes of a tile in a back end."""

    TILE = "DirectML is given a tile"
    OTHER_OPERATOR = "DirectML is given another operator, which does the same"
    NOTHING = "nothing is dispatched: the result has no elements"
    ELSEWHERE = "what is not DirectML does it"
    REFUSED = "the back end raises an error"


@dataclass(frozen=True, slots=True)
class Handover:
    """What a back end makes of a tile: ``desc`` is what it hands to DirectML, None where that gets no tile.

    ``note`` says why, or what else there is to know; ``path`` is the field in C names that decided it, or empty.
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
    says="The back end that the tile goes through raises no error on it, as far as its source tells.",
    hresult=None,
)
def back_end_accepts_it(handover: Handover, target: Target) -> Iterator[Violation]:
    if handover.fate is Fate.REFUSED:
        yield Violation(handover.path, handover.note, handover.suggestion)


@rule(
    "DML-VIA-elsewhere",
    basis=Basis.INFERRED,
    url=TILE_PAGE,
    says="The back end that the tile goes through gives it to DirectML, as far as its source tells.",
    hresult=None,
)
def back_end_uses_directml(handover: Handover, target: Target) -> Iterator[Violation]:
    if handover.fate is Fate.ELSEWHERE:
        yield Violation(handover.path, handover.note, handover.suggestion)


BACK_END_RULES: Final[tuple[Rule[Handover], ...]] = (back_end_accepts_it, back_end_uses_directml)
