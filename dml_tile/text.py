"""Helpers for the texts of messages: suggestions, cuts, braces, escapes and JSON pointers."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from collections.abc import Collection, Iterable, Sequence
from hashlib import blake2b
from typing import Final

_LOG_COMMAND: Final = re.compile(r"##(?=vso\[|\[)", re.IGNORECASE)

as_typed: Final = subprocess.list2cmdline if os.name == "nt" else shlex.join
"""A command's arguments as its user types them."""

MAX_COMPARED: Final = 80
"""The most characters of a name that are compared; known names are much shorter."""

MAX_NAME: Final = 200
"""The most characters of a name in a report, such as a pointer or a field's."""

MAX_QUOTED: Final = 200
"""The most characters of a file's own text in a message."""

MAX_IN_A_LINE: Final = 10
"""The most names that ``listed`` returns."""

MAX_SHOWN: Final = 60
"""The most characters that ``shown`` returns."""

_DIGEST_BYTES: Final = 8


def nearest(name: str, known: Iterable[str], count: int = 1, cutoff: float = 0.6) -> list[str]:
    """Return the names most like ``name``, the nearest first; their likeness, from 0 to 1, is at least ``cutoff``."""
    from difflib import get_close_matches  # correct names need no suggestion

    return get_close_matches(name[:MAX_COMPARED], [*known], count, cutoff)


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "", count: int = 1, cutoff: float = 0.6) -> str:
    """Return a question with the nearest names; ``otherwise`` if there are none."""
    near = nearest(name, known, count, cutoff)
    return f"did you mean {', '.join(near)}?" if near else otherwise


def shortened(text: str, limit: int) -> str:
    """Return at most ``limit`` characters of a text, with an ellipsis for an end that is cut off."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def shortened_within(text: str, limit: int) -> str:
    """Return at most ``limit`` characters of a text, with an ellipsis for a middle that is cut out."""
    head = limit // 2
    return text if len(text) <= limit else f"{text[:head]}…{text[len(text) - (limit - 1 - head) :]}"


def abridged(text: str, limit: int = MAX_QUOTED) -> str:
    """Return a text; of a longer one, the beginning and the number of the other characters.

    >>> abridged("abcdef", 4)
    'abcd… (2 more characters)'
    """
    return text if len(text) <= limit else f"{text[:limit]}… ({plural(len(text) - limit, 'more character')})"


def listed(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {len(names) - MAX_IN_A_LINE} more" if len(names) > MAX_IN_A_LINE else ""
    return f"{', '.join(names[:MAX_IN_A_LINE])}{more}"


def short_name(name: str) -> str:
    """Return a name; of a longer one, its beginning and its end, between them its length and a digest."""
    if len(name) <= MAX_NAME:
        return name
    digest = blake2b(name.encode(errors="backslashreplace"), digest_size=_DIGEST_BYTES).hexdigest()
    middle = f"…({len(name)} characters, {digest})…"
    end = (MAX_NAME - len(middle)) // 2
    return name[: MAX_NAME - len(middle) - end] + middle + name[-end:]


def plural(number: int, noun: str, form: str = "") -> str:
    """Return a number of things: ``1 tile``, ``2 tiles``; with the form ``,`` also ``2,000 tiles``."""
    return f"{number:{form}} {noun}{'' if number == 1 else 's'}"


def braced(values: Iterable[object]) -> str:
    """Return values as C initialises an array: ``{1, 2, 3}``.

    >>> braced([1, 2, 3])
    '{1, 2, 3}'
    """
    return f"{{{', '.join(map(str, values))}}}"


def printable(text: str) -> str:
    """Return a text that is safe in a log.

    It has escapes for characters that move or colour a terminal's cursor, or cannot be encoded, and for the beginning
    of a command to Azure Pipelines or GitHub's runner anywhere in a line.
    """
    if text.isprintable() and "##" not in text:
        return text
    escaped = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
    return _LOG_COMMAND.sub(r"#\\x23", escaped)


def printable_line_start(name: str) -> str:
    """Return a printable name that may begin a line of a log: GitHub's runner takes ``::`` there for a command.

    >>> printable_line_start("::error::pwned")
    './::error::pwned'
    """
    return f"./{printable(name)}" if name.lstrip().startswith(("::", "##")) else printable(name)


def printable_json(text: str) -> str:
    """Return a JSON text with escapes for what ``printable`` escapes."""
    if text.replace("\n", "").isprintable() and "##" not in text:
        return text
    escaped = "".join(char if char.isprintable() or char == "\n" else json.dumps(char)[1:-1] for char in text)
    return _LOG_COMMAND.sub(r"#\\u0023", escaped)


def encodable(text: str) -> str:
    """Return a text, such as a file's name, with escapes for bytes that are not UTF-8."""
    return text.encode(errors="backslashreplace").decode()


def shown(value: object) -> str:
    """Return a value as JSON writes it, shortened; for an object or an array, its kind."""
    match value:
        case None | True | False:
            return {None: "null", True: "true", False: "false"}[value]
        case dict():
            return "an object"
        case list() | tuple():
            return f"an array of {len(value)}"
    return shortened(repr(value), MAX_SHOWN)


def json_pointer(steps: Iterable[str | int]) -> str:
    """Return the JSON pointer (RFC 6901) of a location.

    >>> json_pointer(["dispatchables", "a/b", 0])
    '/dispatchables/a~1b/0'
    """
    return "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


def pointer_steps(pointer: str) -> list[str]:
    """Return the steps of a JSON pointer; none for the empty one.

    >>> pointer_steps("/dispatchables/a~1b/0")
    ['dispatchables', 'a/b', '0']
    """
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def counts_text(counts: Collection[int]) -> str:
    """Return dimension counts: ``4``, ``1 to 8`` or ``2, 4``."""
    if len(counts) == max(counts) - min(counts) + 1 > 1:
        return f"{min(counts)} to {max(counts)}"
    return ", ".join(map(str, sorted(counts)))
