"""DirectML's enumerations, constants and operators, with their C names and values; TensorDataType is in ``data_types``.

Page: https://learn.microsoft.com/en-us/windows/win32/api/directml/ (DirectML.h)
"""

from __future__ import annotations

from enum import IntEnum, IntFlag
from typing import Final

UINT_MAX: Final = 2**32 - 1
UINT64_MAX: Final = 2**64 - 1

DML_TENSOR_DIMENSION_COUNT_MAX: Final = 5
DML_TENSOR_DIMENSION_COUNT_MAX1: Final = 8
DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT: Final = 16
DML_TEMPORARY_BUFFER_ALIGNMENT: Final = 256
DML_PERSISTENT_BUFFER_ALIGNMENT: Final = 256


class TensorType(IntEnum):
    """DML_TENSOR_TYPE."""

    INVALID = 0
    BUFFER = 1


class TensorFlags(IntFlag):
    """DML_TENSOR_FLAGS; the C enumerators are spelled DML_TENSOR_FLAG_…, without the S."""

    NONE = 0
    OWNED_BY_DML = 1


class OperatorType(IntEnum):
    """The enumerators of DML_OPERATOR_TYPE that this package knows; spelled DML_OPERATOR_… in C."""

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

    @property
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


class HRESULT(IntEnum):
    """The result codes that DirectML gives, as unsigned 32-bit values."""

    S_OK = 0
    E_NOTIMPL = 0x80004001
    E_NOINTERFACE = 0x80004002
    E_POINTER = 0x80004003
    E_INVALIDARG = 0x80070057
    DXGI_ERROR_UNSUPPORTED = 0x887A0004
    DXGI_ERROR_DEVICE_REMOVED = 0x887A0005
    DXGI_ERROR_DEVICE_HUNG = 0x887A0006
    DXGI_ERROR_DEVICE_RESET = 0x887A0007
    DXGI_ERROR_DRIVER_INTERNAL_ERROR = 0x887A0020
    DXGI_ERROR_SDK_COMPONENT_MISSING = 0x887A002D

    def __str__(self) -> str:
        return f"{self.name} 0x{self.value:08X}"

    @property
    def hex(self) -> str:
        """The code as it is usually searched for: ``"0x80070057"``."""
        return f"0x{self.value:08X}"


OPERATOR_PREFIX: Final = "DML_OPERATOR_"

