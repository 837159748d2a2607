"""Fields of operators other than Tile at which DirectML ends the process, where they alone are null or too short.

Behind its first line, ``crashes.txt`` has a line for each: the operator and the field; "null", or "short" for an array
of fewer structs than its count; the measured levels; and behind "if" an optional tensor without which DirectML returns
E_INVALIDARG.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.levels import measured_like

CRASHES: Final = Path(__file__).with_name("crashes.txt")


class Crash(NamedTuple):
    """The measured levels at which the process ends, and the tensor without which it does not, if there is one."""

    levels: frozenset[FeatureLevel]
    tensor: str


@cache
def crashes() -> Mapping[tuple[str, str], Crash]:
    """Return the crashes by the operator and field, such as "GEMM.OutputTensor.Desc", and "null" or "short"."""
    found = dict[tuple[str, str], Crash]()
    for line in CRASHES.read_text(encoding="utf-8").splitlines()[1:]:
        described, _, tensor = line.partition(" if ")
        field, kind, *levels = described.split()
        found[field, kind] = Crash(frozenset(map(FeatureLevel.parse, levels)), tensor)
    return found


def ends_the_process(operator: str, field: str, kind: str, level: FeatureLevel, given: Collection[str]) -> bool:
    """Return True if DirectML ends the process at a field of an operator, where these tensors are given."""
    crash = crashes().get((f"{operator}.{field}", kind))
    return crash is not None and measured_like(level) in crash.levels and (not crash.tensor or crash.tensor in given)
