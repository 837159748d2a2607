"""The recorded files have no question that ended the process of a release."""

from __future__ import annotations

from typing import Any

import pytest

from tests.recorder import record


def test_a_question_that_ended_a_release_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[dict[str, Any]] = [
        {"id": "a", "hresult": {"5_0": "0x00000000", "6_2": "CRASH:SIGSEGV"}},
        {"id": "b", "result": ["ok", "crash"]},
        {"id": "c", "crash": "SIGSEGV"},
        {"id": "no crash", "hresult": "0x80070057"},
    ]
    monkeypatch.setattr(record, "rows_of", lambda name: rows)
    monkeypatch.setattr(record, "RECORDED", {"a.jsonl": iter})
    assert record.record("a.jsonl") == '{"id":"no crash","hresult":"0x80070057"}\n'
