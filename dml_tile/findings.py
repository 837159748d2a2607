"""Rules, findings of descriptors that break rules, and the bases of both."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import IntEnum
from pathlib import Path
from typing import Any, Final, Generic, Literal, NamedTuple, TypedDict, TypeVar, Unpack

from dml_tile.directml.enums import HRESULT
from dml_tile.directml.known import known
from dml_tile.directml.operator_table import BOTH as BOTH
from dml_tile.directml.operator_table import Basis as Basis
from dml_tile.directml.targets import Target
from dml_tile.text import braced

Against = Literal["documentation", "runtime", "both"]
"""The contract that a descriptor is held to: the documentation, the runtime as measured or inferred, or both."""


_NONE: Final = Basis(0)

BASES: Final[dict[str, Basis]] = {
    "documentation": Basis.DOCUMENTED,
    "runtime": Basis.RUNTIME | Basis.INFERRED,
    "both": Basis.DOCUMENTED | Basis.RUNTIME | Basis.INFERRED,
}


class Severity(IntEnum):
    """The severity of a finding; a worse severity is greater. ``str()`` gives the word: ``"error"``."""

    NOTE = 1
    """No refusal: DirectML takes it, or is not called for it, or it is not checked."""
    WARNING = 2
    """Only the documentation rules it out, which DirectML does not notice; or DirectML refused it where no rule does,
    took it where rules that nobody measured refuse it, or did not return."""
    ERROR = 3
    """DirectML refuses it or crashes, or a specification or a back end raises an error."""

    def __str__(self) -> str:
        return self.name.lower()


_DOCUMENTED: Final = Basis.DOCUMENTED  # looking up an enumerator costs more than comparing with it
_WARNING: Final = Severity.WARNING
_ERROR: Final = Severity.ERROR


def bases_of(against: Against) -> Basis:
    """Return the bases that ``against`` selects. Raises ValueError for an unknown word."""
    if against not in BASES:
        raise ValueError(f"against is {against!r}; it must be one of {', '.join(map(repr, BASES))}")
    return BASES[against]


class Position(NamedTuple):
    """The beginning and end of a value in a text; lines and columns count from 1, columns in code points.

    The end is the position after the value's last character.
    """

    line: int
    column: int
    end_line: int
    end_column: int


def location_of(source: str, pointer: str, position: Position | None = None, line: int | None = None) -> str:
    """Return a part of a source as messages name it: ``tiles.json:3:2#/0``; a ``line`` of JSON ``tiles.jsonl:3``."""
    if line is not None:
        return f"{source}:{line}"
    location = f"{source}:{position.line}:{position.column}" if position else source
    return f"{location}#{pointer}" if pointer else location


class Edit(NamedTuple):
    """A field, by its path in C names, and another value for it: a number, an array, or None for null.

    The TotalTensorSizeInBytes of a tensor follows its other fields, a count the length of its array.
    """

    path: str
    value: Any


class Try(NamedTuple):
    """A way out of a finding: what to do, the command that does it, and whether that is to ship another DirectML.

    ``edits`` are the fields that it changes; empty if it changes something else.
    """

    text: str
    command: str = ""
    ships: bool = False
    edits: tuple[Edit, ...] = ()


def set_to(value: Any, path: str) -> Try:
    """Return the way out to give the field that a finding is about another value."""
    shown = braced(value) if isinstance(value, tuple) else value.name if isinstance(value, IntEnum) else value
    return Try(f"set it to {'null' if value is None else shown}", edits=(Edit(path, value),))


class Violation(NamedTuple):
    """One place where a rule is broken.

    ``basis`` and ``hresult`` are given if they differ from the rule's; ``ships`` is True if the suggestion is to ship
    another DirectML. ``edit`` is a way out that changes fields of the descriptor.
    """

    path: str
    message: str
    suggestion: str | None = None
    basis: Basis | None = None
    hresult: HRESULT | None = None
    ships: bool = False
    edit: Try | None = None

    def unless(self, noticed: object, remark: str = "DirectML does not notice") -> Violation:
        """Return the violation; unless the runtime notices it, as one of the documentation alone, with a remark."""
        return self if noticed else self._replace(message=f"{self.message} ({remark})", basis=Basis.DOCUMENTED)


def _no_violations(subject: object, target: Target) -> Iterable[Violation]:
    return ()


