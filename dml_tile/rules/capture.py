"""Captures: the lines that the C++ headers write, and rules for what DirectML returned."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BeforeValidator, Field

from dml_tile.descriptors.graph import GraphDesc
from dml_tile.descriptors.operator import OperatorDesc
from dml_tile.directml import pages
from dml_tile.directml.enums import HRESULT, UINT_MAX, FeatureLevel
from dml_tile.directml.targets import Target
from dml_tile.findings import Basis, Rules, Severity, Violation
from dml_tile.input_errors import Record
from dml_tile.rules.check import findings_of, not_looked_at

_HEXADECIMAL: Final = re.compile("0x[0-9A-Fa-f]{1,8}")
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


def _parse_hexadecimal(text: Any) -> Any:
    """Return the number that a text such as ``0x80070057`` spells; pydantic refuses anything else."""
    return int(text, 16) if isinstance(text, str) and _HEXADECIMAL.fullmatch(text) else text


def _parse_level(text: Any) -> Any:
    """Return the feature level; None if it is not known yet."""
    number = _parse_hexadecimal(text)
    return None if isinstance(number, int) and number not in {*FeatureLevel} else number


_Bits: TypeAlias = Annotated[int, Field(strict=True, ge=0, le=UINT_MAX)]


class CapturedLine(Record):
    """A line; HRESULT and feature level are hexadecimal numbers, or null if there was no call.

    A capturing device writes a line before a call, and after it a line with the HRESULT and no operator or graph; both
    have ``session`` and ``call``. A graph's operators are the numbers of the calls that created them.
    """

    dml_tile_capture: Literal[1]
    hresult: Annotated[_Bits, BeforeValidator(_parse_hexadecimal)] | None
    feature_level: Annotated[FeatureLevel | None, BeforeValidator(_parse_level)] = None
    session: str | None = None
    call: _Bits | None = None
    label: str | None = None
    operator: dict[str, Any] | None = None
    flags: _Bits | None = None
    graph: dict[str, Any] | None = None

    @property
    def is_return(self) -> bool:
        """True for the second line of a call."""
        return not self.model_fields_set & {"operator", "graph"}


def is_capture(data: Any) -> bool:
    """Return True for the JSON value of a captured line."""
    return isinstance(data, dict) and "dml_tile_capture" in data


@dataclass(frozen=True, slots=True)
class Capture:
    """An operator or a graph that an application described, and its HRESULT, if captured.

    ``hresult`` is CreateOperator's or CompileGraph's; an ``open`` call has not returned.
    """

    desc: OperatorDesc | GraphDesc | None
    hresult: int | None
    feature_level: FeatureLevel | None
    label: str = ""
    open: bool = False

    @property
    def method(self) -> str:
        return "CompileGraph" if isinstance(self.desc, GraphDesc) else "CreateOperator"


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
    if not_looked_at(capture.desc):
        results.add(HRESULT.E_INVALIDARG)  # some fields have no rule
    for adapter in _adapters(level):
        if capture.hresult in results:
            return
        results.add(_emulated_result(capture.desc, adapter))
    if capture.hresult not in results:
        expected = " or ".join(sorted(_result_text(result) for result in results))
        yield Violation(
            "",
            f"{capture.method} returned {_result_text(capture.hresult)} at feature level {level.short}; "
            f"the emulator gives {expected}",
            "please report it, with the captured line: one of the two is wrong",
        )


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
