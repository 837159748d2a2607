"""The recorded cases of binding, dispatch and removal, played on the real DirectML."""

from __future__ import annotations

from collections.abc import Callable
from ctypes import c_uint32, c_uint64, create_string_buffer
from functools import partial
from typing import Any, Final, cast

from dml_tile.device import BindingTableDesc, Device, Direct3DDevice
from dml_tile.directml.enums import HRESULT
from dml_tile.errors import DmlError
from tests.helpers.recorded_bindings import BINDING_CASES
from tests.helpers.recorded_dispatches import DISPATCH_CASES
from tests.helpers.recorded_life import Life, Outcome
from tests.recorder import interfaces
from tests.recorder.devices import RealDevice, RealDirect3DDevice, written_table_desc
from tests.recorder.releases import Release, release_of
from tests.recorder.runtime import hexadecimal
from tests.recorder.workers import Crash, note

Case = dict[str, Any]
Result = dict[str, Any]

WITHOUT_AN_HRESULT: Final = ("Bind", "Record", "GetBindingProperties", "other", "second")
"""The beginnings of the calls that return none, or of which another device's answer is recorded."""


class RealLife(Life):
    """A device of the real DirectML, and what happened to it."""

    executes = False

    def __init__(self, level: str) -> None:
        self.level = level
        self.direct3d_device = RealDirect3DDevice()
        self.device = self.another_device(self.direct3d_device)
        self.outcome = Outcome()
        self.recorder = self.device.create_command_recorder()

    def another_device(self, direct3d_device: Direct3DDevice | None = None, minimum: str | None = None) -> Device:
        host = direct3d_device or RealDirect3DDevice()
        assert isinstance(host, RealDirect3DDevice)
        return cast("Device", RealDevice(release_of(self.level), host, minimum))

    def call(self, name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        note({**self.result, "crash_in": name})
        result, returned = None, 0
        try:
            result = function(*arguments)
            returned = result if isinstance(result, HRESULT) else 0
        except DmlError as error:
            returned = error.hresult or 0
        step = {"call": name}
        if not name.startswith(WITHOUT_AN_HRESULT):
            step["hresult"] = self.outcome.hresult = hexadecimal(returned)
        reason = hexadecimal(self.device.get_device_removed_reason())
        if reason != hexadecimal(0) and self.outcome.removed_by is None:
            self.outcome.removed_by = name
        cast("list[Any]", self.outcome.calls).append(step | {"removed": reason})
        return result

    @property
    def result(self) -> Result:
        """What the case came to until now, in the form of the recorded file."""
        steps = cast("list[Any]", self.outcome.calls)
        fields = {
            "hresult": self.outcome.hresult,
            "removed_reason": steps[-1]["removed"] if steps else None,
            "removed_by": self.outcome.removed_by,
            "steps": steps if len(steps) > 1 else None,
        }
        return {key: value for key, value in fields.items() if value is not None or key == "removed_reason"}

    def bookkeeping(self, operator: Any) -> dict[str, Callable[[], Any]]:
        device = cast("RealDevice", self.device)
        operators = (c_uint64 * 1)(operator.object.address)

        def called(method: int, *arguments: Any) -> HRESULT:
            return HRESULT(device.object.call(method, c_uint32, *arguments))

        return {
            "SetName": lambda: called(interfaces.SET_NAME, create_string_buffer("n\0".encode("utf-32-le"))),
            "Evict": lambda: called(interfaces.EVICT, c_uint32(1), operators),
            "MakeResident": lambda: called(interfaces.MAKE_RESIDENT, c_uint32(1), operators),
            "op.GetDevice": lambda: HRESULT(operator.object.make(interfaces.GET_DEVICE, "IDMLDevice")[0]),
        }


def create_as(life: Life, setup: dict[str, Any]) -> None:
    """Create a binding table, or a recorder, as another interface, or with a null pointer."""
    device, interface = cast("RealDevice", life.device), setup.get("iid", "IDMLBindingTable")
    if setup["group"] == "create_recorder_iid":
        life.call("CreateCommandRecorder", device.make, interfaces.CREATE_COMMAND_RECORDER, interface)
        return
    desc = written_table_desc(BindingTableDesc(life.compile()))
    create = partial(device.make, interfaces.CREATE_BINDING_TABLE, interface, desc, with_result="ppv" not in setup)
    life.call("CreateBindingTable", create)


PLAYS: Final = {
    **BINDING_CASES,
    **DISPATCH_CASES,
    "create_binding_table_iid": create_as,
    "create_recorder_iid": create_as,
}


def answer(release: Release, case: Case) -> Result:
    """What a case comes to at a release, in the form of the recorded file."""
    life = RealLife(release.level)
    setup = case["setup"] | {"id": case["id"], "group": case["group"]}
    PLAYS[case["group"].replace("_volatile", "")](life, setup)
    return life.result


def of_crash(crash: Crash) -> Result:
    """What a case came to in which DirectML crashed."""
    told = crash.note or {}
    result = {key: told[key] for key in ("hresult", "removed_reason", "removed_by") if key in told}
    result |= {"crash": crash.signal, "crash_in": told.get("crash_in")}
    return result | ({"steps": told["steps"]} if "steps" in told else {})
