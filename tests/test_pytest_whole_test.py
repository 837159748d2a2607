"""The target of a test holds from its first fixture to its last, in all threads and in child processes."""

from __future__ import annotations

import pytest

from tests.helpers.plugin_runs import failed, passed, run, says

OLD = "windows-10-2004"
BOTH = [f"--dml-target={OLD},6_4"]

LEVEL = """
import pytest
from dml_tile import TileOperatorDesc, check, current_target

LONGS = TileOperatorDesc.from_input(data_type="INT64", sizes=[1, 1, 1, 2], repeats=[1, 1, 1, 2])

def level():
    refused = bool(check(LONGS))
    assert refused == (current_target().name == "windows-10-2004")
    return current_target().name

def is_right(name, request):
    return f"[{name}]" in request.node.name
"""

SETUPS = {
    "setup_method": """
@pytest.mark.dml
class TestIt:
    def setup_method(self): self.seen = level()
    def teardown_method(self): assert level() == self.seen
    def test_it(self, request): assert is_right(self.seen, request)
""",
    "an autouse fixture of a class": """
class TestIt:
    @pytest.fixture(autouse=True)
    def prepare(self): self.seen = level()

    @pytest.mark.dml
    def test_it(self, request): assert is_right(self.seen, request)
""",
    "an autouse fixture of a module": """
seen = []
@pytest.fixture(autouse=True)
def prepare(): seen.append(level())

@pytest.mark.dml
def test_it(request): assert is_right(seen[-1], request)
""",
    "a fixture before dml_target": """
@pytest.fixture
def before(): return level()

def test_it(before, dml_target, request): assert is_right(before, request) and dml_target.name == before
""",
    "the end of a fixture": """
@pytest.fixture
def before(request):
    yield
    assert is_right(level(), request)

@pytest.mark.dml
def test_it(before): pass
""",
    "setup_function": """
seen = []
def setup_function(): seen.append(level())

@pytest.mark.dml
def test_it(request): assert is_right(seen[-1], request)
""",
}


@pytest.mark.parametrize("setup", SETUPS)
def test_what_prepares_a_test_is_at_its_target(pytester: pytest.Pytester, setup: str) -> None:
    names = passed(run(pytester, LEVEL + SETUPS[setup], *BOTH))
    assert [name.rpartition("::")[2] for name in names] == [f"test_it[{OLD}]", "test_it[6_4]"]


def test_an_autouse_fixture_of_a_conftest_is_at_the_target(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        LEVEL + "@pytest.fixture(autouse=True)\ndef prepare(request): assert is_right(level(), request)\n"
    )
    assert len(passed(run(pytester, "import pytest\n@pytest.mark.dml\ndef test_it(): pass", *BOTH))) == 2


WIDE = """
@pytest.fixture(scope="{scope}")
def wide({arguments}): return level()

@pytest.mark.dml
class TestIt:
    def test_it(self, wide, request): assert is_right(wide, request)
    def test_also(self, wide, request): assert is_right(wide, request)
"""


@pytest.mark.parametrize("scope", ["class", "module", "session"])
def test_a_wide_fixture_has_a_target_of_its_scope(pytester: pytest.Pytester, scope: str) -> None:
    source = LEVEL + WIDE.format(scope=scope, arguments="dml_target")
    assert len(passed(run(pytester, source, *BOTH, "-o", f"dml_scope={scope}"))) == 4


def test_a_wide_fixture_that_takes_a_narrower_target_is_told_what_to_write(pytester: pytest.Pytester) -> None:
    result = run(pytester, LEVEL + WIDE.format(scope="module", arguments="dml_target"), *BOTH)
    result.assert_outcomes(errors=4)
    result.stdout.fnmatch_lines(["set `dml_scope = module` in the ini file"])


@pytest.mark.parametrize("scope", ["class", "module", "session"])
def test_a_wide_fixture_that_asks_unseen_is_an_error(pytester: pytest.Pytester, scope: str) -> None:
    result = run(pytester, LEVEL + WIDE.format(scope=scope, arguments=""), *BOTH)
    result.assert_outcomes(passed=2, failed=2)
    says(
        result,
        f"*the {scope}-scoped fixture wide asked which target is simulated when it was made for {OLD} (2_0); this test "
        f"runs at 6_4: let it take dml_target as an argument, with `dml_scope = {scope}` in the ini file, *",
    )


def test_a_wide_fixture_that_is_made_at_another_target_is_an_error(pytester: pytest.Pytester) -> None:
    source = """
@pytest.fixture(scope="module")
def wide(): return level()

def test_plain(wide): assert wide == "6_4"

@pytest.mark.dml(targets=["windows-10-2004"])
def test_old(wide): raise AssertionError

@pytest.mark.dml(targets=["6_4"])
def test_new(wide): assert wide == "6_4"
"""
    result = run(pytester, LEVEL + source)
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(["*::test_old[[]windows-10-2004]: the module-scoped fixture wide asked * for 6_4; *"])


