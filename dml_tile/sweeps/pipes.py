"""Keeps standard input and pipes, which no other process could read, in the process that was given them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from itertools import groupby

from dml_tile.checks.one_file import Engine, Event, FileCheck, in_this_process
from dml_tile.files.urls import is_url


def pipes_here(engine: Engine) -> Engine:
    """The engine, but what another process could not read is checked in this one: standard input, pipes, /dev/fd/3."""

    def mixed(check: FileCheck, files: Iterable[str]) -> Iterator[tuple[str, Event]]:
        for is_here, some in groupby(files, _is_here):
            yield from (in_this_process if is_here else engine)(check, some)

    return mixed


def _is_here(file: str) -> bool:
    if file == "-" or file.startswith(("/dev/", "/proc/")):
        return True
    try:
        return not is_url(file) and not stat.S_ISREG(os.stat(file).st_mode)  # noqa: PTH116  # a tenth of Path's time
    except (OSError, ValueError):
        return False
