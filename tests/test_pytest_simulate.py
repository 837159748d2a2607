"""``simulate`` in tests that pytest runs: as a decorator, with async tests, and left open."""

from __future__ import annotations

import pytest

from tests.helpers.plugin_runs import passed, run

LEVEL = """
import unittest
import pytest
from dml_tile import current_target, simulate

def level(): return current_target().name
"""

DECORATED = """
@pytest.fixture(autouse=True)
def prepared(): return level()

@simulate("4_0")
def test_function(prepared): assert prepared == level() == "4_0"

@simulate("4_0")
class TestIt:
    @classmethod
    def setup_class(cls): cls.seen = level()
    def setup_method(self): assert self.seen == level()
    def test_it(self, prepared): assert self.seen == prepared == level() == "4_0"

class TestHeir(TestIt):
    def test_own(self, prepared): assert prepared == level() == "4_0"

@simulate("4_0")
class TestCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls): cls.seen = level()
    def test_it(self): assert self.seen == level() == "4_0"

def test_after(prepared): assert prepared == level() == "6_4"
"""


def test_a_decorated_test_is_simulated_with_its_fixtures(pytester: pytest.Pytester) -> None:
    assert len(passed(run(pytester, LEVEL + DECORATED))) == 6


def test_a_decorated_test_keeps_its_target_where_every_test_runs_at_each(pytester: pytest.Pytester) -> None:
    names = passed(run(pytester, LEVEL + DECORATED, "--dml-every-test", "--dml-target=6_4"))
    assert names == [
        "test_function[4_0]",
        "TestIt::test_it[4_0]",
        "TestHeir::test_it[4_0]",
        "TestHeir::test_own[4_0]",
        "TestCase::test_it",
        "test_after[6_4]",
    ]


def test_a_decorated_class_is_collected_and_fails(pytester: pytest.Pytester) -> None:
    source = """
@simulate("4_0")
class TestIt:
    def test_it(self): assert False

@simulate("4_0")
class TestTasks(unittest.IsolatedAsyncioTestCase):
    async def test_it(self): assert False
"""
    run(pytester, LEVEL + source).assert_outcomes(failed=2)


def test_a_decorated_class_of_a_marker_that_keeps_other_targets_is_deselected(pytester: pytest.Pytester) -> None:
    source = "@pytest.mark.dml(minimum='5_0')\n@simulate('4_0')\ndef test_it(): raise AssertionError"
    run(pytester, LEVEL + source).assert_outcomes(deselected=1)


LEFT_OPEN = {
    "entered": "simulate('2_0').__enter__()",
    "process-wide": "simulate('2_0', process_wide=True).__enter__()",
    "in a generator": "next(kept[0])",
}


@pytest.mark.parametrize("leave", LEFT_OPEN.values(), ids=LEFT_OPEN)
def test_a_simulation_that_is_left_open_fails_its_test_and_no_other(pytester: pytest.Pytester, leave: str) -> None:
    source = f"""
import os

def generator():
    with simulate("2_0"):
        yield

kept = [generator()]

@pytest.mark.dml
def test_leaves(): {leave}

@pytest.mark.dml
def test_marked(dml_target): assert level() == "4_0" == os.environ["DML_TILE_TARGET"]

def test_plain():
    kept[0].close()
    assert level() == "6_4" and "DML_TILE_TARGET" not in os.environ
"""
    result = run(pytester, LEVEL + source, "--dml-target=4_0")
    result.assert_outcomes(passed=3, errors=1)
    result.stdout.fnmatch_lines(["*::test_leaves[[]4_0]: the test left simulate('2_0') open; enter it in a `with` *"])


def test_what_a_fixture_ends_is_not_left_open(pytester: pytest.Pytester) -> None:
    source = """
from contextlib import ExitStack

@pytest.fixture
def stack():
    with ExitStack() as stack: yield stack

@pytest.mark.dml
def test_stack(stack):
    stack.enter_context(simulate("2_0"))
    assert level() == "2_0"

@pytest.fixture(scope="module")
def old():
    with simulate("2_0"): yield

def test_module(old): assert level() == "2_0"

class TestCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls): cls.enterClassContext(simulate("4_0"))
    def test_it(self):
        self.enterContext(simulate("5_0"))
        assert level() == "5_0"
"""
    assert len(passed(run(pytester, LEVEL + source))) == 3


def test_a_wide_fixture_s_simulation_does_not_reach_another_test_unnoticed(pytester: pytest.Pytester) -> None:
    source = """
@pytest.fixture(scope="module")
def old():
    with simulate("2_0"): yield

def test_old(old): assert level() == "2_0"

@pytest.mark.dml
def test_marked(): raise AssertionError

@pytest.mark.dml
def test_with_it(old): assert level() == "2_0"
"""
    result = run(pytester, LEVEL + source)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        ["*::test_marked[[]6_4]: this test is for 6_4, but the fixture old has entered *'2_0'*"]
    )


def test_what_code_entered_before_the_tests_does_not_reach_a_marked_one_unnoticed(pytester: pytest.Pytester) -> None:
    source = """
simulation = simulate("2_0")
simulation.__enter__()

def test_plain(): assert level() == "2_0"

@pytest.mark.dml
def test_marked(): raise AssertionError

def test_end(): simulation.__exit__(None, None, None)
"""
    result = run(pytester, LEVEL + source)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        ["*this test is for 6_4, but code that ran before the tests has entered simulate('2_0')*"]
    )


TASKS = """
import asyncio

pytestmark = pytest.mark.asyncio(loop_scope="module")
tasks = []

@pytest.fixture
async def prepared():
    before = level()
    yield before
    assert level() == before

@pytest.mark.dml
async def test_marked(prepared, request):
    assert f"[{prepared}]" in request.node.name and level() == prepared
    assert await asyncio.get_running_loop().run_in_executor(None, level) == prepared
    with simulate("2_0"):
        tasks.append(asyncio.create_task(asyncio.sleep(0, result=level)))
    assert level() == prepared

@simulate("3_1")
async def test_decorated(prepared):
    await asyncio.sleep(0)
    assert prepared == level() == "3_1"

async def test_plain(prepared): assert prepared == level() == "6_4"
"""


def test_asynchronous_tests_run_at_their_targets(pytester: pytest.Pytester) -> None:
    pytest.importorskip("pytest_asyncio")
    result = run(
        pytester,
        LEVEL + TASKS,
        "-o",
        "asyncio_default_fixture_loop_scope=module",
        "--dml-target=4_0,5_0",
        asyncio_mode="auto",
    )
    assert passed(result) == ["test_marked[4_0]", "test_marked[5_0]", "test_decorated", "test_plain"]


def test_an_asynchronous_test_that_is_decorated_can_fail(pytester: pytest.Pytester) -> None:
    pytest.importorskip("pytest_asyncio")
    source = "@simulate('4_0')\nasync def test_it(): assert level() == '6_4'"
    run(
        pytester, LEVEL + source, "-o", "asyncio_default_fixture_loop_scope=function", asyncio_mode="auto"
    ).assert_outcomes(failed=1)


def test_a_task_does_not_carry_its_target_into_another_test(pytester: pytest.Pytester) -> None:
    source = """
import asyncio

runner = asyncio.Runner()

async def ask(): return level()

def test_first():
    with simulate("2_0"):
        assert runner.run(ask()) == "2_0"  # the runner keeps this context

@pytest.mark.dml
def test_second(): assert runner.run(ask()) == "5_0"

def test_third():
    assert runner.run(ask()) == "6_4"
    runner.close()
"""
    assert len(passed(run(pytester, LEVEL + source, "--dml-target=5_0"))) == 3
