"""Results as lines of text: a verdict for each descriptor, and below it its findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from dml_tile.checks.files import unread_through, what_takes_nodes
from dml_tile.checks.result import IN_BASELINE, CheckedFile, Result, alike
from dml_tile.checks.verdict import Verdict, verdict_of
from dml_tile.directml.enums import HRESULT, FeatureLevel
from dml_tile.directml.known import known
from dml_tile.directml.targets import Target, first_directml, oldest_windows
from dml_tile.findings import Against, Finding, Position, Rule, Severity, location_of
from dml_tile.reports import wording
from dml_tile.reports.bounds import bounded_finding
from dml_tile.reports.lines import AnyConsole, Line, Part, has_width, print_lines
from dml_tile.reports.report import Report, ReportOptions
from dml_tile.rules.descriptor import DESCRIPTOR_RULES
from dml_tile.rules.tile import operator_is_checked
from dml_tile.text import MAX_IN_A_LINE, listed, plural, printable, printable_line_start, shortened_within

if TYPE_CHECKING:
    from rich.table import Table

    from dml_tile.back_ends.described_node import NodePlace
    from dml_tile.back_ends.placement import Crossing, Reason
    from dml_tile.checks.catalogue import ResultCode
    from dml_tile.checks.placements import ModelNodes
    from dml_tile.readers.item import Item
    from dml_tile.readers.model_tile import UnknownField

_NOT_EXECUTED: Final = "not executed"
"""The verdict of operators other than Tile, where a model is run."""

_STYLES: Final = {
    Verdict.ACCEPTED: "green",
    Verdict.ACCEPTED_SO_FAR: "yellow",
    Verdict.ACCEPTED_IN_PART: "green",
    Verdict.UNDOCUMENTED: "magenta",
    Verdict.UNDOCUMENTED_SO_FAR: "magenta",
    Verdict.REFUSED: "red",
    "lowered": "green",
    "not lowered": "red",
    Verdict.ELSEWHERE: "cyan",
    Verdict.NOT_CHECKED: "cyan",
    _NOT_EXECUTED: "cyan",
}

_SEVERITY_STYLES: Final = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.NOTE: "bold cyan"}

_SO_FAR: Final = (Verdict.ACCEPTED_SO_FAR, Verdict.UNDOCUMENTED_SO_FAR)


def print_refusals(
    console: AnyConsole, source: str, refusals: Mapping[str, tuple[Finding, ...]], target: Target
) -> None:
    """Print the findings of parts of a source, by their JSON pointers."""
    for pointer, findings in refusals.items():
        is_other = any(finding.rule == operator_is_checked.id for finding in findings)
        word = _NOT_EXECUTED if is_other else verdict_of(findings)
        shown = Line(0, *verdict(location_of(source, pointer), word, target.label))
        print_lines(console, [shown, *detail_lines(target, findings)])
    console.file.flush()


def result_lines(
    result: Result,
    *,
    against: Against = "both",
    with_target_note: bool = True,
    with_operator: bool = True,
    with_unknown: bool = True,
    fail_on: Severity | None = Severity.WARNING,
) -> Iterator[Line]:
    """Yield a result as lines of text, without what is printed elsewhere: operator, unknown fields, target's note.

    The lowest level is that of a check ``against`` both the documentation and the runtime.
    """
    item, at = result.item, wording.target_of(result)
    unknown = item.unknown if with_unknown else ()
    shown = verdict(located(item, result.first_position), result.verdict, at)
    yield Line(0, *shown, _remarks(result, against, fail_on))
    if with_operator and result.verdict is not Verdict.NOT_CHECKED:
        yield Line(2, printable_line_start(item.operator))
    yield from detail_lines(result.target if with_target_note else None, result.findings, unknown)
    if unknown and item.via == "chromium" and result.verdict in _SO_FAR:  # a graph is built of known sizes
        yield from _try_lines(wording.how_to_fix(item.unknown))


def captured_lines(results: Sequence[Result], against: Against) -> Iterator[Line]:
    """Yield a captured operator that is accepted in one line, or one for each verdict if its targets differ."""
    groups: dict[tuple[str, str], list[Result]] = {}
    for result in results:
        groups.setdefault((result.verdict, wording.remarks(result)), []).append(result)
    for alike_results in groups.values():
        first, at = alike_results[0], ", ".join(map(wording.target_of, alike_results))
        shown = verdict(located(first.item), first.verdict, at)
        yield Line(0, *shown, f": {printable(first.item.operator)}", _remarks(first, against))


def _remarks(result: Result, against: Against, fail_on: Severity | None = None) -> str:
    """Return what follows a verdict in its line."""
    captured = (wording.WHERE_CAPTURED.get(finding.rule, "") for finding in result.findings)
    has_part = result.not_looked_at and (result.lowest_level is not None or result.verdict != Verdict.REFUSED)
    remarks = (
        *(
            what if result.passes(fail_on) else f"fails: {what}"
            for what in captured
            if what and result.verdict != Verdict.REFUSED
        ),
        wording.not_looked_at(result.not_looked_at) if has_part else "",  # what no level takes needs no other reason
        _lowest(result) if against == "both" else "",
        wording.remarks(result),
    )
    return "".join(f"; {remark}" for remark in remarks if remark)


def located(item: Item, position: Position | None = None) -> str:
    """Return an item's place; that of a line of JSON is the line."""
    return location_of(item.source, item.pointer, position, item.line)


