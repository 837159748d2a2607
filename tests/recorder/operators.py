"""What DirectML answers to descriptors of any operator, line by line as they are recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from dml_tile.descriptors.operator import OperatorDesc
from tests.recorder.releases import RELEASES
from tests.recorder.runtime import ask_runtime

Row = dict[str, Any]


def answered_operators(rows: Sequence[Row]) -> Iterator[Row]:
    """What the release of each line's level answers to its descriptor."""
    releases = {release.operator_level.short: release for release in RELEASES}
    for level, of_level in groupby(rows, key=itemgetter("level")):
        asked = list(of_level)
        descs = [OperatorDesc.model_validate(row["desc"]) for row in asked]
        for row, answer in zip(asked, ask_runtime(descs, releases[level]), strict=True):
            yield row | {"hresult": answer.hresult}
