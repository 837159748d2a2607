"""Random descriptors are of all kinds; a disagreement is noticed, whichever side is wrong, and shrunk."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence

import pytest

from dml_tile.checking import check
from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.directml.targets import Target
from tests.helpers.descriptors import GOOD, changed, page_tile, row
from tests.helpers.recorded_answers import CRASH, OVER_READS, S_OK
from tests.recorder.compare import BATCH, Batch, Disagreement, batches, disagreements, smallest, why_not
from tests.recorder.draws import draw
from tests.recorder.releases import RELEASES, RELEASES_OF_LEVELS, Release
from tests.recorder.runtime import ADAPTERS, Adapter, Answer
from tests.recorder.shrink import shrunk
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


def test_batches_differ_in_their_adapters() -> None:
    made = batches(4 * BATCH + 1, 7)
    assert made == [
        *(Batch(BATCH, f"7 from {i * BATCH}", adapter) for i, adapter in enumerate(ADAPTERS)),
        Batch(1, f"7 from {4 * BATCH}", ADAPTERS[0]),
    ]


def test_each_release_is_asked_about_each_descriptor() -> None:
    asked: list[tuple[str, Adapter, int]] = []

    def ask(descs: Sequence[TileOperatorDesc], release: Release, adapter: Adapter) -> Iterator[Answer]:
        asked.append((release.level, adapter, len(descs)))
        yield from [Answer(S_OK, 0) for _ in descs]

    adapter = ADAPTERS[2]
    found = disagreements([GOOD, page_tile(RepeatsCount=3), GOOD], adapter, RELEASES, ask)
    assert asked == [(level, adapter, 3) for level in RELEASES_OF_LEVELS]
    assert found == [
        Disagreement(page_tile(RepeatsCount=3), release, adapter, Answer(S_OK, 0), E_INVALIDARG) for release in RELEASES
    ]


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


def test_answers_that_vary_are_told_and_nothing_is_shrunk() -> None:
    given = itertools.cycle([Answer(S_OK, 0), Answer(E_INVALIDARG)])

    def ask(descs: Sequence[TileOperatorDesc], release: Release, adapter: Adapter) -> Iterator[Answer]:
        yield from [next(given) for _ in descs]

    found = smallest(FOUND, ask)
    assert found.desc == WIDE
    assert found.real == Answer(E_INVALIDARG)
    assert found.again == (Answer(S_OK, 0), Answer(E_INVALIDARG), Answer(S_OK, 0))
    assert f"DirectML: {E_INVALIDARG}; asked again: {S_OK}, with a PersistentResourceSize of 0; " in str(found)


def test_a_plainer_descriptor_that_agrees_when_it_is_alone_is_not_told() -> None:
    def ask(descs: Sequence[TileOperatorDesc], release: Release, adapter: Adapter) -> Iterator[Answer]:
        """Answers of a DirectML that depend on the other questions, but for the first descriptor."""
        for desc in descs:
            yield Answer(E_INVALIDARG) if desc == WIDE or len(descs) > 1 else Answer(S_OK, 0)

    found = smallest(FOUND, ask)
    assert found.desc == WIDE
    assert why_not(found.desc, found.target, found.real) == found.emulated


@pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.level)
def test_the_real_one_agrees_on_random_descriptors(release: Release) -> None:
    if why_not_buildable() or not release.library.is_file():
        pytest.skip("DirectML is not fetched")
    assert not disagreements(list(draw(600, 7)), ADAPTERS[0], [release])


def test_a_descriptor_that_cannot_be_plainer_stays() -> None:
    assert shrunk(WIDE, lambda descs: [False for _ in descs]) == WIDE


def test_a_number_comes_down_to_where_it_still_matters() -> None:
    def is_large(descs: Sequence[TileOperatorDesc]) -> list[bool]:
        buffers = [desc.output_tensor.desc if desc.output_tensor else None for desc in descs]
        return [buffer is not None and buffer.total_tensor_size_in_bytes > 1000 for buffer in buffers]

    small = shrunk(WIDE, is_large)
    assert small.output_tensor
    assert small.output_tensor.desc
    assert small.output_tensor.desc.total_tensor_size_in_bytes == 1001


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
