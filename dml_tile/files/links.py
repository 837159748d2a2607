"""The links that names lead through, and those that lie in a repository: anyone who proposes a change can commit them.

Such a link decides neither which file outside is written, nor which one is read.
"""

# Names stay as they were typed; pathlib would change them.
# ruff: noqa: PTH112, PTH115, PTH118, PTH120

from __future__ import annotations

import errno
import os
import stat
from pathlib import PurePath
from typing import Final, NamedTuple

GIT: Final = ".git"
"""The folder, or in a worktree the file, that makes a folder a repository's root."""

SERVERS_VARIABLES: Final = ("GITHUB_WORKSPACE", "BUILD_SOURCESDIRECTORY", "CI_PROJECT_DIR")
"""The folder of the checkout on GitHub, Azure Pipelines and GitLab."""

_MAX_LINKS: Final = 40
"""The most links on the way of a name, as on Linux."""

_MAX_STEPS: Final = 2**12
"""The most parts of a name, with those of the links on its way: Linux allows a path 4096 bytes."""

_ANNEX: Final = ("annex", "objects")
"""The folder in .git that holds the contents of git-annex' files."""

_JUNCTION: Final = 0xA0000003
"""Windows' IO_REPARSE_TAG_MOUNT_POINT."""


class Link(NamedTuple):
    """A link in a repository: ``name`` is how the name that leads through it begins, ``path`` where it lies."""

    name: str
    path: str
    repository: str


def is_link(path: str) -> bool:
    """Return True for a symbolic link, and for a junction of Windows."""
    try:
        status = os.lstat(path)
    except (OSError, ValueError):  # there is none, or a NUL is in its name
        return False
    return stat.S_ISLNK(status.st_mode) or getattr(status, "st_reparse_tag", 0) == _JUNCTION


def followed(name: str) -> tuple[str, list[Link]]:
    """Return the path without links to which a name leads, and the links on its way that lie in a repository.

    As the system does, it goes from part to part. Raises OSError for too many links or parts, and for a relative name
    if the current folder was removed.
    """
    typed = PurePath(os.path.normpath(name) if os.name == "nt" else name)  # where .. takes the part before away
    place = os.path.realpath(typed.anchor or os.curdir)
    here = "" if typed.is_absolute() else place
    parts = typed.parts[bool(typed.anchor) :]
    left = [(part, i) for i, part in enumerate(parts, 1)][::-1]
    links: list[Link] = []
    followed_links = 0
    for _ in range(_MAX_STEPS):
        if not left:
            return place, links
        part, i = left.pop()
        path = os.path.dirname(place) if part == os.pardir else os.path.join(place, part)
        seen = path.removeprefix(os.path.join(here, "")) if here else path  # nobody may look into the folders above
        if part == os.pardir or not is_link(seen):
            place = path
            continue
        if repository := _repository_of(place, here):
            links.append(Link(str(PurePath(typed.anchor, *parts[:i])), path, repository))
        followed_links += 1
        if followed_links > _MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
        target = PurePath(without_device_prefix(os.readlink(seen)))
        if target.anchor:
            place = os.path.realpath(os.path.join(place, target.anchor))
        left += [(each, i) for each in target.parts[bool(target.anchor) :][::-1]]
    raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), name)


def _repository_of(folder: str, here: str) -> str:
    """Return the root of the repository in which a folder lies, by its path without links; ``""`` if it is in none.

    It is the outermost folder with ``.git`` at or above, but no folder above a CI server's checkout; else the checkout;
    else ``here``, the current folder, if the folder is in it.
    """
    above = [PurePath(folder), *PurePath(folder).parents]
    checkouts = {PurePath(os.path.realpath(each)) for each in map(os.environ.get, SERVERS_VARIABLES) if each}
    checkout = next((each for each in above if each in checkouts), None)
    within = above[: above.index(checkout) + 1] if checkout else above
    roots = [each for each in within if os.path.lexists(os.path.join(each, GIT))]
    found = roots[-1] if roots else checkout
    return str(found) if found else here if here and PurePath(here) in above else ""


def unlinked(name: str) -> str:
    """Return the path without links of a file or folder to write.

    Raises OSError if its name leads through a link that lies in a repository, or has a part named ``.git``.
    """
    if any(map(_is_git, PurePath(name).parts)):
        raise OSError(errno.EACCES, f"leads into {GIT}, where nothing is written", name)
    place, links = followed(name)
    if links:
        link, target = links[0], os.path.realpath(links[0].path)
        kind = "folder" if os.path.isdir(target) or PurePath(link.name) != PurePath(name) else "file"
        raise OSError(errno.ELOOP, f"{link.name} is a link to {target}: name that {kind}", name)
    return place


def why_not_followed(name: str, root: str = "") -> str:
    """Return why a name is not read: a link in a repository leads it elsewhere; ``""`` if none does.

    Such links may also lead below ``root``, a path without links. Raises OSError as ``followed`` does.
    """
    place, links = followed(name)
    for link in reversed(links):
        if not (lies_in(place, link.repository) or (root and lies_in(place, root))):
            if PurePath(place).is_relative_to(link.repository):
                return f"{link.name} is a link into a {GIT}, to {place}: name that itself"
            ways_out = "name that itself, or a folder below which links may lead by --root"
            return f"{link.name} is a link out of {link.repository}, to {place}: {ways_out}"
    return ""


def lies_in(path: str, folder: str) -> bool:
    """Return True if a path is in a folder, and in no ``.git`` there but for git-annex' objects; both without links."""
    try:
        parts = PurePath(path).relative_to(folder).parts
    except ValueError:
        return False
    return not any(_is_git(part) and (part != GIT or parts[i : i + 2] != _ANNEX) for i, part in enumerate(parts, 1))


def _is_git(part: str) -> bool:
    """Return True if some file system takes a name for ``.git``: HFS+ ignores invisible characters, Windows ends."""
    visible = "".join(char for char in part if char.isprintable()).casefold()
    return visible.partition(":")[0].rstrip(". ") in (GIT, "git~1")


def without_device_prefix(name: str) -> str:
    r"""Return a name without the ``\\?\`` that lifts Windows' limit on a path's length, and that no URI can have."""
    if os.name != "nt" or not name.startswith("\\\\?\\"):
        return name
    rest = name[4:]
    return f"\\\\{rest[4:]}" if rest[:4].upper() == "UNC\\" else rest
