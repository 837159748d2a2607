"""The result codes of DirectML, one a row: the calls that return them, and the next step."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from dml_tile.checks.catalogue import RULES
from dml_tile.directml import pages
from dml_tile.directml.enums import HRESULT
from dml_tile.findings import Rule


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
        "all reasons. FILE is the model, or what dml_tile/capture.h writes of the application (docs/cpp.md)",
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
    """Return the code that a text spells, as ``80070057``, ``0x80070057`` or ``E_INVALIDARG``; None for another text.

    Raises ValueError for a number that is no code of DirectML's.
    """
    digits = text.lower().removeprefix("0x")
    if not (len(digits) == _DIGITS and set(digits) <= _HEXADECIMAL):
        return RESULT_CODES.get(text.upper())
    number = int(digits, 16)
    found = next((row for row in _CODES if row.hresult == number), None)
    if found is None:
        known = ", ".join(str(row.hresult) for row in _CODES)
        raise ValueError(f"0x{number:08X} is no result of DirectML's; these are: {known}")
    return found


_DIGITS: Final = 8
_HEXADECIMAL: Final = frozenset("0123456789abcdef")
