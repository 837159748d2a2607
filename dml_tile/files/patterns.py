"""Patterns in the language of .gitignore, matched name by name: a folder's state is worked out once.

Page: https://git-scm.com/docs/gitignore#_pattern_format
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, TypeAlias, TypeVar

_ANY_DEPTH: Final = "**"
_MAGIC: Final = r"[*?\[\\]"
_CLASSES: Final = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": r" \t",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": r"\x21-\x7e",
    "lower": "a-z",
    "print": r"\x20-\x7e",
    "punct": r"!-/:-@\[-`{-~",
    "space": r" \t\n\r\f\v",
    "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}

OUTSIDE: Final = "../"
"""The beginning of paths of files elsewhere; only patterns without a slash, or with ``**/``, match them."""

_Part = TypeVar("_Part", str, re.Pattern[str])
_Places: TypeAlias = set[tuple[int, int]]
"""Patterns by their lines' numbers, each with the number of its parts matched so far."""


class _Pattern(NamedTuple):
    """The parts of a line's pattern: ``**``, names, and expressions for names."""

    parts: tuple[str | re.Pattern[str], ...]
    keeps: bool  # it begins with an exclamation mark
    is_of_folders: bool  # it ends with a slash


class _Awaited(NamedTuple):
    """Parts of patterns, without and with wildcards, each with the places reached by matching it."""

    names: dict[str, _Places]
    wildcards: dict[re.Pattern[str], _Places]


class _Folder(NamedTuple):
    """A folder's state: the patterns that match it or a folder above, and the parts that its names may match.

    Only names in the folder itself may match the parts ``here``, names at any depth the parts ``below``. Folders that
    add nothing to these share them, so that many patterns and many folders do not multiply.
    """

    here: _Awaited
    below: _Awaited
    matching: frozenset[int] = frozenset()
    is_left_out: bool = False


class Patterns:
    """Lines in the language of .gitignore; the last line that matches a path decides.

    Paths begin at the folder of the patterns, with slashes; a folder's path ends with a slash. A folder's state is
    remembered, so that a path in it costs what its last name does. ``met`` has the numbers of lines that matched.
    """

    def __init__(self, lines: Iterable[str]) -> None:
        self.lines = tuple(lines)
        self.met: set[int] = set()
        self._patterns = {index: pattern for index, line in enumerate(self.lines) if (pattern := _pattern(line))}
        root = self._folder({(index, 0) for index in self._patterns}, _Awaited({}, {}))
        self._folders = {"": root, OUTSIDE[:-1]: root._replace(here=_Awaited({}, {}))}

    def decision(self, path: str) -> bool | None:
        """Return whether the last line that matches a path leaves it out; None if none does."""
        matching, _ = self._matched(path, self._above(path))
        return not self._patterns[max(matching)].keeps if matching else None

    def leaves_out(self, path: str) -> bool:
        """Return True if a path, or a folder above it, is left out."""
        return self._above(path).is_left_out or bool(self.decision(path))

    def matching(self, path: str) -> frozenset[int]:
        """Return the numbers of the lines, from 0, that match a path or a folder above it."""
        above = self._above(path)
        matching, _ = self._matched(path, above)
        return above.matching | matching

    def _above(self, path: str) -> _Folder:
        """Return the state of a path's folder."""
        folder = path.rstrip("/").rpartition("/")[0]
        unknown = []
        while folder not in self._folders:
            unknown.append(folder)
            folder = folder.rpartition("/")[0]
        above = self._folders[folder]
        for folder in reversed(unknown):
            matching, places = self._matched(f"{folder}/", above)
            is_left_out = above.is_left_out or (bool(matching) and not self._patterns[max(matching)].keeps)
            below = self._folder(places, above.below)
            above = below._replace(matching=above.matching | matching, is_left_out=is_left_out)
            self._folders[folder] = above
        return above

    def _matched(self, path: str, above: _Folder) -> tuple[set[int], _Places]:
        """Return the lines that match a path itself, and the places from which other lines go on below it."""
        is_folder = path.endswith("/")
        name = path.rstrip("/").rpartition("/")[2]
        reached: _Places = set()
        for awaited in (above.here, above.below):
            reached.update(awaited.names.get(name, ()))
            for part, places in awaited.wildcards.items():
                if part.match(name):
                    reached |= places
        ends = {place for place in reached if place[1] == len(self._patterns[place[0]].parts)}
        matching = {index for index, _ in ends if is_folder or not self._patterns[index].is_of_folders}
        self.met |= matching
        return matching, reached - ends

    def _folder(self, places: _Places, below: _Awaited) -> _Folder:
        """Return the state of a folder where patterns go on from ``places``, and from ``below`` at any depth."""
        here, deeper = _Awaited({}, {}), _Awaited({}, {})
        for index, at in places:
            parts = self._patterns[index].parts
            awaited = here
            if parts[at] == _ANY_DEPTH:
                awaited, at = deeper, at + 1
            part = parts[at]
            if isinstance(part, str):
                awaited.names.setdefault(part, set()).add((index, at + 1))
            else:
                awaited.wildcards.setdefault(part, set()).add((index, at + 1))
        return _Folder(here, _Awaited(_merged(below.names, deeper.names), _merged(below.wildcards, deeper.wildcards)))


