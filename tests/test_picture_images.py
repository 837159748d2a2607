"""Pictures as SVG images and HTML pages: what is in them, and that they need nothing else."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree

import pytest

from dml_tile.pictures.html import picture_html
from dml_tile.pictures.marks import COLOURS
from dml_tile.pictures.svg import picture_svg
from tests.helpers.command_line import Call
from tests.helpers.drawn_tiles import HUGE, SHARED, TILES, picture, said, write
from tests.helpers.dxdispatch_models import model, tile_json
from tests.helpers.paths import EXAMPLES

STRIDED: Final = str(EXAMPLES / "strided.json")
SVG: Final = "{http://www.w3.org/2000/svg}"
OUTSIDE_THE_FILE: Final = re.compile(r"<script|<link|<img|@import|url\(|\bsrc=", re.IGNORECASE)


class Page(HTMLParser):
    """The elements of a page, each with its name, attributes and own text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None], str]] = []
        self._open: list[int] = []
        self.feed(text)
        self.close()
        assert not self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "meta":
            self._open.append(len(self.elements))
        self.elements.append((tag, dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        assert self.elements[self._open.pop()][0] == tag

    def handle_data(self, data: str) -> None:
        if self._open:
            tag, attributes, text = self.elements[self._open[-1]]
            self.elements[self._open[-1]] = tag, attributes, text + data

    def texts(self, tag: str, **attributes: str) -> list[str]:
        return [
            text.strip() for name, given, text in self.elements if name == tag and given.items() >= attributes.items()
        ]


def test_an_svg_says_all_and_needs_nothing_else(show: Call) -> None:
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


def test_an_svg_s_slots_have_the_colours_of_their_copies() -> None:
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
def test_an_svg_s_parts_stay_within_it(name: str) -> None:
    image = ElementTree.fromstring(picture_svg(picture(TILES[name]), said("x" * 300)))
    width, height = (float(image.attrib[side]) for side in ("width", "height"))
    for rect in image.iter(f"{SVG}rect"):
        assert float(rect.get("x", 0)) + float(rect.attrib["width"]) <= width
        assert float(rect.get("y", 0)) + float(rect.attrib["height"]) <= height
    for text in image.iter(f"{SVG}text"):
        assert float(text.attrib["y"]) <= height
        if text.attrib["text-anchor"] == "start":
            assert float(text.attrib["x"]) + 8.5 * len(text.text or "") <= width


def test_an_html_page_says_all_and_needs_nothing_else(show: Call) -> None:
    result = show(STRIDED, "--output", "tile.html")
    assert (result.exit_code, result.output) == (0, "")
    text = Path("tile.html").read_text()
    assert not OUTSIDE_THE_FILE.search(text)
    page = Page(text)
    assert page.texts("html", lang="en")
    (title,) = page.texts("title")
    assert title == page.texts("h1")[0]
    assert page.texts("h2")[:2] == [
        "InputTensor: UINT8, 6 elements of 1 byte",
        "OutputTensor: UINT8, 24 elements of 1 byte",
    ]
    assert page.texts("th", scope="row") == ["0", "4", "0", "8", "16", "24"]
    assert page.texts("td", title="byte 29: OutputTensor[0, 0, 3, 5] shows InputTensor[0, 0, 1, 2], copy D") == ["5D"]
    assert page.texts("td", **{"class": "padding"}) == ["."] * 10
    names = {attributes.get("class"): text[-1] for tag, attributes, text in page.elements if tag == "td"}
    legend = {attributes["class"]: text for tag, attributes, text in page.elements if tag == "span"}
    assert {f"symbol {kind}": letter for kind, letter in names.items() if str(kind).startswith("copy")} == legend


def test_findings_stand_in_the_files_too(show: Call) -> None:
    write("shared.json", SHARED)
    for name in "shared.svg", "shared.html":
        result = show("shared.json", "--output", name)
        assert result.exit_code == 1
        assert "error[DML-BUFFER-Strides-overlap]" in result.stderr
        assert "error[DML-BUFFER-Strides-overlap]" in Path(name).read_text()
    page = Page(Path("shared.html").read_text())
    assert page.texts("td", **{"class": "wrong"}) == ["0B=3A!", "1B=4A!", "2B=5A!"]
    (link,) = (attributes["href"] for tag, attributes, _ in page.elements if tag == "a")
    assert page.texts("a") == [link]


@pytest.mark.parametrize("name", ["part.svg", "part.html"])
def test_what_is_drawn_in_part_is_written_all_the_same(show: Call, name: str) -> None:
    result = show(write("part.json", tile_json([2], [2]) | {"OutputTensor": None}), "--output", name)
    assert result.exit_code == 1
    assert "OutputTensor cannot be drawn: it is null" in result.stderr
    assert "OutputTensor cannot be drawn: it is null" in Path(name).read_text()


def test_what_cannot_be_drawn_at_all_leaves_no_file(show: Call) -> None:
    result = show(write("none.json", {"Type": "DML_OPERATOR_GEMM"}), "--output", "none.svg")
    assert result.exit_code == 1
    assert "the tile cannot be drawn: it is no tile" in result.stderr
    assert not Path("none.svg").exists()


def test_a_file_is_of_one_tile(show: Call) -> None:
    write("two.json", [tile_json([2], [2]), SHARED])
    result = show("two.json", "--output", "two.svg")
    assert result.exit_code == 2
    assert "an image is of one tile; choose it with --pointer: /0, /1" in result.stderr
    assert not Path("two.svg").exists()
    assert show("two.json", "--output", "two.svg", "--pointer", "/0").exit_code == 0
    assert Path("two.svg").exists()


@pytest.mark.parametrize("value", [[], "no JSON"])
def test_without_a_tile_there_is_no_file(show: Call, value: Any) -> None:
    result = show(write("none.json", value), "--output", "none.svg")
    assert result.exit_code == 2
    assert result.stderr.startswith("dml-tile: none.json: ")
    assert not Path("none.svg").exists()


@pytest.mark.parametrize("name", ["tile.png", "tile", "svg"])
def test_other_kinds_of_files_are_refused(show: Call, name: str) -> None:
    result = show(STRIDED, "--output", name)
    assert result.exit_code == 2
    assert "does not end in .svg or .html" in result.stderr
    assert not Path(name).exists()


def test_a_file_that_cannot_be_written_exits_2_and_the_old_one_stays(show: Call) -> None:
    result = show(STRIDED, "--output", "nowhere/tile.svg")
    assert result.exit_code == 2
    assert "nowhere/tile.svg: No such file or directory" in result.stderr
    Path("folder.svg").mkdir()
    assert show(STRIDED, "--output", "folder.svg").exit_code == 2
    assert list(Path().iterdir()) == [Path("folder.svg")]


def test_a_file_that_is_there_is_replaced(show: Call) -> None:
    Path("tile.svg").write_text("old")
    assert show(STRIDED, "--output", "tile.svg").exit_code == 0
    assert Path("tile.svg").read_text().startswith("<svg")


# Strangers' texts

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
    (heading,) = Page(Path("nasty.html").read_text()).texts("h1")
    assert r'<script>alert("&")<' in heading


def test_a_long_name_takes_a_bounded_part_of_an_image() -> None:
    image = ElementTree.fromstring(picture_svg(picture(TILES["packed"]), said("x" * 10**6)))
    assert float(image.attrib["height"]) < 1000


@pytest.mark.parametrize("draw", [picture_svg, picture_html])
def test_the_largest_of_tensors_makes_no_large_file(draw: Callable[..., str]) -> None:
    assert len(draw(picture(HUGE), said("huge"))) < 500_000
