"""Runs of tests at their targets: what is simulated while one runs, and what it must not leave behind."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn
from unittest import TestCase

import pytest

from dml_tile.pytest_plugin.choice import (
    Chosen,
    bounds_of,
    brings_its_own,
    expects_removal,
    simulated_by,
    targets_for,
    within,
)
from dml_tile.pytest_plugin.wide_fixtures import WideFixtures
from dml_tile.simulation.calls import Call, RemovalWatch, record_calls

if TYPE_CHECKING:
    from dml_tile.directml.targets import Target
    from dml_tile.simulation.target import Entered

CHOSEN: Final = pytest.StashKey[Chosen | None]()
EVERY_TEST: Final = pytest.StashKey[bool]()


@dataclass(frozen=True)
class Plan:
    """The target and markers of a test, as decided when it was collected."""

    target: Target | None = None
    markers: int = 0
    """The number of ``dml`` markers that it had then."""
    refusal: str = ""
    """Why it cannot run; pytest has no collection error for a single item."""
    is_decorated: bool = False
    """True if the target is that of a ``simulate`` decorator."""


@dataclass
class Running:
    """A test that runs; ``calls`` is None while they are not recorded."""

    item: pytest.Item
    plan: Plan
    removals: RemovalWatch
    cleanup: ExitStack
    calls: list[Call] | None = None
    decorator: Entered | None = None


class Run:
    """One run of pytest; at most one of its tests runs at a time."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._running: Running | None = None
        self._tolerated: set[Entered] | None = None
        """The simulations that were open before the first test."""
        self.wide_fixtures = WideFixtures(config.getini("dml_scope"))

    @property
    def target(self) -> Target | None:
        """The target of the test that runs."""
        return self._running.plan.target if self._running else None

    def _has_several_targets(self) -> bool:
        """Return True if the running test is one of several, each for another target."""
        if self._running is None or not hasattr(self._running.item, "callspec"):
            return False
        if "dml_target" not in self._running.item.callspec.params or self._running.plan.is_decorated:
            return False
        bounds = bounds_of(self._running.item)
        kept = within(targets_for(self._config.stash[CHOSEN], bounds), bounds)
        return len(kept) > 1 or brings_its_own(self._running.item)

    # Plans

    def plan(self, item: pytest.Item) -> bool:
        """Decide at which target a test runs; False if at none."""
        try:
            plan = self._plan(item)
        except ValueError as error:
            plan = Plan(refusal=str(error))
        if plan is not None and plan != _NOTHING:
            item.stash[_PLAN] = plan
        return plan is not None

    def _plan(self, item: pytest.Item) -> Plan | None:
        markers = _count_markers(item)
        own = own_target(_function_of(item), getattr(item, "cls", None))
        named = getattr(item, "callspec", None) and item.callspec.params.get("dml_target")  # type: ignore[attr-defined]
        if named is not None:
            from dml_tile.directml.targets import Target

            target = Target.parse(named)
            return Plan(target, markers, is_decorated=own is not None) if within([target], bounds_of(item)) else None
        if own is not None:
            return Plan(own, markers, is_decorated=True) if within([own], bounds_of(item)) else None
        if not (markers or self._config.stash[EVERY_TEST] or "dml_target" in _fixtures_of(item)):
            return _NOTHING
        if markers and _is_multiplied(item):
            raise ValueError(_TOO_LATE)
        bounds = bounds_of(item)
        kept = within(targets_for(self._config.stash[CHOSEN], bounds), bounds)
        if len(kept) > 1:
            names = ", ".join(target.name for target in kept)
            raise ValueError(
                f"{len(kept)} targets are chosen ({names}), but pytest cannot run this test once for each: choose one, "
                f'narrow them with @pytest.mark.dml(targets=["{kept[0].name}"]), or decorate it with '
                f'@dml_tile.simulate("{kept[0].name}")'
            )
        return Plan(kept[0], markers) if kept else None

    # One test

    @contextmanager
    def test(self, item: pytest.Item) -> Iterator[None]:
        """Simulate a test's target while it is set up, runs and is torn down."""
        plan = item.stash.get(_PLAN, _NOTHING)
        if not plan.refusal and _count_markers(item) != plan.markers:
            plan = Plan(refusal=_TOO_LATE)
        with ExitStack() as stack:
            before = self._running
            self._running = running = Running(item, plan, stack.enter_context(RemovalWatch()), stack)
            stack.callback(setattr, self, "_running", before)
            if "dml_calls" in _fixtures_of(item):
                running.calls = stack.enter_context(record_calls())
            if plan.target is not None or _is_simulation_loaded():
                self._simulate(running)
            yield

    def _simulate(self, running: Running) -> None:
        from dml_tile.simulation.target import open_simulations, running_test, simulate

        if self._tolerated is None:
            self._tolerated = set(open_simulations())
        target = running.plan.target
        running.cleanup.enter_context(running_test(target))
        if target is not None and running.plan.is_decorated:
            running.cleanup.enter_context(simulate(target, process_wide=True))
            running.decorator = open_simulations()[-1]

    def require_no_refusal(self) -> None:
        """Fail if the test that runs cannot."""
        if self._running and self._running.plan.refusal:
            self._fail(self._running.plan.refusal)

    def require_target(self) -> None:
        """Fail if what was set up keeps the test from its target."""
        self.require_fixtures()
        target = self.target
        if self._running is None or target is None or not _is_simulation_loaded():
            return
        names = _fixtures_of(self._running.item)
        for entered in self._foreign_simulations():
            name = self.wide_fixtures.owner(entered)
            if name not in names and simulated_by(entered.target) != simulated_by(target):
                whose = f"the fixture {name}" if name else "code that ran before the tests"
                self._fail(
                    f"this test is for {target.label}, but {whose} has entered simulate({entered.target.name!r}), "
                    "which is still open"
                )

    def require_fixtures(self) -> None:
        """Fail if a wide fixture of the test, also one that it fetched while it ran, is for another target."""
        if self._running is None or not _is_simulation_loaded():
            return
        from dml_tile.simulation.target import process_target

        item = self._running.item
        names = _fixtures_of(item)
        if self.wide_fixtures.have_asked(names):
            several = self._has_several_targets()
            at = self.target or process_target()
            if misfit := self.wide_fixtures.misfit(item.nodeid, names, at, is_one_of_several=several):
                self._fail(misfit)

    def _foreign_simulations(self) -> list[Entered]:
        """The open simulations that neither the test that runs nor its own fixtures have entered."""
        from dml_tile.simulation.target import open_simulations

        return [
            entered
            for entered in open_simulations()
            if self.wide_fixtures.owner(entered) or entered in (self._tolerated or ())
        ]

    def end_simulations(self) -> list[str]:
        """End the simulations that the test left open; gives their targets."""
        if self._running is None or not _is_simulation_loaded():
            return []
        from dml_tile.simulation.target import end, open_simulations

        accounted = {*self._foreign_simulations(), self._running.decorator}
        left_open = [entered for entered in open_simulations() if entered not in accounted]
        for entered in left_open:
            end(entered)
        return [f"simulate({entered.target.name!r})" for entered in left_open]

    def require_none_open(self, left_open: list[str]) -> None:
        """Fail if the test left simulations open."""
        if left_open:
            self._fail(f"the test left {', '.join(left_open)} open; enter it in a `with` block, or end it in a fixture")

    def require_devices(self, *, at_end_of_call: bool = False) -> None:
        """Fail if a device was removed unnoticed, or none was though the test expects it."""
        if self._running is None:
            return
        removals = self._running.removals
        expected = bool(self._running.plan.markers) and expects_removal(self._running.item)
        if expected and at_end_of_call and not removals.removals:
            self._fail("the test expects that a device is removed, and none was")
        unasked = removals.take_unasked()
        if unasked and not expected:
            how = "asks for the reason (device.removal), or says so: @pytest.mark.dml(expects_removal=True)"
            self._fail("\n".join([*unasked, f"A test that expects this {how}"]))

    def forget_removals(self) -> None:
        """Ask nothing of the devices that were removed up to now."""
        if self._running is not None:
            self._running.removals.take_unasked()

    def only_target(self) -> Target:
        """The target of the test that runs, which has no parameter for it; fails where it runs for none."""
        from dml_tile.simulation.target import process_target

        running = self._running
        if running is None or running.plan.target is None:
            chosen = within(targets_for(self._config.stash[CHOSEN], ()), ())
            target = process_target()
            if len(chosen) > 1 or simulated_by(chosen[0]) != simulated_by(target):
                self._fail(
                    "dml_target was asked for while the test runs, too late to simulate it from the beginning: "
                    "name it as an argument of the test, or mark the test with @pytest.mark.dml"
                )
            return target
        return running.plan.target

    def calls(self) -> list[Call]:
        """The calls since the test began, or, if it did not name the fixture, since now."""
        assert self._running is not None
        if self._running.calls is None:
            self._running.calls = self._running.cleanup.enter_context(record_calls())
        return self._running.calls

    def _fail(self, reason: str) -> NoReturn:
        nodeid = f"{self._running.item.nodeid}: " if self._running else ""
        pytest.fail(f"{nodeid}{reason}", pytrace=False)


