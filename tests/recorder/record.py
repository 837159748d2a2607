"""Asks every recorded question again, and writes the answers anew.

A recorded file is its own list of questions: one JSON value a line, of which ``hresult`` and the like are the answers.
The same DirectML gives the same bytes. A question that ends the process of a release is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from dml_tile.descriptors.tile import TileOperatorDesc
from tests.helpers.recorded_answers import rows_of
from tests.recorder import calls, random_lives
from tests.recorder.releases import RELEASES, RELEASES_OF_LEVELS
from tests.recorder.runtime import Adapter, Answer, Row, answered_operators, ask_runtime
from tests.recorder.workers import Crash, ask_each

_ENDED: Final = re.compile(r'"crash[":]', re.IGNORECASE)
"""Stands in the line of a question that ended a release's process: it is no data to publish."""

DATA: Final = Path(__file__).parents[1] / "data"


def record(name: str) -> str:
    """The text of one of the ``RECORDED`` files, with the answers anew."""
    lines = (json.dumps(row, separators=(",", ":")) for row in RECORDED[name](rows_of(name)))
    return "".join(f"{line}\n" for line in lines if not _ENDED.search(line))


def answered_descriptors(rows: Sequence[Row]) -> Iterator[Row]:
    """What each release answers to each descriptor. A row names the adapter's capabilities, unless all are there."""
    for adapter, of_adapter in groupby(rows, key=lambda row: Adapter(**row.get("adapter", {}))):
        asked = [{key: value for key, value in row.items() if key not in Answer._fields} for row in of_adapter]
        descs = [TileOperatorDesc.model_validate(row["desc"]) for row in asked]
        answers = [ask_runtime(descs, release, adapter) for release in RELEASES]
        for row, *given in zip(asked, *answers, strict=True):
            merged = (_merged(each) for each in zip(*given, strict=True))
            yield row | {key: value for key, value in zip(Answer._fields, merged, strict=True) if value is not None}


def answered_calls(rows: Sequence[Row]) -> Iterator[Row]:
    """What the release that each row names answers to its call; ``crash`` where the process died."""
    for level, of_level in groupby(rows, key=itemgetter("runtime")):
        cases = list(of_level)
        answer = partial(calls.answer, RELEASES_OF_LEVELS[level])
        for row, result in zip(cases, ask_each(cases, answer), strict=True):
            question = {key: row[key] for key in ("runtime", "group", "id")}
            yield question | ({"crash": result.signal} if isinstance(result, Crash) else result)


def answered_lives(rows: Sequence[Row]) -> Iterator[Row]:
    """What the calls of each life come to."""
    answers = [random_lives.real_results(rows, release) for release in RELEASES]
    for row, *given in zip(rows, *answers, strict=True):
        yield row | {"result": _merged(given)}


def answered_cases(rows: Sequence[Row]) -> Iterator[Row]:
    """What each release answers to each case of an operator."""
    levels = [release.operator_level.short for release in RELEASES]
    answers = [answered_operators([row | {"level": level} for row in rows]) for level in levels]
    for row, *given in zip(rows, *answers, strict=True):
        yield row | {"hresult": _merged([answer["hresult"] for answer in given], levels)}


def _merged(values: Sequence[Any], levels: Iterable[str] = RELEASES_OF_LEVELS) -> Any:
    """One value where all that there are agree, else each by its level; None where there is none."""
    there = {level: value for level, value in zip(levels, values, strict=True) if value is not None}
    return (
        there if any(value != other for value, other in pairwise(there.values())) else next(iter(there.values()), None)
    )


RECORDED: Final[dict[str, Callable[[Sequence[Row]], Iterator[Row]]]] = {
    "create_operator.jsonl": answered_descriptors,
    "adapters.jsonl": answered_descriptors,
    "alignments.jsonl": answered_descriptors,
    "over_reads.jsonl": answered_descriptors,
    "interfaces.jsonl": answered_calls,
    "devices.jsonl": answered_lives,
    "binding.jsonl": answered_lives,
    "lives.jsonl": answered_lives,
    "operators.jsonl.xz": answered_operators,
    "described_operators.jsonl.xz": answered_operators,
    "described_graphs.jsonl.xz": answered_lives,
    "operator_cases.jsonl": answered_cases,
}
