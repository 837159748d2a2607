"""What an application's call returned, where it was captured, and the rules for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Final

from dml_tile.descriptors.graph import GraphDesc
from dml_tile.descriptors.operator import OperatorDesc
from dml_tile.directml import pages
from dml_tile.directml.enums import HRESULT, FeatureLevel
from dml_tile.directml.targets import Target
from dml_tile.findings import Basis, Rules, Severity, Violation
from dml_tile.rules.check import findings_of, not_looked_at

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


@dataclass(frozen=True, slots=True)
class Capture:
    """An operator or a graph that an application described, and its HRESULT, if captured.

    ``hresult`` is that of the ``method``; an ``open`` call has not returned.
    """

    desc: OperatorDesc | GraphDesc | None
    hresult: int | None
    feature_level: FeatureLevel | None
    label: str = ""
    open: bool = False
    method: str = "CreateOperator"


CAPTURE_RULES: Final = Rules[Capture](url=pages.CREATE_OPERATOR, basis=Basis.RUNTIME, hresult=None)


@cache
def _adapters(level: FeatureLevel) -> tuple[Target, ...]:
    """Return the targets of a level with each kind of adapter, since a capture does not name the adapter."""
    kinds = product((True, False), repeat=2)
    return tuple(Target(level, double_precision=double, typed_uav_loads=loads) for double, loads in kinds)


@CAPTURE_RULES.add(
    "DML-CAPTURE-HRESULT",
    says="CreateOperator and CompileGraph returned what the emulator gives at the device's feature level.",
    severity=Severity.NOTE,
)
def result_is_as_emulated(capture: Capture, target: Target) -> Iterator[Violation]:
    level = capture.feature_level
    if level is None or capture.hresult is None or capture.hresult in _OF_THE_MACHINE:
        return
    results = set[int | None]()
    for adapter in _adapters(level):
        results.add(_emulated_result(capture.desc, adapter))
        if capture.hresult in results:
            return
    returned = f"{capture.method} returned {_result_text(capture.hresult)} at feature level {level.short}"
    unseen = not_looked_at(capture.desc)
    if unseen and capture.hresult == HRESULT.E_INVALIDARG:
        yield Violation("", f"{returned}, and no rule says why; not looked at: {', '.join(unseen)}")
        return
    expected = " or ".join(sorted(_result_text(result) for result in results))
    suggestion = "please report it, with the captured line: one of the two is wrong"
    yield Violation("", f"{returned}; the emulator gives {expected}", suggestion)


@CAPTURE_RULES.add(
    "DML-CAPTURE-open",
    says="The call returned before the capture was read: else the process ended in it, or is in it still.",
    severity=Severity.NOTE,
)
def call_returned(capture: Capture, target: Target) -> Iterator[Violation]:
    if capture.open:
        yield Violation("", f"{capture.method} has not returned")


def _emulated_result(desc: OperatorDesc | GraphDesc | None, target: Target) -> int | None:
    """Return the HRESULT of the emulated runtime; None where it would crash."""
    findings = [each for each in findings_of(desc, target, "runtime") if each.severity is Severity.ERROR]
    returned = next((finding.hresult for finding in findings if finding.hresult is not None), None)
    return returned if findings else 0


def _result_text(hresult: int | None) -> str:
    if hresult is None:
        return "a crash"
    return str(HRESULT(hresult)) if hresult in {*HRESULT} else f"0x{hresult:08X}"
