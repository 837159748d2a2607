"""The captured answer of DirectML to an application's call, and the rules for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from typing import Final, Literal, TypeAlias

from dml_tile.descriptors.graph import UNKNOWN_OPERATOR, GraphDesc, is_constant
from dml_tile.descriptors.operator import OperatorDesc
from dml_tile.directml import pages
from dml_tile.directml.enums import FIRST_FAILURE, HRESULT, FeatureLevel
from dml_tile.directml.targets import Target
from dml_tile.findings import NOT_RETURNED, UNEXPLAINED, Basis, Finding, Rules, Severity, Violation
from dml_tile.rules.descriptor import findings_of, findings_of_null_graph, not_looked_at

Method: TypeAlias = Literal["CreateOperator", "CompileGraph"]

_OF_THE_MACHINE: Final = {
    0x80070008,  # ERROR_NOT_ENOUGH_MEMORY
    0x8007000E,  # E_OUTOFMEMORY
    0x800705AF,  # ERROR_COMMITMENT_LIMIT
    HRESULT.E_NOINTERFACE,
    HRESULT.DXGI_ERROR_DEVICE_REMOVED,
    HRESULT.DXGI_ERROR_DEVICE_HUNG,
    HRESULT.DXGI_ERROR_DEVICE_RESET,
    HRESULT.DXGI_ERROR_DRIVER_INTERNAL_ERROR,
}
"""HRESULTs about lost devices, memory or the requested interface, not about a descriptor."""

_UNKNOWN_FIELDS: Final = ("the fields of the operator, which were not captured",)
_PLEASE_REPORT: Final = "please report it, with the captured line: one of the two is wrong"


@dataclass(frozen=True, slots=True)
class Capture:
    """An operator or a graph that an application described, and its HRESULT, if captured.

    ``hresult`` is that of the ``method``, None of a ``null_device``; an ``open`` call has not returned. ``desc`` is
    ``UNKNOWN_OPERATOR`` where the fields of an operator were not captured. ``content`` is the text of a graph, in which
    operators stand for calls.
    """

    desc: OperatorDesc | GraphDesc | None
    hresult: int | None
    feature_level: FeatureLevel | None
    label: str = ""
    open: bool = False
    method: Method = "CreateOperator"
    content: str = ""
    null_device: bool = False

    @property
    def was_taken(self) -> bool:
        """True if DirectML returned success."""
        return self.hresult is not None and self.hresult < FIRST_FAILURE

    @property
    def is_null_graph(self) -> bool:
        """True for CompileGraph with a null pointer."""
        return self.method == "CompileGraph" and self.desc is None


CAPTURE_RULES: Final = Rules[Capture](url=pages.CREATE_OPERATOR, basis=Basis.RUNTIME, hresult=None)


@cache
def _adapters(level: FeatureLevel) -> tuple[Target, ...]:
    """Return the targets of a level with each kind of adapter, since a capture does not name the adapter."""
    kinds = product((True, False), repeat=2)
    return tuple(Target(level, double_precision=double, typed_uav_loads=loads) for double, loads in kinds)


@CAPTURE_RULES.add("DML-CAPTURE-HRESULT", severity=Severity.NOTE)
def result_is_as_emulated(capture: Capture, target: Target) -> Iterator[Violation]:
    """CreateOperator and CompileGraph must return what the emulator gives at the device's feature level."""
    level = capture.feature_level
    if level is None or capture.hresult is None or capture.hresult in _OF_THE_MACHINE:
        return
    given = 0 if capture.was_taken else capture.hresult  # S_FALSE, where the call was only to be tried
    if any(_emulated_result(capture, adapter) == given for adapter in _adapters(level)):
        return
    results = _emulated_results(capture, [level])
    if _is_unexplained(capture, results):
        return
    expected = " or ".join(sorted(map(_result_text, results)))
    yield Violation("", f"{_returned(capture)}; the emulator gives {expected}", _PLEASE_REPORT)


@CAPTURE_RULES.add(UNEXPLAINED, severity=Severity.WARNING)
def refusal_is_explained(capture: Capture, target: Target) -> Iterator[Violation]:
    """Where CreateOperator or CompileGraph fails, a rule must say why at the device's feature level, or at any if that
    is unknown.
    """
    if capture.hresult is None or capture.was_taken or capture.hresult in _OF_THE_MACHINE:
        return
    nodes = capture.desc.nodes if isinstance(capture.desc, GraphDesc) else None
    if capture.hresult == HRESULT.E_NOTIMPL and any(map(is_constant, nodes or ())):  # a note of the graph says why
        return
    levels = list(FeatureLevel) if capture.feature_level is None else [capture.feature_level]
    if _is_unexplained(capture, _emulated_results(capture, levels)):
        unseen = _UNKNOWN_FIELDS if capture.desc is UNKNOWN_OPERATOR else not_looked_at(capture.desc)
        message = f"{_returned(capture)}, and no rule says why"
        if unseen:
            yield Violation("", f"{message}; not looked at: {', '.join(unseen)}")
        else:
            yield Violation("", message, _PLEASE_REPORT)


@CAPTURE_RULES.add(NOT_RETURNED, severity=Severity.WARNING)
def call_returned(capture: Capture, target: Target) -> Iterator[Violation]:
    """A call must return before the capture is read."""
    if capture.open:
        yield Violation("", f"{capture.method} has not returned: the process ended inside DirectML, or is in it still")


def with_unmeasured_softened(findings: tuple[Finding, ...], capture: Capture, target: Target) -> tuple[Finding, ...]:
    """Return findings at a target; warnings in place of errors that nobody measured, if a device of its level took it.

    Of their basis, the inference is wrong. The finding that the result is not the emulated one is then a warning too.
    """
    is_other = all(finding.rule != result_is_as_emulated.id for finding in findings)
    if is_other or not capture.was_taken or capture.feature_level != target.feature_level:
        return findings
    unmeasured = {each for each in findings if each.severity is Severity.ERROR and not each.basis & Basis.RUNTIME}
    return tuple(
        replace(each, severity=Severity.WARNING, basis=each.basis & ~Basis.INFERRED, hresult=None, crash=False)
        if each in unmeasured or (unmeasured and each.rule == result_is_as_emulated.id)
        else each
        for each in findings
    )


def _emulated_results(capture: Capture, levels: Iterable[FeatureLevel]) -> set[int | None]:
    """Return the HRESULTs of the emulated runtime, by each kind of adapter; None where it would crash."""
    return {_emulated_result(capture, adapter) for level in levels for adapter in _adapters(level)}


def _emulated_result(capture: Capture, target: Target) -> int | None:
    if capture.desc is UNKNOWN_OPERATOR:
        return 0
    if capture.is_null_graph:
        found = findings_of_null_graph(target, "runtime")
    else:
        found = findings_of(capture.desc, target, "runtime")
    findings = [each for each in found if each.severity is Severity.ERROR]
    returned = next((finding.hresult for finding in findings if finding.hresult is not None), None)
    return returned if findings else 0


def _is_unexplained(capture: Capture, results: set[int | None]) -> bool:
    """Return True for a failed call that the emulated runtime accepts."""
    return results == {0} and capture.hresult is not None and not capture.was_taken


def _returned(capture: Capture) -> str:
    level = capture.feature_level
    at = f" at feature level {level.short}" if level else ""
    return f"{capture.method} returned {_result_text(capture.hresult)}{at}"


def _result_text(hresult: int | None) -> str:
    if hresult is None:
        return "a crash"
    return str(HRESULT(hresult)) if hresult in {*HRESULT} else f"0x{hresult:08X}"
