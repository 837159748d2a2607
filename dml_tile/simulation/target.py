"""The target that is meant where none is named.

The first of these decides: the innermost simulation; the running test, as the pytest plugin sets it; the variable
DML_TILE_TARGET, as it was when the package was imported; DEFAULT_TARGET.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from functools import lru_cache, partial, wraps
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, Final, Literal, TypeVar

from dml_tile.directml.targets import DEFAULT_TARGET, Target, TargetLike
from dml_tile.errors import TargetError
from dml_tile.simulation.process import CONTEXT, PROCESS, TARGET_VARIABLE, OpenSimulation, caller, opener

Decorated = TypeVar("Decorated")


def current_target() -> Target:
    """Return the default target, which ``check``, ``tile``, ``Device`` and others use.

    Raises ValueError where the variable DML_TILE_TARGET decides, and names no target, or several; TargetError in a test
    that must name its target and does not.

        >>> with simulate("windows-10-22h2"):
        ...     print(current_target())
        windows-10-22h2 (2_0)
    """
    if (simulated := _simulated() if CONTEXT.get() else PROCESS.simulated) is not None:
        return simulated
    current = unsimulated_target()
    if PROCESS.target_requests is not None:
        PROCESS.target_requests.append(current)
    return current


def resolve(target: TargetLike | None) -> Target:
    """Return the target meant by an argument; None means the current one. Raises what ``current_target`` raises."""
    if target is None:
        return current_target()
    return target if isinstance(target, Target) else Target.parse(target)


def unsimulated_target() -> Target:
    """Return the default target where nothing is simulated. Raises what ``current_target`` raises."""
    if PROCESS.test.target is not None:
        return PROCESS.test.target
    if PROCESS.test.refusal:
        raise test_error(f"the target is asked for in {PROCESS.test.refusal} (asked at {caller()})")
    try:
        named = _named_outside()
    except ValueError as error:
        raise ValueError(f"{TARGET_VARIABLE}: {error}") from None
    if not named:
        return DEFAULT_TARGET
    if len(named) > 1:
        names = ", ".join(target.name for target in named)
        message = f"{TARGET_VARIABLE} names {len(named)} targets ({names}); one is needed here: name it as the target"
        raise ValueError(message)
    return named[0]


def named_targets() -> tuple[Target, ...]:
    """Return the current target, or those that the variable names; empty if nothing does.

    Raises ValueError where the variable decides, without its name, and TargetError as the others do.
    """
    target = _simulated() or PROCESS.test.target
    return _named_outside() if target is None else (target,)


def _named_outside() -> tuple[Target, ...]:
    """Return the targets that the variable names; empty if it is not set, or does not decide."""
    if PROCESS.outside is None or PROCESS.test.default is not None:
        return ()
    return targets_in(PROCESS.outside)


@lru_cache(maxsize=64)
def targets_in(text: str) -> tuple[Target, ...]:
    """Return the targets in a text, between commas or white space, each once. Raises ValueError."""
    return tuple(dict.fromkeys(Target.parse(name) for name in re.split(r"[\s,]+", text) if name))


def _simulated() -> Target | None:
    """Return the target of the innermost simulation: of the context's own one, or of one of the process within it."""
    for entered in reversed(CONTEXT.get()):
        if entered.owner.scope == "process":
            if entered.is_open:
                _require_innermost(entered)
                break
        elif entered.is_open or entered.test == PROCESS.test.number:  # a task keeps its target in its test
            return entered.owner.target  # type: ignore[no-any-return]
    return PROCESS.simulated


def _require_innermost(entered: OpenSimulation) -> None:
    """Raise TargetError if this thread or task has entered a simulation, and another has entered one within it."""
    inner = PROCESS.innermost
    if inner is None or inner in CONTEXT.get() or inner.owner.target.simulates_as(entered.owner.target):
        return
    if entered.opener == opener():  # else the context was copied from one that entered it
        raise test_error(
            f"{caller()}: the target is asked for within {entered.owner!r} of {entered.owner.where}, while another "
            f"thread or task is within {inner.owner!r} of {inner.owner.where}; {_AT_ONCE}"
        )


_AT_ONCE: Final = (
    "code that runs at once, in threads or tasks, and at several targets, needs simulate(..., scope='context')"
)


def test_error(message: str) -> TargetError:
    """Return an error that fails the running test, also where its code hides it."""
    PROCESS.test_errors.append(message)
    return TargetError(message)


class Origin:
    """The test that made an object at the current target; a test at another target must not use it.

    ``what`` is the object's name in the message, ``named`` the target that its maker was given.
    """

    def __init__(self, what: str, named: TargetLike | None, target: Target) -> None:
        latest = PROCESS.simulated or PROCESS.test.target or DEFAULT_TARGET
        self._where = caller() if named is None or named is latest else ""  # else it is for the target that was named
        self._what, self._target, self._test = what, target, PROCESS.test.number

    def require_test(self) -> None:
        """Raise TargetError in another test, of another target, than the one in which the object was made."""
        if not self._where or PROCESS.test.number in (0, self._test):
            return
        current = current_target()
        if not current.simulates_as(self._target):
            raise test_error(
                f"a {self._what} for {self._target.label}, made at {self._where} in another test or before all, is "
                f"used in a test for {current.label}: make it in the test, or name its target"
            )


def origin_of(what: str, named: TargetLike | None, target: Target) -> Origin | None:
    """Return the origin of an object that is made in a run of pytest; None elsewhere, where nothing asks for it."""
    return Origin(what, named, target) if PROCESS.is_watched else None