def test_a_wide_fixture_that_is_fetched_while_the_test_runs_is_held_to_the_same(pytester: pytest.Pytester) -> None:
    source = """
@pytest.fixture(scope="session")
def wide(): return level()

@pytest.fixture
def fetched(request): return request.getfixturevalue("wide")

@pytest.mark.dml
def test_body(request): request.getfixturevalue("wide")

@pytest.mark.dml
def test_fixture(fetched): raise AssertionError

@pytest.mark.dml(targets=["6_4"])
def test_other(request): request.getfixturevalue("wide")

def test_alone(request): request.getfixturevalue("wide")
"""
    result = run(pytester, LEVEL + source, *BOTH)
    assert failed(result) == [
        "test_body[6_4]",
        "test_fixture[windows-10-2004]",
        "test_fixture[6_4]",
        "test_other[6_4]",
        "test_alone",
    ]
    for test in ("test_body[6_4]", "test_fixture[6_4]", "test_other[6_4]", "test_alone"):
        says(result, f"*::{test}: the session-scoped fixture wide asked * when it was made for {OLD} (2_0); *")


def test_a_wide_fixture_that_is_fetched_at_its_own_target_is_right(pytester: pytest.Pytester) -> None:
    source = """
@pytest.fixture(scope="module")
def wide(dml_target): return level()

@pytest.mark.dml
def test_body(request): assert is_right(request.getfixturevalue("wide"), request)
"""
    assert len(passed(run(pytester, LEVEL + source, *BOTH, "-o", "dml_scope=module"))) == 2


def test_a_wide_fixture_that_asks_nothing_serves_every_target(pytester: pytest.Pytester) -> None:
    source = WIDE.format(scope="session", arguments="").replace("return level()", "return current_target")
    source = source.replace("is_right(wide, request)", "is_right(wide().name, request)")
    assert len(passed(run(pytester, LEVEL + source, *BOTH))) == 4


def test_a_wide_fixture_ends_at_the_target_it_was_made_at(pytester: pytest.Pytester) -> None:
    source = """
@pytest.fixture(scope="module")
def wide(dml_target):
    yield
    assert level() == dml_target.name

def test_it(wide): pass
"""
    result = run(pytester, LEVEL + source, *BOTH, "-o", "dml_scope=module")
    assert len(passed(result)) == 2


CLASS_SETUP = {
    "setup_class": """
@pytest.mark.dml
class TestIt:
    @classmethod
    def setup_class(cls): cls.seen = level()
    def test_it(self): assert self.seen == level()
""",
    "setup_module": """
seen = []
def setup_module(): seen.append(level())

@pytest.mark.dml
def test_it(): assert seen[-1] == level()
""",
}


@pytest.mark.parametrize("hook", CLASS_SETUP)
def test_what_prepares_many_tests_takes_one_target(pytester: pytest.Pytester, hook: str) -> None:
    source = LEVEL + CLASS_SETUP[hook]
    assert len(passed(run(pytester, source, f"--dml-target={OLD}"))) == 1
    result = run(pytester, source, *BOTH)
    result.assert_outcomes(passed=1, failed=1)
    says(result, f"*{hook}_fixture_* asked which target is simulated when it was made for {OLD} (2_0); *")


TEST_CASE = """
import unittest

class TestCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls): cls.seen = [level()]
    def setUp(self):
        self.seen.append(level())
        self.addCleanup(lambda: self.assertEqual(level(), "windows-10-2004"))
    def test_it(self): self.assertEqual({*self.seen, level()}, {"windows-10-2004"})

class TestTasks(unittest.IsolatedAsyncioTestCase):
    def setUp(self): assert level() == "windows-10-2004"
    async def asyncSetUp(self): assert level() == "windows-10-2004"
    async def test_it(self): assert level() == "windows-10-2004"
"""


@pytest.mark.parametrize("marked", [True, False])
def test_a_test_case_runs_at_the_one_target(pytester: pytest.Pytester, marked: bool) -> None:
    source = LEVEL + ("pytestmark = pytest.mark.dml\n" if marked else "") + TEST_CASE
    every = [] if marked else ["--dml-every-test"]
    assert len(passed(run(pytester, source, f"--dml-target={OLD}", *every))) == 2
    result = run(pytester, source, *BOTH, *every)
    assert result.parseoutcomes() == {"errors": 2}
    result.stdout.fnmatch_lines(
        ["*::TestCase::test_it: 2 targets are chosen (windows-10-2004, 6_4), but pytest cannot *"]
    )


def test_a_module_s_marker_suits_a_file_with_a_test_case(pytester: pytest.Pytester) -> None:
    source = LEVEL + "pytestmark = pytest.mark.dml(maximum='4_0')\n" + TEST_CASE + "def test_function(): level()\n"
    assert len(passed(run(pytester, source, *BOTH))) == 3


