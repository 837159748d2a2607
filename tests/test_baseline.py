"""Baselines: findings that are known do not fail, new ones do, and what is gone is reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dml_tile.checks.baseline import MAX_BYTES
from tests.helpers.check_files import BAD, INT64, TILE, captured, model, write
from tests.helpers.command_line import Call

RULE = "DML-TILE-OutputTensor-Sizes"
WIDE = BAD | {"Repeats": [3]}
SPELLED = {key: value if key == "Repeats" else {"data_type": 1, "sizes": [2]} for key, value in BAD.items()}
KNOWN_AS = "FLOAT32 {2} x {2} -> {2} b5d2b7b4"


def entries(file: str = "base.json") -> list[dict[str, str]]:
    data = json.loads(Path(file).read_text())
    assert data["version"] == 1
    found: list[dict[str, str]] = data["findings"]
    return found


def written(check: Call, *arguments: str) -> None:
    assert check(*arguments, "--write-baseline", "base.json").exit_code == 0


def lines(*descs: Any) -> str:
    return "".join(f"{json.dumps(desc)}\n" for desc in descs)


def test_a_baseline_has_an_entry_for_each_finding_without_its_line(check: Call) -> None:
    write("a.json", model(t=BAD))
    written(check, "a.json", "-t", "6_4", "-t", "5_0")
    common = {"source": "a.json", "tile": "/dispatchables/t", "rule": RULE, "field": "OutputTensor.Sizes[0]"}
    assert entries() == [common | {"target": target} for target in ("5_0", "6_4")]
    before = Path("base.json").read_text()
    written(check, "a.json", "-t", "5_0", "-t", "6_4")
    assert Path("base.json").read_text() == before
    written(check, write("b.json", TILE))
    assert entries() == []


MOVED = "\n\n" + json.dumps(BAD)


@pytest.mark.parametrize(
    ("name", "before", "after", "options", "new"),
    [
        ("a.json", BAD, MOVED, "", 0),
        ("a.json", model(t=BAD), model(t=BAD), "", 0),
        ("a.json", model(t=BAD), model(t=BAD | {"Repeats": [0]}), "", 1),  # another rule
        ("a.json", model(t=BAD), model(t=BAD), "-t 5_0", 1),  # another target
        ("a.json", model(t=BAD), model(u=BAD), "", 1),  # another name
        ("a.json", BAD, BAD, "b.json", 1),  # another source
        # of a list, what an item says
        ("a.jsonl", lines(BAD, WIDE), lines(TILE, BAD, TILE, WIDE), "", 0),
        ("a.json", [BAD, WIDE], [WIDE, SPELLED], "", 0),
        ("a.json", [BAD], [WIDE], "", 1),
        # equal ones are counted, but not those of a capture
        ("a.json", [BAD, BAD], [TILE, BAD, BAD], "", 0),
        ("a.json", [BAD], [BAD, BAD], "", 1),
        ("a.jsonl", lines(captured(BAD)), lines(captured(TILE), *[captured(BAD)] * 3), "", 0),
        ("a.jsonl", lines(captured(BAD)), lines(captured(BAD), captured(WIDE)), "", 1),
    ],
)
def test_what_is_in_the_baseline_passes_wherever_it_has_moved_and_all_else_fails(
    check: Call, name: str, before: Any, after: Any, options: str, new: int
) -> None:
    written(check, write(name, before))
    write("b.json", BAD)
    arguments = write(name, after), *options.split(), "--baseline", "base.json"
    records = json.loads(check(*arguments, "--format", "json").stdout)["results"]
    assert sum(len(record["findings"]) for record in records if not record["ok"]) == new
    result = check(*arguments)
    assert result.exit_code == bool(new)
    if after == MOVED:
        assert result.stderr == ""
        assert result.stdout.startswith("a.json:3:106: refused at 6_4; ")
        assert result.stdout.splitlines()[0].endswith("; 1 finding in the baseline")
        assert RULE not in result.stdout
        assert [(one["verdict"], one["in_baseline"]) for one in records] == [("refused", 1)]


def test_a_run_whose_findings_are_all_known_is_headed_as_passed(check: Call) -> None:
    written(check, write("a.json", [BAD, TILE]), "-t", "6_4,5_0")
    options = "--baseline", "base.json", "-t", "6_4,5_0"
    headline = "passed, all findings are in the baseline; 2 tiles: 1 refused, 1 accepted"
    assert check("a.json", *options).stdout.splitlines()[-1] == headline
    assert check("a.json", *options, "--format", "markdown").stdout.startswith(f"## Tiles on DirectML: {headline}\n")
    assert f"<p>{headline}</p>" in check("a.json", *options, "--format", "html").stdout
    assert "passed" not in check("a.json", write("b.json", BAD), *options).stdout


def test_pruning_takes_out_what_is_fixed_and_adds_nothing(check: Call) -> None:
    write("a.json", [BAD, WIDE])
    written(check, "a.json", write("b.json", BAD), "-t", "6_4,5_0")
    before = entries()
    write("a.json", [WIDE, BAD | {"Repeats": [4]}])
    write("b.json", TILE)
    result = check("a.json", "b.json", "-t", "6_4", "--write-baseline", "base.json", "--prune")
    assert (result.exit_code, result.stderr.count("taken out: ")) == (1, 2)
    fixed = ("a.json", "6_4", KNOWN_AS), ("b.json", "6_4", "")
    assert entries() == [one for one in before if (one["source"], one["target"], one["tile"]) not in fixed]
    assert check("a.json", "--prune").exit_code == 2


def test_sources_are_known_from_any_folder(check: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    write("models/a.json", BAD)
    written(check, "models/a.json")
    assert entries()[0]["source"] == "models/a.json"
    monkeypatch.chdir("models")
    assert check("a.json", "--baseline", "../base.json").exit_code == 0
    assert check("-", "--write-baseline", "base.json", stdin=json.dumps(BAD)).exit_code == 0
    assert [entry["source"] for entry in entries()] == ["-"]
    assert check("-", "--baseline", "base.json", stdin=json.dumps(BAD)).exit_code == 0


def test_entries_that_no_longer_occur_are_reported_and_fail_nothing(check: Call) -> None:
    write("a.json", [BAD, BAD])
    write("b.json", BAD)
    written(check, "a.json", "b.json")
    write("a.json", [BAD, TILE])
    Path("b.json").unlink()
    result = check("a.json", "--baseline", "base.json")
    assert result.exit_code == 0
    assert result.stderr.splitlines() == [
        f"dml-tile: base.json: no longer occurs: a.json#{KNOWN_AS} 2: [{RULE}] OutputTensor.Sizes[0] at 6_4",
        f"dml-tile: base.json: no longer occurs: b.json: [{RULE}] OutputTensor.Sizes[0] at 6_4",
    ]
    written(check, write("a.json", [BAD] * 13))
    write("a.json", [TILE])
    *_, last = listed = check("a.json", "--baseline", "base.json").stderr.splitlines()
    assert (len(listed), last) == (11, "dml-tile: base.json: and 3 more")


def test_entries_of_what_this_run_does_not_check_are_not_missed(check: Call) -> None:
    for name in ("a.json", "b.json"):
        write(name, BAD)
    written(check, "a.json", "b.json", "-t", "6_4", "-t", "5_0")
    assert check("a.json", "b.json", "--baseline", "base.json", "-t", "6_4", "--jobs", "2").stderr == ""
    assert check("a.json", "--baseline", "base.json", "-t", "6_4").stderr == ""
    assert check("a.json", "--baseline", "base.json", "-t", "6_4", "--ignore", RULE).stderr == ""


def test_an_unreadable_file_always_fails(check: Call) -> None:
    write("a.json", BAD)
    assert check("a.json", "missing.json", "--write-baseline", "base.json").exit_code == 2
    assert len(entries()) == 1
    assert check("a.json", "missing.json", "--baseline", "base.json").exit_code == 2


def test_a_project_s_baseline_is_a_setting(check: Call) -> None:
    write("pyproject.toml", '[tool.dml-tile]\nbaseline = "base.json"\n')
    written(check, write("a.json", BAD))
    assert check("a.json").exit_code == 0
    assert check("a.json", "--baseline", write("empty.json", '{"version": 1, "findings": []}')).exit_code == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "there is no such file; --write-baseline writes it"),
        ("{", "unreadable JSON: Expecting property name"),
        ("[" * 100_000, "unreadable JSON: "),
        ("[]", "is an array of 0; an object was expected"),
        ('{"version": 2, "findings": []}', "/version: version is 2; 1 was expected"),
        ('{"version": 1, "findings": [{"source": 3}]}', "/findings/0/source: findings[0].source is 3; a string was"),
        ('{"version": 1, "findings": [{"rul": "x"}]}', "findings[0]"),
        ("folder", "Is a directory"),
        (" " * (MAX_BYTES + 1), f"larger than {MAX_BYTES} bytes"),
    ],
    ids=["missing", "JSON", "deep", "array", "version", "type", "key", "folder", "large"],
)
def test_a_baseline_that_cannot_be_read_is_an_error(check: Call, text: str | None, message: str) -> None:
    if text == "folder":
        Path("base.json").mkdir()
    elif text is not None:
        write("base.json", text)
    result = check(write("a.json", INT64), "--baseline", "base.json")
    assert result.exit_code == 2
    assert result.stderr.startswith("dml-tile: base.json: ")
    assert message in result.stderr
