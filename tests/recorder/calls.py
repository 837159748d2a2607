"""The recorded calls that have no counterpart in Python: with interface ids, null pointers and sizes of structs.

A case is told by its group and its id, as in ``interfaces.jsonl``.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from ctypes import addressof, c_uint32, c_uint64, c_void_p, create_string_buffer
from functools import cache
from typing import Any, Final

from dml_tile import BindingDesc, BindingTableDesc
from dml_tile.directml.enums import Feature, FeatureLevel
from tests.helpers.descriptors import GOOD, page_tile
from tests.recorder.devices import RealDevice, RealDirect3DDevice
from tests.recorder.interfaces import (
    CHECK_FEATURE_SUPPORT,
    COMPILE_OPERATOR,
    CREATE_BINDING_TABLE,
    CREATE_COMMAND_RECORDER,
    CREATE_OPERATOR,
    CREATE_OPERATOR_INITIALIZER,
    DML_BINDING_TABLE_DESC,
    EVICT,
    GET_DEVICE,
    SET_NAME,
    UNTOUCHED,
    Object,
    interface_id,
)
from tests.recorder.memory import guarded_memory
from tests.recorder.releases import Release
from tests.recorder.runtime import Adapter, create_device, device, hexadecimal, host_device

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
def _device(release: Release) -> Object:
    return device(release, Adapter())


def _operator(release: Release) -> Object:
    _, address = _device(release).make(CREATE_OPERATOR, "IDMLOperator", guarded_memory().write(GOOD))
    assert address
    return Object(address)


def _compiled(release: Release) -> Object:
    _, address = _device(release).make(COMPILE_OPERATOR, "IDMLCompiledOperator", _operator(release), c_uint32(0))
    assert address
    return Object(address)


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
    hresult = made.call(0, c_uint32, interface_id(interface), c_void_p())
    return {"hresult": hexadecimal(hresult)}


def _number_in(name: str, word: str, otherwise: int) -> int:
    return int(name.split(word)[1].split()[0]) if word in name else otherwise


def _query(release: Release, name: str, feature: int, query: bytes, size: int) -> Result:
    """CheckFeatureSupport, with the sizes and the null pointers that the name of the case tells of."""
    asked, support = create_string_buffer(query, 64), create_string_buffer(UNFILLED, 16)
    hresult = _device(release).call(
        CHECK_FEATURE_SUPPORT,
        c_uint32,
        c_uint32(feature),
        c_uint32(0 if name == "null query size 0" else _number_in(name, "querysize", size)),
        None if name.startswith(("null query", "null both")) else asked,
        c_uint32(0 if name == "null support size 0" else _number_in(name, "supportsize", 4)),
        None if name.startswith(("null support", "null both")) else support,
    )
    return {"hresult": hexadecimal(hresult), "out": f"{struct.unpack_from('<I', support)[0]:#x}"}


def _query_levels(release: Release, name: str) -> Result:
    array = (c_uint32 * len(FeatureLevel))(*FeatureLevel)
    count = {"null list count 0": 0, "null list count 1": 1}.get(name, len(array))
    query = struct.pack("<IIQ", count, 0, 0 if name.startswith("null list") else addressof(array))
    return _query(release, name, Feature.FEATURE_LEVELS, query, len(query))


def _query_data_type(release: Release, name: str) -> Result:
    data_type = 99 if name.startswith("bad type") else 1
    return _query(release, name, Feature.TENSOR_DATA_TYPE_SUPPORT, struct.pack("<I", data_type), 4)


def _create_operator(release: Release, name: str) -> Result:
    """The case's descriptor, ``good`` or ``bad``, with a null pointer or an interface after its name."""
    desc, _, wanted = name.partition(" ")
    written = guarded_memory().write(page_tile(Repeats=[1, 1, 3, 4]) if desc == "bad" else GOOD)
    return _make(release, CREATE_OPERATOR, wanted, "IDMLOperator", written)


def _make(release: Release, method: int, wanted: str, interface: str, *arguments: Any) -> Result:
    """Call a method that makes something; ``wanted`` names another interface, or which pointer is null."""
    null = wanted if wanted.startswith("null") else ""
    named = None if null.startswith("null riid") else interface if null else wanted or interface
    return _made(_device(release).make(method, named, *arguments, with_result=not null.startswith("null ppv")))


def _compile(release: Release, name: str) -> Result:
    operator = _operator(release)
    if name == "twice":
        made = [_device(release).make(COMPILE_OPERATOR, "IDMLCompiledOperator", operator, c_uint32(0)) for _ in "12"]
        return {"hresult": hexadecimal(made[1][0]), "same_object": made[0][1] == made[1][1]}
    return _make(release, COMPILE_OPERATOR, name, "IDMLCompiledOperator", operator, c_uint32(8 * ("bad" in name)))


def _create_table(release: Release, wanted: str) -> Result:
    desc = DML_BINDING_TABLE_DESC(_compiled(release).address, 0x1000, 0x1000, 16)
    return _make(release, CREATE_BINDING_TABLE, wanted, "IDMLBindingTable", desc)


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
            hresult, _ = compiled.object.make(GET_DEVICE, "IDMLDevice")
        case "SetName":
            hresult = made.object.call(SET_NAME, c_uint32, create_string_buffer("n\0".encode("utf-32-le")))
        case _:
            hresult = made.object.call(EVICT, c_uint32, c_uint32(1), (c_uint64 * 1)(compiled.object.address))
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
    "compile_iid": lambda release, name: _make(
        release, COMPILE_OPERATOR, name, "IDMLCompiledOperator", _operator(release), c_uint32(0)
    ),
    "compiled_qi": lambda release, name: _query_interface(_compiled(release), name),
    "initializer": lambda release, _: _make(
        release, CREATE_OPERATOR_INITIALIZER, "", "IDMLOperatorInitializer", c_uint32(0), None
    ),
    "create_binding_table_iid": _create_table,
    "create_recorder_iid": lambda release, name: _make(release, CREATE_COMMAND_RECORDER, name, "IDMLCommandRecorder"),
    "after_removal": _after_removal,
}