def _merged(above: dict[_Part, _Places], own: dict[_Part, _Places]) -> dict[_Part, _Places]:
    """Return both together; the same object as ``above`` if a folder adds nothing, as most do."""
    return {**above, **{part: own[part] | above.get(part, set()) for part in own}} if own else above


def _pattern(line: str) -> _Pattern | None:
    """Return the pattern of a line; None for a comment, an empty line, and a line that matches nothing."""
    if line.startswith("#"):
        return None
    text = re.sub(r"(?<!\\) +\Z", "", line)
    keeps = text.startswith("!")
    text = text[keeps:]
    is_of_folders = text.endswith("/")
    parts = text.removesuffix("/").split("/")
    if parts == [""] or "" in parts[1:]:
        return None
    if parts[0] == "":
        del parts[0]
    elif len(parts) == 1:  # a name, at any depth
        parts.insert(0, _ANY_DEPTH)
    parts = [_ANY_DEPTH if re.fullmatch(r"\*\*+", part) else part for part in parts]
    if parts[-1] == _ANY_DEPTH:  # all that is inside
        parts.append("*")
    once = [part for at, part in enumerate(parts) if part != _ANY_DEPTH or parts[at - 1 : at] != [_ANY_DEPTH]]
    read = [part if part == _ANY_DEPTH or not re.search(_MAGIC, part) else _expression(part) for part in once]
    well_formed = tuple(part for part in read if part is not None)
    return _Pattern(well_formed, keeps, is_of_folders) if len(well_formed) == len(read) else None


def _expression(part: str) -> re.Pattern[str] | None:
    """Return the regular expression for a name; None for a malformed pattern, which matches nothing.

    Between stars, the first place that fits is taken and never given up, so that the time is linear in the name.
    """
    pieces = [""]
    for piece in _pieces(part):
        if piece is None:
            return None
        if piece == "*":
            pieces.append("")
        else:
            pieces[-1] += piece
    first, *others = pieces
    between = "".join(f"(?>.*?{piece})" for piece in others[:-1] if piece)
    last = f".*{others[-1]}" if others else ""
    return re.compile(rf"{first}{between}{last}\Z", re.DOTALL)


def _pieces(part: str) -> Iterator[str | None]:
    """Yield the expression of each character, a star for any number of characters, None for a malformed part."""
    at = 0
    while at < len(part):
        char = part[at]
        at += 1
        if char == "*":
            yield char
        elif char == "?":
            yield "."
        elif char == "\\":
            yield re.escape(part[at]) if at < len(part) else None
            at += 1
        elif char == "[":
            piece, at = _class(part, at)
            yield piece
        else:
            yield re.escape(char)


def _class(part: str, at: int) -> tuple[str | None, int]:
    """Return the expression of the characters behind a bracket at ``at``, and the position behind its end."""
    negation = "^" if part[at : at + 1] in ("!", "^") else ""
    begin = at = at + len(negation)
    chars: list[str] = []
    while at < len(part) and (part[at] != "]" or at == begin):
        if part.startswith("[:", at) and (end := part.find(":]", at)) >= 0:
            if part[at + 2 : end] not in _CLASSES:
                return None, at
            chars.append(_CLASSES[part[at + 2 : end]])
            at = end + 2
            continue
        first, at = _member(part, at)
        if part.startswith("-", at) and part[at + 1 : at + 2] not in ("", "]"):
            last, at = _member(part, at + 1)
            if first <= last:
                chars.append(f"{re.escape(first)}-{re.escape(last)}")
        else:
            chars.append(re.escape(first))
    if at >= len(part):
        return None, at
    if not chars:  # of ranges that end before they begin
        return ("." if negation else "(?!)"), at + 1
    return f"[{negation}{''.join(chars)}]", at + 1


def _member(part: str, at: int) -> tuple[str, int]:
    at += part[at] == "\\" and at + 1 < len(part)
    return part[at], at + 1