THREADS = """
import asyncio, multiprocessing, os, subprocess, sys, threading
from concurrent.futures import ThreadPoolExecutor

pool = ThreadPoolExecutor(1)
pool.submit(int).result()  # its thread runs from now on
old_processes = multiprocessing.get_context("spawn").Pool(1)
old_processes.apply(int)
loop = asyncio.Runner()
loop.run(asyncio.sleep(0))  # its context is as it is now

def teardown_module():
    loop.close()
    pool.shutdown()
    old_processes.terminate()
    old_processes.join()

async def in_executor(): return await asyncio.get_running_loop().run_in_executor(None, level)

async def in_task():
    async def task(): return level()
    return await asyncio.create_task(task())

async def in_callback():
    done = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(lambda: done.set_result(level()))
    return await done

def in_thread():
    seen = []
    thread = threading.Thread(target=lambda: seen.append(level()))
    thread.start()
    thread.join()
    return seen[0]

def in_new_pool():
    with ThreadPoolExecutor(2) as new: return {*new.map(lambda _: level(), range(4))}.pop()

def in_process(): return subprocess.check_output(
    [sys.executable, "-c", "import dml_tile; print(dml_tile.current_target().name)"], text=True).strip()

def in_spawned_process():
    with multiprocessing.get_context("spawn").Pool(1) as processes: return processes.apply(current_target).name

WAYS = {
    "old_pool": lambda: pool.submit(level).result(),
    "new_pool": in_new_pool,
    "thread": in_thread,
    "executor": lambda: asyncio.run(in_executor()),
    "task": lambda: asyncio.run(in_task()),
    "old_runner": lambda: loop.run(in_task()),
    "callback": lambda: loop.run(in_callback()),
    "process": in_process,
    "spawned_process": in_spawned_process,
    "old_processes": lambda: old_processes.apply(current_target).name,
}

@pytest.mark.dml
@pytest.mark.parametrize("way", WAYS)
def test_it(way, request): assert WAYS[way]() in request.node.name

@pytest.mark.parametrize("way", WAYS)
def test_after(way): assert "DML_TILE_TARGET" not in os.environ and WAYS[way]() == "6_4"
"""


@pytest.mark.long
def test_threads_tasks_and_processes_simulate_the_test_s_target(pytester: pytest.Pytester) -> None:
    result = run(pytester, LEVEL + THREADS, f"--dml-target={OLD},5_0", in_a_process=True)
    assert len(passed(result)) == 3 * 10


def test_the_command_line_in_a_child_process_checks_at_the_test_s_target(pytester: pytest.Pytester) -> None:
    source = """
import subprocess, sys

def test_it(dml_target, tmp_path):
    (tmp_path / "longs.json").write_text(LONGS.model_dump_json(by_alias=True))
    done = subprocess.run([sys.executable, "-m", "dml_tile", "check", str(tmp_path / "longs.json")])
    assert done.returncode == (1 if dml_target.name == "windows-10-2004" else 0)
"""
    assert len(passed(run(pytester, LEVEL + source, *BOTH))) == 2


EVERY = """
def test_plain(request): assert is_right(level(), request)

class TestIt:
    def test_method(self, request): assert is_right(level(), request)

@pytest.mark.dml(minimum="5_0")
def test_marked(request): assert is_right(level(), request)
"""


@pytest.mark.parametrize("chosen", [["--dml-every-test"], ["-o", "dml_every_test=true"]])
def test_every_test_can_run_at_each_target(pytester: pytest.Pytester, chosen: list[str]) -> None:
    assert passed(run(pytester, LEVEL + EVERY, *BOTH, *chosen)) == [
        "test_plain[windows-10-2004]",
        "test_plain[6_4]",
        "TestIt::test_method[windows-10-2004]",
        "TestIt::test_method[6_4]",
        "test_marked[6_4]",
    ]


def test_a_target_that_is_asked_for_too_late_is_an_error(pytester: pytest.Pytester) -> None:
    source = LEVEL + "def test_it(request): assert request.getfixturevalue('dml_target').name == level()"
    assert passed(run(pytester, source)) == passed(run(pytester, source, f"--dml-target={OLD}")) == ["test_it"]
    result = run(pytester, source, *BOTH)
    result.assert_outcomes(failed=1)
    says(result, "*::test_it: dml_target was asked for while the test runs, too late for several targets: *")


def test_a_target_s_id_tells_what_its_adapter_lacks(pytester: pytest.Pytester) -> None:
    source = """
from dml_tile import current_target

def test_it(dml_target):
    assert dml_target == current_target()
    assert dml_target.typed_uav_loads == ("no-typed-uav-loads" not in dml_target.name)
"""
    assert passed(run(pytester, source, ini="5_2+no-typed-uav-loads 5_2\n 5_2+no-double-precision")) == [
        "test_it[5_2+no-typed-uav-loads]",
        "test_it[5_2]",
        "test_it[5_2+no-double-precision]",
    ]
