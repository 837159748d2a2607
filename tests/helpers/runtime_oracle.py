"""An oracle for the answers of DirectML's CreateOperator to a tile.

This is an independent, plain restatement of what the runtime was measured to answer. It shares nothing
with the package under test: where the two disagree, one of them is wrong.
"""

from typing import Any

S_OK = "0x00000000"
E_INVALIDARG = "0x80070057"
CRASH = "CRASH:SIGSEGV"

UINT32_MAX = 0xFFFFFFFF

FLOAT32, FLOAT16, UINT32, UINT16, UINT8, INT32, INT16, INT8, FLOAT64, UINT64, INT64 = range(1, 12)

# Element size in bytes of each data type that Tile can take; all other values are refused.
ELEMENT_SIZE: dict[int, int] = {
    FLOAT32: 4,
    FLOAT16: 2,
    UINT32: 4,
    UINT16: 2,
    UINT8: 1,
    INT32: 4,
    INT16: 2,
    INT8: 1,
    FLOAT64: 8,
    UINT64: 8,
    INT64: 8,
}

FLOAT_TYPES = [FLOAT32, FLOAT16]
TYPES_UP_TO_32_BITS = [FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8]
TYPES_UP_TO_64_BITS = [FLOAT32, FLOAT16, INT32, INT16, INT8, UINT32, UINT16, UINT8, INT64, UINT64]

# Below 5_0 only: level, dimension counts and data types of Tile's documented support table.
SUPPORT: dict[str, tuple[list[int], list[int]]] = {
    "1_0": ([4], FLOAT_TYPES),
    "2_0": ([4], FLOAT_TYPES),
    "2_1": ([4], TYPES_UP_TO_32_BITS),
    "3_0": ([4], TYPES_UP_TO_32_BITS),
    "3_1": ([1, 2, 3, 4, 5, 6, 7, 8], TYPES_UP_TO_32_BITS),
    "4_0": ([1, 2, 3, 4, 5, 6, 7, 8], TYPES_UP_TO_32_BITS),
    "4_1": ([1, 2, 3, 4, 5, 6, 7, 8], TYPES_UP_TO_64_BITS),
}

LEVELS_UP_TO_5_2 = ["1_0", "2_0", "2_1", "3_0", "3_1", "4_0", "4_1", "5_0", "5_1", "5_2"]
LEVELS_FROM_6_0 = ["6_0", "6_1", "6_2", "6_3", "6_4"]


def is_private(tensor: dict[str, Any], level: str) -> bool:
    """Return True if the runtime takes the tensor for one of a type of its own, and reads past its description."""
    return tensor.get("Type", 1) == 0x80000000 and level in LEVELS_FROM_6_0


