"""A difference between lives is noticed, whichever side is wrong, and shown in the shortest life."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import pytest

from tests.helpers.played_lives import Life, emulated
from tests.recorder.graph_draws import draw_graph
from tests.recorder.life_draws import draw_life
from tests.recorder.random_lives import Results, agree, differences, shortest
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


@pytest.mark.parametrize(
    ("real", "here", "is_same"),
    [
        (["ok", "2,0,24"], ["ok", "2,0,24"], True),
        (["ok", "2,0,24"], ["ok", "4,256,256"], True),
        (["ok", "4,288,24"], ["ok", "4,256,256"], False),
        (["ok", "crash"], ["ok", "4,256,256"], False),
        (["ok"], ["ok", "4,256,256"], False),
        (["0x00000000"], ["0x80070057"], False),
    ],
)
def test_binding_properties_are_bounds_and_all_else_is_the_same(real: Results, here: Results, is_same: bool) -> None:
    assert agree(real, here) is is_same


def test_graphs_are_drawn_of_tiles_and_of_any_operators_some_of_them_wrong() -> None:
    drawn = [draw_graph(f"test:{number}") for number in range(300)]
    assert drawn[:9] == [draw_graph(f"test:{number}") for number in range(9)]
    counts = Counter((len(life["calls"]), emulated(life, "6_2")[0] == "ok") for life in drawn)
    assert all(counts[calls, is_taken] > 20 for calls in (1, 2) for is_taken in (True, False))
