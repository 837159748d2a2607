"""Samples mutants of the package, and tells which of them no test notices.

    coverage run --rcfile=tests/mutants/coverage.toml -m pytest -n auto -m "long or not long"
    coverage combine --rcfile=tests/mutants/coverage.toml
    python -m tests.mutants --count 500 --seed 1

The first two record which test runs which line. Exits with 1 if fewer than 95 % of the mutants are killed, not counting
those that ``tests/data/surviving_mutants.json`` says are equivalent, or change the time only.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.mutants.coverage_map import CoverageMap
from tests.mutants.mutated_copy import MutatedCopy
from tests.mutants.mutations import Mutant, mutants_of

ROOT: Final = Path(__file__).resolve().parents[2]
MUTATED: Final = (
    "rules",
    "geometry",
    "execution",
    "lowering",
    "device",
    "dialects",
    "targets.py",
    "descriptors.py",
)
REASONS: Final = ROOT / "tests" / "data" / "surviving_mutants.json"
ENOUGH: Final = 0.95

_ROUNDS: Final = ((5, 30), (150, 300))
"""How many of a mutant's tests run, and for how many seconds at most: the most special ones, then the others.

The seconds are processor time; a mutant that takes longer is taken for one that never ends.
"""


@dataclass(frozen=True, slots=True)
class Survivor:
    """A mutant that no test noticed, by the line before and after the change."""

    file: str
    before: str
    after: str


def _all_mutants() -> Iterator[Mutant]:
    for name in MUTATED:
        path = ROOT / "dml_tile" / name
        for file in [path] if path.is_file() else sorted(path.rglob("*.py")):
            yield from mutants_of(file.relative_to(ROOT).as_posix(), file.read_bytes())


def _reasons() -> dict[Survivor, str]:
    rows: list[dict[str, Any]] = json.loads(REASONS.read_text())
    return {Survivor(row["file"], row["before"], row["after"]): row["reason"] for row in rows}


def _survives(file: str, text: bytes, tests: list[str], copy: MutatedCopy) -> bool:
    start = 0
    for end, seconds in _ROUNDS:
        if tests[start:end] and copy.is_killed(file, text, tests[start:end], seconds):
            return False
        start = end
    return True


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--count", type=int, default=500)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--coverage", type=Path, default=ROOT / ".coverage", help="the recorded coverage")
    options.add_argument("--part", default="1/1", help="2/5: the second of five parts of the sample")
    given = options.parse_args()
    part, parts = map(int, given.part.split("/"))
    mutants = [*_all_mutants()]
    sample = random.Random(given.seed).sample(mutants, min(given.count, len(mutants)))[part - 1 :: parts]
    reasons = _reasons()
    survivors: list[Survivor] = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, MutatedCopy(ROOT, Path(folder)) as copy:
        tests = CoverageMap(given.coverage, copy.collected())
        for number, mutant in enumerate(sample, 1):
            text = (ROOT / mutant.file).read_bytes()
            found = Survivor(mutant.file, *mutant.described(text))
            started = time.monotonic()
            chosen = tests.tests_of(mutant.file, mutant.line, mutant.last_line)
            if number == 1 and not _survives(mutant.file, text, chosen, copy):
                sys.exit("the tests fail without any mutant")
            survives = _survives(mutant.file, mutant.applied(text), chosen, copy)
            if survives:
                survivors.append(found)
            word = "killed" if not survives else "explained" if found in reasons else "SURVIVED"
            seconds = time.monotonic() - started
            print(
                f"{number} {word} {seconds:.1f} s {mutant.file}:{mutant.line} {found.before} -> {found.after}",
                flush=True,
            )
    killed = len(sample) - len(survivors)
    unexplained = [survivor for survivor in survivors if survivor not in reasons]
    explained = len(survivors) - len(unexplained)
    score = killed / max(1, len(sample) - explained)
    print(f"{killed} of {len(sample)} mutants killed, {explained} explained; {score:.1%} of the others are killed")
    return int(score < ENOUGH)


if __name__ == "__main__":
    sys.exit(main())
