"""Runs of pytest within a test, for which nothing is chosen but what the test chooses."""

from __future__ import annotations

import re

import pytest

import dml_tile

for _name in dml_tile.__all__:  # a run in this process takes with it the modules that it was the first to import
    getattr(dml_tile, _name)


def run(
    pytester: pytest.Pytester,
    source: str,
    *arguments: str,
    variable: str | None = None,
    ini: str = "",
    in_a_process: bool = False,
    asyncio_mode: str = "",
) -> pytest.RunResult:
    """Run the tests of a source with ``--verbose``; the variable is DML_TILE_TARGET, the ini setting ``dml_target``.

    With a mode of pytest-asyncio, that plugin runs too, in a process of its own: it leaves event loops open.
    """
    pytester.makepyfile(source)
    pytester.makefile(".ini", pytest=f"[pytest]\naddopts = --strict-markers -W error\ndml_target = {ini}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("DML_TILE_TARGET", raising=False)
        if variable is not None:
            patch.setenv("DML_TILE_TARGET", variable)
        run_it = pytester.runpytest_subprocess if in_a_process or asyncio_mode else pytester.runpytest_inprocess
        asyncio = ["-o", f"asyncio_mode={asyncio_mode}"] if asyncio_mode else ["-p", "no:asyncio"]
        return run_it("--verbose", *asyncio, *arguments)


def passed(result: pytest.RunResult) -> list[str]:
    """The names of the tests that passed; asserts that no other ran."""
    names = re.findall(r"::(\S+) PASSED", result.stdout.str())
    result.assert_outcomes(passed=len(names), deselected=result.parseoutcomes().get("deselected", 0))
    return names
