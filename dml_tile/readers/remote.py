"""Reads files that URLs name through fsspec: lists folders and patterns, opens files, and copies models whole."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from functools import cache
from pathlib import Path, PureWindowsPath
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, BinaryIO, Final

from dml_tile.files.urls import Url, opened_store, reported
from dml_tile.input_errors import unreadable
from dml_tile.readers.file_kinds import SAVED_MODEL

MAX_BYTES: Final = 2**31 - 1
"""The bytes of a model and its weights that are fetched."""

MAX_SECONDS: Final = 60
"""Seconds that fetching one model may take."""


class RemoteFiles:
    """Reads files that URLs name. Each store is opened once."""

    def __init__(self) -> None:
        self._store = cache(opened_store)

    def found_in(self, url: Url) -> tuple[list[Url], bool]:
        """Return the files of a folder or a pattern, else the URL, and whether it is a folder. Raises InputError."""
        with reported(url):
            system, path = self._located(url)
            is_pattern = any(char in url.file for char in "*?[")
            if system.isfile(path) or not (is_pattern or system.isdir(path)):
                return [url], False
            found = (system.glob if is_pattern else system.find)(path, detail=True)
            files = [Url(url.typed, path) for path in sorted(found) if found[path]["type"] == "file"]
            return files, not is_pattern

    @contextmanager
    def opened(self, url: Url) -> Iterator[BinaryIO]:
        """Open a file. Raises InputError, also for what fails within the block."""
        with reported(url):
            system, path = self._located(url)
            with system.open(path, "rb") as file:
                yield file

    @contextmanager
    def local_copy(self, url: Url) -> Iterator[Path]:
        """Yield a copy of a model, with the files beside it that OpenVINO reads. Raises InputError."""
        with TemporaryDirectory(prefix="dml-tile-", ignore_cleanup_errors=True) as folder:
            copy: Future[Path] = Future()
            Thread(target=self._fetch, args=(url, Path(folder), copy), daemon=True).start()
            if wait([copy], MAX_SECONDS).not_done:
                self._store.cache_clear()  # the thread may hold their locks
                raise unreadable("", f"fetching it took longer than {MAX_SECONDS} s")
            yield copy.result()

    def _fetch(self, url: Url, folder: Path, done: Future[Path]) -> None:
        try:
            with reported(url):
                system, path = self._located(url)
                copies = _copies(system, path, folder / PureWindowsPath(url.file).name)  # safe on other systems, too
                _fetch(system, copies)
            done.set_result(copies[path])
        except BaseException as error:
            done.set_exception(error)

    def _located(self, url: Url) -> tuple[Any, str]:
        system, path = self._store(url.typed)
        if url.member is not None and system._strip_protocol(url.member) != url.member:
            raise unreadable("", "its store takes this name for another one")
        return system, path if url.member is None else url.member


def _copies(system: Any, path: str, copy: Path) -> dict[str, Path]:
    """Return the paths of a model and of the files beside it that OpenVINO reads, each with that of its copy."""
    weights, variables = f"{path[:-4]}.bin", f"{path.rpartition('/')[0]}/variables"
    if copy.suffix.lower() == ".xml" and system.isfile(weights):
        return {path: copy, weights: copy.with_suffix(".bin")}
    if copy.name == SAVED_MODEL and system.isdir(variables):
        folder = copy.parent / "variables"
        folder.mkdir()
        return {path: copy} | {file: folder / PureWindowsPath(file).name for file in system.find(variables)}
    return {path: copy}


def _fetch(system: Any, copies: dict[str, Path]) -> None:
    """Copy files, of at most MAX_BYTES together; stop where the folder of the copies is removed."""
    left = MAX_BYTES
    for source, target in copies.items():
        is_too_large = (system.info(source)["size"] or 0) > left
        with system.open(source, "rb") as file, target.open("wb") as copy:
            while not is_too_large and target.exists() and (part := file.read(2**20)):
                left -= copy.write(part)
                is_too_large = left < 0
        if is_too_large:
            raise unreadable("", f"has more than {MAX_BYTES} bytes with its weights, the most that is fetched")
