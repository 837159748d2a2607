"""The language of .gitignore in .gitignore itself, exclude and per-file-ignores; git is asked about random patterns."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from random import Random

import pytest

from dml_tile.checks.files import Exclusion
from dml_tile.files.patterns import Patterns
from dml_tile.files.repository import GITIGNORE, ignores_within, is_ignored
from tests.helpers.costs import at_most


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("build", ["build", "a/build", "a/build/x.json"], ["a/builds", "Build"]),
        ("build/", ["build/x.json"], ["build", "a/build"]),
        ("/build", ["build"], ["a/build"]),
        ("a/build", ["a/build", "a/build/x"], ["b/a/build", "build"]),
        ("*.tmp.onnx", ["x.tmp.onnx", "a/.tmp.onnx"], ["x.onnx"]),
        ("a/*", ["a/x.json", "a/b/x.json"], ["b/x.json", "a"]),
        ("a/*.json", ["a/x.json"], ["a/b/x.json"]),
        ("a/**/x.json", ["a/x.json", "a/b/x.json", "a/b/c/x.json"], ["x.json", "b/a/x.json", "a/y.json"]),
        ("**/a/b", ["a/b", "x/y/a/b/z"], ["a/x/b"]),
        ("a/**", ["a/x", "a/b/x"], ["a", "b/a/x"]),
        ("a/**/**/b", ["a/b", "a/x/y/b"], ["ab"]),
        ("**", ["a", "a/b"], []),
        ("a**b", ["ab", "a12b"], ["a/b"]),
        ("?[a-c]", ["xa", "xc"], ["xd", "a"]),
        ("[!a-c]", ["d"], ["a"]),
        ("[^a]", ["b"], ["a"]),
        ("a[]-]", ["a]", "a-"], ["ab"]),
        ("[[:digit:]_]x", ["1x", "_x"], ["ax"]),
        (r"\*", ["*"], ["a"]),
        (r"[\]]", ["]"], ["\\"]),
        ("a ", ["a"], ["a "]),
        (r"a\ ", ["a "], ["a"]),
        (r"\#a", ["#a"], []),
        (r"\!a", ["!a"], ["a"]),
        ("[[:digits:]]", [], ["1"]),
        ("[b-a]", [], ["a", "b"]),
        ("[a", [], ["[a", "a"]),
        ("a\\", [], ["a", "a\\"]),
        ("a//b", [], ["a/b"]),
        ("#a", [], ["#a", "a"]),
        ("", [], ["a"]),
        ("/", [], ["a"]),
        ("!a", [], ["a"]),
    ],
)
def test_a_pattern_matches_what_gitignore_s_does(pattern: str, matching: list[str], others: list[str]) -> None:
    exclusion = Exclusion([pattern])
    assert [path for path in (*matching, *others) if exclusion.leaves_out(path)] == matching


def test_the_last_pattern_decides_but_nothing_returns_from_a_folder_that_is_left_out() -> None:
    exclusion = Exclusion(["*.json", "!keep.json", "old", "!old/keep.json", "a.json"])
    left_out = ["x.json", "a.json", "old/keep.json", "in/x.json", "old/x.onnx"]
    others = ["keep.json", "in/keep.json", "x.onnx"]
    assert [path for path in (*left_out, *others) if exclusion.leaves_out(path)] == left_out
    assert exclusion.patterns.met == {0, 1, 2, 4}
    assert exclusion.matching("old/keep.json") == {0, 1, 2, 3}


def test_patterns_begin_at_their_folder_and_those_of_a_name_hold_elsewhere_too() -> None:
    exclusion = Exclusion(["b/c", "d", "**/e/f"], "a")
    left_out = ["a/b/c", "d", "../d/x", "/d", "../../e/f", "x/e/f"]
    assert [path for path in (*left_out, "a/x/b/c", "b/c", "-") if exclusion.leaves_out(path)] == left_out


NAMES = ("a", "b", "ab", "a.b", "[", "*", "a b", "!", "#", "-", "]")
PARTS = ("a", "b", "*", "**", "?", "a*", "*b", "*a*b*", "[ab]", "[!a]", "[^-a]", "[]a]", r"\*", r"\a", "a?", "***", "")


@pytest.mark.skipif(shutil.which("git") is None, reason="git is asked")
@pytest.mark.parametrize("seed", range(3))
def test_random_patterns_ignore_what_git_ignores(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    paths = ["/".join(random.choices(NAMES, k=random.randint(1, 4))) for _ in range(120)]
    lines = []
    for _ in range(400):
        parts = "/".join(random.choices(PARTS, k=random.randint(1, 4)))
        lines.append(random.choice(["", "", "", "!", "/"]) + parts + random.choice(["", "", "/", " "]))
    for at in range(0, len(lines), 8):
        some = lines[at : at + 8]
        (tmp_path / GITIGNORE).write_text("\n".join(some) + "\n")
        command = ["git", "-C", str(tmp_path), "check-ignore", "--no-index", "-z", "--stdin"]
        asked = subprocess.run(command, input="\0".join(paths), capture_output=True, check=False, text=True)
        patterns = Patterns(some)
        assert {path for path in paths if patterns.leaves_out(path)} == {*asked.stdout.split("\0")} - {""}, some


@pytest.mark.posix
@pytest.mark.parametrize(("name", "is_read"), [("regular", True), ("link", False), ("pipe", False), ("folder", False)])
def test_only_a_regular_file_is_read_as_gitignore(name: str, is_read: bool, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").write_text("a.json\n")
    made = tmp_path / "in" / GITIGNORE
    made.parent.mkdir()
    makers = {"pipe": lambda: os.mkfifo(made), "link": lambda: made.symlink_to("../elsewhere"), "folder": made.mkdir}
    makers.get(name, lambda: made.write_text("a.json\n"))()
    ignores = ignores_within(str(made.parent), ())
    assert bool(ignores) == is_read
    assert is_ignored(str(made.parent / "a.json"), ignores) == is_read


def test_folders_that_add_nothing_share_the_state_of_many_patterns() -> None:
    patterns = Patterns([f"name{i}" for i in range(1000)])
    with at_most(4 * 2**20):
        assert [i for i in range(1000) if patterns.leaves_out(f"folder{i}/a/x.json")] == []
        assert patterns.leaves_out("folder0/name7/x.json")