Subject = TypeVar("Subject")
Subject_contra = TypeVar("Subject_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class Rule(Generic[Subject_contra]):
    """One requirement: a stable id, what it says, what it rests on, and the function that finds its violations.

    ``hresult`` is what DirectML returns when the rule is broken; None if it crashes, or if the result is unknown.
    ``severity`` is the findings'; None means that it follows from their basis: a warning if they are documented alone,
    else an error.

    A rule of the package's own, about a file or a model's nodes, has no function and no basis. Its findings have a
    ``key`` in JSON; ``status`` is the exit status of a command with them, 1 only if their severity fails the check.
    """

    id: str
    says: str
    basis: Basis
    url: str
    violations: Callable[[Subject_contra, Target], Iterable[Violation]] = _no_violations
    hresult: HRESULT | None = HRESULT.E_INVALIDARG
    crash: bool = False
    severity: Severity | None = None
    key: str = ""
    status: int = 1

    @property
    def usual_severity(self) -> Severity:
        """The severity of findings with the rule's whole basis."""
        return self._severity(self.basis)

    @property
    def is_selectable(self) -> bool:
        """True if ``--select`` and ``--ignore`` name it."""
        return self.status == 1

    def _severity(self, basis: Basis) -> Severity:
        return self.severity or (_WARNING if basis == _DOCUMENTED else _ERROR)

    def findings(self, subject: Subject_contra, target: Target) -> Iterator[Finding]:
        """Yield the findings of this rule on its subject at a target."""
        return map(self.finding, self.violations(subject, target))

    def finding(self, violation: Violation, url: str | None = None) -> Finding:
        """Return the finding for one place where this rule is broken, with the rule's URL or another."""
        basis = self.basis if violation.basis is None else violation.basis
        severity = self._severity(basis)
        returned = self.hresult if violation.hresult is None else violation.hresult
        tries: tuple[Try, ...] = (violation.edit,) if violation.edit else ()
        if violation.suggestion:
            tries += (Try(violation.suggestion, ships=violation.ships),)
        return Finding(
            rule=self.id,
            path=violation.path,
            message=violation.message,
            severity=severity,
            basis=basis,
            hresult=returned if severity is _ERROR else None,
            crash=self.crash,
            url=self.url if url is None else url,
            tries=tries,
        )


def apply_rules(rules: Iterable[Rule[Subject]], subject: Subject, target: Target) -> Iterator[Finding]:
    """Yield the findings of several rules on their subject at a target, in the order of the rules."""
    for each in rules:
        for violation in each.violations(subject, target):
            yield each.finding(violation)


class RuleFields(TypedDict, total=False):
    """The fields of a rule that most rules on one subject share."""

    basis: Basis
    url: str
    hresult: HRESULT | None
    crash: bool
    severity: Severity | None


class Rules(list[Rule[Subject]]):
    """Rules on one subject, in the order of their findings: that of their definitions.

    ``usual`` are the fields that most rules have; the basis is BOTH by default.
    """

    def __init__(self, **usual: Unpack[RuleFields]) -> None:
        super().__init__()
        self._usual = RuleFields(basis=BOTH) | usual

    def add(
        self, rule_id: str, **options: Unpack[RuleFields]
    ) -> Callable[[Callable[[Subject, Target], Iterable[Violation]]], Rule[Subject]]:
        """Replace the function that finds violations by its rule, and append that. A crash or a note has no HRESULT.

        The function's docstring is what the rule says, also where ``python -OO`` drops docstrings.
        """

        def make(violations: Callable[[Subject, Target], Iterable[Violation]]) -> Rule[Subject]:
            fields = self._usual | options
            if fields.get("crash") or fields.get("severity") is Severity.NOTE:
                fields["hresult"] = None
            says = violations.__doc__ or _docstring_in_source(violations)
            self.append(Rule(rule_id, " ".join(says.split()), violations=violations, **fields))
            return self[-1]

        return make


def _docstring_in_source(function: Callable[..., object]) -> str:
    import ast
    import inspect

    return ast.get_docstring(ast.parse(inspect.getsource(function)).body[0]) or ""  # type: ignore[arg-type]


def suggestion_of(tries: tuple[Try, ...]) -> str | None:
    """Return ways out in words; None if there are none."""
    return ", or ".join(f"{each.text} ({each.command})" if each.command else each.text for each in tries) or None


@dataclass(frozen=True, slots=True)
class Finding:
    """A broken rule, or a message about a file.

    ``path`` is the field in C names (``InputTensor.Sizes[2]``; empty for the whole), ``crash`` is True if the process
    would die. ``hresult`` is DirectML's; None if it accepts the descriptor, returns nothing, or the result is unknown.
    ``tries`` are the ways out.

    A message about a file has a rule of ``OWN``, and no basis; ``source`` is the file's name, ``path`` the JSON pointer
    of a part, ``position`` its position in the text, if known, and ``line`` the number of a line of JSON. ``about``
    identifies a message that names further parts.

    A message about a model's nodes is about ``count`` of them, with one ``placement``, at ``targets``: those of one
    ``operator``, or of any if that is empty. The first has this ``path`` and ``name``. The count is 0 if it is about
    the model. ``via`` is the back end, if its name has a release.
    """

    rule: str
    path: str
    message: str
    severity: Severity
    basis: Basis = _NONE
    hresult: HRESULT | None = None
    crash: bool = False
    url: str = ""
    tries: tuple[Try, ...] = ()
    source: str = field(default="", compare=False)
    position: Position | None = field(default=None, compare=False)
    line: int | None = field(default=None, compare=False)
    about: str = field(default="", compare=False)
    operator: str = ""
    name: str = ""
    placement: str = ""
    count: int = 0
    targets: tuple[str, ...] = ()
    via: str = ""

    def __str__(self) -> str:
        return f"[{self.rule}] {self.text}"

    @property
    def key(self) -> str:
        """The key in JSON of a message about a file; a rule of DirectML's refuses an operator of a model's nodes."""
        return OWN[self.rule].key if self.rule in OWN else "nodes"

    @property
    def field(self) -> str:
        """The last part of the path: ``DataType`` of ``InputTensor.DataType``."""
        return self.path.rpartition(".")[2]

    @property
    def location(self) -> str:
        """The part of a source that it is about, as messages name it."""
        return location_of(self.source, self.path, self.position, self.line)

    @property
    def suggestion(self) -> str | None:
        """What to try, in words; None if nothing is suggested."""
        return suggestion_of(self.tries)

    @property
    def text(self) -> str:
        """The message, behind its path."""
        return f"{self.path}: {self.message}" if self.path else self.message

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The fields that a way out changes: the descriptor with the edits of all its findings passes."""
        return next((each.edits for each in self.tries if each.edits), ())

    def within(self, struct: str) -> Finding:
        """Return the finding with the path of the struct that has its field, and its edits' fields, before theirs."""
        tries = tuple(
            each._replace(edits=tuple(edit._replace(path=f"{struct}.{edit.path}") for edit in each.edits))
            for each in self.tries
        )
        return replace(self, path=f"{struct}.{self.path}".rstrip("."), tries=tries)

    def passes(self, fail_on: Severity | None) -> bool:
        """Return True if the severity is below ``fail_on``, or if that is None."""
        return fail_on is None or self.severity < fail_on


def finding_lines(findings: Iterable[Finding]) -> list[str]:
    """Return findings as lines of a message, each with its suggestion."""
    lines = []
    for finding in findings:
        lines += [f"  {finding}", *([f"    try: {finding.suggestion}"] if finding.suggestion else [])]
    return lines


UNREADABLE: Final = "unreadable"
NOTHING_TO_CHECK: Final = "nothing-to-check"
CONTRADICTION: Final = "contradiction"
PASSED_OVER: Final = "passed-over"
RUN_TIME: Final = "known-at-run-time"
NOT_LOOKED_AT: Final = "not-looked-at"
UNUSED_IGNORE: Final = "unused-ignore"
UNUSED_BASELINE_ENTRY: Final = "unused-baseline-entry"
OLD_BASELINE_ENTRY: Final = "old-baseline-entry"
UNUSED_VIA: Final = "unused-via"
OTHER_RUNTIME: Final = "other-runtime"

# rules that decide verdicts; the rules themselves are imported only where something may break them
NO_OPERATOR: Final = "DML-DXDISPATCH-no-operator"
UNEXPLAINED: Final = "DML-CAPTURE-unexplained"
NOT_RETURNED: Final = "DML-CAPTURE-open"
GONE: Final = "ORT-NODE-gone"
MASK: Final = "DML-OPERATOR-MaskTensor"
SIZES: Final = "DML-OPERATOR-Sizes"
EXTERNAL_DATA: Final = "ORT-MODEL-external-data"


def _own_rule(rule_id: str, severity: Severity, status: int, key: str, says: str, url: str) -> Rule[object]:
    return Rule(rule_id, says, _NONE, url, hresult=None, severity=severity, key=key, status=status)


_OWN_IDS: Final = json.loads(Path(__file__).with_name("own_ids.json").read_text("utf-8"))

KNOWN: Final[dict[str, Rule[object]]] = {
    row.id: _own_rule(row.id, Severity.NOTE, 1, "nodes", row.says, row.url) for row in known().values()
}
"""That DirectML, or ONNX Runtime's provider, treats something as documented, for each known departure."""

OWN: Final[dict[str, Rule[object]]] = {
    own_id: _own_rule(own_id, Severity[severity.upper()], status, key, says, _OWN_IDS["pages"].get(page, ""))
    for own_id, severity, status, key, page, says in _OWN_IDS["ids"]
} | KNOWN
"""The rules about unreadable files, notices, skipped files and node placements, and known departures."""


def own_finding(
    own_id: str,
    message: str,
    pointer: str = "",
    position: Position | None = None,
    suggestion: str | None = None,
    source: str = "",
) -> Finding:
    """Return a finding of a rule of ``OWN``."""
    tries = (Try(suggestion),) if suggestion else ()
    return Finding(own_id, pointer, message, OWN[own_id].usual_severity, tries=tries, source=source, position=position)


def unreadable(pointer: str, message: str, position: Position | None = None, source: str = "") -> Finding:
    """Return the finding about a part of a source that cannot be read."""
    return own_finding(UNREADABLE, message, pointer, position, source=source)
