"""Comments in files, and patterns of pyproject.toml, that silence findings of rules."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dml_tile.checks.catalogue import is_named
from dml_tile.checks.files import Exclusion
from dml_tile.formats.json_text import IgnoreComment, SourceText
from dml_tile.readers.descriptors import JsonDescriptor
from dml_tile.readers.model_tile import TileNode


@dataclass(frozen=True, slots=True)
class FileIgnore:
    """Rules whose findings do not count in the files that match a ``pattern``."""

    pattern: str
    rules: tuple[str, ...]
    files: Exclusion = field(compare=False)


class Silence(NamedTuple):
    """A rule, or the first words of several, that a comment or a FileIgnore silences."""

    rule: str
    source: IgnoreComment | FileIgnore


class Silences:
    """The silences of one file; ``met`` has True for those that silenced something."""

    def __init__(self, file: str, ignores: Sequence[FileIgnore]) -> None:
        matching = (ignore for ignore in ignores if ignore.files.leaves_out(file))
        self._of_file = [Silence(rule, ignore) for ignore in matching for rule in ignore.rules]
        self.met = dict.fromkeys(self._of_file, False)
        self._text: SourceText | None = None

    def on(self, part: JsonDescriptor | TileNode) -> list[Silence]:
        """Return those that hold for a part of the file."""
        text = part.text if isinstance(part, JsonDescriptor) else None
        if text is None or not text.comments:
            return self._of_file
        if text is not self._text:
            self._text = text
            self.met = dict.fromkeys(_silences(text.comments), False) | self.met
        return [*self._of_file, *_silences(text.comments_on(part.pointer))]

    def silence(self, rule_id: str, on: Sequence[Silence]) -> bool:
        """Return True if some silence findings of a rule, and remember which."""
        met = [silence for silence in on if is_named(rule_id, silence.rule)]
        self.met.update(dict.fromkeys(met, True))
        return bool(met)


def _silences(comments: Sequence[IgnoreComment]) -> Iterator[Silence]:
    return (Silence(rule, comment) for comment in comments for rule in comment.rules)
