"""Pictures as lines of a terminal, SVG images and HTML pages, which need no other file."""

from __future__ import annotations

import re
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

import pytest
from rich.console import Console

from dml_tile.pictures.marks import COLOURS
from dml_tile.pictures.picture import picture_html, picture_svg
from dml_tile.pictures.table import picture_lines
from dml_tile.reports.text import Line, print_lines
from tests.helpers.check_files import write
from tests.helpers.command_line import Call
from tests.helpers.drawn_tiles import HUGE, SHARED, TILES, picture, said
from tests.helpers.dxdispatch_models import model, tile_json
from tests.helpers.paths import EXAMPLES
from tests.helpers.report_pages import Element, parsed

STRIDED: Final = str(EXAMPLES / "strided.json")
SVG: Final = "{http://www.w3.org/2000/svg}"
OUTSIDE_THE_FILE: Final = re.compile(r"<script|<link|<img|@import|url\(|\bsrc=", re.IGNORECASE)


def texts(page: Element, tag: str, **attributes: str) -> list[str]:
    """Return the texts of the elements with these attributes."""
    return [one.text for one in page.all(tag) if one.attributes.items() >= attributes.items()]


# Terminals


def lines_of(name: str, width: int) -> list[Line]:
    return list(picture_lines(picture(TILES[name]), width))


def terminal(name: str, width: int, **options: Any) -> str:
    console = Console(width=width, force_terminal=True, file=StringIO(), highlight=False, markup=False, **options)
    with console.capture() as capture:
        print_lines(console, lines_of(name, width))
    return capture.get()


@pytest.mark.parametrize("name", TILES)
def test_a_picture_fits_its_terminal(name: str) -> None:
    assert all(len(line) <= 40 for line in terminal(name, 40, no_color=True, color_system=None).splitlines())


def test_a_tiny_terminal_gets_a_picture_too() -> None:
    assert "4J" in terminal("packed", 1, color_system=None)


@pytest.mark.parametrize("name", TILES)
def test_each_colour_has_a_letter_or_sign_of_its_own(name: str) -> None:
    rows = [line.text for line in lines_of(name, 80) if line.is_whole]
    colours: dict[str, set[str]] = {}
    for row in rows:
        for start, end, style in row.spans:
            mark = row.plain[start:end].strip()
            if "#8b0000" in str(style):
                assert set(mark) & set("!>?")
            elif "on #" in str(style):
                colours.setdefault(mark[-1], set()).add(str(style))
    assert all(len(styles) == 1 for styles in colours.values())
    assert all(row.plain.isascii() for row in rows)


def test_colours_are_shown_where_there_are_some() -> None:
    shown = terminal("packed", 80, color_system="truecolor")
    for colour in COLOURS:
        assert f"48;2;{';'.join(str(int(colour[i : i + 2], 16)) for i in (1, 3, 5))}m" in shown
    assert "48;" not in terminal("packed", 80, color_system="truecolor", no_color=True)


# Images and pages


def test_an_svg_has_all_of_the_picture_and_needs_no_other_file(show: Call) -> None:
    result = show(STRIDED, "--output", "tile.svg")
    assert (result.exit_code, result.output) == (0, "")
    text = Path("tile.svg").read_text()
    assert not OUTSIDE_THE_FILE.search(text)
    image = ElementTree.fromstring(text)
    assert image.attrib["role"] == "img"
    names = {element.attrib["id"]: element for element in image if "id" in element.attrib}
    assert [names[name].tag for name in image.attrib["aria-labelledby"].split()] == [f"{SVG}title", f"{SVG}desc"]
    assert (names["title"].text or "").startswith(f"{STRIDED}#/dispatchables/tile: accepted at 6_4")
    texts = [element.text for element in image.iter(f"{SVG}text")]
    assert "Sizes {1, 1, 4, 6}, Strides {32, 32, 8, 1}, TotalTensorSizeInBytes 32" in texts
    assert texts[texts.index("0A") - 1 : texts.index("0A") + 2] == ["0", "0A", "1A"]
    titles = {group.findtext(f"{SVG}text"): group.findtext(f"{SVG}title") for group in image.iter(f"{SVG}g")}
    assert titles["5D"] == "byte 29: OutputTensor[0, 0, 3, 5] shows InputTensor[0, 0, 1, 2], copy D"
    assert titles["."] == "byte 31: padding"


def test_cells_of_an_svg_have_the_colours_of_their_copies() -> None:
    image = ElementTree.fromstring(picture_svg(picture(TILES["packed"]), said("x")))
    fills: dict[str, set[str]] = {}
    for group in image.iter(f"{SVG}g"):
        (rect,) = group.findall(f"{SVG}rect")
        fills.setdefault((group.findtext(f"{SVG}text") or "")[-1], set()).add(rect.attrib["fill"])
    copies = {letter: fill for letter, fill in fills.items() if letter in "ABCDEFGHJ"}
    assert list(copies) == list("ABCDEFGHJ")
    assert all(fill < set(COLOURS) and len(fill) == 1 for fill in copies.values())
    assert fills["0"] == {"#ffffff"}


@pytest.mark.parametrize("name", TILES)
def test_all_parts_of_an_svg_stay_within_it(name: str) -> None:
    image = ElementTree.fromstring(picture_svg(picture(TILES[name]), said("x" * 300)))
    width, height = (float(image.attrib[side]) for side in ("width", "height"))
    for rect in image.iter(f"{SVG}rect"):
        assert float(rect.get("x", 0)) + float(rect.attrib["width"]) <= width
        assert float(rect.get("y", 0)) + float(rect.attrib["height"]) <= height
    for text in image.iter(f"{SVG}text"):
        assert float(text.attrib["y"]) <= height
        if text.attrib["text-anchor"] == "start":
            assert float(text.attrib["x"]) + 8.5 * len(text.text or "") <= width


