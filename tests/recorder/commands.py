"""The recorder's commands and their output. Each returns the exit code."""

from __future__ import annotations

import lzma
import multiprocessing
import sys
import time
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
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
from tests.helpers.operator_figures import Compared, compared, figures, said, shortfalls, tally
from tests.helpers.played_lives import Life
from tests.helpers.recorded_answers import S_OK, text_of
from tests.recorder.compare import Disagreement, asked_again, disagreements
from tests.recorder.crashes import crashing_lines
from tests.recorder.draws import draw
from tests.recorder.edits import mended, passes
from tests.recorder.graph_draws import draw_graph
from tests.recorder.life_draws import draw_life
from tests.recorder.operator_draws import draw as draw_operators
from tests.recorder.operator_draws import sweep
from tests.recorder.operator_limits import LIMITS
from tests.recorder.random_lives import LIVES_OF_A_WORKER as LIVES
from tests.recorder.random_lives import Difference, differences, shortest
from tests.recorder.record import DATA, RECORDED
from tests.recorder.record import record as recorded
from tests.recorder.releases import Release
from tests.recorder.runtime import ADAPTERS, Row, answered_operators, ask_runtime
from tests.recorder.wheels import fetch as fetch_release

BATCH: Final = 4000
"""How many descriptors are drawn with a seed of their own."""
SHOWN: Final = 5
"""How many disagreements are shown."""
SECONDS_BETWEEN_LINES: Final = 30
"""Of a comparison's progress."""

Counts = Counter[tuple[str, str]]
Found = TypeVar("Found", Disagreement, Difference)
Result = TypeVar("Result")


def fetch(releases: Sequence[Release], options: Namespace) -> int:
    """Fetch the releases that are not in the cache yet, through pip, if their licence is MIT."""
    for release in releases:
        fetch_release(release)
        print(f"{release.level}: {release.library}")
    return 0


def compare(releases: Sequence[Release], options: Namespace) -> int:
    """Ask about random descriptors, and compare with the emulator."""
    return _compare("descriptors", partial(_compared, releases, options), BATCH, asked_again, releases, options)


