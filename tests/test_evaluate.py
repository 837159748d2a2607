"""The functions that execute any operator: what they take, return, check first, and leave untouched."""

from __future__ import annotations

import re
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray

from dml_tile import POISON, Device, OperatorDesc, TileOperatorDesc, check, evaluate, execute
from dml_tile.bindings.memory import Padding
from dml_tile.errors import DmlError
from dml_tile.simulation.calls import record_calls
from tests.helpers.rule_cases import gather, gemm

F32: Final = np.float32


def tensor(*sizes: int, data_type: str = "FLOAT32", **fields: Any) -> dict[str, Any]:
    return {"DataType": data_type, "Sizes": sizes, **fields}


def add(a: Any, b: Any = None, output: Any = None) -> OperatorDesc:
    tensors = {"ATensor": a, "BTensor": b or a, "OutputTensor": output or a}
    return OperatorDesc(type="ELEMENT_WISE_ADD", desc=tensors)


def ones(*shape: int, dtype: Any = F32) -> NDArray[Any]:
    return np.ones(shape, dtype)


RELU: Final = OperatorDesc(type="ACTIVATION_RELU", desc={"InputTensor": tensor(2), "OutputTensor": tensor(2)})
SPLIT: Final = OperatorDesc(
    type="SPLIT", desc={"InputTensor": tensor(3), "OutputTensors": [tensor(1), tensor(2)], "Axis": 0}
)
NONZERO: Final = OperatorDesc(
    type="NONZERO_COORDINATES",
    desc={
        "InputTensor": tensor(2, 2),
        "OutputCountTensor": tensor(1, 1, data_type="UINT32"),
        "OutputCoordinatesTensor": tensor(4, 2, data_type="UINT32"),
    },
)
QUANTIZE: Final = OperatorDesc(
    type="QUANTIZE",
    desc={
        "InputTensor": tensor(4),
        "QuantizationType": "SCALE",
        "QuantizationTensors": [tensor(2)],
        "OutputTensor": tensor(4, data_type="INT4"),
    },
)


def test_outputs_are_arrays_by_field_of_their_own() -> None:
    a = ones(2, 3)
    out = evaluate(add(tensor(2, 3)), {"a_tensor": a, "BTensor": a})["OutputTensor"]
    assert (out.dtype, out.tolist(), np.shares_memory(out, a)) == (F32, [[2] * 3] * 2, False)
    assert evaluate(RELU, np.array([-1, 2], F32))["OutputTensor"].tolist() == [0, 2]
    first, second = evaluate(SPLIT, np.arange(3, dtype=F32))["OutputTensors"]
    assert (first.tolist(), second.tolist()) == ([0], [1, 2])
    tile = TileOperatorDesc.from_input(data_type="UINT8", sizes=[2], repeats=[2])
    for desc in (tile, OperatorDesc(type="TILE", desc=tile)):
        assert evaluate(desc, np.array([False, True]))["OutputTensor"].tolist() == [0, 1, 0, 1]
    large, addend = np.arange(64 * 64, dtype=F32).reshape(64, 64) % 7, None  # NumPy's own product
    product = evaluate(gemm(sizes=(64, 64)), {"ATensor": large, "BTensor": large.T, "CTensor": addend})["OutputTensor"]
    assert product.tolist() == (large.astype(int) @ large.T.astype(int)).tolist()


def test_an_array_broadcasts_along_strides_of_0() -> None:
    repeated = add(tensor(2, 3), tensor(2, 3, Strides=[0, 1]))
    assert evaluate(repeated, {"ATensor": ones(2, 3), "BTensor": ones(1, 3)})["OutputTensor"].sum() == 12
    with pytest.raises(ValueError, match=r"BTensor has the shape \(1, 3\); \(2, 3\) was expected"):
        evaluate(add(tensor(2, 3)), {"ATensor": ones(2, 3), "BTensor": ones(1, 3)})


