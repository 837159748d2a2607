"""A stand-in for the process that reads models, for tests that are not about processes: starting one takes a second."""

from __future__ import annotations

from io import BytesIO
from typing import Self

from dml_tile.readers.sandbox.child import Order, answer, answer_line


class ModelProcess:
    """Reads models in this process; orders and answers are the bytes that a process would be sent and would send."""

    def __init__(self, *_: object) -> None:
        self.stdin = self
        self.stdout = BytesIO()

    def write(self, line: bytes) -> None:
        """Answer an order."""
        self.stdout.seek(0)
        self.stdout.truncate()
        self.stdout.writelines(answer_line(part) for part in answer(Order.read(line)))
        self.stdout.seek(0)

    def flush(self) -> None:
        """Do nothing: an order is answered at once."""

    def poll(self) -> None:
        """None: it runs."""

    def kill(self) -> None:
        """Do nothing: there is no process."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass
