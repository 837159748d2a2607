"""The examples of rules: what is refused and what is accepted, as text, and what is found when they are tried.

Those of descriptors and of lowering are the first cases in tests/helpers/rule_cases.py, written as JSON; the others
are calls.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Any, Final, Literal

from dml_tile.back_ends.directml import SPECIFICATION_RULES
from dml_tile.checking import check
from dml_tile.checks.judging import judged
from dml_tile.checks.verdict import verdict_of
from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.directml.targets import DEFAULT_TARGET, Target
from dml_tile.errors import DialectError, DmlError
from dml_tile.findings import Finding
from dml_tile.lowering.lower import lower
from dml_tile.readers.descriptors import read_document
from dml_tile.readers.item import Item
from dml_tile.readers.model_tile import DIALECTS
from dml_tile.simulation.calls import RemovalWatch
from docs.generator.call_examples import CALLS, PREPARED
from docs.generator.terse import Descriptor, terse_json
from tests.helpers.rule_cases import CAPTURE_CASES, CASES, DXDISPATCH_CASES, LOWERING_CASES

Language = Literal["json", "python"]


@dataclass(frozen=True, slots=True)
class Example:
    """A text, how it is introduced, and the findings on it."""

    language: Language
    lead: str
    text: str
    findings: tuple[Finding, ...]


def example_pairs() -> dict[str, tuple[Example, Example]]:
    """By the ids of rules: the example that breaks it, and the one that does not."""
    pairs: dict[str, tuple[Example, Example]] = {}
    for case in CASES:
        if case.rule not in pairs:
            accepted_at = case.accepted_at or case.target
            pairs[case.rule] = _checked(case.refused, case.target), _checked(case.accepted, accepted_at)
    for rule, refused, accepted, level, _ in LOWERING_CASES:
        if rule not in pairs:
            pairs[rule] = _lowered(rule, refused, level), _lowered(rule, accepted, level)
    for rule, refused_model, accepted_model, *levels in DXDISPATCH_CASES:
        pairs[rule] = _model(refused_model, *levels), _model(accepted_model)
    for rule, disagreed, agreed in CAPTURE_CASES:
        pairs[rule] = _capture(disagreed), _capture(agreed)
    for rule, calls in CALLS.items():
        pairs[rule] = _called(rule, calls.bad), _called(rule, calls.good)
    return pairs


def _checked(desc: Descriptor, target: Target) -> Example:
    findings = check(desc, target)
    lacking = "".join(f", without {name}" for name in _CAPABILITIES if not getattr(target, name))
    return Example(
        "json", f"{verdict_of(findings).capitalize()} at {target.name}{lacking}:", terse_json(desc), findings
    )


def document_findings(text: str, target: Target = DEFAULT_TARGET) -> tuple[Finding, ...]:
    """The findings that ``check`` reports on a document, a line of it or a model."""
    parts = (part for part in read_document(text.encode()) if isinstance(part, Item))
    return tuple(finding for part in parts for result in judged("-", part, [target], "both")
                 for finding in result.findings)  # fmt: skip


def _capture(text: str) -> Example:
    return Example("json", "A captured line:", text, document_findings(text))


def _model(text: str, level: str = "") -> Example:
    """A DxDispatch model."""
    findings = document_findings(text, Target.parse(level) if level else DEFAULT_TARGET)
    mark = " (it begins with U+FEFF, which is not seen here)" if text.startswith("\ufeff") else ""
    where = f" at {level}" if level else ""
    return Example("json", f"{verdict_of(findings).capitalize()} in a model{where}{mark}:", text, findings)


def _lowered(rule: str, desc: TileOperatorDesc, level: str) -> Example:
    without_floats = rule == "DML-LOWER-DataType"
    findings: tuple[Finding, ...] = ()
    try:
        lower(desc, level, allow_float_reinterpretation=not without_floats)
    except DmlError as error:
        findings = error.findings
    carriers = " with `--no-float-carriers`" if without_floats else ""
    lead = f"{'Not lowered' if findings else 'Lowered'} at {level}{carriers}:"
    return Example("json", lead, terse_json(desc), findings)


def _called(rule: str, code: str) -> Example:
    findings = findings_of(PREPARED[rule.split("-")[1]], code)
    return Example("python", f"{verdict_of(findings).capitalize()}:", code, findings)


_CAPABILITIES: Final = ("double_precision", "typed_uav_loads", "native_16_bit_ops")


def findings_of(prepared: str, code: str) -> tuple[Finding, ...]:
    """The findings that code raises, or that its last expression gives; none if it gives something else."""
    names: dict[str, Any] = {}
    exec(prepared, names)  # noqa: S102
    *statements, last = ast.parse(code).body
    assert isinstance(last, ast.Expr), f"{code!r} ends in no expression"
    watch = RemovalWatch()  # so that a test which tries the example is not taken to have removed the device
    try:
        with watch:
            exec(compile(ast.Module(statements, []), "<example>", "exec"), names)  # noqa: S102
            given = eval(compile(ast.Expression(last.value), "<example>", "eval"), names)  # noqa: S307
    except DmlError as error:
        return error.findings
    except DialectError as error:
        rule = SPECIFICATION_RULES[DIALECTS[error.dialect].specification]
        return tuple(rule.findings(f"{error.field}: {error.message}", DEFAULT_TARGET))
    return given if isinstance(given, tuple) else ()
