"""Folders, patterns and names of files: each file is read once, as itself, whatever its name looks like."""

from __future__ import annotations

import errno
import glob
import json
import os
import random
import re
import subprocess
import sys
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from dml_tile.files.paths import MAX_PARTS, Matches, ProjectPath
from dml_tile.readers.sources import expanded
from tests.helpers.check_files import BAD, FLAT, TILE, configure, sources, write
from tests.helpers.command_line import Call, errors_of
from tests.helpers.descriptors import page_tile
from tests.helpers.dxdispatch_models import model, write_file, zeros

pytestmark = pytest.mark.usefixtures("call")
DESCRIPTOR = page_tile().model_dump_json(by_alias=True)


def found(contents: Mapping[str, str | bytes], folder: str = ".", **options: Any) -> list[str]:
    """Write files; return the paths of those that a folder stands for."""
    for name, content in contents.items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return [Path(name).relative_to(folder).as_posix() for name in expanded(folder, **options)]


GRAPH = b"\n\x10\n\x01x\x12\x0bPlaceholder"


@pytest.mark.parametrize("name", ["missing.txt", "-", "a" * 5000])
def test_a_name_that_is_no_folder_stands_for_itself(name: str) -> None:
    assert list(expanded(name)) == [name]


@pytest.mark.parametrize(
    ("contents", "expected"),
    [
        (
            {"b.onnx": "", "a/c.tflite": "", "a/b.json": DESCRIPTOR, "Z.ONNX": "", "lines.jsonl": DESCRIPTOR},
            ["Z.ONNX", "b.onnx", "lines.jsonl", "a/b.json", "a/c.tflite"],
        ),
        ({"readme.md": "InputTensor", "weights.bin": ""}, []),
        ({"config.json": '{"hidden_size": 8}', "truncated.json": DESCRIPTOR[:40]}, ["truncated.json"]),
        ({"assets/a.onnx": "", "variables/v.json": DESCRIPTOR}, ["assets/a.onnx", "variables/v.json"]),
    ],
    ids=["at any depth, by name", "others", "JSON", "what is no saved model"],
)
def test_a_folder_stands_for_what_may_have_tiles(contents: dict[str, str | bytes], expected: list[str]) -> None:
    assert found(contents) == expected


def test_hidden_folders_and_links_that_leave_are_passed_over() -> None:
    for name in ("outside.onnx", "models/.git/a.onnx", "models/inside.onnx"):
        write(name, "")
    links = {"link": "../outside.onnx", "again": "inside.onnx", "nowhere": "missing.onnx", "itself": "itself.onnx"}
    for link, target in links.items():
        Path(f"models/{link}.onnx").symlink_to(target)
    Path("models/round").symlink_to(".")
    assert found({}, "models") == ["again.onnx", "inside.onnx"]


IGNORED = (
    *("build/b.json", "in/c.tmp.json", "in/node_modules/d.json", "in/env/e.json", "in/.hidden/f.json", "in/g/h.json"),
)
STARS = "*a" * 60


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (".", ["a.json", "in/keep.tmp.json"]),
        ("in", ["keep.tmp.json"]),
        # what is named is walked
        ("build", ["b.json"]),
        ("in/g", ["h.json"]),
        ("in/env", ["e.json"]),
        ("in/.hidden", ["f.json"]),
    ],
)
def test_what_developers_do_not_expect_is_left_out_of_folders(name: str, expected: list[str]) -> None:
    contents = dict.fromkeys((*IGNORED, "a.json", "in/keep.tmp.json", ".git/x", "in/env/pyvenv.cfg"), DESCRIPTOR)
    contents[".gitignore"] = f"build/\n*.tmp.json\n!\n{STARS}\n\n# a comment\n"
    contents["in/.gitignore"] = "!keep.tmp.json\n/g\n"
    contents[f"{'a' * 250}.json"] = ""  # which takes long to match with many stars
    assert found(contents, name) == expected
    assert {*found({}, ignores_none=True)} == {*IGNORED, "a.json", "in/keep.tmp.json"}


def test_a_saved_model_is_of_a_kind_that_is_not_read() -> None:
    parts = ("saved_model.pb", "fingerprint.pb", "keras_metadata.pb", "variables/variables.index")
    saved = {f"models/saved/{part}": GRAPH + DESCRIPTOR.encode() for part in parts}
    assert found(saved | {"z.pb": GRAPH, "models/saved/other.onnx": b""}) == ["z.pb", "models/saved/other.onnx"]


