"""Words for results, findings and lowerings, and the operators of a run counted, for all formats."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from dml_tile.checks.result import IN_BASELINE, CheckedFile, Result
from dml_tile.checks.verdict import Verdict
from dml_tile.directml.enums import HRESULT, FeatureLevel
from dml_tile.directml.targets import oldest_windows
from dml_tile.findings import NOT_RETURNED, NOTHING_TO_CHECK, UNEXPLAINED, Basis, Finding, Rule, Severity
from dml_tile.rules.tile import operator_is_checked
from dml_tile.text import plural

if TYPE_CHECKING:
    from dml_tile.lowering.steps import Lowering, StepBuffer
    from dml_tile.readers.model_tile import UnknownField

_NOWHERE: Final = "none"
_AT_LEAST: Final = "at least "
"""Before a lowest level and a release of Windows where unknown fields may raise them."""
UNNOTICED: Final = "only the documentation forbids it; DirectML accepts it"
IGNORED: Final = "DirectML takes it, and ignores it"

WHERE_CAPTURED: Final = {
    UNEXPLAINED: "DirectML refused it where it was captured",
    NOT_RETURNED: "DirectML did not return where it was captured",
}
"""DirectML's captured behaviour, by the rules whose warnings change no verdict."""

_TAKEN_WHERE_CAPTURED: Final = "DirectML took it where it was captured"


def target_of(result: Result) -> str:
    """Return the target of a result, and the back end that it goes through, if one was asked for."""
    return f"{result.target.label} via {result.item.via}" if result.item.via else result.target.label


def known_at_run_time_only(unknown: Iterable[UnknownField | str]) -> str:
    """Return a sentence that names the fields of an operator that are known at run time only."""
    return f"known at run time only: {'; '.join(map(str, unknown))}"


def not_looked_at(fields: Sequence[str]) -> str:
    """Return the fields of an operator that no rule is about, in words."""
    return f"not looked at: {', '.join(fields)}"


def what_is_open(result: Result) -> str:
    """Return the fields that are known at run time only, or else those that no rule is about, in words."""
    return known_at_run_time_only(result.item.unknown) if result.item.unknown else not_looked_at(result.not_looked_at)


def has_a_least_level(result: Result) -> bool:
    """Return True if the lowest level is a lower bound, since fields are known at run time only or not looked at."""
    return bool(result.item.unknown or result.not_looked_at)


def how_to_fix(unknown: Iterable[UnknownField]) -> str:
    """Return the options that fix fields known at run time only; empty if those say not which sizes they rest on."""
    return " ".join(dict.fromkeys(filter(None, map(_option_that_fixes, unknown))))


def _option_that_fixes(unknown: UnknownField) -> str:
    """Return the option that makes a field known; empty if there is none, as for an input of repeats."""
    origin = unknown.origin
    source = None if unknown.name or origin.advice else origin.source
    dimension = source.name if source and source.kind == "dimension" else unknown.name
    if _NAME_TO_TYPE.fullmatch(dimension):
        return f"--dim {dimension}=SIZE"
    is_of_shape = source and source.kind == "input" and (origin.node or not unknown.field.startswith("Repeats"))
    return f"--input-shape {source.name}=SIZES" if source and is_of_shape and "'" not in source.name else ""


_NAME_TO_TYPE: Final = re.compile(r"[^*()'\s]+")


def remarks(result: Result) -> str:
    """Return the verdicts on a graph's operators, how many equal tiles a result stands for, and how many findings do
    not count, and why; empty if none.
    """
    of_operators = ", ".join(f"{number} {word}" for word in Verdict if (number := result.operators.get(word)))
    times = f"{result.item.times:,} times" if result.item.times > 1 else ""
    uncounted = (f"{plural(len(findings), 'finding')} {reason}" for reason, findings in result.uncounted.items())
    return "; ".join(filter(None, [of_operators and f"its operators: {of_operators}", times, *uncounted]))


def runs_on(summary: CheckedFile) -> tuple[str, str]:
    """Return the lowest level at which all of a model's tiles pass, and the oldest Windows that has it, in words."""
    if not summary.is_whole:
        return "not all read", ""
    return run_from_level(summary.lowest_level, bool(summary.unknown)) if summary.operators else ("", "")


def run_from_level(lowest: FeatureLevel | None, is_least: bool) -> tuple[str, str]:
    """Return a lowest level, None if there is none, and the oldest Windows release that has it, in words.

    Both are empty where they say nothing: at least the lowest level that there is.
    """
    if lowest is None:
        return _NOWHERE, _NOWHERE
    if is_least and lowest == min(FeatureLevel):
        return "", ""
    at_least = _AT_LEAST if is_least else ""
    release = oldest_windows(lowest)
    return f"{at_least}{lowest.short}", f"{at_least}{release}" if release else _NOWHERE


def kind_of(finding: Finding) -> str:
    """Return the word that begins a finding: its severity, or ``crash``."""
    return "crash" if finding.crash else str(finding.severity)


def outcome_of(finding: Finding) -> str:
    """Return the outcome of a finding: ``E_INVALIDARG 0x80070057``."""
    if finding.severity is Severity.WARNING:
        if finding.basis == Basis.INFERRED:
            return IGNORED
        if finding.basis & Basis.DOCUMENTED:
            return UNNOTICED
        return WHERE_CAPTURED.get(finding.rule, _TAKEN_WHERE_CAPTURED)
    if finding.rule == operator_is_checked.id:
        return "not emulated"
    if finding.severity is Severity.NOTE:
        return "no refusal"
    if finding.hresult is None and not finding.crash:
        from dml_tile.lowering.steps import LOWERING_RULES

        is_of_lowering = any(rule.id == finding.rule for rule in LOWERING_RULES)
        return "there is no lowering" if is_of_lowering else "DirectML is not called"
    runtime_only = "" if finding.basis & Basis.DOCUMENTED else ", runtime only"
    return f"{outcome(finding.hresult, finding.crash)}{runtime_only}"