def verdict(location: str, word: str, at: str) -> tuple[Part, ...]:
    """Return a part of a source, and what became of it at a target."""
    at_target = "" if word == Verdict.NOT_CHECKED else f" at {at}"
    return (printable_line_start(location), "bold"), ": ", (word, _STYLES[word]), at_target


def detail_lines(
    target: Target | None, findings: tuple[Finding, ...], unknown: tuple[UnknownField, ...] = ()
) -> Iterator[Line]:
    """Yield the lines below a verdict: fields that are known at run time only, a target's note, the findings."""
    if unknown:
        yield Line(2, (wording.known_at_run_time_only(map(printable, map(str, unknown))), "yellow"))
    if target and target.note:
        yield Line(2, (f"note: {target.name}: {target.note}", "dim"))
    for group in alike(findings):
        yield from _finding_lines(group)


def _kind(finding: Finding) -> tuple[Part, ...]:
    """Return the word that begins a finding, and its rule."""
    return (wording.kind_of(finding), _SEVERITY_STYLES[finding.severity]), (f"[{finding.rule}]", "bold")


def _try_lines(suggestion: str | None) -> Iterator[Line]:
    if suggestion:
        yield Line(4, ("try: ", "green"), printable(suggestion))


def own_lines(finding: Finding, *, is_below_source: bool = False) -> Iterator[Line]:
    """Yield a finding of the package's own as lines of text: behind its place, or below the lines of its source."""
    where = printable_line_start(location_of(finding.source, "", finding.position))
    placed: tuple[Part, ...] = () if is_below_source else ((where, "bold"), ": ")
    yield Line(2 if is_below_source else 0, *placed, *_kind(finding), f" {printable(finding.message)}")
    yield from _try_lines(finding.suggestion)


def _node_line(nodes: ModelNodes, node: NodePlace, reason: Reason, described: int) -> Line:
    """Return a node with its placement, the operators that are created of it, and what is told of these."""
    from dml_tile.checks.placements import operator_name

    name = f" {node.name!r}" if node.name else ""
    made = nodes.placed.descriptions[described].descs if described >= 0 else ()  # a reason names those without fields
    operators = ", ".join(["", *(desc["Type"] for desc in made)])
    text = f": {reason.why}" if reason.text else ""
    return Line(2, printable(f"{node.pointer}{name} {operator_name(node)}: {reason.placement}{operators}{text}"))


def _crossing_line(crossing: Crossing) -> Line:
    from dml_tile.checks.placements import MEMORIES

    return Line(2, printable(f"value {crossing.value!r} crosses to {MEMORIES[crossing.to]}"))


def rule_lines(rule: Rule[Any]) -> Iterator[Line]:
    """Yield a rule, or a known departure with its condition and all its sources, as lines, for ``explain``."""
    yield Line(0, (rule.id, "bold"))
    yield Line(2, rule.says)
    if row := known().get(rule.id):
        yield Line(2, f"it may {row.does} ({row.when})")
        yield Line(2, f"severity: {rule.usual_severity}; condition: {row.condition}")
        yield Line(2, ("try: ", "green"), ", or ".join(row.tries))
        yield from (Line(2, (source, "blue")) for source in row.sources)
        return
    if not rule.basis:
        yield Line(2, f"severity: {rule.usual_severity}")
    else:
        returned = wording.outcome_of_rule(rule)
        yield Line(2, f"basis: {', '.join(rule.basis.names)}{returned and f'; DirectML: {returned}'}")
    if rule.url:
        yield Line(2, (rule.url, "blue"))


