"""Tests at their targets: what holds while one runs, and what it must not leave behind."""

from __future__ import annotations

import argparse
import inspect
import os
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Final
from unittest import TestCase

import pytest

from dml_tile.pytest_plugin import choice
from dml_tile.simulation.calls import Calls, RemovalWatch, record_calls
from dml_tile.simulation.process import COLLECTING, PROCESS, TARGET_VARIABLE, UNNAMED, RunningTest

if TYPE_CHECKING:
    from dml_tile.directml.targets import Target


class Run:
    """One run of pytest; at most one of its tests runs at a time."""

    def __init__(self, config: pytest.Config, options: argparse.Namespace) -> None:
        self.chosen = choice.read_choice(config, options)
        self.has_several = self.chosen is not None and len(self.chosen.targets) > 1
        self.every_test = bool(options.dml_every_test or config.getini("dml_every_test"))
        self.is_strict = bool(config.getini("dml_strict"))
        self.listed = choice.read_setting(config) if self.is_strict else None
        """The targets of the ini setting, to which a strict run holds markers."""
        self.outside = PROCESS.outside
        """The value of the variable when the run was configured."""
        self.deselected: Counter[str] = Counter()
        """The numbers of tests by the reason why they are deselected."""
        self.ran: Counter[str] = Counter()
        """The numbers of tests that name none of several targets, by the target that they ran at."""
        self.tests: list[PlannedTest] = []  # the one that runs, if any
        self.fixtures: dict[pytest.FixtureDef[Any], list[Target]] = {}
        """The fixtures that are set up and outlive a test, and the targets that they asked for."""

    def lines(self) -> Iterator[str]:
        """Yield a line for each reason why tests were deselected, and for those that named no target."""
        for reason, number in self.deselected.items():
            yield f"dml-tile: {number} test{'s' * (number > 1)} deselected: {reason}"
        for target, number in self.ran.items():
            tests, they_name, them = ("tests", "they name", "them") if number > 1 else ("test", "it names", "it")
            unnamed = f"{number} {tests} ran at {target}, since {they_name} no target"
            yield f"dml-tile: {unnamed} (dml_every_test = true runs {them} at each)"

    @contextmanager
    def collecting(self) -> Iterator[None]:
        """Refuse to name the target while tests are collected, unless one is chosen or none has to be.

        Raises pytest.UsageError if a conftest.py, or a hook in one, asks all the same.
        """
        test = PROCESS.test
        if self.has_several or (self.is_strict and self.chosen is None):
            test = test._replace(target=None, refusal=COLLECTING)
        elif self.chosen is not None:
            test = test._replace(target=self.chosen.targets[0])
        before, PROCESS.test_errors = PROCESS.test_errors, []
        try:
            with PROCESS.run(test):
                yield
        finally:
            errors, PROCESS.test_errors = PROCESS.test_errors, before
            if errors:
                raise pytest.UsageError("\n".join(errors)) from None

    @contextmanager
    def set_up(self, definition: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> Iterator[None]:
        """Record whether a fixture that outlives a test asks for the target, and tear it down at the same target.

        The fixture also asks if a wide fixture whose value it gets does.
        """
        asked, before, teardown = list[Any](), PROCESS.target_requests, ExitStack()
        test = PROCESS.test._replace(number=next(PROCESS.numbers))
        self.fixtures[definition] = asked
        teardown.callback(self._forget, definition, test.number)
        request.addfinalizer(teardown.close)  # the last to run
        value_of: Any = request.getfixturevalue

        def getfixturevalue(name: str) -> Any:
            value = value_of(name)
            asked.extend(self.fixtures.get(_used_by(request).get(name), ()))  # type: ignore[arg-type]
            return value

        vars(request)["getfixturevalue"] = getfixturevalue
        PROCESS.target_requests = asked
        try:
            with PROCESS.run(test):
                yield
        finally:
            PROCESS.target_requests = before
        request.addfinalizer(lambda: teardown.enter_context(PROCESS.run(test)))  # the first to run

    def _forget(self, definition: pytest.FixtureDef[Any], number: int) -> None:
        del self.fixtures[definition]
        for entered in PROCESS.open:
            if entered.test == number:  # now the test that tore the fixture down has left it open
                entered.test = PROCESS.test.number


def _used_by(request: Any) -> dict[str, Any]:
    """Return the definitions of the fixtures that a test has used so far, by name; pytest tells the names only."""
    return getattr(request, "_fixture_defs", {})


def _unsimulated_target() -> Target:
    from dml_tile.simulation.target import unsimulated_target

    return unsimulated_target()


class PlannedTest:
    """A test with its target, as decided when it was collected, and one attempt at a time to run it."""

    def __init__(self, item: pytest.Item, run: Run) -> None:
        self._item, self._run = item, run
        self._markers = _count_markers(item)
        self.target: Target | None = None
        self.is_named = False
        """True if it asks for its target, by a marker, a decorator or a fixture, or every test does."""
        self.has_errors = False
        """True if the plugin fails the attempt: that is no expected failure, and the test is not rerun."""
        self._refusal = ""  # why it cannot run; pytest has no collection error for a single item
        try:
            self.is_selected = self._choose()
        except ValueError as error:
            self.is_selected, self._refusal = True, str(error)

    def _choose(self) -> bool:
        """Decide on the target; return False if it is none of those chosen. Raises ValueError."""
        item, chosen = self._item, self._run.chosen
        marked, raw = choice.marker_targets(item), choice.parameter_of(item)
        if marked and self._run.listed:
            choice.require_listed(marked, self._run.listed)
        self.is_named = bool(marked or raw or self._run.every_test or "dml_target" in _fixtures_of(item))
        if not self.is_named:
            self.target = choice.targets_for(chosen, None)[0] if chosen and not self._run.has_several else None
            return True
        is_case = issubclass(getattr(item, "cls", None) or object, TestCase)
        is_parameters = self._markers == len(choice.parameter_marks(item))
        if self._markers and raw is None and isinstance(item, pytest.Function) and not (is_case or is_parameters):
            raise ValueError(_TOO_LATE)
        kept = choice.targets_for(chosen, marked)
        if raw is not None:
            from dml_tile.directml.targets import Target

            kept = [target for target in [Target.parse(raw)] if marked is None or marked.keeps(target)]
        if len(kept) > 1:
            names = ", ".join(target.name for target in kept)
            raise ValueError(
                f"{len(kept)} targets are chosen ({names}), but pytest cannot run this test once for each: choose one, "
                f'narrow them with @pytest.mark.dml(targets=["{kept[0].name}"]), or decorate it with '
                f'@dml_tile.simulate("{kept[0].name}")'
            )
        if not kept and marked is not None:
            excluded = raw if chosen is None or choice.brings_its_own(item) else chosen
            self._run.deselected[f"{marked.text} excludes {excluded}"] += 1
        self.target = next(iter(kept), None)
        return bool(kept)

    def begin(self) -> None:
        """Begin an attempt, before anything is set up for it; fail if the test cannot run."""
        for interrupted in [*self._run.tests]:
            interrupted.end()
        self.has_errors = False
        self._run.tests.append(self)
        self._cleanup = ExitStack()
        self._removals = self._cleanup.enter_context(RemovalWatch())
        self._calls = self._cleanup.enter_context(record_calls()) if "dml_calls" in _fixtures_of(self._item) else None
        refusal = UNNAMED if self._run.is_strict and self.target is None else ""
        is_default = self._run.has_several and self.target is None
        default = choice.targets_for(None, None)[0].spelling if is_default else None
        test = RunningTest(next(PROCESS.numbers), self.target, refusal, default)
        PROCESS.outside = self._run.outside  # a command may have read another one
        self._cleanup.callback(setattr, PROCESS, "unwritten", PROCESS.unwritten)  # monkeypatch may undo too much
        self._cleanup.enter_context(PROCESS.run(test))
        self._cleanup.callback(setattr, PROCESS, "plugin_managed", PROCESS.plugin_managed)
        PROCESS.plugin_managed = frozenset([getattr(self._item, "cls", None), *choice.functions_of(self._item)])
        PROCESS.unused.clear()
        self._require_plan()

    def calls(self) -> Calls:
        """Return the calls since the attempt began, or, if the test did not name the fixture, since now."""
        if self._calls is None:
            self._calls = self._cleanup.enter_context(record_calls())
        return self._calls

    def late_target(self) -> Target:
        """Return the target of a test that has no parameter for it; fail if it should have one for several."""
        if self._run.has_several and not self.is_named:
            self.fail("dml_target was asked for while the test runs, too late for several targets: make it an argument")
        PROCESS.test = PROCESS.test._replace(refusal="")  # now something names the target
        return _unsimulated_target()

    def _require_plan(self) -> None:
        is_late = _count_markers(self._item) != self._markers
        self.fail(*([self._refusal or _TOO_LATE] if self._refusal or is_late else []))

    def require_target(self) -> None:
        """Fail if a fixture keeps the test from its target."""
        self._require_plan()
        self._require_fixtures()
        self._require_variable()
        if self._run.has_several and not self.is_named and not self._run.is_strict:
            self._run.ran[_unsimulated_target().label] += 1
        if self.target is None or not self.is_named:
            return
        from dml_tile.simulation.target import current_target

        this = f"this test is for {self.target.label}, but"
        own = getattr(self._item, "funcargs", {}).get("dml_target", self.target)
        if own not in (self.target, choice.parameter_of(self._item)):
            self.fail(f"{this} its fixture dml_target returns {own}")
        if not self.target.simulates_as(current := current_target()):
            latest = PROCESS.open[-1].owner
            self.fail(f"{this} begins at {current.label}: {latest!r} of {latest.where} is open")

    def require_nothing_wrong(self) -> None:
        """Fail if the test made an error, even one that its code hides, or expects a removal that did not happen."""
        self._require_fixtures()
        self._require_variable()
        if choice.expects_removal(self._item) and not self._removals.removals:
            self.fail("the test expects that a device is removed, and none was")
        self.fail(*self.hidden())

    def _require_variable(self) -> None:
        """Fail if other code has set the variable, which processes that start now would follow alone."""
        expected = self._run.outside if PROCESS.written is None else PROCESS.written
        if (now := os.environ.get(TARGET_VARIABLE)) != expected:
            self.fail(
                f"the variable {TARGET_VARIABLE} is {now!r} in the test, not {expected!r}; it is read once, when pytest"
                " is configured: simulate the target with the fixture dml_simulate"
            )

    def _require_fixtures(self) -> None:
        """Fail if a fixture asked for another target when it was made, also one that the test fetched while it ran."""
        used = {*_used_by(getattr(self._item, "_request", None)).values()}
        for fixture, asked in self._run.fixtures.items():
            if asked and fixture in used and not asked[0].simulates_as(target := _unsimulated_target()):
                self.fail(
                    f"the {fixture.scope}-scoped fixture {fixture.argname.lstrip('_')} asked which target is simulated "
                    f"when it was made for {asked[0].label}; this test runs at {target.label}: let it take dml_target "
                    f"as an argument, with `dml_scope = {fixture.scope}` in the ini file, or prepare it for each test"
                )

    def require_reach(self, fixture: pytest.FixtureDef[Any]) -> None:
        """Fail if a fixture simulates in its context alone, and anyio runs the test in another one."""
        function = getattr(self._item, "function", None)
        if "anyio_backend" not in _fixtures_of(self._item) or not inspect.iscoroutinefunction(function):
            return
        lost = [entered for entered in PROCESS.open if entered.owner.scope == "context" and entered.is_open]
        if any(entered.test == PROCESS.test.number for entered in lost):
            self.fail(
                f"the fixture {fixture.argname} enters {lost[-1].owner!r}, which does not hold in a test that "
                "anyio runs in another context: leave out the scope, enter it in the test, or make the fixture async"
            )

    def hidden(self) -> list[str]:
        """Return the errors since the last call, including those that the test's code hides."""
        errors, PROCESS.test_errors = PROCESS.test_errors, []
        self.has_errors = self.has_errors or bool(errors)
        unasked = self._removals.new_unasked()
        if not unasked or choice.expects_removal(self._item):
            return errors
        how = "asks for the reason (device.removal), or says so: @pytest.mark.dml(expects_removal=True)"
        return [*errors, *unasked, f"A test that expects this {how}"]

    def end(self) -> list[str]:
        """End the simulations that the attempt left open, and return the reasons why the attempt fails."""
        left = [entered for entered in PROCESS.open if entered.test == PROCESS.test.number]
        for entered in left:
            PROCESS.change(entered, is_open=False)
        how = "enter it in a `with` block, or end it in a fixture"
        wrong = [f"the test left {entered.owner!r} open; {how}" for entered in left]
        wrong += [f"{unused!r} of {unused.where} was never entered; {how}" for unused in PROCESS.unused]
        wrong += [f"{asked} was never met" for asked in self._removals.unmet.values()] + self.hidden()
        self._run.tests.remove(self)
        self._cleanup.close()
        return wrong

    def fail(self, *reasons: str) -> None:
        """Fail for these reasons, if there are any."""
        if reasons:
            self.has_errors = True
            pytest.fail("\n".join([f"{self._item.nodeid}: {reasons[0]}", *reasons[1:]]), pytrace=False)


RUN: Final = pytest.StashKey[Run]()
TEST: Final = pytest.StashKey[PlannedTest]()
_TOO_LATE: Final = (
    "the dml marker came too late to run this test at each target: mark the test function, its class or its module "
    "where they are defined, or set `dml_every_test = true` in the ini file"
)


def _fixtures_of(item: pytest.Item) -> Collection[str]:
    """Return the names of a test's fixtures, with those fetched so far by ``request.getfixturevalue``."""
    request = getattr(item, "funcargs", {}).get("request")
    return getattr(item if request is None else request, "fixturenames", ())


def _count_markers(item: pytest.Item) -> int:
    return sum(1 for _ in item.iter_markers("dml"))
