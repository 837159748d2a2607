"""The truth of executed operators' values: ``values.toml``, whose head explains its keys."""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Final, Literal, NamedTuple

TABLE: Final = Path(__file__).with_name("values.toml")
NOT_EXECUTED: Final = "no: its page does not tell what it computes"


class Values(NamedTuple):
    """The truth of an operator's values."""

    label: Literal["bytes", "values"]
    """``bytes``: as DirectML wrote them, in every recorded case; ``values``: within a tolerance."""
    within: tuple[float, float] = (0, 0)
    """The tolerance of FLOAT32, relative and absolute; integers are equal."""
    recorded: bool = True
    """False for an operator that follows its page, since nothing was recorded of it."""
    apart: int = 0
    """The recorded cases outside the tolerance."""
    why: str = ""
    """The reason for those."""
    convention: str = ""
    """The choice made where DirectML documents nothing."""

    def __str__(self) -> str:
        """Return the label with what limits it, in one line."""
        parts: list[str] = [self.label]
        if self.within != (0, 0):
            parts[0] += f" within {self.within[0]:g} relative, {self.within[1]:g} absolute"
        if not self.recorded:
            parts[0] += " by its page"
        if self.why:
            parts.append(f"but for {self.why}")
        if self.convention:
            parts.append(f"convention: {self.convention}")
        return "; ".join(parts)


@cache
def values() -> Mapping[str, Values]:
    """Return how true the values of each operator that is executed are, by the operators' names."""
    rows = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    return {
        name: Values(**(row | {"within": tuple(row["within"])} if "within" in row else row))
        for name, row in rows.items()
    }


def how_true(operators: Iterable[str]) -> str:
    """Return how near the operators' values are to DirectML's, in one line; empty if all recorded bytes are equal."""
    names = defaultdict[str, list[str]](list)
    for name in dict.fromkeys(operators):
        row = values()[name]
        if row.label != "bytes" or row.convention:
            names[str(row)].append(name)
    return "; ".join(f"{', '.join(each)}: {kind}" for kind, each in names.items())
