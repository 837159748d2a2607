"""DirectML's COM objects: their interfaces, and calls of their methods, by the x86-64 convention of Linux.

A method is named by its place in the interface's table of functions, as DirectML.h declares it.
"""

from __future__ import annotations

import ctypes
import uuid
from collections.abc import Mapping
from ctypes import CFUNCTYPE, POINTER, Structure, addressof, c_uint32, c_uint64, c_void_p
from functools import cache
from typing import Any, Final

INTERFACE_IDS: Final[Mapping[str, str]] = {
    "IUnknown": "00000000-0000-0000-c000-000000000046",
    "IDMLObject": "c8263aac-9e0c-4a2d-9b8e-007521a3317c",
    "IDMLDevice": "6dbd6437-96fd-423f-a98c-ae5e7c2a573f",
    "IDMLDevice1": "a0884f9a-d2be-4355-aa5d-5901281ad1d2",
    "IDMLDeviceChild": "27e83142-8165-49e3-974e-2fd66e4cb69d",
    "IDMLOperator": "26caae7a-3081-4633-9581-226fbe57695d",
    "IDMLCompiledOperator": "6b15e56a-bf5c-4902-92d8-da3a650afea4",
    "IDMLDispatchable": "dcb821a8-1039-441e-9f1c-b1759c2f3cec",
    "IDMLPageable": "b1ab0825-4542-4a4b-8617-6dde6e8f6201",
    "IDMLOperatorInitializer": "427c1113-435c-469c-8676-4d5dd072f813",
    "IDMLDebugDevice": "7d6f3ac9-394a-4ac3-92a7-390cc57a8217",
    "IDMLBindingTable": "29c687dc-de74-4e3b-ab00-1168f2fc3cfc",
    "IDMLCommandRecorder": "e6857a76-2e3e-4fdd-bff4-5d2ba10fb453",
    "Bogus": "11111111-2222-3333-4444-555555555555",
}
UNTOUCHED: Final = 0x5A5A5A
"""What an out-pointer holds before a call."""

RELEASE: Final = 2
QUERY_INTERFACE, SET_NAME, GET_DEVICE = 0, 6, 7
COMPILE_GRAPH: Final = 17
"""Of IDMLDevice1."""
CHECK_FEATURE_SUPPORT, CREATE_OPERATOR, COMPILE_OPERATOR, CREATE_OPERATOR_INITIALIZER = 7, 8, 9, 10
CREATE_COMMAND_RECORDER, CREATE_BINDING_TABLE, EVICT, MAKE_RESIDENT, GET_DEVICE_REMOVED_REASON = 11, 12, 13, 14, 15
GET_BINDING_PROPERTIES, INITIALIZER_RESET = 8, 9
BIND_INPUTS, BIND_OUTPUTS, BIND_TEMPORARY_RESOURCE, BIND_PERSISTENT_RESOURCE, TABLE_RESET = 8, 9, 10, 11, 12
RECORD_DISPATCH: Final = 8


class DML_BINDING_PROPERTIES(Structure):  # noqa: N801 - C's name
    """What a dispatchable needs; 24 bytes."""

    _fields_ = (
        ("RequiredDescriptorCount", c_uint32),
        ("TemporaryResourceSize", c_uint64),
        ("PersistentResourceSize", c_uint64),
    )


class DML_BINDING_TABLE_DESC(Structure):  # noqa: N801
    """A binding table's dispatchable and descriptors; 32 bytes."""

    _fields_ = (
        ("Dispatchable", c_void_p),
        ("CPUDescriptorHandle", c_uint64),
        ("GPUDescriptorHandle", c_uint64),
        ("SizeInDescriptors", c_uint32),
    )


class DML_BINDING_DESC(Structure):  # noqa: N801
    """A binding's kind, and the binding; 16 bytes."""

    _fields_ = (("Type", c_uint32), ("Desc", c_void_p))


class DML_BUFFER_BINDING(Structure):  # noqa: N801
    """A range of a buffer; 24 bytes."""

    _fields_ = (("Buffer", c_void_p), ("Offset", c_uint64), ("SizeInBytes", c_uint64))


class DML_BUFFER_ARRAY_BINDING(Structure):  # noqa: N801
    """Several ranges; 16 bytes."""

    _fields_ = (("BindingCount", c_uint32), ("Bindings", c_void_p))


@cache
def interface_id(name: str) -> ctypes.Array[ctypes.c_ubyte]:
    """The 16 bytes of an interface's id."""
    return (ctypes.c_ubyte * 16).from_buffer_copy(uuid.UUID(INTERFACE_IDS[name]).bytes_le)


@cache
def _prototype(returns: Any, arguments: tuple[Any, ...]) -> Any:
    return CFUNCTYPE(returns, c_void_p, *arguments)


class Object:
    """A COM object: its address, and its methods by their number."""

    __slots__ = ("address",)

    def __init__(self, address: int) -> None:
        self.address = address

    def call(self, method: int, returns: Any, *arguments: Any) -> Any:
        """Call a method; an argument is a ctypes value, an Object, a structure (its address is passed) or None."""
        given = [_argument(argument) for argument in arguments]
        table = ctypes.cast(self.address, POINTER(POINTER(c_void_p)))[0]
        function = _prototype(returns, tuple(map(type, given)))(table[method])
        return function(self.address, *given)

    def release(self) -> None:
        """Give up the reference that a method handed out."""
        self.call(RELEASE, c_uint32)

    def make(
        self, method: int, interface: str | None, *arguments: Any, with_result: bool = True
    ) -> tuple[int, int | None]:
        """Call a method that ends in an interface id and an out-pointer, either of which may be null.

        Returns the HRESULT, and what the pointer holds.
        """
        result = c_void_p(UNTOUCHED)
        wanted = None if interface is None else interface_id(interface)
        return self.call(method, c_uint32, *arguments, wanted, result if with_result else None), result.value


def _argument(argument: Any) -> Any:
    match argument:
        case None:
            return c_void_p(None)
        case Object():
            return c_void_p(argument.address)
        case Structure() | ctypes.Array() | c_void_p():
            return c_void_p(addressof(argument))
    return argument
