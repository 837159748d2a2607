"""``simulate`` in tests that pytest runs: in fixtures and tasks, left open, never entered, against a test's name."""

from __future__ import annotations

import pytest

from tests.helpers.plugin_runs import passed, run, says

LEVEL = """
import unittest
import pytest
from dml_tile import Target, current_target, simulate

def level(): return current_target().name

def in_a_thread():
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(1) as pool: return pool.submit(level).result()
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

@pytest.fixture
@simulate("3_1")
def decorated(): return level()

def test_after(prepared, decorated): assert prepared == level() == "6_4" and decorated == "3_1"
"""


def test_a_decorated_test_is_simulated_with_its_fixtures(pytester: pytest.Pytester) -> None:
    assert passed(run(pytester, LEVEL + DECORATED)) == [
        "test_function[4_0]",
        "TestIt::test_it[4_0]",
        "TestHeir::test_it[4_0]",
        "TestHeir::test_own[4_0]",
        "TestCase::test_it",
        "test_after",
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


FIXTURES = """
from contextlib import ExitStack

@pytest.fixture
def stack():
    with ExitStack() as stack: yield stack

@pytest.mark.dml
def test_stack(stack):
    stack.enter_context(simulate("2_0"))
    assert level() == in_a_thread() == "2_0"

@pytest.fixture(scope="module")
def old():
    with simulate("2_0"): yield

class TestOld:
    def setup_method(self): assert level() == "2_0"
    def test_module(self, old): assert level() == in_a_thread() == "2_0"

@pytest.fixture(scope="class")
def inner():
    with simulate("3_1"): yield

class TestInner:
    def test_inner(self, inner): assert level() == in_a_thread() == "3_1"
    def test_again(self): assert level() == "3_1"

def test_outer(old): assert level() == "2_0"

class TestMethods:
    def setup_method(self):
        self.simulation = simulate("5_0")
        self.simulation.__enter__()
    def teardown_method(self): self.simulation.__exit__()
    def test_it(self): assert level() == in_a_thread() == "5_0"

class TestCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls): cls.enterClassContext(simulate("4_0"))
    def setUp(self): assert level() == in_a_thread() == "4_0"
    def test_it(self):
        self.enterContext(simulate("5_0"))
        assert level() == in_a_thread() == "5_0"
"""


def test_a_simulation_of_a_fixture_or_a_setup_holds_everywhere_until_it_ends(pytester: pytest.Pytester) -> None:
    source = FIXTURES.replace(
        '    def setup_method(self): assert level() == "2_0"\n    def test_module', "    def test_module"
    )
    assert len(passed(run(pytester, LEVEL + source))) == 7


@pytest.mark.parametrize(
    "leave", ["simulate('2_0').__enter__()", "simulate('2_0', scope='context').__enter__()", "next(kept[0])"]
)
def test_a_simulation_that_is_left_open_fails_its_test_and_no_other(pytester: pytest.Pytester, leave: str) -> None:
    source = f"""
def generator():
    with simulate("2_0"):
        yield

kept = [generator()]

@pytest.mark.dml
def test_leaves(): {leave}

@pytest.mark.dml
def test_marked(): assert level() == "4_0"

def test_plain():
    kept[0].close()
    assert level() == "4_0"
"""
    result = run(pytester, LEVEL + source, "--dml-target=4_0")
    result.assert_outcomes(passed=3, errors=1)
    says(result, "*::test_leaves[4_0]: the test left simulate('2_0'*) open; enter it in a `with` block, *")


def test_a_wide_fixture_that_leaves_one_open_fails_the_test_that_ends_it(pytester: pytest.Pytester) -> None:
    source = """
@pytest.fixture(scope="class")
def wide(): simulate("2_0").__enter__()

class TestIt:
    def test_it(self, wide): assert level() == "2_0"

def test_after(): assert level() == "6_4"
"""
    result = run(pytester, LEVEL + source)
    result.assert_outcomes(passed=2, errors=1)
    says(result, "*::TestIt::test_it: the test left simulate('2_0') open; *")


def test_a_simulation_that_is_never_entered_fails_its_test(pytester: pytest.Pytester) -> None:
    source = """
unused = simulate("3_1")  # a list of parameters may hold some that are not run

@pytest.fixture
def forgetful(): simulate("2_0")

def test_it(): simulate("4_0")
def test_fixture(forgetful): pass
def test_used():
    with simulate("4_0"): simulate("5_0")(level)()
"""
    result = run(pytester, LEVEL + source)
    result.assert_outcomes(passed=3, errors=2)
    says(result, "*::test_it: simulate('4_0') of *.py:* was never entered; enter it in a `with` block, *")


BEGINS_ELSEWHERE = {
    "a fixture": "@pytest.fixture(autouse=True)\ndef old():\n    with simulate('2_0'): yield",
    "a wide fixture": "@pytest.fixture(autouse=True, scope='module')\ndef old():\n    with simulate('2_0'): yield",
    "a fixture of its context": (
        "@pytest.fixture(autouse=True)\ndef old():\n    with simulate('2_0', scope='context'): yield"
    ),
    "a setup": (
        "def setup_function():\n    simulations.append(simulate('2_0'))\n    simulations[-1].__enter__()\n"
        "def teardown_function(): simulations.pop().__exit__()\nsimulations = []"
    ),
    "code before the tests": (
        "simulation = simulate('2_0')\nsimulation.__enter__()\ndef teardown_module(): simulation.__exit__()"
    ),
}


@pytest.mark.parametrize("who", BEGINS_ELSEWHERE)
def test_a_test_that_begins_at_another_target_than_its_own_is_an_error(pytester: pytest.Pytester, who: str) -> None:
    source = f"""
{BEGINS_ELSEWHERE[who]}

@pytest.mark.dml
def test_marked(): raise AssertionError

@simulate("6_4")
def test_decorated(): raise AssertionError

def test_argument(dml_target): raise AssertionError

def test_plain(): assert level() == "2_0"

@pytest.mark.dml(targets=["directml-1.1.0"])
def test_same(): assert level() == "2_0" or level() == "windows-10-2004"
"""
    result = run(pytester, LEVEL + source)
    result.assert_outcomes(passed=2, failed=3)
    for name in ("marked", "decorated", "argument"):
        says(
            result, f"*::test_{name}[6_4]: this test is for 6_4, but begins at 2_0: simulate('2_0'*) of *.py:* is open"
        )


def test_a_fixture_dml_target_of_one_s_own_that_is_another_target_is_an_error(pytester: pytest.Pytester) -> None:
    source = """
@pytest.fixture
def dml_target(): return Target.parse("4_0")

def test_it(dml_target): raise AssertionError

@pytest.mark.dml(targets=["4_0"])
def test_same(dml_target): assert dml_target == current_target()
"""
    result = run(pytester, LEVEL + source)
    result.assert_outcomes(passed=1, failed=1)
    says(result, "*::test_it[6_4]: this test is for 6_4, but its fixture dml_target returns 4_0")


TASKS = """
import asyncio

pytestmark = pytest.mark.asyncio(loop_scope="module")

@pytest.fixture
async def prepared():
    before = level()
    yield before
    assert level() == before

@pytest.fixture
async def simulating():
    with simulate("3_0"): yield

@pytest.mark.dml(targets=["4_0", "5_0"])
async def test_marked(prepared, request):
    assert f"[{prepared}]" in request.node.name and level() == prepared
    assert await asyncio.get_running_loop().run_in_executor(None, level) == prepared
    with simulate("2_0"):
        assert await asyncio.create_task(asyncio.to_thread(level)) == "2_0"
    assert level() == prepared

@simulate("3_1")
async def test_decorated(prepared):
    await asyncio.sleep(0)
    assert prepared == level() == "3_1"

async def test_fixture(simulating): assert level() == in_a_thread() == "3_0"
async def test_plain(prepared): assert prepared == level() == "6_4"
"""


@pytest.mark.parametrize(
    ("plugin", "options"),
    [
        ("asyncio", ["-oasyncio_mode=auto", "-oasyncio_default_fixture_loop_scope=module"]),
        ("anyio", ["-oanyio_mode=auto"]),
    ],
)
def test_asynchronous_tests_run_at_their_targets(pytester: pytest.Pytester, plugin: str, options: list[str]) -> None:
    source = LEVEL + TASKS
    if plugin == "anyio":
        source = source.replace('pytest.mark.asyncio(loop_scope="module")', "pytest.mark.anyio")
        source += '\n@pytest.fixture(scope="module")\ndef anyio_backend(): return "asyncio"\n'
    names = ["test_marked[4_0]", "test_marked[5_0]", "test_decorated[3_1]", "test_fixture", "test_plain"]
    assert [name.replace("asyncio-", "") for name in passed(run(pytester, source, *options, plugins=[plugin]))] == names


def test_an_asynchronous_test_that_is_decorated_can_fail(pytester: pytest.Pytester) -> None:
    source = LEVEL + "@simulate('4_0')\nasync def test_it(): assert level() == '6_4'"
    options = ["-oasyncio_mode=auto", "-oasyncio_default_fixture_loop_scope=function"]
    run(pytester, source, *options, plugins=["asyncio"]).assert_outcomes(failed=1)


def test_a_task_keeps_no_context_s_target_into_another_test(pytester: pytest.Pytester) -> None:
    source = """
import asyncio

runner = asyncio.Runner()

async def ask(): return level()

def test_first():
    with simulate("2_0", scope="context"):
        assert runner.run(ask()) == "2_0"  # the runner keeps this context

@pytest.mark.dml
def test_second(): assert runner.run(ask()) == "5_0"

def test_third():
    assert runner.run(ask()) == "5_0"
    runner.close()
"""
    assert len(passed(run(pytester, LEVEL + source, "--dml-target=5_0"))) == 3


def test_each_attempt_of_a_test_that_runs_again_begins_anew(pytester: pytest.Pytester) -> None:
    source = """
from dml_tile import Device, TileOperatorDesc, check
from dml_tile.device import BindingTableDesc

TILE = TileOperatorDesc.from_input(data_type="FLOAT32", sizes=[1], repeats=[1])
attempts = []

@simulate("4_0")
def test_calls(dml_calls):
    assert level() == "4_0" and not dml_calls
    check(TILE)
    attempts.append(1)
    assert len(attempts) == 3

@pytest.mark.dml(expects_removal=True)
def test_removal():
    device = Device()
    table = device.create_binding_table(BindingTableDesc(device.compile_operator(device.create_operator(TILE))))
    if len(attempts) == 3:
        table.bind_inputs([])
    attempts.append(1)
    assert len(attempts) > 4
"""
    result = run(pytester, LEVEL + source, "--reruns=2", plugins=["rerunfailures"])
    assert result.parseoutcomes() == {"passed": 1, "failed": 1, "rerun": 4}
    says(result, "*::test_removal[6_4]: the test expects that a device is removed, and none was")
