"""The results of a check as one HTML page that requests no other file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from itertools import islice, starmap
from typing import Final

from dml_tile import __version__
from dml_tile.checks.catalogue import RULES
from dml_tile.checks.result import CheckedFile
from dml_tile.directml.enums import FeatureLevel
from dml_tile.findings import Finding, location_of
from dml_tile.reports import wording
from dml_tile.reports.bounds import clipped
from dml_tile.reports.markup import (
    Cell,
    Markup,
    body,
    choices_of,
    count_cell,
    element,
    filters,
    html_page,
    joined,
    left_out,
    link,
    name,
    region,
    table,
)
from dml_tile.reports.overview import SIGNS, OverviewReport, OverviewRow, RowLowering
from dml_tile.reports.page_nodes import departure_table, node_table
from dml_tile.reports.report import ReportOptions
from dml_tile.reports.rows import FindingRow
from dml_tile.text import plural

MAX_ON_A_PAGE: Final = 1_000
"""The limit for listed operators with findings, for those without, for models and for problems."""

_MAX_OPEN: Final = 20
"""The most operators with findings for which a page unfolds these."""

_TITLE: Final = "Operators on DirectML"

_AGAINST: Final = {
    "documentation": "what the documentation says, alone; lowest levels pass the runtime too",
    "runtime": "what the runtime was measured to do, alone; lowest levels pass the documentation too",
    "both": "what the documentation says and what the runtime was measured to do",
}


@dataclass(frozen=True, slots=True)
class _Section:
    """A part of the page; empty ones are left out."""

    title: str
    count: int
    content: Iterator[str]

    @property
    def identifier(self) -> str:
        return self.title.lower().replace(" ", "-")


def _page(report: OverviewReport, models: Sequence[CheckedFile]) -> Iterator[str]:
    """Yield the body of the page, in pieces."""
    rows, rules = report.rows, wording.greatest_first(report.rules)
    detailed, problems = sum(row.has_details for row in rows), starmap(_problem, report.problems)
    placed = report.placed
    every = (
        _Section("Not read", len(report.problems), _list("problem", len(report.problems), problems)),
        _Section(
            "Notices", len(report.notices), _list("notice", len(report.notices), starmap(_notice, report.notices))
        ),
        _Section("Nodes", placed.count, node_table(placed)),
        _Section("Departures from DirectML", len(placed.departures) + placed.left_out, departure_table(placed)),
        _Section("Operators", report.counted.operators.total() or len(rows), _operators(report, rows)),
        _Section("Findings", detailed, _details(rows, are_open=detailed <= _MAX_OPEN)),
        _Section("Targets", len(report.verdicts), _target_table(report)),
        _Section("Models", len(models), _model_table(models)),
        _Section("Rules broken", len(report.rules), table(_RULE_COLUMNS, starmap(_rule, rules.items()))),
    )
    sections = [section for section in every if section.count]
    yield from _header(report, sections)
    yield '<main class="report">\n'
    for section in sections:
        yield f'<section id="{section.identifier}">\n'
        yield element("h2", section.title)
        yield from section.content
        yield "</section>\n"
    yield "</main>\n"
    yield _footer(report.options)


def _header(report: OverviewReport, sections: Sequence[_Section]) -> Iterator[str]:
    yield "<header>\n"
    yield element("h1", _TITLE)
    yield element("ul", *_counts(report), class_="counts")
    if report.placed.headline:
        yield element("p", f"ONNX Runtime: {report.placed.headline}.")
    count = len(report.verdicts)
    at = f" An operator is counted by the worst of its verdicts at {count} targets." if count > 1 else ""
    if report.verdicts or not report.placed.count:
        yield element("p", f"Held to {_AGAINST[report.options.against]}.{at}")
        yield element("p", report.counted.headline(report.problems))
    if report.passed_over:
        yield element("p", f"{wording.passed_over(report.passed_over)}.")
    links = (element("a", f"{section.title} ({section.count})", href=f"#{section.identifier}") for section in sections)
    yield element("nav", *links)
    yield "\n</header>\n"


def _counts(report: OverviewReport) -> Iterator[Markup]:
    if report.problems:
        (count, words), *others = wording.unread_counts(report.problems)
        words = "; ".join([words, *(f"{number} {more}" for number, more in others)])
        yield element("li", element("b", str(count)), " ", element("span", f"⚠ {words}", class_="verdict refused"))
    for word in wording.VERDICTS:
        if number := report.counted.operators[word]:
            yield element("li", element("b", str(number)), " ", _verdict(word))


def _operators(report: OverviewReport, rows: Sequence[OverviewRow]) -> Iterator[str]:
    if report.left_out:
        listed = f"The page lists the first {MAX_ON_A_PAGE} operators with findings, and as many without. "
        others = f"Counted above but not listed: {wording.counted(report.left_out)}. "
        yield element("p", listed, others, element("code", "dml-tile check --format json"), " lists all.")
    rules = sorted({rule for row in rows for rule in row.rules})
    yield from filters("filters", "Verdict", {word: word for word in report.words}, report.targets, rules)
    columns = ("Operator", *report.targets, "Lowest level", "Oldest Windows")
    bodies = (_row(row, i, report.targets, columns) for i, row in enumerate(rows, start=1))
    yield from region("Operators by target", table(columns, bodies))


def _footer(options: ReportOptions) -> Markup:
    command = [element("pre", element("code", clipped(options.command)))] if options.command else []
    explain, levels = element("code", "dml-tile explain RULE"), element("code", "dml-tile levels")
    commands = element("p", explain, " says more of a rule, ", levels, " what takes which tile.")
    return element("footer", element("p", f"dml-tile {__version__}"), *command, commands)


class PageReport(OverviewReport):
    """One self-contained HTML page, written at the end; the same results of the same command make the same page."""

    max_listed = MAX_ON_A_PAGE

    def end(self, files: Sequence[CheckedFile]) -> None:
        script = resources.files(__package__).joinpath("page.js").read_text("utf-8")
        title = f"{_TITLE}: {self.headline}"
        listed = (each for each in files if each.is_model and (each.operators or not each.nodes))
        models = [replace(each, source=self.options.path(each.source)) for each in listed]
        for piece in html_page(title, _page(self, models), script=script):
            self._write(piece)


def _details(rows: Sequence[OverviewRow], *, are_open: bool) -> Iterator[Markup]:
    for number, row in enumerate(rows, start=1):
        if row.has_details:
            summary = element("summary", _verdict(row.verdict), " ", element("h3", _shown_name(row)))
            opened = "" if are_open else None
            identifier = _row_id(number)
            yield element("details", summary, *_content(row), id=identifier, data_row=identifier, open=opened)
            yield Markup("\n")


def _content(row: OverviewRow) -> Iterator[Markup]:
    if row.operator:
        yield element("p", element("code", name(row.operator)))
    if row.unknown:
        yield element("p", "Known at run time only: ", element("code", name(row.unknown)))
    if row.not_looked_at:
        yield element("p", "Not looked at: ", element("code", name(row.not_looked_at)))
    for note in row.notes:
        yield element("p", f"Note: {note}")
    for finding in row.findings:
        yield element("div", *_finding(finding, row), class_=f"finding of-{wording.kind_of(finding.finding)}")
    if row.findings_left_out:
        yield element("p", f"and {plural(row.findings_left_out, 'more finding')}")
    for lowering in row.lowerings:
        yield element("div", *_lowering(lowering), class_="lowering")


def _finding(group: FindingRow, row: OverviewRow) -> Iterator[Markup]:
    finding = group.finding
    kind = element("b", wording.kind_of(finding), class_=f"is-{wording.kind_of(finding)}")
    yield element("p", kind, " ", element("strong", finding.rule), f" {wording.outcome_of(finding)}")
    if len(row.verdicts) > 1:
        yield element("p", f"At {', '.join(group.targets) or 'all targets'}", class_="at")
    first, *others = group.messages
    path = joined(element("code", clipped(", ".join(group.paths))), ": ") if group.paths else Markup()
    line = f" (line {group.position.line})" if group.position else ""
    yield element("p", path, name(first), line)
    for message in others:
        yield element("p", name(message))
    says = f"{', '.join(group.basis.names)}: {RULES[finding.rule].says} "
    yield element("p", says, link(finding.url), class_="basis")
    for suggestion in group.suggestions:
        yield element("p", element("strong", "Try:"), " ", name(suggestion))


def _lowering(lowering: RowLowering) -> Iterator[Markup]:
    yield element("p", element("strong", "Lowering"), f" for {', '.join(lowering.targets)}")
    steps = ((f"Step {i}", *step) for i, step in enumerate(lowering.steps, start=1))
    lines = (("Before", lowering.before, "input", "output"), *steps)
    items = (
        element("li", element("b", heading), " ", element("code", tile), f" {reads} → {writes}")
        for heading, tile, reads, writes in lines
    )
    yield element("ol", *items)
    for line in lowering.costs:
        yield element("p", line)
    for command in lowering.commands:
        yield element("pre", element("code", command))


_RANKS: Final = {word: str(rank) for rank, word in enumerate(wording.VERDICTS)}
_ABOVE_ALL_LEVELS: Final = "9"


def _row_id(number: int) -> str:
    """Return the identifier of the findings of the operator in that row of the matrix; rows count from 1."""
    return f"row-{number}"


def _shown_name(row: OverviewRow) -> Markup:
    return joined(name(row.source), "#", name(row.pointer)) if row.pointer else name(row.source)


def _verdict(word: str) -> Markup:
    """Return a verdict; its word and its sign say all that its colour does."""
    sign = element("span", SIGNS[word], aria_hidden="true")
    return element("span", sign, " ", word, class_=f"verdict {word.replace(' ', '-')}")


def _level_cells(lowest: FeatureLevel | None, level: str, windows: str, *, is_whole: bool = True) -> list[Cell]:
    """Return the cells of a lowest level and of the oldest Windows release that has it, both sorted by the level."""
    rank = lowest.short if lowest else _ABOVE_ALL_LEVELS
    key = rank if level and is_whole else level
    return [Cell(level, key), Cell(windows, key)]


def _row(row: OverviewRow, number: int, targets: Iterable[str], columns: Sequence[str]) -> Markup:
    tile = _shown_name(row)
    if row.has_details:
        tile = element("a", tile, href=f"#{_row_id(number)}")
    if row.operator:
        tile = joined(tile, " ", element("code", name(row.operator), class_="tile"))
    cells = [Cell(tile, row.name)]
    for target in targets:
        word = row.verdicts.get(target, "")
        cells.append(Cell(_verdict(word), _RANKS[word]) if word else Cell(""))
    cells += _level_cells(row.lowest, row.lowest_level, row.oldest_windows)
    return body(columns, cells, data_row=_row_id(number), **choices_of(row.verdicts, row.rules))


_MODEL_COLUMNS: Final = ("Model", "Tiles", "Dynamic", "Lowest level", "Oldest Windows")
_RULE_COLUMNS: Final = ("Rule", "Operators", "It says", "Page")


def _list(what: str, count: int, items: Iterable[Markup]) -> Iterator[Markup]:
    yield element("ul", *islice(items, MAX_ON_A_PAGE))
    yield from left_out(what, count - MAX_ON_A_PAGE)


def _notice(source: str, notice: Finding) -> Markup:
    where = name(clipped(location_of(source, "", notice.position)))
    message = name(clipped(notice.message))
    return element("li", element("b", where), f": {notice.severity} ", element("code", notice.rule), " ", message)


def _target_table(report: OverviewReport) -> Iterator[Markup]:
    """Yield the targets, with how many operators came to which verdict there, and what is inferred of them."""
    words = report.words
    columns = ("Target", *map(str.capitalize, words))
    bodies = (
        body(columns, [Cell(target.label), *(count_cell(counts[word]) for word in words)])
        for target, counts in report.verdicts.items()
    )
    yield from table(columns, bodies)
    for target in report.verdicts:
        if target.note and target.label not in report.placed.targets:
            yield element("p", f"{target.name}: {target.note}", class_="note")


def _model_table(models: Sequence[CheckedFile]) -> Iterator[Markup]:
    """Yield the models, and where all of their tiles run."""
    yield from table(_MODEL_COLUMNS, map(_model, islice(models, MAX_ON_A_PAGE)))
    yield from left_out("model", len(models) - MAX_ON_A_PAGE)


def _problem(source: str, problem: Finding) -> Markup:
    where = location_of(source, problem.path, problem.position)
    return element("li", element("b", name(clipped(where))), ": ", name(clipped(problem.message)))


def _model(model: CheckedFile) -> Markup:
    counts = count_cell(model.operators), count_cell(model.unknown)
    levels = _level_cells(model.lowest_level, *wording.runs_on(model), is_whole=model.is_whole)
    return body(_MODEL_COLUMNS, [Cell(name(clipped(model.source))), *counts, *levels])


def _rule(rule: str, count: int) -> Markup:
    cells = Cell(element("code", rule)), count_cell(count), Cell(RULES[rule].says), Cell(link(RULES[rule].url))
    return body(_RULE_COLUMNS, cells)
