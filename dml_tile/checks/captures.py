"""The lines of a capture together: equal ones as one, operators with the names of their nodes, graphs with the verdicts
of their operators.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from dml_tile.checks.result import Result
from dml_tile.checks.verdict import Verdict
from dml_tile.directml.enums import FeatureLevel
from dml_tile.readers.item import Item
from dml_tile.readers.sources import SourcePart
from dml_tile.text import listed, pointer_steps

Outcome: TypeAlias = tuple[Verdict, FeatureLevel | None]


def merged(parts: Iterable[SourcePart]) -> Iterator[SourcePart]:
    """Yield parts as they come, and at the end the lines of a capture: the first of equal lines, with their number.

    An operator has the names of the graphs' nodes that it is, a graph the pointers of the operators that are yielded.
    """
    captured: dict[tuple[object, ...], Item] = {}
    first_pointers: dict[str, str] = {}
    names: dict[str, dict[str, None]] = {}
    for part in parts:
        if not isinstance(part, Item) or part.capture is None:
            yield part
            continue
        capture = part.capture
        key = part.all_fields, capture.method, capture.hresult, capture.feature_level, capture.label, capture.open
        first = captured.setdefault(key, part)
        first_pointers[part.pointer] = first.pointer
        for pointer, name in part.operators:
            if name:
                names.setdefault(first_pointers.get(pointer, ""), {})[name] = None
        if first is not part:
            captured[key] = replace(first, times=first.times + 1)
    for item in sorted(captured.values(), key=_index):  # a call that has not returned comes late, behind its graph
        operators = tuple((first_pointers.get(pointer, ""), name) for pointer, name in item.operators)
        yield replace(item, operators=operators, name=listed([*names.get(item.pointer, ())]))


def _index(item: Item) -> int:
    """Return the number of a line, or of an item of a list."""
    first, *_ = [*pointer_steps(item.pointer), ""]
    return int(first) if first.isdecimal() else 0


def completed(results: list[Result], outcomes: MutableMapping[str, Sequence[Outcome]]) -> list[Result]:
    """Return the results of a captured item; those of a graph with the verdicts of its operators.

    ``outcomes`` gets those of the capture's operators at each target, by pointer.
    """
    item = results[0].item
    if not item.operators:
        outcomes[item.pointer] = [(result.verdict, result.lowest_level) for result in results]
        return results
    known = [outcomes[pointer] for pointer, _ in item.operators if pointer in outcomes]
    return [_with(result, [each[i] for each in known]) for i, result in enumerate(results)]


def _with(graph: Result, operators: Sequence[Outcome]) -> Result:
    """Return a graph's result, which is no better than the worst of its operators; one that is not checked leaves it
    accepted in part.
    """
    verdicts = Counter(verdict for verdict, _ in operators)
    looked_at = (Verdict.ACCEPTED_IN_PART if each is Verdict.NOT_CHECKED else each for each in verdicts)
    worst = max((graph.verdict, *looked_at), key=[*Verdict].index)
    levels = [graph.lowest_level, *(level for verdict, level in operators if verdict is not Verdict.NOT_CHECKED)]
    lowest = None if None in levels else max(filter(None, levels))
    return replace(graph, verdict=worst, lowest_level=lowest, operators=verdicts, is_counted=worst is graph.verdict)
