"""Lines of text in styles, such as ``bold red``, and a console that prints them without.

Importing rich, which terminals take, takes long.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeGuard

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

Part: TypeAlias = "str | tuple[str, str]"
"""A text, or one with its style."""

_WHOLE: Final = r"(?:\(dml-tile [^)]*\)|https://)\S*"
"""Commands and links, which stay on one line of a terminal, to be copied or clicked."""


class Line:
    """A line of a report, and how far it is indented; a row of a table is ``is_whole``, which is never wrapped."""

    __slots__ = ("indent", "is_whole", "parts", "plain")

    def __init__(self, indent: int, *parts: Part, is_whole: bool = False) -> None:
        self.indent, self.parts, self.is_whole = indent, parts, is_whole
        self.plain = "".join([part if isinstance(part, str) else part[0] for part in parts])
        """The text without its styles and its indent."""

    def __str__(self) -> str:
        return f"{' ' * self.indent}{self.plain}\n"


class Writable(Protocol):
    """A stream that lines are written to."""

    def write(self, text: str, /) -> object: ...

    def flush(self) -> object: ...


class PlainConsole:
    """Takes the place of rich's console where output is no terminal; tables are printed by that."""

    is_terminal = False
    width = 120

    def __init__(self, file: Writable) -> None:
        self.file = file

    def print(self, *objects: Any, sep: str = " ") -> None:
        """Print anything longer than a line of text."""
        rich_console(self.file, is_terminal=False).print(*objects, sep=sep)


def rich_console(file: Any, *, is_terminal: bool | None = None) -> Console:
    """Return a console that prints text as it is: no markup, no emoji codes, no highlighting.

    ``is_terminal`` overrides what the file says.
    """
    from rich.console import Console

    console = Console(file=file, force_terminal=is_terminal, highlight=False, markup=False, emoji=False)
    if not has_width(console):
        console.width = PlainConsole.width
    return console


AnyConsole: TypeAlias = "Console | PlainConsole"


def print_lines(console: AnyConsole, lines: Iterable[Line]) -> None:
    """Print lines; a terminal gets them wrapped within their indent, a pipe each in one line."""
    if isinstance(console, PlainConsole) or not console.is_terminal:  # what rich would write, at a tenth of the cost
        console.file.write("".join(map(str, lines)))
        return
    from rich.text import Text

    for line in lines:
        text = Text.assemble(*line.parts)
        is_wrapped = has_width(console) and not line.is_whole
        for row in _wrapped(text, console.width - line.indent) if is_wrapped else [text]:
            console.print(Text(" " * line.indent) + row, soft_wrap=True)


def _wrapped(text: Text, width: int) -> Iterator[Text]:
    """Yield a text in rows of at most a width; a command or link that is longer has a row of its own."""
    from rich.cells import cell_len

    starts, used = [], 0
    for word in re.finditer(rf"(?:{_WHOLE}|\S{{1,{max(width, 1)}}})\s*", text.plain):
        if used and used + cell_len(word[0].rstrip()) > width:
            starts.append(word.start())
            used = 0
        used += cell_len(word[0])
    for row in text.divide(starts):
        row.rstrip()
        yield row


def has_width(console: AnyConsole) -> TypeGuard[Console]:
    """Return True for a terminal; FORCE_COLOR makes rich take a pipe, whose lines are of any length, for one."""
    return not isinstance(console, PlainConsole) and console.is_terminal and console.file.isatty()
