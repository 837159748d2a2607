"""Report pages for tests, and what an HTML parser makes of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from html.parser import HTMLParser
from typing import Any, NamedTuple

from rich.console import Console

from dml_tile.checks.file_check import SourceSummary
from dml_tile.checks.lowerings import with_lower_command
from dml_tile.checks.result import Result, results
from dml_tile.directml.targets import Target
from dml_tile.errors import Problem
from dml_tile.findings import Against
from dml_tile.readers.descriptors import JsonDescriptor
from dml_tile.readers.model_tile import KnownShapes, TileNode
from dml_tile.reports.page import PageReport
from dml_tile.reports.report import Origin, ReportOptions
from tests.helpers.descriptors import row

OLD, MIDDLE, NEW = (Target.parse(name) for name in ("windows-10-2004", "windows-11-21h2", "6_4"))

LONG = JsonDescriptor("/long", row("INT64", [1, 2, 3, 4], [1, 1, 2, 1]))
SHORT = JsonDescriptor("/short", row("FLOAT32", [1, 1, 2, 3], [1, 1, 3, 3]))
WRONG = JsonDescriptor("/wrong", row("FLOAT32", [1, 1, 2, 3], [1, 1, 3, 3], RepeatsCount=3))

HOSTILE = "</script><script>document.title = 'taken'</script><img src=x onerror=\"document.title = 'taken'\">&amp;"

_VOID = ("meta", "input", "wbr")


def checked(part: JsonDescriptor | TileNode, *targets: Target, source: str = "a.json") -> list[Result]:
    """Returns the result of ``check`` for a tile."""
    return [
        with_lower_command(result, part, KnownShapes(), is_alone=False)
        for result in results(source, part, targets or (NEW,), "both")
    ]


def page(
    tiles: Iterable[Sequence[Result]],
    problems: Sequence[tuple[str, Problem]] = (),
    models: Sequence[SourceSummary] = (),
    against: Against = "both",
    origin: Origin | None = None,
) -> str:
    """The page of several tiles' results."""
    written: list[str] = []
    report = PageReport(ReportOptions(written.append, Console, against, origin=origin or Origin()))
    for one in tiles:
        report.add(one)
    report.end(problems, models)
    return "".join(written)


class Element(NamedTuple):
    """An element of a page, with all text in it."""

    tag: str
    attributes: dict[str, str]
    texts: list[str]
    children: list[Any]

    @property
    def text(self) -> str:
        return " ".join("".join(self.texts).split())

    def everything(self) -> Iterator[Element]:
        """The elements in this one, at any depth."""
        for child in self.children:
            yield child
            yield from child.everything()

    def all(self, tag: str) -> list[Element]:
        """The elements of a kind in this one, at any depth."""
        return [found for found in self.everything() if found.tag == tag]


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open = [Element("document", {}, [], [])]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs}, [], [])
        self.open[-1].children.append(element)
        if tag not in _VOID:
            self.open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        for element in self.open:
            element.texts.append(data)


@lru_cache(maxsize=1)
def parsed(html: str) -> Element:
    """The document; each element that is opened in it is closed in its place."""
    parser = _Parser()
    parser.feed(html)
    parser.close()
    (document,) = parser.open
    return document


def section(html: str, identifier: str) -> Element:
    """A part of the page by its heading's id."""
    (found,) = (one for one in parsed(html).all("section") if one.attributes["id"] == identifier)
    return found


def rows(html: str, identifier: str) -> list[list[str]]:
    """The texts of the table's cells in a part of the page, each row's heading first."""
    bodies = section(html, identifier).all("tbody")
    return [[cell.text for cell in body.all("tr")[0].children] for body in bodies]


def details(html: str) -> list[str]:
    """Returns the text told of each tile that has findings or notes."""
    return [one.text for one in section(html, "findings").all("details")]
