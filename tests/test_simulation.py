"""The target that is meant where none is named: simulated, or that of the variable DML_TILE_TARGET."""

from __future__ import annotations

import asyncio
import functools
import json
import os
import threading
import unittest
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from io import StringIO
from types import ModuleType
from typing import Any, Literal
from unittest.mock import patch

import numpy as np
import pytest

import dml_tile
from dml_tile import Device, check
from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.targets import DEFAULT_TARGET, Target
from dml_tile.errors import DmlError, TargetError
from dml_tile.simulation.process import PROCESS
from dml_tile.simulation.target import current_target, resolve, simulate
from tests.helpers.check_files import TILE, write
from tests.helpers.command_line import Call, errors_of, invoke_bare
from tests.helpers.descriptors import row
from tests.helpers.plugin_runs import HEAD, TEST_CASES

INT64 = row("INT64", [2, 3], [1, 2])
Scope = Literal["process", "context"]


def level() -> str:
    return current_target().name


def test_a_simulated_target_is_meant_where_none_is_named() -> None:
    for refused in (
        lambda: dml_tile.tile(np.array([[1]]), (2, 2)),
        lambda: dml_tile.execute(INT64, bytes(48), bytearray(96)),
    ):
        with pytest.raises(DmlError, match="windows-11-21h2 has 4_0"), simulate("windows-11-21h2"):
            refused()
    with simulate("windows-11-21h2") as target:
        assert target == current_target() == Target.parse("windows-11-21h2")
        assert {finding.rule for finding in dml_tile.check(INT64)} == {"DML-TILE-DataType-level"}
        assert not dml_tile.check(INT64, "4_1")
        assert dml_tile.lowest_level(INT64) == FeatureLevel.DML_FEATURE_LEVEL_4_1
    assert not dml_tile.check(INT64)
    assert resolve(None) is DEFAULT_TARGET is current_target()
    assert DEFAULT_TARGET.feature_level == max(FeatureLevel)


@pytest.mark.parametrize("scope", ["process", "context"])
def test_a_simulation_can_be_entered_again_and_within_itself(scope: Scope) -> None:
    simulation = simulate("4_0", scope=scope)
    for _ in range(2):
        with simulation, simulate("5_0"):
            with simulation:
                assert level() == "4_0"
            assert level() == "5_0"
        assert level() == "6_4"


def test_an_unknown_target_or_scope_is_refused_at_once() -> None:
    wrong: Any = "thread"
    with pytest.raises(ValueError, match="did you mean"):
        simulate("windows-7")
    with pytest.raises(ValueError, match="scope is 'thread'; expected 'process' or 'context'"):
        simulate("4_0", scope=wrong)
    assert resolve(None) is DEFAULT_TARGET


def suspended(target: str, scope: Scope) -> Generator[None, None, None]:
    with simulate(target, scope=scope):
        yield


@pytest.mark.parametrize(
    ("scope", "refused"),
    [
        ("process", r"^simulate\('4_0'\) ends while simulate\('5_0'\), which began later.*scope='context'\)$"),
        ("context", None),
    ],
)
def test_simulations_of_the_process_end_in_the_reverse_order(scope: Scope, refused: str | None) -> None:
    first, second = suspended("4_0", scope), suspended("5_0", scope)
    next(first), next(second)
    with pytest.raises(TargetError, match=refused) if refused else nullcontext():
        first.close()
    assert level() == "5_0"
    second.close()
    assert level() == "6_4"
    with pytest.raises(TargetError, match=refused) if refused else nullcontext():
        assert asyncio.run(gathered(scope)) == ["4_0", "5_0"]
    assert level() == "6_4"


async def gathered(scope: Scope) -> list[str]:
    async def task(target: str, seconds: float) -> str:
        with simulate(target, scope=scope):
            await asyncio.sleep(seconds)
            return level() if scope == "context" else target

    return [*await asyncio.gather(task("4_0", 0.01), task("5_0", 0.02))]


# Threads and tasks


def in_a_thread(function: Callable[[], str] = level) -> str:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function).result()


def test_a_simulation_holds_in_every_thread_also_in_older_ones() -> None:
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(level).result() == "6_4"
        with simulate("5_2+no-typed-uav-loads") as target:
            assert pool.submit(current_target).result() is target
            assert in_a_thread() == target.name
            with simulate("4_0"):
                assert pool.submit(level).result() == "4_0"
        assert pool.submit(level).result() == "6_4"


def test_asking_in_a_block_while_another_thread_is_in_a_later_one_is_an_error() -> None:
    def later() -> Generator[None, None, None]:
        with simulate("5_0"):
            yield

    with simulate("4_0"), ThreadPoolExecutor(1) as pool:
        block = later()
        pool.submit(next, block).result()
        with pytest.raises(
            TargetError, match=r"within simulate\('4_0'\) .* another thread or task is within simulate\('5_0'"
        ):
            level()
        assert in_a_thread() == "5_0"  # a thread without a block of its own
        pool.submit(block.close).result()
        assert level() == "4_0"
    PROCESS.test_errors.clear()  # which would fail this test


