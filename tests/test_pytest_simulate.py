"""``simulate`` in tests that pytest runs: in fixtures and tasks, left open, never entered, against a test's name."""

from __future__ import annotations

import pytest

from tests.helpers.plugin_runs import passed, run, says

FIXTURES = """
from contextlib import ExitStack

def is_everywhere(target): return level() == in_a_thread() == target == os.environ["DML_TILE_TARGET"]

@pytest.fixture
def stack():
    with ExitStack() as stack: yield stack

@pytest.mark.dml
def test_stack(stack):
    stack.enter_context(simulate("2_0"))
    assert is_everywhere("2_0")

class TestCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls): cls.enterClassContext(simulate("4_0"))
    def setUp(self):
        assert is_everywhere("4_0")
        self.enterContext(simulate("4_1"))
    def test_it(self):
        assert is_everywhere("4_1")
        self.enterContext(simulate("5_0"))
        assert is_everywhere("5_0")

@pytest.fixture(scope="session")
def oldest():
    with simulate("1_0"): yield

@pytest.fixture(scope="module")
def old(oldest):
    assert is_everywhere("1_0")
    with simulate("2_0"): yield

def test_module(old): assert is_everywhere("2_0")

@pytest.fixture(scope="class")
def inner():
    with simulate("3_1"): yield

class TestInner:
    def test_inner(self, inner): assert is_everywhere("3_1")
    def test_again(self): assert is_everywhere("3_1")

def test_outer(old): assert is_everywhere("2_0")
"""


def test_a_simulation_of_a_fixture_or_a_setup_holds_everywhere_until_it_ends(pytester: pytest.Pytester) -> None:
    later = "def test_it(): assert level() == '1_0'"  # in the fixture of the session
    assert len(passed(run(pytester, {"a": FIXTURES, "b": later, "c": later}))) == 8


LEFT_OPEN = """
def generator():
    with simulate("2_0"): yield
kept = generator()

@pytest.mark.dml
@pytest.mark.parametrize("leave", [
    lambda: simulate("2_0").__enter__(), lambda: simulate("2_0", scope="context").__enter__(), lambda: next(kept)
])
def test_leaves(leave): leave()

@pytest.mark.dml
def test_marked(): assert level() == "4_0"

def test_plain():
    kept.close()
    assert level() == "4_0"

@pytest.fixture(scope="class")
def wide(): simulate("2_0").__enter__()

class TestWide:
    def test_it(self, wide): assert level() == "2_0"

def test_after(): assert level() == "4_0"

unused = simulate("3_1")  # a list of parameters may hold some that are not run

@pytest.fixture
def forgetful(): simulate("2_0")

def test_never_entered(): simulate("4_0")
def test_fixture(forgetful): pass
def test_used():
    with simulate("4_0"): simulate("5_0")(level)()
"""


def test_a_simulation_that_is_left_open_or_never_entered_fails_its_test_and_no_other(pytester: pytest.Pytester) -> None:
    result = run(pytester, LEFT_OPEN, "--dml-target=4_0")
    result.assert_outcomes(passed=10, errors=6)
    says(
        result,
        *(f"*::test_leaves[4_0-<lambda>{i}]: the test left simulate('2_0'*) open; enter it in a *" for i in range(3)),
        "*::TestWide::test_it: the test left simulate('2_0') open; *",
        "*::test_never_entered: simulate('4_0') of *.py:* was never entered; enter it in a `with` block, *",
        "*::test_fixture: simulate('2_0') of *.py:* was never entered; *",
    )


OLD = "@pytest.fixture(autouse=True{})\ndef old():\n    with simulate('2_0'{}): yield"
BEGINS_ELSEWHERE = {
    "fixture": OLD.format("", ""),
    "wide fixture": OLD.format(", scope='module'", ""),
    "fixture of its context": OLD.format("", ", scope='context'"),
    "setup": (
        "def setup_function():\n    simulations.append(simulate('2_0'))\n    simulations[-1].__enter__()\n"
        "def teardown_function(): simulations.pop().__exit__()\nsimulations = []"
    ),
}
TESTS_ELSEWHERE = """
@pytest.mark.dml
def test_marked(): raise AssertionError

@simulate("6_4")
def test_decorated(): raise AssertionError

def test_argument(dml_target): raise AssertionError

def test_plain(): assert level() == "2_0"

@pytest.mark.dml(targets=["directml-1.1.0"])
def test_same(): assert level() == "2_0" or level() == "windows-10-2004"
"""
OWN_FIXTURE = """
@pytest.fixture
def dml_target(): return Target.parse("4_0")

def test_own(dml_target): raise AssertionError

@pytest.mark.dml(targets=["4_0"])
def test_same(dml_target): assert dml_target == current_target()
"""