RUN: Final = pytest.StashKey[Run]()
_PLAN: Final = pytest.StashKey[Plan]()
_NOTHING: Final = Plan()
_TOO_LATE: Final = (
    "the dml marker came too late to run this test at each target: mark the test function, its class or its module "
    "where they are defined, or set `dml_every_test = true` in the ini file; one on a pytest.param can only narrow the "
    "targets of a marked test"
)


def own_target(*decorated: Any) -> Target | None:
    """The target of the ``simulate`` that decorates a test function, or else its class."""
    simulations = (getattr(one, "__dml_simulation__", None) for one in decorated)
    return next((simulation.target for simulation in simulations if simulation is not None), None)


def _function_of(item: pytest.Item) -> Any:
    """The function of a test, not bound to an instance, which would be made for it."""
    owner = getattr(item, "cls", None) or getattr(item, "module", None)
    return getattr(owner, getattr(item, "originalname", None) or item.name, None)


def _fixtures_of(item: pytest.Item) -> Collection[str]:
    """The names of a test's fixtures, with those fetched so far by ``request.getfixturevalue``."""
    request = getattr(item, "funcargs", {}).get("request")
    return getattr(item if request is None else request, "fixturenames", ())


def _count_markers(item: pytest.Item) -> int:
    return sum(1 for _ in item.iter_markers("dml"))


def _is_multiplied(item: pytest.Item) -> bool:
    """Return True if pytest could have run the test once for each target, had it been marked before collection."""
    cls = getattr(item, "cls", None)
    return isinstance(item, pytest.Function) and not (cls is not None and issubclass(cls, TestCase))


def _is_simulation_loaded() -> bool:
    """Return True if anything can have been simulated; a run that never uses the package does not import it."""
    return "dml_tile.simulation.target" in sys.modules
