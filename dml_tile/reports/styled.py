"""Text in styles, such as ``bold red``, and a console without them: importing rich, for terminals, takes long."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


class Styled:
    """A text of parts, each in a style; ``""`` is none."""

    def __init__(self, text: str = "", style: str = "") -> None:
        self._parts = [(text, style)]

    @classmethod
    def assemble(cls, *parts: str | tuple[str, str]) -> Styled:
        """Return the text of several parts, those in a style with it."""
        made = cls()
        made._parts = [(part, "") if isinstance(part, str) else part for part in parts]
        return made

    @property
    def plain(self) -> str:
        """The text without its styles."""
        return "".join([text for text, _ in self._parts])

    def rich(self) -> Text:
        """Return the text as rich prints it."""
        from rich.text import Text

        return Text.assemble(*self._parts)

    def append(self, text: str, style: str = "") -> None:
        """Add a part at the end."""
        self._parts.append((text, style))

    def rstrip(self) -> None:
        """Remove blanks at the end."""
        while self._parts:
            text, style = self._parts.pop()
            if rest := text.rstrip():
                self._parts.append((rest, style))
                return

    def __add__(self, other: Styled) -> Styled:
        return Styled.assemble(*self._parts, *other._parts)

    def __len__(self) -> int:
        return len(self.plain)


class Writable(Protocol):
    """A stream that lines are written to."""

    def write(self, text: str, /) -> object: ...

    def flush(self) -> object: ...


class PlainConsole:
    """Takes the place of rich's console where output is no terminal; ``open_rich`` opens that, to print tables."""

    is_terminal = False

    def __init__(self, file: Writable, width: int, open_rich: Callable[[], Console]) -> None:
        self.file, self.width = file, width
        self._open_rich = open_rich

    def print(self, *objects: Any, sep: str = " ") -> None:
        """Print what is more than a line of text."""
        self._open_rich().print(*objects, sep=sep)


AnyConsole: TypeAlias = "Console | PlainConsole"