def result_code_lines(code: ResultCode) -> Iterator[Line]:
    """Yield a result code as lines of text, for ``explain``."""
    yield Line(0, (str(code.hresult), "bold"))
    yield Line(2, f"returned by: {code.returned_by}")
    yield Line(2, ("next: ", "green"), code.next_step)
    if code.rules:
        families = Counter("-".join(rule.id.split("-")[:2]) for rule in code.rules)
        yield Line(2, f"rules: {', '.join(f'{family} ({count})' for family, count in families.items())}")
    yield Line(2, (code.url, "blue"))


_RETURNS: Final = {
    HRESULT.DXGI_ERROR_UNSUPPORTED.hex: f"DMLCreateDevice1 returns {HRESULT.DXGI_ERROR_UNSUPPORTED}: ",
    HRESULT.E_NOINTERFACE.hex: f"QueryInterface returns {HRESULT.E_NOINTERFACE}: ",
}
"""The call that returns the error in place of a device, in words."""


def device_lines(answer: Mapping[str, Any]) -> Iterator[Line]:
    """Yield whether a device comes into being at a target, a record of JSON, as lines of text, for ``device``."""
    is_a_level = answer["target"].partition("+")[0] == answer["feature_level"]
    at = answer["target"] if is_a_level else f"{answer['target']} ({answer['feature_level']})"
    via = f" via {answer['via']}" if answer["via"] else ""
    yield Line(0, (at, "bold"), f"{via}: ", ("device", "green") if answer["created"] else ("no device", "red"))
    yield Line(2, answer["directml"])
    if answer["note"]:
        yield Line(2, (f"note: {answer['note']}", "dim"))
    if answer["release"] and answer["needed"]:
        since = f"a device comes from DirectML {first_directml(FeatureLevel.parse(answer['needed']))} on"
        yield Line(
            2, f"{since}; {answer['release']} was built with {answer['built_with']}, which has all of its operators"
        )
    if answer["reason"]:
        yield Line(2, f"{_RETURNS.get(answer['hresult'] or '', '')}{answer['reason']}")
        yield Line(2, (answer["url"] or "", "blue"))
        yield Line(2, ("try: ", "green"), answer["ship"] or "")


def _sentence_of(rule_id: str) -> str:
    """Return a rule's sentence. Importing all rules takes longer than a check of a tile."""
    for rule in DESCRIPTOR_RULES:
        if rule.id == rule_id:
            return rule.says
    from dml_tile.checks.catalogue import rule_named

    return rule_named(rule_id).says


_Told: TypeAlias = tuple[str, str, str]
"""The identity of a printed finding: its rule, path and message."""


def _told(finding: Finding) -> _Told:
    return finding.rule, finding.path, finding.message


def _shared_notes(results: Sequence[Result]) -> dict[_Told, tuple[Finding, list[str]]]:
    """Return the notes that an operator has at more than one target, with these targets, by what they say."""
    found: dict[_Told, tuple[Finding, list[str]]] = {}
    for result in results:
        for finding in result.findings:
            if finding.severity is Severity.NOTE:
                found.setdefault(_told(finding), (finding, []))[1].append(result.target.name)
    return {told: (finding, targets) for told, (finding, targets) in found.items() if len(targets) > 1}


def _shared_lines(shared: Iterable[tuple[Finding, list[str]]], count: int) -> Iterator[Line]:
    """Yield notes with their targets, where these are fewer than were printed."""
    by_targets: dict[tuple[str, ...], list[Finding]] = {}
    for finding, targets in shared:
        by_targets.setdefault(tuple(targets), []).append(finding)
    for names, findings in by_targets.items():
        for group in alike(tuple(findings)):
            yield from _finding_lines(group, names if len(names) < count else ())


def _finding_lines(findings: list[Finding], targets: Sequence[str] = ()) -> Iterator[Line]:
    """Yield the lines of findings that differ in their paths only, with targets that are not said elsewhere."""
    first = findings[0]
    at = f" at {', '.join(targets)}" if targets else ""
    yield Line(2, *_kind(first), f" {wording.outcome_of(first)}{at}")
    paths = ", ".join(finding.path for finding in findings if finding.path)
    yield Line(4, (paths, "cyan"), ": " if paths else "", printable(first.message))
    basis = f"{', '.join(first.basis.names)}: " if first.basis else ""
    yield Line(4, f"{basis}{_sentence_of(first.rule)}")
    yield Line(4, (first.url, "blue"))
    yield from _try_lines(first.suggestion)


def _lowest(result: Result) -> str:
    level = result.lowest_level
    if level is None:
        nowhere = f"via {result.item.via}" if result.item.via else "both documentation and runtime"
        return f"no feature level passes {nowhere}" if result.is_judged else ""
    is_least = wording.has_a_least_level(result)
    shown, _ = wording.run_from_level(level, is_least)
    if not shown:
        return ""
    first, or_later = oldest_windows(level), " or later" if is_least else ""
    box = f", in the box from {first}{or_later}" if first else ""
    why = ""
    if result.item.via and not result.ok:
        from dml_tile.checks.via import why_lower

        why = why_lower(result)
    where = f", where {printable(why)}" if why else ""
    return f"lowest level {shown}{box}{where}"


_LINES_BESIDE_MODELS: Final = 10
"""The lines of a terminal that the rest of the summary takes, with the prompt."""

_MIN_MODELS: Final = 5
_MIN_NAME: Final = 12
"""Characters of a model's name that are shown however narrow the terminal is."""

_AS_HANDED_ON: Final = (
    "tiles of models were checked as handed to DirectML unchanged, in the model's dimensions, merged only above 8"
)
_HOW_TO_FIX: Final = "--dim NAME=SIZE and --input-shape INPUT=1,3,224,224 fix sizes that are known at run time only"


