"""The commit that is checked out in a folder, read from git's own files: no program of the machine is run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_SHORT: Final = 12
_MAX_BYTES: Final = 2**22


def commit_of(folder: Path) -> str:
    """The first 12 digits of the commit; empty where there is none, or it cannot be told.

    Page: https://git-scm.com/docs/gitrepository-layout
    """
    try:
        place = next((path / ".git" for path in (folder, *folder.parents) if (path / ".git").exists()), None)
        commit = _commit(place) if place else ""
    except (OSError, ValueError):  # a file that is not as git writes it
        return ""
    return commit[:_SHORT] if _COMMIT.fullmatch(commit) else ""


def _commit(place: Path) -> str:
    if place.is_file():  # of a work tree, or of a submodule
        place = place.parent / _read(place).removeprefix("gitdir: ")
    head = _read(place / "HEAD")
    if not head.startswith("ref: "):
        return head
    common = place / _read(place / "commondir") if (place / "commondir").exists() else place
    name = head.removeprefix("ref: ")
    if not name.startswith("refs/") or ".." in name.split("/"):
        return ""
    if (common / name).is_file():
        return _read(common / name)
    packed = re.search(rf"^([0-9a-f]+) {re.escape(name)}$", _read(common / "packed-refs"), re.MULTILINE)
    return packed[1] if packed else ""


def _read(path: Path) -> str:
    with path.open("rb") as opened:
        return opened.read(_MAX_BYTES).decode().strip()
