"""Loading and checking many descriptors in one call."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

import dml_tile
from dml_tile.calls import record_calls
from dml_tile.readers import batches
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


def test_equal_texts_share_a_descriptor_and_its_findings() -> None:
    wrong = row("INT64", [3], [2])
    texts = [wrong.model_dump_json(by_alias=True), GOOD.model_dump_json(by_alias=True)] * 2
    first, _, third, _ = dml_tile.load_tiles(texts)
    assert first is third
    checked = dml_tile.check_texts(texts, "4_0")
    assert checked[0] is checked[2]
    assert checked == [(tile, dml_tile.check(tile, "4_0")) for tile in (wrong, GOOD, wrong, GOOD)]


def test_more_texts_than_are_kept_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "MAX_TEXTS_KEPT", 2)
    tiles = [row("INT8", [size], [2]) for size in (1, 2, 3, 1, 2)]
    assert dml_tile.load_tiles(tile.model_dump_json(by_alias=True) for tile in tiles) == tiles


def test_each_text_is_a_call() -> None:
    text = row("INT64", [3], [2]).model_dump_json(by_alias=True)
    with record_calls() as calls:
        checked = dml_tile.check_texts([text, text], "4_0")
    assert [(call.name, call.desc, call.findings) for call in calls] == [("check", *result) for result in checked]


def test_a_text_that_is_not_a_descriptor_is_refused() -> None:
    for load in (dml_tile.load_tiles, dml_tile.check_texts):
        with pytest.raises(ValidationError, match="Repeats"):
            load(['{"Repeats": -1}'])


def test_an_unknown_target_is_refused() -> None:
    with pytest.raises(ValueError, match="target"):
        dml_tile.check_texts([GOOD.model_dump_json(by_alias=True)], "windows-95")
