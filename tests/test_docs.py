"""README and the pages are true: their examples do what they show, their tables are the data's, their links lead on."""

from __future__ import annotations

import re
import runpy
import shlex
import shutil
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

import dml_tile
from dml_tile.back_ends import BACK_ENDS
from dml_tile.checks.catalogue import RULES
from dml_tile.directml.data_types import TensorDataType
from dml_tile.directml.targets import WINDOWS_RELEASES, Target, tile_rows
from dml_tile.readers.sandbox import parent
from dml_tile.text import counts_text
from docs.generate import DOCS, GENERATED, word_counts
from docs.generator import rules_page
from docs.generator.api_page import TASKS
from docs.generator.examples import example_pairs
from docs.generator.images import DRAWN, drawn
from docs.generator.plan_picture import plan_picture
from docs.generator.speed_plot import speed_plot
from docs.generator.terminal_picture import first_commands, terminal_picture
from docs.generator.terse import terse_json
from docs.generator.words import words_in
from tests.helpers.command_line import Call, invoke
from tests.helpers.model_process import ModelProcess
from tests.helpers.packages import skip_without_reader
from tests.helpers.pages import COLUMNS, blocks_of, commands_of, executed, in_columns, run_python
from tests.helpers.paths import ROOT
from tests.helpers.rule_cases import CASES
from tests.helpers.terminals import on_a_terminal

PAGES: Final = sorted(path.name for path in DOCS.glob("*.md"))
WRITTEN: Final = [name for name in PAGES if name not in GENERATED]


def text_of(page: str) -> str:
    return (DOCS / page).read_text(encoding="utf-8")


STARTS_PYTEST: Final = {"testing.md"}
"""The page whose commands start pytest, many times."""


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[pytest.mark.long] * (page in STARTS_PYTEST)) for page in WRITTEN]
)
def test_the_examples_of_a_page_do_what_they_show(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parent, "started", ModelProcess)
    if "$ c++ " in text_of(page) and shutil.which("c++") is None:
        pytest.skip("there is no C++ compiler")
    skip_without_reader(text_of(page))
    assert executed(text_of(page), tmp_path) == text_of(page)


def test_no_example_is_left_out() -> None:
    for block in (block for page in WRITTEN for block in blocks_of(text_of(page))):
        assert block.file or block.language in ("console", "python", "text"), block.text


@pytest.mark.parametrize("page", GENERATED)
def test_a_generated_page_is_what_the_code_tells(page: str) -> None:
    assert GENERATED[page]() == text_of(page), "run `python -m docs.generate`"


