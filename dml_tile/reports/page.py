"""The results of a check as one HTML page that requests no other file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from typing import Final

from dml_tile.checks.file_check import SourceSummary
from dml_tile.checks.result import Result
from dml_tile.reports.markup import Markup, element, html_page
from dml_tile.reports.page_sections import (
    MAX_LISTED,
    has_details,
    matrix,
    model_table,
    problem_list,
    rule_table,
    target_table,
    tile_details,
    verdict,
)
from dml_tile.reports.report import Invocation, Report, ReportOptions
from dml_tile.reports.tally import VERDICTS, counted, files_not_read
from dml_tile.reports.tile_row import Overview, TileRow, clipped

_MAX_OPEN: Final = 20
"""The most tiles with findings for which a page unfolds these."""

_TITLE: Final = "Tiles on DirectML"

_AGAINST: Final = {
    "documentation": "what the documentation says, alone; lowest levels pass the runtime too",
    "runtime": "what the runtime was measured to do, alone; lowest levels pass the documentation too",
    "both": "what the documentation says and what the runtime was measured to do",
}


def document(overview: Overview, options: ReportOptions, models: Sequence[SourceSummary]) -> Iterator[str]:
    """Yield the page, in pieces; the same results of the same command make the same page."""
    script = files(__package__).joinpath("page.js").read_text("utf-8")
    rows = overview.rows
    detailed = sum(map(has_details, rows))
    sections = [
        _Section("Not read", len(overview.problems), problem_list(overview.problems)),
        _Section("Tiles", overview.tally.counts.total(), _tiles(overview, rows)),
        _Section("Findings", detailed, tile_details(rows, are_open=detailed <= _MAX_OPEN)),
        _Section("Targets", len(overview.verdicts), target_table(overview)),
        _Section("Models", len(models), model_table(models)),
        _Section("Rules broken", len(overview.rules), rule_table(overview)),
    ]
    shown = [section for section in sections if section.count]
    title = f"{_TITLE}: {overview.tally.headline(overview.problems)}"
    yield from html_page(title, _page(overview, options, shown), script=script)


@dataclass(frozen=True, slots=True)
class _Section:
    """A part of the page; empty ones are left out."""

    title: str
    count: int
    content: Iterator[str]

    @property
    def identifier(self) -> str:
        return self.title.lower().replace(" ", "-")


def _page(overview: Overview, options: ReportOptions, sections: Sequence[_Section]) -> Iterator[str]:
    yield from _header(overview, options, sections)
    yield '<main class="report">\n'
    for section in sections:
        yield f'<section id="{section.identifier}">\n'
        yield element("h2", section.title)
        yield from section.content
        yield "</section>\n"
    yield "</main>\n"
    yield _footer(options.invocation)


def _header(overview: Overview, options: ReportOptions, sections: Sequence[_Section]) -> Iterator[str]:
    yield "<header>\n"
    yield element("h1", _TITLE)
    yield element("ul", *_counts(overview), class_="counts")
    count = len(overview.verdicts)
    at = f" A tile is counted by the worst of its verdicts at {count} targets." if count > 1 else ""
    yield element("p", f"Held to {_AGAINST[options.against]}.{at}")
    yield element("p", overview.tally.headline(overview.problems))
    links = (element("a", f"{section.title} ({section.count})", href=f"#{section.identifier}") for section in sections)
    yield element("nav", *links)
    yield "\n</header>\n"


def _counts(overview: Overview) -> Iterator[Markup]:
    if overview.problems:
        count, _, words = files_not_read(overview.problems).partition(" ")
        yield element("li", element("b", count), " ", element("span", f"⚠ {words}", class_="verdict refused"))
    for word in VERDICTS:
        if number := overview.tally.counts[word]:
            yield element("li", element("b", str(number)), " ", verdict(word))


def _tiles(overview: Overview, rows: Sequence[TileRow]) -> Iterator[str]:
    if overview.left_out:
        yield element(
            "p",
            f"The page lists the first {MAX_LISTED} tiles with findings and the first {MAX_LISTED} without. "
            f"Counted above but not listed: {counted(overview.left_out)}. ",
            element("code", "dml-tile check --format json"),
            " lists all.",
        )
    yield from _filters(overview, rows)
    yield from matrix(rows, overview.targets)


def _filters(overview: Overview, rows: Sequence[TileRow]) -> Iterator[str]:
    """Yield the form by which the script shows and hides tiles; it stays hidden without the script."""
    yield '<form id="filters" hidden>\n'
    yield element("label", "Text", Markup(' <input type="search" name="text" autocomplete="off" spellcheck="false">'))
    choices = (_radio("all", "", is_checked=True), *(_radio(word, word) for word in overview.words))
    yield element("fieldset", element("legend", "Verdict"), *choices)
    yield from _select("at", "target", overview.targets, "any target")
    yield from _select("Rule", "rule", sorted({rule for row in rows for rule in row.rules}), "all")
    yield '<p role="status"></p>\n<button type="button"></button>\n</form>\n'


def _radio(label: str, value: str, *, is_checked: bool = False) -> Markup:
    checked = " checked" if is_checked else ""
    return element("label", Markup(f'<input type="radio" name="verdict" value="{value}"{checked}>'), f" {label}")


def _select(label: str, field: str, values: Sequence[str], otherwise: str) -> Iterator[str]:
    if len(values) > 1:
        options = element("option", otherwise, value=""), *(element("option", value, value=value) for value in values)
        yield element("label", f"{label} ", element("select", *options, name=field))


def _footer(invocation: Invocation) -> Markup:
    made = " ".join(filter(None, ("dml-tile", version("dml-tile"), invocation.made)))
    command = [element("pre", element("code", clipped(invocation.command)))] if invocation.command else []
    commands = element(
        "p",
        element("code", "dml-tile explain RULE"),
        " tells more of a rule, ",
        element("code", "dml-tile levels"),
        " what takes which tile.",
    )
    return element("footer", element("p", made), *command, commands)


class PageReport(Report):
    """One self-contained HTML page, written at the end."""

    def __init__(self, options: ReportOptions) -> None:
        super().__init__(options)
        self._overview = Overview(MAX_LISTED)

    def add(self, results: Sequence[Result]) -> None:
        """Take the results of the next tile."""
        self._overview.add(results)

    def end(self, sources: Sequence[SourceSummary]) -> None:
        """Write the page."""
        self._overview.problems = self._problems
        models = [source for source in sources if source.is_model]
        for piece in document(self._overview, self._options, models):
            self._write(piece)
