"""The page's rows of tiles, as markup."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dml_tile.checks.verdicts import SO_FAR, Verdict
from dml_tile.reports.markup.elements import Cell, Markup, body, element, joined, link, name
from dml_tile.reports.page.model import VERDICTS
from dml_tile.reports.page.tile_row import PageFinding, PageLowering, TileRow
from dml_tile.reports.wording import AT_LEAST, NOWHERE

COLUMNS: Final = ("Verdict", "Source", "Tile", "Target", "Lowest level", "Oldest Windows", "Findings")

_SIGNS: Final = {
    Verdict.REFUSED: "✕",
    Verdict.UNDOCUMENTED: "!",
    f"{Verdict.UNDOCUMENTED} {SO_FAR}": "!",
    Verdict.NOT_CHECKED: "–",
    Verdict.ELSEWHERE: "→",
    f"{Verdict.ACCEPTED} {SO_FAR}": "◐",
    Verdict.ACCEPTED: "✓",
}
_RANKS: Final = {word: str(rank) for rank, word in enumerate(VERDICTS)}
_ABOVE_ALL_LEVELS: Final = "9"


def tile_body(row: TileRow, *, is_open: bool) -> Markup:
    """A row, and below it what is to be told of it."""
    cells = (
        Cell(verdict(row.verdict), _RANKS[row.verdict]),
        Cell(name(row.source)),
        Cell(name(row.pointer)),
        Cell(row.target),
        Cell(row.lowest_level, level_key(row.lowest_level)),
        Cell(row.oldest_windows, level_key(row.lowest_level)),
        Cell(str(len(row.findings) + row.findings_left_out)),
    )
    return body(
        COLUMNS,
        cells,
        *_more(row, is_open),
        data_verdict=row.verdict,
        data_target=row.target,
        data_rules=" ".join(row.rules),
    )


def verdict(word: str) -> Markup:
    """A verdict, which its word and its sign tell, and its colour only besides."""
    sign = element("span", _SIGNS[word], aria_hidden="true")
    return element("span", sign, " ", word, class_=f"verdict {word.replace(' ', '-')}")


def level_key(level: str) -> str:
    """The sort key of a level in words."""
    return _ABOVE_ALL_LEVELS if level == NOWHERE else level.removeprefix(AT_LEAST)


def _more(row: TileRow, is_open: bool) -> Iterator[Markup]:
    if row.tile:
        yield element("p", element("code", name(row.tile)))
    if row.unknown:
        yield element("p", "Known at run time only: ", element("code", name(row.unknown)))
    for note in row.notes:
        yield element("p", f"Note: {note}")
    if row.findings:
        yield element("details", *_details(row), open="" if is_open else None)


def _details(row: TileRow) -> Iterator[Markup]:
    rules = joined(*(joined(" ", element("code", rule)) for rule in row.rules))
    steps = len(row.lowering.steps) if row.lowering else 0
    lowered = f" — lowered to {steps} {'tile' if steps == 1 else 'tiles'}" if steps else ""
    yield element("summary", rules, lowered)
    for finding in row.findings:
        yield element("div", *_finding(finding), class_="finding")
    if row.findings_left_out:
        yield element("p", f"and {row.findings_left_out} more findings")
    if row.lowering:
        yield element("div", *_lowering(row.lowering), class_="lowering")


def _finding(finding: PageFinding) -> Iterator[Markup]:
    yield element(
        "p",
        element("b", finding.kind, class_=f"is-{finding.kind}"),
        " ",
        element("strong", finding.rule),
        f" {finding.outcome}",
    )
    path = joined(element("code", finding.paths), ": ") if finding.paths else Markup()
    yield element("p", path, name(finding.message))
    yield element("p", f"{finding.basis}: {finding.says} ", link(finding.url), class_="basis")
    if finding.suggestion:
        yield element("p", element("strong", "Try:"), " ", name(finding.suggestion))


def _lowering(lowering: PageLowering) -> Iterator[Markup]:
    yield element("p", element("strong", "Lowering"), " to what the target takes")
    steps = ((f"Step {i}", *step) for i, step in enumerate(lowering.steps, start=1))
    lines = (("Before", lowering.before, "input", "output"), *steps)
    yield element("ol", *(_line(*line) for line in lines))
    for line in lowering.costs:
        yield element("p", line)
    if lowering.command:
        yield element("pre", element("code", lowering.command))


def _line(heading: str, tile: str, reads: str, writes: str) -> Markup:
    return element("li", element("b", heading), " ", element("code", tile), f" {reads} → {writes}")
