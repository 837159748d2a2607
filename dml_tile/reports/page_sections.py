"""The sections of the page: findings, tiles by target, targets, models, rules and problems."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from dml_tile.checks.catalogue import RULES
from dml_tile.checks.file_check import SourceSummary
from dml_tile.errors import Problem, place_of
from dml_tile.reports.markup import Cell, Markup, body, count_cell, element, joined, link, name, region, table
from dml_tile.reports.report import Problems
from dml_tile.reports.tally import VERDICTS
from dml_tile.reports.tile_row import SIGNS, Overview, RowFinding, RowLowering, TileRow, clipped
from dml_tile.reports.wording import AT_LEAST, NOWHERE, run_from


def tile_details(rows: Sequence[TileRow], *, are_open: bool) -> Iterator[Markup]:
    """Yield the details of each tile beyond its verdicts."""
    for number, row in enumerate(rows, start=1):
        if has_details(row):
            summary = element("summary", verdict(row.verdict), " ", element("h3", shown_name(row)))
            opened = "" if are_open else None
            identifier = tile_id(number)
            yield element("details", summary, *_content(row), id=identifier, data_tile=identifier, open=opened)
            yield Markup("\n")


def _content(row: TileRow) -> Iterator[Markup]:
    if row.tile:
        yield element("p", element("code", name(row.tile)))
    if row.unknown:
        yield element("p", "Known at run time only: ", element("code", name(row.unknown)))
    for note in row.notes:
        yield element("p", f"Note: {note}")
    for finding in row.findings:
        yield element("div", *_finding(finding, row), class_=f"finding of-{finding.kind}")
    if row.findings_left_out:
        yield element("p", f"and {row.findings_left_out} more findings")
    for lowering in row.lowerings:
        yield element("div", *_lowering(lowering), class_="lowering")


def _finding(finding: RowFinding, row: TileRow) -> Iterator[Markup]:
    kind = element("b", finding.kind, class_=f"is-{finding.kind}")
    yield element("p", kind, " ", element("strong", finding.rule), f" {finding.outcome}")
    if len(row.verdicts) > 1:
        yield element("p", f"At {', '.join(finding.targets) or 'all targets'}", class_="at")
    first, *others = finding.messages
    path = joined(element("code", finding.paths), ": ") if finding.paths else Markup()
    line = f" (line {finding.line})" if finding.line else ""
    yield element("p", path, name(first), line)
    for message in others:
        yield element("p", name(message))
    yield element("p", f"{finding.basis}: {finding.says} ", link(finding.url), class_="basis")
    for suggestion in finding.suggestions:
        yield element("p", element("strong", "Try:"), " ", name(suggestion))


def _lowering(lowering: RowLowering) -> Iterator[Markup]:
    yield element("p", element("strong", "Lowering"), f" for {', '.join(lowering.targets)}")
    steps = ((f"Step {i}", *step) for i, step in enumerate(lowering.steps, start=1))
    lines = (("Before", lowering.before, "input", "output"), *steps)
    yield element("ol", *(_line(*line) for line in lines))
    for line in lowering.costs:
        yield element("p", line)
    for command in lowering.commands:
        yield element("pre", element("code", command))


def _line(heading: str, tile: str, reads: str, writes: str) -> Markup:
    return element("li", element("b", heading), " ", element("code", tile), f" {reads} → {writes}")


_RANKS: Final = {word: str(rank) for rank, word in enumerate(VERDICTS)}
_ABOVE_ALL_LEVELS: Final = "9"


def matrix(rows: Sequence[TileRow], targets: Sequence[str]) -> Iterator[Markup]:
    """Yield the table: a tile a row, a target a column."""
    columns = ("Tile", *targets, "Lowest level", "Oldest Windows")
    bodies = (_row(row, i, targets, columns) for i, row in enumerate(rows, start=1))
    yield from region("Tiles by target", table(columns, bodies))


def tile_id(number: int) -> str:
    """Return the identifier of the findings of the tile in that row of the matrix; rows count from 1."""
    return f"tile-{number}"


def shown_name(row: TileRow) -> Markup:
    """Return the source of a tile, and its place there."""
    return joined(name(row.source), "#", name(row.pointer)) if row.pointer else name(row.source)


def has_details(row: TileRow) -> bool:
    """True if a tile has details that the matrix lacks."""
    return bool(row.findings or row.unknown or row.notes)


def verdict(word: str) -> Markup:
    """Return a verdict; its word and its sign say all that its colour does."""
    sign = element("span", SIGNS[word], aria_hidden="true")
    return element("span", sign, " ", word, class_=f"verdict {word.replace(' ', '-')}")


def level_key(level: str) -> str:
    """Return the sort key of a level in words."""
    return _ABOVE_ALL_LEVELS if level == NOWHERE else level.removeprefix(AT_LEAST)


def _row(row: TileRow, number: int, targets: Iterable[str], columns: Sequence[str]) -> Markup:
    tile = shown_name(row)
    if has_details(row):
        tile = element("a", tile, href=f"#{tile_id(number)}")
    if row.tile:
        tile = joined(tile, " ", element("code", name(row.tile), class_="tile"))
    cells = [Cell(tile, row.name)]
    for target in targets:
        word = row.verdicts.get(target, "")
        cells.append(Cell(verdict(word), _RANKS[word]) if word else Cell(""))
    cells.append(Cell(row.lowest_level, level_key(row.lowest_level)))
    cells.append(Cell(row.oldest_windows, level_key(row.lowest_level)))
    return body(columns, cells, data_tile=tile_id(number), **_filtered_by(row))


def _filtered_by(row: TileRow) -> dict[str, str]:
    """Return the attributes by which the page's script chooses tiles: verdicts with their targets, and rules."""
    verdicts = [*row.verdicts.values(), *(f"{word} at {target}" for target, word in row.verdicts.items())]
    return {"data_verdicts": "|".join(dict.fromkeys(verdicts)), "data_rules": " ".join(row.rules)}


