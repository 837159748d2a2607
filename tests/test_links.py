"""Links that a pull request commits decide neither which file outside is written, nor which one is read."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Final

import pytest

from dml_tile.files import links, whole
from dml_tile.files.links import SERVERS_VARIABLES
from tests.helpers.check_files import BAD, TILE, configure, sources, write
from tests.helpers.command_line import Call, bash, errors_of
from tests.helpers.dxdispatch_models import model, write_file

pytestmark = pytest.mark.posix

SECRET: Final = BAD | {"Repeats": [77777]}
"""A descriptor that a report quotes."""

KINDS: Final = pytest.mark.parametrize(
    "repository", [".git", "a worktree's .git", "checkout", "the current folder", "nested"], indirect=True
)
WRITERS: Final = {
    "a report": "check tile.json --format text:{}",
    "one of two reports": "check tile.json --format sarif:good.svg --format html:{}",
    "a baseline": "check tile.json --write-baseline {}",
    "a drawing": "show tile.json -o {}",
    "a model's output": "run model.json --overwrite --allow-hidden --output-dir {}",
}
READERS: Final = {
    "check": "check {}",
    "check, beside others": "check tile.json {}",
    "lower": "lower {} -t 4_0",
    "show": "show {}",
    "emit": "emit {} --lang cpp",
    "run": "run {}",
    "a list": "check --files-from {}",
    "a baseline": "check tile.json --baseline {}",
}


@pytest.fixture
def repository(request: pytest.FixtureRequest, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository of a kind, which becomes the current folder, with links out of it, into its .git, and within."""
    for name in SERVERS_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    folder, kind = tmp_path / "work", getattr(request, "param", ".git")
    write("outside/secret.svg", SECRET)
    write("work/tile.json", TILE)
    write("work/common/inner.svg", TILE)
    write("work/model.json", model(commands=[write_file("Out", "out.svg")]))
    match kind:
        case "a worktree's .git":
            write("work/.git", "gitdir: /elsewhere\n")
        case "checkout":
            monkeypatch.setenv("BUILD_SOURCESDIRECTORY", str(folder))
        case ".git" | "nested":
            write("work/.git/config", SECRET)
    if kind == "nested":
        write("work/common/.git/config", SECRET)
    for link, target in {
        "link.svg": "../outside/secret.svg", "link": "../outside", "new.svg": "../outside/new.svg",
        "twice.svg": "link.svg", "absolute.svg": str(tmp_path / "outside/secret.svg"), "common/deep": "../link",
        "config.svg": ".git/config", "GIT.svg": ".GIT/config", "device.svg": "/dev/stdin", "common/git": "../.git",
        "again.svg": "common/inner.svg", "models": "common",
    }.items():  # fmt: skip
        (folder / link).symlink_to(target)
    monkeypatch.chdir(folder)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file() and not path.is_symlink()}


@KINDS
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("link.svg", "link.svg is a link to {}/outside/secret.svg: name that file"),
        ("new.svg", "new.svg is a link to {}/outside/new.svg: name that file"),
        ("twice.svg", "twice.svg is a link to {}/outside/secret.svg: name that file"),
        ("link/r.svg", "link is a link to {}/outside: name that folder"),
        ("models/r.svg", "models is a link to {}/work/common: name that folder"),
        ("common/../link/x.svg", "common/../link is a link to {}/outside: name that folder"),
        ("common/deep/r.svg", "common/deep is a link to {}/outside: name that folder"),
        ("config.svg", "config.svg is a link to {}/work/.git/config: name that file"),
        (".git/r.svg", "leads into .git, where nothing is written"),
        ("common/.Git/r.svg", "leads into .git, where nothing is written"),
        ("git~1/hooks/r.svg", "leads into .git, where nothing is written"),
    ],
)
def test_nothing_is_written_by_a_link_in_a_repository(
    call: Call, repository: Path, tmp_path: Path, name: str, reason: str
) -> None:
    before = contents(tmp_path)
    for command in WRITERS.values():
        if not ("--output-dir" in command and Path(name).is_file()):  # typer asks for a folder
            result = call(*command.format(name).split())
            assert (result.exit_code, result.stdout) == (2, "")
            assert result.stderr == f"dml-tile: {name}: {reason.replace('{}', str(tmp_path))}\n"
    assert contents(tmp_path) == before


@pytest.mark.parametrize("repository", [".git", "checkout"], indirect=True)
def test_an_absolute_name_follows_no_link_of_a_repository_either(call: Call, repository: Path) -> None:
    for name in ("link.svg", "link/r.svg"):
        for command in ("check tile.json --format html:{}", "check {}", "check {}*"):
            assert " is a link " in errors_of(call, *command.format(repository / name).split())