class TextReport(Report):
    """Prints each result as it comes; a descriptor has one for each target. The summary comes last."""

    def __init__(self, options: ReportOptions) -> None:
        super().__init__(options)
        self._console = options.open_console()
        self._print = partial(print_lines, self._console)
        self._notices = Counter[str]()
        self._counted = wording.VerdictCounts()
        self._count = 0
        self._targets: dict[str, Target] = {}
        self._lacks_sizes = False
        self._unchanged = set[str]()
        """The models with tiles that were checked as if handed to DirectML unchanged."""

    def item(self, results: Sequence[Result]) -> None:
        """Print the results of the next operator; the operator itself once, or as often as it changes."""
        self._counted.add(results)
        self._count += len(results)
        options, shown, item = self.options, "", results[0].item
        is_plain = item.capture and not (options.is_verbose or any(result.findings for result in results))
        if is_plain and not options.is_quiet:
            self._print(captured_lines(results, options.against))
        for result in results:
            item = result.item
            self._targets[result.target.name] = result.target
            self._lacks_sizes |= any(field.is_size for field in item.unknown)
            if item.node and not (item.via or item.node.error) and result.verdict in (Verdict.REFUSED, *_SO_FAR):
                self._unchanged.add(item.source)
        printed = [each for each in results if not (is_plain or (options.is_quiet and each.passes(options.fail_on)))]
        shared = _shared_notes(printed)
        for result in printed:
            own = tuple(finding for finding in result.findings if _told(finding) not in shared)
            is_new = result.item.operator != shown
            lines = result_lines(
                replace(result, findings=own),
                against=options.against,
                with_target_note=False,
                with_operator=is_new,
                with_unknown=is_new,
                fail_on=options.fail_on,
            )
            self._print(lines)
            shown = result.item.operator
        self._print(_shared_lines(shared.values(), len(printed)))

    def finding(self, finding: Finding) -> None:
        """Print a notice, of those with one id the first few."""
        key = finding.key
        if key not in ("notices", "nodes"):
            super().finding(finding)
        elif key == "notices" and not (self.options.is_quiet and finding.passes(self.options.fail_on)):
            self._notices[finding.rule] += 1  # the lines of a model have the findings about its nodes
            if self._notices[finding.rule] <= MAX_IN_A_LINE:
                self._print(own_lines(finding))

    def nodes(self, nodes: ModelNodes) -> None:
        """Print a model's nodes by placement, target by target, each node if that is asked for; then the departures."""
        from dml_tile.checks.placements import with_places
        from dml_tile.checks.sessions import summary_of

        is_quiet, fail_on = self.options.is_quiet, self.options.fail_on
        departures = [each for each in nodes.counted if not (is_quiet and each.passes(fail_on))]
        for i, target in enumerate(nodes.targets):
            self._targets[target.name] = target
            if departures or not is_quiet:
                known = nodes.known_kinds(target.name)
                remark = f"; {plural(known, 'finding')} {IN_BASELINE}" if known else ""
                outcome, *others = summary_of(nodes, i)
                where = printable_line_start(nodes.source), "bold"
                self._print(
                    [Line(0, where, f" at {nodes.label(i)}: {outcome}{remark}"), *(Line(2, each) for each in others)]
                )
            if self.options.is_verbose:
                self._print(_node_line(nodes, *told) for told in nodes.told_at(i))
                self._print(map(_crossing_line, nodes.crossings_at(i)))
        for departure in departures:
            targets = departure.targets if len(departure.targets) < len(nodes.targets) else ()
            shown = bounded_finding(with_places(departure, targets))
            self._print(own_lines(shown, is_below_source=True))

    def end(self, files: Sequence[CheckedFile]) -> None:
        """Print the notes, then the summary: the counts, and the models that have tiles."""
        others = {rule: count - MAX_IN_A_LINE for rule, count in self._notices.items() if count > MAX_IN_A_LINE}
        lines = [Line(0, f"and {count} more of {rule}") for rule, count in others.items()]
        if self.options.is_quiet:
            self._print(lines)
            return
        notes = [f"{name}: {target.note}" for name, target in self._targets.items() if target.note]
        notes += [_HOW_TO_FIX] * self._lacks_sizes
        if self._unchanged:
            notes.append(f"{_AS_HANDED_ON}{self._back_ends_to_ask()}")
        lines += [Line(0, (f"note: {note}", "dim")) for note in notes]
        if self.passed_over:
            lines.append(Line(0, wording.passed_over(self.passed_over)))
        problems, is_placed = self.problems, any(each.placed for each in files)
        if self._count + len(problems) != 1 and (self._count or problems or not is_placed):
            lines.append(Line(0, (wording.headline(files, self._counted, problems, with_models=False), "bold")))
        self._print(lines)
        if models := [each for each in files if each.is_model]:
            self._print_models(models)

    def _back_ends_to_ask(self) -> str:
        """Return the back ends to ask about the tiles of models; empty for models that none reads."""
        from dml_tile.back_ends import BACK_ENDS

        onnxruntime = BACK_ENDS["ort"]
        if all(unread_through(source, onnxruntime) for source in self._unchanged):
            return ""
        without = [name for name, target in self._targets.items() if not onnxruntime.creates_a_device(target)]
        ort = ", and --via ort what ONNX Runtime does" if len(without) < len(self._targets) else ""
        advice = f"; --via chromium checks what WebNN makes of them{ort}"
        needs = f"; ONNX Runtime makes no device at {', '.join(without)}: `dml-tile device --via ort` says what to ship"
        return advice + needs if without else advice

    def _print_models(self, models: Sequence[CheckedFile]) -> None:
        with_tiles = [model for model in models if model.operators or not model.is_whole]
        without = [model for model in models if not model.is_checked and model.is_whole]
        most = len(with_tiles)
        if has_width(self._console):
            most = max(self._console.height - _LINES_BESIDE_MODELS, _MIN_MODELS)
        if len(with_tiles) == most + 1:  # the line that tells of one more would be as long as its row
            most += 1
        if len(with_tiles) > most:
            with_tiles.sort(key=lambda model: model.is_whole and not model.failing)
        if any(model.operators for model in with_tiles):
            self._console.print(_model_table(with_tiles[:most], self._console.width))
        if left_out := with_tiles[most:]:
            failing = sum(bool(model.failing) or not model.is_whole for model in left_out)
            fail = f"{failing} fail{'s' * (failing == 1)} or could not be read whole" if failing else "none fail"
            self._print([Line(0, f"and {len(left_out)} more models, of which {fail}")])
        if without:
            have = "1 model has" if len(without) == 1 else f"{len(without)} models have"
            others = sum(model.facts.nodes for model in without)
            names = listed([printable(model.source) for model in without])
            advice = f"; {what_takes_nodes(self.options.via, plural(others, 'other node'))}" if others else ""
            self._print([Line(0, f"{have} no tiles: {names}{advice}")])


def _model_table(models: Iterable[CheckedFile], width: int) -> Table:
    """Return the models, one a row. Where names are too long, the column of dynamic tiles goes, then their middle."""
    from rich.cells import cell_len
    from rich.table import Table

    rows: list[tuple[str, ...]] = [("model", "tiles", "dynamic", "lowest level", "oldest Windows")]
    rows += [(printable(one.source), str(one.operators), str(one.unknown), *wording.runs_on(one)) for one in models]
    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    if widths[0] > _room_for_names(widths, width):
        rows = [(name, tiles, *others) for name, tiles, _, *others in rows]
        del widths[2]
    (name, *headings), *rows = rows
    table = Table(name)
    for heading in headings:
        table.add_column(heading, justify="right" if heading in ("tiles", "dynamic") else "left")
    for name, *cells in rows:
        table.add_row(shortened_within(name, _room_for_names(widths, width)), *cells)
    return table


def _room_for_names(widths: Sequence[int], width: int) -> int:
    """Return the characters of a table that its first column may take, beside the others and the borders."""
    return max(width - 4 - sum(3 + others for others in widths[1:]), _MIN_NAME)
