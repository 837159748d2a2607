"""The processor time and the memory that a command takes."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

_PROGRAM: Final = """
import os
from pathlib import Path
from dml_tile.cli.app import main
try:
    main()
finally:
    times = os.times()
    (peak,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM")]
    Path("cost").write_text(f"{times.user + times.system} {int(peak.split()[1]) * 1024}")
"""

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
    """Run the command line in a process of its own; elsewhere than on Linux, skip the test."""
    if sys.platform != "linux":
        pytest.skip("the peak of memory is read from /proc")
    command = [sys.executable, "-c", _PROGRAM, *arguments]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    seconds, peak_bytes = (folder / "cost").read_text().split()
    return Cost(done.returncode, done.stdout, float(seconds), int(peak_bytes))


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
