"""Reports of results for tests, and the elements that an HTML parser finds in a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache, partial
from html.parser import HTMLParser
from io import StringIO
from xml.etree.ElementTree import Element, TreeBuilder

from rich.console import Console

from dml_tile.back_ends import back_end_named
from dml_tile.back_ends.described_node import NodePlace
from dml_tile.back_ends.placement import PlacedModel, Reason
from dml_tile.checks.judging import judged
from dml_tile.checks.lowerings import with_lowering_suggested
from dml_tile.checks.placements import ModelNodes
from dml_tile.checks.result import CheckedFile, Result
from dml_tile.checks.sessions import placed_summary
from dml_tile.directml.targets import Target
from dml_tile.findings import Against, Finding
from dml_tile.readers.item import Item
from dml_tile.readers.model_names import KnownShapes
from dml_tile.reports.report import FORMATS, ReportOptions
from tests.helpers.descriptors import row

OLD, MIDDLE, NEW = (Target.parse(name) for name in ("windows-10-2004", "windows-11-21h2", "6_4"))

LONG = Item("/long", row("INT64", [1, 2, 3, 4], [1, 1, 2, 1]))
SHORT = Item("/short", row("FLOAT32", [1, 1, 2, 3], [1, 1, 3, 3]))
WRONG = Item("/wrong", row("FLOAT32", [1, 1, 2, 3], [1, 1, 3, 3], RepeatsCount=3))

HOSTILE = "</script><script>document.title = 'taken'</script><img src=x onerror=\"document.title = 'taken'\">&amp;"

_VOID = ("meta", "input", "wbr")


def checked(part: Item, *targets: Target, source: str = "a.json") -> list[Result]:
    """Return the result of ``check`` for a tile."""
    return [
        with_lowering_suggested(result, part, KnownShapes(), is_alone=False)
        for result in judged(source, part, targets or (NEW,), "both")
    ]


def _console(output: StringIO) -> Console:
    return Console(file=output, width=120, highlight=False, markup=False, emoji=False)


def report_of(
    form: str,
    tiles: Iterable[Sequence[Result]],
    problems: Sequence[Finding] = (),
    models: Sequence[CheckedFile] = (),
    against: Against = "both",
    nodes: Iterable[ModelNodes] = (),
) -> str:
    """Return the report of several tiles' results, and of the nodes of models, in a format."""
    output = StringIO()
    report = FORMATS[form].report(ReportOptions(output.write, lambda: _console(output), against))
    for results_of_tile in tiles:
        report.item(results_of_tile)
    for problem in problems:
        report.finding(problem)
    placed = list(nodes)
    for each in placed:
        report.nodes(each)
    report.end([*models, *(CheckedFile(each.source, is_model=True, placed=placed_summary(each)) for each in placed)])
    return output.getvalue()


def placed_model(nodes: Sequence[tuple[NodePlace, Reason]], *targets: Target, source: str = "a.onnx") -> ModelNodes:
    """Return a model whose nodes have the same placements at all targets."""
    named, reasons = zip(*nodes, strict=True)
    every = tuple(dict.fromkeys(reasons))
    numbers = {reason: i for i, reason in enumerate(every)}
    column = tuple(numbers[reason] for reason in reasons)
    placed = PlacedModel(
        named, every, ((),) * len(targets), (column,) * len(targets), (), ((-1,) * len(named),) * len(targets)
    )
    return ModelNodes(source, targets, placed, back_end_named("ort"))


page = partial(report_of, "html")


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.builder = TreeBuilder()
        self.builder.start("document", {})

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.builder.start(tag, {name: value or "" for name, value in attrs})
        if tag in _VOID:
            self.builder.end(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.builder.end(tag).tag == tag

    def handle_data(self, data: str) -> None:
        self.builder.data(data)


@lru_cache(maxsize=1)
def parsed(html: str) -> Element:
    """Return the document; each element that is opened in it is closed in its place."""
    parser = _Parser()
    parser.feed(html)
    parser.close()
    assert parser.builder.end("document").tag == "document"
    return parser.builder.close()


def text_of(element: Element) -> str:
    """Return all text in an element, on one line."""
    return " ".join("".join(element.itertext()).split())


def texts(element: Element, path: str) -> list[str]:
    """Return the texts of the elements on a path."""
    return list(map(text_of, element.iterfind(path)))


def section(html: str, identifier: str) -> Element:
    """Return a part of the page by the id of its heading."""
    (found,) = parsed(html).iterfind(f".//section[@id='{identifier}']")
    return found


def rows(html: str, identifier: str) -> list[list[str]]:
    """Return the texts of the cells of the table in a part of the page, the heading of each row first."""
    return [list(map(text_of, row)) for row in section(html, identifier).iterfind(".//tbody/tr[1]")]
