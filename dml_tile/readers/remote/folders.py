"""The files of folders and patterns that URLs name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath

from dml_tile.errors import InputError
from dml_tile.files.urls import file_of
from dml_tile.readers.file_kinds import SAVED_MODEL, SAVED_MODEL_PARTS
from dml_tile.readers.remote.files import beginning, found_in


def files_of_a_url(url: str, kinds: Mapping[str, re.Pattern[bytes] | None], size: int) -> Iterator[str]:
    """Yield a file itself, the files that match a pattern, or those of a folder that may have tiles, ordered by name.

    In a folder, files of the ``kinds`` are looked at, whose first bytes, of this ``size``, match the pattern of their
    suffix, if it has one. What cannot be opened is yielded too, so that its reader tells why.
    """
    try:
        found, are_of_a_folder = found_in(url)
    except InputError:
        found, are_of_a_folder = [url], False
    if not are_of_a_folder:
        yield from found
        return
    root = file_of(url).strip("/")
    paths = {file: PurePosixPath(file_of(file).strip("/").removeprefix(root)) for file in found}
    saved = {path.parent for path in paths.values() if path.name == SAVED_MODEL}
    for file, path in paths.items():
        if not _is_hidden(path) and not _is_part_of(saved, path) and _is_wanted(file, path, kinds, size):
            yield file


def _is_hidden(path: PurePosixPath) -> bool:
    return any(part.startswith(".") for part in path.parent.parts)


def _is_part_of(saved: set[PurePosixPath], path: PurePosixPath) -> bool:
    """Return True for what TensorFlow writes next to a saved_model.pb."""
    return any(place.parent in saved and place.name in SAVED_MODEL_PARTS for place in (path, *path.parents))


def _is_wanted(url: str, path: PurePosixPath, kinds: Mapping[str, re.Pattern[bytes] | None], size: int) -> bool:
    suffix = path.suffix.lower()
    if suffix not in kinds:
        return False
    pattern = kinds[suffix]
    if pattern is None or path.name == SAVED_MODEL:
        return True
    try:
        return pattern.search(beginning(url, size)) is not None
    except InputError:
        return True
