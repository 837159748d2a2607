"""Runs of pytest within a test, for which nothing is chosen but what the test chooses."""

from __future__ import annotations

import re
from collections.abc import Collection

import pytest

import dml_tile

for _name in dml_tile.__all__:  # a run in this process takes with it the modules that it was the first to import
    getattr(dml_tile, _name)

OTHERS = {
    "asyncio": "pytest_asyncio",
    "anyio": "anyio",
    "randomly": "pytest_randomly",
    "rerunfailures": "pytest_rerunfailures",
}
"""Plugins that such a run does without unless it names them, and their modules."""


def without(*plugins: str) -> list[str]:
    """Return the options that leave plugins out."""
    return [option for plugin in plugins for option in ("-p", f"no:{plugin}")]


def run(
    pytester: pytest.Pytester,
    source: str,
    *arguments: str,
    variable: str | None = None,
    ini: str = "",
    in_a_process: bool = False,
    plugins: Collection[str] = (),
) -> pytest.RunResult:
    """Run the tests of a source with ``--verbose``; the variable is DML_TILE_TARGET, the ini setting ``dml_target``.

    With plugins of OTHERS, it runs in a process of its own; skip the test where one is not installed.
    """
    for plugin in plugins:
        pytest.importorskip(OTHERS[plugin])
    pytester.makepyfile(source)
    pytester.makefile(".ini", pytest=f"[pytest]\naddopts = --strict-markers -W error\ndml_target = {ini}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("DML_TILE_TARGET", raising=False)
        if variable is not None:
            patch.setenv("DML_TILE_TARGET", variable)
        run_it = pytester.runpytest_subprocess if in_a_process or plugins else pytester.runpytest_inprocess
        return run_it("--verbose", *without(*sorted(OTHERS.keys() - {*plugins})), *arguments)


def passed(result: pytest.RunResult) -> list[str]:
    """The names of the tests that passed; asserts that no other ran."""
    names = re.findall(r"::(\S+) PASSED", result.stdout.str())
    result.assert_outcomes(passed=len(names), deselected=result.parseoutcomes().get("deselected", 0))
    return names


def failed(result: pytest.RunResult) -> list[str]:
    """The names of the tests that failed, or whose setup or teardown did."""
    return re.findall(r"::(\S+) (?:FAILED|ERROR)", result.stdout.str())


def says(result: pytest.RunResult, *lines: str) -> None:
    """Assert that lines with ``*`` are in the output, each somewhere; brackets stand for themselves."""
    for line in lines:
        result.stdout.fnmatch_lines([line.replace("[", "[[]")])