@pytest.mark.posix
def test_what_is_no_file_is_passed_over() -> None:
    os.mkfifo("pipe.json")
    os.mkfifo("pipe.onnx")
    Path("folder.onnx").mkdir()
    assert found({}, "folder.onnx") == found({}) == []


def test_what_cannot_be_opened_is_left_to_its_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    scandir = os.scandir

    def refusing(path: Any, *_: object, **__: object) -> Any:
        if isinstance(path, Path) or path.endswith("closed"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return scandir(path)

    Path("closed").mkdir()
    assert found({"a.json": "{}", "readme.md": "", "z/b.onnx": ""}) == ["z/b.onnx"]
    monkeypatch.setattr(os, "scandir", refusing)
    monkeypatch.setattr(Path, "open", refusing)
    assert found({}) == ["a.json", "z/b.onnx", "closed"]
    assert list(expanded("closed")) == ["closed"]


# Names and patterns


OTHER: Final = {"InputTensor": FLAT | {"DataType": "INT8"}, "OutputTensor": FLAT | {"DataType": "INT8"}, "Repeats": [1]}
LIKE_URLS: Final = ("plain::y.json", "simplecache::memory:x.json", "file::x.json", "https:x.json", "zip:/x.json")


# A name is a path


@pytest.mark.parametrize(
    ("arguments", "settings"),
    [
        (["."], ""),
        (["*.json", "zip?/*"], ""),
        ([], f"paths = {json.dumps(LIKE_URLS)}"),
        ([], 'paths = ["*.json", "."]'),
    ],
    ids=["folder", "patterns", "paths", "patterns in paths"],
)
def test_a_file_is_read_as_itself_whatever_its_name_is(check: Call, arguments: list[str], settings: str) -> None:
    for name in LIKE_URLS:
        write(name, TILE)
    configure(settings)
    assert sorted(sources(check, *arguments)) == sorted(LIKE_URLS)
    assert sources(check, *LIKE_URLS, "zip://x.json") == [*LIKE_URLS]


@pytest.mark.parametrize(
    ("arguments", "settings"),
    [([], 'paths = ["-"]'), ([], 'paths = ["?"]'), ([], 'paths = ["./-"]'), (["[-]"], ""), (["[!p]"], "")],
)
def test_a_file_called_like_standard_input_is_that_file(call: Call, arguments: list[str], settings: str) -> None:
    write("-", TILE)
    configure(settings)
    result = call("check", *arguments, stdin=json.dumps(BAD).encode())
    assert (result.exit_code, result.stdout.partition(":")[0]) == (0, "./-")
    assert call("check", "-", stdin=json.dumps(BAD).encode()).exit_code == 1


@pytest.fixture
def project(check: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A project, which becomes the current folder, with links out of it and within it."""
    write("outside/x.json", OTHER)
    write("project/a.json", TILE)
    write("project/in/x.json", TILE)
    for link, target in (("lnk", "outside"), ("lnk.json", "outside/x.json"), ("same", "project/in")):
        (tmp_path / "project" / link).symlink_to(tmp_path / target)
    monkeypatch.chdir("project")


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("pattern", ["ln?/*.json", "l*/x.json", "*", "ln?", "**/ln?/x.json", "ln?.json"])
def test_a_pattern_in_paths_finds_nothing_outside_of_the_project(check: Call, pattern: str) -> None:
    configure(f'paths = ["{pattern}", "a.json"]')
    result = check("--format", "json")
    assert "INT8" not in result.stdout
    found = {source["source"] for source in json.loads(result.stdout)["sources"]}
    assert found <= {"a.json", "in/x.json", "same/x.json", "pyproject.toml"}
    assert result.exit_code == 2
    assert "leads out of the folder of pyproject.toml" in result.stderr
    configure(f'paths = ["{pattern}", "a.json"]\nexclude = ["lnk*"]')
    assert "leads out" not in check().stderr


@pytest.mark.usefixtures("project")
def test_any_depth_passes_over_links_out_of_the_project(check: Call) -> None:
    configure('paths = ["**/x.json"]')
    assert sources(check) == ["in/x.json"]
    assert Matches(pattern := ProjectPath("**/x.json", Path())).outside == {pattern: []}
    assert sources(check, "**/x.json") == ["in/x.json"]
    assert sources(check, f"{Path.cwd()}/**/x.json") == [f"{Path.cwd()}/{name}/x.json" for name in ("in", "lnk")]


# Each file once


def test_each_file_is_checked_once_whatever_names_it(check: Call) -> None:
    for name in ("a/x.json", "a/b/x.json", "a/b/c/y.json"):
        write(name, TILE)
    names = ["a/b/x.json", "a/x.json", "a/b/c/y.json"]
    absolute = str(Path("a/x.json").absolute())
    found = sources(check, "a/b", "a", ".", "a/b/x.json", "./a//x.json", absolute, "a/b/../x.json", str(Path.cwd()))
    assert found == [names[0], names[2], names[1]]
    assert sources(check, absolute, "a/x.json") == [absolute]
    assert sorted(sources(check, "**", "**/*.json", "**/**/x.json", "a/**")) == sorted(names)


@pytest.mark.parametrize("pattern", ["**/" * 12 + "*.json", "**/d/**/d/**/d/**/*.json", "*/../" * 12 + "**/x.json"])
def test_a_pattern_takes_one_walk(check: Call, monkeypatch: pytest.MonkeyPatch, pattern: str) -> None:
    for depth in range(1, 14):
        write(f"{'d/' * depth}x.json", TILE)
    listed: list[str] = []
    listdir = os.listdir

    def counted(path: str) -> list[str]:
        listed.append(path)
        return listdir(path)

    monkeypatch.setattr(os, "listdir", counted)
    found = Matches(pattern).names[pattern]
    assert len(set(map(os.path.realpath, found))) == len(found) in (11, 13)
    assert len(listed) <= 40
    assert len(sources(check, pattern)) == len(found)


def test_links_are_entered_once(tmp_path: Path) -> None:
    write("real/x.json", TILE)
    for name in ("all", "again", "real/up"):
        Path(name).symlink_to(tmp_path)
    Path("as.json").symlink_to("real/x.json")
    assert Matches("**/*.json", "all/*/x.json").names == {
        "**/*.json": ["as.json", "real/x.json"],
        "all/*/x.json": ["all/real/x.json"],
    }
    assert len(Matches(pattern := "*/" * 20 + "*.json").names[pattern]) == 2


def test_folders_share_what_is_looked_for_in_them(monkeypatch: pytest.MonkeyPatch) -> None:
    for i in range(50):
        write(f"folder{i}/x.json", TILE)
    asked = []
    awaited_at = Matches._awaited_at

    def counted(self: Matches, places: frozenset[int]) -> Any:
        asked.append(places)
        return awaited_at(self, places)

    monkeypatch.setattr(Matches, "_awaited_at", counted)
    assert not any(Matches(*(f"**/name{i}" for i in range(10))).names.values())
    assert len(asked) == 1


PARTS: Final = ("*", "**", "a", "?", "*.json", "[ab]", "x.json", ".*", "..", ".")


@pytest.mark.parametrize("seed", range(20))
def test_a_pattern_matches_what_glob_does(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(seed)
    folder = tmp_path / "1/2/3/4"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder)
    folders = [Path()]
    for _ in range(chance.randint(1, 8)):
        folders.append(chance.choice(folders) / chance.choice(["a", "b", ".h", "c d"]))
        folders[-1].mkdir(exist_ok=True)
    for _ in range(12):
        file = chance.choice(folders) / chance.choice(["x.json", "y.json", ".z.json", "a.json", "q[1].json"])
        file.touch()
    patterns = []
    for _ in range(50):
        pattern = "/".join(chance.choices(PARTS, k=chance.randint(1, 4)))
        pattern = f"{chance.choice(['', './', f'{folder}/'])}{pattern}{chance.choice(['', '', '/'])}"
        patterns += [pattern] * glob.has_magic(pattern)
    matches = Matches(*patterns)
    for pattern in patterns:
        globbed = glob.iglob(pattern, recursive=True)  # noqa: PTH207  # which has another idea of **
        expected = {os.path.realpath(path) for path in globbed if os.access(path, os.F_OK)}
        assert set(map(os.path.realpath, matches.names[pattern])) == expected, pattern
        assert matches.names[pattern] == Matches(pattern).names[pattern]


def test_a_name_is_found_where_the_file_system_lists_it_in_another_spelling(monkeypatch: pytest.MonkeyPatch) -> None:
    """As macOS does, where é may be listed as e and an accent."""
    write("a/caf\N{LATIN SMALL LETTER E WITH ACUTE}.json", TILE)
    listdir = os.listdir
    monkeypatch.setattr(os, "listdir", lambda path: [unicodedata.normalize("NFD", name) for name in listdir(path)])
    pattern = "**/caf\N{LATIN SMALL LETTER E WITH ACUTE}.json"
    assert Matches(pattern).names[pattern] == ["a/caf\N{LATIN SMALL LETTER E WITH ACUTE}.json"]


# Long and deep


@pytest.mark.parametrize(
    "pattern", ["*/" * 2000 + "x.json", "**/" * 2000 + "x.json", "[a]/" * 100_000, "a/" * 2000 + "*"]
)
def test_a_pattern_of_thousands_of_parts_is_refused(check: Call, pattern: str) -> None:
    write("x.json", TILE)
    assert re.fullmatch(
        rf"has \d+ parts; a pattern may have {MAX_PARTS}", Matches(pattern, "*").problems[pattern].message
    )
    configure(f'paths = ["{pattern[:8000]}"]')
    results = [check(pattern[:8000]), check()]
    configure(f'paths = ["{"a/" * 2000}a.json"]')
    for result in (*results, check()):
        assert result.exit_code == 2
        assert len(result.stderr.splitlines()) == 1
        assert f" may have {MAX_PARTS}" in result.stderr


def test_a_run_writes_into_nested_folders(call: Call) -> None:
    target = "d/" * 200 + "x.bin"
    write("m.json", model(resources={"a": zeros(1)}, dispatchables={}, commands=[write_file("a", target)]))
    assert call("run", "m.json").exit_code == 0
    assert Path(target).stat().st_size == 4


@pytest.fixture
def deep_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder that takes folders nested more deeply than Python recurses, or than a path can name."""
    limit = sys.getrecursionlimit()
    yield tmp_path
    sys.setrecursionlimit(limit)
    subprocess.run(["rm", "-rf", tmp_path / "d", tmp_path / ("d" * 200)], check=True)  # which pytest could not remove


@pytest.mark.posix
@pytest.mark.parametrize(("depth", "name"), [(420, "d"), (21, "d" * 200)], ids=["many", "long"])
def test_deeply_nested_folders_give_a_result_or_a_sentence(
    check: Call, deep_folder: Path, monkeypatch: pytest.MonkeyPatch, depth: int, name: str
) -> None:
    for _ in range(depth):
        Path(name).mkdir()
        os.chdir(name)
    write("x.json", TILE)
    monkeypatch.chdir(deep_folder)
    configure('paths = ["**/*.json"]\nexclude = ["*.tmp.json", "other"]')
    sys.setrecursionlimit(400)
    for result in (check("."), check("--exclude", "other", "**/x.json"), check()):
        if name == "d":
            assert result.exit_code == 0
            assert result.stdout.count(": accepted") == 1
        else:
            assert result.exit_code == 2
            assert "File name too long" in result.stderr or "no file matches" in result.stderr


# Exclusions


def test_a_named_file_is_checked_whatever_gitignore_says_and_an_excluded_one_is_reported(check: Call) -> None:
    write(".git/x", "")
    write(".gitignore", "a.json\n")
    write("a.json", TILE)
    write("in/b.json", TILE)
    assert sources(check, "a.json", "in") == ["a.json", "in/b.json"]
    assert sources(check, ".") == ["in/b.json"]
    assert sources(check, ".", "--no-ignore") == ["a.json", "in/b.json"]
    result = check("a.json", ".", "--exclude", "*.json")
    assert result.exit_code == 0
    assert result.stderr.startswith("dml-tile: a.json: is not checked; --exclude leaves it out\n")
    assert "in/b.json" not in result.stderr
    configure('exclude = ["a.*"]')
    assert "a.json: is not checked; exclude in pyproject.toml leaves it out\n" in check("a.json").stderr


# A URL


@pytest.mark.parametrize("url", ["s3://zoo/**/*.json", "https://h/a", "simplecache::s3://b/a.json", "hf://a"])
def test_a_url_is_refused_with_what_reads_it(call: Call, url: str) -> None:
    for command in ("check", "lower", "show", "run", "emit --lang json"):
        advice = "download the file, or open it with fsspec for dml_tile.sweep (docs/scale.md)"
        assert errors_of(call, *command.split(), url) == f"dml-tile: {url}: is a URL: {advice}\n"


@pytest.mark.posix
@pytest.mark.parametrize("arguments", [["s3:"], ["s3://zoo/a.json"], ["s3:/*/*.json"]])
def test_a_folder_called_like_a_protocol_is_a_folder(check: Call, arguments: list[str]) -> None:
    Path("s3:", "zoo").mkdir(parents=True)
    write("s3:/zoo/a.json", TILE)
    assert len(sources(check, *arguments)) == 1