@pytest.mark.parametrize(
    ("desc", "given", "message"),
    [
        (RELU, np.ones(2), "InputTensor holds float64; float32 was expected"),
        (RELU, {"Input": ones(2)}, "'Input' is no tensor of ACTIVATION_RELU; did you mean InputTensor"),
        (RELU, {"InputTensor": None}, "InputTensor is not given; an array was expected"),
        (RELU, [1, 2], "InputTensor is of type list; an array of float32 was expected"),
        (RELU, {0: ones(2)}, "0 is no tensor of ACTIVATION_RELU; it has InputTensor"),
        (RELU, {"InputTensor": ones(2), "input_tensor": ones(2)}, "InputTensor was provided twice"),
        (RELU, {"OutputTensor": ones(2)}, "OutputTensor is an output, which is returned"),
        (add(tensor(1)), ones(1), "ELEMENT_WISE_ADD has ATensor, BTensor; a mapping of names was expected"),
        (gemm(), {"ATensor": ones(2, 2), "BTensor": ones(2, 2), "CTensor": ones(2, 2)}, "CTensor is null"),
    ],
)
def test_nothing_is_cast_or_guessed(desc: OperatorDesc, given: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        evaluate(desc, given)


def test_a_descriptor_is_checked_first_at_its_target() -> None:
    with record_calls() as calls, pytest.raises(DmlError, match="INT64 needs DML_FEATURE_LEVEL_3_0"):
        evaluate(gather("INT64"), {}, "2_1")
    assert [call.name for call in calls] == ["evaluate"]


def test_what_directml_does_not_write_is_0_or_stays() -> None:
    given = np.array([[0, 5], [6, 0]], F32)
    found = evaluate(NONZERO, given)
    assert (found["OutputCountTensor"].tolist(), found["OutputCoordinatesTensor"].tolist()[1:]) == (
        [[2]],
        [[1, 0], [0, 0], [0, 0]],
    )
    count, rows = np.zeros(1, np.uint32), np.full(8, 9, np.uint32)
    execute(NONZERO, {"InputTensor": given, "OutputCountTensor": count, "OutputCoordinatesTensor": rows})
    assert (count.tolist(), rows.tolist()) == ([2], [0, 1, 1, 0, 9, 9, 9, 9])


def test_raw_memory_is_read_and_written_by_strides_and_gaps_stay() -> None:
    strided = add(tensor(2), output=tensor(2, Strides=[2]))
    paddings: dict[Padding, int] = {"preserve": 7, "poison": POISON}
    for padding, gap in paddings.items():
        output = np.full(16, 7, np.uint8)
        buffers = {"ATensor": ones(2), "BTensor": ones(2).tobytes(), "OutputTensor": output}
        execute(strided, buffers, "6_4", "runtime", padding=padding)
        assert output[:12].view(F32)[[0, 2]].tolist() == [2, 2]
        assert (output[4:8].tolist(), output[12:].tolist()) == ([gap] * 4, [7] * 4)
    execute(strided, buffers, target="6_4", against="runtime")


def test_buffers_that_are_too_small_or_overlap_are_refused() -> None:
    memory = np.zeros(4, F32)
    with pytest.raises(DmlError, match=r"DML-BINDING-SizeInBytes\] BTensor"):
        execute(add(tensor(2)), {"ATensor": ones(2), "BTensor": ones(1), "OutputTensor": memory})
    with pytest.raises(DmlError, match=r"DML-BINDING-overlap\] OutputTensor: .* overlaps that of BTensor"):
        execute(add(tensor(2)), {"ATensor": ones(2), "BTensor": memory[1:], "OutputTensor": memory})
    assert not memory.any()
    with pytest.raises(ValueError, match="OutputTensor is read-only"):
        execute(add(tensor(2)), {"ATensor": ones(2), "BTensor": ones(2), "OutputTensor": bytes(8)})


def test_elements_of_four_bits_are_one_value_each_or_two_in_a_byte() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    given, scales = np.array([1, -9, 100, -2], F32), [np.array([1, 2], F32)]
    out = evaluate(QUANTIZE, {"InputTensor": given, "QuantizationTensors": scales})["OutputTensor"]
    assert (out.dtype, out.astype(int).tolist()) == (ml_dtypes.int4, [1, -8, 7, -1])
    packed = bytearray(4)
    execute(QUANTIZE, {"InputTensor": given, "QuantizationTensors": scales, "OutputTensor": packed})
    assert packed == bytes([0x81, 0xF7, 0, 0])
    with pytest.raises(TypeError, match="OutputTensor holds int4, an element a byte; DirectML's memory has two"):
        execute(QUANTIZE, {"InputTensor": given, "QuantizationTensors": scales, "OutputTensor": out})


_ALONG: Final = {"Mode": 1, "Dilations": [1, 1], "DimensionCount": 2, "GroupCount": 1, "OutputPadding": [0, 0]}
_SAMPLES: Final = {"ReductionFunction": "AVERAGE", "InterpolationMode": 1, "OutOfBoundsInputValue": 0}
_RELUS: Final = [{"Type": "ACTIVATION_RELU", "Desc": {}}] * 2


_POOLED: Final = {"Strides": [1, 1], "IncludePadding": True}
BOUNDED: Final[dict[str, tuple[str, dict[str, tuple[int, ...]], tuple[int, ...], dict[str, Any]]]] = {
    # the operator, its inputs' sizes, its output's, and fields
    "the elements under each row of a filter": (
        "CONVOLUTION", {"InputTensor": (1, 1, 1, 2**17), "FilterTensor": (1, 1, 1, 2**16)}, (1, 1, 1, 2**16 + 1),
        _ALONG | {"Direction": 0, "Strides": [1, 1], "StartPadding": [0, 0], "EndPadding": [0, 0]}),
    "zeros between elements": (
        "CONVOLUTION", {"InputTensor": (1, 1, 1, 3), "FilterTensor": (1, 1, 1, 1)}, (1, 1, 1, 1),
        _ALONG | {"Direction": 1, "Strides": [1, 2**30], "StartPadding": [0, 2**30], "EndPadding": [0, 2**30]}),
    **{f"a window of {size} over padding": (
        "AVERAGE_POOLING", {"InputTensor": (1, 1, 2, 2)}, (1, 1, 2, 2),
        _POOLED | {"WindowSize": [size] * 2} | dict.fromkeys(("StartPadding", "EndPadding"), [size // 2] * 2))
       for size in (2**20 + 1, 2**31 + 1)},
    "one dimension after the other": (
        "RESAMPLE", {"InputTensor": (1, 1, 1, 2**16)}, (1, 1, 2**16, 1),
        {"InterpolationMode": 1, "Scales": [1, 1, 2**16, 2**-16]}),
    "all samples of all regions": (
        "ROI_ALIGN",
        {"InputTensor": (1, 1, 2, 2), "ROITensor": (1, 1, 2**12, 4), "BatchIndicesTensor": (1, 1, 1, 2**12)},
        (2**12, 1, 1, 1), _SAMPLES | {"SpatialScaleX": 1, "SpatialScaleY": 1}
        | dict.fromkeys(("MinimumSamplesPerOutput", "MaximumSamplesPerOutput"), 2**13)),
    "all of the input, for each region": (
        "ROI_POOLING", {"InputTensor": (1, 1, 2**12, 2**12), "ROITensor": (1, 1, 2**13, 5)}, (2**13, 1, 1, 1),
        {"SpatialScale": 1, "PooledSize": {"Width": 1, "Height": 1}}),
    "a sequence that is not written": (
        "GRU", {"InputTensor": (1, 2**12, 2**19, 1), "WeightTensor": (1, 1, 3, 1), "RecurrenceTensor": (1, 1, 3, 1)},
        (1, 1, 2**19, 1), {"Direction": 0, "LinearBeforeReset": 0, "ActivationDescs": _RELUS}),
    "places": ("ARGMAX", {"InputTensor": (1, 1, 1, 2**30)}, (1, 1, 1, 1), {"Axes": [3], "AxisDirection": 0}),
}  # fmt: skip


@pytest.mark.parametrize(("type_", "inputs", "output", "fields"), BOUNDED.values(), ids=BOUNDED)
def test_memory_and_work_are_bounded_before_anything_is_computed(
    type_: str, inputs: dict[str, tuple[int, ...]], output: tuple[int, ...], fields: dict[str, Any]
) -> None:
    """The tensors are of a few bytes, of strides of 0."""
    types = {"BatchIndicesTensor": "UINT32", "ARGMAX": "UINT32"}
    tensors = {
        name: tensor(*sizes, data_type=types.get(name, "FLOAT32"), Strides=[0] * len(sizes))
        for name, sizes in inputs.items()
    }
    written = {"GRU": "OutputSingleTensor"}.get(type_, "OutputTensor")
    tensors[written] = tensor(*output, data_type=types.get(type_, "FLOAT32"))
    desc = OperatorDesc(type=type_, desc=fields | tensors)
    given = {name: np.zeros([1] * len(sizes), F32) for name, sizes in inputs.items()}
    given |= {name: np.zeros((1, 1, 1, 1), np.uint32) for name in given if name in types}
    with pytest.raises(DmlError, match="DML-EXECUTE-bound"):
        evaluate(desc, given, against="runtime")


def test_what_the_runtime_refuses_is_not_executed_against_the_documentation() -> None:
    fields = {"InputTensor": tensor(2, 3), "OutputTensor": tensor(2, 3), "Axis": 2, "Epsilon": 0, "P": 2}
    desc = OperatorDesc(type="LP_NORMALIZATION", desc=fields)
    assert check(desc, against="documentation") == ()
    with pytest.raises(DmlError, match=r"less than InputTensor\.DimensionCount = 2 was expected"):
        evaluate(desc, ones(2, 3), against="documentation")
    device = Device(against="documentation", raise_on_removal=True)
    with pytest.raises(DmlError, match=r"less than InputTensor\.DimensionCount = 2 was expected"):
        device.execute(desc, ones(2, 3), ones(2, 3))


def test_a_device_executes_operators_with_null_outputs() -> None:
    window = {"Strides": [1, 1], "WindowSize": [1, 2], "StartPadding": [0, 0], "EndPadding": [0, 0]}
    pool = {"InputTensor": tensor(1, 1, 1, 3), "OutputTensor": tensor(1, 1, 1, 2), "OutputIndicesTensor": None}
    output = np.zeros(2, F32)
    desc = OperatorDesc(type="MAX_POOLING2", desc=pool | window | {"Dilations": [1, 1]})
    Device().execute(desc, {"InputTensor": np.array([1, 3, 2], F32), "OutputTensor": output})
    assert output.tolist() == [3, 3]


def test_an_exponent_beyond_int32_wraps_and_a_norm_of_0_is_executed() -> None:
    powers = {"InputTensor": tensor(3, data_type="INT8"), "ExponentTensor": tensor(3, data_type="UINT32")}
    desc = OperatorDesc(type="ELEMENT_WISE_POW", desc=powers | {"OutputTensor": tensor(3, data_type="INT8")})
    exponents = np.array([2**31, 2**31 + 1, 3], np.uint32)
    found = evaluate(desc, {"InputTensor": np.array([-1, -1, -2], np.int8), "ExponentTensor": exponents})
    assert found["OutputTensor"].tolist() == [1, -1, -8]
    window = {"Strides": [1, 1], "WindowSize": [1, 2], "StartPadding": [0, 0], "EndPadding": [0, 0], "P": 0}
    pool = {"InputTensor": tensor(1, 1, 1, 2), "OutputTensor": tensor(1, 1, 1, 1)}
    assert np.isinf(evaluate(OperatorDesc(type="LP_POOLING", desc=pool | window), ones(1, 1, 1, 2))["OutputTensor"])


@pytest.mark.parametrize(
    ("kind", "parts", "output", "path"),
    [
        ("SCALE", [], [4, 3], "QuantizationTensorCount: 0 was provided"),
        ("NONE", [[1, 1]], [4, 3], "QuantizationTensorCount: 1 was provided"),
        ("SCALE", [[1, 1], [1, 1]], [4, 3], "QuantizationTensorCount: 2 was provided"),
        ("SCALE", [[3, 1]], [4, 3], "QuantizationTensors[0].Sizes: {3,1} was provided"),
        ("SCALE", [[2, 6]], [4, 3], "QuantizationTensors[0].Sizes: {2,6} was provided; sizes that divide {4,3}"),
        ("SCALE", [[2, 3]], [4, 4], "OutputTensor.Sizes: {4,4} was provided; {4,3} is executed"),
    ],
)
def test_a_quantisation_of_other_blocks_is_refused(kind: str, parts: list[Any], output: list[int], path: str) -> None:
    """`check` accepts them, since the page leaves sizes and counts open."""
    tensors = {"QuantizationTensors": [tensor(*sizes) for sizes in parts], "QuantizationType": kind}
    fields = {"InputTensor": tensor(4, 3), "OutputTensor": tensor(*output, data_type="INT8"), **tensors}
    desc = OperatorDesc(type="QUANTIZE", desc=fields)
    with pytest.raises(DmlError, match=re.escape(f"DML-EXECUTE-operator] {path}")):
        evaluate(desc, {"InputTensor": ones(4, 3)}, against="runtime")


def test_a_convolution_along_other_dimensions_is_refused() -> None:
    """DirectML takes it, and no page tells what it computes."""
    tensors = {
        "InputTensor": tensor(2, 2, 3, data_type="UINT8"),
        "FilterTensor": tensor(1, 2, 2, data_type="UINT8"),
        "OutputTensor": tensor(2, 1, 2, data_type="INT32"),
    }
    lists = {name: [1, 1] for name in ("Strides", "StartPadding", "EndPadding", "Dilations")}
    desc = OperatorDesc(type="CONVOLUTION_INTEGER", desc=tensors | lists | {"DimensionCount": 2, "GroupCount": 1})
    given = {"InputTensor": ones(2, 2, 3, dtype=np.uint8), "FilterTensor": ones(1, 2, 2, dtype=np.uint8)}
    with pytest.raises(DmlError, match="DML-EXECUTE-operator"):
        evaluate(desc, given, "6_2", against="runtime")


def test_a_backward_convolution_whose_stride_is_0_is_refused() -> None:
    """DirectML takes it, and what it computes was not measured; a forward one is executed."""
    lists = {"Strides": [0], "Dilations": [1], "StartPadding": [0], "EndPadding": [0], "OutputPadding": [0]}
    tensors = {"InputTensor": tensor(1, 1, 2), "FilterTensor": tensor(1, 1, 2), "OutputTensor": tensor(1, 1, 2)}
    fields = tensors | lists | {"Mode": 1, "DimensionCount": 1, "GroupCount": 1}
    given = {"InputTensor": ones(1, 1, 2), "FilterTensor": ones(1, 1, 2)}
    forward, backward = (OperatorDesc(type="CONVOLUTION", desc=fields | {"Direction": each}) for each in (0, 1))
    assert evaluate(forward, given, "6_2", against="runtime")["OutputTensor"].tolist() == [[[2, 2]]]
    with pytest.raises(DmlError, match="DML-EXECUTE-operator] Strides: 0 was provided"):
        evaluate(backward, given, "6_2", against="runtime")
