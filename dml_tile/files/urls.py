"""Names of files that are URLs, which fsspec opens: ``s3://bucket/model.onnx``, ``zip://model.onnx::archive.zip``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from dml_tile.errors import InputError
from dml_tile.input_errors import unreadable
from dml_tile.text import shortened

# of two letters or more: one and a colon are a drive of Windows
_URL: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]+(?:://|::)")

_MAX_REASON_LENGTH: Final = 300


def is_url(name: str) -> bool:
    """Return True if a name is a URL."""
    return _URL.match(name) is not None


def file_of(name: str) -> str:
    """Return the file itself, without what holds it: ``a/model.onnx`` of ``zip://a/model.onnx::archive.zip``.

    A name that is no URL is returned as it is.
    """
    return name.partition("::")[0].partition("://")[2] if is_url(name) else name


def located(url: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it. Raises InputError, or what a client raises."""
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise unreadable("", "is a URL, which fsspec reads: pip install fsspec") from None
    try:
        system, path = url_to_fs(url)
    except (ImportError, ValueError) as error:  # which package is missing, or that the protocol is unknown
        raise unreadable("", str(error)) from None
    return system, path


def url_of(path: str, url: str) -> str:
    """Return the URL of a path that was found under another URL."""
    head, chained, rest = url.partition("::")
    return path if "://" in path else f"{head.partition('://')[0]}://{path}{chained}{rest}"


@contextmanager
def reported() -> Iterator[None]:
    """Raise InputError for whatever fsspec or a client raises within the block."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except FileNotFoundError:
        raise unreadable("", "there is no such file") from None
    except Exception as error:  # of any class: clients have their own
        reason = shortened(f"{type(error).__name__}: {error}", _MAX_REASON_LENGTH)
        raise unreadable("", f"cannot be read: {reason}") from None
