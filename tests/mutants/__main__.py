"""Samples mutants of the package, and tells which of them no test notices.

    coverage run --rcfile=tests/mutants/coverage.toml -m pytest -n auto --junitxml=.mutants.xml
    coverage combine --rcfile=tests/mutants/coverage.toml
    python -m tests.mutants --count 500 --seed 1

The first two record which test runs which line, and how long each takes. Exits with 1 if fewer than 95 % of the mutants
are killed, not counting those that ``tests/data/surviving_mutants.json`` says are equivalent, or change the time only.
``--only dml_tile/directml/targets.py:18`` tries the sample's mutants of a line again, for example with a new test, which
needs no new recording where it stands in a file that has others.
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

_WITHIN: Final = 60.0
"""A mutant's tests took at most so many seconds together when they were recorded, most of which is the recording."""

_FIRST: Final = 5
"""How many of a mutant's tests run first, so that the modules of the others are not imported where these are enough."""

_SPARE: Final = 6
"""A test that takes this many seconds of a processor longer than it took with its recording is taken not to end."""


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


class _Trial:
    """Tries mutants. A test that fails without one, too, has no say from then on."""

    def __init__(self, copy: MutatedCopy, coverage: CoverageMap) -> None:
        self._copy = copy
        self._coverage = coverage
        self._sound: set[str] = set()
        self._unsound: set[str] = set()

    def killer_of(self, mutant: Mutant, text: bytes) -> str | None:
        """The test that notices a mutant of a file's text; None if none does."""
        tests = self._coverage.tests_of(mutant.file, mutant.line, mutant.last_line, _WITHIN)
        rounds = [tests[:_FIRST], tests[_FIRST:]]
        while rounds:
            chosen = [test for test in rounds[0] if test not in self._unsound]
            killer = self._failing(mutant.file, mutant.applied(text), chosen) if chosen else None
            if killer is None:
                rounds.pop(0)
            elif self._is_sound(killer, mutant.file, text):
                return killer or "an import"
        return None

    def _is_sound(self, test: str, file: str, text: bytes) -> bool:
        if test and test not in self._sound:
            if self._failing(file, text, [test]) is not None:
                print(f"set aside, since it fails without a mutant: {test}", flush=True)
                self._unsound.add(test)
                return False
            self._sound.add(test)
        return True

    def _failing(self, file: str, text: bytes, tests: list[str]) -> str | None:
        return self._copy.failing(file, text, {test: _SPARE + self._coverage.seconds[test] for test in tests})


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--count", type=int, default=500)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--coverage", type=Path, default=ROOT / ".coverage", help="the recorded coverage")
    options.add_argument("--times", type=Path, default=ROOT / ".mutants.xml", help="how long the tests took")
    options.add_argument("--part", default="1/1", help="2/5: the second of five parts of the sample")
    options.add_argument("--only", action="append", help="FILE:LINE: the sample's mutants of this line")
    given = options.parse_args()
    part, parts = map(int, given.part.split("/"))
    mutants = [*_all_mutants()]
    sample = random.Random(given.seed).sample(mutants, min(given.count, len(mutants)))[part - 1 :: parts]
    if given.only:
        sample = [mutant for mutant in sample if f"{mutant.file}:{mutant.line}" in given.only]
    reasons = _reasons()
    survivors: list[Survivor] = []
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, MutatedCopy(ROOT, Path(folder)) as copy:
        trial = _Trial(copy, CoverageMap(given.coverage, given.times, copy.collected()))
        for number, mutant in enumerate(sample, 1):
            text = (ROOT / mutant.file).read_bytes()
            found = Survivor(mutant.file, *mutant.described(text))
            started = time.monotonic()
            killer = trial.killer_of(mutant, text)
            if killer is None:
                survivors.append(found)
            word = f"killed by {killer}" if killer else "explained" if found in reasons else "SURVIVED"
            seconds = time.monotonic() - started
            print(
                f"{number} {seconds:.1f} s {mutant.file}:{mutant.line} {found.before} -> {found.after}: {word}",
                flush=True,
            )
    killed = len(sample) - len(survivors)
    explained = sum(survivor in reasons for survivor in survivors)
    score = killed / max(1, len(sample) - explained)
    print(f"{killed} of {len(sample)} mutants killed, {explained} explained; {score:.1%} of the others are killed")
    return int(score < ENOUGH)


if __name__ == "__main__":
    sys.exit(main())
