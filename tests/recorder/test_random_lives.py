"""A difference between lives is noticed, whichever side is wrong, and shown in the shortest life."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from tests.helpers.played_lives import Life, emulated
from tests.recorder.life_draws import draw_life
from tests.recorder.random_lives import Results, differences, shortest
from tests.recorder.releases import RELEASES, Release

LIVES = [draw_life(f"test:{number}") for number in range(40)]


def as_emulated(lives: Sequence[Life], release: Release) -> Iterator[Results]:
    yield from [emulated(life, release.level) for life in lives]


def refusing_flags(lives: Sequence[Life], release: Release) -> Iterator[Results]:
    """Results of a DirectML that refuses to compile an operator with flags."""
    for life in lives:
        yield [
            "0x80070057" if call[0] == "CompileOperator" and call[-1] and result.startswith("ok") else result
            for call, result in zip(life["calls"], emulated(life, release.level), strict=False)
        ]


def test_a_seed_draws_the_same_life() -> None:
    assert [draw_life(f"test:{number}") for number in range(40)] == LIVES
    assert len({str(life) for life in LIVES}) == 40


@pytest.mark.dml(expects_removal=True)
def test_equal_lives_do_not_differ() -> None:
    assert not differences(LIVES, RELEASES[0], as_emulated)


@pytest.mark.dml(expects_removal=True)
def test_the_shortest_life_that_differs_is_shown() -> None:
    found, *_ = differences(LIVES, RELEASES[0], refusing_flags)
    small = shortest(found, refusing_flags)
    assert [call[0] for call in small.life["calls"]] == ["CreateOperator", "CompileOperator"]
    assert str(small).startswith("5_0: call 2 came to 0x80070057 in DirectML, ok")
