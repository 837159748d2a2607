"""The target that is simulated where none is named.

It is the first of these that there is: that of the innermost ``simulate`` block; that of the running test, as the
pytest plugin sets it; that of the variable DML_TILE_TARGET; DEFAULT_TARGET.

A ``simulate`` block holds in its context (contextvars): in the thread that entered it, and in asyncio's tasks that are
made within. All else, including the process-wide form, holds in every thread, and in child processes.
"""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache, partial, wraps
from itertools import count
from threading import Lock
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, Final, TypeVar

from dml_tile.directml.targets import DEFAULT_TARGET, Target, TargetLike

VARIABLE: Final = "DML_TILE_TARGET"
"""The environment variable that names the default target of a process; commands and the plugin take several."""

_VARIABLE_KEY: Final = os.environ.encodekey(VARIABLE)

Decorated = TypeVar("Decorated")


@dataclass(eq=False, slots=True)
class Entered:
    """A simulation that was entered; contexts may refer to it after it has ended."""

    target: Target
    owner: Simulation
    process_wide: bool
    test: int
    is_open: bool = True


class _Process:
    """The simulations that hold in all threads, and in child processes by the environment variable."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.entered: list[Entered] = []
        """The process-wide simulations; the last one counts."""
        self.test_target: Target | None = None
        self.target: Target | None = None
        """The target of the process-wide simulation, or of the test."""
        self.test = 0
        """The number of the running test; 0 where none runs."""
        self.tests = count(1)
        self.asked = 0
        """The number of times that the target of the process was asked for."""
        self._variable: str | None = None

    def change(self, change: Callable[[], object]) -> None:
        """Make a change of the target, and let the variable follow."""
        with self.lock:
            if self.target is None:
                self._variable = os.environ.get(VARIABLE)
            change()
            self.target = self.entered[-1].target if self.entered else self.test_target
            if self.target is not None:
                os.environ[VARIABLE] = self.target.spelling
            elif self._variable is None:
                os.environ.pop(VARIABLE, None)
            else:
                os.environ[VARIABLE] = self._variable

    def set_test_target(self, target: Target | None) -> None:
        self.test_target = target


_process: Final = _Process()
_stack: Final[ContextVar[tuple[Entered, ...]]] = ContextVar("dml_tile_simulations", default=())
_open: Final[dict[Entered, None]] = {}


def current_target() -> Target:
    """The target that is meant where none is named: by ``check``, ``tile``, ``Device``, …

    Raises ValueError where the variable DML_TILE_TARGET decides, and names no target, or several.

        >>> with simulate("windows-10-22h2"):
        ...     print(current_target())
        windows-10-22h2 (2_0)
    """
    return resolve(None)


def resolve(target: TargetLike | None) -> Target:
    """The target meant by an argument; None means the current one. Raises ValueError for an unknown target."""
    if target is not None:
        return target if isinstance(target, Target) else Target.parse(target)
    if _stack.get() and (simulated := _in_context()) is not None:
        return simulated
    _process.asked += 1
    return process_target()


def default_targets() -> tuple[Target, ...]:
    """The targets that are simulated, or that the variable names; empty if there are none. Raises ValueError."""
    target = _in_context() or _process.target
    return (target,) if target else targets_of_variable()


def targets_of_variable() -> tuple[Target, ...]:
    """The targets that the variable DML_TILE_TARGET names, each once. Raises ValueError for an unknown one."""
    text = os.environ.get(VARIABLE)
    return _parsed_variable(text) if text else ()


def targets_in(text: str) -> tuple[Target, ...]:
    """The targets in a text, between commas or white space, each once. Raises ValueError for an unknown one."""
    return tuple(dict.fromkeys(Target.parse(name) for name in re.split(r"[\s,]+", text) if name))


def _in_context() -> Target | None:
    for entered in reversed(_stack.get()):
        if entered.process_wide:
            if entered.is_open:
                return None  # it hides those around it
        elif entered.is_open or entered.test == _process.test:  # a task keeps its target, but not into another test
            return entered.target
    return None


def process_target() -> Target:
    """The target of threads that simulate nothing of their own. Raises ValueError as ``current_target`` does."""
    if (target := _process.target) is not None:
        return target
    if not _is_variable_set():
        return DEFAULT_TARGET
    named = targets_of_variable()
    if len(named) > 1:
        names = ", ".join(target.name for target in named)
        raise ValueError(f"{VARIABLE} names {len(named)} targets ({names}); one is needed here: name it as the target")
    return named[0] if named else DEFAULT_TARGET


def _is_variable_set() -> bool:
    """As ``VARIABLE in os.environ``, which raises two errors inside where it is not: longer than a small tile takes."""
    try:
        return _VARIABLE_KEY in os.environ._data  # type: ignore[attr-defined]
    except AttributeError:  # another mapping stands in its place
        return VARIABLE in os.environ


@lru_cache(maxsize=16)
def _parsed_variable(text: str) -> tuple[Target, ...]:
    try:
        return targets_in(text)
    except ValueError as error:
        raise ValueError(f"{VARIABLE}: {error}") from None


def simulate(target: TargetLike, *, process_wide: bool = False) -> Simulation:
    """Make a target the current one: in a ``with`` block, or in what it decorates.

    It holds in the current context: in this thread, and in tasks of asyncio that are made within. With
    ``process_wide``, it holds in all threads and tasks, also in those that run already and simulate nothing of their
    own, and in child processes. Raises ValueError for an unknown target.

        >>> with simulate("windows-10-22h2") as target:
        ...     print(target.feature_level, current_target().name)
        2_0 windows-10-22h2
    """
    return Simulation(target, process_wide=process_wide)


class Simulation:
    """A simulation of a target, as ``simulate`` makes it: a context manager, and a decorator.

    It can be entered any number of times, also within itself. It decorates functions, coroutine functions, test classes
    and TestCases; the methods of a TestCase run in contexts of their own, so there it is process-wide. Fixtures of
    pytest for a decorated test or class simulate the same.
    """

    def __init__(self, target: TargetLike, *, process_wide: bool = False) -> None:
        self.target = Target.parse(target)
        self.process_wide = process_wide
        self._entered: list[Entered] = []

    def __repr__(self) -> str:
        return f"simulate({self.target.name!r}{', process_wide=True' if self.process_wide else ''})"

    def __enter__(self) -> Target:
        entered = Entered(self.target, self, self.process_wide, _process.test)
        self._entered.append(entered)
        _open[entered] = None
        _stack.set((*_stack.get(), entered))
        if self.process_wide:
            _process.change(lambda: _process.entered.append(entered))
        return self.target

    def __exit__(self, *_: object) -> None:
        here = [entered for entered in _stack.get() if entered.owner is self and entered.is_open]
        for entered in (here or self._entered)[-1:]:  # none, if a test that left it open has ended
            end(entered)

    def __call__(self, decorated: Decorated) -> Decorated:
        """Decorate a function, a coroutine function or a class. Raises TypeError for anything else."""
        made: Any = decorated
        if isinstance(made, type):
            _decorate_class(made, self)
        elif inspect.isgeneratorfunction(made) or inspect.isasyncgenfunction(made):
            raise TypeError(
                f"simulate cannot decorate the generator function {made.__name__}, which runs after the call has "
                f"returned; write `with simulate({self.target.name!r}):` in it"
            )
        elif isinstance(made, _FUNCTIONS):
            made = _decorated_function(made, self)
        else:
            raise TypeError(f"simulate decorates functions and classes, not a {type(made).__name__}")
        made.__dml_simulation__ = self
        return made  # type: ignore[no-any-return]


_FUNCTIONS: Final = (FunctionType, MethodType, BuiltinFunctionType, partial)
_TEST_CASE_METHODS: Final = ("run", "setUpClass", "tearDownClass")


def _decorated_function(function: Callable[..., Any], simulation: Simulation) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(function):

        @wraps(function)
        async def awaited(*arguments: Any, **options: Any) -> Any:
            with simulation:
                return await function(*arguments, **options)

        return awaited

    @wraps(function)
    def called(*arguments: Any, **options: Any) -> Any:
        with simulation:
            return function(*arguments, **options)

    return called


def _decorate_class(decorated: type, simulation: Simulation) -> None:
    """Simulate in the test methods of a class, those that it inherits too; pytest's plugin does it for their setup."""
    unittest = sys.modules.get("unittest")
    if unittest is not None and issubclass(decorated, unittest.TestCase):
        names: tuple[str, ...] = _TEST_CASE_METHODS
        simulation = Simulation(simulation.target, process_wide=True)
    else:
        names = tuple(name for name in dir(decorated) if name.startswith("test"))
    for name in names:
        method = inspect.getattr_static(decorated, name, None)
        if isinstance(method, classmethod | staticmethod):
            setattr(decorated, name, type(method)(_decorated_function(method.__func__, simulation)))
        elif inspect.isfunction(method):
            setattr(decorated, name, _decorated_function(method, simulation))


def end(entered: Entered) -> None:
    """End one simulation, whatever was entered since; one that has ended is left alone."""
    if not entered.is_open:
        return
    entered.is_open = False
    entered.owner._entered.remove(entered)
    del _open[entered]
    _stack.set(tuple(other for other in _stack.get() if other is not entered))
    if entered.process_wide:
        _process.change(lambda: _process.entered.remove(entered))


def open_simulations() -> list[Entered]:
    """The simulations that have not ended, in any thread, in the order in which they were entered."""
    return list(_open)


def times_asked() -> int:
    """Return the number of times that the process's target was asked for, to compare before and after some code."""
    return _process.asked


@contextmanager
def running_test(target: Target | None) -> Iterator[None]:
    """While a test runs, make its target that of the process; None leaves the one that there is.

    What simulations that ended before the test left in the contexts of tasks is void in it.
    """
    before = _process.test, _process.test_target
    _process.test = next(_process.tests)
    if target is not None:
        _process.change(lambda: _process.set_test_target(target))
    try:
        yield
    finally:
        _process.test = before[0]
        if target is not None:
            _process.change(lambda: _process.set_test_target(before[1]))
