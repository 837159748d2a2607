"""The sections of the page beside its tiles: problems, and the targets, models and rules with their counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from dml_tile.checks.source_summary import SourceSummary
from dml_tile.errors import Problem
from dml_tile.reports.markup.elements import Cell, Markup, body, count_cell, element, link, name, table
from dml_tile.reports.overview import Overview
from dml_tile.reports.page.matrix import level_key
from dml_tile.reports.report import Problems
from dml_tile.reports.tile_row import clipped
from dml_tile.reports.wording import run_from
from dml_tile.rules.catalogue import RULES

MAX_LISTED: Final = 1_000
"""The limit for listed tiles with findings, for those without, for models and for problems."""

_MODEL_COLUMNS: Final = ("Model", "Tiles", "Dynamic", "Lowest level", "Oldest Windows")
_RULE_COLUMNS: Final = ("Rule", "Tiles", "It says", "Page")


def problem_list(problems: Problems) -> Iterator[Markup]:
    """The list of problems."""
    yield element("ul", *(_problem(*problem) for problem in islice(problems, MAX_LISTED)))
    yield from _left_out("problems", len(problems))


def target_table(overview: Overview) -> Iterator[Markup]:
    """The targets, with how many tiles came to which verdict there, and what is inferred of them."""
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
    """The models, and where all of their tiles run."""
    yield from table(_MODEL_COLUMNS, map(_model, islice(models, MAX_LISTED)))
    yield from _left_out("models", len(models))


def rule_table(overview: Overview) -> Iterator[Markup]:
    """The rules that are broken, those first that most tiles break."""
    ordered = sorted(overview.rules.items(), key=lambda counted: (-counted[1], counted[0]))
    yield from table(_RULE_COLUMNS, (_rule(*counted) for counted in ordered))


def _problem(source: str, problem: Problem) -> Markup:
    where = f"{source}#{problem.pointer}" if problem.pointer else source
    line = f" (line {problem.position.line})" if problem.position else ""
    return element("li", element("b", name(clipped(where))), ": ", name(clipped(problem.message)), line)


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
