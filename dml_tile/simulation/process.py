"""The target of a process: shared by its threads, and read by its child processes at any time.

Child processes read it from a small file that they map, so that workers which are older than a change follow it too.

Imports the standard library alone: the pytest plugin sets the targets of tests in runs that never use the package.
"""

from __future__ import annotations

import atexit
import mmap
import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from threading import RLock, get_ident
from typing import TYPE_CHECKING, Any, Final, NamedTuple

try:
    import fcntl
except ImportError:  # Windows, which refuses to remove a file that a process has mapped
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from dml_tile.directml.targets import Target

TARGET_VARIABLE: Final = "DML_TILE_TARGET"
"""The environment variable that names the default target of a process; commands and the plugin take several."""
FILES_VARIABLE: Final = "DML_TILE_LEVEL_FILES"
"""Names the files of the processes above, the outermost first; it is set once."""

UNNAMED: Final = "?"
"""Stands for the target of a test that must name one and does not."""
COLLECTING: Final = "!"
"""Stands for the target while tests are collected that run at several targets, or must name one."""
EXCEPT: Final = "="
"""Begins a record of a level file that names no target: the variable decides, except by the value that follows."""
EXCEPTED: Final = 100
"""The characters of that value that are compared."""

_RECORD: Final = 128  # bytes: the longest spelling has 90, and the last byte says whether the record was read
_RECORDS: Final = 31
_PREFIX: Final = "dml_tile_level_"


class SharedTarget:
    """A mapped file that one process writes: a count of the changes, and a ring of records of the latest targets.

    Raises OSError, and ValueError for what is no such file.
    """

    def __init__(self, path: str, *, lock: bool = False) -> None:
        file = os.open(path, os.O_RDWR | getattr(os, "O_NONBLOCK", 0))  # a FIFO would wait for its writer
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise ValueError(f"{path} is no file")
            if lock and fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_SH)
            self._memory = mmap.mmap(file, _RECORD * (1 + _RECORDS))
        finally:
            os.close(file)  # the map has a copy of it, which keeps the lock
        self._changes = memoryview(self._memory)[:8].cast("Q")  # one word, which is never read half-written
        self._seen = (0, "")

    @classmethod
    def create(cls) -> tuple[SharedTarget, str]:
        """Return a new file and its path; remove those of processes that have ended."""
        for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
            _remove_stale(str(path))
        while True:
            with tempfile.NamedTemporaryFile(prefix=_PREFIX, delete=False) as file:
                file.write(bytes(_RECORD * (1 + _RECORDS)))
            made = cls(file.name, lock=True)
            if os.path.exists(file.name):  # noqa: PTH110 - else another process took it for a stale one before the lock
                return made, file.name

    def write(self, text: str) -> bool:
        """Add a record, and return whether another process has read the one before."""
        changes = self._changes[0] + 1
        last, start = (_RECORD * (1 + number % _RECORDS) for number in (changes - 1, changes))
        self._memory[start : start + _RECORD] = text.encode()[: _RECORD - 1].ljust(_RECORD, b"\0")
        self._changes[0] = changes
        return bool(self._memory[last + _RECORD - 1])

    def read(self) -> str:
        """Return the latest record, and mark it as read."""
        while (changes := self._changes[0]) != self._seen[0]:
            start = _RECORD * (1 + changes % _RECORDS)
            text = self._memory[start : start + _RECORD - 1].rstrip(b"\0").decode(errors="replace")
            self._memory[start + _RECORD - 1] = 1
            if self._changes[0] - changes < _RECORDS - 1:  # else the record may have been written anew meanwhile
                self._seen = changes, text
        return self._seen[1]


def _remove_stale(path: str) -> None:
    """Remove the level file of a process that has ended: nothing locks it, or, on Windows, nothing has it mapped."""
    with suppress(OSError):
        if fcntl is None:
            os.unlink(path)  # noqa: PTH108
            return
        file = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(path)  # noqa: PTH108 - a process that made it a moment ago locks it next, and looks for it then
        finally:
            os.close(file)


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
    excepted: str | None = None  # the value of TARGET_VARIABLE that does not decide, since it names several targets


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
        self.asked_by_children = 0
        """The number of records of the level file without a simulation that other processes have read."""
        self.plugin_managed: frozenset[object] = frozenset()
        """The functions and the class of the running test, whose decorators do nothing: the plugin sets the target."""
        self.unused: dict[Any, None] = {}  # the simulations that the test made, and neither entered nor decorated with
        self.test_errors: list[str] = []  # the errors of the test that count also where its code hides them
        self.unread = [path for path in reversed(os.environ.get(FILES_VARIABLE, "").split(os.pathsep)) if path]
        self.files_above: list[SharedTarget] = []
        """The files of the processes above, the innermost first; those of ``unread`` come last."""
        self._own: SharedTarget | None = None
        self._told_a_simulation = False
        self._files = ""  # the value of FILES_VARIABLE for child processes, once there is a file
        self._must_publish = False  # a forked process, once something holds in it

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

    def publish(self) -> None:
        """Let child processes that start from now on follow the target."""
        with self.lock:
            if self._files:
                return
            try:
                self._own, path = SharedTarget.create()
                atexit.register(_remove, path, os.getpid())
            except OSError as error:  # child processes cannot read this, and say so
                path = f"(no file could be made: {error})".replace(os.pathsep, "")
            self._files = os.pathsep.join(filter(None, [os.environ.get(FILES_VARIABLE), path]))
            self._tell_children()

    def _tell_children(self) -> None:
        with self.lock:
            if self._must_publish:
                self._must_publish = False
                self.publish()
            if self._own is not None:
                target, test = self.simulated or self.test.target, self.test
                excepted = f"{EXCEPT}{test.excepted}" if test.excepted is not None else ""
                was_read = self._own.write(target.spelling if target else test.refusal or excepted)
                self.asked_by_children += was_read and not self._told_a_simulation
                self._told_a_simulation = self.simulated is not None
            if self._files and os.environ.get(FILES_VARIABLE) != self._files:  # a test may restore the environment
                os.environ[FILES_VARIABLE] = self._files

    def open_files(self) -> list[SharedTarget]:
        """Open the files of the processes above. Raises OSError and ValueError."""
        with self.lock:
            self.files_above += [SharedTarget(path) for path in self.unread]
            self.unread = []
            return self.files_above

    def begin_in_child(self) -> None:
        """Follow the process that forked this one, whose simulations and test are not this one's."""
        self.lock = RLock()
        if self._own is not None:
            self.files_above.insert(0, self._own)
        elif self._files:
            self.unread.insert(0, self._files.rpartition(os.pathsep)[2])
        self._must_publish = bool(self._files)
        self._own, self._files = None, ""
        self.test, self.open, self.target_requests = RunningTest(self.test.number), [], None
        self.innermost = self.simulated = None
        CONTEXT.set(())


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


def _remove(path: str, owner: int) -> None:
    with suppress(OSError):  # Windows keeps a file that is mapped
        if os.getpid() == owner:
            os.unlink(path)  # noqa: PTH108
