"""Fuzzes what reads bytes from strangers, each target in a process of its own: needs the extra ``fuzz``.

    python -m tests.fuzz --seconds 60

An input that breaks a target is kept in ``.fuzz/``, and the exit status is then 1. ``--target NAME FILE`` tries it
again.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from contextlib import redirect_stderr
from io import StringIO
from pathlib import Path
from typing import Final, NoReturn

import atheris

from tests.helpers.paths import ROOT

with redirect_stderr(StringIO()), atheris.instrument_imports(include=["dml_tile"]):  # in seconds, and so once
    from tests.fuzz.targets import TARGETS

FOUND: Final = ROOT / ".fuzz"

MAX_SECONDS_OF_AN_INPUT: Final = 25
MAX_MIB: Final = 2500
MAX_BYTES_OF_AN_INPUT: Final = 2**13
_RUNS: Final = re.compile(r"#(\d+)\s+DONE|stat::number_of_executed_units:\s+(\d+)")


def _run(name: str, *arguments: str) -> NoReturn:
    """Fuzz a target in this process, until it ends; the arguments are libFuzzer's."""
    target = TARGETS[name]
    atheris.Setup([sys.argv[0], *arguments], target.run, custom_mutator=target.mutate)
    atheris.Fuzz()
    os._exit(0)  # libFuzzer has ended this process before


def _fuzz(name: str, *arguments: str) -> tuple[int, str]:
    """Fuzz a target in a child process, in a folder of its own; return its status, and what it printed."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder, tempfile.TemporaryFile() as log:
        child = os.fork()
        if child == 0:
            os.chdir(folder)
            for stream in 1, 2:
                os.dup2(log.fileno(), stream)
            _run(name, *arguments)
        _, status = os.waitpid(child, 0)
        log.seek(0)
        return os.waitstatus_to_exitcode(status), log.read().decode(errors="replace")


def _fuzz_for(name: str, seconds: int, seed: int) -> tuple[int, bool]:
    """Fuzz a target, beginning with its seeds; return how many inputs it was given, and whether all went well."""
    with tempfile.TemporaryDirectory(prefix="corpus-") as corpus:
        for number, content in enumerate(TARGETS[name].seeds()):
            Path(corpus, str(number)).write_bytes(content)
        status, printed = _fuzz(
            name,
            f"-max_total_time={seconds}",
            f"-seed={seed}",
            f"-timeout={MAX_SECONDS_OF_AN_INPUT}",
            f"-rss_limit_mb={MAX_MIB}",
            f"-max_len={MAX_BYTES_OF_AN_INPUT}",
            f"-artifact_prefix={FOUND}/{name}-",
            "-print_final_stats=1",
            corpus,
        )
    if status:
        print(printed[-6000:])
    return max((int(count or other) for count, other in _RUNS.findall(printed)), default=0), status == 0


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=int, default=60, help="of all targets together")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--target", choices=TARGETS, action="append", help="only these")
    options.add_argument("file", nargs="?", type=Path, help="an input to try, of the one target")
    given = options.parse_args()
    names = given.target or [*TARGETS]
    os.environ |= {"PYTHONPATH": str(ROOT), "DML_TILE_TARGET": "6_4"}
    FOUND.mkdir(exist_ok=True)
    if given.file:
        status, printed = _fuzz(names[0], str(given.file.resolve()))
        print(printed)
        return status
    total = broken = 0
    for name in names:
        inputs, is_fine = _fuzz_for(name, max(1, given.seconds // len(names)), given.seed)
        print(f"{name}: {inputs} inputs, {'nothing found' if is_fine else f'see {FOUND.name}/{name}-*'}", flush=True)
        total, broken = total + inputs, broken + (not is_fine)
    print(f"{total} inputs, {broken} of {len(names)} targets broken")
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
