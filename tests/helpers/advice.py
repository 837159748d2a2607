"""How many refused descriptors get edits that make DirectML take them.

    python -m tests.helpers.advice --count 2000 --seed 1

Draws descriptors of any operator with one fault, as ``python tests/recorder operators`` does, at the level of each of
its releases in turn, until ``check`` refuses so many. Applies all edits of a descriptor's findings, and asks ``check``
again, and each release that was fetched. Prints the share of those with edits, of these the share that pass, and
counts those without edits by their first rule. Exits with 1 if fewer than 45 % have edits, or fewer than 95 % pass.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count, islice

from dml_tile.checking import check
from dml_tile.descriptors.operator import OperatorDesc
from dml_tile.directml.enums import FeatureLevel
from dml_tile.findings import Finding
from dml_tile.rules.edits import edited
from dml_tile.rules.tile_findings import blocks_creation
from tests.helpers.recorded_answers import S_OK
from tests.recorder.operator_draws import draw
from tests.recorder.operators import answered_operators
from tests.recorder.releases import RELEASES, Release

Refused = tuple[OperatorDesc, tuple[Finding, ...]]


def near_misses(level: FeatureLevel, seed: str) -> Iterator[Refused]:
    """Endless descriptors with one fault that are refused at a level, and their findings."""
    for number in count():
        for row in draw(100, f"{seed} advice {number}", level):
            desc = OperatorDesc.model_validate(row["desc"])
            if len(row["faults"]) == 1 and any(map(blocks_creation, findings := check(desc, level))):
                yield desc, findings


def mended(desc: OperatorDesc, findings: Sequence[Finding]) -> OperatorDesc | None:
    """Return the descriptor with all edits of its findings; None if they have none."""
    edits = [edit for finding in findings for edit in finding.edits]
    return edited(desc, edits) if edits else None


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the shares; returns the exit code."""
    parser = argparse.ArgumentParser("python -m tests.helpers.advice")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", default="0")
    options = parser.parse_args(arguments)
    rest, made = Counter[str](), list[tuple[Release, OperatorDesc]]()
    for i, release in enumerate(RELEASES):
        number = len(range(i, options.count, len(RELEASES)))
        for desc, findings in islice(near_misses(release.operator_level, options.seed), number):
            if repaired := mended(desc, findings):
                made.append((release, repaired))
            else:
                rest[next(filter(blocks_creation, findings)).rule] += 1
    passed = sum(not any(map(blocks_creation, check(desc, release.operator_level))) for release, desc in made)
    asked = [
        {"level": release.operator_level.short, "desc": json.loads(desc.model_dump_json(by_alias=True))}
        for release, desc in made
        if release.library.is_file()
    ]
    taken = sum(row["hresult"] == S_OK for row in answered_operators(asked)) if asked else 0
    shares = [(len(made), options.count, 45, "have edits"), (passed, len(made), 95, "pass with them")]
    if asked:
        shares.append((taken, len(asked), 95, "are taken by DirectML with them"))
    for part, whole, _, words in shares:
        print(f"{part} of {whole} ({100 * part / whole:.1f} %) {words}")
    for rule, number in rest.most_common():
        print(f"{number:6} without edits: {rule}")
    return int(any(100 * part < goal * whole for part, whole, goal, _ in shares))


if __name__ == "__main__":
    sys.exit(main())
