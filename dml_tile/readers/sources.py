"""Finds the files of a check, also in folders, reports the skipped ones, and calls the reader of each kind."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, BinaryIO, Final, NamedTuple, Protocol, Self, TypeAlias

from dml_tile.errors import InputError, input_error
from dml_tile.files.links import GIT, followed, why_not_followed
from dml_tile.files.paths import STANDARD_INPUT
from dml_tile.files.repository import GITIGNORE, Ignores, ignores_above, ignores_within, is_ignored
from dml_tile.findings import EXTERNAL_DATA, NOTHING_TO_CHECK, PASSED_OVER, Finding, own_finding
from dml_tile.readers.contents import why_nothing
from dml_tile.readers.descriptors import open_source, read_source
from dml_tile.readers.file_kinds import FileKind, kind_of, why_unread
from dml_tile.readers.item import Item, item_of
from dml_tile.readers.model_names import KnownShapes, ModelFacts

if TYPE_CHECKING:
    from dml_tile.back_ends.deployment import Deployment
    from dml_tile.back_ends.placement import PlacedModel
    from dml_tile.readers.sandbox.parent import ModelReader

SourcePart: TypeAlias = "Item | PlacedModel | Finding"
"""A part of a source: an operator, the placements of a model's nodes, or an unreadable part."""

EMPTY_FOLDER: Final = own_finding(NOTHING_TO_CHECK, "the folder holds no models and no descriptors")
"""The problem of a folder for which ``expanded`` yields nothing."""

EXCLUDED: Final = "excluded"
"""The reason of a file that the user excludes."""

EMPTY: Final = "without descriptors"
"""The reason of a file that was read and is skipped."""

LINKED: Final = "linked"
"""The reason of a linked folder."""

LINKED_FROM_OUTSIDE: Final = "linked from outside of the repository"

_IGNORED: Final = f"ignored by {GITIGNORE}"
_HIDDEN: Final = "in a hidden folder"
_OTHER_SUFFIX: Final = "of another suffix"
_LEFT_OUT: Final = frozenset((EXCLUDED, _IGNORED, _HIDDEN, _OTHER_SUFFIX))
"""The reasons of files that were not opened."""

_PACKAGES: Final = "node_modules"
_ENVIRONMENT: Final = "pyvenv.cfg"
"""The file that marks a virtual environment's folder."""

_LEADS_NOWHERE: Final = (errno.ENOENT, errno.ELOOP)

MAX_STORED_BYTES: Final = 2**31 - 1
"""The most bytes of a stored file that are read."""


class OpenFile(Protocol):
    """A file that the caller opens, such as an ``OpenFile`` of fsspec; it must pickle to reach other processes."""

    @property
    def path(self) -> str:
        """The file's name in results; its suffix tells the kind."""

    def open(self) -> BinaryIO:
        """Return the bytes to read, as a context manager."""


class StoredFile(str):
    """The path of a file in a store, with the object that opens it."""

    opens: OpenFile

    def __new__(cls, opens: OpenFile) -> Self:
        made = super().__new__(cls, opens.path)
        made.opens = opens
        return made

    def __reduce__(self) -> tuple[type[Self], tuple[OpenFile]]:
        return type(self), (self.opens,)


def passing_over(name: str, reason: str) -> Finding:
    """Return the finding on a file that holds nothing to check, or on a folder that is not entered.

    A folder's name has a slash at the end.
    """
    return own_finding(PASSED_OVER, reason, source=name)


def is_left_out(passed_over: Finding) -> bool:
    """Return True for skipped folders, and for files that are not opened."""
    return passed_over.source.endswith("/") or passed_over.message in _LEFT_OUT


def is_model_file(name: str) -> bool:
    """Return True if a file's suffix is that of a model, which is read in a child process."""
    kind = kind_of(name)
    return kind is not None and kind.is_model


def may_hold_descriptors(name: str) -> bool:
    """Return False for models, and for files of kinds that are not read, by suffix or else by beginning."""
    kind = kind_of(name)
    if kind or name == STANDARD_INPUT:
        return kind is None or str(kind.reader).startswith("JSON")
    with suppress(OSError, InputError), open_source(name) as file:
        return not why_unread(name, file.read(2**6))
    return True