def test_a_task_in_a_block_that_is_not_the_latest_may_not_ask() -> None:
    async def task(target: str, turns: int) -> str:
        with simulate(target):
            for _ in range(turns):
                await asyncio.sleep(0)
            return level()

    async def both() -> tuple[str | BaseException, str | BaseException]:
        return await asyncio.gather(task("4_0", 1), task("5_0", 3), return_exceptions=True)

    first, second = asyncio.run(both())
    assert isinstance(first, TargetError)
    assert second == "5_0"
    PROCESS.test_errors.clear()


def test_a_task_follows_a_block_that_another_opens_later_if_it_has_none_itself() -> None:
    async def server(questions: asyncio.Queue[str], answers: asyncio.Queue[str]) -> None:
        await questions.get()
        await answers.put(level())

    async def test() -> str:
        questions, answers = asyncio.Queue[str](), asyncio.Queue[str]()
        with simulate("4_0"):
            serving = asyncio.create_task(server(questions, answers))
            await asyncio.sleep(0)
            with simulate("5_0"):
                await questions.put("level?")
                seen = await answers.get()
            await serving
        return seen

    assert asyncio.run(test()) == "5_0"


def test_a_context_s_own_counts_unless_one_of_the_process_began_within_it() -> None:
    def of_the_context() -> str:
        with simulate("3_1", scope="context"):
            return level()

    with simulate("5_0"):
        assert (in_a_thread(of_the_context), level()) == ("3_1", "5_0")
    with simulate("4_0", scope="context"):
        assert (level(), in_a_thread()) == ("4_0", "6_4")
        with simulate("5_0"):
            assert (level(), in_a_thread()) == ("5_0", "5_0")
            with simulate("2_0", scope="context"):
                assert (level(), in_a_thread()) == ("2_0", "5_0")
        assert level() == "4_0"
        assert in_a_thread(lambda: simulate("5_0")(level)()) == "5_0"  # not within this context
        assert level() == "4_0"


def test_concurrent_calls_of_one_decorated_function_agree() -> None:
    meeting = threading.Barrier(4)

    @simulate("2_1")
    def simulated() -> str:
        meeting.wait(30)
        return level()

    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(lambda _: simulated(), range(4))] == ["2_1"] * 4
    assert level() == "6_4"


@pytest.mark.parametrize(("scope", "after"), [("process", "6_4"), ("context", "3_1")])
def test_a_task_that_was_made_in_a_simulation(scope: Scope, after: str) -> None:
    async def task(seconds: float = 0) -> str:
        await asyncio.sleep(seconds)
        return level()

    async def both() -> tuple[str, ...]:
        with simulate("3_1", scope=scope):
            first, second = asyncio.create_task(task()), asyncio.create_task(task(0.02))
            within = await first
        return within, await second, await asyncio.create_task(task())

    assert asyncio.run(both()) == ("3_1", after, "6_4")


# Decorators


def test_a_function_can_be_simulated_whole() -> None:
    @simulate("2_1")
    def simulated(again: bool) -> tuple[str, ...]:
        """Its docstring."""
        return level(), in_a_thread(), *(simulated(False) if again else ())

    assert simulated(True) == ("2_1",) * 4
    assert simulated.__doc__ == "Its docstring."
    assert simulate("2_1")(functools.partial(level))() == "2_1"
    assert simulate("4_0")(simulate("5_0")(level))() == "5_0"


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


def generator() -> Iterator[None]:
    yield


async def generator_of_tasks() -> AsyncIterator[None]:
    yield


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        *(
            (wrong, "functions and classes, not a ")
            for wrong in (None, "4_1", pytest.fixture(level), staticmethod(level))
        ),
        (generator, r"the generator function generator, .* write `with simulate\('4_0'\):`"),
        (generator_of_tasks, r"the generator function generator_of_tasks, .* write `with simulate\('4_0'\):`"),
    ],
)
def test_what_is_no_function_or_class_or_runs_after_its_call_is_refused(wrong: object, message: str) -> None:
    with pytest.raises(TypeError, match=f"^simulate (decorates|cannot decorate) {message}"):
        simulate("4_0")(wrong)


UNDECORATED = """
class Plain(unittest.TestCase):
    def test_it(self): assert level() == "3_1"
    def test_wrong(self): assert level() == "4_1"
    @simulate("2_0")
    def test_decorated(self): assert level() == "2_0"
"""


def test_unittest_runs_tests_from_setups_to_cleanups_at_their_targets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PROCESS, "outside", "3_1")
    module = ModuleType("test_it")
    exec(f"{HEAD}{TEST_CASES}{UNDECORATED}", vars(module))
    result = unittest.main(module, argv=["it"], exit=False, testRunner=unittest.TextTestRunner(StringIO())).result
    assert (result.testsRun, result.errors) == (10, [])
    assert [test.id() for test, _ in result.failures] == ["test_it.Plain.test_wrong"]


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

        @simulate("2_0")
        def test_own(self) -> str:
            return level()

    @simulate("5_0")
    class TestHeir(TestSimulated):
        pass

    for cls, name in (TestSimulated, "4_0"), (TestHeir, "5_0"):
        test = cls()
        assert [test.test_inherited(), test.test_static(), asyncio.run(test.test_task())] == [name] * 3
        assert test.test_own() == "2_0"
    assert Base().test_inherited() == "6_4"


