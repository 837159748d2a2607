"""The table [tool.dml-tile] of the nearest pyproject.toml: what it may say, and who wins."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from dml_tile.cli.config import MAX_SETTINGS_BYTES, Config, Settings, nearest_config
from dml_tile.errors import ConfigError
from tests.helpers.check_files import ALIGNED, BAD, DOUBLES, INT64, TILE, configure, sources, write
from tests.helpers.command_line import Call, errors_of
from tests.helpers.paths import EXAMPLES


def targets(check: Call, *arguments: str) -> list[str]:
    output = json.loads(check(*arguments, "--format", "json").stdout)
    return [result["target"] for result in output["results"]]


def test_without_a_file_or_its_table_nothing_is_said(check: Call) -> None:
    assert nearest_config() == Config()
    for text in ("", "[tool.other]\nx = 1\n", "tool = 1\n"):
        write("pyproject.toml", text)
        assert nearest_config() == Config()


def test_paths_are_those_of_the_file_unless_some_are_given(check: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    write("in/a.json", TILE)
    write("b.json", TILE)
    configure('paths = ["in", "b.json"]')
    assert check().stdout.splitlines()[0].startswith("in/a.json: accepted")
    assert check().stdout.splitlines()[2].startswith("b.json: accepted")
    assert "in/a.json" not in check("b.json").stdout
    Path("deep/er").mkdir(parents=True)
    monkeypatch.chdir("deep/er")
    assert check().stdout.startswith("../../in/a.json: accepted")


@pytest.mark.parametrize("path", ["..", "/", "in/../..", "link", "a\\u0000b"])
def test_paths_stay_in_the_file_s_folder(check: Call, path: str) -> None:
    write("a.json", TILE)
    configure(f'paths = ["in", "{path}"]', "sub")
    os.chdir("sub")
    Path("link").symlink_to("../a.json")
    result = check()
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("dml-tile: pyproject.toml: tool.dml-tile.paths[1] is '")
    assert result.stderr.endswith("; a path below the folder of pyproject.toml was expected\n")


@pytest.mark.posix
@pytest.mark.parametrize("is_repository", [False, True])
def test_settings_may_be_a_link_within_the_repository_only(
    check: Call, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory, is_repository: bool
) -> None:
    outside = tmp_path_factory.mktemp("outside") / "secret.toml"
    outside.write_text("[tool.dml-tile]\ntargets = ['2_0']\n")
    Path("shared.toml").write_text("[tool.dml-tile]\ntargets = ['4_1']\n")
    if is_repository:
        Path(".git").mkdir()
    Path("in").mkdir()
    write("in/a.json", TILE)
    monkeypatch.chdir("in")
    Path("pyproject.toml").symlink_to("../shared.toml")
    result = check("a.json")
    assert ("at 4_1" in result.stdout) == is_repository
    assert result.exit_code == (0 if is_repository else 2)
    Path("pyproject.toml").unlink()
    Path("pyproject.toml").symlink_to(outside)
    assert check("a.json").stderr == "dml-tile: pyproject.toml: is a link that leads out of the repository\n"


@pytest.mark.posix
def test_a_baseline_of_the_settings_is_a_regular_file_or_a_link_to_one(check: Call) -> None:
    configure('baseline = "base.json"\npaths = ["a.json"]')
    check(write("a.json", BAD), "--write-baseline", "real.json")
    Path("base.json").symlink_to("real.json")
    assert check().exit_code == 0
    Path("real.json").unlink()
    os.mkfifo("real.json")
    assert check().stderr == "dml-tile: base.json: cannot be read as a baseline: is not a regular file\n"


def test_a_folder_that_may_not_be_looked_into_has_no_file(check: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path, **options: Any) -> os.stat_result:
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as patched:
        patched.setattr(os, "stat", refused)
        assert nearest_config() == Config()


@pytest.mark.posix
def test_a_folder_that_was_removed_has_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, check: Call) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert nearest_config() == Config()


def test_the_nearest_file_with_the_table_alone_counts(check: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    configure('targets = ["5_0"]')
    configure('targets = ["windows-11-21h2", "4_1, 4_1"]', "sub")
    write("sub/deep/a.json", TILE)
    monkeypatch.chdir("sub/deep")
    assert targets(check, "a.json") == ["windows-11-21h2", "4_1"]
    write("../pyproject.toml", "[project]\n")
    assert targets(check, "a.json") == ["5_0"]
    assert check("--show-settings").stdout.startswith('settings = "../../pyproject.toml"  # the nearest ')
    configure("", "..")
    assert targets(check, "a.json") == ["6_4"]


@pytest.mark.parametrize("is_worktree", [False, True])
def test_no_file_above_the_repository_counts(is_worktree: bool, check: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    configure('targets = ["5_0"]')
    write("sub/deep/a.json", TILE)
    if is_worktree:
        write("sub/.git", "gitdir: elsewhere")
    else:
        Path("sub/.git").mkdir()
    monkeypatch.chdir("sub/deep")
    assert targets(check, "a.json") == ["6_4"]
    assert check("--show-settings").stdout.startswith("settings = null  #")
    configure('targets = ["4_1"]', "..")
    assert targets(check, "a.json") == ["4_1"]


@pytest.mark.parametrize(
    ("value", "setting", "status", "option", "status_with_option"),
    [
        (BAD, 'ignore = ["DML-TILE"]', 0, "--ignore=DML-BUFFER", 1),
        (BAD, 'select = ["DML-BUFFER"]', 0, "--select=DML", 1),
        (BAD, "select = []\nignore = []", 1, "--ignore=DML-TILE", 0),
        (ALIGNED, 'against = "documentation"', 0, "--against=both", 1),
        (INT64, 'targets = ["4_0"]', 1, "--target=4_1", 0),
        (DOUBLES, 'fail-on = "error"', 0, "--fail-on=note", 1),
        (DOUBLES, 'fail-on = "warning"', 1, "--fail-on=error", 0),
        (DOUBLES, 'fail-on = "never"', 0, "--fail-on=warning", 1),
        (INT64, 'targets = ["vista"]\nselect = ["xyz"]', 2, "--target=6_4 --select=DML", 0),
    ],
)
def test_an_option_replaces(
    check: Call, value: Any, setting: str, status: int, option: str, status_with_option: int
) -> None:
    write("a.json", value)
    configure(setting)
    assert check("a.json").exit_code == status
    assert check("a.json", *option.split()).exit_code == status_with_option


MANY = [f"onnxruntime-directml-1.17.{i}" for i in range(101)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('target = ["6_4"]', "tool.dml-tile.target is unknown (did you mean targets?)"),
        ("x = 1", "tool.dml-tile.x is unknown (the keys are targets, select, ignore, against, via, dim, input-shape, "),
        ('targets = "6_4"', "tool.dml-tile.targets is '6_4'; an array was expected"),
        ("select = [1]", "tool.dml-tile.select[0] is 1; a string was expected"),
        ("against = []", "tool.dml-tile.against is an array of 0; 'documentation', 'runtime' or 'both' was expected"),
        ('against = "docs"', "tool.dml-tile.against is 'docs'; 'documentation', 'runtime' or"),
        ('targets = ["vista"]', "tool.dml-tile.targets: 'vista' is no known target"),
        (f"targets = ['{','.join(MANY)}']", "tool.dml-tile.targets: 101 targets were given; at most 100 were expected"),
        ('select = ["DML-BUFER"]', "tool.dml-tile.select: no rule is named 'DML-BUFER'; did you mean DML-BUFFER"),
        ('ignore = ["xyz"]', "tool.dml-tile.ignore: no rule is named 'xyz'"),
        ('per-file-ignores = {"*" = ["xyz"]}', "tool.dml-tile.per-file-ignores: no rule is named 'xyz'"),
        ('per-file-ignores = {"*" = 1}', "tool.dml-tile.per-file-ignores.* is 1; an array was expected"),
        ('via = "otr"', "tool.dml-tile.via: there is no back end 'otr'; did you mean ort"),
        ('dim = ["n"]', "tool.dml-tile.dim: 'n' is not of the form NAME=SIZE, with digits for a size, 18 at most"),
        ('input-shape = ["x=1,"]', "tool.dml-tile.input-shape: 'x=1,' is not of the form INPUT=SIZE,SIZE,…"),
        ('fail-on = "all"', "tool.dml-tile.fail-on is 'all'; 'error', 'warning', 'note' or 'never' was expected"),
        ("strict-files = 1", "tool.dml-tile.strict-files is 1; true or false was expected"),
        ("\n".join(f"x{i} = 1" for i in range(65)), "tool.dml-tile: 65 keys were provided; at most 64 were expected"),
        ("x = 1\nx = 2", "unreadable TOML: Cannot overwrite a value"),
        ("x = '\0'", "unreadable TOML: "),
        ("[tool]\ndml-tile = 5", "tool.dml-tile is 5; a table was expected\n"),
        ("[tool.dml_tile]", "[tool.dml_tile] is not read; [tool.dml-tile] was expected\n"),
        ("targets = [", "unreadable TOML: "),
        ("x = '\xff'", "unreadable TOML: "),
        (f"x = {'[' * 5000}", "unreadable TOML: "),
        (f"# {'x' * MAX_SETTINGS_BYTES}", f"larger than {MAX_SETTINGS_BYTES} bytes"),
        *((f"{key} = {[''] * 1001}", f"tool.dml-tile.{key} is an array of 1001; a length of at most 1000 was expected")
          for key in ("targets", "select", "ignore", "dim", "input-shape", "exclude", "paths")),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_an_error_that_names_file_and_key(check: Call, text: str, message: str) -> None:
    write("sub/a.json", TILE)
    table = "" if text.startswith("[tool") else "[tool.dml-tile]\n"
    Path("pyproject.toml").write_bytes(f"{table}{text}\n".encode("latin-1"))
    os.chdir("sub")
    result = check("a.json")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.startswith(f"dml-tile: ../pyproject.toml: {message}")


def test_the_settings_in_force_are_shown_with_their_origin(check: Call) -> None:
    configure('targets = ["5_0"]\nignore = ["DML-BUFFER"]\npaths = ["in"]')
    shown = dict(line.split(" = ") for line in check("--show-settings", "--fail-on", "note").stdout.splitlines())
    assert set(shown) == {field.alias or name for name, field in Settings.model_fields.items()} | {"root", "settings"}
    assert shown["targets"] == '["5_0"]  # pyproject.toml'
    assert shown["ignore"] == '["DML-BUFFER"]  # pyproject.toml'
    assert shown["paths"] == '["in"]  # pyproject.toml'
    assert shown["fail-on"] == '"note"  # option'
    assert shown["against"] == '"both"  # default'
    assert shown["root"].endswith("  # default")
    options = "--show-settings", "a.json", "--root", ".", "--dim", "n=1"
    lines = check(*options, env={"DML_TILE_TARGET": "4_0"}).stdout.splitlines()
    assert {'targets = ["4_0"]  # DML_TILE_TARGET', 'paths = ["a.json"]  # option', 'root = "."  # option'} <= {*lines}
    assert 'dim = ["n=1"]  # option' in lines


@pytest.mark.parametrize("arguments", [[], ["--format", "json"]])
def test_nothing_to_check_anywhere_is_wrong_usage(check: Call, arguments: Any) -> None:
    configure('targets = ["6_4"]')
    assert "name files or folders, or set paths in" in " ".join(errors_of(check, *arguments).split())


def test_the_options_for_models_have_keys_too(check: Call) -> None:
    names = [str(EXAMPLES / "models" / "two_tiles.onnx"), "--format", "json"]
    configure('via = "chromium"\ndim = ["batch=4"]\nfail-on = "error"\ntargets = ["windows-11-21h2"]')
    enlarge, number = json.loads(check(*names).stdout)["results"]
    assert [enlarge["via"], enlarge["unknown"], number["unknown"]] == ["chromium", [], []]
    configure('input-shape = ["tokens=4,16"]')
    assert [one["unknown"] for one in json.loads(check(*names).stdout)["results"]] == [[], []]


def test_files_may_be_excluded_by_patterns(check: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("models/a.json", "models/old/b.json", "models/c.tmp.json", "old/d.json"):
        write(name, TILE)
    kept = ["models/a.json", "models/c.tmp.json"]
    assert sources(check, "models", "old", "--exclude", "old") == kept
    assert sources(check, "models", "old", "--exclude", "models/old") == [*kept, "old/d.json"]
    assert sources(check, ".", "--exclude", "models/**/*.json") == ["old/d.json"]
    assert sources(check, ".", "--exclude", "*.json", "--exclude", "!c.*") == ["models/c.tmp.json"]
    assert sources(check, "models", "--exclude", "*.tmp.json", "--exclude", "old/") == ["models/a.json"]
    configure(f"exclude = {['**/old/b.*', *map(str, range(999))]}")
    assert sources(check, "models") == kept
    assert sources(check, "models", "--exclude", "lder") == [*kept, "models/old/b.json"]
    configure('paths = ["models"]\nexclude = ["models/old", "*.tmp.json"]')
    assert sources(check) == ["models/a.json"]
    monkeypatch.chdir("models")
    assert sources(check) == ["a.json"]


def test_a_pattern_that_matches_nothing_is_reported_where_the_whole_project_is_checked(check: Call) -> None:
    write("in/a.json", TILE)
    write("in/node_modules/b.json", TILE)
    write("in/old/c.json", TILE)
    configure('paths = ["in"]\nexclude = ["old", "node_modules", "nowhere", "!in/old/a.json"]')
    nothing = "dml-tile: check: exclude in pyproject.toml: "
    for names in ([], ["."], ["in", "../" + Path.cwd().name]):
        reported = [line for line in check(*names).stderr.splitlines() if "matches nothing" in line]
        assert reported == [f"{nothing}'nowhere' matches nothing", f"{nothing}'!in/old/a.json' matches nothing"]
    assert "matches nothing" not in check("in").stderr


@pytest.mark.parametrize("key", [".".join("a" * 50_000), ".".join(['"a b"'] * 40_000), " . ".join("b" * 50_000)])
@pytest.mark.parametrize("form", ["{} = 1", "[{}]", "x = {{{} = 1}}"])
def test_a_key_of_very_many_parts_is_refused_at_once(check: Call, key: str, form: str) -> None:
    write("pyproject.toml", form.format(key))
    with pytest.raises(ConfigError, match="a key has more than 100 parts"):
        nearest_config()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        # looked at again from each character, these would take many minutes
        ("x = 0x" + "f" * 250_000, ()),
        (("[[" + ".".join("a" * 90) + "]]\n") * 1_400, ()),
        (f"{'.'.join('a' * 100)} = 1\n[tool.dml-tile]\ntargets = ['4_0']\n", ("4_0",)),
    ],
)
def test_long_words_and_keys_of_many_parts_are_read_once(check: Call, text: str, found: tuple[str, ...]) -> None:
    write("pyproject.toml", text)
    assert nearest_config().settings == Settings(targets=found)
