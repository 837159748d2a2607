"""Reads files that URLs name, through fsspec: folders, patterns, and local copies of models without their weights."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, BinaryIO, Final, cast

from dml_tile.errors import InputError
from dml_tile.files.urls import file_of
from dml_tile.input_errors import unreadable
from dml_tile.readers.file_kinds import SAVED_MODEL
from dml_tile.readers.onnx.light import LARGE, lightened
from dml_tile.readers.remote.parts import RemoteParts
from dml_tile.text import shortened

MAX_BYTES: Final = 2**31 - 1
"""The bytes of a model that are fetched, weights that can be left out aside."""

MAX_SECONDS: Final = 60
"""Seconds that fetching one model may take; the client's own time limits bound a request."""

_MAX_REASON_LENGTH: Final = 300
_CONSTANT: Final = re.compile(rb'<data\b[^>]*?\boffset="(\d{1,18})"[^>]*?\bsize="(\d{1,18})"')
"""An IR's constant; OpenVINO writes the attributes in this order."""


def is_pattern(url: str) -> bool:
    """Return True if a URL has wildcards."""
    return any(char in file_of(url) for char in "*?[")


def found_in(url: str) -> tuple[list[str], bool]:
    """Return the files that a URL stands for, ordered by name, and whether they are those of a folder.

    A pattern stands for the files that match, any other URL that is no folder for itself. Raises InputError if it
    cannot be opened.
    """
    with told():
        system, path = _opened(url)
        if system.isfile(path):
            return [url], False
        if is_pattern(url):
            return [_url_of(match, url) for match in sorted(system.glob(path)) if system.isfile(match)], False
        if system.isdir(path):
            return [_url_of(file, url) for file in sorted(system.find(path))], True
        return [url], False  # whose reader tells why there is none


def beginning(url: str, size: int) -> bytes:
    """The first bytes of a file. Raises InputError."""
    with told():
        system, path = _opened(url)
        with system.open(path, "rb") as file:
            return cast("bytes", file.read(size))


@contextmanager
def opened(url: str) -> Iterator[BinaryIO]:
    """Open a file, which is read in parts. Raises InputError for what fails within the block, too."""
    with told():
        system, path = _opened(url)
        with system.open(path, "rb") as file:
            yield file


@contextmanager
def local_copy(url: str) -> Iterator[Path]:
    """Yield a local copy of a model: of ONNX and OpenVINO IR without the weights. Raises InputError."""
    with TemporaryDirectory(prefix="dml-tile-") as folder:
        with told():
            system, path = _opened(url)
            name = PurePosixPath(file_of(url)).name
            copy = Path(folder, name)
            if name.lower().endswith(".onnx"):
                with RemoteParts(system, path, _deadline()) as parts:
                    copy.write_bytes(_light(parts))
            else:
                _fetch(system, path, copy)
                if name.lower().endswith(".xml"):
                    _fetch_constants(system, f"{path[:-4]}.bin", copy)
                elif name == SAVED_MODEL:
                    _fetch_variables(system, path.rpartition("/")[0], Path(folder))
        yield copy


@contextmanager
def told() -> Iterator[None]:
    """Raise InputError for whatever fsspec or a client raises within the block."""
    try:
        yield
    except InputError:
        raise
    except MemoryError:
        raise
    except FileNotFoundError:
        raise unreadable("", "there is no such file") from None
    except Exception as error:  # of any class: clients have their own
        reason = shortened(f"{type(error).__name__}: {error}", _MAX_REASON_LENGTH)
        raise unreadable("", f"cannot be read: {reason}") from None


def _opened(url: str) -> tuple[Any, str]:
    """The file system of a URL, and the path in it."""
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise unreadable("", "is a URL, which fsspec reads: pip install fsspec") from None
    try:
        system, path = url_to_fs(url)
    except (ImportError, ValueError) as error:  # which package is missing, or that the protocol is unknown
        raise unreadable("", str(error)) from None
    return system, path


def _url_of(path: str, url: str) -> str:
    """The URL of a path that was found under another URL."""
    head, chained, rest = url.partition("::")
    return path if "://" in path else f"{head.partition('://')[0]}://{path}{chained}{rest}"


def _light(parts: RemoteParts) -> bytes:
    if len(parts) > MAX_BYTES:
        raise unreadable("", f"has {len(parts)} bytes; protobuf reads at most {MAX_BYTES}")
    light = lightened(parts)
    if light is None:
        raise unreadable("", "is not an ONNX model: it is truncated, or another format")
    return light


def _deadline() -> Callable[[], None]:
    end = time.monotonic() + MAX_SECONDS

    def check() -> None:
        if time.monotonic() > end:
            raise unreadable("", f"fetching it took longer than {MAX_SECONDS} s")

    return check


def _fetch(system: Any, path: str, copy: Path) -> None:
    """Copy a whole file."""
    size = system.size(path)
    if size is not None and size > MAX_BYTES:
        raise unreadable("", f"has {size} bytes; at most {MAX_BYTES} are fetched")
    check, fetched = _deadline(), 0
    with system.open(path, "rb") as source, copy.open("wb") as target:
        while part := source.read(2**20):
            fetched += len(part)
            if fetched > MAX_BYTES:
                raise unreadable("", f"has more than {MAX_BYTES} bytes")
            target.write(part)
            check()


def _fetch_constants(system: Any, path: str, model: Path) -> None:
    """Lay the small constants of an IR beside it, at their places in a file that has nothing else."""
    if not system.isfile(path):
        return
    size = system.size(path)
    ranges = sorted({(int(begin), int(length)) for begin, length in _CONSTANT.findall(model.read_bytes())})
    with RemoteParts(system, path, _deadline()) as parts, model.with_suffix(".bin").open("wb") as target:
        target.truncate(size)
        for begin, length in ranges:
            if length <= LARGE and begin + length <= size:
                target.seek(begin)
                target.write(parts[begin : begin + length])


def _fetch_variables(system: Any, folder: str, copy: Path) -> None:
    """Copy the variables of a SavedModel."""
    variables = f"{folder}/variables"
    if not system.isdir(variables):
        return
    (copy / "variables").mkdir()
    for path in sorted(system.find(variables)):
        _fetch(system, path, copy / "variables" / PurePosixPath(path).name)
