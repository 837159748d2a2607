"""A stand-in for the process that reads models, for tests that are not about processes: starting one takes a second."""

from __future__ import annotations

from contextlib import nullcontext
from io import BytesIO

from dml_tile.readers.sandbox.child import Order, answer, answer_line


class ModelProcess(nullcontext[None]):
    """Reads models in this process; orders and answers are the bytes that a process would be sent and would send."""

    def __init__(self, *_: object) -> None:
        super().__init__()
        self.stdin = self
        self.stdout = BytesIO()

    def write(self, line: bytes) -> None:
        """Answer an order."""
        self.stdout.seek(0)
        self.stdout.truncate()
        self.stdout.writelines(answer_line(part) for part in answer(Order.read(line)))
        self.stdout.seek(0)

    def poll(self) -> None:
        """None: it runs."""

    flush = kill = poll
    """Do nothing: an order is answered at once, and there is no process."""
