"""Events made ready to travel to another process."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dml_tile.checks.one_file import Event
from dml_tile.checks.result import Result
from dml_tile.errors import Position


@dataclass(frozen=True, slots=True)
class FoundPositions:
    """The positions of a result's findings, by their paths, in place of the text that they were found in."""

    by_path: dict[str, Position | None]

    def __call__(self, pointer: str, path: str) -> Position | None:
        return self.by_path.get(path)


def portable(event: Event) -> Event:
    """The event without the texts of its tiles, which may be large; the positions of findings stay."""
    return tuple(map(_without_text, event)) if isinstance(event, tuple) else event


def _without_text(result: Result) -> Result:
    if result.locate is None:
        return result
    positions = {finding.path: result.position(finding.path) for finding in (*result.findings, *result.known)}
    return replace(result, locate=FoundPositions(positions) if positions else None)
