"""Findings that count: not those that a baseline knows, a pattern silences, or whose rule is left out."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from dml_tile.checks.baseline import MAX_BASELINE_BYTES
from dml_tile.checks.catalogue import RULES
from dml_tile.checks.selection import Selection, known_rules
from tests.helpers.check_files import BAD, INT64, TILE, captured, model, write
from tests.helpers.command_line import Call, errors_of
from tests.helpers.paths import EXAMPLES, ROOT

SIZES, COUNT = "DML-TILE-OutputTensor-Sizes", "DML-TILE-RepeatsCount"
WIDE = BAD | {"Repeats": [3]}
SPELLED = {key: value if key == "Repeats" else {"data_type": 1, "sizes": [2]} for key, value in BAD.items()}
COUNTS = re.compile(r"base\.json: (\d+) entries written, (\d+) of them kept unchecked; (\d+) dropped")
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
    common = {"source": "a.json", "operator": "/dispatchables/t", "rule": SIZES, "field": "OutputTensor.Sizes[0]"}
    assert entries() == [common | {"target": target} for target in ("5_0", "6_4")]
    before = Path("base.json").read_text()
    written(check, "a.json", "-t", "5_0", "-t", "6_4")
    assert Path("base.json").read_text() == before
    Path("base.json").unlink()
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
        ("a.jsonl", lines(captured(BAD)), lines(captured(TILE, None), *[captured(BAD)] * 3), "", 0),
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
        assert SIZES not in result.stdout
        assert [(one["verdict"], one["in_baseline"]) for one in records] == [("refused", 1)]


def test_a_run_whose_findings_are_all_known_is_headed_as_passed(check: Call) -> None:
    written(check, write("a.json", [BAD, TILE]), "-t", "6_4,5_0")
    options = "--baseline", "base.json", "-t", "6_4,5_0"
    headline = "passed, all findings are in the baseline; 2 operators: 1 refused, 1 accepted"
    assert check("a.json", *options).stdout.splitlines()[-1] == headline
    assert "passed" not in check("a.json", write("b.json", BAD), *options).stdout


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
    assert (result.exit_code, check("a.json", "--baseline", "base.json", "--fail-on", "note").exit_code) == (0, 1)
    note = "base.json: note[unused-baseline-entry] no longer occurs:"
    assert [line for line in result.stdout.splitlines() if "no longer" in line] == [
        f"{note} a.json#{KNOWN_AS} 2: [{SIZES}] OutputTensor.Sizes[0] at 6_4",
        f"{note} b.json: [{SIZES}] OutputTensor.Sizes[0] at 6_4",
    ]
    written(check, write("a.json", [BAD] * 13))
    write("a.json", [TILE])
    listed = check("a.json", "--baseline", "base.json").stdout.splitlines()
    assert sum(line.startswith(note) for line in listed) == 10
    assert "and 3 more of unused-baseline-entry" in listed


@pytest.mark.parametrize(
    "arguments", ["a.json b.json -t 6_4 --jobs 2", "a.json -t 6_4,5_0", f"a.json --ignore {SIZES}"]
)
def test_entries_of_what_this_run_does_not_check_are_not_missed(check: Call, arguments: str) -> None:
    for name in ("a.json", "b.json"):
        write(name, BAD)
    written(check, "a.json", "b.json", "-t", "6_4", "-t", "5_0")
    result = check(*arguments.split(), "--baseline", "base.json")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "unused-baseline-entry" not in result.stdout


def test_a_baseline_has_no_place_for_what_no_rule_looks_at(check: Call) -> None:
    write("a.jsonl", (ROOT / "tests" / "data" / "graph_unknown_operator.jsonl").read_text())
    written(check, "a.jsonl", "-t", "6_2")
    assert entries() == []
    operator = "graph of 1 node, 1 input, 1 output d3f5dd5c"
    entry = {"source": "a.jsonl", "operator": operator, "target": "6_2", "rule": "not-looked-at", "field": ""}
    write("base.json", {"version": 1, "findings": [entry]})
    result = check("a.jsonl", "-t", "6_2", "--fail-on", "note", "--baseline", "base.json", "--format", "concise")
    assert (result.exit_code, result.stdout.count("note[not-looked-at]")) == (1, 1)
    assert f"no longer occurs: a.jsonl#{operator}: [not-looked-at] at 6_2" in result.stdout


def test_an_unreadable_file_always_fails(check: Call) -> None:
    write("a.json", BAD)
    assert check("a.json", "missing.json", "--write-baseline", "base.json").exit_code == 2
    assert len(entries()) == 1
    assert check("a.json", "missing.json", "--baseline", "base.json").exit_code == 2
    assert "dml-tile: missing/base.json: " in errors_of(check, "a.json", "--write-baseline", "missing/base.json")
    assert not Path("missing").exists()


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
        (" " * (MAX_BASELINE_BYTES + 1), f"larger than {MAX_BASELINE_BYTES} bytes"),
    ],
    ids=["missing", "JSON", "deep", "array", "version", "type", "key", "folder", "large"],
)
def test_a_baseline_that_cannot_be_read_is_an_error(check: Call, text: str | None, message: str) -> None:
    if text == "folder":
        Path("base.json").mkdir()
    elif text is not None:
        write("base.json", text)
    errors = errors_of(check, write("a.json", INT64), "--baseline", "base.json")
    beginning = "dml-tile: base.json: " if text is None else "dml-tile: base.json: cannot be read as a baseline: "
    assert errors.startswith(beginning)
    assert message in errors


def test_no_report_takes_the_place_of_a_baseline(check: Call) -> None:
    baseline = write("base.json", '{"version": 1, "findings": []}')
    for option in "--baseline", "--write-baseline":
        assert "a report would take the place of base.json" in " ".join(
            errors_of(check, write("a.json", INT64), "--format", "json:./base.json", option, baseline).split()
        )
    assert Path(baseline).read_text() == '{"version": 1, "findings": []}'


# Patterns that silence rules


def silencing(rule: str) -> str:
    return f'[tool.dml-tile.per-file-ignores]\n"a.json" = ["{rule}"]\n'


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
    beginning = "pyproject.toml: note[unused-ignore] per-file-ignores: "
    assert [line for line in result.stdout.splitlines() if line.startswith("pyproject.toml")] == [
        f"{beginning}'in/old': {COUNT} silences nothing",
        f"{beginning}'nowhere': DML-BUFFER silences nothing",
    ]
    assert "unused-ignore" not in check("b.json").stdout
    assert check("--jobs", "2").stdout == result.stdout
    write("in/old/a.json", BAD | {"RepeatsCount": 7})
    assert f"'in/old': {COUNT}" not in check(str(Path("in/old/a.json").absolute())).stdout


def test_a_notice_is_explained(call: Call) -> None:
    printed = call("explain", "unused-ignore").stdout.splitlines()
    assert (printed[0], printed[-1]) == ("unused-ignore", "  severity: note")


@pytest.mark.parametrize(("targets", "is_unused"), [("4_0,6_4", False), ("6_4,4_0", False), ("6_4", True)])
def test_an_ignore_that_any_target_uses_is_not_called_unused(check: Call, targets: str, is_unused: bool) -> None:
    write("a.json", INT64)
    write("pyproject.toml", silencing("DML-TILE-DataType-level"))
    result = check("a.json", "-t", targets)
    assert (result.exit_code, "unused-ignore" in result.stdout) == (0, is_unused)


DYNAMIC = str(EXAMPLES / "models" / "two_tiles.onnx")
OPEN = "known-at-run-time"


def test_what_is_known_at_run_time_only_may_be_left_out_like_findings(check: Call) -> None:
    Path("a.onnx").write_bytes(Path(DYNAMIC).read_bytes())
    arguments = ["a.onnx", "--fail-on", "note", "-t", "6_4"]
    assert check(*arguments).exit_code == 1
    written(check, *arguments[:1], *arguments[3:])
    assert [entry["rule"] for entry in entries()] == [OPEN]
    pattern = f'[tool.dml-tile.per-file-ignores]\n"*.onnx" = ["{OPEN}"]\n'
    for settings, options, count in (
        ("", ["--ignore", OPEN], "1 finding not selected"),
        (pattern, [], "1 finding not selected"),
        ("", ["--baseline", "base.json"], "1 finding in the baseline"),
    ):
        write("pyproject.toml", settings)
        result = check(*arguments, *options)
        assert (result.exit_code, result.stdout.count("accepted so far at")) == (0, 1)
        assert f"; {count}\n" in result.stdout
        assert OPEN not in check(*arguments, *options, "--format", "github").stdout
    assert "unused-baseline-entry" in check(*arguments, "--baseline", "base.json", "--dim", "batch=4").stdout


def test_a_baseline_of_a_part_keeps_the_rest_and_says_what_it_did(check: Call) -> None:
    for name in ("a.json", "b.json", "c.json", "d.json"):
        write(name, BAD)
    everything = "a.json", "b.json", "c.json", "d.json", "-t", "6_4,5_0", "--write-baseline", "base.json"
    assert COUNTS.findall(check(*everything).stderr) == [("8", "0", "0")]
    write("a.json", TILE)
    write("b.json", BAD | {"RepeatsCount": 7})
    Path("c.json").unlink()
    part = check("a.json", "b.json", "-t", "6_4", "--write-baseline", "base.json")
    assert COUNTS.findall(part.stderr) == [("8", "5", "2")]
    assert [(one["source"], one["target"]) for one in entries()] == [
        ("a.json", "5_0"), ("b.json", "5_0"), *[("b.json", "6_4")] * 3, ("c.json", "5_0"),
        ("d.json", "5_0"), ("d.json", "6_4"),
    ]  # fmt: skip
    kept = check("a.json", "b.json", "-t", "6_4", "--ignore", SIZES, "--write-baseline", "base.json")
    assert [one["rule"] for one in entries() if (one["source"], one["target"]) == ("b.json", "6_4")].count(SIZES) == 1
    assert kept.exit_code == 0


# Selected and ignored rules


@pytest.mark.parametrize(
    ("option", "ok", "rules", "deselected"),
    [
        ("--ignore=DML-BUFFER,DML-TILE", True, [], 3),
        ("--ignore=DML-BUFFER --ignore=DML-TILE", True, [], 3),
        ("--select=DML-TILE-RepeatsCount", False, ["DML-TILE-RepeatsCount"], 2),
        ("--select=DML-BUFFER", True, [], 3),
    ],
)
def test_findings_count_by_their_rules(check: Call, option: str, ok: bool, rules: list[str], deselected: int) -> None:
    write("a.json", BAD | {"RepeatsCount": 7})
    result = check("a.json", *option.split(), "--format", "json")
    (only,) = json.loads(result.stdout)["results"]
    assert (result.exit_code == 0, only["ok"], only["deselected"]) == (ok, ok, deselected)
    assert ([finding["rule"] for finding in only["findings"]], only["lowest_level"]) == (rules, "never")
    assert f"; {deselected} findings not selected\n" in check("a.json", *option.split()).stdout
    assert "; 1 finding not selected\n" in check(write("b.json", BAD), "--select", "DML-BUFFER").stdout


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
        (("DML", "DML-VIA-refused"), ("DML-VIA",), ("DML-VIA-refused",), ("DML-VIA-other",)),
    ],
)  # fmt: skip
def test_what_names_a_rule_with_more_words_decides(
    select: tuple[str, ...], ignore: tuple[str, ...], taken: tuple[str, ...], left: tuple[str, ...]
) -> None:
    selection = Selection(frozenset(select), frozenset(ignore))
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