@pytest.mark.parametrize("name", DRAWN)
def test_an_image_is_what_the_code_draws(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert drawn(DRAWN[name]) == (DOCS / "images" / name).read_text("utf-8"), "run `python -m docs.generate`"


def test_the_plot_is_of_the_table() -> None:
    plot = (DOCS / "images" / "speed.svg").read_text("utf-8")
    assert speed_plot(text_of("speed.md")) == plot, "run `python -m docs.generate`"
    assert (
        plot.count("<rect class=") == len(re.findall(r"^\| (?:bound|tile|execute) \|", text_of("speed.md"), re.M)) + 1
    )
    with pytest.raises(ValueError, match="no table"):
        speed_plot("no rows")


def test_the_picture_of_a_plan_shows_what_its_steps_write() -> None:
    picture = (DOCS / "images" / "plan.svg").read_text("utf-8")
    assert plan_picture() == picture, "run `python -m docs.generate`"
    runs = re.findall(r'class="run (\w+)"', picture)
    assert runs == ["first", "second"] + (["first"] * 5 + ["second"] * 5) * 9


def test_each_image_is_shown_with_a_text_that_describes_it() -> None:
    pages = [path.read_text("utf-8") for path in (ROOT / "README.md", *DOCS.glob("*.md"))]
    shown = [image for page in pages for image in re.findall(r"!\[(.*?)\]\((?:docs/)?images/([\w.]+)\)", page)]
    assert {name for _, name in shown} == {path.name for path in (DOCS / "images").iterdir()}
    assert all(len(text) > 40 for text, _ in shown)


def test_a_page_begins_with_whom_it_is_for_ends_with_what_to_read_next_and_is_in_the_index() -> None:
    for page in set(PAGES) - {"README.md"}:
        heading, blank, first, *_ = text_of(page).splitlines()
        assert heading.startswith("# "), page
        assert blank == "", page
        assert first.startswith("This page is for "), page
        assert text_of(page).rpartition("\n\n")[2].startswith("Next: ["), page
    linked = re.findall(r"\]\(([\w-]+\.md)\)", text_of("README.md"))
    assert sorted([*set(linked), "README.md"]) == PAGES


STARTING_POINTS: Final = ("onnxruntime.md", "cpp.md", "webnn.md", "testing.md", "check.md")


def test_the_index_begins_with_five_starting_points_of_which_each_is_short_and_begins_with_a_command() -> None:
    table = text_of("README.md").partition("\n\n|")[2].partition("\n\n")[0]
    rows = table.splitlines()[2:]
    assert [re.findall(r"\]\(([\w.-]+)\)", row)[0] for row in rows] == [*STARTING_POINTS]
    for page in STARTING_POINTS:
        assert word_counts()[f"docs/{page}"] <= 900, page
        (shown, *_) = (block for block in blocks_of(text_of(page)) if block.language in ("console", "python"))
        assert shown.language == "console", page


def test_the_documentation_has_no_more_words_than_people_read() -> None:
    assert words_in("a `b c` - 1,000\n\n```text\nd\n```\n") == 4
    assert sum(word_counts().values()) <= 21_000


def test_the_tables_of_concepts_and_models_are_the_data_s() -> None:
    rows = re.findall(r"^\| (\d_\d) \| ([^|]*) \|", text_of("concepts.md"), re.MULTILINE)
    assert rows == [(row.since.short, "4" if len(row.dimension_counts) == 1 else "1 to 8") for row in tile_rows()]
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", text_of("models.md"), re.MULTILINE)
    assert rows == [(back_end.name, back_end.title) for back_end in BACK_ENDS.values()]


# Links


@cache
def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as code hosts make them."""
    seen: Counter[str] = Counter()
    found = set()
    outside_of_blocks = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for heading in re.findall(r"^#+ (.*)$", outside_of_blocks, re.MULTILINE):
        anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        found.add(f"{anchor}-{seen[anchor]}" if seen[anchor] else anchor)
        seen[anchor] += 1
    return found


@pytest.mark.parametrize("page", [*(f"docs/{name}" for name in PAGES), "README.md", "CONTRIBUTING.md"])
def test_links_lead_somewhere(page: str) -> None:
    path = ROOT / page
    for link in re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8")):
        if link.startswith("https://"):
            continue
        file, _, anchor = link.partition("#")
        target = (path.parent / file).resolve() if file else path
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


# Rules


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_terse_descriptor_is_read_as_the_same(case: Any) -> None:
    for desc in (case.refused, case.accepted):
        if desc is None:
            assert terse_json(desc) == "null"
        else:
            assert type(desc).model_validate_json(terse_json(desc)) == desc


def test_an_untrue_example_and_a_rule_without_one_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(RULES, "DML-TILE-new", RULES["DML-TILE-DataType"])
        with pytest.raises(ValueError, match=r"no example for DML-TILE-new: see tests/helpers/rule_cases\.py"):
            rules_page.rules_page()
    swapped = {rule: (good, bad) for rule, (bad, good) in example_pairs().items()}
    monkeypatch.setattr(rules_page, "example_pairs", lambda: swapped)
    with pytest.raises(ValueError, match="the examples of DML-OPERATOR-null are not true"):
        rules_page.rules_page()


def test_no_example_breaks_a_rule_at_which_directml_may_end() -> None:
    sections = text_of("rules.md").split("\n### ")
    ending = {rule.id for rule in RULES.values() if rules_page.may_end(rule)}
    assert {"DML-TILE-Repeats-null", "DML-TABLE-empty", "DML-BUFFER-array-length"} <= ending
    for section in sections[1:]:
        rule, _, text = section.partition("\n")
        assert ("DirectML may end the process, so no example breaks it" in text) == (rule in ending), rule
        assert text.partition("\n## ")[0].count("\n```") == (2 if rule in ending else 6), rule
    assert not [line for line in text_of("rules.md").splitlines() if line.startswith("crash[")]


# The API


def test_each_public_name_has_an_entry_and_a_task_begins_with_public_names() -> None:
    assert {name for names in TASKS.values() for name in names} <= set(dml_tile.__all__)
    headings = re.findall(r"^### (\w+)$", text_of("api.md"), re.MULTILINE)
    assert set(dml_tile.__all__) <= set(headings)
    for module in ("dml_tile.testing", "dml_tile.arrays"):
        assert f"## {module}\n" in text_of("api.md")


# What runs the examples


def test_an_untrue_comment_is_told() -> None:
    run_python("print(1 + 1)  # 2", {})
    run_python("print('a long line')  # a long…", {})
    with pytest.raises(AssertionError, match="'3' is not printed"):
        run_python("print(1 + 1)  # 3", {})


def test_what_a_command_prints_takes_the_place_of_what_is_shown(tmp_path: Path) -> None:
    page = "# A page\n\n```console\n$ dml-tile check examples/int64.json -t 6_4\nnonsense\n```\n\nThe end.\n"
    shown = "examples/int64.json#/dispatchables/tile: accepted at 6_4"
    done = executed(page, tmp_path)
    assert shown in done
    assert "nonsense" not in done
    assert done.endswith("```\n\nThe end.\n")


@pytest.mark.posix
def test_a_page_shows_what_a_terminal_of_its_columns_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    for arguments in (["check", "examples/broken.json", "-t", "6_4"], ["explain", "80070057"]):
        shown = on_a_terminal(*arguments, COLUMNS=str(COLUMNS), NO_COLOR="1").replace("\r\n", "\n")
        assert in_columns(invoke(*arguments).stdout) == re.sub(r"\x1b\[[\d;]*m", "", shown)


# README


README: Final = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS: Final = list(blocks_of(README))
CONSOLES: Final = [command for block in BLOCKS if block.language == "console" for command in commands_of(block.text)]
PYTHON: Final = [block.text for block in BLOCKS if block.language == "python"]
TESTS: Final = "pytest -n auto --dist worksteal"
MAX_LINES: Final = 125
SET_UP: Final = "python3 -m venv .venv && .venv/bin/pip install -q "


def test_readme_begins_with_the_two_commands() -> None:
    first, shown = CONSOLES[0]
    assert first.startswith(f"{SET_UP}'.[onnx]' && .venv/bin/dml-tile check examples/models/classifier.onnx --via ort ")
    assert shown == "", "the picture below it shows what is printed"
    later_pip = SET_UP.replace("venv .", "venv --upgrade-deps .")
    assert CONSOLES[1:] == [(f"{later_pip}'.[test]' && .venv/bin/{TESTS}", "")]
    ours = TESTS.replace("pytest", '"$bin/pytest"').replace("auto", "$(($(nproc) + 1))")
    assert ours in (ROOT / ".ci" / "run").read_text()


def test_a_command_in_readme_s_text_runs(call: Call) -> None:
    commands = [" ".join(command.split()) for command in re.findall(r"`(?:\.venv/bin/)?dml-tile ([^`]+)`", README)]
    asking = [command for command in commands if command.partition(" ")[0] in ("explain", "device", "levels")]
    assert len(asking) == 3
    assert [call(*shlex.split(command)).exit_code for command in asking] == [0, 0, 0]


@pytest.mark.parametrize("code", [code for code in PYTHON if "def test_" not in code])
def test_a_python_example_of_readme_prints_what_its_comments_say(code: str) -> None:
    assert re.search(r"print\(.*  # ", code)
    run_python(code, {})


@pytest.mark.parametrize("code", [code for code in PYTHON if "def test_" in code])
def test_the_tests_in_readme_pass(code: str, pytester: pytest.Pytester) -> None:
    path = pytester.makepyfile(code)
    pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:asyncio", path).assert_outcomes(
        passed=code.count("def test_")
    )


@pytest.mark.posix
def test_the_picture_in_readme_is_what_its_first_command_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.delenv("DML_TILE_TARGET", raising=False)
    drawn_now = terminal_picture(first_commands(README))
    assert drawn_now == (DOCS / "images" / "terminal.svg").read_text("utf-8"), "run `python -m docs.generate`"
    assert not re.search(r"https?://(?!www\.w3\.org)", re.sub(r">[^<]*<", "", drawn_now)), "it loads nothing"


def test_readme_is_short() -> None:
    assert len(README.splitlines()) <= MAX_LINES


def test_the_matrix_in_readme_is_the_data_s() -> None:
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in re.findall(r"\| windows-.*", README)]
    expected: dict[tuple[str, ...], list[str]] = {}
    for release in WINDOWS_RELEASES:
        target = Target.parse(release.name)
        support = target.tile_support
        kinds = ["float"]
        kinds += ["int"] if TensorDataType.UINT8 in support.data_types else []
        kinds += ["int64"] if TensorDataType.INT64 in support.data_types else []
        row = target.feature_level.short, counts_text(support.dimension_counts), ", ".join(kinds)
        expected.setdefault(row, []).append(release.name)
    assert rows == [[", ".join(names), *row] for row, names in expected.items()]


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name)
def test_an_example_script_prints(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.splitlines() == [
        "windows-10-2004: UINT8 needs DML_FEATURE_LEVEL_2_1; windows-10-2004 has 2_0",
        "windows-11-21h2: accepted",
        "lowest level: 2_1",
        "[[0 1 2 0 1 2]",
        " [3 4 5 3 4 5]",
        " [0 1 2 0 1 2]",
        " [3 4 5 3 4 5]]",
    ]
