"""Workers that end at some files, as a reader that crashes does: at "dies", and once at "dies once"."""

from __future__ import annotations

import os
from collections.abc import Iterator

from dml_tile.checks import sweep
from dml_tile.checks.questions import Event, Questions
from dml_tile.readers.sources import Sources

STATUS = 7

_begin = sweep.begin
_events = Questions.events


def install() -> None:
    """Let this process end at such files."""
    Questions.events = _deadly_events  # type: ignore[method-assign,assignment]


def begin() -> None:
    """Begin a process of ``--jobs`` that ends at such files."""
    _begin()
    install()


def _deadly_events(check: Questions, file: str, sources: Sources) -> Iterator[Event]:
    if "dies" in file and not ("once" in file and _has_died(file)):
        os._exit(STATUS)
    yield from _events(check, file, sources)


def _has_died(file: str) -> bool:
    try:
        os.close(os.open(f"{file}.died", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return True
    return False
