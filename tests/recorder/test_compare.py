"""A disagreement is noticed, whichever side is wrong, and told of the plainest descriptor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from dml_tile.descriptors import TileOperatorDesc
from dml_tile.targets import Target
from tests.helpers.descriptors import GOOD, page_tile
from tests.recorder.compare import CRASH, S_OK, disagreements, why_not
from tests.recorder.releases import RELEASES, Release, missing
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


def test_each_release_is_asked_about_each_descriptor_and_adapters_change() -> None:
    asked: list[tuple[str, Adapter, int]] = []

    def ask(descs: Sequence[TileOperatorDesc], release: Release, adapter: Adapter) -> Iterator[Answer]:
        asked.append((release.level, adapter, len(descs)))
        yield from [Answer(S_OK, 0) for _ in descs]

    found = list(disagreements([GOOD] * 9000, RELEASES, ask))
    assert found == [
        (level, None) for count in (4000, 4000, 1000) for level in ("5_0", "5_2", "6_2") for _ in range(count)
    ]
    assert [adapter for level, adapter, _ in asked if level == "5_0"] == list(ADAPTERS[:3])


@pytest.mark.skipif(bool(missing()) or why_not_buildable() is not None, reason="DirectML is not fetched")
class TestTheRealOne:
    @pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.level)
    def test_it_agrees_on_random_descriptors(self, release: Release) -> None:
        from tests.recorder.draws import draw

        assert not [found for _, found in disagreements(draw(600, 7), [release]) if found]
