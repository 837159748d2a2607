"""For each rule of descriptors and of lowering, what it refuses and what it accepts.

The first case of a rule is also its example in docs/rules.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dml_tile.descriptors.operator import OperatorDesc
from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.targets import Target
from dml_tile.findings import Basis
from tests.helpers.descriptors import GOOD, OPERATOR, at, changed, page_tile, row, strided

D, R, I = Basis.DOCUMENTED, Basis.RUNTIME, Basis.INFERRED  # noqa: E741


@dataclass(frozen=True)
class Case:
    """A rule, a descriptor that it refuses, a similar one that it accepts, and where and why it refuses."""

    rule: str
    refused: OperatorDesc | TileOperatorDesc | None
    accepted: OperatorDesc | TileOperatorDesc | None
    path: str
    basis: Basis = D | R
    target: Target = field(default_factory=lambda: Target(FeatureLevel.DML_FEATURE_LEVEL_6_4))
    accepted_at: Target | None = None


def operator(type_: int, desc: TileOperatorDesc | None = GOOD) -> OperatorDesc:
    return OperatorDesc(type=type_, desc=desc)


def other(name: str, data_type: str = "FLOAT32", sizes: Sequence[int] = (2,), **fields: Any) -> OperatorDesc:
    """An operator with an input and an output alike."""
    tensor = {"DataType": data_type, "Sizes": sizes}
    return OperatorDesc(type=name, desc={"InputTensor": tensor, "OutputTensor": tensor, **fields})


def square(data_type: str) -> OperatorDesc:
    """An ELEMENT_WISE_DIFFERENCE_SQUARE."""
    tensor = {"DataType": data_type, "Sizes": [2]}
    return OperatorDesc(
        type="ELEMENT_WISE_DIFFERENCE_SQUARE", desc=dict.fromkeys(("ATensor", "BTensor", "OutputTensor"), tensor)
    )


def rnn(activation: str = "ACTIVATION_TANH", **flags: int | None) -> OperatorDesc:
    """An RNN whose sizes are all 1, and flags of its tensors; None for a null one."""
    names = ("InputTensor", "WeightTensor", "RecurrenceTensor", "OutputSequenceTensor")
    tensors: dict[str, Any] = {
        name: {"DataType": "FLOAT32", "Sizes": [1] * 4, "Flags": flags.get(name, 0)}
        for name in names
        if flags.get(name, 0) is not None
    }
    descs = [{"Type": activation, "Desc": {}}]
    return OperatorDesc(type="RNN", desc={**tensors, "ActivationDescs": descs, "Direction": 0})


def gather(indices: str, data_type: str = "FLOAT32", sizes: Sequence[int] = (1, 1, 1, 2), **given: Any) -> OperatorDesc:
    """A GATHER along the last dimension, whose tensors have the same sizes."""
    tensor = {"DataType": indices, "Sizes": sizes}
    fields: dict[str, Any] = {"IndicesTensor": tensor, "Axis": len(sizes) - 1, "IndexDimensions": 1}
    return other("GATHER", data_type, sizes, **fields | given)


def padding(**fields: Any) -> OperatorDesc:
    """A PADDING of nothing."""
    given: dict[str, Any] = {
        "PaddingMode": "CONSTANT",
        "PaddingValue": 0,
        "StartPadding": [0] * 4,
        "EndPadding": [0] * 4,
    } | fields
    return other("PADDING", sizes=(1, 1, 2, 2), DimensionCount=4, **given)


def slices(offsets: Sequence[int] | None) -> OperatorDesc:
    """A SLICE that takes all."""
    return other("SLICE", Offsets=offsets, Sizes=[2], Strides=[1])


def fold(sizes: Sequence[int]) -> OperatorDesc:
    """A FOLD of windows of one element."""
    arrays: dict[str, Any] = {name: [1] for name in ("WindowSizes", "Strides", "Dilations")} | {
        "StartPadding": [0],
        "EndPadding": [0],
    }
    output = {"DataType": "FLOAT32", "Sizes": sizes}
    return other("FOLD", sizes=[1, 1, 2], OutputTensor=output, DimensionCount=1, **arrays)


def attention(mask_type: str, data_type: str = "UINT16") -> OperatorDesc:
    """A MULTIHEAD_ATTENTION without a mask; DirectML refuses one of integers at once, whatever else it is."""
    tensor = {"DataType": data_type, "Sizes": [1, 1, 1]}
    tensors = {f"{name}Tensor": tensor for name in ("Query", "Key", "Value", "Output")}
    numbers = {"Scale": 1, "MaskFilterValue": 0, "HeadCount": 1, "MaskType": mask_type}
    return OperatorDesc(type="MULTIHEAD_ATTENTION", desc=tensors | numbers)


def gemm(activation: str = "", sizes: Sequence[int] = (2, 2), **given: Any) -> OperatorDesc:
    """A GEMM of tensors of the same sizes, and an activation with some fields."""
    tensors = {f"{name}Tensor": {"DataType": "FLOAT32", "Sizes": sizes} for name in ("A", "B", "Output")}
    fused = {"FusedActivation": {"Type": activation, "Desc": given}} if activation else {}
    numbers: dict[str, Any] = {"TransA": "NONE", "TransB": "NONE", "Alpha": 1, "Beta": 1}
    return OperatorDesc(type="GEMM", desc=tensors | numbers | fused)


def clip(scale: float, bias: float) -> OperatorDesc:
    """A GEMM with a fused CLIP that scales."""
    return gemm("ELEMENT_WISE_CLIP", ScaleBias={"Scale": scale, "Bias": bias}, Min=0, Max=1)


def quantize() -> OperatorDesc:
    """A QUANTIZE, whose page does not say how many tensors it takes."""
    scale, packed = {"DataType": "FLOAT32", "Sizes": [1, 2]}, {"DataType": "INT8", "Sizes": [1, 2]}
    return OperatorDesc(
        type="QUANTIZE",
        desc={
            "InputTensor": scale,
            "QuantizationTensors": [scale],
            "OutputTensor": packed,
            "QuantizationType": "SCALE",
        },
    )


def scatter(*strides: int) -> OperatorDesc:
    """A SCATTER_ND of two rows, with these strides of its indices."""
    tensors: dict[str, Any] = {
        "IndicesTensor": {"DataType": "UINT32", "Sizes": [2, 1], "Strides": strides},
        "UpdatesTensor": {"DataType": "FLOAT32", "Sizes": [2, 3]},
    }
    return other("SCATTER_ND", sizes=(4, 3), InputDimensionCount=2, IndicesDimensionCount=2, **tensors)


def normalization(**tensors: Any) -> OperatorDesc:
    """A MEAN_VARIANCE_NORMALIZATION1."""
    fields: dict[str, Any] = {"Axes": [1], "NormalizeVariance": True, "Epsilon": 0.5}
    return other("MEAN_VARIANCE_NORMALIZATION1", sizes=(1, 2), **tensors | fields)


def source(**fields: Any) -> TileOperatorDesc:
    """The reference page's example with some fields of InputTensor changed."""
    return page_tile(**{f"InputTensor__{name}": value for name, value in fields.items()})


