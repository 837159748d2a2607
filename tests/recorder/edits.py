"""Refused descriptors with all edits of their findings, as ``check`` offers them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count, islice

from dml_tile.checking import check
from dml_tile.descriptors.operator import OperatorDesc
from dml_tile.directml.enums import FeatureLevel
from dml_tile.findings import Finding
from dml_tile.rules.edits import edited
from dml_tile.rules.tile_findings import blocks_creation
from tests.recorder.operator_draws import draw
from tests.recorder.releases import Release
from tests.recorder.runtime import Row


def near_misses(level: FeatureLevel, seed: str) -> Iterator[tuple[OperatorDesc, tuple[Finding, ...]]]:
    """Endless descriptors with one fault that are refused at a level, and their findings."""
    for number in count():
        for row in draw(100, f"{seed} advice {number}", level):
            desc = OperatorDesc.model_validate(row["desc"])
            if len(row["faults"]) == 1 and any(map(blocks_creation, findings := check(desc, level))):
                yield desc, findings


def mended(releases: Sequence[Release], number: int, seed: str) -> tuple[list[Row], Counter[str]]:
    """Lines of so many descriptors with their edits, for each release in turn.

    Those without edits are counted by their first rule.
    """
    made, rest = list[Row](), Counter[str]()
    for i, release in enumerate(releases):
        level = release.operator_level
        for desc, findings in islice(near_misses(level, seed), len(range(i, number, len(releases)))):
            if edits := [edit for finding in findings for edit in finding.edits]:
                desc = edited(desc, edits)
                made.append({"level": level.short, "desc": json.loads(desc.model_dump_json(by_alias=True))})
            else:
                rest[next(filter(blocks_creation, findings)).rule] += 1
    return made, rest


def passes(row: Row) -> bool:
    """Whether ``check`` refuses a line's descriptor no longer."""
    return not any(map(blocks_creation, check(OperatorDesc.model_validate(row["desc"]), row["level"])))
