"""Reads files that URLs name through fsspec: lists folders and patterns, opens files, and copies models whole."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, BinaryIO, Final

from dml_tile.files.urls import file_of, located, reported, url_of
from dml_tile.input_errors import unreadable
from dml_tile.readers.file_kinds import SAVED_MODEL

MAX_BYTES: Final = 2**31 - 1
"""The bytes of a model and its weights that are fetched."""

MAX_SECONDS: Final = 60
"""Seconds that fetching one model may take."""


def found_in(url: str) -> tuple[list[str], bool]:
    """Return the files that a URL stands for, ordered by name, and whether it is a folder. Raises InputError.

    A pattern stands for the files that match, and what is neither a pattern nor a folder for itself.
    """
    with reported():
        system, path = located(url)
        is_pattern = any(char in file_of(url) for char in "*?[")
        if system.isfile(path) or not (is_pattern or system.isdir(path)):
            return [url], False
        found = (system.glob if is_pattern else system.find)(path, detail=True)
        return [url_of(path, url) for path in sorted(found) if found[path]["type"] == "file"], not is_pattern


@contextmanager
def opened(url: str) -> Iterator[BinaryIO]:
    """Open a file. Raises InputError, also for what fails within the block."""
    with reported():
        system, path = located(url)
        with system.open(path, "rb") as file:
            yield file


@contextmanager
def local_copy(url: str) -> Iterator[Path]:
    """Yield a copy of a model, with the files beside it that OpenVINO reads. Raises InputError."""
    with TemporaryDirectory(prefix="dml-tile-", ignore_cleanup_errors=True) as folder:
        copy: Future[Path] = Future()
        Thread(target=_fetch, args=(url, Path(folder), copy), daemon=True).start()
        if wait([copy], MAX_SECONDS).not_done:
            raise unreadable("", f"fetching it took longer than {MAX_SECONDS} s")
        yield copy.result()


def _fetch(url: str, folder: Path, done: Future[Path]) -> None:
    try:
        with reported():
            system, path = located(url)
            copy = folder / PurePosixPath(file_of(url)).name
            copies, weights, variables = {path: copy}, f"{path[:-4]}.bin", f"{path.rpartition('/')[0]}/variables"
            if copy.suffix.lower() == ".xml" and system.isfile(weights):
                copies[weights] = copy.with_suffix(".bin")
            elif copy.name == SAVED_MODEL and system.isdir(variables):
                (folder / "variables").mkdir()
                copies |= {file: folder / "variables" / PurePosixPath(file).name for file in system.find(variables)}
            _copy(system, copies)
        done.set_result(copy)
    except BaseException as error:
        done.set_exception(error)


def _copy(system: Any, copies: dict[str, Path]) -> None:
    """Copy files, of at most MAX_BYTES together; stop where the folder of the copies is removed."""
    left = MAX_BYTES
    for source, target in copies.items():
        size = system.info(source)["size"]
        if size is not None and size > left:
            raise unreadable("", f"has {size} bytes; at most {MAX_BYTES} are fetched of a model and its weights")
        with system.open(source, "rb") as file, target.open("wb") as copy:
            while target.exists() and (part := file.read(2**20)):
                left -= copy.write(part)
                if left < 0:
                    raise unreadable(
                        "", f"has more than {MAX_BYTES} bytes, which are fetched of a model and its weights"
                    )
