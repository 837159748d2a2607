"""All rules by their ids, and the result codes of DirectML. Most checks do without: importing it imports all rules."""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from dml_tile.back_ends.back_end import BACK_END_RULES
from dml_tile.back_ends.directml import DIALECT_RULES, SPECIFICATION_RULES
from dml_tile.directml import pages
from dml_tile.directml.enums import HRESULT
from dml_tile.dxdispatch.rules import DXDISPATCH_RULES
from dml_tile.findings import OWN, OwnId, Rule
from dml_tile.lowering.steps import LOWERING_RULES
from dml_tile.rules import binding, device, dispatch, graph
from dml_tile.rules.capture import CAPTURE_RULES
from dml_tile.rules.check import DESCRIPTOR_RULES
from dml_tile.rules.operator import OPERATOR_LEVEL_RULES
from dml_tile.rules.operator_fields import OPERATOR_FIELD_RULES
from dml_tile.text import did_you_mean

_RULES: Final[tuple[tuple[Rule[Any], ...], ...]] = (
    DESCRIPTOR_RULES,
    (*OPERATOR_LEVEL_RULES, *OPERATOR_FIELD_RULES),
    (*SPECIFICATION_RULES.values(), *DIALECT_RULES, *BACK_END_RULES),
    (*DXDISPATCH_RULES, *CAPTURE_RULES, *LOWERING_RULES),
    (*binding.BINDING_COUNT_RULES, *binding.BINDING_DESC_RULES, *binding.RANGE_RULES),
    (*binding.OVERLAP_RULES, *binding.REBINDING_RULES),
    (*device.EXPORT_RULES, *device.CREATION_RULES, *device.FEATURE_RULES, *device.REQUESTED_LEVEL_RULES),
    (*device.FAULT_RULES, *device.REMOVAL_RULES),
    (*device.COMPILATION_RULES, *device.COMPILATION_FLAG_RULES, *device.INITIALIZER_RULES),
    (*graph.GRAPH_CALL_RULES, *graph.GRAPH_RULES, *graph.CONNECTION_RULES),
    (*dispatch.TABLE_RULES, *dispatch.TABLE_USE_RULES, *dispatch.DISPATCH_RULES),
    (*dispatch.EXECUTION_RULES, *dispatch.INITIALIZATION_RULES, *dispatch.PERSISTENCE_RULES),
)

RULES: Final[dict[str, Rule[Any]]] = {rule.id: rule for rules in _RULES for rule in rules}
"""Every rule, by its id."""


NAMED: Final[dict[str, Rule[Any] | OwnId]] = {**RULES, **{own.id: own for own in OWN.values() if own.is_selectable}}
"""The rules, and the ids of the package's own, that ``--select`` and ``--ignore`` name."""


def rule_named(rule_id: str) -> Rule[Any] | OwnId:
    """Return the rule or notice with this id. Raises ValueError, with the nearest ids, for any other."""
    if rule_id not in NAMED:
        hint = did_you_mean(rule_id, NAMED, "`dml-tile explain` lists all rules", count=3, cutoff=0.4)
        raise ValueError(f"there is no rule {rule_id!r}; {hint}")
    return NAMED[rule_id]


class ResultCode(NamedTuple):
    """A result code, the calls that return it and why, the next step, and the page about it."""

    hresult: HRESULT
    returned_by: str
    next_step: str
    url: str = pages.ERRORS

    @property
    def rules(self) -> list[Rule[Any]]:
        """The rules that DirectML answers with this code."""
        return [rule for rule in RULES.values() if rule.hresult is self.hresult]


_NEW_DEVICE: Final = "make a new Direct3D 12 device and a new DirectML device; no call on the old ones succeeds again"

