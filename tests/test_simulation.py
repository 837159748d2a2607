"""The target that is meant where none is named."""

from __future__ import annotations

import asyncio
import functools
import os
import subprocess
import sys
import threading
import unittest
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import dml_tile
from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.targets import DEFAULT_TARGET, Target
from dml_tile.errors import DmlError
from dml_tile.simulation.target import Simulation, current_target, resolve, simulate
from tests.helpers.descriptors import row

INT64 = row("INT64", [2, 3], [1, 2])


def level() -> str:
    return current_target().name


def test_no_target_is_the_highest_level() -> None:
    assert resolve(None) is DEFAULT_TARGET is current_target()
    assert DEFAULT_TARGET.feature_level == max(FeatureLevel)


def test_a_simulated_target_is_meant_where_none_is_named() -> None:
    with simulate("windows-11-21h2") as target:
        assert target == current_target() == Target.parse("windows-11-21h2")
        assert {finding.rule for finding in dml_tile.check(INT64)} == {"DML-TILE-DataType-level"}
        with pytest.raises(DmlError, match="windows-11-21h2 has 4_0"):
            dml_tile.tile(np.array([[1]]), (2, 2))
        with pytest.raises(DmlError, match="windows-11-21h2 has 4_0"):
            dml_tile.execute(INT64, bytes(48), bytearray(96))
    assert not dml_tile.check(INT64)


def test_a_named_target_wins() -> None:
    with simulate("1_0"):
        assert not dml_tile.check(INT64, "4_1")
        assert dml_tile.lowest_level(INT64) == FeatureLevel.DML_FEATURE_LEVEL_4_1


def test_simulations_nest_and_end_with_an_error() -> None:
    with simulate("5_0"):
        with pytest.raises(DmlError), simulate("4_0"):
            dml_tile.require(INT64)
        assert level() == "5_0"
    assert resolve(None) is DEFAULT_TARGET


@pytest.mark.parametrize("process_wide", [True, False])
def test_a_simulation_can_be_entered_again_and_within_itself(process_wide: bool) -> None:
    simulation = simulate("4_0", process_wide=process_wide)
    for _ in range(2):
        with simulation, simulate("5_0"):
            with simulation:
                assert level() == "4_0"
            assert level() == "5_0"
        assert level() == "6_4"


def test_simulations_may_end_in_any_order() -> None:
    def suspended(target: str) -> Generator[None, None, None]:
        with simulate(target):
            yield

    first, second = suspended("4_0"), suspended("5_0")
    next(first), next(second)
    first.close()
    assert level() == "5_0"
    second.close()
    assert level() == "6_4"


@pytest.mark.parametrize("make", [simulate, Simulation])
def test_an_unknown_target_is_refused_at_once(make: Callable[[str], object]) -> None:
    with pytest.raises(ValueError, match="did you mean"):
        make("windows-7")
    assert resolve(None) is DEFAULT_TARGET


# Threads, tasks and processes


def level_in_a_thread() -> str:
    seen = []
    thread = threading.Thread(target=lambda: seen.append(level()))
    thread.start()
    thread.join()
    return seen[0]


def level_in_a_process() -> str:
    code = "import dml_tile; print(dml_tile.current_target().name)"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout.strip()


def test_a_simulation_is_its_thread_s_own() -> None:
    with simulate("4_0"):
        assert level_in_a_thread() == "6_4"
        assert "DML_TILE_TARGET" not in os.environ


def test_a_process_wide_one_is_seen_by_threads_and_child_processes() -> None:
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(level).result() == "6_4"
        with simulate("5_2+no-typed-uav-loads", process_wide=True) as target:
            assert pool.submit(current_target).result() is target
            assert {level_in_a_thread(), level_in_a_process()} == {target.name}
        assert pool.submit(level).result() == "6_4"
    assert "DML_TILE_TARGET" not in os.environ


def test_a_thread_s_own_simulation_wins_over_the_process_wide_one() -> None:
    entered, leave = threading.Event(), threading.Event()
    seen = []

    def thread() -> None:
        with simulate("3_1"):
            entered.set()
            leave.wait()
            seen.append(level())
        seen.append(level())

    running = threading.Thread(target=thread)
    running.start()
    entered.wait()
    with simulate("4_0"), simulate("5_0", process_wide=True), simulate("2_0"):
        assert level() == "2_0"
        leave.set()
        running.join()
    assert seen == ["3_1", "5_0"]


def test_the_innermost_wins_be_it_process_wide_or_not() -> None:
    with simulate("4_0"), simulate("5_0", process_wide=True):
        assert level() == "5_0"
        with simulate("4_0"):
            assert level() == "4_0"


