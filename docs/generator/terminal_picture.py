"""Draws commands and what they print, as a terminal shows it, for README."""

from __future__ import annotations

import io
import re
import shlex
from collections.abc import Sequence
from typing import Final

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from tests.helpers.pages import blocks_of, commands_of
from tests.helpers.terminals import on_a_terminal

COLUMNS: Final = 56
"""So few that letters have 9 px where the page is 390 px wide."""

_SCALE: Final = 0.68
"""Of rich's letters of 20 px, which makes them as large as those of the code around the picture."""

_FORMAT: Final = """\
<svg width="{width}" viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img">
<style>
.{unique_id}-matrix {{ font-family: monospace; font-size: {char_height}px; line-height: {line_height}px }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}" />
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""
"""rich's own, without the fonts that it would load from elsewhere."""


def first_commands(readme: str) -> list[list[str]]:
    """Return the arguments of ``dml-tile`` in README's first block, without what the reader of a picture needs not."""
    console = next(block.text for block in blocks_of(readme) if block.language == "console")
    ((command, _),) = commands_of(console)
    calls = [shlex.split(call) for call in command.split(" && ") if "dml-tile " in call]
    return [shlex.split(shlex.join(call[1:]).replace(" --fail-on never", "")) for call in calls]


def terminal_picture(commands: Sequence[Sequence[str]]) -> str:
    """Return an SVG of the command lines ``dml-tile …``, each with what it prints in ``COLUMNS`` columns."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    for arguments in commands:
        console.print(Text(f"$ dml-tile {' '.join(arguments)}", style="bold"))
        printed = on_a_terminal(*arguments, COLUMNS=str(COLUMNS)).replace("\r\n", "\n")
        console.print(Text.from_ansi(printed.rstrip()))
    drawn = console.export_svg(title="dml-tile", theme=MONOKAI, code_format=_FORMAT, unique_id="terminal")
    drawn = re.sub(r'(?<=^<svg width=")\d+', lambda width: f"{int(width[0]) * _SCALE:.0f}", drawn)
    return "".join(f"{line.strip()}\n" for line in drawn.splitlines() if line.strip())
