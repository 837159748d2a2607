"""Random descriptors are of all kinds; a disagreement is noticed, whichever side is wrong, and shrunk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import pytest

from dml_tile.checking import check
from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.directml.targets import Target
from tests.helpers.descriptors import GOOD, changed, page_tile, row
from tests.helpers.recorded_answers import CRASH, OVER_READS, S_OK
from tests.recorder.compare import Disagreement, disagreements, smallest, why_not
from tests.recorder.draws import draw
from tests.recorder.releases import RELEASES, Release
from tests.recorder.runtime import ADAPTERS, Adapter, Answer
from tests.recorder.stand_in import why_not_buildable

E_INVALIDARG = "0x80070057"
SHORT = page_tile(InputTensor__Sizes=[1, 1])
TARGET = Target.parse("5_0")


@pytest.mark.parametrize(
    ("desc", "answer"),
    [
        (GOOD, Answer(S_OK, 0)),
        (page_tile(InputTensor__Flags=1), Answer(S_OK, 24)),
        (page_tile(RepeatsCount=3), Answer(E_INVALIDARG)),
        (page_tile(Repeats=None), Answer(CRASH)),
        (SHORT, Answer(CRASH)),
        (page_tile(InputTensor__Sizes=[1, 0]), Answer(E_INVALIDARG)),
    ],
)
def test_what_both_say_is_no_disagreement(desc: TileOperatorDesc, answer: Answer) -> None:
    assert why_not(desc, TARGET, answer) is None


@pytest.mark.parametrize(
    ("desc", "answer", "emulated"),
    [
        (GOOD, Answer(E_INVALIDARG), S_OK),
        (GOOD, Answer(CRASH), S_OK),
        (page_tile(RepeatsCount=3), Answer(S_OK, 0), E_INVALIDARG),
        (page_tile(Repeats=None), Answer(E_INVALIDARG), CRASH),
        (page_tile(InputTensor__Flags=1), Answer(S_OK, 28), f"{S_OK}, with a PersistentResourceSize of 24"),
        (SHORT, Answer(S_OK, 0), "an array is read past its end"),
        (page_tile(Repeats=[1, 1, 3]), Answer("0x887A0005"), "an array is read past its end"),
    ],
)
def test_what_only_one_side_says_is_a_disagreement(desc: TileOperatorDesc, answer: Answer, emulated: str) -> None:
    assert (why_not(desc, TARGET, answer) or "").startswith(emulated)


WIDE = changed(
    row("UINT64", [2, 3, 4, 5, 6], [3, 1, 2, 9, 2]),
    InputTensor__Flags=1,
    InputTensor__GuaranteedBaseOffsetAlignment=64,
    OutputTensor__Strides=[16_000, 5000, 600, 12, 1],
    OutputTensor__TotalTensorSizeInBytes=800_000,
)
FOUND = Disagreement(WIDE, RELEASES[0], ADAPTERS[0], Answer(E_INVALIDARG), S_OK)


def test_the_smallest_descriptor_still_disagrees() -> None:
    def ask(descs: Sequence[TileOperatorDesc], release: Release, adapter: Adapter) -> Iterator[Answer]:
        """Answers of a DirectML that refuses each tile with a repeat of 2."""
        for desc in descs:
            refused = 2 in (desc.repeats or ()) or check(desc, "5_0", against="runtime")
            yield Answer(E_INVALIDARG) if refused else Answer(S_OK, 0)

    small = smallest(FOUND, ask)
    assert small.desc == row("UINT64", [1], [2])
    assert why_not(small.desc, small.target, small.real) == small.emulated == S_OK
    assert set(small.again) == {small.real}


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.level)
def test_the_real_one_agrees_on_random_descriptors(release: Release) -> None:
    if why_not_buildable() or not release.library.is_file():
        pytest.skip("DirectML is not fetched")
    assert not disagreements(list(draw(600, 7)), ADAPTERS[0], [release])


def test_some_are_accepted_and_many_rules_refuse_the_others() -> None:
    drawn = list(draw(3000, 3))
    assert len(drawn) == 3000
    rules = Counter(finding.rule for desc in drawn for finding in check(desc, "6_2", against="runtime"))
    accepted = sum(not check(desc, "5_0", against="runtime") for desc in drawn)
    assert accepted > 200
    assert len(rules) > 20
    assert rules.keys() >= OVER_READS
    assert {"DML-BUFFER-Strides-extent", "DML-TILE-Repeats-null", "DML-BUFFER-Strides-overlap"} <= set(rules)
