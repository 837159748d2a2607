"""Which tests run a line, from a coverage database that was recorded with the tests as contexts."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Final
from xml.etree import ElementTree

from coverage import CoverageData

_OWN_TESTS_FIRST: Final = -1


class CoverageMap:
    """The tests (as pytest's node ids, without parameters) that run the lines of a file, the most special ones first.

    A test is the more special, the fewer lines of the package it runs. ``seconds`` says how long each took, all its
    parameters together. ``collected`` are the ids that there are now.
    """

    def __init__(self, coverage_file: Path, junit_file: Path, collected: set[str]) -> None:
        self._collected = collected
        self.seconds: defaultdict[str, float] = defaultdict(float)
        for case in ElementTree.parse(junit_file).iter("testcase"):
            test = _node_id(f"{case.attrib['classname']}.{case.attrib['name'].partition('[')[0]}")
            self.seconds[test] += float(case.attrib["time"])
        files = {_file(test) for test in self.seconds}
        self._new = {test for test in collected if _file(test) in files and test not in self.seconds}
        data = CoverageData(str(coverage_file))
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

    def tests_of(self, file: str, first_line: int, last_line: int, within: float) -> list[str]:
        """The tests of some lines, else those of the whole file, which runs when it is imported.

        They took less than ``within`` seconds together when they were recorded; if each took more, it is the fastest.
        """
        by_line = self._tests.get(file, defaultdict(set))
        found = set().union(*(by_line.get(line, ()) for line in range(first_line, last_line + 1)))
        if not found:
            found = set().union(*by_line.values())
        own = f"test_{Path(file).stem}.py"
        found |= {test for test in self._collected if own in test} | self._new
        chosen = []
        for test in sorted(
            found, key=lambda test: (_OWN_TESTS_FIRST if own in test else 0, self._lines_run[test], test)
        ):
            if self.seconds[test] < within:
                within -= self.seconds[test]
                chosen.append(test)
        return chosen or sorted(found, key=lambda test: self.seconds[test])[:1]


def _file(test: str) -> str:
    return test.partition("::")[0]


def _node_id(context: str) -> str:
    """``tests.property.test_plans.test_x`` as ``tests/property/test_plans.py::test_x``; a class belongs to the test."""
    module, _, test = context.rpartition(".")
    outer, _, name = module.rpartition(".")
    if name[:1].isupper():
        module, test = outer, f"{name}::{test}"
    return f"{module.replace('.', '/')}.py::{test}"