def test_the_variable_is_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DML_TILE_TARGET", "3_1")
    with simulate("4_0", process_wide=True):
        assert os.environ["DML_TILE_TARGET"] == "4_0"
        with simulate("5_0", process_wide=True):
            assert os.environ["DML_TILE_TARGET"] == "5_0"
        assert os.environ["DML_TILE_TARGET"] == "4_0"
    assert os.environ["DML_TILE_TARGET"] == level() == "3_1"


def test_a_task_has_the_target_it_was_made_under() -> None:
    async def task() -> str:
        return level()

    async def both() -> tuple[str, str]:
        with simulate("3_1"):
            first = asyncio.create_task(task())
        return await first, await asyncio.create_task(task())

    assert asyncio.run(both()) == ("3_1", "6_4")


# Decorators


def test_a_function_can_be_simulated_whole() -> None:
    @simulate("2_1")
    def simulated(again: bool) -> tuple[str, ...]:
        """Its docstring."""
        return level(), *(simulated(False) if again else ())

    assert simulated(True) == ("2_1", "2_1")
    assert simulated.__doc__ == "Its docstring."
    assert simulate("2_1")(functools.partial(level))() == "2_1"


def test_a_coroutine_function_is_simulated_while_it_is_awaited() -> None:
    @simulate("2_1")
    async def simulated() -> tuple[str, str]:
        before = level()
        await asyncio.sleep(0)
        return before, level()

    async def both() -> tuple[tuple[str, str], str]:
        made = simulated()
        return await made, level()

    assert asyncio.iscoroutinefunction(simulated)
    assert asyncio.run(both()) == (("2_1", "2_1"), "6_4")


def test_concurrent_calls_of_one_decorated_function_keep_apart() -> None:
    meeting = threading.Barrier(4)

    @simulate("2_1")
    def simulated() -> str:
        meeting.wait()
        return level()

    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(lambda _: (simulated(), level()), range(4))] == [("2_1", "6_4")] * 4


def test_a_generator_function_is_refused() -> None:
    def generator() -> Iterator[None]:
        yield

    async def generator_of_tasks() -> AsyncIterator[None]:
        yield

    for function in (generator, generator_of_tasks):
        with pytest.raises(
            TypeError, match=rf"generator function {function.__name__}, .* write `with simulate\('4_0'\):`"
        ):
            simulate("4_0")(function)


@pytest.mark.parametrize("wrong", [None, "4_1", pytest.fixture(level), staticmethod(level)])
def test_what_is_no_function_or_class_is_refused(wrong: object) -> None:
    with pytest.raises(TypeError, match="simulate decorates functions and classes, not a "):
        simulate("4_0")(wrong)


def outcome(case: type[unittest.TestCase]) -> unittest.TestResult:
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
    return result


def test_a_test_case_is_simulated_from_its_setup_to_its_cleanups() -> None:
    seen: dict[str, str] = {}

    def see(name: str) -> None:
        seen[name] = level()

    class Base(unittest.TestCase):
        def test_inherited(self) -> None:
            see("inherited")

    @simulate("4_0")
    class Simulated(Base):
        @classmethod
        def setUpClass(cls) -> None:
            see("setUpClass")

        def setUp(self) -> None:
            see("setUp")
            self.addCleanup(see, "cleanup")

        def test_it(self) -> None:
            see("test")
            seen["thread"] = level_in_a_thread()

        @classmethod
        def tearDownClass(cls) -> None:
            see("tearDownClass")

    assert outcome(Simulated).wasSuccessful()
    names = ["setUpClass", "setUp", "inherited", "test", "thread", "cleanup", "tearDownClass"]
    assert seen == dict.fromkeys(names, "4_0")
    assert outcome(Base).wasSuccessful()
    assert seen["inherited"] == "6_4"


def test_an_asynchronous_test_case_is_simulated_and_can_fail() -> None:
    @simulate("4_0")
    class Simulated(unittest.IsolatedAsyncioTestCase):
        async def asyncSetUp(self) -> None:
            assert level() == "4_0"

        async def test_it(self) -> None:
            assert level() == "4_0"

        async def test_wrong(self) -> None:
            raise AssertionError

    result = outcome(Simulated)
    assert (result.testsRun, len(result.failures), result.errors) == (2, 1, [])


def test_a_plain_test_class_is_simulated_without_the_plugin_too() -> None:
    class Base:
        def test_inherited(self) -> str:
            return level()

    @simulate("4_0")
    class TestSimulated(Base):
        async def test_task(self) -> str:
            return level()

        @staticmethod
        def test_static() -> str:
            return level()

    test = TestSimulated()
    assert [test.test_inherited(), test.test_static(), asyncio.run(test.test_task())] == ["4_0"] * 3
    assert Base().test_inherited() == "6_4"