def _compared(releases: Sequence[Release], options: Namespace, start: int) -> list[Disagreement]:
    """The disagreements on a batch; each batch has another adapter than the last."""
    descs = draw(min(BATCH, options.count - start), f"{options.seed} from {start}")
    return disagreements([*descs], ADAPTERS[start // BATCH % len(ADAPTERS)], releases)


def lives(releases: Sequence[Release], options: Namespace) -> int:
    """Make random calls of devices, and compare with the emulator."""
    return _compare("lives", partial(_compared_lives, draw_life, releases, options), LIVES, shortest, releases, options)


def graphs(releases: Sequence[Release], options: Namespace) -> int:
    """Compile random graphs, and compare with the emulator."""
    work = partial(_compared_lives, draw_graph, releases, options)
    return _compare("graphs", work, LIVES, shortest, releases, options)


def _compared_lives(
    drawn: Callable[[str], Life], releases: Sequence[Release], options: Namespace, start: int
) -> list[Difference]:
    numbers = range(start, min(start + LIVES, options.count))
    lives = [drawn(f"{options.seed}:{number}") for number in numbers]
    return [found for release in releases for found in differences(lives, release)]


def _compare(
    noun: str,
    work: Callable[[int], list[Found]],
    size: int,
    looked_at: Callable[[Found], Found],
    releases: Sequence[Release],
    options: Namespace,
) -> int:
    """Compare batches of this size, show the first disagreements, and count them."""
    begun = time.monotonic()
    found = list[Found]()
    for disagreed in _in_processes(work, range(0, options.count, size), options):
        found += disagreed
    for disagreement in found[:SHOWN]:
        print(looked_at(disagreement), flush=True)
    for release in releases:
        total = sum(disagreement.release == release for disagreement in found)
        print(f"{release.level}: {options.count} {noun}, {total} disagreements")
    print(f"seed {options.seed}, {time.monotonic() - begun:.0f} s")
    return int(bool(found))


def _in_processes(work: Callable[[int], Result], starts: Sequence[int], options: Namespace) -> Iterator[Result]:
    """Yield what comes of each batch, and tell of progress."""
    begun = printed = time.monotonic()
    with ProcessPoolExecutor(options.workers, multiprocessing.get_context("fork")) as pool:
        for number, result in enumerate(pool.map(work, starts), 1):
            yield result
            if time.monotonic() - printed >= SECONDS_BETWEEN_LINES:
                printed = time.monotonic()
                print(f"{number} of {len(starts)} batches, {printed - begun:.0f} s", file=sys.stderr, flush=True)


def operators(releases: Sequence[Release], options: Namespace) -> int:
    """Ask about random descriptors of all operators, or a sweep, and show figures by kind of fault."""
    code = 0
    for level in (release.operator_level for release in releases):
        count = sum(1 for _ in sweep(level)) if options.sweep else options.count
        work, counts, differing = partial(_compared_operators, level, options, count), Counts(), list[Compared]()
        for counted, found in _in_processes(work, range(0, count, BATCH), options):
            counts += counted
            differing += found
        by_kind = figures(counts)
        print(f"{level}: {count} descriptors, {len(differing)} differences")
        for kind, each in by_kind.items():
            if each.refused or each.taken:
                print(f"  {kind:20} {each}")
        _show(differing)
        is_exact = options.sweep or options.limits
        missed = ["no differences"] * bool(differing) if is_exact else shortfalls(by_kind)
        print(f"  goals missed: {', '.join(missed) or 'none'}", flush=True)
        code |= bool(missed)
    return code


def _show(differing: Sequence[object]) -> bool:
    """Show the first of what differs; returns whether there is any."""
    print(*differing[:SHOWN], sep="\n", end="\n" * bool(differing))
    return bool(differing)


def _compared_operators(
    level: FeatureLevel, options: Namespace, count: int, start: int
) -> tuple[Counts, list[Compared]]:
    kinds = LIMITS if options.limits else None
    drawn = draw_operators(min(BATCH, count - start), f"{options.seed} from {start}", level, kinds)
    return _tallied([*islice(sweep(level), start, start + BATCH)] if options.sweep else [*drawn])


def _tallied(rows: Sequence[Row]) -> tuple[Counts, list[Compared]]:
    """What DirectML says to descriptors beside ``check``, as counts, and where they differ."""
    found = [*compared(answered_operators(rows))]
    return sum(map(tally, found), Counts()), [each for each in found if not each.agrees]


def described(releases: Sequence[Release], options: Namespace) -> int:
    """Ask about what ONNX Runtime's provider creates of onnx's node tests and of random nodes, and compare.

    Does the same with the graphs that the provider compiles of the tests' models.
    """
    rng, nodes = Random(options.seed), [*described_nodes()]
    nodes += [varied(rng.choice(nodes), rng) for _ in range(options.count)]
    descs = distinct_descs(nodes)
    print(f"{len(nodes)} nodes, {len(descs)} distinct descriptors")
    code = 0
    for level in (release.operator_level.short for release in releases):
        counts, differing = _tallied([{"level": level, "desc": desc, "faults": []} for desc in descs])
        print(f"{level}: {figures(counts)['all']}, {len(differing)} differences")
        code |= _show(differing)
    lives = [compiling(graph) for graph in static_partitions()]
    for release in releases:
        if release.operator_level.short == release.level:  # the library of 5_0 answers as 5_1
            apart = differences(lives, release)
            print(f"{release.level}: {len(lives)} graphs, {len(apart)} differences")
            code |= _show(apart)
    return code


def edits(releases: Sequence[Release], options: Namespace) -> int:
    """Ask about refused descriptors with all edits of their findings, and show how many are taken."""
    made, rest = mended(releases, options.count, options.seed)
    taken = sum(row["hresult"] == S_OK for row in answered_operators(made))
    shares = [
        (len(made), options.count, 45, "have edits"),
        (sum(map(passes, made)), len(made), 95, "pass with them"),
        (taken, len(made), 95, "are taken by DirectML with them"),
    ]
    for part, whole, _, words in shares:
        print(f"{part} of {whole} ({100 * part / whole:.1f} %) {words}")
    for rule, number in rest.most_common():
        print(f"{number:6} without edits: {rule}")
    return int(any(100 * part < goal * whole for part, whole, goal, _ in shares))


def crashes(releases: Sequence[Release], options: Namespace) -> int:
    """Write the table of null fields at which DirectML ends the process anew; returns 1 if it changed."""
    before, after = CRASHES.read_text("utf-8"), "".join(f"{line}\n" for line in crashing_lines())
    CRASHES.write_text(after, "utf-8")
    print(f"{CRASHES.name}: {len(after.splitlines()) - 1} fields{', changed' if after != before else ''}")
    return int(after != before)


def ask(releases: Sequence[Release], options: Namespace) -> int:
    """Show what each release says to the descriptors of files, beside the findings of ``check``."""
    code = 0
    for file in chain.from_iterable(map(expanded, options.file)):
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
                (real,) = ask_runtime([part.desc], release)
                findings = check(part.desc, release.operator_level)
                print(f"  {release.level}: DirectML {real.hresult}; check: {said(findings)}")
    return code


def record(releases: Sequence[Release], options: Namespace) -> int:
    """Write the recorded answers anew; returns 1 if any changed."""
    code = 0
    for name in options.file or RECORDED:
        path = DATA / name
        before, after = text_of(name), recorded(name)
        content = after.encode()
        path.write_bytes(lzma.compress(content) if path.suffix == ".xz" else content)
        changed = sum(old != new for old, new in zip_longest(before.splitlines(), after.splitlines()))
        print(f"{path.name}: {len(after.splitlines())} lines, {changed} of them changed")
        code = max(code, min(changed, 1))
    return code