VARIABLE = "DML_TILE_TARGET"


def test_the_variable_as_it_was_at_the_import_is_the_default_target(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PROCESS, "outside", "windows-11-21h2")
    assert current_target().name == Device().target.name == "windows-11-21h2"
    assert {finding.rule for finding in check(INT64)} == {"DML-TILE-DataType-level"}
    assert not check(INT64, "4_1")
    with simulate("4_1"):
        assert not check(INT64)
    for nothing in ("", " ", ", "):
        monkeypatch.setattr(PROCESS, "outside", nothing)
        assert current_target().name == "6_4"


def test_a_variable_that_is_set_later_is_read_by_commands_alone(call: Call) -> None:
    with patch.dict(os.environ, {VARIABLE: "2_0"}):
        assert current_target().name == "6_4"
        assert " at 2_0" in call("check", write("a.json", TILE)).stdout


def test_the_variable_names_the_innermost_simulation_of_the_process() -> None:
    def variable() -> str | None:
        return os.environ.get(VARIABLE)

    with patch.dict(os.environ, {VARIABLE: "3_0"}):
        with simulate("4_0"):
            with simulate("5_2+no-typed-uav-loads"), simulate("2_0", scope="context"):
                assert variable() == "5_2+no-typed-uav-loads"
            assert variable() == "4_0"
        assert variable() == "3_0"
        with simulate("4_0"):
            os.environ[VARIABLE] = "2_0"
        assert variable() == "2_0", "other code has set it"
        with simulate("4_0"):
            del os.environ[VARIABLE]
        assert variable() is None


def test_a_variable_that_names_the_target_already_is_not_set_again() -> None:
    """C libraries may read the environment in other threads meanwhile."""

    class Environment(dict[str, str]):
        def __setitem__(self, name: str, value: str) -> None:
            written.append(value)
            super().__setitem__(name, value)

    written: list[str] = []
    with patch.object(os, "environ", Environment({VARIABLE: "4_0"})):
        with simulate("4_0"), simulate("4_0"):
            assert not written
        with simulate("5_0"), simulate("5_0"):
            assert written == ["5_0"]
    assert written == ["5_0", "4_0"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("4_0,4_1", r"^DML_TILE_TARGET names 2 targets \(4_0, 4_1\); one is needed here: name it as the target$"),
        ("windows-7", r"^DML_TILE_TARGET: 'windows-7' is no known target; .*did you mean"),
    ],
)
def test_a_variable_of_no_or_two_targets_is_an_error(monkeypatch: pytest.MonkeyPatch, text: str, message: str) -> None:
    monkeypatch.setattr(PROCESS, "outside", text)
    for ask in (current_target, Device, lambda: check(INT64)):
        with pytest.raises(ValueError, match=message):
            ask()
    assert not check(INT64, "4_1")
    with simulate("4_0"):
        assert check(INT64)


@pytest.mark.parametrize(
    ("simulated", "variable", "options", "targets"),
    [
        ("", "", "", ["4_0"]),
        ("", "4_1", "", ["4_1"]),
        ("", "windows-11-21h2, 6_4", "", ["windows-11-21h2", "6_4"]),
        ("", "4_1", "--target=5_2+no-typed-uav-loads", ["5_2+no-typed-uav-loads"]),
        ("4_0", "4_1", "", ["4_0"]),
        ("4_0", "4_1", "--target=4_1", ["4_1"]),
    ],
)
def test_a_command_asks_its_options_then_a_simulation_then_the_variable_then_pyproject(
    call: Call, simulated: str, variable: str, options: str, targets: list[str]
) -> None:
    write("pyproject.toml", '[tool.dml-tile]\ntargets = ["4_0"]\n')
    with patch.dict(os.environ, {VARIABLE: variable}), simulate(simulated) if simulated else nullcontext():
        result = invoke_bare("check", write("a.json", TILE), *options.split(), "--format", "json")
    assert result.stderr == "", "it does not say which it took"
    assert [one["target"] for one in json.loads(result.stdout)["results"]] == targets


@pytest.mark.parametrize(
    ("command", "text", "message"),
    [("lower", "4_0 4_1", ""), ("show", "4_0 4_1", ""), ("check", "windows-7", ": 'windows-7' is no known target")],
)
def test_a_command_names_the_variable_that_it_cannot_take(call: Call, command: str, text: str, message: str) -> None:
    errors = errors_of(call, command, write("a.json", TILE), env={VARIABLE: text})
    assert f"Invalid value for {VARIABLE}{message}" in errors
