"""The recorded calls that have no counterpart in Python: with interface ids, null pointers and sizes of structs.

A case is told by its group and its id, as in ``interfaces.jsonl``.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from ctypes import addressof, c_uint32, c_uint64, c_void_p, create_string_buffer
from functools import cache
from typing import Any, Final

from dml_tile import BindingDesc, BindingTableDesc
from dml_tile.directml.enums import Feature, FeatureLevel
from tests.helpers.descriptors import GOOD, page_tile
from tests.recorder import interfaces
from tests.recorder.devices import RealDevice, RealDirect3DDevice
from tests.recorder.interfaces import UNTOUCHED, Object, interface_id
from tests.recorder.memory import guarded
from tests.recorder.releases import Release
from tests.recorder.runtime import Adapter, create_device, hexadecimal, host_device

Case = dict[str, Any]
Result = dict[str, Any]

UNFILLED: Final = b"\xcc" * 16
"""What the room for an answer holds before a query."""
UNSUPPORTED_LEVEL: Final = 0x7000


def answer(release: Release, case: Case) -> Result:
    """What a release answers in a case, in the form of the recorded files. Raises KeyError for an unknown group."""
    return CALLS[case["group"]](release, case["id"])


def _made(result: tuple[int, int | None]) -> Result:
    hresult, address = result
    pointer = {UNTOUCHED: "untouched", None: "null"}.get(address, "object")
    return {"hresult": hexadecimal(hresult), "ppv": pointer}


@cache
def _real(release: Release) -> RealDevice:
    return RealDevice(release, direct3d_device=RealDirect3DDevice())


def _device(release: Release) -> Object:
    return _real(release).object


def _operator(release: Release) -> Object:
    return _real(release).create_operator(GOOD).object


def _compiled(release: Release) -> Object:
    return _real(release).compile_operator(_real(release).create_operator(GOOD)).object


def _create_device(release: Release, name: str) -> Result:
    return _made(
        create_device(
            release,
            None if "null d3d12 device" in name else host_device(Adapter()),
            minimum=UNSUPPORTED_LEVEL if "unsupported fl" in name else FeatureLevel.DML_FEATURE_LEVEL_1_0,
            interface=None if "null riid" in name else "IDMLDevice" if "null" in name else name,
            with_result="null ppv" not in name,
        )
    )


def _query_interface(made: Object, interface: str) -> Result:
    hresult = made.call(interfaces.QUERY_INTERFACE, c_uint32, interface_id(interface), c_void_p())
    return {"hresult": hexadecimal(hresult)}


def _query(release: Release, name: str, feature: int, query: bytes) -> Result:
    """CheckFeatureSupport, with the sizes and the null pointers that the name of the case tells of."""
    support, given = create_string_buffer(UNFILLED, 16), list[Any]()
    for word, room, size in (("query", create_string_buffer(query, 64), len(query)), ("support", support, 4)):
        told = re.search(rf"{word} ?size (\d+)", name)
        is_null = name.startswith((f"null {word}", "null both"))
        given += [c_uint32(int(told[1]) if told else size), None if is_null else room]
    hresult = _device(release).call(interfaces.CHECK_FEATURE_SUPPORT, c_uint32, c_uint32(feature), *given)
    return {"hresult": hexadecimal(hresult), "out": f"{struct.unpack_from('<I', support)[0]:#x}"}


def _query_levels(release: Release, name: str) -> Result:
    array = (c_uint32 * len(FeatureLevel))(*FeatureLevel)
    count = {"null list count 0": 0, "null list count 1": 1}.get(name, len(array))
    query = struct.pack("<IIQ", count, 0, 0 if name.startswith("null list") else addressof(array))
    return _query(release, name, Feature.FEATURE_LEVELS, query)


def _query_data_type(release: Release, name: str) -> Result:
    data_type = 99 if name.startswith("bad type") else 1
    return _query(release, name, Feature.TENSOR_DATA_TYPE_SUPPORT, struct.pack("<I", data_type))


def _create_operator(release: Release, name: str) -> Result:
    """The case's descriptor, ``good`` or ``bad``, with a null pointer or an interface after its name."""
    desc, _, wanted = name.partition(" ")
    tile = page_tile(Repeats=[1, 1, 3, 4]) if desc == "bad" else GOOD
    return _make(release, wanted, interfaces.CREATE_OPERATOR, "IDMLOperator", guarded(tile))


