"""The canonical spelling takes a path of its own, which reads and refuses what pydantic's usual path does."""

from __future__ import annotations

import json
from copy import deepcopy
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from pydantic_core import SchemaValidator

from dml_tile import descriptors
from dml_tile.descriptors import TileOperatorDesc
from dml_tile.testing import strategies
from tests.helpers.descriptors import GOOD

USUAL: Final = TypeAdapter(TileOperatorDesc)

ODD: Final = st.sampled_from(
    [None, True, -1, 0, 1.0, 1.5, 2**32, 2**64, "FLOAT32", "1", [], [1, None], {}, {"Desc": None}]
).map(deepcopy)


def outcome(read: Any, text: str) -> Any:
    try:
        return read(text)
    except ValidationError as error:
        return error.errors(include_url=False)


@given(strategies.nearly_valid_tiles())
def test_a_canonical_text_is_read_as_usual(tile: TileOperatorDesc) -> None:
    text = tile.model_dump_json(by_alias=True)
    assert TileOperatorDesc.model_validate_json(text) == USUAL.validate_json(text) == tile


@given(data=st.data())
def test_a_text_with_something_else_in_it_is_read_or_refused_as_usual(data: st.DataObject) -> None:
    value = json.loads(GOOD.model_dump_json(by_alias=True))
    for _ in range(data.draw(st.integers(1, 3))):
        place = value
        while True:
            key = data.draw(st.sampled_from([*place, "Type", "Desc", "NullDesc", "Other"]))
            if isinstance(place.get(key), dict) and data.draw(st.booleans()):
                place = place[key]
                continue
            break
        if key in place and data.draw(st.booleans()):
            del place[key]
        else:
            place[key] = data.draw(ODD)
    text = json.dumps(value)
    assert outcome(TileOperatorDesc.model_validate_json, text) == outcome(USUAL.validate_json, text)


def test_a_version_of_pydantic_without_the_option_reads_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def older(schema: Any, **options: Any) -> Any:
        if options:
            raise TypeError("unexpected keyword")
        return SchemaValidator(schema)

    monkeypatch.setattr(descriptors, "SchemaValidator", older)
    descriptors._canonical_validator.cache_clear()
    try:
        assert TileOperatorDesc.model_validate_json(GOOD.model_dump_json(by_alias=True)) == GOOD
    finally:
        descriptors._canonical_validator.cache_clear()
