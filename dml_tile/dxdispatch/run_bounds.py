"""Bounds on what one run of a model may write and print."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import PurePath
from typing import Final

from dml_tile.input_errors import unreadable

MAX_WRITTEN_BYTES: Final = 2**30
"""The most bytes that the files of one run may take, with the folders that hold them."""

MAX_PRINTED_BYTES: Final = 2**26
"""The most bytes that one run prints."""

_BLOCK: Final = 2**12
"""The bytes that a small file, or a folder, takes on a disk."""


class RunBounds:
    """Counts what a run writes and prints. Text goes to ``write`` as long as there is room for it."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._left_to_print = MAX_PRINTED_BYTES
        self._left_to_write = MAX_WRITTEN_BYTES
        self._unprinted_values = 0
        self._cut_at = ""

    def reserve(self, target_path: str, nbytes: int, pointer: str) -> None:
        """Count a file before the run. Raises InputError, with ``pointer``, once the files take too many bytes."""
        folders = len(PurePath(target_path).parts) - 1
        self._left_to_write -= max(nbytes, _BLOCK) + folders * _BLOCK
        if self._left_to_write < 0:
            raise unreadable(
                pointer,
                f"the model would write more than {MAX_WRITTEN_BYTES} bytes; each file and folder counts as {_BLOCK} "
                "at least",
            )

    def print(self, parts: Iterable[tuple[str, int]], pointer: str = "") -> None:
        """Print the parts of a text for the command at ``pointer``, up to the first for which there is no room.

        Each comes with the number of values that it and the following parts have.
        """
        for text, values in parts:
            self._left_to_print -= len(text.encode("utf-8", "surrogateescape"))
            if self._left_to_print < 0:
                self._unprinted_values += values
                self._cut_at = self._cut_at or pointer
                return
            self._write(text)

    def require_all_printed(self) -> None:
        """Raise InputError if something was not printed, with the number of values."""
        if self._left_to_print < 0:
            raise unreadable(
                self._cut_at,
                f"the model prints more than {MAX_PRINTED_BYTES} bytes; {self._unprinted_values} values were left out",
            )
