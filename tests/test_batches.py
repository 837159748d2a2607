"""Loading and checking many descriptors at once."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
from pydantic import ValidationError

import dml_tile
from tests.helpers.descriptors import GOOD, row


@pytest.fixture(params=[True, False], ids=["collecting", "not collecting"])
def is_collecting(request: pytest.FixtureRequest) -> Iterator[bool]:
    if not request.param:
        gc.disable()
    yield bool(request.param)
    gc.enable()


def test_texts_are_descriptors_in_their_order(is_collecting: bool) -> None:
    tiles = [GOOD, row("INT8", [3], [2]), GOOD]
    texts = [tile.model_dump_json(by_alias=True) for tile in tiles]
    assert dml_tile.load_tiles(texts) == tiles
    assert dml_tile.load_tiles(iter(text.encode() for text in texts)) == tiles
    assert gc.isenabled() == is_collecting


def test_each_descriptor_has_its_findings(is_collecting: bool) -> None:
    tiles = [GOOD, row("INT64", [3], [2])]
    texts = [tile.model_dump_json(by_alias=True) for tile in tiles]
    assert dml_tile.check_texts(iter(texts), "4_0") == [(tile, dml_tile.check(tile, "4_0")) for tile in tiles]
    runtime = [(tile, dml_tile.check(tile, "2_0", "runtime")) for tile in tiles]
    assert dml_tile.check_texts(texts, "2_0", "runtime") == runtime
    assert gc.isenabled() == is_collecting


def test_the_collector_is_as_it_was_after_an_error_too(is_collecting: bool) -> None:
    with pytest.raises(ValidationError):
        dml_tile.load_tiles(['{"Repeats": -1}'])
    with pytest.raises(ValueError, match="target"):
        dml_tile.check_texts([GOOD.model_dump_json(by_alias=True)], "windows-95")
    assert gc.isenabled() == is_collecting


def test_what_is_frozen_stays_frozen() -> None:
    gc.freeze()
    try:
        count = gc.get_freeze_count()
        dml_tile.load_tiles([GOOD.model_dump_json(by_alias=True)])
        assert 0 < gc.get_freeze_count() <= count
    finally:
        gc.unfreeze()
    dml_tile.load_tiles([GOOD.model_dump_json(by_alias=True)])
    assert gc.get_freeze_count() == 0


def test_the_collector_is_paused_meanwhile() -> None:
    seen = []

    def texts() -> Iterator[str]:
        seen.append(gc.isenabled())
        yield GOOD.model_dump_json(by_alias=True)

    dml_tile.load_tiles(texts())
    dml_tile.check_texts(texts())
    assert seen == [False, False]
