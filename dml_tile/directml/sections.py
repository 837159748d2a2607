"""Reads a table in TOML of which each value stands on one line, in a fraction of a TOML parser's time.

The values are both TOML and JSON.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any, Final

_DECODER: Final = json.JSONDecoder()


@cache
def sections(table: Path) -> dict[str, str]:
    """Return the text below each heading of a table."""
    found = (section.partition("]\n") for section in table.read_text(encoding="utf-8").split("\n[")[1:])
    return {heading: text for heading, _, text in found}


def values_below(table: Path, heading: str) -> dict[str, Any]:
    """Return the values below a heading of a table. Raises ValueError for an unknown one."""
    if heading not in sections(table):
        raise ValueError(f"{table.name} has no {heading}")
    found = {}
    for line in sections(table)[heading].splitlines():
        name, equals, value = line.partition(" = ")
        if equals and name[0] != "#":
            found[name] = _DECODER.raw_decode(value)[0]
    return found
