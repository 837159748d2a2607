"""Has a function of a C library called by a child process, and reads the descriptors that it gives.

The library's code runs: it can do what the user may do. The child keeps a crash, an endless loop or a hunger for memory
from the caller; it is no protection from a library that means harm.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import IO, Any, Final, cast

from dml_tile.descriptors import OperatorDesc
from dml_tile.input_errors import unreadable
from dml_tile.operators import operator_name
from dml_tile.readers.json.descriptors import JsonDescriptor
from dml_tile.readers.sandbox.parent import name_of_status, started
from dml_tile.readers.sandbox.watchdog import Watchdog
from dml_tile.text import json_pointer

MAX_SECONDS: Final = 60
"""Seconds that the function may take."""

MAX_MEMORY_BYTES: Final = 2**32
"""Bytes that the child may allocate, where RLIMIT_DATA exists."""

_MAX_LINE_BYTES: Final = 2**16


def library_descs(
    library: Path, symbol: str, capacity: int = 0, *, seconds: float = MAX_SECONDS, memory: int = MAX_MEMORY_BYTES
) -> list[JsonDescriptor]:
    """The descriptors that a function of a library gives, which a child process calls.

    Without a ``capacity`` the function takes nothing and returns a ``const DML_OPERATOR_DESC*``. With one it takes
    ``(DML_OPERATOR_DESC* descs, UINT capacity)``, fills the array, and returns how many it filled. Raises InputError
    where it cannot be loaded or called, or takes too long or too much memory.
    """
    if not library.is_file():
        raise unreadable("", "is no file")
    arguments = (str(library.absolute()), symbol, str(capacity), str(seconds), str(memory))
    process = started((sys.executable, "-P", "-m", "dml_tile.readers.sandbox.library_child", *arguments))
    found: list[OperatorDesc | None] = []
    with process, Watchdog() as watchdog, watchdog.deadline(process, seconds) as deadline:
        try:
            failure = _read(cast("IO[bytes]", process.stdout), found, capacity or 1)
        except (ValueError, TypeError, KeyError):
            failure = "sent a malformed reply"
        finally:
            process.kill()
        status = process.wait()
    if deadline.has_passed:
        failure = f"took longer than {seconds:g} s"
    elif failure is None:
        failure = f"crashed in {symbol} ({name_of_status(status)})"
    if failure:
        raise unreadable("", failure)
    return [_part(desc, json_pointer([i]) if capacity else "") for i, desc in enumerate(found)]


def _read(answers: IO[bytes], found: list[OperatorDesc | None], most: int) -> str | None:
    """Read the answer; return why it is not one, "" if it is whole, None if it ends early."""
    while line := answers.readline(_MAX_LINE_BYTES):
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            return str(answer["error"])
        if "count" in answer:
            return "" if answer["count"] == len(found) else "sent a malformed reply"
        if len(found) == most:
            return "sent a malformed reply"
        operator = answer["operator"]
        found.append(None if operator is None else OperatorDesc.model_validate(operator))
    return None


def _part(desc: OperatorDesc | None, pointer: str) -> JsonDescriptor:
    if desc is not None and desc.desc is None and desc.type not in (0, 70):
        return JsonDescriptor(pointer, other=operator_name(int(desc.type)))
    return JsonDescriptor(pointer, desc)
