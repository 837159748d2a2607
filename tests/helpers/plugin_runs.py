"""Runs of pytest within a test, for which nothing is chosen but what the test chooses."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from textwrap import dedent

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

HEAD = """
import asyncio, os, subprocess, sys, unittest
from concurrent.futures import ThreadPoolExecutor
import pytest
from dml_tile import Device, DmlError, Target, TileOperatorDesc, check, current_target, simulate

LONGS = TileOperatorDesc.from_input(data_type="INT64", sizes=[1, 1, 1, 2], repeats=[1, 1, 1, 2])

def level():
    assert bool(check(LONGS)) == (current_target().feature_level < 0x4100)
    return current_target().name

def in_a_thread():
    with ThreadPoolExecutor(1) as pool: return pool.submit(level).result()

def is_right(request): return f"[{level()}]" in request.node.name
"""
"""The beginning of each module that is run."""

TEST_CASES = """
from dml_tile.simulation.process import PROCESS

@simulate("4_0")
class Base(unittest.TestCase):
    LEVEL = "4_0"

    def __init_subclass__(cls, **options): cls.options = options
    @classmethod
    def setUpClass(cls): assert level() == cls.LEVEL
    @classmethod
    def tearDownClass(cls): assert level() == cls.LEVEL
    def require_level(self): assert level() == self.LEVEL and len(PROCESS.open) < 2  # a method is wrapped once
    def setUp(self):
        self.require_level()
        self.addCleanup(self.require_level)
    def test_it(self):
        self.require_level()
        with ThreadPoolExecutor(1) as pool: pool.submit(self.require_level).result()

class Heir(Base, option="kept"):
    @classmethod
    def setUpClass(cls): assert level() == cls.LEVEL

@simulate("5_0")
class Own(Heir): LEVEL = "5_0"

class HeirOfOwn(Own): pass

assert Heir.options == {"option": "kept"}

@simulate("4_1")
class Tasks(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self): assert level() == "4_1"
    async def test_it(self):
        assert level() == await asyncio.to_thread(level) == "4_1"
        self.enterContext(simulate("5_0"))
        assert await asyncio.create_task(asyncio.to_thread(level)) == "5_0"

@simulate("4_0")
class Mixin:
    def test_it(self): assert level() == "4_0"
class Mixed(Mixin, unittest.TestCase):
    def setUp(self): assert level() == "4_0"
    def test_own(self): assert level() == "4_0"
"""
"""Test cases at their own targets, with the plugin or without it."""


def without(*plugins: str) -> list[str]:
    """Return the options that leave plugins out."""
    return [option for plugin in plugins for option in ("-p", f"no:{plugin}")]


def run(
    pytester: pytest.Pytester,
    source: str | Mapping[str, str],
    *arguments: str,
    variable: str | None = None,
    ini: str = "",
    in_a_process: bool = False,
    plugins: Collection[str] = (),
) -> pytest.RunResult:
    """Run the tests of a module, or of several by name, with ``--verbose``.

    The variable is DML_TILE_TARGET, the ini setting ``dml_target``. With plugins of OTHERS, it runs in a process of its
    own; skip the test where one is not installed.
    """
    for plugin in plugins:
        pytest.importorskip(OTHERS[plugin])
    modules = {"it": source} if isinstance(source, str) else source
    pytester.makepyfile(**{module_of(name): f"{HEAD}\n{dedent(text)}" for name, text in modules.items()})
    chosen = f"dml_target = {ini}\n" if ini else ""
    pytester.makefile(".ini", pytest=f"[pytest]\naddopts = --strict-markers -W error\n{chosen}")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DML_TILE_TARGET", variable or "")  # in any case, so that what a run leaves is undone
        if variable is None:
            patch.delenv("DML_TILE_TARGET")
        run_it = pytester.runpytest_subprocess if in_a_process or plugins else pytester.runpytest_inprocess
        return run_it("--verbose", *without(*sorted(OTHERS.keys() - {*plugins})), *arguments)


def module_of(name: str) -> str:
    """Return the name of the module of a source, which may have any name."""
    return f"test_{re.sub(r'[^a-z0-9]+', '_', name.lower())}"


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
