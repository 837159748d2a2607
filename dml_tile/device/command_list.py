"""Command lists, which hold what is recorded until it is executed.

Page: https://learn.microsoft.com/en-us/windows/win32/api/d3d12/nn-d3d12-id3d12graphicscommandlist
"""

from __future__ import annotations

from typing import Final, Protocol

from dml_tile.directml.enums import CommandListType
from dml_tile.errors import require_uint


class RecordedDispatch(Protocol):
    """A dispatch that was recorded."""

    def execute(self, call: str) -> None:
        """Execute the dispatch; if it removes the device, ``call`` is named as the reason."""


class CommandList:
    """An open command list of Direct3D 12, and the queue that it is submitted to.

    ``type`` is a CommandListType or its value. A list of another type than DIRECT and COMPUTE, or whose ``is_graphics``
    is False, takes no dispatches. It is not thread-safe.
    """

    def __init__(self, type: CommandListType | int = CommandListType.DIRECT, *, is_graphics: bool = True) -> None:  # noqa: A002 - C's name
        self.type = require_uint("type", type)
        self.is_graphics = is_graphics
        self._recorded: list[RecordedDispatch] = []

    def append(self, dispatch: RecordedDispatch) -> None:
        """Record a dispatch, as a CommandRecorder does."""
        self._recorded.append(dispatch)

    def execute(self) -> None:
        """Execute what was recorded, in order; it stays recorded, and may be executed again.

        A wrong dispatch removes its device. Raises DmlError if that device raises its removal, MemoryError if a bound
        buffer is larger than memory.
        """
        for dispatch in self._recorded:
            dispatch.execute("ExecuteCommandLists")

    def reset(self) -> None:
        """Forget what was recorded."""
        self._recorded.clear()


IMMEDIATE: Final = CommandList()
"""A command list that stands for immediate execution of what is recorded; it holds nothing."""
