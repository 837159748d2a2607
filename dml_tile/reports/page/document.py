"""The page: what was checked and what came of it, in one HTML file that asks for nothing else, from any machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from typing import Final

from dml_tile.checks.source_summary import SourceSummary
from dml_tile.reports.markup.document import html_page
from dml_tile.reports.markup.elements import Markup, element, table
from dml_tile.reports.page.model import MAX_LISTED, PageModel
from dml_tile.reports.page.overview import model_table, problem_list, rule_table, target_table
from dml_tile.reports.page.tiles import COLUMNS, tile_body, verdict
from dml_tile.reports.report import Problems

_MAX_OPEN: Final = 20
"""The findings are unfolded on a page with at most so many tiles that have some."""

_AGAINST: Final = {
    "documentation": "what the documentation says, alone; lowest levels pass the runtime too",
    "runtime": "what the runtime was measured to do, alone; lowest levels pass the documentation too",
    "both": "what the documentation says and what the runtime was measured to do",
}


def document(page: PageModel, problems: Problems, models: Sequence[SourceSummary]) -> Iterator[str]:
    """The page, in pieces; the same page make the same page."""
    script = files(__package__).joinpath("page.js").read_text("utf-8")
    sections = [
        _Section("Not read", len(problems), problem_list(problems)),
        _Section("Targets", len(page.verdicts), target_table(page)),
        _Section("Models", len(models), model_table(models)),
        _Section("Rules broken", len(page.rules), rule_table(page)),
        _Section("Tiles", page.counts.total(), _tiles(page)),
    ]
    shown = [section for section in sections if section.count]
    yield from html_page(f"Tiles on DirectML: {_counted(page)}", _body(page, shown), script=script)


def _body(page: PageModel, sections: Sequence[_Section]) -> Iterator[str]:
    yield from _header(page, sections)
    yield '<main class="report">\n'
    for section in sections:
        yield f'<section id="{section.identifier}">\n'
        yield element("h2", section.title)
        yield from section.content
        yield "</section>\n"
    yield "</main>\n"
    yield from _footer()


@dataclass(frozen=True, slots=True)
class _Section:
    """A part of the page, left out where there is nothing to it."""

    title: str
    count: int
    content: Iterator[str]

    @property
    def identifier(self) -> str:
        return self.title.lower().replace(" ", "-")


def _header(page: PageModel, sections: Sequence[_Section]) -> Iterator[str]:
    yield "<header>\n"
    yield element("h1", "Tiles on DirectML")
    verdicts = (element("li", element("b", str(page.counts[word])), " ", verdict(word)) for word in page.words)
    yield element("ul", *verdicts, class_="counts")
    count = len(page.verdicts)
    at = "" if count < 2 else f", once for each of {count} targets"
    yield element("p", f"Held to {_AGAINST[page.against]}{at}.")
    links = (element("a", f"{section.title} ({section.count})", href=f"#{section.identifier}") for section in sections)
    yield element("nav", *links)
    yield "\n</header>\n"


def _tiles(page: PageModel) -> Iterator[str]:
    if page.left_out:
        left_out = ", ".join(f"{page.left_out[word]} {word}" for word in page.words if page.left_out[word])
        yield element(
            "p",
            f"The page lists the first {MAX_LISTED} tiles with findings and the first {MAX_LISTED} without. "
            f"Counted above but not listed: {left_out}. ",
            element("code", "dml-tile check --format json"),
            " lists all.",
        )
    yield from _filters(page)
    is_open = sum(bool(row.findings) for row in page.listed) <= _MAX_OPEN
    yield from table(COLUMNS, (tile_body(row, is_open=is_open) for row in page.listed))


def _filters(page: PageModel) -> Iterator[str]:
    """The form by which the script shows and hides tiles; it stays hidden without the script."""
    yield '<form id="filters" hidden>\n'
    yield element("label", "Text", Markup(' <input type="search" name="text" autocomplete="off" spellcheck="false">'))
    words = [word for word in page.words if any(row.verdict == word for row in page.listed)]
    choices = (_radio("all", "", is_checked=True), *(_radio(word, word) for word in words))
    yield element("fieldset", element("legend", "Verdict"), *choices)
    yield from _select("Rule", "rule", sorted({rule for row in page.listed for rule in row.rules}))
    yield from _select("Target", "target", list(dict.fromkeys(row.target for row in page.listed)))
    yield '<p role="status"></p>\n<button type="button"></button>\n</form>\n'


def _radio(label: str, value: str, *, is_checked: bool = False) -> Markup:
    checked = " checked" if is_checked else ""
    return element("label", Markup(f'<input type="radio" name="verdict" value="{value}"{checked}>'), f" {label}")


def _select(label: str, field: str, values: Sequence[str]) -> Iterator[str]:
    if len(values) > 1:
        options = (element("option", "all", value=""), *(element("option", value, value=value) for value in values))
        yield element("label", f"{label} ", element("select", *options, name=field))


def _footer() -> Iterator[str]:
    yield element(
        "footer",
        f"dml-tile {version('dml-tile')}. ",
        element("code", "dml-tile explain RULE"),
        " tells more of a rule, ",
        element("code", "dml-tile levels"),
        " what takes which tile.",
    )


def _counted(page: PageModel) -> str:
    return ", ".join(f"{page.counts[word]} {word}" for word in page.words) or "none"
