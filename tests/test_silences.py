"""Findings that count: comments and patterns silence some; rules are selected and ignored by their ids."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dml_tile.checks.catalogue import RULES, Selection, known_rules
from tests.helpers.check_files import BAD, TILE, model, write
from tests.helpers.command_line import Call

SIZES, COUNT = "DML-TILE-OutputTensor-Sizes", "DML-TILE-RepeatsCount"
TEXT = json.dumps(BAD)


def comment(*rules: str) -> str:
    return f"// dml-tile: ignore[{', '.join(rules)}]"


@pytest.mark.parametrize(
    ("name", "text", "silenced", "unmet"),
    [
        ("a.json", f"{comment(SIZES)} users have it\n{TEXT}", [True], []),
        ("a.json", f"{TEXT} /* dml-tile:ignore[DML-TILE] */", [True], []),
        ("a.json", f"{TEXT} {comment(COUNT)}", [False], [f"1:127: ignore[{COUNT}]"]),
        ("a.json", f"{TEXT} {comment(COUNT, SIZES)}", [True], [f"1:127: ignore[{COUNT}]"]),
        ("a.json", f"[{TEXT}, {comment(SIZES)}\n{TEXT},\n{comment(SIZES)}\n{TEXT}]", [True, False, False],
         [f"3:1: ignore[{SIZES}]"]),
        ("a.jsonl", f"{TEXT}\n{TEXT} {comment(SIZES)}\n", [False, True], []),
        ("a.json", json.dumps(model(t=BAD, u=BAD), indent=1).replace('"u": {', f'"u": {{ {comment(SIZES)}'),
         [False, True], []),
        ("a.json", json.dumps(BAD | {"$schema": comment(SIZES)}), [False], []),  # a string
        ("a.json", f"{json.dumps(TILE)} {comment('nonsense')}", [True], ["1:127: ignore[nonsense]"]),
    ],
)  # fmt: skip
def test_a_comment_silences_a_rule_in_the_lines_of_its_tile(
    check: Call, name: str, text: str, silenced: list[bool], unmet: list[str]
) -> None:
    result = check(write(name, text), "--format", "json")
    assert [record["ok"] for record in json.loads(result.stdout)["results"]] == silenced
    messages = [line for line in result.stderr.splitlines() if "silences" in line]
    assert messages == [f"dml-tile: {name}:{place} silences nothing" for place in unmet]


def test_patterns_silence_rules_in_files(check: Call) -> None:
    write(
        "pyproject.toml",
        f"""[tool.dml-tile]
paths = ["in", "b.json"]
[tool.dml-tile.per-file-ignores]
"in/old" = ["{SIZES}", "{COUNT}"]
"nowhere" = ["DML-BUFFER"]
""",
    )
    write("in/old/a.json", BAD)
    write("in/a.json", BAD)
    write("b.json", TILE)
    result = check()
    assert [line[:22] for line in result.stdout.splitlines() if line.startswith("in")] == [
        "in/a.json:11:4: refuse", "in/old/a.json: accepte",
    ]  # fmt: skip
    beginning = "dml-tile: pyproject.toml: per-file-ignores: "
    assert result.stderr.splitlines() == [
        f"{beginning}'in/old': {COUNT} silences nothing",
        f"{beginning}'nowhere': DML-BUFFER silences nothing",
    ]
    assert check("b.json").stderr == ""
    assert check("--jobs", "2").stderr == result.stderr
    write("in/old/a.json", BAD | {"RepeatsCount": 7})
    assert f"'in/old': {COUNT}" not in check(str(Path("in/old/a.json").absolute())).stderr


# Selected and ignored rules


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
    with pytest.raises(ValueError, match=hint):
        known_rules(["DML-TILE", words])
