"""Rules are selected and ignored by their ids, or by the first words of several."""

from __future__ import annotations

import pytest

from dml_tile.checks.catalogue import RULES, Selection


@pytest.mark.parametrize(
    ("select", "ignore", "taken", "left"),
    [
        ((), (), tuple(RULES), ()),
        (("DML-BUFFER",), (), ("DML-BUFFER-Flags", "DML-BUFFER-Flags-output"), ("DML-TILE-RepeatsCount",)),
        ((), ("DML-BUFFER",), ("DML-TILE-RepeatsCount",), ("DML-BUFFER-Flags",)),
        (("DML-TILE-RepeatsCount",), (), ("DML-TILE-RepeatsCount",), ("DML-TILE-Repeats-zero",)),
        (("DML-TILE-Repeats",), (), ("DML-TILE-Repeats-zero", "DML-TILE-Repeats-null"), ("DML-TILE-RepeatsCount",)),
        (("DML",), ("DML-TILE",), ("DML-BUFFER-Flags",), ("DML-TILE-RepeatsCount",)),
        (("DML-TILE-RepeatsCount", "DML-BUFFER"), ("DML-TILE",), ("DML-TILE-RepeatsCount",), ("DML-TILE-DataType",)),
        (("DML-BUFFER",), ("DML-BUFFER",), (), ("DML-BUFFER-Flags", "DML-TILE-DataType")),
        (("DML", "DML-VIA-refused"), ("DML-VIA",), ("DML-VIA-refused",), ("DML-VIA-elsewhere",)),
    ],
)  # fmt: skip
def test_what_names_a_rule_with_more_words_decides(
    select: tuple[str, ...], ignore: tuple[str, ...], taken: tuple[str, ...], left: tuple[str, ...]
) -> None:
    selection = Selection(select, ignore)
    assert all(selection.takes(rule_id) for rule_id in taken)
    assert not any(selection.takes(rule_id) for rule_id in left)


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("DML-BUFER", "did you mean DML-BUFFER"),
        ("DML-TILE-RepeatsCont", "did you mean DML-TILE-RepeatsCount"),
        ("dml-buffer", "did you mean DML-BUFFER"),
        ("DML-BUFFER-", "did you mean DML-BUFFER"),
        ("DML-TILE-Repeat", "did you mean DML-TILE-Repeats"),
        ("xyz", "lists all rules"),
        ("", "lists all rules"),
    ],
)
def test_what_names_no_rule_is_an_error_with_the_nearest(words: str, hint: str) -> None:
    for choice in ({"select": (words,)}, {"ignore": ("DML-TILE", words)}):
        with pytest.raises(ValueError, match=hint):
            Selection(**choice)
