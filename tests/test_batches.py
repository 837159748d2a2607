"""Loading and checking many descriptors in one call."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

import dml_tile
from tests.helpers.descriptors import GOOD, row


def test_texts_are_descriptors_in_their_order() -> None:
    tiles = [GOOD, row("INT8", [3], [2]), GOOD]
    texts = [tile.model_dump_json(by_alias=True) for tile in tiles]
    assert dml_tile.load_tiles(texts) == tiles
    assert dml_tile.load_tiles(iter(text.encode() for text in texts)) == tiles


def test_each_descriptor_has_its_findings() -> None:
    tiles = [GOOD, row("INT64", [3], [2])]
    texts = [tile.model_dump_json(by_alias=True) for tile in tiles]
    assert dml_tile.check_texts(iter(texts), "4_0") == [(tile, dml_tile.check(tile, "4_0")) for tile in tiles]
    runtime = [(tile, dml_tile.check(tile, "2_0", "runtime")) for tile in tiles]
    assert dml_tile.check_texts(texts, "2_0", "runtime") == runtime


def test_a_text_that_is_not_a_descriptor_is_refused() -> None:
    for load in (dml_tile.load_tiles, dml_tile.check_texts):
        with pytest.raises(ValidationError, match="Repeats"):
            load(['{"Repeats": -1}'])


def test_an_unknown_target_is_refused() -> None:
    with pytest.raises(ValueError, match="target"):
        dml_tile.check_texts([GOOD.model_dump_json(by_alias=True)], "windows-95")
