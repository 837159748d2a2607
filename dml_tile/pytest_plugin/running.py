"""Runs of tests at their targets: what holds while one runs, and what it must not leave behind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from unittest import TestCase

import pytest

from dml_tile.pytest_plugin.choice import (
    brings_its_own,
    expects_removal,
    functions_of,
    parameter_of,
    raw_parameter_of,
    read_choice,
    targets_for,
    wish_of,
)
from dml_tile.simulation.calls import Call, RemovalWatch, record_calls
from dml_tile.simulation.process import PROCESS, RunningTest, simulated_by

if TYPE_CHECKING:
    from dml_tile.directml.targets import Target


@dataclass(frozen=True)
class Plan:
    """The target and markers of a test, as decided when it was collected."""

    target: Target | None = None
    is_named: bool = False
    """True if the test asks for its target, by a marker, a decorator or a fixture, or every test does."""
    markers: int = 0
    """The number of ``dml`` markers that it had then."""
    refusal: str = ""
    """Why it cannot run; pytest has no collection error for a single item."""


class Run:
    """One run of pytest; at most one of its tests runs at a time."""

    def __init__(self, config: pytest.Config) -> None:
        self.chosen = read_choice(config)
        self.every_test = bool(config.getoption("--dml-every-test") or config.getini("dml_every_test"))
        self.is_strict = bool(config.getini("dml_strict"))
        self.notes: Counter[str] = Counter()
        """What happens to tests and is worth a line, and to how many."""
        self.fixtures: dict[int, tuple[pytest.FixtureDef[Any], list[Target]]] = {}
        """The fixtures that are set up and outlive a test, by their numbers, and the targets that they asked for."""
        self._attempt: Attempt | None = None

    @property
    def has_several(self) -> bool:
        """True if several targets are chosen."""
        return self.chosen is not None and len(self.chosen.targets) > 1

    @property
    def attempt(self) -> Attempt:
        """The test that runs."""
        assert self._attempt is not None, "it was set up"
        return self._attempt

    def plan(self, item: pytest.Item) -> bool:
        """Decide at which target a test runs; False if at none."""
        try:
            plan = self._plan(item)
        except ValueError as error:
            plan = Plan(refusal=str(error), markers=_count_markers(item))
        if plan is not None:
            item.stash[_PLAN] = plan
        return plan is not None

    def _plan(self, item: pytest.Item) -> Plan | None:
        wish, markers, parameter = wish_of(item), _count_markers(item), parameter_of(item)
        if not (wish or parameter or self.every_test or "dml_target" in _fixtures_of(item)):
            return self._plan_of_unnamed()
        if markers and parameter is None and not _takes_one_target(item):
            raise ValueError(_TOO_LATE)
        kept = targets_for(self.chosen, wish)
        if parameter is not None:
            kept = [parameter] if wish is None or wish.keeps(parameter) else []
        if not kept and wish is not None:
            excluded = parameter.label if parameter is not None and brings_its_own(item) else self.chosen
            self.notes[f"deselected: {wish.text} excludes {excluded}"] += 1
            return None
        if len(kept) > 1:
            names = ", ".join(target.name for target in kept)
            raise ValueError(
                f"{len(kept)} targets are chosen ({names}), but pytest cannot run this test once for each: choose one, "
                f'narrow them with @pytest.mark.dml(targets=["{kept[0].name}"]), or decorate it with '
                f'@dml_tile.simulate("{kept[0].name}")'
            )
        return Plan(kept[0], is_named=True, markers=markers)

    def _plan_of_unnamed(self) -> Plan:
        """Plan a test that does not ask for a target: at the only one that is chosen, or of several at 6_4."""
        if self.chosen is None or (self.has_several and self.is_strict):
            return Plan()
        return Plan(targets_for(None if self.has_several else self.chosen, None)[0])

    def note_unnamed(self, items: list[pytest.Item]) -> None:
        """Count the tests that run at 6_4 because they do not ask which of several targets they are for."""
        plans = [item.stash[_PLAN] for item in items]
        unnamed = [plan for plan in plans if plan.target is not None and not plan.is_named]
        if self.has_several and unnamed:
            at = f"at {unnamed[0].target}, naming no target"
            self.notes[f"{at} (dml_every_test = true runs every test at each)"] = len(unnamed)

    def begin(self, item: pytest.Item) -> None:
        """Begin an attempt at a test, before anything is set up for it; fail if the test cannot run."""
        self.end()  # one that was interrupted
        self._attempt = Attempt(item, item.stash.get(_PLAN, None) or self._plan_of_unnamed(), self)
        self._attempt.require_plan()

    def forget(self) -> None:
        """Ask nothing of what was wrong up to now."""
        if self._attempt is not None:
            self._attempt.hidden()

    def end(self) -> list[str]:
        """End the attempt, and return what is wrong with it."""
        attempt, self._attempt = self._attempt, None
        return attempt.end() if attempt is not None else []

    @contextmanager
    def set_up(self, definition: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> Iterator[None]:
        """Record whether a fixture that outlives a test asks for the target, and tear it down at the same one."""
        number, asked, before, teardown = next(PROCESS.numbers), list[Any](), PROCESS.asked, ExitStack()
        test = PROCESS.test._replace(number=number)
        self.fixtures[number] = definition, asked
        teardown.callback(self._forget, number)
        request.addfinalizer(teardown.close)  # the last to run
        PROCESS.asked = asked
        try:
            with PROCESS.run(test):
                yield
        finally:
            PROCESS.asked = before
        request.addfinalizer(lambda: teardown.enter_context(PROCESS.run(test)))  # the first to run

    def _forget(self, number: int) -> None:
        del self.fixtures[number]
        for entered in PROCESS.open:
            if entered.test == number:  # now the test that tore the fixture down has left it open
                entered.test = PROCESS.test.number


class Attempt:
    """One attempt at a test, from the first fixture that is set up to the last that is torn down."""

    def __init__(self, item: pytest.Item, plan: Plan, run: Run) -> None:
        self.plan = plan
        self._item, self._run, self._cleanup = item, run, ExitStack()
        self._removals = self._cleanup.enter_context(RemovalWatch())
        self._calls = self._cleanup.enter_context(record_calls()) if "dml_calls" in _fixtures_of(item) else None
        is_strict = run.is_strict and plan.target is None
        self._cleanup.enter_context(PROCESS.run(RunningTest(next(PROCESS.numbers), plan.target, is_strict)))
        self._cleanup.callback(setattr, PROCESS, "spared", PROCESS.spared)
        PROCESS.spared = frozenset([getattr(item, "cls", None), *functions_of(item)])
        PROCESS.unused.clear()

    def calls(self) -> list[Call]:
        """Return the calls since the attempt began, or, if the test did not name the fixture, since now."""
        if self._calls is None:
            self._calls = self._cleanup.enter_context(record_calls())
        return self._calls

    def target(self) -> Target:
        """Return the target of a test that has no parameter for it; fail if it should have one for several."""
        from dml_tile.simulation.target import unsimulated_target

        if self._run.has_several and not self.plan.is_named:
            self.fail("dml_target was asked for while the test runs, too late for several targets: make it an argument")
        PROCESS.test = PROCESS.test._replace(is_strict=False)  # now something names the target
        return unsimulated_target()

    def require_plan(self) -> None:
        """Fail if the test cannot run, or was marked after its plan was made."""
        late = _count_markers(self._item) != self.plan.markers
        self.fail(*([self.plan.refusal or _TOO_LATE] if self.plan.refusal or late else []))

    def require_target(self) -> None:
        """Fail if what was set up keeps the test from its target."""
        self.require_plan()
        self._require_fixtures()
        if self.plan.target is None or not self.plan.is_named:
            return
        from dml_tile.simulation.target import current_target

        this = f"this test is for {self.plan.target.label}, but"
        own = getattr(self._item, "funcargs", {}).get("dml_target", self.plan.target)
        if own not in (self.plan.target, raw_parameter_of(self._item)):
            self.fail(f"{this} its fixture dml_target returns {own}")
        if simulated_by(current := current_target()) != simulated_by(self.plan.target):
            latest = PROCESS.open[-1].owner
            self.fail(f"{this} begins at {current.label}: {latest!r} of {latest.where} is open")

    def require_nothing_wrong(self) -> None:
        """Fail if the test that was called did what is an error though its code hides it, or not what it expects."""
        self._require_fixtures()
        if self._expects_removal() and not self._removals.removals:
            self.fail("the test expects that a device is removed, and none was")
        self.fail(*self.hidden())

    def _require_fixtures(self) -> None:
        """Fail if a fixture asked for another target when it was made, also one that the test fetched while it ran."""
        names = _fixtures_of(self._item)
        for fixture, asked in self._run.fixtures.values():
            if not asked or fixture.argname not in names or not self._item.nodeid.startswith(fixture.baseid):
                continue
            from dml_tile.simulation.target import unsimulated_target

            if simulated_by(asked[0]) != simulated_by(target := unsimulated_target()):
                self.fail(
                    f"the {fixture.scope}-scoped fixture {fixture.argname.lstrip('_')} asked which target is simulated "
                    f"when it was made for {asked[0].label}; this test runs at {target.label}: let it take dml_target "
                    f"as an argument, with `dml_scope = {fixture.scope}` in the ini file, or prepare it for each test"
                )

    def hidden(self) -> list[str]:
        """Take what happened that is an error, also where the test's code hides it."""
        complaints, PROCESS.complaints = PROCESS.complaints, []
        unasked = self._removals.take_unasked()
        if not unasked or self._expects_removal():
            return complaints
        how = "asks for the reason (device.removal), or says so: @pytest.mark.dml(expects_removal=True)"
        return [*complaints, *unasked, f"A test that expects this {how}"]

    def _expects_removal(self) -> bool:
        return bool(self.plan.markers) and expects_removal(self._item)

    def end(self) -> list[str]:
        """End what the test left open, and return what is wrong with that and with what its code hides."""
        left = [entered for entered in PROCESS.open if entered.test == PROCESS.test.number]
        for entered in left:
            PROCESS.end(entered)
        how = "enter it in a `with` block, or end it in a fixture"
        wrong = [f"the test left {entered.owner!r} open; {how}" for entered in left]
        wrong += [f"{unused!r} of {unused.where} was never entered; {how}" for unused in PROCESS.unused]
        wrong += self.hidden()
        self._cleanup.close()
        return wrong

    def fail(self, *reasons: str) -> None:
        """Fail for these reasons, if there are any."""
        if reasons:
            pytest.fail("\n".join([f"{self._item.nodeid}: {reasons[0]}", *reasons[1:]]), pytrace=False)


RUN: Final = pytest.StashKey[Run]()
_PLAN: Final = pytest.StashKey[Plan]()
_TOO_LATE: Final = (
    "the dml marker came too late to run this test at each target: mark the test function, its class or its module "
    "where they are defined, or set `dml_every_test = true` in the ini file; one on a pytest.param can only narrow the "
    "targets of a marked test"
)


def _fixtures_of(item: pytest.Item) -> Collection[str]:
    """Return the names of a test's fixtures, with those fetched so far by ``request.getfixturevalue``."""
    request = getattr(item, "funcargs", {}).get("request")
    return getattr(item if request is None else request, "fixturenames", ())


def _count_markers(item: pytest.Item) -> int:
    return sum(1 for _ in item.iter_markers("dml"))


def _takes_one_target(item: pytest.Item) -> bool:
    """Return True if pytest cannot run the test once for each target, however early it is marked."""
    cls = getattr(item, "cls", None)
    return not isinstance(item, pytest.Function) or (cls is not None and issubclass(cls, TestCase))