def outcome(hresult: HRESULT | None, crash: bool) -> str:
    """Return the HRESULT that DirectML returns, in words."""
    if hresult is not None:
        return str(hresult)
    return "no HRESULT, the process dies" if crash else "not known"


def outcome_of_rule(rule: Rule[Any]) -> str:
    """Return what DirectML does about a broken rule, in words; empty for a note, which DirectML does not refuse."""
    if rule.usual_severity is Severity.NOTE or rule.id in WHERE_CAPTURED:
        return ""
    if rule.usual_severity is Severity.WARNING:
        return "does not notice"
    return outcome(rule.hresult, rule.crash)


def buffer_name(buffer: StepBuffer) -> str:
    """Return a buffer's name: ``input``, ``output``, or ``scratch1`` and so on."""
    return buffer if isinstance(buffer, str) else f"scratch{buffer + 1}"


def cost_of(lowering: Lowering) -> str:
    """Return the number of tiles of a lowering, and the bytes that they move, in one sentence."""
    moved = sum(step.bytes_read + step.bytes_written for step in lowering.steps)
    scratch = f"; {sum(lowering.scratch_sizes)} bytes of scratch memory" if lowering.scratch_sizes else ""
    return (
        f"cost: {plural(len(lowering.steps), 'tile')}, {moved} bytes read and written, "
        f"{lowering.cost:.2f} times the direct tile's{scratch}"
    )


VERDICTS: Final[tuple[str, ...]] = tuple(reversed(Verdict))
"""In the order in which they are shown and sorted, the worst first."""


class VerdictCounts:
    """Counts operators by the worst of their verdicts over the targets; ``has_known`` ones are in the baseline.

    A graph whose verdict is that of one of its operators does not count. The parts of DxDispatch models that are no
    operators, such as commands, are counted apart.
    """

    def __init__(self) -> None:
        self.operators = Counter[str]()
        self._parts = Counter[tuple[str, Verdict]]()
        self.has_known = self.has_new = False

    def add(self, results: Sequence[Result]) -> str:
        """Count an operator by its results; return its worst verdict, ``""`` for a part with nothing to report."""
        verdict = min((result.verdict for result in results), key=VERDICTS.index)
        part = results[0].item.part_kind
        if part and verdict == Verdict.ACCEPTED:
            return ""
        if part:
            self._parts[part, verdict] += 1
        elif any(result.is_counted and result.verdict is verdict for result in results):
            self.operators[verdict] += 1
        self.has_known |= any(IN_BASELINE in result.uncounted for result in results)
        self.has_new |= any(result.findings for result in results)
        return verdict

    def words(self) -> list[str]:
        """Return the numbers of operators by their verdicts, and of other parts, if there are some."""
        total = self.operators.total()
        operators = f"{plural(total, 'operator')}: {counted(self.operators)}" if total else ""
        parts = ", ".join(f"{plural(count, part)} {verdict}" for (part, verdict), count in self._parts.items())
        return [*filter(None, (operators, parts))]


def headline(
    files: Sequence[CheckedFile], counted: VerdictCounts, problems: Sequence[Finding], *, with_models: bool = True
) -> str:
    """Return the outcome in one line: models whose nodes were placed, what could not be read, then the operators."""
    models = [each.placed for each in files if each.placed]
    has_known = counted.has_known or any(each.has_known for each in models)
    has_new = counted.has_new or problems or any(each.has_counted for each in models)
    parts = ["passed, all findings are in the baseline"] if has_known and not has_new else []
    placed = placed_models(files) if with_models else ""
    listed = [*filter(None, [placed]), *(f"{number} {words}" for number, words in unread_counts(problems))]
    return "; ".join([*parts, *(listed + counted.words() or ["no operators"])])


def placed_models(files: Iterable[CheckedFile]) -> str:
    """Return the number of models whose nodes were placed, and of those that fail; empty if there are none."""
    models = [each.placed for each in files if each.placed]
    failing = sum(not each.loads for each in models)
    fail = f", {failing} failing at some target" if failing else ""
    return f"{plural(len(models), 'model')} placed{fail}" if models else ""


def unread_counts(problems: Sequence[Finding]) -> list[tuple[int, str]]:
    """Return the numbers of files that could not be read whole, and of names that hold nothing, before their words."""
    empty = len({problem.source for problem in problems if problem.rule == NOTHING_TO_CHECK})
    unread = len({problem.source for problem in problems if problem.rule != NOTHING_TO_CHECK})
    counts = (unread, f"file{'' if unread == 1 else 's'} not read"), (empty, "with nothing to check")
    return [(number, words) for number, words in counts if number]


def passed_over(ones: Sequence[Finding]) -> str:
    """Return the numbers of skipped files and of skipped folders, by reason."""
    folders = Counter(finding.message for finding in ones if finding.source.endswith("/"))
    files = Counter(finding.message for finding in ones if not finding.source.endswith("/"))
    kinds = (files, "file"), (folders, "folder")
    return "; ".join(
        f"{plural(reasons.total(), noun)} skipped: "
        f"{', '.join(f'{count} {reason}' for reason, count in greatest_first(reasons).items())}"
        for reasons, noun in kinds
        if reasons
    )


def counted(counts: Counter[str]) -> str:
    """Return numbers of operators by verdict, in words, the worst first."""
    return ", ".join(f"{counts[word]} {word}" for word in VERDICTS if counts[word])


def greatest_first(counts: Mapping[str, int]) -> dict[str, int]:
    """Return counts by rule or reason, the greatest first, equal counts by name."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))
