"""Results as lines of text: a verdict for each descriptor, and below it its findings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from dml_tile.checks.result import Result
from dml_tile.checks.verdicts import (
    ACCEPTED,
    NOT_CHECKED,
    NOT_READ,
    REFUSED,
    SO_FAR,
    alike,
    verdict_word,
)
from dml_tile.enums import FeatureLevel
from dml_tile.findings import Finding, Rule
from dml_tile.reports.wording import not_selected, outcome, outcome_of, target_of
from dml_tile.targets import Target, oldest_windows
from dml_tile.text import printable

_STYLES: Final = {
    ACCEPTED: "green",
    SO_FAR: "yellow",
    REFUSED: "red",
    "lowered": "green",
    "not lowered": "red",
    NOT_CHECKED: "yellow",
    NOT_READ: "red",
}
_COMMAND: Final = "(dml-tile "


class Line(NamedTuple):
    """A line of a report, and how far it is indented; a link or a command stays whole, to be clicked or copied."""

    indent: int
    text: Text
    is_whole: bool = False


def print_refusals(console: Console, source: str, refusals: Mapping[str, tuple[Finding, ...]], target: Target) -> None:
    """Print the findings of parts of a source, by their JSON pointers."""
    for pointer, findings in refusals.items():
        shown = verdict(source, pointer, verdict_word(findings), target.label)
        print_lines(console, [Line(0, shown), *detail_lines(target, findings)])
    console.file.flush()


def print_counts(console: Console, counts: Mapping[str, int], *always: str) -> None:
    """Print how many verdicts there were of each kind, some kinds ``always``, unless there was a single one."""
    if sum(counts.values()) != 1:
        shown = [f"{counts.get(word, 0)} {word}" for word in _STYLES if word in (*counts, *always)]
        print_lines(console, [Line(0, Text(", ".join(shown), "bold"))])


def print_lines(console: Console, lines: Iterable[Line]) -> None:
    """Print lines; a terminal gets them wrapped within their indent, a pipe each in one line."""
    if not console.is_terminal:  # what rich would write, at a tenth of the cost
        console.file.write("".join(f"{' ' * indent}{text.plain}\n" for indent, text, _ in lines))
        return
    for indent, text, is_whole in lines:
        if is_whole:
            console.print(Text(" " * indent) + text, soft_wrap=True)
        else:
            console.print(Padding(text, (0, 0, 0, indent)))


def result_lines(result: Result, *, with_lowest_level: bool, with_target_note: bool = True) -> Iterator[Line]:
    """A result as lines of text; the target's note may be left to what tells it of all results."""
    word = verdict_word(result.findings, result.unknown)
    shown = verdict(result.source, result.pointer, word, target_of(result))
    if with_lowest_level and word != NOT_CHECKED:
        shown.append(f"; {_lowest(result.lowest_level)}")
    if result.deselected:
        shown.append(f"; {not_selected(result)}")
    yield Line(0, shown)
    if result.note:
        yield Line(2, Text(f"note: {result.note}", "dim"))
    yield from detail_lines(result.target if with_target_note else None, result.findings, result.unknown)


def verdict(source: str, pointer: str, word: str, at: str) -> Text:
    """A part of a source, and what became of it at a target."""
    where = (printable(f"{source}#{pointer}" if pointer else source), "bold")
    return Text.assemble(where, ": ", (word, _STYLES[word]), "" if word == NOT_CHECKED else f" at {at}")


def detail_lines(target: Target | None, findings: tuple[Finding, ...], unknown: tuple[str, ...] = ()) -> Iterator[Line]:
    """The lines below a verdict: fields that are known at run time only, a target's note, the findings."""
    if unknown:
        yield Line(2, Text(f"known at run time only: {', '.join(map(printable, unknown))}", "yellow"))
    if target and target.note:
        yield Line(2, Text(f"note: {target.name}: {target.note}", "dim"))
    for group in alike(findings):
        yield from _finding_lines(group)


def rule_lines(rule: Rule[object]) -> Iterator[Line]:
    """A rule as lines of text, for ``explain``."""
    yield Line(0, Text(rule.id, "bold"))
    yield Line(2, Text(rule.says))
    yield Line(2, Text(f"basis: {', '.join(rule.basis.names)}; DirectML: {outcome(rule.hresult, rule.crash)}"))
    yield Line(2, Text(rule.url, "blue"), is_whole=True)


def _finding_lines(findings: list[Finding]) -> Iterator[Line]:
    """Findings that differ in their paths only."""
    from dml_tile.rules.catalogue import RULES  # which is not needed where all is accepted

    first = findings[0]
    kind = "crash" if first.crash else "error"
    yield Line(2, Text.assemble((kind, "bold red"), (f"[{first.rule}]", "bold"), f" {outcome_of(first)}"))
    paths = ", ".join(finding.path for finding in findings if finding.path)
    yield Line(4, Text.assemble((paths, "cyan"), ": " if paths else "", printable(first.message)))
    yield Line(4, Text(f"{', '.join(first.basis.names)}: {RULES[first.rule].says}"))
    yield Line(4, Text(first.url, "blue"), is_whole=True)
    if first.suggestion:
        yield Line(4, Text.assemble(("try: ", "green"), first.suggestion), is_whole=_COMMAND in first.suggestion)


def _lowest(level: FeatureLevel | None) -> str:
    if level is None:
        return "no feature level passes both documentation and runtime"
    first = oldest_windows(level)
    return f"lowest level {level.short}{f', in the box from {first}' if first else ''}"
