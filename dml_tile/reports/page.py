"""The results of a check as one HTML page that requests no other file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import starmap
from typing import Final

from dml_tile import __version__
from dml_tile.back_ends.placement import Placement
from dml_tile.checks.catalogue import RULES
from dml_tile.checks.placements import PLACED
from dml_tile.checks.result import CheckedFile
from dml_tile.directml.enums import FeatureLevel
from dml_tile.findings import OWN, Finding, Found, location_of
from dml_tile.reports import markup, wording
from dml_tile.reports.bounds import clipped
from dml_tile.reports.markup import Cell, Markup, Row, choices_of, count_cell, element, joined, left_out, name, table
from dml_tile.reports.overview import SIGNS, DepartureRow, OverviewReport, OverviewRow, PlacedCell, PlacedModels
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


class PageReport(OverviewReport):
    """One self-contained HTML page, written at the end; the same results of the same command make the same page."""

    max_listed = MAX_ON_A_PAGE

    def end(self, files: Sequence[CheckedFile]) -> None:
        title = f"{_TITLE}: {wording.headline(files, self.counted, self.problems)}"
        for piece in markup.html_page(title, _page(self, files), "page.js"):
            self._write(piece)


def _page(report: OverviewReport, files: Sequence[CheckedFile]) -> Iterator[str]:
    """Yield the body of the page, in pieces; a section for each kind of thing that there is."""
    rows, placed = report.rows, PlacedModels(files, report.options, MAX_ON_A_PAGE)
    models = [each for each in files if each.is_model and (each.operators or not each.nodes)]
    departures = len(placed.departures) + placed.left_out
    every: tuple[tuple[str, int, Iterator[str]], ...] = (
        ("Not read", len(report.problems), _list("problem", report.problems)),
        ("Notices", len(report.notices), _list("notice", report.notices)),
        ("Nodes", placed.count, _node_table(placed)),
        ("Departures from DirectML", departures, _departure_table(placed)),
        ("Operators", report.counted.operators.total() or len(rows), _operators(report, rows)),
        ("Findings", sum(row.has_details for row in rows), _details(rows)),
        ("Targets", len(report.verdicts), _target_table(report, placed)),
        ("Models", len(models), _model_table(report, models)),
        ("Rules broken", len(report.rules), _rule_table(report)),
    )
    sections = {title: (count, content) for title, count, content in every if count}
    ids = {title: title.lower().replace(" ", "-") for title in sections}
    yield from _header(report, files)
    links = (element("a", f"{title} ({count})", href=f"#{ids[title]}") for title, (count, _) in sections.items())
    yield element("nav", *links)
    yield '\n</header>\n<main class="report">\n'
    for title, (_, content) in sections.items():
        yield f'<section id="{ids[title]}">\n'
        yield element("h2", title)
        yield from content
        yield "</section>\n"
    yield "</main>\n"
    command = report.options.command
    typed = [element("pre", element("code", clipped(command)))] if command else []
    explain, levels = element("code", "dml-tile explain RULE"), element("code", "dml-tile levels")
    commands = element("p", explain, " says more of a rule, ", levels, " what takes which tile.")
    yield element("footer", element("p", f"dml-tile {__version__}"), *typed, commands)


def _header(report: OverviewReport, files: Sequence[CheckedFile]) -> Iterator[str]:
    yield "<header>\n"
    yield element("h1", _TITLE)
    yield element("ul", *_counts(report), class_="counts")
    placed = wording.placed_models(files)
    if placed:
        yield element("p", f"ONNX Runtime: {placed}.")
    count = len(report.verdicts)
    at = f" An operator is counted by the worst of its verdicts at {count} targets." if count > 1 else ""
    if report.verdicts or not placed:
        yield element("p", f"Held to {_AGAINST[report.options.against]}.{at}")
        yield element("p", wording.headline(files, report.counted, report.problems, with_models=False))
    if not_lowered := wording.not_lowered(files):
        yield element("p", f"{not_lowered.capitalize()}.")
    if report.passed_over:
        yield element("p", f"{wording.passed_over(report.passed_over)}.")


def _counts(report: OverviewReport) -> Iterator[Markup]:
    if report.problems:
        (count, words), *others = wording.unread_counts(report.problems)
        words = "; ".join([words, *(f"{number} {more}" for number, more in others)])
        yield element("li", element("b", str(count)), " ", element("span", f"⚠ {words}", class_="verdict refused"))
    for word in wording.VERDICTS:
        if number := report.counted.operators[word]:
            yield element("li", element("b", str(number)), " ", _verdict(word))


def _list(what: str, found: Sequence[Found]) -> Iterator[Markup]:
    yield element("ul", *starmap(_found, found[:MAX_ON_A_PAGE]))
    yield from left_out(what, len(found) - MAX_ON_A_PAGE)


def _found(source: str, finding: Finding) -> Markup:
    """Return a finding about a file; of what cannot be read, the message says all."""
    where, message = clipped(location_of(source, finding.path, finding.position)), clipped(finding.message)
    is_notice = OWN[finding.rule].key == "notices"
    kind = [f"{finding.severity} ", element("code", finding.rule), " "] if is_notice else []
    return element("li", element("b", name(where)), ": ", *kind, name(message))


def _node_table(placed: PlacedModels) -> Iterator[Markup]:
    """Yield the models by targets, with a bar and the numbers of nodes in each cell, then notes on targets."""
    rows = (Row([Cell(name(source), source), *map(_placements, cells)]) for source, cells in placed.rows)
    columns = ("Model", *(target.label for target in placed.targets))
    yield from markup.region("Nodes by target", table(columns, rows))
    yield from left_out("model", placed.count - len(placed.rows))
    for target in placed.targets:
        if target.note:
            yield element("p", f"{target.name}: {target.note}", class_="note")


def _placements(cell: PlacedCell) -> Cell:
    """Return whether a model loads, a bar, and the numbers that it shows, in its order."""
    outcome, counts = cell
    shown = [element("span", outcome, class_="loads" if outcome == "loads" else "loads not")] if outcome else []
    bars, numbers, start = [], [], 0
    for placement, count in counts.items():
        bars.append(element("rect", x=str(start), width=str(count), height="1", class_=placement))
        numbers.append(element("li", element("b", f"{count:,}"), f" {PLACED[placement]}", class_=placement))
        start += count
    if counts:
        box = f"0 0 {start} 1"  # attributes: the page's security policy allows no style of an element
        bar = element("svg", *bars, viewBox=box, preserveAspectRatio="none", aria_hidden="true", class_="bar")
        shown += [bar, element("ul", *numbers, class_="placed")]
    share = 1000 * counts.get(Placement.DIRECTML, 0) // (start or 1)
    return Cell(joined(*shown), str(share))


def _departure_table(placed: PlacedModels) -> Iterator[Markup]:
    """Yield the kinds of departure, with filters."""
    if placed.known:
        yield element("p", f"The baseline has {placed.known} more, which are not listed.")
    rows = placed.departures
    there = {row.departure.reason.placement for row in rows}
    words = {str(placement): word for placement, word in PLACED.items() if placement in there}
    labels = {target.name: target.label for target in placed.targets}
    rules = [row.finding.rule for row in rows]
    yield from markup.filters("node-filters", "Nodes", words, [*labels.values()], rules)
    columns = ("Operator", "Nodes", "Placed", "Why", "First node", "Targets")
    shown = (_departure(row, labels, with_source=placed.count > 1) for row in rows)
    yield from markup.region("Departures from DirectML", table(columns, shown))
    yield from left_out("kind", placed.left_out)


def _departure(row: DepartureRow, labels: dict[str, str], *, with_source: bool) -> Row:
    departure, finding, first = row.departure, row.finding, row.departure.first
    operator = clipped(departure.operator)
    shown = element("code", name(operator)) if first else element("b", "the model")
    if with_source:
        shown = joined(shown, " ", element("code", name(row.source), class_="tile"))
    kind = element("b", str(finding.severity), class_=f"is-{finding.severity}")
    why = joined(kind, " ", element("strong", finding.rule), " ", name(clipped(departure.reason.why)))
    if finding.suggestion:
        why = joined(why, element("p", element("strong", "Try:"), " ", name(finding.suggestion)))
    placement, targets = departure.reason.placement, [labels[target] for target in departure.targets]
    cells = [
        Cell(shown, operator),
        count_cell(departure.count) if first else "",
        PLACED[placement] if first else "",
        Cell(why, finding.rule),
        name(clipped(f"{first.pointer} {first.name}".rstrip())) if first else "",
        ", ".join(targets) if len(targets) < len(labels) else "all",
    ]
    return Row(cells, choices_of(dict.fromkeys(targets, placement), [finding.rule]))


def _operators(report: OverviewReport, rows: Sequence[OverviewRow]) -> Iterator[str]:
    if report.left_out:
        listed = f"The page lists the first {MAX_ON_A_PAGE} operators with findings, and as many without. "
        others = f"Counted above but not listed: {wording.counted(report.left_out)}. "
        yield element("p", listed, others, element("code", "dml-tile check --format json"), " lists all.")
    rules = [rule for row in rows for rule in row.rules]
    yield from markup.filters("filters", "Verdict", {word: word for word in report.words}, report.targets, rules)
    columns = ("Operator", *report.targets, "Lowest level", "Oldest Windows")
    shown = (_operator(row, f"row-{i}", report.targets) for i, row in enumerate(rows, start=1))
    yield from markup.region("Operators by target", table(columns, shown))


def _operator(row: OverviewRow, identifier: str, targets: Sequence[str]) -> Row:
    tile = _shown_name(row)
    if row.has_details:
        tile = element("a", tile, href=f"#{identifier}")
    if row.operator:
        tile = joined(tile, " ", element("code", name(row.operator), class_="tile"))
    words = (row.verdicts.get(target) for target in targets)
    verdicts = (Cell(_verdict(word), str(wording.VERDICTS.index(word))) if word else "" for word in words)
    cells = [Cell(tile, row.name), *verdicts, *_level_cells(row.lowest, row.level, row.windows)]
    return Row(cells, {"data_row": identifier, **choices_of(row.verdicts, row.rules)})


def _level_cells(lowest: FeatureLevel | None, level: str, windows: str, *, is_whole: bool = True) -> list[Cell]:
    """Return the cells of a lowest level and of the oldest Windows release that has it, both sorted by the level."""
    rank = lowest.short if lowest else "9"  # above all levels
    key = rank if level and is_whole else level
    return [Cell(level, key), Cell(windows, key)]


def _shown_name(row: OverviewRow) -> Markup:
    return joined(name(row.source), "#", name(row.pointer)) if row.pointer else name(row.source)


def _verdict(word: str) -> Markup:
    """Return a verdict; its word and its sign say all that its colour does."""
    sign = element("span", SIGNS[word], aria_hidden="true")
    return element("span", sign, " ", word, class_=f"verdict {word.replace(' ', '-')}")


def _details(rows: Sequence[OverviewRow]) -> Iterator[Markup]:
    opened = "" if sum(row.has_details for row in rows) <= _MAX_OPEN else None
    for number, row in enumerate(rows, start=1):
        if row.has_details:
            summary = element("summary", _verdict(row.verdict), " ", element("h3", _shown_name(row)))
            identifier = f"row-{number}"
            yield element("details", summary, *_content(row), id=identifier, data_row=identifier, open=opened)
            yield Markup("\n")


def _content(row: OverviewRow) -> Iterator[Markup]:
    if row.operator:
        yield element("p", element("code", name(row.operator)))
    for what, fields in row.facts.items():
        yield element("p", f"{what.capitalize()}: ", element("code", name(fields)))
    for note in row.notes:
        yield element("p", f"Note: {note}")
    for group in row.findings:
        yield element("div", *_finding(group, row), class_=f"finding of-{wording.kind_of(group.finding)}")
    if row.findings_left_out:
        yield element("p", f"and {plural(row.findings_left_out, 'more finding')}")
    for tiles, costs, targets, commands in row.lowerings:
        heading = element("p", element("strong", "Lowering"), f" for {', '.join(targets)}")
        items = (
            element("li", element("b", step), " ", element("code", tile), f" {reads} → {writes}")
            for step, tile, reads, writes in tiles
        )
        lines = (element("p", line) for line in costs)
        shown = (element("pre", element("code", command)) for command in commands)
        yield element("div", heading, element("ol", *items), *lines, *shown, class_="lowering")


def _finding(group: FindingRow, row: OverviewRow) -> Iterator[Markup]:
    finding, kind = group.finding, wording.kind_of(group.finding)
    shown = element("b", kind, class_=f"is-{kind}")
    yield element("p", shown, " ", element("strong", finding.rule), f" {wording.outcome_of(finding)}")
    if len(row.verdicts) > 1:
        yield element("p", f"At {', '.join(group.targets) or 'all targets'}", class_="at")
    first, *others = group.messages
    path = joined(element("code", clipped(", ".join(group.paths))), ": ") if group.paths else Markup()
    line = f" (line {group.position.line})" if group.position else ""
    yield element("p", path, name(first), line)
    for message in others:
        yield element("p", name(message))
    says = f"{', '.join(group.basis.names)}: {RULES[finding.rule].says} "
    yield element("p", says, markup.link(finding.url), class_="basis")
    for suggestion in group.suggestions:
        yield element("p", element("strong", "Try:"), " ", name(suggestion))


def _target_table(report: OverviewReport, placed: PlacedModels) -> Iterator[Markup]:
    """Yield the targets, with how many operators came to which verdict there, and what is inferred of them."""
    counted = report.verdicts.items()
    rows = (Row([target.label, *(count_cell(counts[word]) for word in report.words)]) for target, counts in counted)
    yield from table(("Target", *map(str.capitalize, report.words)), rows)
    for target in report.verdicts:
        if target.note and target not in placed.targets:
            yield element("p", f"{target.name}: {target.note}", class_="note")


def _model_table(report: OverviewReport, models: Sequence[CheckedFile]) -> Iterator[Markup]:
    """Yield the models, and where all of their tiles run."""
    rows = []
    for model in models[:MAX_ON_A_PAGE]:
        levels = _level_cells(model.lowest_level, *wording.runs_on(model), is_whole=model.is_whole)
        cells = name(clipped(report.options.path(model.source))), count_cell(model.operators), count_cell(model.unknown)
        rows.append(Row([*cells, *levels]))
    yield from table(("Model", "Tiles", "Dynamic", "Lowest level", "Oldest Windows"), rows)
    yield from left_out("model", len(models) - MAX_ON_A_PAGE)


def _rule_table(report: OverviewReport) -> Iterator[Markup]:
    counted = wording.greatest_first(report.rules).items()
    rows = (
        Row([element("code", rule), count_cell(count), RULES[rule].says, markup.link(RULES[rule].url)])
        for rule, count in counted
    )
    yield from table(("Rule", "Operators", "It says", "Page"), rows)
