"""Comments in files, and patterns of pyproject.toml, that silence findings of rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dml_tile.checks.catalogue import is_named
from dml_tile.checks.files import Exclusion
from dml_tile.errors import Problem
from dml_tile.formats.json_text import IgnoreComment
from dml_tile.readers.descriptors import JsonDescriptor
from dml_tile.readers.model_tile import TileNode


@dataclass(frozen=True, slots=True)
class FileIgnore:
    """Rules whose findings do not count in the files that match a ``pattern``."""

    pattern: str
    rules: tuple[str, ...]
    files: Exclusion


class Silence(NamedTuple):
    """A rule, or the first words of several, that a comment or, by its index, a FileIgnore silences."""

    rule: str
    source: IgnoreComment | int


class Silences:
    """The silences of one file, and those that silenced something."""

    def __init__(self, file: str, ignores: Sequence[FileIgnore]) -> None:
        self._of_file = [
            Silence(rule, i)
            for i, ignore in enumerate(ignores)
            if ignore.files.leaves_out(file)
            for rule in ignore.rules
        ]
        self._met = dict.fromkeys(self._of_file, False)

    def on(self, part: JsonDescriptor | TileNode) -> list[Silence]:
        """Return those that hold for a part of the file."""
        text = part.text if isinstance(part, JsonDescriptor) else None
        if text is None or not text.comments:
            return self._of_file
        for comment in text.comments:
            for rule in comment.rules:
                self._met.setdefault(Silence(rule, comment), False)
        return [*self._of_file, *(Silence(rule, one) for one in text.comments_on(part.pointer) for rule in one.rules)]

    def silence(self, rule_id: str, on: Sequence[Silence]) -> bool:
        """Return True if some silence findings of a rule, and remember which."""
        met = [silence for silence in on if is_named(rule_id, silence.rule)]
        self._met.update(dict.fromkeys(met, True))
        return bool(met)

    def unmet_comments(self) -> Iterator[Problem]:
        """Yield a message for each rule of a comment of which there was no finding."""
        for (rule, source), is_met in self._met.items():
            if isinstance(source, IgnoreComment) and not is_met:
                yield Problem("", f"ignore[{rule}] silences nothing", source.position)

    def of_patterns(self) -> dict[tuple[int, str], bool]:
        """Return the FileIgnores that match the file, by index and rule, and whether they silenced something."""
        return {(source, rule): met for (rule, source), met in self._met.items() if isinstance(source, int)}