class Sources(AbstractContextManager["Sources"]):
    """Reads the sources of one check; the child that reads models starts with the first one and ends with the block.

    ``deployments`` are the releases of ONNX Runtime that place the nodes of ONNX models. ``shared_by`` processes share
    the memory that reading a model may take.
    """

    def __init__(self, known_shapes: KnownShapes, shared_by: int = 1, deployments: Sequence[Deployment] = ()) -> None:
        self._known_shapes = known_shapes
        self._deployments = deployments
        self._shared_by = shared_by
        self._models: ModelReader | None = None

    def __exit__(self, *error: object) -> None:
        """End the child that reads models; the next model would start another one."""
        if self._models is not None:
            self._models.close()

    def new_facts(self) -> ModelFacts:
        """Return the facts about the models read since the last call."""
        return self._models.new_facts() if self._models else ModelFacts()

    def parts(self, name: str, called: str = "") -> Iterator[SourcePart]:
        """Yield the tiles and problems of a file, or of standard input (``-``).

        Standard input is read by the name that it is ``called``, if any.
        """
        if isinstance(name, StoredFile):
            yield from self._stored_parts(name)
        elif is_model_file(name):
            yield from self._model_parts(Path(name))
        else:
            yield from read_source(name, called)

    def _stored_parts(self, file: StoredFile) -> Iterator[SourcePart]:
        try:
            with _local_copy(file) as copy:
                for part in self._model_parts(copy) if is_model_file(file) else read_source(str(copy)):
                    # no other file is beside the copy
                    yield part if isinstance(part, Item | Finding) else part.without(EXTERNAL_DATA)
        except InputError as error:
            yield from error.problems

    def _model_parts(self, path: Path) -> Iterator[SourcePart]:
        if self._models is None:
            from dml_tile.readers.sandbox.parent import MAX_MEMORY_BYTES, ModelReader  # imports subprocess

            self._models = ModelReader(
                self._known_shapes, self._deployments, memory=MAX_MEMORY_BYTES // self._shared_by
            )
        from dml_tile.back_ends.described_node import DescribedNode
        from dml_tile.readers.model_tile import TileNode

        for part in self._models.parts(path):
            assert not isinstance(part, DescribedNode), "none was asked for"
            yield item_of(part) if isinstance(part, TileNode) else part


@contextmanager
def _local_copy(file: StoredFile) -> Iterator[Path]:
    """Yield a copy of a stored file, for the readers that seek. Raises InputError."""
    from tempfile import TemporaryDirectory  # local files need none

    with TemporaryDirectory(prefix="dml-tile-", ignore_cleanup_errors=True) as folder:
        copy, size = Path(folder, "file" + PurePath(file).suffix), 0
        try:
            with file.opens.open() as stored, copy.open("wb") as written:
                while part := stored.read(2**20):
                    if (size := size + len(part)) > MAX_STORED_BYTES:
                        raise input_error("", f"has more than {MAX_STORED_BYTES} bytes")
                    written.write(part)
        except InputError:
            raise
        except Exception as error:  # of any client; its message may hold credentials
            raise input_error("", f"cannot be read: {type(error).__name__}") from error
        yield copy


def expanded(
    name: str,
    walked: set[PurePath] | None = None,
    *,
    ignores_none: bool = False,
    leaves_out: Callable[[str], bool] = lambda file: False,
    pass_over: Callable[[Finding], object] = lambda found: None,
    root: str = "",
) -> Iterator[str]:
    """Yield a file itself; for a folder, files at any depth that may have tiles, ordered by name.

    Skips what ``leaves_out`` excludes, links that lead nowhere or out of the folder (those that lie in a repository may
    lead to all of it, and below ``root``), and files of a kind that is read with nothing to check in them; unless
    ``ignores_none``, also what .gitignore files name, hidden folders, node_modules and virtual environments. Calls
    ``pass_over`` with each of these. Yields files and folders that cannot be opened, so that their reader reports why.
    Adds absolute paths of folders to ``walked``.
    """
    if name != STANDARD_INPUT and os.path.isdir(name):  # noqa: PTH112 - Path.is_dir raises where a folder above is closed
        walk = _Walk(set() if walked is None else walked, ignores_none, leaves_out, pass_over, root)
        yield from walk.files(Path(name))
    elif leaves_out(name):
        pass_over(passing_over(name, EXCLUDED))
    else:
        yield name


