"""Random descriptors are of all kinds; a disagreement is noticed, whichever side is wrong."""

from __future__ import annotations

from collections import Counter

import pytest

from dml_tile.checking import check
from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.directml.targets import Target
from tests.helpers.descriptors import GOOD, page_tile
from tests.helpers.recorded_answers import CRASH, OVER_READS, S_OK
from tests.recorder.compare import Disagreement, asked_again, disagreements, why_not
from tests.recorder.draws import draw
from tests.recorder.releases import RELEASES, Release
from tests.recorder.runtime import ADAPTERS, Answer
from tests.recorder.stand_in import why_not_buildable

E_INVALIDARG = "0x80070057"
SHORT = page_tile(InputTensor__Sizes=[1, 1])
OVER_READ = "an array is read past its end"


@pytest.mark.parametrize(
    ("desc", "answer", "emulated"),
    [
        (GOOD, Answer(S_OK, 0), None),
        (page_tile(InputTensor__Flags=1), Answer(S_OK, 24), None),
        (page_tile(RepeatsCount=3), Answer(E_INVALIDARG), None),
        (page_tile(Repeats=None), Answer(CRASH), None),
        (SHORT, Answer(CRASH), None),
        (page_tile(InputTensor__Sizes=[1, 0]), Answer(E_INVALIDARG), None),
        (GOOD, Answer(E_INVALIDARG), S_OK),
        (GOOD, Answer(CRASH), S_OK),
        (page_tile(RepeatsCount=3), Answer(S_OK, 0), E_INVALIDARG),
        (page_tile(Repeats=None), Answer(E_INVALIDARG), CRASH),
        (page_tile(InputTensor__Flags=1), Answer(S_OK, 28), f"{S_OK}, with a PersistentResourceSize of 24"),
        (SHORT, Answer(S_OK, 0), f"{OVER_READ}; {E_INVALIDARG} if ones were there"),
        (page_tile(Repeats=[1, 1, 3]), Answer("0x887A0005"), f"{OVER_READ}; {E_INVALIDARG} if ones were there"),
    ],
)
def test_what_only_one_side_says_is_a_disagreement(
    desc: TileOperatorDesc, answer: Answer, emulated: str | None
) -> None:
    assert why_not(desc, Target.parse("5_0"), answer) == emulated


def test_a_disagreement_is_shown_with_what_directml_says_when_asked_again() -> None:
    answers = iter([Answer(S_OK), Answer(E_INVALIDARG), Answer(S_OK)])
    found = Disagreement(GOOD, RELEASES[0], ADAPTERS[0], Answer(S_OK), E_INVALIDARG)
    shown = str(asked_again(found, lambda descs, release, adapter: iter([next(answers)])))
    assert f"DirectML: {S_OK}; asked again: {E_INVALIDARG}\n  emulator: {E_INVALIDARG}\n" in shown


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.level)
def test_the_real_one_agrees_on_random_descriptors(release: Release) -> None:
    if why_not_buildable() or not release.library.is_file():
        pytest.skip("DirectML is not fetched")
    assert not disagreements(list(draw(600, 7)), ADAPTERS[0], [release])


def test_some_are_accepted_and_many_rules_refuse_the_others() -> None:
    drawn = list(draw(1500, 4))
    assert len(drawn) == 1500
    rules = Counter(finding.rule for desc in drawn for finding in check(desc, "6_2", against="runtime"))
    accepted = sum(not check(desc, "5_0", against="runtime") for desc in drawn)
    assert accepted > 100
    assert len(rules) > 20
    assert rules.keys() >= OVER_READS
    assert {"DML-BUFFER-Strides-extent", "DML-TILE-Repeats-null", "DML-BUFFER-Strides-overlap"} <= set(rules)
