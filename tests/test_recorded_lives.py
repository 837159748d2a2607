"""The simulated device does in whole lives what Microsoft's runtime was recorded to do, call by call."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.helpers.played_lives import emulated
from tests.helpers.recorded_answers import rows_of

pytestmark = pytest.mark.dml(expects_removal=True)

LIVES: Final = rows_of("lives.jsonl")
BINDING: Final = rows_of("binding.jsonl")
DEVICES: Final = rows_of("devices.jsonl")


def recorded(life: dict[str, Any], level: str) -> list[str]:
    result: Any = life["result"]
    results: list[str] = result[level] if isinstance(result, dict) else result
    return results


@pytest.mark.parametrize("level", ["5_0", "5_2", "6_2"])
def test_each_call_of_a_life_comes_to_what_was_recorded(level: str) -> None:
    assert (len(LIVES), len(BINDING), len(DEVICES)) == (927, 1124, 156)
    for life in LIVES + BINDING + DEVICES:
        assert emulated(life, level) == recorded(life, level), life["id"]


@pytest.mark.parametrize(("level", "recorded_at"), [("4_1", "5_0"), ("5_1", "5_2"), ("6_0", "6_2"), ("6_4", "6_2")])
def test_another_level_lives_as_its_neighbour(level: str, recorded_at: str) -> None:
    """But for the levels that it says it supports, and the types of tiles that it has."""
    for life in LIVES:
        calls = [call for call in life["calls"] if call[0] != "CheckFeatureSupport"]
        assert emulated({**life, "calls": calls}, level) == emulated({**life, "calls": calls}, recorded_at), life["id"]