# In the order of DML_OPERATOR_TYPE: the index of a name is its value. One paragraph for each level that adds operators.
_OPERATOR_NAMES: Final = """
INVALID ELEMENT_WISE_IDENTITY ELEMENT_WISE_ABS ELEMENT_WISE_ACOS ELEMENT_WISE_ADD ELEMENT_WISE_ASIN
ELEMENT_WISE_ATAN ELEMENT_WISE_CEIL ELEMENT_WISE_CLIP ELEMENT_WISE_COS ELEMENT_WISE_DIVIDE
ELEMENT_WISE_EXP ELEMENT_WISE_FLOOR ELEMENT_WISE_LOG ELEMENT_WISE_LOGICAL_AND
ELEMENT_WISE_LOGICAL_EQUALS ELEMENT_WISE_LOGICAL_GREATER_THAN ELEMENT_WISE_LOGICAL_LESS_THAN
ELEMENT_WISE_LOGICAL_NOT ELEMENT_WISE_LOGICAL_OR ELEMENT_WISE_LOGICAL_XOR ELEMENT_WISE_MAX
ELEMENT_WISE_MEAN ELEMENT_WISE_MIN ELEMENT_WISE_MULTIPLY ELEMENT_WISE_POW ELEMENT_WISE_CONSTANT_POW
ELEMENT_WISE_RECIP ELEMENT_WISE_SIN ELEMENT_WISE_SQRT ELEMENT_WISE_SUBTRACT ELEMENT_WISE_TAN
ELEMENT_WISE_THRESHOLD ELEMENT_WISE_QUANTIZE_LINEAR ELEMENT_WISE_DEQUANTIZE_LINEAR ACTIVATION_ELU
ACTIVATION_HARDMAX ACTIVATION_HARD_SIGMOID ACTIVATION_IDENTITY ACTIVATION_LEAKY_RELU
ACTIVATION_LINEAR ACTIVATION_LOG_SOFTMAX ACTIVATION_PARAMETERIZED_RELU
ACTIVATION_PARAMETRIC_SOFTPLUS ACTIVATION_RELU ACTIVATION_SCALED_ELU ACTIVATION_SCALED_TANH
ACTIVATION_SIGMOID ACTIVATION_SOFTMAX ACTIVATION_SOFTPLUS ACTIVATION_SOFTSIGN ACTIVATION_TANH
ACTIVATION_THRESHOLDED_RELU CONVOLUTION GEMM REDUCE AVERAGE_POOLING LP_POOLING MAX_POOLING
ROI_POOLING SLICE CAST SPLIT JOIN PADDING VALUE_SCALE_2D UPSAMPLE_2D GATHER SPACE_TO_DEPTH
DEPTH_TO_SPACE TILE TOP_K BATCH_NORMALIZATION MEAN_VARIANCE_NORMALIZATION
LOCAL_RESPONSE_NORMALIZATION LP_NORMALIZATION RNN LSTM GRU

ELEMENT_WISE_SIGN ELEMENT_WISE_IS_NAN ELEMENT_WISE_ERF ELEMENT_WISE_SINH ELEMENT_WISE_COSH
ELEMENT_WISE_TANH ELEMENT_WISE_ASINH ELEMENT_WISE_ACOSH ELEMENT_WISE_ATANH ELEMENT_WISE_IF
ELEMENT_WISE_ADD1 ACTIVATION_SHRINK MAX_POOLING1 MAX_UNPOOLING DIAGONAL_MATRIX SCATTER_ELEMENTS
ONE_HOT RESAMPLE

ELEMENT_WISE_BIT_SHIFT_LEFT ELEMENT_WISE_BIT_SHIFT_RIGHT ELEMENT_WISE_ROUND ELEMENT_WISE_IS_INFINITY
ELEMENT_WISE_MODULUS_TRUNCATE ELEMENT_WISE_MODULUS_FLOOR FILL_VALUE_CONSTANT FILL_VALUE_SEQUENCE
CUMULATIVE_SUMMATION REVERSE_SUBSEQUENCES GATHER_ELEMENTS GATHER_ND SCATTER_ND MAX_POOLING2 SLICE1
TOP_K1 DEPTH_TO_SPACE1 SPACE_TO_DEPTH1 MEAN_VARIANCE_NORMALIZATION1 RESAMPLE1
MATRIX_MULTIPLY_INTEGER QUANTIZED_LINEAR_MATRIX_MULTIPLY CONVOLUTION_INTEGER
QUANTIZED_LINEAR_CONVOLUTION

ELEMENT_WISE_BIT_AND ELEMENT_WISE_BIT_OR ELEMENT_WISE_BIT_XOR ELEMENT_WISE_BIT_NOT
ELEMENT_WISE_BIT_COUNT ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL
ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL ACTIVATION_CELU ACTIVATION_RELU_GRAD AVERAGE_POOLING_GRAD
MAX_POOLING_GRAD RANDOM_GENERATOR NONZERO_COORDINATES RESAMPLE_GRAD SLICE_GRAD ADAM_OPTIMIZER ARGMIN
ARGMAX ROI_ALIGN GATHER_ND1

ELEMENT_WISE_ATAN_YX ELEMENT_WISE_CLIP_GRAD ELEMENT_WISE_DIFFERENCE_SQUARE
LOCAL_RESPONSE_NORMALIZATION_GRAD CUMULATIVE_PRODUCT BATCH_NORMALIZATION_GRAD

ELEMENT_WISE_QUANTIZED_LINEAR_ADD DYNAMIC_QUANTIZE_LINEAR ROI_ALIGN1

ROI_ALIGN_GRAD BATCH_NORMALIZATION_TRAINING BATCH_NORMALIZATION_TRAINING_GRAD

ELEMENT_WISE_CLIP1 ELEMENT_WISE_CLIP_GRAD1 PADDING1 ELEMENT_WISE_NEGATE

ACTIVATION_GELU ACTIVATION_SOFTMAX1 ACTIVATION_LOG_SOFTMAX1 ACTIVATION_HARDMAX1 RESAMPLE2
RESAMPLE_GRAD1 DIAGONAL_MATRIX1

MULTIHEAD_ATTENTION

LP_POOLING1 AVERAGE_POOLING1 ACTIVATION_SWISH ACTIVATION_HARD_SWISH QUANTIZED_LINEAR_AVERAGE_POOLING
MATRIX_MULTIPLY_INTEGER_TO_FLOAT

MEAN_VARIANCE_NORMALIZATION2 MULTIHEAD_ATTENTION1 QUANTIZE DEQUANTIZE

RESAMPLE3 FOLD UNFOLD
"""

OPERATORS: Final = tuple(f"{OPERATOR_PREFIX}{name}" for name in _OPERATOR_NAMES.split())
"""The full C names."""


def operator_name(value: int) -> str:
    """Return the full C name of an operator, or ``operator 1000`` for a value without one."""
    return OPERATORS[value] if value < len(OPERATORS) else f"operator {value}"


def is_operator(name: str) -> bool:
    """Return True for the name of an operator, in full or without its prefix."""
    full = f"{OPERATOR_PREFIX}{name.removeprefix(OPERATOR_PREFIX)}"
    return full in OPERATORS[1:] or full == "DML_OPERATOR_SCATTER"
