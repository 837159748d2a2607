"""Names of files are paths, whatever they look like, and patterns find each file once, in linear time."""

from __future__ import annotations

import glob
import json
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import fsspec.core
import pytest

from dml_tile.checks.files import Exclusion
from dml_tile.errors import InputError
from dml_tile.files.paths import MAX_PARTS, Matches, ProjectPath
from tests.helpers.check_files import BAD, FLAT, TILE, write
from tests.helpers.command_line import Call

OTHER: Final = {"InputTensor": FLAT | {"DataType": "INT8"}, "OutputTensor": FLAT | {"DataType": "INT8"}, "Repeats": [1]}
LIKE_URLS: Final = (
    *("plain::y.json", "simplecache::x.json", "reference::x.json", "dask::x.json", "memory::x.json", "zip::x.json"),
    *("file::x.json", "https:x.json", "simplecache::memory:x.json"),
)


def configure(text: str) -> None:
    write("pyproject.toml", f"[tool.dml-tile]\n{text}\n")


def sources(check: Call, *arguments: str) -> list[str]:
    """The sources of a check that is free of findings and problems."""
    result = check("--format", "json", *arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    return [source["source"] for source in json.loads(result.stdout)["sources"]]


@pytest.fixture
def no_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """No file system of fsspec may be made."""
    monkeypatch.setattr(fsspec.core, "url_to_fs", lambda *_: pytest.fail("a store is opened"))


# A name is a path


@pytest.mark.usefixtures("no_store")
@pytest.mark.parametrize(
    ("arguments", "settings"),
    [
        (["."], ""),
        (["*.json"], ""),
        (["--", *LIKE_URLS], ""),
        ([], f"paths = {json.dumps(LIKE_URLS)}"),
        ([], 'paths = ["*.json", "."]'),
    ],
    ids=["folder", "pattern", "arguments", "paths", "patterns in paths"],
)
def test_a_file_is_read_as_itself_whatever_its_name_looks_like(
    check: Call, arguments: list[str], settings: str
) -> None:
    for name in LIKE_URLS:
        write(name, TILE)
    configure(settings)
    if "." not in arguments and "*.json" not in f"{arguments}{settings}":
        write("x.json", OTHER)  # which a chain would read
    assert sorted(sources(check, *arguments)) == sorted(LIKE_URLS)
    (source,) = json.loads(check("--format", "json", "--", LIKE_URLS[0]).stdout)["sources"]
    assert source["source"] == LIKE_URLS[0]


@pytest.mark.usefixtures("no_store")
def test_reports_and_commands_name_such_a_file_as_itself(check: Call, call: Call) -> None:
    for name in LIKE_URLS:
        write(name, BAD)
        assert f"{name}:11:4: refused" in check("--", name).stdout
        uri = name.replace(":", "%3A")
        assert f'"uri": "{uri}"' in check(name, "--format", "sarif").stdout
        assert call("show", name).exit_code == call("lower", name).exit_code == 1


@pytest.mark.usefixtures("no_store")
@pytest.mark.parametrize("place", ["memory:", "zip:", "https:"])
def test_what_a_pattern_or_paths_yield_is_a_path_also_with_slashes(check: Call, place: str) -> None:
    write(f"{place}/a.json", TILE)
    assert sources(check, f"./{place}//a.json") == [f"./{place}//a.json"]
    assert sources(check, f"{place[:-1]}?//*.json") == [f"{place}/a.json"]
    configure(f'paths = ["{place}//a.json"]')
    assert sources(check) == [f"{place}/a.json"]


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
    assert Matches(ProjectPath("**/x.json", Path())).outside == []
    assert sources(check, "**/x.json") == ["in/x.json", "lnk/x.json"]  # as typed


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
    found = Matches(pattern).names
    assert len(set(map(os.path.realpath, found))) == len(found) in (11, 13)
    assert len(listed) <= 40
    assert len(sources(check, pattern)) == len(found)


def test_links_are_entered_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write("real/x.json", TILE)
    for name in ("all", "again", "real/up"):
        Path(name).symlink_to(tmp_path)
    Path("as.json").symlink_to("real/x.json")
    assert Matches("**/*.json").names == ["as.json", "real/x.json"]
    assert len(Matches("*/" * 20 + "*.json").names) == 2
    assert Matches("all/*/x.json").names == ["all/real/x.json"]


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
    for _ in range(50):
        pattern = "/".join(chance.choices(PARTS, k=chance.randint(1, 4)))
        pattern = f"{chance.choice(['', './', f'{folder}/'])}{pattern}{chance.choice(['', '', '/'])}"
        if glob.has_magic(pattern):
            globbed = glob.iglob(pattern, recursive=True)  # noqa: PTH207  # which has another idea of **
            expected = {os.path.realpath(path) for path in globbed if os.access(path, os.F_OK)}
            assert set(map(os.path.realpath, Matches(pattern).names)) == expected, pattern


# Long and deep


@pytest.mark.parametrize(
    "pattern", ["*/" * 2000 + "x.json", "**/" * 2000 + "x.json", "[a]/" * 100_000, "a/" * 2000 + "*"]
)
def test_a_pattern_of_thousands_of_parts_is_refused(check: Call, pattern: str) -> None:
    write("x.json", TILE)
    with pytest.raises(InputError, match=rf"has \d+ parts; a pattern may have {MAX_PARTS}"):
        Matches(pattern)
    configure(f'paths = ["{pattern[:8000]}"]')
    results = [check(pattern[:8000]), check()]
    configure(f'paths = ["{"a/" * 2000}a.json"]')
    for result in (*results, check()):
        assert result.exit_code == 2
        assert len(result.stderr.splitlines()) == 1
        assert f" may have {MAX_PARTS}" in result.stderr


@pytest.mark.parametrize("parts", [200, 2000])
def test_a_run_writes_into_nested_folders_or_says_why_not(call: Call, parts: int) -> None:
    target = "d/" * parts + "x.bin"
    values = {"initialValuesDataType": "INT8", "initialValues": {"valueCount": 4, "value": 1}}
    command = {"type": "writeFile", "resource": "a", "targetPath": target}
    write("m.json", {"resources": {"a": values}, "dispatchables": {}, "commands": [command]})
    result = call("run", "m.json")
    if parts == 200:
        assert result.exit_code == 0
        assert Path(target).stat().st_size == 4
    else:
        assert result.exit_code == 2
        assert len(result.stderr.splitlines()) == 1
        assert "has 2001 parts; a path may have 256" in result.stderr


@pytest.fixture
def deep_folder(tmp_path: Path) -> Iterator[Path]:
    """A folder that takes folders nested more deeply than Python recurses, or than a path can name."""
    yield tmp_path
    while (tmp_path / "d").exists():  # which pytest could not remove
        (tmp_path / "d").rename(tmp_path / "old")
        inner = tmp_path / "old" / "d"
        if inner.exists():
            inner.rename(tmp_path / "d")
        for path in (tmp_path / "old").iterdir():
            path.unlink()
        (tmp_path / "old").rmdir()


@pytest.mark.parametrize("depth", [1200, 3000])
def test_deeply_nested_folders_give_a_result_or_a_sentence(
    check: Call, deep_folder: Path, monkeypatch: pytest.MonkeyPatch, depth: int
) -> None:
    for _ in range(depth):
        Path("d").mkdir()
        os.chdir("d")
    write("x.json", TILE)
    monkeypatch.chdir(deep_folder)
    configure('paths = ["**/*.json"]\nexclude = ["*.tmp.json", "other"]')
    for result in (check("."), check("--exclude", "other", "**/x.json"), check()):
        if depth == 1200:
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


def test_a_thousand_exclusions_are_compiled_once() -> None:
    patterns = ("build", *(f"old{i}/*.tmp{i}.onnx" for i in range(999)))
    exclusion = Exclusion(patterns)
    started = time.process_time()
    left_out = [exclusion.leaves_out(f"a/b{i % 50}/c/m{i}.onnx") for i in range(1000)]
    left_out += [exclusion.leaves_out(f"a/build/c{i}/m.onnx") for i in range(1000)]
    assert left_out == [False] * 1000 + [True] * 1000
    assert time.process_time() - started < 10
    assert Exclusion(patterns).leaves_out("old7/" + "d/" * 1200 + "x.tmp7.onnx")