def test_an_html_page_has_all_of_the_picture_and_needs_no_other_file(show: Call) -> None:
    result = show(STRIDED, "--output", "tile.html")
    assert (result.exit_code, result.output) == (0, "")
    text = Path("tile.html").read_text()
    assert not OUTSIDE_THE_FILE.search(text)
    page = parsed(text)
    assert texts(page, "html", lang="en")
    assert texts(page, "title") == texts(page, "h1")
    assert texts(page, "h2")[:2] == [
        "InputTensor: UINT8, 6 elements of 1 byte",
        "OutputTensor: UINT8, 24 elements of 1 byte",
    ]
    assert texts(page, "th", scope="row") == ["0", "4", "0", "8", "16", "24"]
    assert texts(page, "td", title="byte 29: OutputTensor[0, 0, 3, 5] shows InputTensor[0, 0, 1, 2], copy D") == ["5D"]
    assert texts(page, "td", **{"class": "padding"}) == ["."] * 10
    cells = {cell.attributes.get("class"): cell.text[-1] for cell in page.all("td")}
    legend = {symbol.attributes["class"]: symbol.text for symbol in page.all("span")}
    assert {f"symbol {kind}": letter for kind, letter in cells.items() if str(kind).startswith("copy")} == legend


def test_findings_stand_in_the_files_too(show: Call) -> None:
    write("shared.json", SHARED)
    for name in "shared.svg", "shared.html":
        result = show("shared.json", "--output", name)
        assert result.exit_code == 1
        assert "error[DML-BUFFER-Strides-overlap]" in result.stderr
        assert "error[DML-BUFFER-Strides-overlap]" in Path(name).read_text()
    page = parsed(Path("shared.html").read_text())
    assert texts(page, "td", **{"class": "wrong"}) == ["0B=3A!", "1B=4A!", "2B=5A!"]
    (link,) = page.all("a")
    assert link.text == link.attributes["href"]


@pytest.mark.parametrize("name", ["part.svg", "part.html"])
def test_a_picture_of_one_tensor_is_written_too(show: Call, name: str) -> None:
    result = show(write("part.json", tile_json([2], [2]) | {"OutputTensor": None}), "--output", name)
    assert result.exit_code == 1
    assert "OutputTensor cannot be drawn: it is null" in result.stderr
    assert "OutputTensor cannot be drawn: it is null" in Path(name).read_text()


@pytest.mark.parametrize(
    ("value", "name", "status", "message"),
    [
        ({"Type": "DML_OPERATOR_GEMM"}, "a.svg", 1, "the tile cannot be drawn: it is no tile"),
        ([tile_json([2], [2]), SHARED], "a.svg", 2, "an image is of one tile; choose it with --pointer: /0, /1"),
        ([], "a.svg", 2, "dml-tile: a.json: "),
        ('"no descriptor"', "a.svg", 2, "dml-tile: a.json: "),
        (tile_json([2], [2]), "a.png", 2, "does not end in .svg or .html"),
        (tile_json([2], [2]), "svg", 2, "does not end in .svg or .html"),
        (tile_json([2], [2]), "nowhere/a.svg", 2, "nowhere/a.svg: No such file or directory"),
    ],
)
def test_a_picture_that_cannot_be_drawn_or_written_leaves_no_file(
    show: Call, value: Any, name: str, status: int, message: str
) -> None:
    result = show(write("a.json", value), "--output", name)
    assert result.exit_code == status
    assert message in result.stderr
    assert list(Path().iterdir()) == [Path("a.json")]


def test_an_image_of_the_chosen_tile_replaces_an_old_file_and_no_folder(show: Call) -> None:
    write("two.json", [tile_json([2], [2]), SHARED])
    Path("tile.svg").write_text("old")
    assert show("two.json", "--output", "tile.svg", "--pointer", "/0").exit_code == 0
    assert Path("tile.svg").read_text().startswith("<svg")
    Path("folder.svg").mkdir()
    assert show(STRIDED, "--output", "folder.svg").exit_code == 2
    assert not list(Path("folder.svg").iterdir())


# Names from files

NASTY: Final = 'a\x1b[31m<script>alert("&")</script>\x00\u202e]]>'


def test_names_from_files_are_escaped_everywhere(show: Call) -> None:
    dispatchables = {NASTY: {"type": "TILE", "desc": tile_json([2], [2])}}
    name = write("nasty.json", model(dispatchables=dispatchables, commands=[]))
    shown = show(name).stdout
    assert "\x1b" not in shown
    assert r"a\x1b[31m<script>" in shown
    for file in "nasty.svg", "nasty.html":
        assert show(name, "--output", file).exit_code == 0
        text = Path(file).read_text()
        assert "<script" not in text
        assert "&lt;script&gt;" in text
        assert not any(sign in text for sign in "\x1b\x00\u202e")
    ElementTree.fromstring(Path("nasty.svg").read_text())
    (heading,) = texts(parsed(Path("nasty.html").read_text()), "h1")
    assert r'<script>alert("&")<' in heading


def test_a_long_name_takes_a_bounded_part_of_an_image() -> None:
    image = ElementTree.fromstring(picture_svg(picture(TILES["packed"]), said("x" * 10**6)))
    assert float(image.attrib["height"]) < 1000


@pytest.mark.parametrize("draw", [picture_svg, picture_html])
def test_the_largest_of_tensors_makes_no_large_file(draw: Callable[..., str]) -> None:
    assert len(draw(picture(HUGE), said("huge"))) < 500_000
