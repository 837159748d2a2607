"""Counts the words that people wrote: pages without fenced blocks, in which stand code and what commands print."""

from __future__ import annotations

import re
from typing import Final

_BLOCK: Final = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
_WORD: Final = re.compile(r"\S*\w\S*")


def words_in(page: str) -> int:
    """Return the number of words between spaces, each with a letter or digit, outside fenced blocks."""
    return len(_WORD.findall(_BLOCK.sub("", page)))
