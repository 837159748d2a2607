"""DirectML's enumerations and constants, with their C names; TensorDataType is in ``data_types``.

Page: https://learn.microsoft.com/en-us/windows/win32/api/directml/ (DirectML.h)
"""

from __future__ import annotations

from enum import IntEnum, IntFlag
from functools import cached_property
from typing import Final

UINT_MAX: Final = 2**32 - 1
UINT64_MAX: Final = 2**64 - 1

DML_TENSOR_DIMENSION_COUNT_MAX1: Final = 8
DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT: Final = 16
DML_PERSISTENT_BUFFER_ALIGNMENT: Final = 256


class TensorType(IntEnum):
    """DML_TENSOR_TYPE."""

    INVALID = 0
    BUFFER = 1


class TensorFlags(IntFlag):
    """DML_TENSOR_FLAGS; the C enumerators are spelled DML_TENSOR_FLAG_…, without the S."""

    NONE = 0
    OWNED_BY_DML = 1


OWNED_BY_DML: Final = int(TensorFlags.OWNED_BY_DML)
"""``&`` of integers costs a tenth of ``&`` of enumerators."""


class OperatorType(IntEnum):
    """The enumerators of DML_OPERATOR_TYPE that stand in code; ``operators`` has all of them. DML_OPERATOR_… in C."""

    INVALID = 0
    TILE = 70


class GraphNodeType(IntEnum):
    """DML_GRAPH_NODE_TYPE."""

    INVALID = 0
    OPERATOR = 1
    CONSTANT = 2


class GraphEdgeType(IntEnum):
    """DML_GRAPH_EDGE_TYPE."""

    INVALID = 0
    INPUT = 1
    OUTPUT = 2
    INTERMEDIATE = 3


class FeatureLevel(IntEnum):
    """DML_FEATURE_LEVEL. Members are ordered as the levels are.

    Page: https://learn.microsoft.com/en-us/windows/ai/directml/dml-feature-level-history
    """

    DML_FEATURE_LEVEL_1_0 = 0x1000
    DML_FEATURE_LEVEL_2_0 = 0x2000
    DML_FEATURE_LEVEL_2_1 = 0x2100
    DML_FEATURE_LEVEL_3_0 = 0x3000
    DML_FEATURE_LEVEL_3_1 = 0x3100
    DML_FEATURE_LEVEL_4_0 = 0x4000
    DML_FEATURE_LEVEL_4_1 = 0x4100
    DML_FEATURE_LEVEL_5_0 = 0x5000
    DML_FEATURE_LEVEL_5_1 = 0x5100
    DML_FEATURE_LEVEL_5_2 = 0x5200
    DML_FEATURE_LEVEL_6_0 = 0x6000
    DML_FEATURE_LEVEL_6_1 = 0x6100
    DML_FEATURE_LEVEL_6_2 = 0x6200
    DML_FEATURE_LEVEL_6_3 = 0x6300
    DML_FEATURE_LEVEL_6_4 = 0x6400

    @cached_property
    def short(self) -> str:
        """The level without its prefix: ``"4_1"``."""
        return self.name.removeprefix("DML_FEATURE_LEVEL_")

    def __str__(self) -> str:
        return self.short

    @classmethod
    def parse(cls, value: str | int) -> FeatureLevel:
        """Return the level named by ``"4_1"``, ``"4.1"``, ``"DML_FEATURE_LEVEL_4_1"``, ``0x4100`` or ``"0x4100"``.

        Raises ValueError for anything else, also for integers that are no enumerator.
        """
        if isinstance(value, str):
            short = value.strip().upper().removeprefix("DML_FEATURE_LEVEL_").replace(".", "_")
            level = cls.__members__.get(f"DML_FEATURE_LEVEL_{short}")
            level = level or next((level for level in cls if f"0X{level.value:X}" == short), None)
            if level is not None:
                return level
        elif type(value) in (int, cls) and value in cls._value2member_map_:
            return cls(value)
        shown = f"{value:#x}" if isinstance(value, int) else repr(value)
        meant = next((level.short for level in cls if level.short.replace("_", "") == str(value)), None)
        if isinstance(value, int) and meant:  # Python reads 4_1 as 41
            raise ValueError(f"{value} is no feature level; in Python {meant} is the integer {value}, write {meant!r}")
        raise ValueError(f"{shown} is no feature level; expected one of {', '.join(level.short for level in cls)}")


