"""Notices: what is wrong with, or left over in, ignore comments, per-file-ignores and a baseline."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from dml_tile.checks.catalogue import MALFORMED_IGNORE, NOTICES, UNUSED_BASELINE_ENTRY, UNUSED_IGNORE
from dml_tile.checks.suppressions import FileIgnores, Suppression, Suppressions
from dml_tile.errors import Position
from dml_tile.findings import Severity


class Notice(NamedTuple):
    """A notice about a file, by the id in ``NOTICES``."""

    rule: str
    source: str
    message: str
    position: Position | None = None

    @property
    def severity(self) -> Severity:
        """The severity of all notices with this id."""
        return NOTICES[self.rule].usual_severity


def of_comments(file: str, silences: Suppressions, *, is_whole: bool) -> Iterator[Notice]:
    """Yield notices of malformed comments, and of those that silence nothing in a file that was read as a whole."""
    for comment in silences.malformed:
        message = f"{comment.text!r} silences nothing; dml-tile: ignore[RULE, RULE] was expected, in 200 characters"
        yield Notice(MALFORMED_IGNORE, file, message, comment.position)
    if is_whole:
        for rule, comment in silences.unmet:
            yield Notice(UNUSED_IGNORE, file, f"ignore[{rule}] silences nothing", comment.position)


def of_file_ignores(
    file: str, ignores: FileIgnores, met: set[Suppression], patterns: frozenset[int], *, is_whole: bool
) -> Iterator[Notice]:
    """Yield notices of what per-file-ignores in a settings file silences nothing, of the patterns that match a file.

    ``met`` are silences that silenced something. Where the ``is_whole`` project was checked, all patterns count.
    """
    for number, (pattern, rules) in enumerate(zip(ignores.files.patterns.lines, ignores.rules, strict=True)):
        for rule in rules:
            if Suppression(rule, number) not in met and (is_whole or number in patterns):
                yield Notice(UNUSED_IGNORE, file, f"per-file-ignores: {pattern!r}: {rule} silences nothing")


def of_baseline(file: str, missing: Iterable[object]) -> Iterator[Notice]:
    """Yield a notice of each entry of a baseline that is missing among what was found."""
    return (Notice(UNUSED_BASELINE_ENTRY, file, f"no longer occurs: {entry}") for entry in missing)
