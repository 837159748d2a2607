"""How often ``check`` finds what DirectML refuses, and refuses what it takes, by the kind of a descriptor's fault."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from dml_tile.checking import check
from dml_tile.descriptors.operator import OperatorDesc
from dml_tile.findings import BASES, Finding, Severity
from dml_tile.rules.descriptor import created_anyway
from tests.helpers.recorded_answers import S_OK, answer

GOALS: Final[Mapping[str, float]] = dict.fromkeys(
    ("types", "counts", "nulls", "strides", "totals", "flags", "attributes", "sizes", "all"), 99.9
)
"""Of what DirectML refuses, the percentage that ``check`` finds, at least, by the kind of the one fault."""
WRONGLY_REFUSED: Final = 0.01
"""Of what DirectML takes, the percentage that ``check`` refuses, at most."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A line of a recorded file: a level, the kinds of a descriptor's faults, it and the answer; and the findings."""

    row: Mapping[str, Any]
    findings: Sequence[Finding]
    """Errors, by the runtime's rules."""
    is_documented: bool = True

    @property
    def is_taken(self) -> bool:
        return bool(self.row["hresult"] == S_OK)

    @property
    def answers_alike(self) -> bool:
        """True where the HRESULT, or the end of the process, is the one that the findings tell."""
        return str(self.row["hresult"]).partition(":")[0] == answer(self.findings).partition(":")[0]

    @property
    def agrees(self) -> bool:
        return self.is_taken != bool(self.findings)

    @property
    def kind(self) -> str:
        """The kind of its one fault; else ``none`` or ``two``."""
        kinds: list[str] = self.row["faults"]
        return kinds[0] if len(kinds) == 1 else "two" if kinds else "none"

    def __str__(self) -> str:
        answer = f"DirectML {self.row['hresult']}; check: {said(self.findings)}"
        return f"{self.row['level']}, {self.kind}: {answer}\n  {json.dumps(self.row['desc'])}"


def said(findings: Sequence[Finding]) -> str:
    """What ``check`` says of a descriptor, in one line."""
    return "; ".join(f"{each.path}: {each.message} [{each.rule}]" for each in findings) or "accepted"


def compared(rows: Iterable[Mapping[str, Any]]) -> Iterator[Compared]:
    """Ask ``check`` about each line's descriptor, at the line's level."""
    for row in rows:
        desc = OperatorDesc.model_validate(row["desc"])
        findings = [each for each in check(desc, row["level"]) if not created_anyway(each)]
        refusals = [each for each in findings if each.severity is Severity.ERROR and each.basis & BASES["runtime"]]
        yield Compared(row, refusals, not any(each.severity is Severity.WARNING for each in findings))


class Figures(NamedTuple):
    """How many descriptors DirectML refuses, and ``check`` finds of them, some with another answer than DirectML's; how
    many DirectML takes, and ``check`` refuses of them, or takes though a page rules them out.
    """

    refused: int
    found: int
    answered_otherwise: int
    taken: int
    wrongly_refused: int
    undocumented: int

    @property
    def percentage_found(self) -> float:
        return 100 * self.found / self.refused if self.refused else 100.0

    @property
    def percentage_wrongly_refused(self) -> float:
        return 100 * self.wrongly_refused / self.taken if self.taken else 0.0

    def __str__(self) -> str:
        wrongly = f"refused of them {self.wrongly_refused} ({self.percentage_wrongly_refused:.2f} %)"
        found = f"found {self.percentage_found:.2f} %, with another answer {self.answered_otherwise}"
        return f"refused {self.refused}, {found}; taken {self.taken}, {wrongly}, undocumented {self.undocumented}"


def tally(each: Compared) -> Counter[tuple[str, str]]:
    """The counts that a comparison adds to the figures of its kind, and of all."""
    words = {
        "taken": each.is_taken,
        "wrongly_refused": each.is_taken and not each.agrees,
        "undocumented": each.is_taken and each.agrees and not each.is_documented,
        "refused": not each.is_taken,
        "found": not each.is_taken and each.agrees,
        "answered_otherwise": not each.is_taken and each.agrees and not each.answers_alike,
    }
    return Counter((kind, word) for kind in (each.kind, "all") for word, counts in words.items() if counts)


def figures(counts: Counter[tuple[str, str]]) -> dict[str, Figures]:
    """The figures by kind."""
    kinds = dict.fromkeys([*GOALS, *(kind for kind, _ in counts)])
    return {kind: Figures(*(counts[kind, word] for word in Figures._fields)) for kind in kinds}


def shortfalls(by_kind: Mapping[str, Figures]) -> list[str]:
    """Return the goals that are missed."""
    missed = [kind for kind, goal in GOALS.items() if by_kind[kind].percentage_found < goal]
    return missed + ["wrongly refused"] * (by_kind["all"].percentage_wrongly_refused > WRONGLY_REFUSED)