def output(**fields: Any) -> TileOperatorDesc:
    return page_tile(**{f"OutputTensor__{name}": value for name, value in fields.items()})


STRIDED = row("FLOAT32", [2, 2], [1, 2])
PADDED = {"OutputTensor__Strides": [8, 1], "OutputTensor__TotalTensorSizeInBytes": 48}

ROWS: Final[dict[str, list[tuple[Any, ...]]]] = {
    # rule: what it refuses, a similar descriptor that it accepts, the field, then basis and targets where they differ
    "DML-OPERATOR-null": [(None, OPERATOR, "")],
    "DML-OPERATOR-Type": [
        (operator(0), OPERATOR, "Type"),
        (operator(0x7FFFFFFF), OPERATOR, "Type"),
        (operator(0xBFFFFFFF), operator(0xC0000000), "Type"),
        (operator(1000), operator(0x80000000), "Type"),
    ],
    "DML-OPERATOR-Type-unsupported": [
        (operator(0xFFFFFFFF), OPERATOR, "Type"),
        (operator(0xC0000000), operator(0xBFFFFFFF), "Type"),
    ],
    "DML-OPERATOR-not-a-tile": [
        (operator(0x80000000), OPERATOR, "Type", D | I),
        (operator(0x8000001F), OPERATOR, "Type", D | I),
    ],
    "DML-OPERATOR-Desc-null": [
        (operator(kind, None), OPERATOR, "Desc")
        for kind in (70, 1, 1000, 0x80000000, 0xC0000000, 0xFFFFFFFF)
    ],
    "DML-OPERATOR-level": [
        (other("ACTIVATION_GELU"), other("ACTIVATION_RELU"), "Type", D | I, at("5_0")),
        (other("ACTIVATION_GELU"), other("ACTIVATION_GELU"), "Type", D | I, at("5_0"), at("5_1")),
    ],
    "DML-OPERATOR-enumerator": [
        (padding(PaddingMode="WRAP"), padding(PaddingMode="EDGE"), "PaddingMode", D | R, at("6_2")),
        (padding(PaddingMode=9), padding(PaddingMode="SYMMETRIC"), "PaddingMode", D | I),
    ],
    "DML-OPERATOR-DataType": [
        (gather("INT64"), gather("UINT32"), "IndicesTensor.DataType", D | I, at("2_1")),
        (gather("INT8"), gather("INT64"), "IndicesTensor.DataType", D | R, at("6_2")),
        (other("ELEMENT_WISE_CONSTANT_POW", "INT32", ScaleBias=None, Exponent=2),
         other("ELEMENT_WISE_CONSTANT_POW", ScaleBias=None, Exponent=2), "InputTensor.DataType", R, at("6_2")),
        (square("INT8"), square("INT32"), "ATensor.DataType", D, at("5_2")),
    ],
    "DML-OPERATOR-DataType-adapter": [
        (gather("UINT32", "FLOAT64"), gather("UINT32", "FLOAT32"), "InputTensor.DataType", I,
         at("6_4", double_precision=False)),
    ],
    "DML-OPERATOR-DimensionCount": [
        (gather("UINT32", sizes=[2]), gather("UINT32", sizes=[1, 1, 1, 2]), "InputTensor.DimensionCount", D | I,
         at("1_0")),
    ],
    "DML-OPERATOR-same": [
        (gather("UINT32", OutputTensor={"DataType": "INT8", "Sizes": [1, 1, 1, 2]}), gather("UINT32"),
         "OutputTensor.DataType", D | R, at("6_2")),
        (other("ACTIVATION_RELU", OutputTensor={"DataType": "FLOAT32", "Sizes": [3]}), other("ACTIVATION_RELU"),
         "OutputTensor.Sizes", D | I),
    ],
    "DML-OPERATOR-same-example": [(fold([1, 1, 1, 2]), fold([1, 1, 2]), "OutputTensor.DimensionCount", D)],
    "DML-OPERATOR-array": [
        (slices(None), slices([0]), "Offsets", D | R, at("6_2")),
        (slices(None), slices([0]), "Offsets", D | I),
        (padding(EndPadding=[0]), padding(EndPadding=[0, 0, 0, 0]), "EndPadding", D | R, at("6_2")),
    ],
    "DML-OPERATOR-field": [
        (gather("UINT32", Axis=4), gather("UINT32", Axis=3), "Axis", D | R, at("6_2")),
        (other("LP_NORMALIZATION", Axis=1, Epsilon=0, P=2), other("LP_NORMALIZATION", Axis=0, Epsilon=0, P=2), "Axis",
         R, at("6_2")),
    ],
    "DML-OPERATOR-Sizes": [
        (other("ACTIVATION_SOFTMAX", sizes=[2, 2, 2]), other("ACTIVATION_SOFTMAX", sizes=[1, 2, 2]),
         "InputTensor.Sizes[0]", D | R, at("6_2")),
        (padding(EndPadding=[0, 0, 0, 1]), padding(EndPadding=[0, 0, 0, 0]), "OutputTensor.Sizes[3]", D | R, at("6_2")),
    ],
    "DML-OPERATOR-Flags": [
        (rnn(InputTensor=1), rnn(), "InputTensor.Flags", D | R, at("6_2")),
    ],
    "DML-OPERATOR-field-level": [
        (other("ACTIVATION_SOFTPLUS", Steepness=0.5), other("ACTIVATION_SOFTPLUS", Steepness=1), "Steepness", D | R,
         at("6_2")),
        (other("ACTIVATION_SOFTPLUS", Steepness=0.5), other("ACTIVATION_SOFTPLUS", Steepness=0.5), "Steepness", D | I,
         at("6_1"), at("6_4")),
    ],
    "DML-OPERATOR-sources": [
        (other("ACTIVATION_SHRINK", "INT8", Bias=0, Threshold=0), other("ACTIVATION_SHRINK", Bias=0, Threshold=0),
         "InputTensor.DataType", D | I, at("5_0")),
    ],
    "DML-OPERATOR-ScaleBias": [
        (other("ELEMENT_WISE_ABS", "INT64", ScaleBias={"Scale": 2, "Bias": 0}),
         other("ELEMENT_WISE_ABS", "INT64", ScaleBias=None), "ScaleBias", R, at("6_2")),
    ],
    "DML-OPERATOR-Strides": [
        (scatter(0, 1), scatter(1, 0), "IndicesTensor.Strides[0]", R, at("5_1"), at("6_2")),
        (scatter(0, 1), scatter(1, 1), "IndicesTensor.Strides[0]", I, at("6_4")),
    ],
    "DML-OPERATOR-MaskTensor": [
        (attention("BOOLEAN"), attention("NONE", "FLOAT32"), "MaskTensor", R, at("6_2")),
    ],
    "DML-OPERATOR-given": [
        (rnn(OutputSequenceTensor=None), rnn(), "OutputSequenceTensor", R, at("6_2")),
        (normalization(BiasTensor={"DataType": "FLOAT32", "Sizes": [1, 2]}), normalization(), "ScaleTensor", D | R,
         at("5_1")),
    ],
    "DML-OPERATOR-activation": [
        (rnn(activation="ACTIVATION_HARDMAX"), rnn(), "ActivationDescs[0].Type", D | R, at("6_2")),
        (gemm("ELEMENT_WISE_CLIP", Min=0, Max=1), gemm("ELEMENT_WISE_CLIP", Min=0, Max=1), "FusedActivation.Type",
         D | R, at("5_2"), at("6_2")),
    ],
    "DML-OPERATOR-activation-tensors": [
        (gemm("ACTIVATION_RELU", InputTensor={"DataType": "FLOAT32", "Sizes": [2, 2]}), gemm("ACTIVATION_RELU"),
         "FusedActivation.InputTensor", D | R, at("6_2")),
    ],
    "DML-OPERATOR-activation-Sizes": [
        (gemm("ACTIVATION_SOFTMAX", [2, 2, 2]), gemm("ACTIVATION_SOFTMAX"), "FusedActivation", D | R, at("6_2")),
        (gemm("ACTIVATION_SOFTMAX1", Axes=[2]), gemm("ACTIVATION_SOFTMAX1", Axes=[1]), "FusedActivation.Axes[0]",
         D | R, at("6_2")),
    ],
    "DML-OPERATOR-activation-number": [
        (gemm("ACTIVATION_SOFTPLUS", Steepness=0), gemm("ACTIVATION_SOFTPLUS", Steepness=1),
         "FusedActivation.Steepness", D, at("6_2")),
    ],
    "DML-OPERATOR-activation-ScaleBias": [
        (clip(2, 1), clip(1, 0), "FusedActivation.ScaleBias", R, at("6_2")),
    ],
    "DML-OPERATOR-activation-ScaleBias-unapplied": [
        (clip(2, 0), clip(1, 0), "FusedActivation.ScaleBias", I, at("6_2")),
    ],
    "DML-TENSOR-null": [
        (page_tile(InputTensor=None), GOOD, "InputTensor"),
        (page_tile(OutputTensor=None), GOOD, "OutputTensor"),
    ],
    "DML-TENSOR-Type": [
        (source(Type=0), source(Type=1), "InputTensor.Type"),
        (source(Type=2**31), GOOD, "InputTensor.Type", D),
        (source(Type=2**31), GOOD, "InputTensor.Type", D | R, at("5_2")),
        (page_tile(InputTensor={"Type": 2**31, "Desc": None}), GOOD, "InputTensor.Type"),
    ],
    "DML-TENSOR-Type-private": [
        (output(Type=2**31), GOOD, "OutputTensor.Type", R, at("6_2")),
        (output(Type=2**31), output(Type=2**31 + 1), "OutputTensor.Type", R, at("6_2")),
        (source(Type=2**31), page_tile(InputTensor={"Type": 2**31, "Desc": None}), "InputTensor.Type", R),
        (source(Type=2**31), source(Type=2**31), "InputTensor.Type", R, at("6_2"), at("5_2")),
    ],
    "DML-TENSOR-Desc-null": [(output(Desc=None), GOOD, "OutputTensor.Desc")],
    "DML-BUFFER-DataType": [
        (source(DataType="UNKNOWN"), GOOD, "InputTensor.DataType"),
        (output(DataType=14), GOOD, "OutputTensor.DataType"),
    ],
    "DML-BUFFER-Flags": [
        (source(Flags=2), source(Flags=1), "InputTensor.Flags"),
        (output(Flags=4), output(Flags=0), "OutputTensor.Flags"),
    ],
    "DML-BUFFER-Flags-output": [(output(Flags=1), source(Flags=1), "OutputTensor.Flags")],
    "DML-BUFFER-DimensionCount": [
        (source(DimensionCount=0), row("FLOAT32", [1], [1]), "InputTensor.DimensionCount"),
        (row("FLOAT32", [1] * 9, [1] * 9), row("FLOAT32", [1] * 8, [1] * 8), "OutputTensor.DimensionCount"),
    ],
    "DML-BUFFER-Sizes-null": [(source(Sizes=None), GOOD, "InputTensor.Sizes")],
    "DML-BUFFER-array-length": [
        (source(Sizes=[1, 2]), source(Sizes=[1, 1, 2, 3, 9]), "InputTensor.Sizes"),
        (output(Strides=[9, 1]), output(Strides=[54, 54, 9, 1]), "OutputTensor.Strides"),
    ],
    "DML-BUFFER-Sizes-zero": [(source(Sizes=[1, 0, 2, 3]), GOOD, "InputTensor.Sizes[1]")],
    "DML-BUFFER-Sizes-elements": [
        (row("UINT16", [2**16, 2**16], [1, 1]), row("UINT16", [2**16, 2**16 - 1], [1, 1]), "InputTensor.Sizes"),
        (row("UINT16", [2**16, 2**16], [1, 1]),
         row("UINT16", [2**16 - 1, 2**16 + 1], [1, 1], InputTensor__TotalTensorSizeInBytes=2**33,
             OutputTensor__TotalTensorSizeInBytes=2**33), "InputTensor.Sizes"),
    ],
    "DML-BUFFER-Strides-extent": [
        (row("FLOAT32", [3], [1], InputTensor__Strides=[2**31], InputTensor__TotalTensorSizeInBytes=2**35),
         row("FLOAT32", [3], [1], InputTensor__Strides=[2**31 - 1], InputTensor__TotalTensorSizeInBytes=2**34 - 4),
         "InputTensor.Strides", R),
        # up to 5_2 only a wrapped extent of 0 is refused: 1 + 2^32 - 1
        (row("UINT8", [2], [1], InputTensor__Strides=[2**32 - 1], InputTensor__TotalTensorSizeInBytes=2**32),
         row("UINT8", [3], [1], InputTensor__Strides=[2**31], InputTensor__TotalTensorSizeInBytes=2**33),
         "InputTensor.Strides", R, at("5_2")),
    ],
    "DML-BUFFER-Strides-overlap": [
        (changed(STRIDED, OutputTensor__Strides=[0, 1]), changed(STRIDED, **PADDED), "OutputTensor.Strides"),
        (changed(STRIDED, OutputTensor__Strides=[1, 1]), changed(STRIDED, InputTensor__Strides=[1, 1]),
         "OutputTensor.Strides"),
        # more elements than addresses
        (row("FLOAT32", [3, 3], [1, 1], OutputTensor__Strides=[2, 1]),
         row("FLOAT32", [3, 3], [1, 1], OutputTensor__Strides=[1, 3]), "OutputTensor.Strides"),
        # two elements share an address, but the runtime does not look that far
        (row("FLOAT32", [2, 4], [1, 1], OutputTensor__Strides=[6, 2], OutputTensor__TotalTensorSizeInBytes=52),
         row("FLOAT32", [2, 4], [1, 1], OutputTensor__Strides=[7, 2], OutputTensor__TotalTensorSizeInBytes=56),
         "OutputTensor.Strides", D),
        # the runtime's 32-bit extent has fewer addresses than the tensor has elements
        (row("UINT8", [3, 3], [1, 1], OutputTensor__Strides=[2**31, 1], OutputTensor__TotalTensorSizeInBytes=2**33),
         row("UINT8", [3, 3], [1, 1]), "OutputTensor.Strides", R, at("5_2")),
    ],
    "DML-BUFFER-TotalTensorSizeInBytes-minimum": [
        (source(TotalTensorSizeInBytes=23), source(TotalTensorSizeInBytes=24), "InputTensor.TotalTensorSizeInBytes"),
        # rounded up to a multiple of 4
        (row("FLOAT16", [3], [1], InputTensor__TotalTensorSizeInBytes=6),
         row("FLOAT16", [3], [1], InputTensor__TotalTensorSizeInBytes=9), "InputTensor.TotalTensorSizeInBytes"),
        # what Microsoft's helper computes by wrapping is too small, and the runtime of old compares with just that
        (row("FLOAT32", [3], [1], InputTensor__Strides=[2**32 - 1], InputTensor__TotalTensorSizeInBytes=2**34 - 4),
         row("FLOAT32", [3], [1]), "InputTensor.TotalTensorSizeInBytes", D, at("5_2")),
    ],
    "DML-BUFFER-TotalTensorSizeInBytes-maximum": [
        (source(TotalTensorSizeInBytes=2**34), source(TotalTensorSizeInBytes=2**34 - 1),
         "InputTensor.TotalTensorSizeInBytes", R),
    ],
    "DML-BUFFER-GuaranteedBaseOffsetAlignment": [
        (source(GuaranteedBaseOffsetAlignment=48), source(GuaranteedBaseOffsetAlignment=64),
         "InputTensor.GuaranteedBaseOffsetAlignment"),
        (source(GuaranteedBaseOffsetAlignment=2), source(GuaranteedBaseOffsetAlignment=0),
         "InputTensor.GuaranteedBaseOffsetAlignment"),
        # documented as legal, but the runtime wants 16
        (source(GuaranteedBaseOffsetAlignment=4), source(GuaranteedBaseOffsetAlignment=2**31),
         "InputTensor.GuaranteedBaseOffsetAlignment", R),
    ],
    "DML-TILE-DataType": [
        (row("UINT4", [4], [1]), row("UINT8", [4], [1]), "InputTensor.DataType"),
        (row("FLOAT64", [4], [1]), row("UINT64", [4], [1]), "InputTensor.DataType", D),
        (row("FLOAT64", [4], [1]), row("UINT64", [4], [1]), "InputTensor.DataType", D | I, at("4_1")),
    ],
    "DML-TILE-DataType-level": [
        (row("INT64", [4], [1]), row("INT64", [4], [1]), "InputTensor.DataType", D | I, at("4_0"), at("4_1")),
        (row("UINT8", [1] * 4, [1] * 4), row("UINT8", [1] * 4, [1] * 4), "OutputTensor.DataType", D | I,
         at("windows-10-2004"), at("2_1")),
    ],
    "DML-TILE-DataType-adapter": [
        (row("FLOAT64", [4], [1]), row("FLOAT32", [4], [1]), "InputTensor.DataType", R,
         at("6_4", double_precision=False)),
        (row("INT8", [4], [1]), row("INT8", [4], [1]), "InputTensor.DataType", R, at("5_2", typed_uav_loads=False),
         at("6_0", typed_uav_loads=False)),
        (row("FLOAT16", [4], [1]), row("FLOAT16", [4], [1]), "InputTensor.DataType", R,
         at("6_2", typed_uav_loads=False, native_16_bit_ops=False), at("6_2", typed_uav_loads=False)),
        (row("UINT16", [4], [1]), row("UINT16", [4], [1]), "OutputTensor.DataType", R,
         at("5_0", typed_uav_loads=False, native_16_bit_ops=False), at("5_0", native_16_bit_ops=False)),
        (row("UINT8", [1] * 4, [1] * 4), row("UINT8", [1] * 4, [1] * 4), "InputTensor.DataType", I,
         at("2_1", typed_uav_loads=False), at("2_1")),
    ],
    "DML-TILE-DimensionCount-level": [
        (row("FLOAT32", [4], [1]), row("FLOAT32", [1, 1, 1, 4], [1] * 4), "InputTensor.DimensionCount", D | I,
         at("3_0")),
        (row("FLOAT32", [1] * 5, [1] * 5), row("FLOAT32", [1] * 5, [1] * 5), "OutputTensor.DimensionCount", D | I,
         at("1_0"), at("3_1")),
    ],
    "DML-TILE-typed-view": [
        (row("UINT8", [2, 2**14], [1, 2**13]), row("UINT8", [2**14], [2**13]),
         "OutputTensor.TotalTensorSizeInBytes", D),
        (row("INT8", [1], [1], InputTensor__TotalTensorSizeInBytes=2**27 + 1), row("FLOAT32", [2**14], [2**14]),
         "InputTensor.TotalTensorSizeInBytes", D),
        (row("FLOAT16", [2**14], [2**14]), row("FLOAT16", [2**14], [2**14]), "OutputTensor.TotalTensorSizeInBytes", D,
         at("6_2", native_16_bit_ops=False), at("6_2")),
    ],
    "DML-TILE-OutputTensor-DataType": [(output(DataType="INT32"), GOOD, "OutputTensor.DataType")],
    "DML-TILE-OutputTensor-DimensionCount": [(output(DimensionCount=3), GOOD, "OutputTensor.DimensionCount")],
    "DML-TILE-OutputTensor-Sizes": [
        (output(Sizes=[1, 1, 6, 8]), GOOD, "OutputTensor.Sizes[3]"),
        # 3 * 1431655766 = 2^32 + 2
        (page_tile(Repeats=[1, 1, 3, 1431655766], OutputTensor__Sizes=[1, 1, 6, 2]), GOOD, "OutputTensor.Sizes[3]", D),
    ],
    "DML-TILE-RepeatsCount": [(page_tile(RepeatsCount=3), GOOD, "RepeatsCount")],
    "DML-TILE-Repeats-null": [(page_tile(Repeats=None), GOOD, "Repeats")],
    "DML-TILE-Repeats-length": [(page_tile(Repeats=[1, 1, 3]), page_tile(Repeats=[1, 1, 3, 3, 0]), "Repeats")],
    "DML-TILE-Repeats-zero": [(page_tile(Repeats=[1, 1, 0, 3]), GOOD, "Repeats[2]")],
}  # fmt: skip
CASES: Final = [Case(rule, *row) for rule, rows in ROWS.items() for row in rows]

