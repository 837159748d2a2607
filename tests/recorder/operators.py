"""What DirectML answers to descriptors of any operator, line by line as they are recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import Any

from dml_tile.descriptors.operator import OperatorDesc
from tests.recorder.interfaces import CREATE_OPERATOR, Object
from tests.recorder.memory import GuardedMemory
from tests.recorder.releases import RELEASES, Release
from tests.recorder.runtime import Adapter, device, hexadecimal
from tests.recorder.workers import Crash, ask_each

Row = dict[str, Any]


def answered_operators(rows: Sequence[Row]) -> Iterator[Row]:
    """What the release of each line's level answers to its descriptor."""
    releases = {release.operator_level.short: release for release in RELEASES}
    for level, of_level in groupby(rows, key=itemgetter("level")):
        asked = list(of_level)
        descs = [OperatorDesc.model_validate(row["desc"]) for row in asked]
        for row, answer in zip(asked, ask_each(descs, _creation(releases[level])), strict=True):
            yield row | {"hresult": f"CRASH:{answer.signal}" if isinstance(answer, Crash) else answer}


def answered_cases(rows: Sequence[Row]) -> Iterator[Row]:
    """What the releases answer to each case: one value where all agree, else one for each level."""
    levels = [release.operator_level.short for release in RELEASES]
    asked = [{"level": level, "desc": row["desc"]} for level in levels for row in rows]
    answers = [row["hresult"] for row in answered_operators(asked)]
    for i, row in enumerate(rows):
        by_level = dict(zip(levels, answers[i :: len(rows)], strict=True))
        yield row | {"hresult": by_level if len({*by_level.values()}) > 1 else answers[i]}


@cache
def _creation(release: Release) -> Callable[[OperatorDesc], str]:
    """What a device answers. Unlike ``runtime.creation``, it compiles nothing: at some operators that is a crash."""
    made, memory = device(release, Adapter()), GuardedMemory()

    def answer(desc: OperatorDesc) -> str:
        hresult, address = made.make(CREATE_OPERATOR, "IDMLOperator", memory.write(desc))
        if address is not None:
            Object(address).release()
        return hexadecimal(hresult)

    return answer
