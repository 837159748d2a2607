"""Reads files that URLs name through fsspec: lists folders and patterns, opens files, and copies models whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path, PureWindowsPath
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, Final, TypeVar

from dml_tile.files.urls import Url, opened_store, reported
from dml_tile.input_errors import unreadable
from dml_tile.readers.file_kinds import SAVED_MODEL

MAX_BYTES: Final = 2**31 - 1
"""The bytes of a file, or of a model and its weights, that are fetched."""

MAX_SECONDS: Final = 60
"""Seconds that fetching one file, or a model with its weights, may take."""

MAX_SECONDS_TO_LIST: Final = 600
"""Seconds that looking for the files of a folder or a pattern may take."""

_MAX_NAME_LENGTH: Final = 60  # of up to four bytes each, where a file system takes 255

_Read = TypeVar("_Read")


class RemoteFiles:
    """Reads files that URLs name. Each store is opened once."""

    def __init__(self) -> None:
        self._store = cache(opened_store)

    def found_in(self, url: Url) -> tuple[list[Url], bool]:
        """Return the files of a folder or a pattern, else the URL, and whether it is a folder. Raises InputError."""
        if not url.can_list and (url.endswith("/") or any(char in url.file.partition("/")[2] for char in "*[")):
            raise unreadable("", "web servers list no files: name each file, not a folder or a pattern")

        def found(system: Any, path: str) -> tuple[list[Url], bool]:
            is_pattern = any(char in url.file for char in "*?[")
            if not url.can_list or system.isfile(path) or not (is_pattern or system.isdir(path)):
                return [url], False
            found = (system.glob if is_pattern else system.find)(path, detail=True)
            files = [Url(url.typed, path) for path in sorted(found) if found[path]["type"] == "file"]
            return files, not is_pattern

        return self._in_time(url, MAX_SECONDS_TO_LIST, found)

    def beginning(self, url: Url, size: int) -> bytes:
        """Return a file's first bytes. Raises InputError."""

        def read(system: Any, path: str) -> bytes:
            with _opened(system, path) as file:
                return bytes(file.read(size))

        return self._in_time(url, MAX_SECONDS, read)

    @contextmanager
    def local_copy(self, url: Url) -> Iterator[Path]:
        """Yield a copy of a file, with the files beside a model that OpenVINO reads. Raises InputError."""
        with TemporaryDirectory(prefix="dml-tile-", ignore_cleanup_errors=True) as folder:
            copy = Path(folder, PureWindowsPath(url.file).name[-_MAX_NAME_LENGTH:] or "file")  # safe on any system

            def fetched(system: Any, path: str) -> Path:
                _fetch(system, _copies(system, path, copy, can_list=url.can_list))
                return copy

            yield self._in_time(url, MAX_SECONDS, fetched)

    def _in_time(self, url: Url, seconds: float, read: Callable[[Any, str], _Read]) -> _Read:
        """Return what ``read`` returns in so many seconds of a file system and a path in it. Raises InputError."""
        done: Future[_Read] = Future()

        def run() -> None:
            try:
                done.set_result(read(*self._located(url)))
            except BaseException as error:
                done.set_exception(error)

        Thread(target=run, daemon=True).start()
        with reported(url):
            if wait([done], seconds).not_done:
                self._store.cache_clear()  # the thread may hold their locks
                raise unreadable("", f"fetching it took longer than {seconds} s")
            return done.result()

    def _located(self, url: Url) -> tuple[Any, str]:
        system, path = self._store(url.typed)
        if url.member is not None and system._strip_protocol(url.member) != url.member:
            raise unreadable("", "its store takes this name for another one")
        return system, path if url.member is None else url.member


def _opened(system: Any, path: str) -> Any:
    """Return a file opened for reading. Raises InputError for a device, FIFO or dangling link of a tar."""
    with suppress(*((AttributeError, KeyError, RecursionError) if hasattr(system, "tar") else ())):
        if (file := system.open(path, "rb")) is not None:  # as in older releases
            return file
    raise unreadable("", "is not a regular file")


def _copies(system: Any, path: str, copy: Path, *, can_list: bool) -> dict[str, Path]:
    """Return the paths of a model and of the files beside it that OpenVINO reads, each with that of its copy."""
    weights, variables = f"{path[:-4]}.bin", f"{path.rpartition('/')[0]}/variables"
    if copy.suffix.lower() == ".xml" and system.isfile(weights):
        return {path: copy, weights: copy.with_suffix(".bin")}
    if copy.name == SAVED_MODEL and can_list and system.isdir(variables):
        (folder := copy.parent / "variables").mkdir()
        return {path: copy} | {file: folder / PureWindowsPath(file).name for file in system.find(variables)}
    return {path: copy}


def _fetch(system: Any, copies: dict[str, Path]) -> None:
    """Copy files, of at most MAX_BYTES together; stop where the folder of the copies is removed."""
    left = MAX_BYTES
    for source, target in copies.items():
        is_too_large = (system.info(source)["size"] or 0) > left
        with _opened(system, source) as file, target.open("wb") as copy:
            while not is_too_large and target.exists() and (part := file.read(2**20)):
                left -= copy.write(part)
                is_too_large = left < 0
        if is_too_large:
            raise unreadable("", f"has more than {MAX_BYTES} bytes with its weights, the most that is fetched")