def why_skipped(name: str) -> Finding | None:
    """Return why a file would be skipped in a folder; None if it is read, or is no regular file."""
    file = Path(name)
    if not file.is_file():
        return None
    kind = kind_of(name)
    if kind is None or kind.reader is None:
        return passing_over(name, _OTHER_SUFFIX)
    reason = _why_nothing(kind, file)
    return passing_over(name, reason) if reason else None


class _Walk(NamedTuple):
    """Finds the files in a folder and below it, as ``expanded`` describes."""

    walked: set[PurePath]
    ignores_none: bool
    leaves_out: Callable[[str], bool]
    pass_over: Callable[[Finding], object]
    root: str

    def files(self, folder: Path) -> Iterator[str]:
        """Yield the names of files that may have tiles, and of files and folders that cannot be opened."""
        try:
            real = folder.resolve()
            whole = Path(os.path.abspath(folder))  # noqa: PTH100  # links are not followed
        except OSError:  # the current folder was removed
            yield str(folder)
            return
        unopened: list[Path] = []
        left = [(folder, whole, () if self.ignores_none else ignores_above(str(folder)))]
        while left:
            path, whole, ignores = left.pop()
            self.walked.add(whole)
            try:
                folders, files, links = _entries(str(path))
            except OSError:
                unopened.append(path)
                continue
            if not self.ignores_none and _ENVIRONMENT in files and path is not folder:
                self._is_taken(f"{path}/", "with a virtual environment")
                continue
            if not self.ignores_none and GITIGNORE in files:
                ignores = ignores_within(str(whole), ignores)
            for name in files:
                kind = kind_of(name)
                if kind and kind.reader:
                    file = path / name
                    left_out = self._why_left_out(str(file), name, str(whole / name), ignores)
                    left_out = left_out or self._why_linked(real / file.relative_to(folder), real)
                    if self._is_taken(str(file), left_out or _why_nothing(kind, file)):
                        yield str(file)
            for name in links:
                self._is_taken(f"{path / name}/", LINKED)
            for name in reversed(folders):
                if name == GIT and not self.ignores_none:  # its files are not the project's
                    continue
                within = f"{path / name}/"
                if self._is_taken(within, self._why_left_out(within, name, f"{whole / name}/", ignores)):
                    left.append((path / name, whole / name, ignores))
        yield from map(str, unopened)

    def _why_left_out(self, path: str, name: str, whole: str, ignores: Ignores) -> str:
        """Return why a file, or a folder whose path ends with a slash, is not opened; ``""`` if it is."""
        if self.leaves_out(path):
            return EXCLUDED
        if path.endswith("/") and not self.ignores_none and name.startswith("."):
            return "hidden"
        if path.endswith("/") and not self.ignores_none and name == _PACKAGES:
            return f"called {_PACKAGES}"
        return _IGNORED if is_ignored(whole, ignores) else ""

    def _why_linked(self, file: Path, folder: Path) -> str:
        """Return why a link to a file is not followed; ``""`` if it is, or is no link. The folder's path has no links.

        The name is absolute: the current folder is no repository, so it widens nothing.
        """
        if not file.is_symlink():
            return ""
        try:
            place, links = followed(str(file))
            if links:
                return LINKED_FROM_OUTSIDE if why_not_followed(str(file), self.root) else ""
        except OSError:
            return "linked from nowhere"
        return "" if PurePath(place).is_relative_to(folder) else "linked from outside of the folder"

    def _is_taken(self, path: str, reason: str) -> bool:
        """Return True without a reason against it; else pass over a file or a folder."""
        if reason:
            self.pass_over(passing_over(path, reason))
        return not reason


def _entries(folder: str) -> tuple[list[str], list[str], list[str]]:
    """Return the names of folders, of files, and of links to folders."""
    folders: list[str] = []
    files: list[str] = []
    links: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            is_folder = entry.is_dir(follow_symlinks=False)
            is_link = entry.is_symlink() and os.path.isdir(entry.path)  # noqa: PTH112 - is_dir raises for a loop
            (folders if is_folder else links if is_link else files).append(entry.name)
    return sorted(folders), sorted(files), sorted(links)


def _why_nothing(kind: FileKind, file: Path) -> str:
    """Return why a file holds nothing to check, or ``""``."""
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            return "not regular"
        if kind.content is None:
            return ""
        with file.open("rb") as opened:
            return why_nothing(kind, opened)
    except OSError as error:
        return "linked from nowhere" if error.errno in _LEADS_NOWHERE else ""