class Feature(IntEnum):
    """DML_FEATURE, the queries of IDMLDevice::CheckFeatureSupport."""

    TENSOR_DATA_TYPE_SUPPORT = 0
    FEATURE_LEVELS = 1


class ExecutionFlags(IntFlag):
    """DML_EXECUTION_FLAGS; the C enumerators are spelled DML_EXECUTION_FLAG_…, without the S."""

    NONE = 0
    ALLOW_HALF_PRECISION_COMPUTATION = 1
    DISABLE_META_COMMANDS = 2
    DESCRIPTORS_VOLATILE = 4


class CreateDeviceFlags(IntFlag):
    """DML_CREATE_DEVICE_FLAGS; the C enumerators are spelled DML_CREATE_DEVICE_FLAG_…, without the S."""

    NONE = 0
    DEBUG = 1


class BindingType(IntEnum):
    """DML_BINDING_TYPE."""

    NONE = 0
    BUFFER = 1
    BUFFER_ARRAY = 2


class HeapType(IntEnum):
    """D3D12_HEAP_TYPE.

    Page: https://learn.microsoft.com/en-us/windows/win32/api/d3d12/ne-d3d12-d3d12_heap_type
    """

    DEFAULT = 1
    UPLOAD = 2
    READBACK = 3
    CUSTOM = 4
    GPU_UPLOAD = 5


class ResourceFlags(IntFlag):
    """The D3D12_RESOURCE_FLAGS that a buffer can have; the C enumerators are spelled D3D12_RESOURCE_FLAG_….

    Page: https://learn.microsoft.com/en-us/windows/win32/api/d3d12/ne-d3d12-d3d12_resource_flags
    """

    NONE = 0
    ALLOW_UNORDERED_ACCESS = 4
    DENY_SHADER_RESOURCE = 8
    ALLOW_CROSS_ADAPTER = 0x10
    ALLOW_SIMULTANEOUS_ACCESS = 0x20


class ResourceDimension(IntEnum):
    """D3D12_RESOURCE_DIMENSION.

    Page: https://learn.microsoft.com/en-us/windows/win32/api/d3d12/ne-d3d12-d3d12_resource_dimension
    """

    UNKNOWN = 0
    BUFFER = 1
    TEXTURE1D = 2
    TEXTURE2D = 3
    TEXTURE3D = 4


class CommandListType(IntEnum):
    """D3D12_COMMAND_LIST_TYPE.

    Page: https://learn.microsoft.com/en-us/windows/win32/api/d3d12/ne-d3d12-d3d12_command_list_type
    """

    DIRECT = 0
    BUNDLE = 1
    COMPUTE = 2
    COPY = 3
    VIDEO_DECODE = 4
    VIDEO_PROCESS = 5
    VIDEO_ENCODE = 6


FIRST_FAILURE: Final = 0x80000000
"""The smallest HRESULT of a failure."""


class HRESULT(IntEnum):
    """The result codes that DirectML gives, or that its callers pass on, as unsigned 32-bit values.

    ERROR_UNHANDLED_EXCEPTION stands for the HRESULT of that Windows error.
    """

    S_OK = 0
    E_NOTIMPL = 0x80004001
    E_NOINTERFACE = 0x80004002
    E_POINTER = 0x80004003
    E_FAIL = 0x80004005
    E_UNEXPECTED = 0x8000FFFF
    E_OUTOFMEMORY = 0x8007000E
    E_INVALIDARG = 0x80070057
    ERROR_UNHANDLED_EXCEPTION = 0x8007023E
    DXGI_ERROR_INVALID_CALL = 0x887A0001
    DXGI_ERROR_UNSUPPORTED = 0x887A0004
    DXGI_ERROR_DEVICE_REMOVED = 0x887A0005
    DXGI_ERROR_DEVICE_HUNG = 0x887A0006
    DXGI_ERROR_DEVICE_RESET = 0x887A0007
    DXGI_ERROR_DRIVER_INTERNAL_ERROR = 0x887A0020
    DXGI_ERROR_SDK_COMPONENT_MISSING = 0x887A002D
    ERROR_GRAPHICS_INVALID_DISPLAY_ADAPTER = 0xC0262002

    def __str__(self) -> str:
        return f"{self.name} 0x{self.value:08X}"

    @property
    def hex(self) -> str:
        """The code as it is usually searched for: ``"0x80070057"``."""
        return f"0x{self.value:08X}"


DEVICE_REMOVED: Final = HRESULT.DXGI_ERROR_DEVICE_REMOVED
