"""Which tests run a line, from a coverage database that was recorded with the tests as contexts."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Final

from coverage import CoverageData

_OWN_TESTS_FIRST: Final = -1


class CoverageMap:
    """The tests (as pytest's node ids, without parameters) that run the lines of a file, the most special ones first.

    A test is the more special, the fewer lines of the package it runs. ``collected`` are the ids that there are.
    """

    def __init__(self, data_file: Path, collected: set[str]) -> None:
        self._collected = collected
        data = CoverageData(str(data_file))
        data.read()
        self._tests: dict[str, dict[int, set[str]]] = {}
        self._lines_run: Counter[str] = Counter()
        for file in data.measured_files():
            contexts = {
                line: {_node_id(context) for context in names} & collected
                for line, names in data.contexts_by_lineno(file).items()
            }
            self._tests[file] = contexts
            for names in contexts.values():
                self._lines_run.update(names)

    def tests_of(self, file: str, first_line: int, last_line: int) -> list[str]:
        """The tests of some lines, else those of the whole file, which runs when it is imported."""
        by_line = self._tests.get(file, defaultdict(set))
        found = set().union(*(by_line.get(line, ()) for line in range(first_line, last_line + 1)))
        if not found:
            found = set().union(*by_line.values())
        own = f"test_{Path(file).stem}.py"
        found |= {test for test in self._collected if own in test}
        return sorted(found, key=lambda test: (_OWN_TESTS_FIRST if own in test else 0, self._lines_run[test], test))


def _node_id(context: str) -> str:
    """``tests.property.test_plans.test_x`` as ``tests/property/test_plans.py::test_x``."""
    module, _, test = context.rpartition(".")
    return f"{module.replace('.', '/')}.py::{test}"
