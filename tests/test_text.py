"""The helpers for messages: suggestions, cuts, braces, escapes and JSON pointers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dml_tile.text import (
    MAX_COMPARED,
    braced,
    did_you_mean,
    json_pointer,
    nearest,
    pointer_steps,
    printable,
    printable_json,
    printable_line_start,
    shortened,
    shortened_within,
    shown,
)
from tests.helpers.hostile_names import CHARACTERS

NAMES = ("Sizes", "Strides", "Repeats")


def test_the_nearest_names_come_first() -> None:
    assert nearest("Stride", NAMES) == ["Strides"]
    assert nearest("Szies", NAMES, count=2, cutoff=0.3) == ["Sizes", "Strides"]
    assert nearest("Colour", NAMES) == []
    assert nearest("x" * 10**7, ["x" * MAX_COMPARED]) == ["x" * MAX_COMPARED]


def test_a_suggestion_is_a_question_or_the_alternative() -> None:
    assert did_you_mean("Size", NAMES) == "did you mean Sizes?"
    assert did_you_mean("Szies", NAMES, count=2, cutoff=0.3) == "did you mean Sizes, Strides?"
    assert did_you_mean("Colour", NAMES, "see the list") == "see the list"
    assert did_you_mean("Colour", NAMES) == ""


@pytest.mark.parametrize(
    ("limit", "end_cut", "middle_cut"),
    [(10, "0123456789", "0123456789"), (9, "01234567…", "0123…6789"), (8, "0123456…", "0123…789"), (1, "…", "…")],
)
def test_a_text_is_cut_at_its_end_or_in_its_middle(limit: int, end_cut: str, middle_cut: str) -> None:
    assert shortened("0123456789", limit) == end_cut
    assert shortened_within("0123456789", limit) == middle_cut


@given(st.text(CHARACTERS, max_size=40), st.integers(1, 45))
def test_a_cut_text_is_as_long_as_allowed(text: str, limit: int) -> None:
    for cut in (shortened, shortened_within):
        assert len(cut(text, limit)) == min(len(text), limit)


@pytest.mark.parametrize(
    ("function", "value", "text"),
    [
        (braced, [1, 2, 3], "{1, 2, 3}"),
        (braced, (), "{}"),
        (shown, None, "null"),
        (shown, True, "true"),
        (shown, False, "false"),
        (shown, 1.5, "1.5"),
        (shown, "a", "'a'"),
        (shown, {"a": 1}, "an object"),
        (shown, [1, 2], "an array of 2"),
        (shown, (), "an array of 0"),
        (shown, "x" * 100, "'" + "x" * 58 + "…"),
        (json_pointer, ["a/b", 0, "m~n"], "/a~1b/0/m~0n"),
        (json_pointer, [], ""),
        # commands to terminals and logs are escaped
        (printable, "größer", "größer"),
        (printable, "\x1b[31m", "\\x1b[31m"),
        (printable, "a\nb", "a\\nb"),
        (printable, "\udcff", "\\udcff"),
        (printable, "##vso[task.setvariable x]", "#\\x23vso[task.setvariable x]"),
        (printable, "a ##[error]", "a #\\x23[error]"),
        (printable, "##VSO[a", "#\\x23VSO[a"),
        (printable, "a\u202eb\u2028\x1b", "a\\u202eb\\u2028\\x1b"),
        (printable, "## heading, C#[1]", "## heading, C#[1]"),
        (printable_line_start, "::stop-commands::tok.json", "./::stop-commands::tok.json"),
        (printable_line_start, "  ::error::x", "./  ::error::x"),
        (printable_line_start, "##vso[task]evil.json", "./#\\x23vso[task]evil.json"),
        (printable_line_start, "a::b", "a::b"),
        (printable_line_start, ":a", ":a"),
    ],
    ids=lambda value: getattr(value, "__name__", ascii(value)),
)
def test_a_value_is_shown_as_text(function: Callable[[Any], str], value: Any, text: str) -> None:
    assert function(value) == text


@given(st.lists(st.text("ab/~01", max_size=5)))
def test_a_pointer_leads_back_to_its_steps(steps: list[str]) -> None:
    assert pointer_steps(json_pointer(steps)) == steps


@pytest.mark.parametrize("text", ["\u202e\u2028\x7f", "##vso[a", "## ##[b", "é☃\n", "\U000e0001", "\udcff"])
def test_json_keeps_its_meaning_and_has_only_what_is_printable(text: str) -> None:
    escaped = printable_json(json.dumps([text], ensure_ascii=False) + "\n")
    assert json.loads(escaped) == [text]
    assert escaped[:-1].isprintable()
    assert "##[" not in escaped
    assert "##vso[" not in escaped