WIDE: Final = [2 * 50**4, 2 * 50**3, 2 * 50**2, 2 * 50, 2]

LOWERING_CASES: Final = [
    # a rule, what it refuses, what it accepts, at a target, where
    ("DML-LOWER-DataType", row("INT16", [2], [2]), row("FLOAT16", [2], [2]), "1_0", "InputTensor.DataType"),
    ("DML-LOWER-elements", row("UINT8", [3], [2]), row("UINT8", [4], [2]), "1_0", "InputTensor.DataType"),
    ("DML-LOWER-elements", row("UINT8", [3], [1]), row("UINT8", [3, 2], [1, 1]), "1_0", "InputTensor.DataType"),
    ("DML-LOWER-elements", strided("UINT8", [2, 2], [3, 1], [1, 1], None),
     strided("UINT8", [2, 2], [4, 1], [1, 1], None), "1_0", "InputTensor.DataType"),
    ("DML-LOWER-elements", strided("UINT8", [2, 2], None, [1, 1], [3, 1]),
     strided("UINT8", [2, 2], None, [1, 1], [4, 1]), "1_0", "InputTensor.DataType"),
    ("DML-LOWER-steps", strided("FLOAT32", [2] * 5, None, [1] * 5, WIDE),
     strided("FLOAT32", [1, 2, 2, 2, 2], None, [1] * 5, WIDE), "1_0", "OutputTensor.Strides"),
    ("DML-LOWER-steps", strided("FLOAT32", [2] * 5, WIDE, [1] * 5, None),
     strided("FLOAT32", [1, 2, 2, 2, 2], WIDE, [1] * 5, None), "1_0", "InputTensor.Strides"),
    ("DML-LOWER-steps", strided("FLOAT32", [2] * 5, WIDE, [1] * 5, [40, 8, 4, 2, 1]),
     strided("FLOAT32", [1, 2, 2, 2, 2], WIDE, [1] * 5, [40, 8, 4, 2, 1]), "1_0", "InputTensor.Strides"),
    ("DML-LOWER-limits", row("INT64", [2**31], [1]), row("INT64", [2**31 - 1], [1]), "4_0", "InputTensor.Sizes"),
    ("DML-LOWER-limits", strided("INT64", [2], [2**31], [1], None), strided("INT64", [2], [2**31 - 2], [1], None),
     "4_0", "InputTensor.Strides"),
    ("DML-LOWER-limits", row("INT64", [2], [2], OutputTensor__TotalTensorSizeInBytes=2**34),
     row("INT64", [2], [2], OutputTensor__TotalTensorSizeInBytes=2**34 - 4), "4_0",
     "OutputTensor.TotalTensorSizeInBytes"),
]  # fmt: skip


