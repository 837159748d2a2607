"""Names of files in stores that fsspec opens: ``s3://bucket/model.onnx``, ``simplecache::https://host/model.onnx``.

The meaning of a name is decided once, where it comes in, and its type keeps it: a ``Url`` is in a store, any other
string is a path, whatever it looks like.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Self

from dml_tile.errors import InputError, input_error
from dml_tile.files.paths import NoPath
from dml_tile.text import shortened

STORES: Final = ("https", "http", "s3", "gs", "gcs", "az", "abfs", "hf", "memory", "file")
"""The protocols of URLs that are read."""

CACHES: Final = ("simplecache", "filecache")
"""The protocols that may stand before a URL, with ``::`` between, and keep a copy of its file."""

MAX_SECONDS: Final = 60
"""Seconds that fetching a file which a URL names, or a model with its weights, may take."""

_MEMORY: Final = "memory"  # whose paths may begin with a slash or not
_SERVERS: Final = ("https", "http")
_PROTOCOL: Final = r"[A-Za-z][A-Za-z0-9+.\-]+"  # of two letters or more: one and a colon are a drive of Windows
_URL: Final = re.compile(rf"(?:{_PROTOCOL}::)*{_PROTOCOL}://")
_HIDDEN: Final = "***"
_TO_HIDE: Final = r"\A([^:]*://)[^/@:]*:(?![0-9]+/).*@"  # digits alone are a port
_USER: Final = r"(?<=://)[^/@\s]*@"
_QUERY: Final = r"(?<=\?)[\w.\-]+=\S*"
_MAX_REASON_LENGTH: Final = 300


class TimeLeft:
    """The seconds that fetching one or several files may take, and the seconds left."""

    def __init__(self, most: float) -> None:
        self.most = self.left = most


class Url(NoPath):
    """The URL of a file or folder, without credentials; ``typed`` has them. ``file`` is its path in its store.

    ``member`` is a path found in the store that ``typed`` opens, and is never parsed. The ``identity`` is the same for
    two names of a file. ``can_list`` is False for web servers: a page is no list of files. The files of a folder or a
    pattern share their ``time_left``.
    """

    typed: str
    member: str | None
    can_list: bool
    file: str
    identity: tuple[str, ...]
    time_left: TimeLeft

    def __new__(cls, typed: str, member: str | None = None, time_left: TimeLeft | None = None) -> Self:
        links = _links(typed)
        protocol, _, path = links[-1].partition("://")
        shown = list(map(_without_credentials, links))
        if member is not None:
            path = member
            links[-1] = shown[-1] = f"{protocol}://{path}"  # it may look like one with credentials
        url = super().__new__(cls, "::".join(shown))
        url.typed, url.member, url.can_list = typed, member, protocol not in _SERVERS
        url.time_left = time_left or TimeLeft(MAX_SECONDS)
        url.file = shown[-1].partition("://")[2].removeprefix(f"{_HIDDEN}@").partition(f"?{_HIDDEN}")[0]
        links[-1] = f"{protocol}://{path.lstrip('/') if protocol == _MEMORY else path}"
        url.identity = tuple(links)
        return url

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.typed, self.member, self.time_left


def source_named(argument: str | os.PathLike[str]) -> str:
    """Return the source that an argument of the command line or of the API names: a Url, or a path."""
    if isinstance(argument, str) and not isinstance(argument, Url) and _URL.match(argument):
        return Url(argument)
    return os.fspath(argument)


def file_of(source: str) -> str:
    """Return the path of a source's file, in its store if it is a Url."""
    return source.file if isinstance(source, Url) else source


def opened_store(typed: str) -> tuple[Any, str]:
    """Return the file system of a URL, and the path in it. Raises InputError, or what a client raises."""
    try:
        from fsspec.core import url_to_fs

        _require_known(typed)
        system, path = url_to_fs(typed)
    except ImportError as error:  # fsspec says which other package is missing
        is_fsspec = (error.name or "").startswith("fsspec")
        reason = "is a URL, which fsspec reads: pip install fsspec" if is_fsspec else str(error)
        raise input_error("", reason) from None
    return system, path


@contextmanager
def reported(url: Url) -> Iterator[None]:
    """Raise InputError, without the URL's credentials, for anything that fsspec or a client raises within the block."""
    try:
        yield
    except (InputError, MemoryError):
        raise
    except Exception as error:  # of any class: clients have their own
        cause: BaseException | None = error
        if isinstance(error, FileNotFoundError):
            cause = error.__cause__  # fsspec says so of whatever keeps it from a server's file
            is_missing = getattr(cause, "status", 404) == 404 and not isinstance(cause, OSError)
            if is_missing or isinstance(cause, FileNotFoundError):
                raise input_error("", "there is no such file") from None
        message = re.sub(_QUERY, _HIDDEN, re.sub(_USER, f"{_HIDDEN}@", str(cause)))
        reason = f"{type(cause).__name__}{f': {message}' if url.typed == Url(url.typed) else ''}"
        raise input_error("", f"cannot be read: {shortened(reason, _MAX_REASON_LENGTH)}") from None


def _links(typed: str) -> list[str]:
    """Return the parts of a chain: caches, then the URL below them."""
    links, rest = [], typed
    while rest.partition("::")[1] and re.split("::|://", rest, maxsplit=1)[0] in CACHES:
        link, _, rest = rest.partition("::")
        links.append(link)
    return [*links, rest]


def _without_credentials(link: str) -> str:
    """Return a part of a chain without a password, the user of a server, and a query's values."""
    link = re.sub(_TO_HIDE, rf"\1{_HIDDEN}@", link)
    if "::" in link or link.startswith(tuple(f"{protocol}://" for protocol in _SERVERS)):  # or a chain that is refused
        return re.sub(r"[?#].*", f"?{_HIDDEN}", re.sub(_USER, f"{_HIDDEN}@", link))
    return re.sub(_QUERY, _HIDDEN, link)


def _require_known(typed: str) -> None:
    """Raise InputError for a protocol that is not read."""
    *caches, store = _links(typed)
    protocol = re.split("::|://", store, maxsplit=1)[0]
    if protocol not in STORES or "::" in store:
        wrong = f"{protocol} over something else" if protocol in STORES else f"the protocol {protocol!r}"
        raise input_error(
            "", f"has {wrong}; {', '.join(STORES)} are read, and {' and '.join(CACHES)} over one of these"
        )
    if any(cache.startswith("filecache") for cache in caches) and not Url(typed).can_list:
        raise input_error("", "has filecache over a web server, whose files it would list; simplecache does not")
