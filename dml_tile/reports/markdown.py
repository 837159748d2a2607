"""Results as Markdown, for the summary of a CI run or a comment: a table of operators and targets, then the findings.

Page: https://github.github.com/gfm/
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, starmap
from typing import Final

from dml_tile.checks.placements import PLACED
from dml_tile.checks.result import CheckedFile
from dml_tile.findings import NOTHING_TO_CHECK, OWN, Finding, Found, Severity, location_of
from dml_tile.reports.bounds import clipped
from dml_tile.reports.overview import SIGNS, DepartureRow, OverviewReport, OverviewRow, PlacedCell, PlacedModels
from dml_tile.reports.rows import FindingRow
from dml_tile.reports.wording import counted, headline, kind_of, not_lowered, passed_over
from dml_tile.text import plural

MAX_IN_A_COMMENT: Final = 50
"""The limit for listed operators with findings, for those without, and for problems: a summary holds 1 MiB."""

_SPECIAL: Final = re.compile(r"([\\`*_\[\]<>#|&~@:$]|(?<=www)\.)", re.IGNORECASE)
"""Characters that mean something; GitHub makes links of ``www.`` too."""
_BACKTICKS: Final = re.compile("`+")
_PIPES: Final = re.compile(r"\\*\|")


class MarkdownReport(OverviewReport):
    """A heading with the counts, what cannot be read, the table, and the findings; written at the end."""

    max_listed = MAX_IN_A_COMMENT

    def end(self, files: Sequence[CheckedFile]) -> None:
        for line in _lines(self, files):
            self._write(f"{line}\n")


def _lines(report: OverviewReport, files: Sequence[CheckedFile]) -> Iterator[str]:
    yield f"## Operators on DirectML: {headline(files, report.counted, report.problems)}"
    yield from _list(report.problems, "that cannot be read")
    if report.passed_over:
        yield from ("", f"{_escaped(passed_over(report.passed_over))}.")
    yield from _list(report.notices, "notices")
    yield from _nodes(PlacedModels(files, report.options, MAX_IN_A_COMMENT), not_lowered(files))
    rows = report.rows
    if rows:
        heads = ["Operator", *report.targets, "Lowest level", "Oldest Windows"]
        yield from _table(heads, (_operator(row, report.targets) for row in rows))
    if report.left_out:
        yield from ("", f"Not listed: {counted(report.left_out)}.")
    for row in rows:
        if row.has_details:
            yield from ("", *_details(row))


def _list(found: Sequence[Found], what: str) -> Iterator[str]:
    if found:
        yield from ("", *starmap(_found, found[:MAX_IN_A_COMMENT]))
    if len(found) > MAX_IN_A_COMMENT:
        yield f"- and {len(found) - MAX_IN_A_COMMENT} more {what}"


def _table(heads: Sequence[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    yield ""
    for cells in chain([heads, ["---"] * len(heads)], rows):
        yield f"| {' | '.join(cells)} |"


def _nodes(placed: PlacedModels, summary: str) -> Iterator[str]:
    """Yield the models by targets and what is not lowered of them, then the kinds of departure."""
    if not placed.count:
        return
    heads = ["Model", *(target.label for target in placed.targets)]
    yield from _table(heads, ([_cell_code(source), *map(_placements, cells)] for source, cells in placed.rows))
    if placed.count > len(placed.rows):
        yield from ("", f"and {placed.count - len(placed.rows)} more models")
    if summary:
        yield from ("", f"{summary.capitalize()}.")
    known = f"{plural(placed.known, 'kind')} of departure from DirectML" if placed.known else ""
    if not (placed.departures or placed.left_out):
        yield from ("", f"Nothing is new against the baseline, which has {known}.") if known else ()
        return
    is_new = f", new against the baseline, which has {known}" if known else ""
    yield from ("", f"Departures from DirectML{is_new}:", "")
    notes = [row for row in placed.departures if row.finding.severity is Severity.NOTE]
    worse = placed.departures[: len(placed.departures) - len(notes)]
    yield from chain.from_iterable(map(_departure, worse))
    if notes:
        yield from ("",) * bool(worse)
        yield from (f"<details{' open' * bool(known)}><summary>{plural(len(notes), 'note')}</summary>", "")
        yield from chain.from_iterable(map(_departure, notes))
        yield from ("", "</details>")
    if placed.left_out:
        yield from ("", f"and {placed.left_out} more")


def _placements(cell: PlacedCell) -> str:
    outcome, counts = cell
    numbers = ", ".join(f"{count:,} {PLACED[placement]}" for placement, count in counts.items())
    return ": ".join(filter(None, (outcome, numbers)))


def _departure(row: DepartureRow) -> Iterator[str]:
    finding = row.finding
    yield _line(finding, row.source, finding.message)
    if finding.suggestion:
        yield f"  - try: {_escaped(finding.suggestion)}"


def _operator(row: OverviewRow, targets: Sequence[str]) -> Sequence[str]:
    verdicts = (f"{SIGNS[word]} {word}" if (word := row.verdicts.get(target)) else "" for target in targets)
    return _cell_code(row.name), *verdicts, row.level, row.windows


def _cell_code(text: str) -> str:
    """Return a name as a code span in a table, where a pipe is escaped in code too.

    A backslash before that would escape the escape.
    """
    return _PIPES.sub(r"\\|", _code(text))


def _found(source: str, finding: Finding) -> str:
    """Return the line of a finding about a file."""
    where, message = clipped(location_of(source, finding.path, finding.position)), clipped(finding.message)
    if OWN[finding.rule].key == "notices":
        return _line(finding, where, message)
    why = "" if finding.rule == NOTHING_TO_CHECK else " cannot be read"
    return f"- {_code(where)}{why}: {_escaped(message)}"


def _line(finding: Finding, where: str, message: str) -> str:
    return f"- {finding.severity} {finding.rule} in {_code(where)}: {_escaped(message)}"


def _details(row: OverviewRow) -> Iterator[str]:
    yield f"### {SIGNS[row.verdict]} {_code(row.name)}"
    yield ""
    if row.operator:
        yield f"{_code(row.operator)}\n"
    yield from (f"- {what}: {_code(fields)}" for what, fields in row.facts.items())
    yield from (f"- note: {_escaped(note)}" for note in row.notes)
    for finding in row.findings:
        yield from _finding(finding, row)
    if row.findings_left_out:
        yield f"- and {row.findings_left_out} more findings"
    commands = [command for lowering in row.lowerings for command in lowering.commands]
    if commands:
        yield from ("", "Lowerings:", "", *(f"    {command}" for command in commands))


def _finding(group: FindingRow, row: OverviewRow) -> Iterator[str]:
    finding = group.finding
    first, *others = map(_escaped, group.messages)
    paths = f"{_escaped(clipped(', '.join(group.paths)))}: " if group.paths else ""
    line = f" (line {group.position.line})" if group.position else ""
    at = f" at {', '.join(group.targets)}" if group.targets else " at all targets" if len(row.verdicts) > 1 else ""
    rule = f"{kind_of(finding)} [{finding.rule}]({finding.url})"
    yield f"- {rule}{at}: {paths}{first}{line}"
    yield from (f"  - {message}" for message in others)
    yield from (f"  - try: {_escaped(suggestion)}" for suggestion in group.suggestions)


def _code(text: str) -> str:
    """Return a name or a value as a code span, in which nothing is a link, a mention or markup."""
    fence = "`" * (max(map(len, _BACKTICKS.findall(text)), default=0) + 1)
    blank = " " * (len(fence) > 1 or text != text.strip(" "))
    return f"{fence}{blank}{text}{blank}{fence}"


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", text)
