"""Finds the files of a check, in folders too, and has each read by the reader of its kind."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from functools import partial
from pathlib import Path, PurePath, PurePosixPath
from typing import TYPE_CHECKING, Final

from dml_tile.errors import InputError, Problem
from dml_tile.files.repository import GITIGNORE, ignores_above, ignores_within, is_ignored
from dml_tile.files.urls import Url, file_of
from dml_tile.readers.descriptors import JsonDescriptor, read_source
from dml_tile.readers.file_kinds import SAVED_MODEL, SAVED_MODEL_PARTS
from dml_tile.readers.model_tile import KnownShapes, TileNode

if TYPE_CHECKING:
    from dml_tile.readers.remote import RemoteFiles
    from dml_tile.readers.sandbox.parent import ModelReader

EMPTY_FOLDER: Final = Problem(
    "", "the folder holds no models and no descriptors; links that leave it, and what .gitignore names, are passed over"
)
"""The problem of a folder for which ``expanded`` yields nothing."""

MODEL_SUFFIXES: Final = (".onnx", ".xml", ".tflite", ".pb", ".pdmodel")
"""Files that the ONNX and OpenVINO readers read; all others are read as JSON."""

_KINDS: Final = {
    # what of these is looked at in a folder: that whose first bytes hold the pattern
    ".xml": re.compile(b"<net"),
    ".pb": re.compile(b"Placeholder|Const"),  # a TensorFlow graph's; onnx keeps tensors in such files
    **dict.fromkeys(
        (".json", ".jsonl", ".ndjson"),  # keys; what reports say of them is none of it
        re.compile(rb'"(InputTensor|input_tensor|dispatchables|initialValues)"\s*(:|\Z)'),
    ),
}
_JSON_SCHEMA: Final = re.compile(rb'"\$schema"\s*:\s*"https?://json-schema\.org/')
"""What a JSON Schema says of itself; the schema of a model has a model's keys too."""

_BEGINNING: Final = 2**16
_ENVIRONMENT: Final = "pyvenv.cfg"
"""Lies in the folder of a virtual environment."""

_LEADS_NOWHERE: Final = (errno.ENOENT, errno.ELOOP)


def is_model_file(name: str) -> bool:
    """Return True if a file's suffix is that of an ONNX or OpenVINO model."""
    return file_of(name).lower().endswith(MODEL_SUFFIXES)


