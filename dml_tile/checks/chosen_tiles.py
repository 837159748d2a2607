"""The tiles of the files and folders that a command names, or the one of them that it chooses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from dml_tile.cli.console import CLEAN, FINDINGS, UNREADABLE, complain
from dml_tile.errors import Problem
from dml_tile.readers.json.descriptors import Described
from dml_tile.readers.model_tile import Fixed, TileNode
from dml_tile.readers.sources import EMPTY_FOLDER, Sources, expanded

_LISTED_AT_MOST: Final = 10


class ChosenTiles:
    """Goes through the tiles of files, and remembers the ``status`` that all amounts to.

    With a ``pointer``, only the tile that has it is chosen, and nothing is said of the others.
    """

    def __init__(self, fixed: Fixed, pointer: str | None) -> None:
        self.status = CLEAN
        self._fixed = fixed
        self._pointer = pointer

    def parts(self, name: str) -> Iterator[tuple[str, Described | TileNode]]:
        """Each chosen tile with its file; what cannot be read is told on stderr as it comes."""
        files = list(expanded(name))
        if not files:
            self.complain(name, EMPTY_FOLDER)
        passed_over: list[str] = []
        is_found = self._pointer is None
        with Sources(self._fixed) as sources:
            for file in files:
                for part in sources.parts(file):
                    if isinstance(part, Problem):
                        if self._concerns(part):
                            self.complain(file, part)
                    elif self._pointer not in (None, part.pointer):
                        passed_over.append(part.pointer)
                    else:
                        is_found = True
                        yield file, part
        if not is_found and self.status != UNREADABLE:
            there = f"there are {listed(passed_over)}" if any(passed_over) else "no tile has a pointer"
            self.complain(name, Problem(self._pointer or "", f"there is no such tile; {there}"))

    def complain(self, file: str, problem: Problem) -> None:
        """Tell on stderr what cannot be read, or be done with it."""
        complain(file, [problem])
        self.status = UNREADABLE

    def count_findings(self) -> None:
        """Remember that a tile has findings."""
        self.status = max(self.status, FINDINGS)

    def _concerns(self, problem: Problem) -> bool:
        pointer = self._pointer
        return pointer is None or problem.pointer in ("", pointer) or problem.pointer.startswith(f"{pointer}/")


def listed(pointers: Sequence[str]) -> str:
    """The first pointers, and how many more there are."""
    more = f" and {len(pointers) - _LISTED_AT_MOST} more" if len(pointers) > _LISTED_AT_MOST else ""
    return f"{', '.join(pointers[:_LISTED_AT_MOST])}{more}"