@pytest.mark.parametrize("command", WRITERS.values(), ids=WRITERS)
@pytest.mark.parametrize("name", ["../outside/secret.svg", "{}/home/secret.svg", "common/inner.svg", "common/../x.svg"])
def test_what_is_named_itself_is_written_and_links_elsewhere_are_followed(
    call: Call, repository: Path, tmp_path: Path, command: str, name: str
) -> None:
    (tmp_path / "home").symlink_to("outside")
    written = Path(name.format(tmp_path))
    written.write_bytes(b"")
    is_folder = "--output-dir" in command
    assert call(*command.format(written.parent if is_folder else written).split()).exit_code == 0
    assert (written.with_name("out.svg") if is_folder else written).stat().st_size
    assert (tmp_path / "home").is_symlink()
    assert not [path for path in written.parent.iterdir() if path.name.startswith(".dml-tile")]


@pytest.mark.long
def test_pipes_and_devices_are_written_to(repository: Path) -> None:
    for command in ("concise:/dev/stdout | cat", "concise:>(cat) | cat", "sarif:/dev/fd/3 3>x"):
        done = bash(f"dml-tile check tile.json --format {command}", repository, starts_python=True)
        assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(Path("x").read_text())["runs"]


def test_a_folder_that_becomes_a_link_while_it_is_opened_is_refused(
    call: Call, repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def swapped(name: str) -> str:
        place = links.unlinked(name)
        shutil.rmtree("common")
        Path("common").symlink_to(tmp_path / "outside")
        return place

    monkeypatch.setattr(whole, "unlinked", swapped)
    assert call("check", "tile.json", "--format", "concise:common/r.svg").exit_code == 2
    assert [*contents(tmp_path / "outside")] == [str(tmp_path / "outside/secret.svg")]


def test_what_becomes_a_file_while_it_is_opened_is_not_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pipe").write_bytes(b"kept")
    monkeypatch.setattr(Path, "is_file", lambda path: False)
    with pytest.raises(OSError, match="it changed while it was opened"), whole.replacement(tmp_path / "pipe") as file:
        file.write(b"1")
    assert (tmp_path / "pipe").read_bytes() == b"kept"


def test_links_are_seen_where_nobody_may_look_into_the_folders_above(
    call: Call, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lstat(path: str, *, dir_fd: int | None = None) -> os.stat_result:
        if str(path).startswith(str(repository)):
            raise PermissionError
        return found(path, dir_fd=dir_fd)

    found = os.lstat
    monkeypatch.setattr(os, "lstat", lstat)
    for command in ("check link.svg", "check tile.json --format html:link.svg"):
        assert "link.svg is a link " in errors_of(call, *command.split())


# Reading


@KINDS
@pytest.mark.parametrize("name", ["link.svg", "twice.svg", "absolute.svg", "link/secret.svg", "common/deep/secret.svg",
                                  "new.svg", "config.svg", "GIT.svg", "device.svg", "common/git/config"])  # fmt: skip
def test_nothing_is_read_by_a_link_out_of_a_repository(call: Call, repository: Path, name: str) -> None:
    for command in READERS.values() if name == "link.svg" else ["check {}"]:
        result = call(*command.format(name).split(), stdin=json.dumps(SECRET))
        assert result.exit_code == 2
        assert f"dml-tile: {name}: " in result.stderr
        assert " is a link " in result.stderr
        way_out = "" if "a .git, to " in result.stderr else ", or a folder below which links may lead by --root"
        assert f": name that itself{way_out}\n" in result.stderr
        assert "77777" not in result.stdout + result.stderr


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("link*.svg", "link.svg"), ("l*/secret.svg", "link"), ("link/s*.svg", "link"), ("**/link.svg", "link.svg"),
        ("**/link/*.svg", "link"), ("*/deep/*.svg", "common/deep"), ("conf*.svg", "config.svg"),
        ("**/*.svg", "link.svg"), ("lin[k]", "link"), ("mod*/deep/*", "models/deep"),
    ],
)  # fmt: skip
def test_no_pattern_leads_out_of_a_repository(call: Call, repository: Path, pattern: str, problem: str) -> None:
    result = call("check", pattern, stdin=json.dumps(SECRET))
    assert result.exit_code == 2
    assert f"dml-tile: {problem}: {problem} is a link " in result.stderr
    assert "77777" not in result.stdout + result.stderr


def test_what_any_depth_and_folders_meet_is_passed_over_and_counted(check: Call, repository: Path) -> None:
    for name in ("link.json", "config.json"):
        Path("common", name).symlink_to(f"../{Path(name).stem}.svg")
    for argument, counted in (
        ("common", {"common/link.json", "common/config.json", "common/deep/"}),
        ("common/**", {"common/link.json", "common/config.json", "common/deep/"}),
        ("**/inner.svg", {"link/", "common/deep/"}),
    ):
        result = check(argument, "--verbose", "--format", "json", stdin="")
        over = {line.split(": ")[1] for line in result.stderr.splitlines() if ": skipped, linked" in line}
        assert over >= counted
        assert "77777" not in result.stdout


