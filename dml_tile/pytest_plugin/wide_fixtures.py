"""Fixtures of classes, modules, packages and the session, which outlive a test and so its target.

A fixture that asked for the target when it was made must not serve a test at another one.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pytest

from dml_tile.pytest_plugin.choice import simulated_by

if TYPE_CHECKING:
    from dml_tile.directml.targets import Target
    from dml_tile.simulation.target import Entered

SCOPES: Final = ("function", "class", "module", "package", "session")


@dataclass(eq=False)
class Made:
    """A wide fixture that is set up; ``target`` is what it asked for, ``simulations`` what it entered."""

    name: str
    scope: str
    owner: str
    """The node at which it is defined, as the beginning of its tests' node ids."""
    target: Target | None = None
    simulations: list[Entered] = field(default_factory=list)


class WideFixtures:
    """The wide fixtures that are set up."""

    def __init__(self, target_scope: str) -> None:
        self._target_scope = target_scope
        self._made: list[Made] = []

    @contextmanager
    def setup(
        self, fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest, target: Target | None
    ) -> Iterator[None]:
        """Watch what a fixture asks for when it is set up for a test, and tear it down at that test's target."""
        made = Made(fixturedef.argname, fixturedef.scope, fixturedef.baseid)
        teardown = ExitStack()
        request.addfinalizer(lambda: self._forget(made, teardown))  # the last to run
        simulation = sys.modules.get("dml_tile.simulation.target")
        asked = simulation.times_asked() if simulation else 0
        opened = set(simulation.open_simulations()) if simulation else set()
        self._made.append(made)
        yield
        simulation = sys.modules.get("dml_tile.simulation.target")
        if simulation is None:
            return
        made.simulations = [entered for entered in simulation.open_simulations() if entered not in opened]
        if simulation.times_asked() != asked:
            made.target = simulation.process_target()
        if target is not None:
            request.addfinalizer(lambda: teardown.enter_context(simulation.running_test(target)))  # the first to run

    def _forget(self, made: Made, teardown: ExitStack) -> None:
        teardown.close()
        self._made.remove(made)

    def have_asked(self, names: Collection[str]) -> bool:
        """Return True if one of these fixtures asked for the target."""
        return any(made.target is not None and made.name in names for made in self._made)

    def misfit(self, nodeid: str, names: Collection[str], target: Target, *, is_one_of_several: bool) -> str:
        """Why a fixture does not suit a test and its target; empty if each does."""
        for made in self._made:
            if made.target is None or made.name not in names or not nodeid.startswith(made.owner):
                continue
            if is_one_of_several and SCOPES.index(made.scope) > SCOPES.index(self._target_scope):
                return f"{_shown(made)} asks which target is simulated, but its tests run at several: {_advice(made)}"
            if simulated_by(made.target) != simulated_by(target):
                return (
                    f"{_shown(made)} asked which target is simulated when it was made for {made.target.label}; this "
                    f"test runs at {target.label}: {_advice(made)}"
                )
        return ""

    def owner(self, entered: Entered) -> str:
        """The name of the fixture that entered a simulation and is still set up; empty if none did."""
        return next((made.name for made in self._made if entered in made.simulations), "")


def _shown(made: Made) -> str:
    hook = re.match(r"_(?:xunit|unittest)_(\w+?)_fixture_(.+)", made.name)  # as pytest names them
    return f"{hook[1]} of {hook[2]}" if hook else f"the {made.scope}-scoped fixture {made.name}"


def _advice(made: Made) -> str:
    if made.name.startswith("_"):
        return "choose one target, or ask for it in what prepares each test"
    return (
        f"let it take dml_target as an argument, with `dml_scope = {made.scope}` in the ini file, or make it "
        "function-scoped, or name its target"
    )


def scope_advice(report: str) -> str:
    """Return the setting to add if a wide fixture takes the target of a narrower scope; empty for other reports."""
    mismatch = re.search(r"ScopeMismatch: .*\bdml_target\b.* with a (\w+) scoped", report)
    return f"set `dml_scope = {mismatch[1]}` in the ini file" if mismatch else ""