def model_text(*, resource: str = "", operator: str = "", dispatchable: str = "", command: str = "") -> str:
    """The text of a model of one tile, of which some parts are given as texts."""
    resource = resource or '{"initialValuesDataType": "FLOAT32", "initialValues": [1, 2, 3, 4]}'
    operator = operator or '"InputTensor": {"DataType": "FLOAT32", "Sizes": [2]}'
    dispatchable = dispatchable or '"type": "TILE"'
    command = command or '{"InputTensor": "In", "OutputTensor": "Out"}'
    out = '{"initialValuesDataType": "FLOAT32", "initialValues": {"valueCount": 4, "value": 0}}'
    return f"""\
{{"resources": {{"In": {resource}, "Out": {out}}},
 "dispatchables": {{"tile": {{{dispatchable}, "desc": {{{operator},
   "OutputTensor": {{"DataType": "FLOAT32", "Sizes": [4]}}, "RepeatsCount": 1, "Repeats": [2]}}}}}},
 "commands": [{{"type": "dispatch", "dispatchable": "tile", "bindings": {command}}}]}}
"""


_GOOD_MODEL: Final = model_text()

DXDISPATCH_CASES: Final[list[tuple[str, ...]]] = [
    # rule, a model that breaks it, and one that does not; the target of the first, where the rule depends on it
    ("DML-DXDISPATCH-null",
     model_text(operator='"InputTensor": {"DataType": "FLOAT32", "Sizes": [2], "Strides": null}'),
     model_text(operator='"InputTensor": {"DataType": "FLOAT32", "Sizes": [2], "Strides": []}')),
    ("DML-DXDISPATCH-names", model_text(operator='"InputTensor": {"DataType": 1, "Sizes": [2]}'), _GOOD_MODEL),
    ("DML-DXDISPATCH-typed-value",
     model_text(resource='{"initialValues": [{"type": "FLOAT16", "value": 1}], "sizeInBytes": 8}'),
     model_text(resource='{"initialValues": [{"type": "UINT16", "value": 15360}], "sizeInBytes": 8}')),
    ("DML-DXDISPATCH-number",
     model_text(resource='{"initialValuesDataType": "FLOAT32", "initialValues": [9007199254740993, 2]}'),
     model_text(resource='{"initialValuesDataType": "FLOAT32", "initialValues": [9007199254740993.0, 2]}')),
    ("DML-DXDISPATCH-type", model_text(dispatchable='"Type": "TILE"'), _GOOD_MODEL),
    ("DML-DXDISPATCH-operator", model_text(dispatchable='"type": "Tile"'), _GOOD_MODEL),
    ("DML-DXDISPATCH-no-operator", model_text(dispatchable='"type": "hlsl"'), _GOOD_MODEL),
    ("DML-DXDISPATCH-byte-order-mark", f"\ufeff{_GOOD_MODEL}", _GOOD_MODEL),
    ("DML-DXDISPATCH-trailing-text", f"{_GOOD_MODEL}More text.\n", f"{_GOOD_MODEL}// A comment.\n"),
    ("DML-DXDISPATCH-bind-point",
     model_text(command='{"InputTensor": "In", "BTensor": "In", "OutputTensor": "Out"}'), _GOOD_MODEL),
    ("DML-DXDISPATCH-offset",
     model_text(resource='{"initialValuesDataType": "FLOAT32", "initialValues": [1, 2],\n'
                '   "initialValuesOffsetInBytes": 4, "sizeInBytes": 16}'), _GOOD_MODEL),
    ("DML-DXDISPATCH-elementOffset",
     model_text(command='{"InputTensor": {"name": "In", "elementOffset": 8}, "OutputTensor": "Out"}'),
     model_text(command='{"InputTensor": {"name": "In", "elementOffset": 0}, "OutputTensor": "Out"}')),
    ("DML-DXDISPATCH-dmlCompileType", model_text(dispatchable='"type": "TILE", "dmlCompileType": "DmlCompileGraph"'),
     model_text(dispatchable='"type": "TILE", "dmlCompileType": "DmlCompileOp"'), "2_0"),
    ("DML-DXDISPATCH-IDMLDevice1", _GOOD_MODEL, _GOOD_MODEL, "2_0"),
]  # fmt: skip