def test_a_test_that_begins_at_another_target_than_its_own_is_an_error(pytester: pytest.Pytester) -> None:
    sources = {who: before + TESTS_ELSEWHERE for who, before in BEGINS_ELSEWHERE.items()} | {"own": OWN_FIXTURE}
    result = run(pytester, sources)
    result.assert_outcomes(passed=2 * len(BEGINS_ELSEWHERE) + 1, failed=3 * len(BEGINS_ELSEWHERE) + 1)
    text = "this test is for 6_4, but begins at 2_0: simulate('2_0'*) of *.py:* is open"
    for who in BEGINS_ELSEWHERE:
        names = [f"test_{who.replace(' ', '_')}.py::test_{name}" for name in ("marked", "decorated", "argument")]
        says(result, *(f"*{name}[6_4]: {text}" for name in names))
    says(result, "*::test_own[6_4]: this test is for 6_4, but its fixture dml_target returns 4_0")


TASKS = """
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

@pytest.mark.dml
async def test_elsewhere(simulating): pass

@simulate("4_0")
async def test_wrong(): assert level() == "6_4"
"""
ON_TRIO = """
@pytest.fixture(scope="module")
def anyio_backend(): return "asyncio"

@pytest.mark.dml(targets=["5_1"])
@pytest.mark.parametrize("anyio_backend", ["trio"], scope="module")
async def test_trio(prepared):
    import anyio
    assert prepared == level() == await anyio.to_thread.run_sync(level) == "5_1"
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("plugin", "options"),
    [
        ("asyncio", ["-oasyncio_mode=auto", "-oasyncio_default_fixture_loop_scope=module"]),
        ("anyio", ["-oanyio_mode=auto"]),
    ],
)
def test_asynchronous_tests_run_at_their_targets(pytester: pytest.Pytester, plugin: str, options: list[str]) -> None:
    source = TASKS
    if plugin == "anyio":
        pytest.importorskip("trio")
        source = TASKS.replace('pytest.mark.asyncio(loop_scope="module")', "pytest.mark.anyio") + ON_TRIO
    result = run(pytester, source, *options, plugins=[plugin])
    result.assert_outcomes(passed=5 + (plugin == "anyio"), failed=2)
    says(result, "*::test_elsewhere[*6_4]: this test is for 6_4, but begins at 3_0: simulate('3_0') of *.py:* is open")


@pytest.mark.long
def test_a_context_s_simulation_of_a_fixture_that_anyio_loses_is_an_error(pytester: pytest.Pytester) -> None:
    source = """
    pytestmark = pytest.mark.anyio

    @pytest.fixture(scope="module")
    def anyio_backend(): return "asyncio"

    @pytest.fixture
    def lost():
        with simulate("2_0", scope="context"): yield
    @pytest.fixture
    async def kept():
        with simulate("2_0", scope="context"): yield

    async def test_lost(lost): raise AssertionError
    async def test_kept(kept): assert level() == "2_0"
    def test_synchronous(lost): assert level() == "2_0"
    """
    result = run(pytester, source, plugins=["anyio"])
    result.assert_outcomes(passed=2, errors=1)
    says(
        result,
        "*::test_lost: the fixture lost enters simulate('2_0', scope='context'), which does not hold in a test *",
    )


def test_a_task_keeps_no_context_s_target_into_another_test(pytester: pytest.Pytester) -> None:
    source = """
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
    assert len(passed(run(pytester, source, "--dml-target=5_0"))) == 3


@pytest.mark.long
def test_each_attempt_of_a_test_that_runs_again_begins_anew(pytester: pytest.Pytester) -> None:
    source = """
    from dml_tile import BindingTableDesc

    attempts = []

    @simulate("4_0")
    def test_calls(dml_calls):
        assert current_target().name == "4_0" and not dml_calls
        check(LONGS)
        attempts.append(1)
        assert len(attempts) == 3

    @pytest.mark.dml(expects_removal=True)
    def test_removal():
        device = Device()
        table = device.create_binding_table(BindingTableDesc(device.compile_operator(device.create_operator(LONGS))))
        if len(attempts) == 3:
            table.bind_inputs([])
        attempts.append(1)
        assert len(attempts) > 4
    """
    result = run(pytester, source, "--reruns=2", plugins=["rerunfailures"])
    assert result.parseoutcomes() == {"passed": 1, "failed": 1, "rerun": 3}
    says(result, "*::test_removal[6_4]: the test expects that a device is removed, and none was")
