"""Fuzzes what reads bytes from strangers, each target in a process of its own: needs the extra ``fuzz``.

    python -m tests.fuzz --seconds 60

An input that breaks a target is kept in ``.fuzz/``, and the exit status is then 1. ``--target NAME FILE`` tries it
again.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.fuzz.seeds import ROOT

NAMES: Final = (
    *("documents", "uses", "dxdispatch", "onnx", "ir", "tflite", "c_structs", "settings", "baselines", "npy", "names"),
    *("folders", "api"),
)
FOUND: Final = ROOT / ".fuzz"

MAX_SECONDS_OF_AN_INPUT: Final = 25
MAX_MIB: Final = 2500
MAX_BYTES_OF_AN_INPUT: Final = 2**13
_RUNS: Final = re.compile(r"#(\d+)\s+DONE|stat::number_of_executed_units:\s+(\d+)")


def _command(name: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "tests.fuzz.one_target", name, *arguments]


def _fuzz(name: str, seconds: int, seed: int) -> tuple[int, bool]:
    """Fuzz a target; returns how many inputs it was given, and whether all went well."""
    FOUND.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        done = subprocess.run(
            _command(
                name,
                f"-max_total_time={seconds}",
                f"-seed={seed}",
                f"-timeout={MAX_SECONDS_OF_AN_INPUT}",
                f"-rss_limit_mb={MAX_MIB}",
                f"-max_len={MAX_BYTES_OF_AN_INPUT}",
                f"-artifact_prefix={FOUND}/{name}-",
                "-print_final_stats=1",
            ),
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(ROOT), "DML_TILE_TARGET": "6_4"},
            capture_output=True,
            check=False,
        )
    told = done.stderr.decode(errors="replace") + done.stdout.decode(errors="replace")
    counts = [int(count or other) for count, other in _RUNS.findall(told)]
    if done.returncode:
        print(told[-6000:])
    return max(counts, default=0), done.returncode == 0


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=int, default=60, help="of all targets together")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--target", choices=NAMES, action="append", help="only these")
    options.add_argument("file", nargs="?", type=Path, help="an input to try, of the one target")
    given = options.parse_args()
    names = given.target or NAMES
    if given.file:
        with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
            command = _command(names[0], str(given.file.resolve()))
            return subprocess.run(
                command, cwd=folder, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=False
            ).returncode
    total = broken = 0
    for name in names:
        inputs, is_fine = _fuzz(name, max(1, given.seconds // len(names)), given.seed)
        print(f"{name}: {inputs} inputs, {'nothing found' if is_fine else f'see {FOUND.name}/{name}-*'}", flush=True)
        total, broken = total + inputs, broken + (not is_fine)
    print(f"{total} inputs, {broken} of {len(names)} targets broken")
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