def captured_line(hresult: str, repeats: int = 2) -> str:
    """A line of dml_tile/capture.h, in several."""
    return f"""\
{{"dml_tile_capture": 1, "hresult": "{hresult}", "feature_level": "0x00006200",
 "operator": {{"Type": 70, "Desc": {{"InputTensor": {{"DataType": 1, "Sizes": [2]}},
   "OutputTensor": {{"DataType": 1, "Sizes": [4]}}, "RepeatsCount": 1, "Repeats": [{repeats}]}}}}}}
"""


_CALL: Final = f"""\
{{"dml_tile_capture": 1, "hresult": null, "session": "0x18F2A6C05D73B94E", "call": 1, "feature_level": "0x00006200",
 "operator": {captured_line("0x00000000").partition('"operator": ')[2]}"""
_OPEN: Final = " ".join(_CALL.split()) + "\n"
_RETURN: Final = '{"dml_tile_capture": 1, "hresult": "0x00000000", "session": "0x18F2A6C05D73B94E", "call": 1}\n'

CAPTURE_CASES: Final = [
    ("DML-CAPTURE-HRESULT", captured_line("0x00000000", repeats=3), captured_line("0x00000000")),
    ("DML-CAPTURE-unexplained", captured_line("0x80070057"), captured_line("0x00000000")),
    ("DML-CAPTURE-open", _OPEN, _OPEN + _RETURN),
]
