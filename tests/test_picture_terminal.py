"""Pictures in a terminal: how wide they are, and that they tell all without colour."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from dml_tile.pictures.marks import COLOURS
from dml_tile.pictures.terminal import picture_lines
from dml_tile.reports.text import Line, print_lines
from tests.helpers.drawn_tiles import TILES, picture


def lines_of(name: str, width: int) -> list[Line]:
    return list(picture_lines(picture(TILES[name]), width))


def terminal(name: str, width: int, **options: Any) -> str:
    console = Console(width=width, force_terminal=True, file=StringIO(), highlight=False, markup=False, **options)
    with console.capture() as capture:
        print_lines(console, lines_of(name, width))
    return capture.get()


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("name", TILES)
def test_a_picture_fits_its_terminal(name: str, width: int) -> None:
    assert all(len(line) <= width for line in terminal(name, width, no_color=True, color_system=None).splitlines())


@pytest.mark.parametrize("width", [1, 10, 20])
def test_a_tiny_terminal_gets_a_picture_too(width: int) -> None:
    assert "4J" in terminal("packed", width, color_system=None)


@pytest.mark.parametrize("name", TILES)
def test_colour_adds_nothing_that_letters_do_not_tell(name: str) -> None:
    """Marks of another colour have another letter, and those of errors have one of the signs of the legend."""
    rows = [line.text for line in lines_of(name, 80) if line.is_whole]
    colours: dict[str, set[str]] = {}
    for row in rows:
        for start, end, style in row.spans:
            mark = row.plain[start:end].strip()
            if "#8b0000" in str(style):
                assert set(mark) & set("!>?")
            elif "on #" in str(style):
                colours.setdefault(mark[-1], set()).add(str(style))
    assert all(len(of_letter) == 1 for of_letter in colours.values())
    assert all(row.plain.isascii() for row in rows)


def test_colours_are_shown_where_there_are_some() -> None:
    shown = terminal("packed", 80, color_system="truecolor")
    for colour in COLOURS:
        assert f"48;2;{';'.join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5))}m" in shown
    assert "48;" not in terminal("packed", 80, color_system="truecolor", no_color=True)