def _make(release: Release, wanted: str, method: int, interface: str, *arguments: Any) -> Result:
    """Call a method that makes something; ``wanted`` names another interface, or which pointer is null."""
    null = wanted if wanted.startswith("null") else ""
    named = None if null.startswith("null riid") else interface if null else wanted or interface
    return _made(_device(release).make(method, named, *arguments, with_result=not null.startswith("null ppv")))


def _compile(release: Release, name: str) -> Result:
    given = interfaces.COMPILE_OPERATOR, "IDMLCompiledOperator", _operator(release)
    if name == "twice":
        (_, first), (hresult, second) = (_device(release).make(*given, c_uint32(0)) for _ in "12")
        return {"hresult": hexadecimal(hresult), "same_object": first == second}
    return _make(release, name, *given, c_uint32(8 * ("bad" in name)))


def _create_table(release: Release, wanted: str) -> Result:
    desc = interfaces.DML_BINDING_TABLE_DESC(_compiled(release).address, 0x1000, 0x1000, 16)
    return _make(release, wanted, interfaces.CREATE_BINDING_TABLE, "IDMLBindingTable", desc)


def _create_initializer(release: Release, _: str) -> Result:
    given = interfaces.CREATE_OPERATOR_INITIALIZER, "IDMLOperatorInitializer"
    return _make(release, "", *given, c_uint32(0), None)


def _create_recorder(release: Release, wanted: str) -> Result:
    return _make(release, wanted, interfaces.CREATE_COMMAND_RECORDER, "IDMLCommandRecorder")


def _after_removal(release: Release, name: str) -> Result:
    """A call of COM's after a wrong binding, or the removal of the Direct3D device."""
    host = RealDirect3DDevice()
    made = RealDevice(release, direct3d_device=host)
    compiled = made.compile_operator(made.create_operator(GOOD))
    if name.endswith("Direct3D"):
        host.remove()
    else:
        made.create_binding_table(BindingTableDesc(compiled)).bind_inputs([BindingDesc()])
    match name.partition(" ")[0]:
        case "GetDevice":
            hresult, _ = compiled.object.make(interfaces.GET_DEVICE, "IDMLDevice")
        case "SetName":
            hresult = made.object.call(interfaces.SET_NAME, c_uint32, create_string_buffer("n\0".encode("utf-32-le")))
        case _:
            hresult = made.object.call(interfaces.EVICT, c_uint32, c_uint32(1), (c_uint64 * 1)(compiled.object.address))
    return {"hresult": hexadecimal(hresult), "removed_reason": hexadecimal(made.get_device_removed_reason())}


CALLS: Final[dict[str, Callable[[Release, str], Result]]] = {
    "create_device_iid": _create_device,
    "create_device_null": _create_device,
    "device_qi": lambda release, name: _query_interface(_device(release), name),
    "feature_levels_bad": _query_levels,
    "tensor_data_type_bad": _query_data_type,
    "create_operator": _create_operator,
    "create_operator_iid": _create_operator,
    "operator_qi": lambda release, name: _query_interface(_operator(release), name),
    "compile": _compile,
    "compile_iid": _compile,
    "compiled_qi": lambda release, name: _query_interface(_compiled(release), name),
    "initializer": _create_initializer,
    "create_binding_table_iid": _create_table,
    "create_recorder_iid": _create_recorder,
    "after_removal": _after_removal,
}