_CODES: Final = (
    ResultCode(
        HRESULT.E_INVALIDARG,
        "CreateOperator, for a descriptor that this DirectML does not take; also the calls that compile, and that make "
        "devices, initializers and binding tables. ONNX Runtime and WebNN pass it on from making a session or graph",
        "`dml-tile check FILE --target TARGET`, at the Windows or the DirectML of the machine that returned it, gives "
        "all reasons. FILE is the model (--via ort or chromium: as that runtime passes it on), or what "
        "dml_tile/capture.h writes of the application (docs/cpp.md)",
    ),
    ResultCode(
        HRESULT.DXGI_ERROR_UNSUPPORTED,
        "DMLCreateDevice1, where DirectML has not the minimum feature level, or the debug layers are not installed; "
        "CheckFeatureSupport, for what it does not know; CreateOperator, for a Type from 0xc0000000 on",
        "`dml-tile device --target TARGET` says which level is there and what to ship; --via ort, for ONNX Runtime",
    ),
    ResultCode(
        HRESULT.DXGI_ERROR_DEVICE_REMOVED,
        "each call on a device that was removed: by a wrong binding or dispatch, whose own call returns nothing, or "
        "with its Direct3D 12 device",
        "ask both devices for GetDeviceRemovedReason. If DirectML removed its own, make the calls on dml_tile.Device, "
        f"which names the rule that one breaks (docs/device.md); else {_NEW_DEVICE}",
        pages.REMOVED,
    ),
    ResultCode(
        HRESULT.DXGI_ERROR_DEVICE_HUNG,
        "GetDeviceRemovedReason, where the GPU took too long for a command, or the command was wrong",
        f"{_NEW_DEVICE}; smaller dispatches take less time each",
        pages.REMOVED,
    ),
    ResultCode(
        HRESULT.DXGI_ERROR_DEVICE_RESET,
        "GetDeviceRemovedReason, where a badly formed command reset the GPU",
        f"{_NEW_DEVICE}; Direct3D's debug layer names the command",
        pages.REMOVED,
    ),
    ResultCode(
        HRESULT.DXGI_ERROR_DRIVER_INTERNAL_ERROR,
        "GetDeviceRemovedReason, where the driver failed",
        f"{_NEW_DEVICE}; try another version of the driver",
        pages.REMOVED,
    ),
    ResultCode(
        HRESULT.DXGI_ERROR_SDK_COMPONENT_MISSING,
        "DMLCreateDevice with DML_CREATE_DEVICE_FLAG_DEBUG where the debug layers are missing, by the documentation; "
        "measured was DXGI_ERROR_UNSUPPORTED, or E_INVALIDARG up to 5_0",
        "install Windows' optional feature Graphics Tools, or leave the flag out of what users get",
        pages.CREATE_DEVICE,
    ),
    ResultCode(
        HRESULT.E_NOINTERFACE,
        "each call that makes an object, for an interface that it has not, such as IDMLDevice1 below 2_1; also for an "
        "operator where a compiled one is expected",
        "compare the riid with the object, compile what is dispatched, and ask for IDMLDevice1 where the level has it",
    ),
    ResultCode(
        HRESULT.E_NOTIMPL,
        "CompileGraph, from 6_0 on, for a node of type CONSTANT",
        "make the constant an input of the graph; `dml-tile check` reports such nodes as DML-GRAPH-Type",
        pages.COMPILE_GRAPH,
    ),
    ResultCode(
        HRESULT.E_UNEXPECTED,
        "CreateOperator at 5_0 and 5_2, for some operators with a FusedActivation",
        "`dml-tile check FILE --target TARGET` says where a rule knows of it; create the activation as an operator of "
        "its own, or ship a newer DirectML",
    ),
    ResultCode(
        HRESULT.ERROR_UNHANDLED_EXCEPTION,
        "CompileOperator, by public reports: an exception within DirectML or the driver; it was not measured",
        "compile the operator alone to find it, then try another driver or a newer DirectML",
    ),
    ResultCode(
        HRESULT.E_FAIL,
        "no call of DirectML that was measured; callers, such as ONNX Runtime, return it for errors of their own, and "
        "for those that name no reason",
        "look at what the caller logged before it, and at Direct3D's debug layer",
    ),
    ResultCode(
        HRESULT.E_OUTOFMEMORY,
        "any call, where memory runs out",
        "tile in parts, or free what is not used; Device.fail lets a test see what follows (docs/device.md)",
    ),
    ResultCode(
        HRESULT.E_POINTER,
        "a call that is given a null pointer, in COM; DirectML was not seen to return it, but crashes or returns "
        "E_INVALIDARG",
        "look at who returned it: Direct3D 12, DXGI or the application",
    ),
)

RESULT_CODES: Final[dict[str, ResultCode]] = {row.hresult.name: row for row in _CODES}
"""The result codes by name."""


def result_code(text: str) -> ResultCode | None:
    """Return the first code that a text spells; None if it spells none.

    A code is its name, its digits, as ``80070057``, ``0x80070057``, ``-2147024809`` or ``2147942487``, or stands in a
    line, as ``80070057 The parameter is incorrect``.

    Raises ValueError for a number that is no code of DirectML's.
    """
    words = _WORD.findall(text)
    named = (RESULT_CODES.get(word.upper()) for word in words)
    numbers = [number for number in map(_failure, words) if number is not None]
    numbered = (row for number in numbers for row in _CODES if row.hresult == number)
    found = next(filter(None, (*named, *numbered)), None)
    if found is None and numbers:
        known = ", ".join(str(row.hresult) for row in _CODES)
        raise ValueError(f"0x{numbers[0]:08X} is no result of DirectML's; these are: {known}")
    return found


_WORD: Final = re.compile(r"(?<!\w)-?\w+")


def _failure(word: str) -> int | None:
    """Return the HRESULT of a failure that a word spells; None for another word."""
    if digits := re.fullmatch("(?:0x)?([0-9a-f]{8})", word, re.IGNORECASE | re.ASCII):
        number = int(digits[1], 16)
    elif re.fullmatch("-?[0-9]{9,10}", word, re.ASCII):
        number = int(word) + (2**32 if word.startswith("-") else 0)
    else:
        return None
    return number if _FIRST_FAILURE <= number < 2**32 else None


_FIRST_FAILURE: Final = 0x80000000
