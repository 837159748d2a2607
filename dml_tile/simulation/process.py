"""The target of a process: shared by its threads, and by the processes that it starts meanwhile.

The environment variable DML_TILE_TARGET names it to those, while it is simulated or a test's.

Imports the standard library alone: the pytest plugin sets the targets of tests in runs that never use the package.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import count
from threading import RLock, get_ident
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from dml_tile.directml.targets import Target

TARGET_VARIABLE: Final = "DML_TILE_TARGET"
"""The environment variable that names the default target of a process; commands and the plugin take several."""

UNNAMED: Final = "a test that names no target, and dml_strict is set: mark it with @pytest.mark.dml, or use simulate"
COLLECTING: Final = (
    "the collection of tests, which has no target (several are chosen, or dml_strict is set and none is): ask in the "
    "test, in a fixture or in a string condition"
)


@dataclass(eq=False, slots=True)
class OpenSimulation:
    """A simulation that was entered; contexts may refer to it after it has ended."""

    owner: Any
    test: int  # the number of the test, or of the wide fixture, that entered it; 0 for others
    opener: object = None
    is_open: bool = True


class RunningTest(NamedTuple):
    """A test that runs, a fixture that outlives one and is set up or torn down, or the collection of tests."""

    number: int = 0
    target: Target | None = None
    refusal: str = ""  # UNNAMED or COLLECTING where asking is an error; else empty
    default: str | None = None  # the target of a test that names none of several; the variable does not decide there


class Process:
    """The simulations and the test of this process."""

    def __init__(self) -> None:
        self.lock = RLock()
        self.open: list[OpenSimulation] = []
        """The simulations that have not ended, of this process and of contexts, in the order of their beginnings."""
        self.innermost: OpenSimulation | None = None  # of those that are process-wide
        self.simulated: Target | None = None  # by the innermost
        self.test = RunningTest()
        self.numbers = count(1)
        self.is_watched = False  # by pytest's plugin
        self.target_requests: list[Target] | None = None
        """The targets that were returned while nothing was simulated; None unless they are recorded."""
        self.plugin_managed: frozenset[object] = frozenset()
        """The functions and the class of the running test, whose decorators do nothing: the plugin sets the target."""
        self.unused: dict[Any, None] = {}  # the simulations that the test made, and neither entered nor decorated with
        self.test_errors: list[str] = []  # the errors of the test that count also where its code hides them
        self.outside = os.environ.get(TARGET_VARIABLE)
        """The variable's value when the package was imported; commands and the plugin read it again."""
        self.before: str | None = None  # the variable's value before anything was written
        self.written: str | None = None  # the target that the variable names for processes that start now

    def read_outside(self) -> None:
        """Read the variable again, unless this process has written it."""
        with self.lock:
            if self.written is None:
                self.outside = os.environ.get(TARGET_VARIABLE)

    def change(self, entered: OpenSimulation, *, is_open: bool) -> None:
        """Begin or end a simulation, in this context and, if it is process-wide, in the process."""
        others = tuple(other for other in CONTEXT.get() if other is not entered)
        CONTEXT.set((*others, entered) if is_open else others)
        with self.lock:
            entered.is_open = is_open
            self.open = [other for other in self.open if other is not entered] + [entered] * is_open
            wide = [other for other in self.open if other.owner.scope == "process"]
            self.innermost = wide[-1] if wide else None
            self.simulated = self.innermost.owner.target if self.innermost is not None else None
            self._tell_children()

    @contextmanager
    def run(self, test: RunningTest) -> Iterator[None]:
        """Make a test the current one of the process."""
        before, self.test = self.test, test
        self._tell_children()
        try:
            yield
        finally:
            self.test = before
            self._tell_children()

    @property
    def unwritten(self) -> str | None:
        """The variable's value without what this process has written."""
        return os.environ.get(TARGET_VARIABLE) if self.written is None else self.before

    @unwritten.setter
    def unwritten(self, value: str | None) -> None:
        with self.lock:
            if self.written is None:
                _set_variable(value)
            else:
                self.before = value

    def _tell_children(self) -> None:
        """Write the target of processes that start from now on: the simulated one, else the test's."""
        with self.lock:
            target = self.simulated or self.test.target
            text = target.spelling if target is not None else self.test.default
            now = os.environ.get(TARGET_VARIABLE)
            if text is not None:
                self.before = now if self.written is None else self.before
                _set_variable(text)
            elif self.written is not None and now == self.written:  # else other code has set it meanwhile
                _set_variable(self.before)
            self.written = text

    def begin_in_child(self) -> None:
        """Begin at the target of the process that forked this one; its simulations and its test are not this one's."""
        self.lock = RLock()
        self.outside, self.before, self.written = os.environ.get(TARGET_VARIABLE), None, None
        self.test, self.open, self.target_requests = RunningTest(self.test.number), [], None
        self.innermost = self.simulated = None
        CONTEXT.set(())


def _set_variable(value: str | None) -> None:
    """Set or remove the variable, unless it has the value: C libraries read it in other threads."""
    if value is None:
        os.environ.pop(TARGET_VARIABLE, None)
    elif os.environ.get(TARGET_VARIABLE) != value:
        os.environ[TARGET_VARIABLE] = value


CONTEXT: Final[ContextVar[tuple[OpenSimulation, ...]]] = ContextVar("dml_tile_simulations", default=())
PROCESS: Final = Process()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=PROCESS.begin_in_child)


def opener() -> object:
    """Return the identity of this thread, and asyncio's running task if there is one."""
    asyncio = sys.modules.get("asyncio")
    try:
        return get_ident(), asyncio and asyncio.current_task()
    except RuntimeError:  # no loop runs in this thread
        return get_ident(), None


def caller() -> str:
    """Return the file and line of the latest call from outside the package."""
    frame: Any = sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("dml_tile."):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
