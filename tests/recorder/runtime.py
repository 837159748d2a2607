"""The real DirectML over the stand-in: its devices, and what they answer to a descriptor."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Sequence
from ctypes import RTLD_GLOBAL, c_int, c_uint32, c_uint64, c_void_p
from functools import cache
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple

from dml_tile import BindingProperties
from dml_tile.descriptors.operator import OperatorDesc
from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.targets import Target
from tests.recorder.interfaces import (
    COMPILE_OPERATOR,
    CREATE_OPERATOR,
    DML_BINDING_PROPERTIES,
    GET_BINDING_PROPERTIES,
    UNTOUCHED,
    Object,
    interface_id,
)
from tests.recorder.memory import guarded
from tests.recorder.releases import CACHE, RELEASES, Release
from tests.recorder.stand_in import LIBRARIES, build
from tests.recorder.workers import Crash, ask_each

Row = dict[str, Any]
STAND_IN: Final = CACHE / "stand_in"


class Adapter(NamedTuple):
    """What of an adapter decides on data types."""

    double_precision: bool = True
    typed_uav_loads: bool = True
    native_16_bit_ops: bool = True

    def target(self, release: Release) -> Target:
        """What the emulator simulates, to be held to a release on this adapter."""
        return Target(FeatureLevel.parse(release.level), "", *self)


ADAPTERS: Final = tuple(Adapter(double, loads) for double in (True, False) for loads in (True, False))
"""Those of the comparison; ``adapters.jsonl`` has those without native 16-bit operations."""


class Answer(NamedTuple):
    """What a call of CreateOperator came to."""

    hresult: str
    """As in ``0x80070057``; ``CRASH:SIGSEGV`` for a process that died."""
    persistent_resource_size: int | None = None
    """In bytes, after CompileOperator; None if the operator was refused."""

    def __str__(self) -> str:
        size = self.persistent_resource_size
        return self.hresult if size is None else f"{self.hresult}, with a PersistentResourceSize of {size}"


@cache
def stand_in() -> ctypes.CDLL:
    """The stand-in for Direct3D 12, built if need be, and loaded with that for DXCore. Raises BuildError."""
    build(STAND_IN)
    direct3d, _ = (ctypes.CDLL(str(STAND_IN / name), RTLD_GLOBAL) for name in LIBRARIES)
    for name, arguments in (
        ("device", (c_int, c_int, c_int)),
        ("resource", (c_void_p, c_uint64, *[c_uint32] * 5)),
        ("command_list", (c_void_p, c_uint32, c_int)),
    ):
        function = getattr(direct3d, f"stand_in_{name}")
        function.restype, function.argtypes = c_void_p, arguments
    direct3d.stand_in_remove_device.restype, direct3d.stand_in_remove_device.argtypes = None, (c_void_p, c_uint32)
    return direct3d


@cache
def directml(release: Release) -> ctypes.CDLL:
    """DirectML itself, loaded over the stand-in."""
    stand_in()
    library = ctypes.CDLL(str(release.library))
    library.DMLCreateDevice.restype = library.DMLCreateDevice1.restype = c_uint32
    library.DMLCreateDevice.argtypes = (c_void_p, c_uint32, c_void_p, c_void_p)
    library.DMLCreateDevice1.argtypes = (c_void_p, c_uint32, c_uint32, c_void_p, c_void_p)
    return library


def host_device(adapter: Adapter) -> Object:
    """A device of Direct3D 12, as the stand-in makes it, on an adapter with these capabilities."""
    return Object(stand_in().stand_in_device(*adapter))


def create_device(
    release: Release,
    host: Object | None,
    *,
    flags: int = 0,
    minimum: int | None = None,
    interface: str | None = "IDMLDevice",
    with_result: bool = True,
) -> tuple[int, int | None]:
    """DMLCreateDevice, or DMLCreateDevice1 if there is a minimum: the HRESULT, and what the out-pointer holds."""
    result = c_void_p(UNTOUCHED)
    wanted = None if interface is None else ctypes.addressof(interface_id(interface))
    out = ctypes.addressof(result) if with_result else None
    address = None if host is None else host.address
    if minimum is None:
        return directml(release).DMLCreateDevice(address, flags, wanted, out), result.value
    return directml(release).DMLCreateDevice1(address, flags, minimum, wanted, out), result.value


def hexadecimal(hresult: int) -> str:
    """An HRESULT as in the recorded files: ``0x80070057``."""
    return f"0x{hresult & 0xFFFFFFFF:08X}"


def ask_runtime(
    descs: Sequence[TileOperatorDesc | OperatorDesc], release: Release, adapter: Adapter = ADAPTERS[0]
) -> Iterator[Answer]:
    """What a release answers to each descriptor, in workers."""
    for answer in ask_each(descs, _creation(release, adapter)):
        yield Answer(f"CRASH:{answer.signal}") if isinstance(answer, Crash) else answer


def answered_operators(rows: Sequence[Row]) -> Iterator[Row]:
    """What the release of each line's level answers to its descriptor, as lines of a recorded file."""
    releases = {release.operator_level.short: release for release in RELEASES}
    for level, of_level in groupby(rows, key=itemgetter("level")):
        asked = list(of_level)
        descs = [OperatorDesc.model_validate(row["desc"]) for row in asked]
        for row, answer in zip(asked, ask_runtime(descs, releases[level]), strict=True):
            yield row | {"hresult": answer.hresult}


@cache
def _creation(release: Release, adapter: Adapter) -> Callable[[TileOperatorDesc | OperatorDesc], Answer]:
    """What a device answers to a descriptor. It compiles bare tiles alone: at some operators that is a crash."""
    hresult, address = create_device(release, host_device(adapter))
    assert address, hexadecimal(hresult)
    made = Object(address)

    def answer(desc: TileOperatorDesc | OperatorDesc) -> Answer:
        hresult, address = made.make(CREATE_OPERATOR, "IDMLOperator", guarded(desc))
        size = None
        if address is not None:
            operator = Object(address)
            if isinstance(desc, TileOperatorDesc):
                size = _persistent_resource_size(made, operator)
            operator.release()
        return Answer(hexadecimal(hresult), size)

    return answer


def _persistent_resource_size(made: Object, operator: Object) -> int | None:
    """What CompileOperator, without flags, has GetBindingProperties say; None where it fails."""
    _, address = made.make(COMPILE_OPERATOR, "IDMLCompiledOperator", operator, c_uint32(0))
    if address is None:
        return None
    compiled = Object(address)
    size = binding_properties(compiled).persistent_resource_size
    compiled.release()
    return size


def binding_properties(dispatchable: Object) -> BindingProperties:
    """GetBindingProperties: how many descriptors, and bytes of temporary and persistent memory, it needs."""
    properties = dispatchable.call(GET_BINDING_PROPERTIES, DML_BINDING_PROPERTIES)
    return BindingProperties(*(getattr(properties, field[0]) for field in DML_BINDING_PROPERTIES._fields_))