def tensor_answer(
    tensor: dict[str, Any] | None,
    level: str,
    *,
    is_output: bool,
    double_precision: bool,
    typed_uav_loads: bool,
    native_16_bit_ops: bool,
) -> str:
    """Return E_INVALIDARG if the tensor alone is a reason to refuse the operator, else S_OK."""
    # DML_TENSOR_DESC
    if tensor is None:
        return E_INVALIDARG
    if tensor.get("Type", 1) != 1 and not is_private(tensor, level):
        return E_INVALIDARG
    if tensor.get("NullDesc", False):
        return E_INVALIDARG

    # DataType
    data_type: int = tensor["DataType"]
    if data_type not in ELEMENT_SIZE:
        return E_INVALIDARG
    if data_type == FLOAT64 and not double_precision:
        return E_INVALIDARG
    if data_type in [UINT8, INT8] and level in LEVELS_UP_TO_5_2 and not typed_uav_loads:
        return E_INVALIDARG
    if data_type in [FLOAT16, UINT16, INT16] and not typed_uav_loads and not native_16_bit_ops:
        return E_INVALIDARG
    if level in SUPPORT and data_type not in SUPPORT[level][1]:
        return E_INVALIDARG
    element_size = ELEMENT_SIZE[data_type]

    # Flags
    flags: int = tensor["Flags"]
    if is_output and flags != 0:
        return E_INVALIDARG
    if flags not in [0, 1]:
        return E_INVALIDARG

    # DimensionCount
    count: int = tensor["DimensionCount"]
    if not 1 <= count <= 8:
        return E_INVALIDARG
    if level in SUPPORT and count not in SUPPORT[level][0]:
        return E_INVALIDARG

    # Sizes
    if tensor["Sizes"] is None:
        return E_INVALIDARG
    if len(tensor["Sizes"]) < count:
        return E_INVALIDARG
    sizes: list[int] = tensor["Sizes"][:count]
    if 0 in sizes:
        return E_INVALIDARG
    elements = 1
    for size in sizes:
        elements = elements * size
    if elements > UINT32_MAX:
        return E_INVALIDARG

    # Strides
    if tensor["Strides"] is None:
        extent = elements
    else:
        if len(tensor["Strides"]) < count:
            return E_INVALIDARG
        strides: list[int] = tensor["Strides"][:count]
        extent = 1
        for size, stride in zip(sizes, strides, strict=True):
            extent = extent + (size - 1) * stride
        if level in LEVELS_UP_TO_5_2:
            extent = extent % 2**32
        if extent == 0:
            return E_INVALIDARG
        if extent > UINT32_MAX:
            return E_INVALIDARG
        used_strides = [stride for size, stride in zip(sizes, strides, strict=True) if size > 1]
        if is_output and 0 in used_strides:
            return E_INVALIDARG
        if is_output and len(set(used_strides)) != len(used_strides):
            return E_INVALIDARG
        if is_output and elements > extent:
            return E_INVALIDARG

    # TotalTensorSizeInBytes
    total: int = tensor["TotalTensorSizeInBytes"]
    minimum = (extent * element_size + 3) // 4 * 4
    if total < minimum:
        return E_INVALIDARG
    if total // element_size > UINT32_MAX:
        return E_INVALIDARG

    # GuaranteedBaseOffsetAlignment
    alignment: int = tensor["GuaranteedBaseOffsetAlignment"]
    if 0 < alignment < 16:
        return E_INVALIDARG
    if alignment & (alignment - 1) != 0:
        return E_INVALIDARG

    return S_OK


def create_operator(
    desc: dict[str, Any] | None,
    level: str,
    *,
    double_precision: bool = True,
    typed_uav_loads: bool = True,
    native_16_bit_ops: bool = True,
) -> str:
    """Return what CreateOperator answers for a DML_TILE_OPERATOR_DESC at a feature level such as "5_0".

    The keywords say what the adapter has: DoublePrecisionFloatShaderOps, TypedUAVLoadAdditionalFormats and
    Native16BitShaderOpsSupported.
    """
    if level not in LEVELS_UP_TO_5_2 and level not in LEVELS_FROM_6_0:
        raise ValueError(f"not a DirectML feature level: {level!r}")

    if desc is None:
        return E_INVALIDARG

    # Each tensor by itself
    input_tensor: dict[str, Any] | None = desc["InputTensor"]
    output_tensor: dict[str, Any] | None = desc["OutputTensor"]
    input_answer = tensor_answer(
        input_tensor,
        level,
        is_output=False,
        double_precision=double_precision,
        typed_uav_loads=typed_uav_loads,
        native_16_bit_ops=native_16_bit_ops,
    )
    if input_tensor is None or input_answer != S_OK:
        return E_INVALIDARG
    output_answer = tensor_answer(
        output_tensor,
        level,
        is_output=True,
        double_precision=double_precision,
        typed_uav_loads=typed_uav_loads,
        native_16_bit_ops=native_16_bit_ops,
    )
    if output_tensor is None or output_answer != S_OK:
        return E_INVALIDARG

    # The two tensors together
    if input_tensor["DataType"] != output_tensor["DataType"]:
        return E_INVALIDARG
    if input_tensor["DimensionCount"] != output_tensor["DimensionCount"]:
        return E_INVALIDARG

    # Repeats: the array is read last, without a check for null
    count: int = desc["RepeatsCount"]
    if count != input_tensor["DimensionCount"]:
        return E_INVALIDARG
    if desc["Repeats"] is None:
        return CRASH
    if len(desc["Repeats"]) < count:
        return E_INVALIDARG
    for i in range(count):
        if input_tensor["Sizes"][i] * desc["Repeats"][i] % 2**32 != output_tensor["Sizes"][i]:
            return E_INVALIDARG

    if is_private(input_tensor, level) or is_private(output_tensor, level):
        return CRASH

    return S_OK
