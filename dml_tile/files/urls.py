"""Names of files in stores that fsspec opens: ``s3://bucket/model.onnx``, ``zip://model.onnx::archive.zip``.

The meaning of a name is decided once, where it comes in, and its type keeps it: a ``Url`` is in a store, any other
string is a path, whatever it looks like.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, Self

from dml_tile.errors import InputError
from dml_tile.input_errors import unreadable
from dml_tile.text import shortened

STANDARD_INPUT: Final = "-"
"""What an argument names standard input by."""

STORES: Final = ("https", "http", "s3", "gs", "gcs", "az", "abfs", "hf", "memory", "file")
"""The protocols of URLs that are read."""

LAYERS: Final = ("zip", "tar", "simplecache", "filecache")
"""The protocols that are read over a URL or a path: ``zip://a.json::https://host/archive.zip``."""

MAX_SECONDS: Final = 60
"""Seconds that fetching a file which a URL names, or a model with its weights, may take."""

MAX_NESTING: Final = 2**24
"""The most for the sum of squared depths of an archive's members: fsspec looks at each part of each folder."""

_CACHES: Final = ("simplecache", "filecache")  # which have the paths of what they are over
_MEMORY: Final = "memory"  # whose paths may begin with a slash or not
_SERVERS: Final = ("https", "http")
_PROTOCOL: Final = r"[A-Za-z][A-Za-z0-9+.\-]+"  # of two letters or more: one and a colon are a drive of Windows
_URL: Final = re.compile(rf"(?:{_PROTOCOL}::)*{_PROTOCOL}://")
_HIDDEN: Final = "***"
_PASSWORD: Final = re.compile(r"\A([^:]*://)[^/@:]*:(?![0-9]+/).*@")  # digits alone are a port
_USER: Final = re.compile(r"(?<=://)[^/@\s]*@")
_QUERY: Final = re.compile(r"(?<=\?)[\w.\-]+=\S*")
_MAX_REASON_LENGTH: Final = 300


class TimeLeft:
    """The seconds that fetching one or several files may take, and the seconds left."""

    def __init__(self, most: float) -> None:
        self.most = self.left = most


class Url(str):
    """The URL of a file or folder, without credentials; ``typed`` has them. ``file`` is its path in its store.

    ``member`` is a path found in the store that ``typed`` opens, and is never parsed. The ``identity`` is the same for
    two names of a file. ``can_list`` is False for web servers: a page is no list of files. The files of a folder or a
    pattern share their ``time_left``.
    """

    __slots__ = ("can_list", "file", "identity", "member", "time_left", "typed")
    typed: str
    member: str | None
    can_list: bool
    file: str
    identity: tuple[str, ...]
    time_left: TimeLeft

    def __new__(cls, typed: str, member: str | None = None, time_left: TimeLeft | None = None) -> Self:
        links = _links(typed)
        place = next((i for i, link in enumerate(links) if link.split("://")[0] not in _CACHES), -1)  # whose path it is
        protocol, _, path = links[place].partition("://")
        shown = list(map(_without_credentials, links))
        if member is not None:
            path = member
            links[place] = shown[place] = f"{protocol}://{path}"  # it may look like one with credentials
        url = super().__new__(cls, "::".join(shown))
        url.typed, url.member, url.can_list = typed, member, protocol not in _SERVERS
        url.time_left = time_left or TimeLeft(MAX_SECONDS)
        url.file = shown[place].partition("://")[2].removeprefix(f"{_HIDDEN}@").partition(f"?{_HIDDEN}")[0]
        links[place] = f"{protocol}://{path.lstrip('/') if protocol == _MEMORY else path}"
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
    except ImportError:
        raise unreadable("", "is a URL, which fsspec reads: pip install fsspec") from None
    links = _allowed(typed)
    archives = [i for i, link in enumerate(links) if link.startswith(("zip", "tar"))]
    for first in (*reversed(archives[1:]), 0):  # each before what it holds
        try:
            system, path = url_to_fs("::".join(links[first:]))
        except ImportError as error:  # which package is missing
            raise unreadable("", str(error)) from None
        inner = getattr(system, "fs", system)
        names = inner.zip.namelist() if inner.protocol == "zip" else inner.index if inner.protocol == "tar" else ()
        if sum(name.count("/") ** 2 for name in names) > MAX_NESTING:
            raise unreadable("", "has too many members in folders that are nested too deep")
        if inner.protocol == "tar":
            inner.find = partial(_found_in_tar, inner)
    return system, path


def _found_in_tar(
    tar: Any, path: str, maxdepth: int | None = None, withdirs: bool = False, detail: bool = False
) -> dict[str, Any]:
    """Return what is below a folder, as fsspec's ``find``, which looks at all members for each of their folders."""
    root = tar._strip_protocol(path).rstrip("/")
    start = len(root) + bool(root)
    tar._get_dirs()
    return {
        name: info
        for name, info in tar.dir_cache.items()
        if name[:start].rstrip("/") == root
        and (withdirs or info["type"] != "directory")
        and (maxdepth is None or name.count("/", start) < maxdepth)
    }


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
                raise unreadable("", "there is no such file") from None
        message = _QUERY.sub(_HIDDEN, _USER.sub(f"{_HIDDEN}@", str(cause)))
        reason = f"{type(cause).__name__}{f': {message}' if url.typed == Url(url.typed) else ''}"
        raise unreadable("", f"cannot be read: {shortened(reason, _MAX_REASON_LENGTH)}") from None


def _links(typed: str) -> list[str]:
    """Return the parts of a chain: layers, then the URL or path below them."""
    links, rest = [], typed
    while rest.partition("::")[1] and re.split("::|://", rest, maxsplit=1)[0] in LAYERS:
        link, _, rest = rest.partition("::")
        links.append(link)
    return [*links, rest]


def _without_credentials(link: str) -> str:
    """Return a part of a chain without a password, the user of a server, and a query's values."""
    link = _PASSWORD.sub(rf"\1{_HIDDEN}@", link)
    if link.startswith(tuple(f"{protocol}://" for protocol in _SERVERS)):
        return re.sub(r"[?#].*", f"?{_HIDDEN}", _USER.sub(f"{_HIDDEN}@", link))
    return _QUERY.sub(_HIDDEN, link)


def _allowed(typed: str) -> list[str]:
    """Return the parts of a chain, ``file://`` before a path. Raises InputError for a protocol that is not read."""
    *layers, store = _links(typed)
    if layers and "://" not in store and "::" not in store:
        store = f"file://{store}"
    protocol = re.split("::|://", store, maxsplit=1)[0]
    if protocol not in STORES or "::" in store:
        wrong = f"{protocol} over something else" if protocol in STORES else f"the protocol {protocol!r}"
        layered = f"{', '.join(LAYERS[:-1])} and {LAYERS[-1]} over one of these or over a path"
        raise unreadable("", f"has {wrong}; {', '.join(STORES)} are read, and {layered}")
    if any(layer.startswith("filecache") for layer in layers) and not Url(typed).can_list:
        raise unreadable("", "has filecache over a web server, whose files it would list; simplecache does not")
    return [*layers, store]