MAX_LISTED: Final = 1_000
"""The limit for listed tiles with findings, for those without, for models and for problems."""

_MODEL_COLUMNS: Final = ("Model", "Tiles", "Dynamic", "Lowest level", "Oldest Windows")
_RULE_COLUMNS: Final = ("Rule", "Tiles", "It says", "Page")


def problem_list(problems: Problems) -> Iterator[Markup]:
    """Yield the list of problems."""
    yield element("ul", *(_problem(*problem) for problem in islice(problems, MAX_LISTED)))
    yield from _left_out("problems", len(problems))


def target_table(overview: Overview) -> Iterator[Markup]:
    """Yield the targets, with how many tiles came to which verdict there, and what is inferred of them."""
    words = overview.words
    columns = ("Target", *map(str.capitalize, words))
    yield from table(
        columns,
        (
            body(columns, [Cell(target.label), *(count_cell(counts[word]) for word in words)])
            for target, counts in overview.verdicts.items()
        ),
    )
    for target in overview.verdicts:
        if target.note:
            yield element("p", f"{target.name}: {target.note}", class_="note")


def model_table(models: Sequence[SourceSummary]) -> Iterator[Markup]:
    """Yield the models, and where all of their tiles run."""
    yield from table(_MODEL_COLUMNS, map(_model, islice(models, MAX_LISTED)))
    yield from _left_out("models", len(models))


def rule_table(overview: Overview) -> Iterator[Markup]:
    """Yield the rules that are broken, those first that most tiles break."""
    ordered = sorted(overview.rules.items(), key=lambda counted: (-counted[1], counted[0]))
    yield from table(_RULE_COLUMNS, (_rule(*counted) for counted in ordered))


def _problem(source: str, problem: Problem) -> Markup:
    where = place_of(source, problem.pointer, problem.position)
    return element("li", element("b", name(clipped(where))), ": ", name(clipped(problem.message)))


def _model(model: SourceSummary) -> Markup:
    level, windows = run_from(model)
    cells = (
        Cell(name(clipped(model.name))),
        count_cell(model.tiles),
        count_cell(model.unknown),
        Cell(level, level_key(level)),
        Cell(windows, level_key(level)),
    )
    return body(_MODEL_COLUMNS, cells)


def _rule(rule: str, count: int) -> Markup:
    cells = Cell(element("code", rule)), count_cell(count), Cell(RULES[rule].says), Cell(link(RULES[rule].url))
    return body(_RULE_COLUMNS, cells)


def _left_out(what: str, count: int) -> Iterator[Markup]:
    if count > MAX_LISTED:
        yield element("p", f"and {count - MAX_LISTED} more {what}")
