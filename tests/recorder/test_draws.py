"""Random descriptors: the same for the same seed, and of all kinds."""

from __future__ import annotations

from collections import Counter

from dml_tile.rules.check import check
from tests.helpers.recorded_answers import OVER_READS
from tests.recorder.draws import draw


def test_the_same_seed_draws_the_same_and_another_others() -> None:
    drawn = list(draw(400, 1))
    assert drawn == list(draw(400, 1))
    assert drawn != list(draw(400, 2))


def test_some_are_accepted_and_many_rules_refuse_the_others() -> None:
    drawn = list(draw(3000, 3))
    assert len(drawn) == 3000
    rules = Counter(finding.rule for desc in drawn for finding in check(desc, "6_2", against="runtime"))
    accepted = sum(not check(desc, "5_0", against="runtime") for desc in drawn)
    assert accepted > 200
    assert len(rules) > 20
    assert rules.keys() >= OVER_READS
    assert {"DML-BUFFER-Strides-extent", "DML-TILE-Repeats-null", "DML-BUFFER-Strides-overlap"} <= set(rules)
