"""Tells how far a long comparison is."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Final

SECONDS: Final = 30
"""Between two lines."""


class Progress:
    """Prints a line to standard error now and then; the first after ``SECONDS``."""

    def __init__(self, total: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._total, self._clock = total, clock
        self._begun = self._told = clock()

    def tell(self, done: int, disagreements: int) -> None:
        """Print how many descriptors are done, unless the last line is too recent."""
        now = self._clock()
        if now - self._told < SECONDS:
            return
        self._told = now
        print(
            f"{done} of {self._total} descriptors, {disagreements} disagreements, {now - self._begun:.0f} s",
            file=sys.stderr,
            flush=True,
        )