def test_links_within_a_repository_are_followed(call: Call, repository: Path) -> None:
    for argument in ("again.svg", "models/inner.svg", "ag*.svg", "m*/inner.svg", "models"):
        shutil.copy("tile.json", "common/tile.json")
        assert call("check", argument).exit_code == 0
    for command in ("lower {} -t 4_0", "show {}", "emit {} --lang cpp"):
        assert call(*command.format("again.svg").split()).exit_code == 0
    assert call("check", "--files-from", "-", stdin="again.svg\nmodels/inner.svg\n").exit_code == 0


def test_a_list_names_nothing_in_git(check: Call, repository: Path) -> None:
    result = check("--files-from", "-", stdin=".git/config\nconfig.svg\nlink.svg\n")
    assert (result.exit_code, result.stderr.count("leads out of")) == (2, 3)
    assert "77777" not in result.stdout + result.stderr


@pytest.mark.parametrize("repository", [".git"], indirect=True)
def test_root_lets_links_lead_below_it_but_no_link_is_a_root(call: Call, repository: Path, tmp_path: Path) -> None:
    for command in (*READERS.values(), "check li*.svg"):
        arguments = *command.format("link.svg").split(), "--root"
        assert " is a link out of " not in call(*arguments, str(tmp_path / "outside")).stderr
        assert " is a link out of " in errors_of(call, *arguments, "common")
        assert "link is a link to " in errors_of(call, *arguments, "link")
        assert "missing is no folder" in errors_of(call, *arguments, "missing")
    Path("lines").symlink_to("../\n::error::x")
    assert "\n::" not in errors_of(call, "check", "tile.json", "--root", "lines")
    assert "77777" in call("check", "--files-from", "-", "--root", str(tmp_path), stdin="link.svg\n").stdout
    assert "into a .git" in errors_of(call, "check", "config.svg", "--root", str(tmp_path))


# Layouts of other tools


@pytest.mark.parametrize(
    "target",
    [".git/annex/objects/4k/j2/MD5E-s9--f00.json/MD5E-s9--f00.json", ".dvc/cache/files/md5/4a/f00", "common/a.json"],
    ids=["git-annex", "DVC", "another folder"],
)
@pytest.mark.parametrize("argument", ["models/a.json", "models", "models/*.json", "**/a.json", "."])
def test_files_kept_elsewhere_in_the_repository_are_checked(check: Call, target: str, argument: str) -> None:
    for folder in (".git", "models"):
        Path(folder).mkdir()
    write(target, TILE)
    Path("models/a.json").symlink_to(f"../{target}")
    assert {*sources(check, argument)} - {"common/a.json"} == {"models/a.json"}


def test_a_shared_cache_of_dvc_is_read_below_root(check: Call, tmp_path: Path) -> None:
    write("work/.git/HEAD", "")
    write("cache/files/md5/4a/f00", TILE)
    write("list.txt", "work/a.json")
    Path("work/a.json").symlink_to(tmp_path / "cache/files/md5/4a/f00")
    for argument in ("work/a.json", "work", "work/*.json", "work/**"):
        assert check(argument).exit_code != 0 or "skipped" in check(argument).stdout
        assert len(sources(check, argument, "--root", str(tmp_path))) == 1


@pytest.mark.parametrize("argument", ["{}/snapshots/f00/a.json", "{}/snapshots/*/a.json", "{}/linked/a.json"])
def test_links_that_lie_elsewhere_are_followed(
    check: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, argument: str
) -> None:
    """As in the cache of Hugging Face, and in what runs under bazel."""
    write("blobs/f00", TILE)
    Path("snapshots/f00").mkdir(parents=True)
    Path("snapshots/f00/a.json").symlink_to("../../blobs/f00")
    Path("linked").symlink_to("snapshots/f00")
    write("work/.git/HEAD", "")
    monkeypatch.chdir("work")
    assert len(sources(check, argument.format(tmp_path))) == 1


@pytest.mark.long
def test_pipes_and_process_substitution_are_read(repository: Path) -> None:
    os.mkfifo("pipe.json")
    for command in (
        "dml-tile check <(cat tile.json)",
        "dml-tile show <(cat tile.json)",
        "dml-tile check /dev/stdin < tile.json",
        "cat tile.json > pipe.json & dml-tile check pipe.json",
        "dml-tile check --files-from <(echo tile.json)",
        """dml-tile check tile.json --baseline <(echo '{"version": 1, "findings": []}')""",
    ):
        done = bash(command, repository, starts_python=True)
        assert (done.returncode, done.stderr) == (0, b"")


def test_settings_are_held_to_the_repository(check: Call, repository: Path) -> None:
    configure('paths = ["again.svg"]')
    assert check().exit_code == 0
    for key in ("link.svg", "config.svg", ".git/config"):
        for setting in (f'paths = ["{key}"]', f'baseline = "{key}"\npaths = ["tile.json"]'):
            configure(setting)
            result = check()
            assert (result.exit_code, "below the folder of pyproject.toml" in result.stderr) == (2, True)
