"""The recorder's commands and their output."""

from __future__ import annotations

import multiprocessing
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import chain, zip_longest
from typing import Final, TypeVar

from dml_tile.descriptors.tile import OperatorDesc, TileOperatorDesc
from dml_tile.errors import Problem
from dml_tile.findings import Finding
from dml_tile.readers.descriptors import read_source
from dml_tile.readers.sources import expanded
from dml_tile.rules.check import check
from tests.recorder.compare import Batch, Disagreement, ask_runtime, batches, disagreements, smallest
from tests.recorder.draws import draw
from tests.recorder.graph_draws import draw_graph
from tests.recorder.life_draws import draw_life
from tests.recorder.random_lives import LIVES_OF_A_WORKER as LIVES
from tests.recorder.random_lives import Difference, differences, shortest
from tests.recorder.record import DATA, RECORDED
from tests.recorder.record import record as recorded
from tests.recorder.releases import Release
from tests.recorder.runtime import Adapter
from tests.recorder.wheels import fetch as fetch_release

SECONDS_BETWEEN_LINES: Final = 30
"""Of a comparison's progress."""


def fetch(releases: Sequence[Release]) -> int:
    """Fetch what is not in the cache yet."""
    for release in releases:
        fetch_release(release)
        print(f"{release.level}: {release.library}")
    return 0


def compare(releases: Sequence[Release], options: Namespace) -> int:
    """Compare the answers to random descriptors, and show the first disagreements, shrunk."""
    made, work = batches(options.count, options.seed), partial(_compared, releases)
    return _compare("descriptors", work, made, lambda found: str(smallest(found)), releases, options)


def _compared(releases: Sequence[Release], batch: Batch) -> list[Disagreement]:
    return disagreements(list(draw(batch.size, batch.seed)), batch.adapter, releases)


DRAWN: Final = {"lives": draw_life, "graphs": draw_graph}


def lives(releases: Sequence[Release], options: Namespace) -> int:
    """Compare random lives of devices, or graphs that one compiles, and show the first that differ, shortened."""
    numbers = [range(first, min(first + LIVES, options.count)) for first in range(0, options.count, LIVES)]
    work = partial(_compared_lives, options.command, releases, options.seed)
    return _compare(options.command, work, numbers, lambda found: str(shortest(found)), releases, options)


def _compared_lives(noun: str, releases: Sequence[Release], seed: int, numbers: Sequence[int]) -> list[Difference]:
    drawn = [DRAWN[noun](f"{seed}:{number}") for number in numbers]
    return [found for release in releases for found in differences(drawn, release)]


Found = TypeVar("Found", Disagreement, Difference)
Questions = TypeVar("Questions")


def _compare(
    noun: str,
    work: Callable[[Questions], list[Found]],
    made: Sequence[Questions],
    shown: Callable[[Found], str],
    releases: Sequence[Release],
    options: Namespace,
) -> int:
    """Compare batches in processes, show the first disagreements, and count them; returns the exit code."""
    begun = printed = time.monotonic()
    found = list[Found]()
    with ProcessPoolExecutor(options.workers, multiprocessing.get_context("fork")) as pool:
        for number, disagreed in enumerate(pool.map(work, made), 1):
            found += disagreed
            if time.monotonic() - printed >= SECONDS_BETWEEN_LINES:
                printed = time.monotonic()
                done = f"{number} of {len(made)} batches, {len(found)} disagreements, {printed - begun:.0f} s"
                print(done, file=sys.stderr, flush=True)
    for disagreement in found[: options.show]:
        print(shown(disagreement), flush=True)
    for release in releases:
        total = sum(disagreement.release == release for disagreement in found)
        print(f"{release.level}: {options.count} {noun}, {total} disagreements")
    print(f"seed {options.seed}, {time.monotonic() - begun:.0f} s")
    return 1 if found else 0


def ask(releases: Sequence[Release], files: Sequence[str]) -> int:
    """Show what each release says to the descriptors of files, beside the findings of ``check``."""
    code = 0
    for file in chain.from_iterable(map(expanded, files)):
        for part in read_source(file):
            if isinstance(part, Problem) or not isinstance(part.desc, TileOperatorDesc | OperatorDesc):
                why = part.message if isinstance(part, Problem) else f"{part.other} is not a tile"
                print(f"{file}{part.pointer}: {why}", file=sys.stderr)
                code = 2
                continue
            print(f"{file}{part.pointer}")
            for release in releases:
                (real,) = ask_runtime([part.desc], release, Adapter())
                findings = check(part.desc, release.level)
                print(f"  {release.level}: DirectML {real.hresult}; check: {_said(findings)}")
    return code


def _said(findings: Sequence[Finding]) -> str:
    if not findings:
        return "accepted"
    return "; ".join(f"{finding.path}: {finding.message} [{finding.rule}]" for finding in findings)


def record(files: Sequence[str]) -> int:
    """Write recorded files anew, and say which of them are not the same as before."""
    for name in files or list(RECORDED):
        path = DATA / name
        before, after = path.read_text(encoding="utf-8"), recorded(name)
        path.write_text(after, encoding="utf-8", newline="\n")
        changed = sum(old != new for old, new in zip_longest(before.splitlines(), after.splitlines()))
        print(f"{path.name}: {len(after.splitlines())} lines, {changed} of them changed")
    return 0