def simulate(target: TargetLike, *, scope: Literal["process", "context"] = "process") -> Simulation:
    """Make a target the current one: in a ``with`` block, or in what it decorates.

    It holds in the whole process, in all threads and tasks, and in the processes that it starts meanwhile: the variable
    DML_TILE_TARGET names it. The innermost one counts; they end in the reverse order of their beginnings, else
    TargetError is raised. With the scope ``"context"``, it holds in this thread, and in asyncio's tasks that are made
    within, so that code which runs at once can have several targets. Raises ValueError for an unknown target.

        >>> with simulate("windows-10-22h2") as target:
        ...     print(target.feature_level, current_target().name)
        2_0 windows-10-22h2
    """
    return Simulation(target, scope=scope)


class Simulation:
    """A simulation of a target, as ``simulate`` makes it: a context manager, and a decorator.

    It can be entered any number of times, also within itself. It decorates functions, coroutine functions, test classes
    and TestCases. For a test that pytest collects, it stands for ``@pytest.mark.dml(targets=[...])``.
    """

    def __init__(self, target: TargetLike, *, scope: Literal["process", "context"] = "process") -> None:
        if scope not in ("process", "context"):
            raise ValueError(f"scope is {scope!r}; expected 'process' or 'context'")
        self.target = copy(Target.parse(target))  # an object of its own, by which Origin knows it
        self.scope = scope
        self.where = caller()
        if PROCESS.is_watched:
            PROCESS.unused[self] = None

    def __repr__(self) -> str:
        return f"simulate({self.target.name!r}{', scope=' + repr(self.scope) if self.scope == 'context' else ''})"

    def __enter__(self) -> Target:
        PROCESS.unused.pop(self, None)
        entered = OpenSimulation(self, PROCESS.test.number, opener())
        PROCESS.change(entered, is_open=True)
        return self.target

    def __exit__(self, *_: object) -> None:
        with PROCESS.lock:
            own = [entered for entered in PROCESS.open if entered.owner is self]
            here = [entered for entered in own if entered in CONTEXT.get()]
            for entered in (here or own)[-1:]:  # none, if the test that left it open has ended
                later = [other.owner for other in PROCESS.open[PROCESS.open.index(entered) + 1 :]]
                PROCESS.change(entered, is_open=False)
                for other in later:
                    if self.scope == other.scope == "process" and not self.target.simulates_as(other.target):
                        raise TargetError(f"{self!r} ends while {other!r}, which began later, is open: {_AT_ONCE}")

    def mark(self, decorated: Any) -> None:
        """Let pytest's plugin take a function or a class for a marked one."""
        if PROCESS.is_watched:
            sys.modules["pytest"].mark.dml(targets=[self.target], simulation=self)(decorated)

    def _in_call(self, wrapper: object, owner: object = None, *_: object) -> AbstractContextManager[object]:
        """Return the block in which a decorated function runs: an empty one if the plugin sets the test's target."""
        cls = owner if isinstance(owner, type) else type(owner)
        return nullcontext() if wrapper in PROCESS.plugin_managed or cls in PROCESS.plugin_managed else self

    def __call__(self, decorated: Decorated) -> Decorated:
        """Decorate a function, a coroutine function or a class. Raises TypeError for anything else."""
        PROCESS.unused.pop(self, None)
        made: Any = decorated
        if isinstance(made, type):
            made.__dml_simulation__ = self  # type: ignore[attr-defined]
            _decorate_class(made)
            _decorate_subclasses(made)
            self.mark(made)
        elif inspect.isgeneratorfunction(made) or inspect.isasyncgenfunction(made):
            raise TypeError(
                f"simulate cannot decorate the generator function {made.__name__}, which runs after the call has "
                f"returned; write `with simulate({self.target.name!r}):` in it"
            )
        elif isinstance(made, FunctionType | MethodType | BuiltinFunctionType | partial):
            made = _decorated_function(made, self)
            made.__dml_simulation__ = getattr(decorated, "__dml_simulation__", self)  # the innermost counts
            if made.__name__.startswith("test"):  # pytest refuses markers on fixtures
                self.mark(made)
        else:
            raise TypeError(f"simulate decorates functions and classes, not a {type(made).__name__}")
        return made  # type: ignore[no-any-return]


def _decorated_function(function: Callable[..., Any], simulation: Simulation) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(function):

        @wraps(function)
        async def awaited(*arguments: Any, **options: Any) -> Any:
            with simulation._in_call(awaited, *arguments):
                return await function(*arguments, **options)

        return awaited

    @wraps(function)
    def called(*arguments: Any, **options: Any) -> Any:
        with simulation._in_call(called, *arguments):
            return function(*arguments, **options)

    return called


def _decorate_class(decorated: Any) -> None:
    """Simulate in those members of a class that are tests, or that unittest calls of a TestCase."""
    unittest = sys.modules.get("unittest")
    is_case = unittest is not None and issubclass(decorated, unittest.TestCase)
    tests = [name for name in dir(decorated) if name.startswith("test")]
    for name in ("run", "setUpClass", "tearDownClass") if is_case else tests:
        method = inspect.getattr_static(decorated, name, None)
        function = method.__func__ if isinstance(method, classmethod | staticmethod) else method
        if inspect.isfunction(function):
            inner = getattr(function, "__dml_undecorated__", function)  # so that a subclass's own decorator wins
            wrapper: Any = _decorated_function(inner, decorated.__dml_simulation__)
            wrapper.__dml_undecorated__ = inner
            setattr(decorated, name, wrapper if function is method else type(method)(wrapper))


def _decorate_subclasses(decorated: Any) -> None:
    own = decorated.__dict__.get("__init_subclass__")

    def decorate(cls: type, /, **options: Any) -> None:
        own.__func__(cls, **options) if own else super(decorated, cls).__init_subclass__(**options)
        _decorate_class(cls)

    decorated.__init_subclass__ = classmethod(decorate)
