"""The processor time and the memory that a command takes."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from tests.helpers.forks import server

SECONDS, SECONDS_PER_BYTE = 6.0, 2e-6
BYTES, BYTES_PER_BYTE = 160 * 2**20, 60
"""What starting a command takes at most, and what each byte of its inputs may add; docs/limits.md gives the latter."""

_PACE: Final = "import os; sum(i * i for i in range(10**7)); print(os.times().user)"
_PACE_SECONDS: Final = 0.8


@dataclass(frozen=True)
class Cost:
    """A finished command: its status, what it printed, its processor time in seconds and its peak memory in bytes."""

    status: int
    printed: bytes
    seconds: float
    peak_bytes: int

    def is_within(self, seconds: float) -> bool:
        """Return True if it took less than so many seconds of the machine where the bounds were set."""
        return self.seconds < seconds or self.seconds < seconds * _pace()


def cost_of(*arguments: str, folder: Path) -> Cost:
    """Run the command line in a process of its own; elsewhere than on Linux, skip the test.

    The memory is that of a command with its imports, the time that of the command alone: each process is forked from
    one that has imported the package.
    """
    if sys.platform != "linux":
        pytest.skip("memory is counted in Linux's units")
    from tests.helpers.fork_client import ended

    with tempfile.TemporaryFile() as printed, Path(os.devnull).open() as nothing:
        streams = nothing.fileno(), printed.fileno(), printed.fileno()
        end = ended(server(), ["-m", "dml_tile", *arguments], str(folder), streams)
        assert end
        status, seconds, kibibytes = end
        printed.seek(0)
        return Cost(status, printed.read(), seconds, kibibytes * 1024)


def grows_at_most(times: float, few: Callable[[], float], many: Callable[[], float], floor: float = 0) -> bool:
    """Return True if ``many`` takes at most so many times the seconds of ``few``, or of the ``floor`` where it is more.

    It is measured up to three times: what else the machine does makes either seem slower.
    """
    for _ in range(3):
        least, most = few(), many()
        if most < times * max(least, floor) or (floor and most < times * floor * _pace()):
            return True
    return False


@contextmanager
def at_most(peak_bytes: int) -> Iterator[None]:
    """Check that a block takes no more memory of Python and NumPy."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] <= peak_bytes
    finally:
        tracemalloc.stop()


def _pace() -> float:
    """Return how many times as long as on the machine where the bounds were set a computation takes now."""
    done = subprocess.run([sys.executable, "-c", _PACE], stdout=subprocess.PIPE, check=True)
    return float(done.stdout) / _PACE_SECONDS


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        cost = cost_of(
            *(str(Path(word).resolve()) if Path(word).exists() else word for word in sys.argv[1:]), folder=Path(made)
        )
    sys.stdout.write(f"status {cost.status}, {cost.seconds:.1f} s, {cost.peak_bytes / 2**20:.0f} MiB\n")
