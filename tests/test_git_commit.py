"""The commit of a folder, against git where it is installed, and from files that git did not write."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from dml_tile.files.git_commit import commit_of

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="needs git on the PATH")
COMMIT = "0123456789abcdef0123456789abcdef01234567"


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@needs_git
def test_a_commit_is_the_one_that_git_tells(tmp_path: Path) -> None:
    repository, inner = tmp_path / "repository", tmp_path / "repository" / "a" / "b"
    inner.mkdir(parents=True)
    git(repository, "init", "--quiet")
    assert commit_of(repository) == ""
    git(repository, "commit", "--quiet", "--allow-empty", "--message", "one")
    expected = git(repository, "rev-parse", "HEAD")[:12]
    assert commit_of(repository) == commit_of(inner) == expected
    git(repository, "pack-refs", "--all")
    assert commit_of(repository) == expected
    git(repository, "worktree", "add", "--quiet", str(tmp_path / "tree"))
    assert commit_of(tmp_path / "tree") == expected
    git(repository, "checkout", "--quiet", "--detach")
    assert commit_of(repository) == expected


@pytest.mark.parametrize(
    ("files", "commit"),
    [
        ({"HEAD": COMMIT}, COMMIT[:12]),
        ({"HEAD": "ref: refs/heads/x", "refs/heads/x": COMMIT}, COMMIT[:12]),
        ({}, ""),
        ({"HEAD": "nonsense"}, ""),
        ({"HEAD": "ref: ../../secret"}, ""),
        ({"HEAD": "ref: refs/../../secret"}, ""),
        ({"HEAD": "ref: refs/heads/x", "refs/heads/x": "secret"}, ""),
        ({"HEAD": "ref: refs/heads/x", "packed-refs": f"{COMMIT} refs/heads/xy"}, ""),
    ],
)
def test_a_folder_of_files_is_read_as_git_s_or_not_at_all(tmp_path: Path, files: dict[str, str], commit: str) -> None:
    (tmp_path / "secret").write_text(COMMIT)
    for name, text in files.items():
        path = tmp_path / ".git" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    (tmp_path / ".git").mkdir(exist_ok=True)
    assert commit_of(tmp_path) == commit
