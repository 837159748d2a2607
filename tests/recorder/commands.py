"""The recorder's commands and their output."""

from __future__ import annotations

import lzma
import multiprocessing
import sys
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import chain, islice, zip_longest
from random import Random
from typing import Final, TypeVar

from dml_tile.checking import check
from dml_tile.descriptors.operator import OperatorDesc
from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.directml.crashes import CRASHES
from dml_tile.directml.enums import FeatureLevel
from dml_tile.findings import Finding
from dml_tile.readers.descriptors import read_source
from dml_tile.readers.sources import expanded
from tests.helpers.described_nodes import compiling, described_nodes, distinct_descs, static_partitions, varied
from tests.helpers.operator_figures import Compared, compared, figures, shortfalls, tally
from tests.helpers.played_lives import Life
from tests.helpers.recorded_answers import text_of
from tests.recorder.compare import BATCH, Batch, Disagreement, ask_runtime, batches, disagreements, smallest
from tests.recorder.crashes import crashing_lines
from tests.recorder.draws import draw
from tests.recorder.graph_draws import draw_graph
from tests.recorder.life_draws import draw_life
from tests.recorder.operator_draws import draw as draw_operators
from tests.recorder.operator_draws import sweep
from tests.recorder.operator_graphs import draw_operator_graph
from tests.recorder.operator_limits import LIMITS
from tests.recorder.operators import answered_operators
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


def _draw_any_graph(seed: str) -> Life:
    """The life that compiles a graph of tiles, or one in four times of any operators."""
    return (draw_operator_graph if Random(seed).random() < 0.25 else draw_graph)(seed)


DRAWN: Final = {"lives": draw_life, "graphs": _draw_any_graph}


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


def operators(releases: Sequence[Release], options: Namespace) -> int:
    """Compare the answers to random descriptors of all operators, or to a sweep, and show figures by kind of fault."""
    is_exact = options.sweep or options.limits
    code = 0
    with ProcessPoolExecutor(options.workers, multiprocessing.get_context("fork")) as pool:
        for level in (release.operator_level for release in releases):
            count = sum(1 for _ in sweep(level)) if options.sweep else options.count
            work = partial(_compared_operators, level, options, count)
            counts, differing = Counter[tuple[str, str]](), list[Compared]()
            for counted, found in pool.map(work, range(0, count, BATCH)):
                counts += counted
                differing += found
            by_kind = figures(counts)
            print(f"{level}: {count} descriptors, {len(differing)} differences")
            for kind, each in by_kind.items():
                if each.refused or each.taken:
                    print(f"  {kind:20} {each}")
            for difference in differing[: options.show]:
                print(difference)
            missed = ["no differences"] * bool(differing) if is_exact else shortfalls(by_kind)
            print(f"  goals missed: {', '.join(missed) or 'none'}", flush=True)
            code |= bool(missed)
    return code


def _compared_operators(
    level: FeatureLevel, options: Namespace, count: int, start: int
) -> tuple[Counter[tuple[str, str]], list[Compared]]:
    kinds = LIMITS if options.limits else None
    drawn = draw_operators(min(BATCH, count - start), f"{options.seed} from {start}", level, kinds)
    rows = list(islice(sweep(level), start, start + BATCH) if options.sweep else drawn)
    found = list(compared(answered_operators(rows)))
    return sum(map(tally, found), Counter[tuple[str, str]]()), [each for each in found if not each.agrees]


def described(releases: Sequence[Release], options: Namespace) -> int:
    """Compare the answers to what ONNX Runtime's provider creates of onnx's node tests, and of random nodes.

    So are those to the graphs that it compiles of the tests' models.
    """
    rng, nodes = Random(options.seed), [*described_nodes()]
    nodes += [varied(rng.choice(nodes), rng) for _ in range(options.count)]
    descs = distinct_descs(nodes)
    print(f"{len(nodes)} nodes, {len(descs)} distinct descriptors")
    code = 0
    for release in releases:
        level = release.operator_level.short
        asked = [{"level": level, "desc": desc, "faults": []} for desc in descs]
        found = [*compared(answered_operators(asked))]
        differing = [each for each in found if not each.agrees]
        print(f"{level}: {figures(sum(map(tally, found), Counter()))['all']}, {len(differing)} differences")
        for difference in differing[: options.show]:
            print(difference)
        code |= bool(differing)
    lives = [compiling(graph) for graph in static_partitions()]
    for release in releases:
        if release.operator_level.short == release.level:  # the library of 5_0 answers as 5_1
            apart = differences(lives, release)
            print(f"{release.level}: {len(lives)} graphs, {len(apart)} differences")
            for each in apart[: options.show]:
                print(each)
            code |= bool(apart)
    return code


def crashes() -> int:
    """Write the table of fields at which DirectML ends the process; returns 1 if it is another than before."""
    before, after = CRASHES.read_text("utf-8"), "".join(f"{line}\n" for line in crashing_lines())
    CRASHES.write_text(after, "utf-8")
    print(f"{CRASHES.name}: {len(after.splitlines()) - 1} fields{', changed' if after != before else ''}")
    return int(after != before)


def ask(releases: Sequence[Release], files: Sequence[str]) -> int:
    """Show what each release says to the descriptors of files, beside the findings of ``check``."""
    code = 0
    for file in chain.from_iterable(map(expanded, files)):
        for part in read_source(file):
            if isinstance(part, Finding):
                print(f"{file}{part.text}", file=sys.stderr)
                code = 2
                continue
            if not part.is_operator:
                continue
            if not isinstance(part.desc, TileOperatorDesc | OperatorDesc):
                print(f"{file}{part.pointer}: {part.operator} cannot be asked about", file=sys.stderr)
                code = 2
                continue
            print(f"{file}{part.pointer}")
            for release in releases:
                (real,) = ask_runtime([part.desc], release, Adapter())
                findings = check(part.desc, release.operator_level)
                print(f"  {release.level}: DirectML {real.hresult}; check: {_said(findings)}")
    return code


def _said(findings: Sequence[Finding]) -> str:
    if not findings:
        return "accepted"
    return "; ".join(f"{finding.path}: {finding.message} [{finding.rule}]" for finding in findings)


def record(files: Sequence[str]) -> int:
    """Write recorded files anew, and say which of them are not the same as before; returns the exit code."""
    code = 0
    for name in files or list(RECORDED):
        path = DATA / name
        before, after = text_of(name), recorded(name)
        content = after.encode()
        path.write_bytes(lzma.compress(content) if path.suffix == ".xz" else content)
        changed = sum(old != new for old, new in zip_longest(before.splitlines(), after.splitlines()))
        print(f"{path.name}: {len(after.splitlines())} lines, {changed} of them changed")
        code = max(code, min(changed, 1))
    return code
