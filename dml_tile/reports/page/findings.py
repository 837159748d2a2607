"""The page's findings, tile by tile, each with the targets where it holds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dml_tile.reports.markup.elements import Markup, element, joined, link, name
from dml_tile.reports.page.matrix import has_details, shown_name, tile_id, verdict
from dml_tile.reports.tile_row import RowFinding, RowLowering, TileRow


def tile_details(rows: Sequence[TileRow], *, are_open: bool) -> Iterator[Markup]:
    """What there is to tell of each tile beyond its verdicts."""
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
