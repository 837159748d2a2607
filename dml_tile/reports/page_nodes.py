"""The nodes of models on the report page: a bar for each model and target, then the kinds of departure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

from dml_tile.back_ends.placement import Placement
from dml_tile.checks.placements import PLACED
from dml_tile.reports.markup import (
    Cell,
    Markup,
    body,
    choices_of,
    count_cell,
    element,
    filters,
    joined,
    left_out,
    name,
    region,
    table,
)
from dml_tile.reports.overview_nodes import DepartureRow, OverviewNodes, PlacedRow

_COLUMNS: Final = ("Operator", "Nodes", "Placed", "Why", "First node", "Targets")


def node_table(placed: OverviewNodes) -> Iterator[Markup]:
    """Yield the models by targets, with a bar and the numbers of nodes in each cell, then notes on targets."""
    columns = ("Model", *placed.targets)
    yield from region("Nodes by target", table(columns, map(partial(_model, columns), placed.models)))
    yield from left_out("model", placed.count - len(placed.models))
    for target in placed.targets.values():
        if target.note:
            yield element("p", f"{target.name}: {target.note}", class_="note")


def departure_table(placed: OverviewNodes) -> Iterator[Markup]:
    """Yield the kinds of departure, with filters."""
    if placed.known:
        yield element("p", f"The baseline has {placed.known} more, which are not listed.")
    rows = placed.departures
    words = {str(word): PLACED[word] for word in PLACED if any(row.placement is word for row in rows)}
    rules = sorted({row.finding.rule for row in rows})
    yield from filters("node-filters", "Nodes", words, [*placed.targets], rules)
    bodies = (_departure(row, placed) for row in rows)
    yield from region("Departures from DirectML", table(_COLUMNS, bodies))
    yield from left_out("kind", placed.left_out)


def _model(columns: Sequence[str], row: PlacedRow) -> Markup:
    cells = [Cell(name(row.source), row.source)]
    for target in columns[1:]:
        counts = row.counts[target]
        share = 1000 * counts[Placement.DIRECTML] // (counts.total() or 1)
        cells.append(Cell(joined(*_placements(counts, row.outcomes[target])), str(share)))
    return body(columns, cells)


def _placements(counts: Counter[Placement], outcome: str) -> Iterator[Markup]:
    """Yield whether a model loads, a bar, and the numbers that it shows, in its order."""
    if outcome:
        yield element("span", outcome, class_="loads" if outcome == "loads" else "loads not")
    if not counts:
        return
    bars, start = [], 0
    for placement in PLACED:
        if counts[placement]:
            bars.append(element("rect", x=str(start), width=str(counts[placement]), height="1", class_=placement))
            start += counts[placement]
    box = f"0 0 {start or 1} 1"  # attributes: the page's security policy allows no style of an element
    yield element("svg", *bars, viewBox=box, preserveAspectRatio="none", aria_hidden="true", class_="bar")
    numbers = (
        element("li", element("b", f"{counts[placement]:,}"), f" {words}", class_=placement)
        for placement, words in PLACED.items()
        if counts[placement]
    )
    yield element("ul", *numbers, class_="placed")


def _departure(row: DepartureRow, placed: OverviewNodes) -> Markup:
    finding = row.finding
    operator = element("code", name(row.operator)) if row.operator else element("b", "the model")
    if placed.count > 1:
        operator = joined(operator, " ", element("code", name(row.source), class_="tile"))
    kind = element("b", str(finding.severity), class_=f"is-{finding.severity}")
    why = joined(kind, " ", element("strong", finding.rule), " ", name(row.reason))
    if finding.suggestion:
        why = joined(why, element("p", element("strong", "Try:"), " ", name(finding.suggestion)))
    cells = [
        Cell(operator, row.operator),
        count_cell(row.count) if row.operator else Cell(""),
        Cell(PLACED[row.placement] if row.operator else ""),
        Cell(why, finding.rule),
        Cell(name(row.first)),
        Cell(", ".join(row.targets) if len(row.targets) < len(placed.targets) else "all"),
    ]
    chosen_by = choices_of(dict.fromkeys(row.targets, row.placement), [finding.rule])
    return body(_COLUMNS, cells, **chosen_by)
