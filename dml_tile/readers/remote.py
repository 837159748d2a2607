"""Reads files of URLs through fsspec: lists folders and patterns, opens files, and copies models whole."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from functools import cache
from pathlib import Path, PureWindowsPath
from tempfile import TemporaryDirectory
from threading import Thread
from typing import Any, BinaryIO, Final, TypeVar

from dml_tile.errors import input_error
from dml_tile.readers.urls import TimeLeft, Url, opened_store, reported

MAX_FETCHED_BYTES: Final = 2**31 - 1
"""The most bytes of a file, or of a model with its weights, that are fetched."""

MAX_SECONDS_OF_SEVERAL: Final = 600
"""Seconds that a folder's or a pattern's files may take to be listed, looked into and fetched."""

_MAX_NAME_LENGTH: Final = 60  # of up to four bytes each, where a file system takes 255

_Read = TypeVar("_Read")


class RemoteFiles:
    """Reads files that URLs name. Each store is opened once."""

    def __init__(self) -> None:
        self._store = cache(opened_store)

    def found_in(self, url: Url) -> tuple[list[Url], bool]:
        """Return the files of a folder or a pattern, else the URL, and True if it is a folder. Raises InputError."""
        if not url.can_list and (url.endswith("/") or any(char in url.file.partition("/")[2] for char in "*[")):
            raise input_error("", "web servers list no files: name each file, not a folder or a pattern")

        time_left = TimeLeft(MAX_SECONDS_OF_SEVERAL)

        def found(system: Any, path: str) -> tuple[list[Url], bool]:
            is_pattern = any(char in url.file for char in "*?[")
            if not url.can_list or system.isfile(path) or not (is_pattern or system.isdir(path)):
                return [url], False
            found = (system.glob if is_pattern else system.find)(path, detail=True)
            paths = sorted(path for path in found if found[path]["type"] == "file")
            return [Url(url.typed, path, time_left) for path in paths], not is_pattern

        return self._in_time(url, time_left, found)

    def asked(self, url: Url, question: Callable[[BinaryIO], str]) -> str:
        """Return the answer to a question that reads a file. Raises InputError."""

        def read(system: Any, path: str) -> str:
            with system.open(path, "rb") as file:
                return question(file)

        return self._in_time(url, url.time_left, read)

    @contextmanager
    def local_copy(self, url: Url) -> Iterator[Path]:
        """Yield a copy of a file, and of the weights beside an IR. Raises InputError."""
        with TemporaryDirectory(prefix="dml-tile-", ignore_cleanup_errors=True) as folder:
            copy = Path(folder, PureWindowsPath(url.file).name[-_MAX_NAME_LENGTH:] or "file")  # safe on any system

            def fetched(system: Any, path: str) -> Path:
                copies, weights = {path: copy}, f"{path[:-4]}.bin"
                if copy.suffix.lower() == ".xml" and system.isfile(weights):
                    copies[weights] = copy.with_suffix(".bin")
                _fetch(system, copies)
                return copy

            yield self._in_time(url, url.time_left, fetched)

    def _in_time(self, url: Url, time_left: TimeLeft, read: Callable[[Any, str], _Read]) -> _Read:
        """Return what ``read`` returns, in the time left, for a file system and a path. Raises InputError."""
        started = time.monotonic()
        done: Future[_Read] = Future()

        def run() -> None:
            try:
                done.set_result(read(*self._located(url)))
            except BaseException as error:
                done.set_exception(error)

        Thread(target=run, daemon=True).start()
        with reported(url):
            is_late = bool(wait([done], time_left.left).not_done)
            time_left.left = max(0, time_left.left - (time.monotonic() - started))
            if is_late:
                self._store.cache_clear()  # the thread may hold their locks
                raise input_error("", f"fetching it took longer than {time_left.most} s")
            return done.result()

    def _located(self, url: Url) -> tuple[Any, str]:
        system, path = self._store(url.typed)
        if url.member is not None and system._strip_protocol(url.member) != url.member:
            raise input_error("", "its store takes this name for another one")
        return system, path if url.member is None else url.member


def _fetch(system: Any, copies: dict[str, Path]) -> None:
    """Copy files of at most MAX_FETCHED_BYTES together; stop if the folder of the copies is removed."""
    left = MAX_FETCHED_BYTES
    for source, target in copies.items():
        is_too_large = (system.info(source)["size"] or 0) > left
        with system.open(source, "rb") as file, target.open("wb") as copy:
            while not is_too_large and target.exists() and (part := file.read(2**20)):
                left -= copy.write(part)
                is_too_large = left < 0
        if is_too_large:
            raise input_error("", f"has more than {MAX_FETCHED_BYTES} bytes with its weights, the most that is fetched")
