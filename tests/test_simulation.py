"""The target that is meant where none is named."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

import dml_tile
from dml_tile.enums import FeatureLevel
from dml_tile.errors import DmlError
from dml_tile.simulation import DEFAULT_TARGET, resolve, simulate
from dml_tile.targets import Target
from tests.helpers.descriptors import row

INT64 = row("INT64", [2, 3], [1, 2])


def test_no_target_is_the_highest_level() -> None:
    assert resolve(None) is DEFAULT_TARGET
    assert DEFAULT_TARGET.feature_level == max(FeatureLevel)


def test_a_simulated_target_is_meant_where_none_is_named() -> None:
    with simulate("windows-11-21h2") as target:
        assert target == resolve(None) == Target.parse("windows-11-21h2")
        assert {finding.rule for finding in dml_tile.check(INT64)} == {"DML-TILE-DataType-level"}
        with pytest.raises(DmlError, match="windows-11-21h2 has 4_0"):
            dml_tile.tile(np.array([[1]]), (2, 2))
        with pytest.raises(DmlError, match="windows-11-21h2 has 4_0"):
            dml_tile.execute(INT64, bytes(48), bytearray(96))
    assert not dml_tile.check(INT64)


def test_a_named_target_wins() -> None:
    with simulate("1_0"):
        assert not dml_tile.check(INT64, "4_1")
        assert dml_tile.lowest_level(INT64) == FeatureLevel.DML_FEATURE_LEVEL_4_1


def test_simulations_nest_and_end_with_an_error() -> None:
    with simulate("5_0"):
        with pytest.raises(DmlError), simulate("4_0"):
            dml_tile.require(INT64)
        assert resolve(None).name == "5_0"
    assert resolve(None) is DEFAULT_TARGET


def test_an_unknown_target_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match="did you mean"), simulate("windows-7"):
        pytest.fail("entered")
    assert resolve(None) is DEFAULT_TARGET


def test_a_function_can_be_simulated_whole() -> None:
    @simulate("2_1")
    def level() -> str:
        return resolve(None).name

    assert [level(), level()] == ["2_1", "2_1"]


def test_a_task_has_the_target_it_was_made_under() -> None:
    async def task() -> str:
        return resolve(None).name

    async def both() -> tuple[str, str]:
        with simulate("3_1"):
            first = asyncio.create_task(task())
        return await first, await asyncio.create_task(task())

    assert asyncio.run(both()) == ("3_1", "6_4")
