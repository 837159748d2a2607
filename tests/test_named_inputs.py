"""Files that a list names (``--files-from``), and what standard input is called (``--stdin-filename``)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.helpers.check_files import BAD, TILE, write
from tests.helpers.command_line import Call


def sources(result: Any) -> list[str]:
    return [one["source"] for one in json.loads(result.stdout)["sources"]]


# Lists of files


LISTS = {
    "lines": "a.json\nsub dir/é.json\n".encode(),
    "Windows' lines, blank and repeated ones": "a.json\r\n\r\nsub dir/é.json\r\na.json".encode(),
    "NUL": "a.json\0sub dir/é.json\0".encode(),
    "a mark": "\ufeffa.json\nsub dir/é.json".encode(),
    "PowerShell's": "a.json\r\nsub dir/é.json\r\n".encode("utf-16"),
}


@pytest.mark.parametrize("text", LISTS.values(), ids=LISTS)
@pytest.mark.parametrize("is_piped", [False, True])
def test_the_files_of_a_list_are_checked(check: Call, text: bytes, is_piped: bool) -> None:
    write("a.json", TILE)
    write("sub dir/é.json", TILE)
    Path("list.txt").write_bytes(text)
    if is_piped:
        result = check("--files-from", "-", "--format", "json", stdin=text)
    else:
        result = check("--files-from", "list.txt", "--format", "json")
    assert result.exit_code == 0, result.stderr
    assert sources(result) == ["a.json", "sub dir/é.json"]


def test_names_of_a_list_are_neither_patterns_nor_standard_input_nor_urls(check: Call) -> None:
    for name in ("-", "bb.json"):
        write(name, TILE)
    Path("list.txt").write_text("-\nb*.json\nfile://bb.json\nmissing.json\n")
    result = check("--files-from", "list.txt", "bb.json", "--format", "json", stdin=json.dumps(BAD))
    assert sources(result) == ["bb.json", "./-", "b*.json", "file://bb.json", "missing.json"]
    errors = {one["source"]: one["message"] for one in json.loads(result.stdout)["errors"]}
    assert errors == dict.fromkeys(["b*.json", "file://bb.json", "missing.json"], "No such file or directory")


def test_a_list_adds_to_what_is_named_and_takes_the_place_of_paths(check: Call) -> None:
    write("pyproject.toml", '[tool.dml-tile]\npaths = ["bad.json"]\n')
    write("bad.json", BAD)
    write("in/a.json", TILE)
    write("b.json", TILE)
    Path("list.txt").write_text("in\npackage.json\n")
    write("package.json", {"name": "x"})
    result = check("b.json", "--files-from", "list.txt", "--skip-others", "--format", "json")
    assert (result.exit_code, sources(result)) == (0, ["b.json", "in/a.json", "package.json"])
    shown = check("b.json", "--files-from", "list.txt", "--show-settings").stdout
    assert 'paths = ["b.json", "in", "package.json"]  # option\n' in shown


@pytest.mark.posix
@pytest.mark.parametrize(
    ("root", "title"), [(".git", "the repository"), ("pyproject.toml", "the folder of pyproject.toml"), ("", "")]
)
def test_names_of_a_list_lead_to_files_and_folders_of_the_project(
    check: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, root: str, title: str
) -> None:
    project = tmp_path / "project"
    write("outside/secret.json", BAD | {"Repeats": [77777]})
    write("project/a.json", TILE)
    write("project/in/b.json", TILE)
    write("project/in/c.json", TILE)
    if root == ".git":
        (project / root).mkdir()
    elif root:
        write(f"project/{root}", "[tool.dml-tile]\n")
    monkeypatch.chdir(project / "in")
    Path("linked").symlink_to("../../outside")
    Path("linked.json").symlink_to("../../outside/secret.json")
    Path("inner.json").symlink_to("b.json")
    Path("zero.json").symlink_to("/dev/zero")
    Path("loop.json").symlink_to("loop.json")
    os.mkfifo("fifo.json")
    wrong = {
        **dict.fromkeys(["linked.json", "linked/secret.json", "linked", "zero.json"], "leads out of"),
        **dict.fromkeys(["../../outside/secret.json", str(tmp_path / "outside"), "/dev/stdin"], "leads out of"),
        "fifo.json": "is neither a regular file nor a folder",
        "loop.json": "is no usable path",
        "./" * 300 + "a/" * 256 + "x.json": "has 257 parts; a path may have 256",
    }
    above = [] if title == "" else ["../a.json", str(project / "a.json")]
    result = check("--files-from", "-", "--format", "json", stdin="\0".join([*wrong, *above, "b.json", "inner.json"]))
    assert result.exit_code == 2
    errors = {one["source"]: one["message"] for one in json.loads(result.stdout)["errors"]}
    assert errors.keys() == wrong.keys()
    for name, reason in wrong.items():
        assert errors[name].startswith(reason), name
        assert reason != "leads out of" or f"leads out of {title or 'the current folder'}; --root" in errors[name]
    assert "77777" not in result.stdout + result.stderr
    assert [one for one in sources(result) if one not in wrong] == [*above[:1], "b.json", "inner.json"]


@pytest.mark.posix
@pytest.mark.parametrize(("path", "arguments"), [("fifo.json", []), ("f*.json", []), ("", ["f*.json"])])
def test_settings_and_patterns_name_regular_files_and_folders(check: Call, path: str, arguments: list[str]) -> None:
    os.mkfifo("fifo.json")
    write("pyproject.toml", f"[tool.dml-tile]\npaths = ['{path}']\n")
    result = check(*arguments)
    assert (result.exit_code, result.stderr) == (2, "dml-tile: fifo.json: is neither a regular file nor a folder\n")


# What standard input is called


def test_standard_input_has_the_name_of_a_file(check: Call) -> None:
    Path(".git").mkdir()
    called = "--stdin-filename", "sub/a.json"
    text = json.dumps(BAD)
    assert check("-", *called, stdin=text).stdout.startswith("sub/a.json:1:")
    assert check("-", *called, "--format", "github", stdin=text).stdout.startswith("::error file=sub/a.json,line=1,")
    (run,) = json.loads(check("-", *called, "--format", "sarif", stdin=text).stdout)["runs"]
    (location,) = run["results"][0]["locations"]
    assert location["physicalLocation"]["artifactLocation"] == {"uri": "sub/a.json", "uriBaseId": "SRCROOT"}
    broken = check("-", *called, stdin="{")
    assert broken.stderr.startswith("dml-tile: sub/a.json:1:1: unreadable JSON")
    assert not Path("sub").exists()


def test_standard_input_has_the_ignores_the_baseline_and_the_kind_of_its_name(check: Call) -> None:
    write("pyproject.toml", '[tool.dml-tile.per-file-ignores]\n"/old/*.json" = ["DML-TILE-OutputTensor-Sizes"]\n')
    write("a.json", BAD)
    check("a.json", "--write-baseline", "base.json")
    text = json.dumps(BAD)
    assert check("-", stdin=text).exit_code == 1
    assert check("-", "--stdin-filename", "old/b.json", stdin=text).exit_code == 0
    assert check("-", "--stdin-filename", "a.json", "--baseline", "base.json", stdin=text).exit_code == 0
    assert check("-", "--stdin-filename", "b.json", "--baseline", "base.json", stdin=text).exit_code == 1
    lines = f"{json.dumps(TILE)}\n{text}\n"
    assert check("-", "--stdin-filename", "a.jsonl", stdin=lines).stdout.startswith("a.jsonl:1: accepted")
    empty = check("-", "--stdin-filename", "a.jsonl", stdin="")
    assert (empty.exit_code, empty.stderr) == (2, "dml-tile: a.jsonl: holds nothing to check\n")