class Sources(AbstractContextManager["Sources"]):
    """Reads the sources of one check; the child that reads models starts with the first one and ends with the block.

    ``shared_by`` so many processes, each has its part of the memory that reading a model may take.
    """

    def __init__(self, known_shapes: KnownShapes, shared_by: int = 1) -> None:
        self._known_shapes = known_shapes
        self._shared_by = shared_by
        self._models: ModelReader | None = None
        self._remote: RemoteFiles | None = None

    def __exit__(self, *error: object) -> None:
        """End the child that reads models; the next model would start another one."""
        if self._models is not None:
            self._models.close()

    def new_dimension_names(self) -> frozenset[str]:
        """Return the names of dimensions in the ONNX models that were read since the last call."""
        return self._models.new_dimension_names() if self._models else frozenset()

    def parts(self, name: str) -> Iterator[JsonDescriptor | TileNode | Problem]:
        """Yield the tiles and problems of a file, which may be a URL, or of standard input (``-``)."""
        if isinstance(name, Url):
            yield from self._remote_parts(name)
        elif is_model_file(name):
            yield from self._model_parts(Path(name))
        else:
            yield from read_source(name)

    def _remote_parts(self, url: Url) -> Iterator[JsonDescriptor | TileNode | Problem]:
        if self._remote is None:
            from dml_tile.readers.remote import RemoteFiles  # which most checks need not

            self._remote = RemoteFiles()
        try:
            with self._remote.local_copy(url) as copy:
                yield from self._model_parts(copy) if is_model_file(url) else read_source(str(copy))
        except InputError as error:
            yield from error.problems

    def _model_parts(self, path: Path) -> Iterator[TileNode | Problem]:
        if self._models is None:
            from dml_tile.readers.sandbox.parent import MAX_MEMORY_BYTES, ModelReader  # with what a process takes

            self._models = ModelReader(self._known_shapes, memory=MAX_MEMORY_BYTES // self._shared_by)
        yield from self._models.parts(path)


def expanded(name: str, walked: set[PurePath] | None = None, *, ignores_none: bool = False) -> Iterator[str]:
    """Yield a file itself; for a folder, the files at any depth that may have tiles, ordered by name; so of URLs.

    A TensorFlow SavedModel's folder is one source, its saved_model.pb; other models next to that are sources too. Skips
    links that leave the folder or lead nowhere, JSON Schemas, and XML, JSON and .pb files of other kinds; unless
    ``ignores_none``, also what .gitignore files name, hidden folders, node_modules and virtual environments.
    Yields files and folders that cannot be opened, so that their reader reports why. Adds absolute paths of folders to
    ``walked``. Raises InputError for a URL whose store cannot be looked into.
    """
    if isinstance(name, Url):
        yield from _remote_files(name)
    elif name != "-" and os.path.isdir(name):  # noqa: PTH112 - Path.is_dir raises where a folder above is closed
        yield from _files_below(Path(name), set() if walked is None else walked, ignores_none)
    else:
        yield name


def may_have_tiles(name: str) -> bool:
    """Return True if a file would be read when found in a folder, and for anything that is not a regular file."""
    file = Path(name)
    return isinstance(name, Url) or not file.is_file() or _may_have_tiles(file, file.resolve().parent)


def _remote_files(url: Url) -> Iterator[Url]:
    from dml_tile.readers.remote import RemoteFiles

    remote = RemoteFiles()
    found, are_of_folder = remote.found_in(url)
    if not are_of_folder:
        yield from found
        return
    root = url.file.strip("/")
    paths = [PurePosixPath(file.file.strip("/").removeprefix(root)) for file in found]
    saved_models = {path.parent for path in paths if path.name == SAVED_MODEL}
    for file, path in zip(found, paths, strict=True):
        is_hidden = any(part.startswith(".") for part in path.parent.parts)
        is_part = any(each.parent in saved_models and each.name in SAVED_MODEL_PARTS for each in (path, *path.parents))
        with suppress(InputError):  # reading it says why
            if is_hidden or is_part or not _is_of_kind(path, partial(remote.beginning, file)):
                continue
        yield file


def _files_below(folder: Path, walked: set[PurePath], ignores_none: bool) -> Iterator[str]:
    try:
        root = folder.resolve()
        whole = Path(os.path.abspath(folder))  # noqa: PTH100  # links are not followed
    except OSError:  # the current folder was removed
        yield str(folder)
        return
    unopened: list[Path] = []
    left = [(folder, whole, () if ignores_none else ignores_above(str(folder)))]
    while left:
        path, whole, ignores = left.pop()
        walked.add(whole)
        try:
            folders, files = _entries(str(path))
        except OSError:
            unopened.append(path)
            continue
        if not ignores_none:
            if _ENVIRONMENT in files and path is not folder:
                continue
            if GITIGNORE in files:
                ignores = ignores_within(str(whole), ignores)
            folders = [name for name in folders if not (name.startswith(".") or name == "node_modules")]
        if ignores:
            folders = [name for name in folders if not is_ignored(f"{whole / name}/", ignores)]
            files = [name for name in files if not is_ignored(str(whole / name), ignores)]
        yield from (str(path / name) for name in files if _may_have_tiles(path / name, root))
        left += [(path / name, whole / name, ignores) for name in reversed(folders)]
    yield from map(str, unopened)


def _entries(folder: str) -> tuple[list[str], list[str]]:
    folders: list[str] = []
    files: list[str] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            (folders if entry.is_dir(follow_symlinks=False) else files).append(entry.name)
    parts = SAVED_MODEL_PARTS if SAVED_MODEL in files else frozenset()
    return sorted(set(folders) - parts), sorted(set(files) - parts)


def _may_have_tiles(file: Path, root: Path) -> bool:
    suffix = file.suffix.lower()
    if suffix not in MODEL_SUFFIXES and suffix not in _KINDS:
        return False
    try:
        if not stat.S_ISREG(file.stat().st_mode) or (file.is_symlink() and not file.resolve().is_relative_to(root)):
            return False
        with file.open("rb") as opened:
            return _is_of_kind(file, opened.read)
    except OSError as error:
        return error.errno not in _LEADS_NOWHERE


def _is_of_kind(file: PurePath, read: Callable[[int], bytes]) -> bool:
    """Return True for a model, and for what may hold tiles by its first bytes, which ``read`` returns."""
    suffix = file.suffix.lower()
    if suffix not in _KINDS or file.name == SAVED_MODEL:
        return suffix in MODEL_SUFFIXES
    beginning = read(_BEGINNING)
    return _KINDS[suffix].search(beginning) is not None and _JSON_SCHEMA.search(beginning) is None
