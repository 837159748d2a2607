"""Random models, which are read as DxDispatch's own parser was recorded to read them."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, Final

import pytest

from tests.helpers.dxdispatch_answers import KNOWN_DIFFERENCES, RECORDED, differences

ANSWERS: Final[list[tuple[str, dict[str, Any]]]] = [json.loads(line) for line in RECORDED.read_text().splitlines()]
PARTS: Final = 8


@pytest.mark.parametrize("part", range(PARTS))
def test_models_are_read_as_the_parser_reads_them(part: int) -> None:
    found = [(text, list(differences(text, answer))) for text, answer in ANSWERS[part::PARTS]]
    assert not [(text, different) for text, different in found if different]


def test_the_record_has_models_of_each_kind() -> None:
    counts = Counter("refused" if "refused" in answer else "read" for _, answer in ANSWERS)
    assert counts["refused"] > 800
    assert counts["read"] > 1000
    assert sum(counts.values()) > 2000
    for name in ("FLOAT16", "valueDelta", "TILE", "bindings", "verbose"):
        assert sum(name in text for text, answer in ANSWERS if "refused" not in answer) > 10


def test_a_difference_would_be_noticed() -> None:
    text, answer = next((text, answer) for text, answer in ANSWERS if answer.get("resources"))
    assert list(differences(text, {"refused": "no reason"}))
    changed = {name: [*values[:2], "00", *values[3:]] for name, values in answer["resources"].items()}
    assert list(differences(text, answer | {"resources": changed}))
    refused = next(text for text, answer in ANSWERS if "refused" in answer)
    assert list(differences(refused, {"resources": {}, "dispatchables": {}, "commands": 0}))


def test_known_differences_are_few() -> None:
    assert sorted(KNOWN_DIFFERENCES.values()) == ["deferred", "several resources"]
