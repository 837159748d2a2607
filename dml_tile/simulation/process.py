"""The target of a process: shared by its threads, and read by its child processes at any time.

Child processes read it from a small file that they map, so that workers which are older than a change follow it too.

Imports the standard library alone: the pytest plugin sets the targets of tests in runs that never use the package.
"""

from __future__ import annotations

import atexit
import mmap
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import count
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from dml_tile.directml.targets import Target

VARIABLE: Final = "DML_TILE_TARGET"
"""The environment variable that names the default target of a process; commands and the plugin take several."""
FILES_VARIABLE: Final = "DML_TILE_LEVEL_FILES"
"""Names the files of the processes above, the outermost first; it is set once."""

UNNAMED: Final = "?"  # stands for the target of a strict test that names none

_RECORD: Final = 128  # bytes, for a target's spelling; the longest has 90
_RECORDS: Final = 31


class LevelFile:
    """A mapped file that one process writes: a count of the changes, and a ring of the latest targets' spellings."""

    def __init__(self, path: str, access: int = mmap.ACCESS_READ) -> None:
        with open(path, "rb" if access == mmap.ACCESS_READ else "r+b") as file:  # noqa: PTH123
            self._memory = mmap.mmap(file.fileno(), _RECORD * (1 + _RECORDS), access=access)
        self._changes = memoryview(self._memory)[:8].cast("Q")  # one word, which is never read half-written
        self._seen = (0, "")

    def write(self, spelling: str) -> None:
        changes = self._changes[0] + 1
        start = _RECORD * (1 + changes % _RECORDS)
        self._memory[start : start + _RECORD] = spelling.encode().ljust(_RECORD, b"\0")
        self._changes[0] = changes

    def read(self) -> str:
        """Return the latest spelling; empty if no target is named."""
        while (changes := self._changes[0]) != self._seen[0]:
            start = _RECORD * (1 + changes % _RECORDS)
            spelling = self._memory[start : start + _RECORD].rstrip(b"\0").decode()
            if self._changes[0] - changes < _RECORDS - 1:  # else the record may have been written anew meanwhile
                self._seen = changes, spelling
        return self._seen[1]


@dataclass(eq=False, slots=True)
class Entered:
    """A simulation that was entered; contexts may refer to it after it has ended."""

    owner: Any
    test: int  # the number of the test, or of the wide fixture, that entered it; 0 for others
    is_open: bool = True


class RunningTest(NamedTuple):
    """A test that runs, or a fixture that outlives one and is set up or torn down."""

    number: int = 0
    target: Target | None = None
    is_strict: bool = False  # it must name a target, and does not


class Process:
    """The simulations and the test of this process."""

    def __init__(self) -> None:
        self.lock = RLock()
        self.open: list[Entered] = []
        """The simulations that have not ended, of this process and of contexts, in the order of their beginnings."""
        self.simulated: Target | None = None  # by the innermost simulation that is process-wide
        self.test = RunningTest()
        self.numbers = count(1)
        self.is_watched = False  # by pytest's plugin
        self.asked: list[Target] | None = None
        """The answers to those who asked for the target where nothing is simulated, while they are recorded."""
        self.spared: frozenset[object] = frozenset()
        """The functions and the class of the running test, whose decorators do nothing: the plugin sets the target."""
        self.unused: dict[Any, None] = {}  # the simulations that the test made, and neither entered nor decorated with
        self.complaints: list[str] = []  # the errors of the test that count also where its code hides them
        self.unread = [path for path in reversed(os.environ.get(FILES_VARIABLE, "").split(os.pathsep)) if path]
        self.files_above: list[LevelFile] = []
        """The files of the processes above, the innermost first; those of ``unread`` come last."""
        self._own: LevelFile | None = None
        self._files = ""  # the value of FILES_VARIABLE for child processes, once there is a file

    def change(self, entered: Entered, *, is_open: bool) -> None:
        """Begin or end a simulation, in this context and, if it is process-wide, in the process."""
        others = tuple(other for other in CONTEXT.get() if other is not entered)
        CONTEXT.set((*others, entered) if is_open else others)
        with self.lock:
            entered.is_open = is_open
            self.open = [other for other in self.open if other is not entered] + [entered] * is_open
            wide = [other.owner.target for other in self.open if other.owner.scope == "process"]
            self.simulated = wide[-1] if wide else None
            self._tell_children()

    @contextmanager
    def run(self, test: RunningTest) -> Iterator[None]:
        """Make a test that of the process."""
        before, self.test = self.test, test
        self._tell_children()
        try:
            yield
        finally:
            self.test = before
            self._tell_children()

    def publish(self) -> None:
        """Let child processes that start from now on follow the target."""
        with self.lock:
            if self._files:
                return
            try:
                with tempfile.NamedTemporaryFile(prefix="dml_tile_level_", delete=False) as file:
                    file.write(bytes(_RECORD * (1 + _RECORDS)))
                self._own, path = LevelFile(file.name, mmap.ACCESS_WRITE), file.name
                atexit.register(_remove, path, os.getpid())
            except OSError as error:  # child processes cannot read this, and say so
                path = f"(no file could be made: {error})".replace(os.pathsep, "")
            self._files = os.pathsep.join(filter(None, [os.environ.get(FILES_VARIABLE), path]))
            self._tell_children()

    def _tell_children(self) -> None:
        with self.lock:
            if self._own is not None:
                target = self.simulated or self.test.target
                self._own.write(target.spelling if target is not None else UNNAMED if self.test.is_strict else "")
            if self._files and os.environ.get(FILES_VARIABLE) != self._files:  # a test may restore the environment
                os.environ[FILES_VARIABLE] = self._files

    def open_files(self) -> list[LevelFile]:
        """Open the files of the processes above. Raises OSError and ValueError."""
        with self.lock:
            self.files_above += [LevelFile(path) for path in self.unread]
            self.unread = []
            return self.files_above

    def begin_in_child(self) -> None:
        """Follow the process that forked this one, whose simulations and test are not this one's."""
        self.lock = RLock()
        if self._own is not None:
            self.files_above.insert(0, self._own)
        elif self._files:
            self.unread.insert(0, self._files.rpartition(os.pathsep)[2])
        self._own, self._files = None, ""
        self.test, self.open, self.simulated, self.asked = RunningTest(self.test.number), [], None, None
        CONTEXT.set(())


CONTEXT: Final[ContextVar[tuple[Entered, ...]]] = ContextVar("dml_tile_simulations", default=())
PROCESS: Final = Process()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=PROCESS.begin_in_child)


def caller() -> str:
    """Return the place of the latest call from outside the package."""
    frame: Any = sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("dml_tile."):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _remove(path: str, owner: int) -> None:
    with suppress(OSError):  # Windows keeps a file that is mapped
        if os.getpid() == owner:
            os.unlink(path)  # noqa: PTH108
