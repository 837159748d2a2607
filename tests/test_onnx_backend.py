"""onnx's Backend interface: by onnx's own runner, on real models, operator by operator, and what is refused."""

from __future__ import annotations

import sys
import unittest
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto, defs, helper, numpy_helper
from onnx.backend.test import BackendTest, loader
from onnx.checker import ValidationError

from dml_tile.arrays import onnx_backend
from dml_tile.arrays.onnx_backend import OPERATORS, TileBackend
from dml_tile.errors import DialectError, DmlError, OnnxModelError
from dml_tile.simulation import simulate

MODELS: Final = Path(__file__).parent / "data" / "models"

X: Final = np.arange(6, dtype=np.float32).reshape(2, 3)


def constant(name: str, value: Any, **fields: Any) -> onnx.NodeProto:
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.asarray(value)), **fields)


def model(
    *nodes: onnx.NodeProto,
    opset: int = 13,
    x: Any = TensorProto.FLOAT,
    shape: Any = ("m", "n"),
    output: str = "y",
    **fields: Any,
) -> onnx.ModelProto:
    """A model from x to an output of as many dimensions."""
    inputs = [helper.make_tensor_value_info("x", x, shape)]
    outputs = [helper.make_tensor_value_info(output, x, [None] * len(shape))]
    graph = helper.make_graph(nodes, "tiles", inputs, outputs, **fields)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def tiled_model(repeats: Any, **fields: Any) -> onnx.ModelProto:
    return model(constant("r", repeats), helper.make_node("Tile", ["x", "r"], ["y"]), **fields)


def run(made: onnx.ModelProto, x: Any = X, **options: Any) -> NDArray[Any]:
    (output,) = TileBackend.run_model(made, [x], **options)
    return np.asarray(output)


# onnx's own tests

RUNNER_TESTS: Final = {
    "OnnxBackendNodeModelTest": {"test_tile_cpu", "test_tile_precomputed_cpu"},
    "OnnxBackendPyTorchOperatorModelTest": {"test_operator_repeat_cpu", "test_operator_repeat_dim_overflow_cpu"},
}


@pytest.fixture
def runner_cases(monkeypatch: pytest.MonkeyPatch) -> dict[str, type[unittest.TestCase]]:
    """The tests of Tile from onnx's runner, which else would compute the data of every operator's tests."""
    monkeypatch.setattr(loader, "import_recursive", lambda cases: import_module(f"{cases.__name__}.tile"))
    runner = BackendTest(TileBackend, __name__)
    return dict(runner.include("^test_tile.*_cpu$").include("^test_operator_repeat.*_cpu$").test_cases)


def test_onnx_s_runner_passes(runner_cases: dict[str, type[unittest.TestCase]]) -> None:
    run = {}
    for case, tests in runner_cases.items():
        names = [name for name in unittest.defaultTestLoader.getTestCaseNames(tests) if not _is_skipped(tests, name)]
        for name in names:
            result = unittest.TestResult()
            tests(name).run(result)
            assert result.wasSuccessful(), result.errors + result.failures
            assert (result.testsRun, result.skipped) == (1, [])
        run[case] = set(names)
    for case, known in RUNNER_TESTS.items():
        assert known <= run[case]


def _is_skipped(tests: type[unittest.TestCase], name: str) -> bool:
    return bool(getattr(getattr(tests, name), "__unittest_skip__", False))


# Models


@pytest.mark.parametrize("path", sorted(MODELS.glob("*.onnx")), ids=lambda path: path.stem)
@pytest.mark.parametrize("target", ["windows-11-21h2", "6_4"])
def test_a_real_model_gives_numpy_s_result(path: Path, target: str) -> None:
    read = onnx.load(path)
    assert TileBackend.is_compatible(read)
    sizes = [dim.dim_value for dim in read.graph.input[0].type.tensor_type.shape.dim]
    x = np.random.default_rng(5).random(sizes, np.float32)
    given = [numpy_helper.to_array(tensor) for tensor in read.graph.initializer]
    repeats = given[0] if given else np.arange(2, 2 + len(sizes))
    inputs = [x] if given else [x, repeats]
    (output,) = TileBackend.prepare(read, target=target).run(inputs)
    np.testing.assert_array_equal(output, np.tile(x, repeats))


def test_each_operator_is_run() -> None:
    made = model(
        helper.make_node("Identity", ["x"], ["same"]),
        constant("shape", np.array([3, 2])),
        helper.make_node("Reshape", ["same", "shape"], ["turned"]),
        constant("floats", np.array([2.0, 1.0], np.float32)),
        helper.make_node("Cast", ["floats"], ["repeats"], to=TensorProto.INT64),
        helper.make_node("Tile", ["turned", "repeats"], ["y"]),
    )
    assert {node.op_type for node in made.graph.node} == set(OPERATORS)
    np.testing.assert_array_equal(run(made), np.tile(X.reshape(3, 2), (2, 1)))


def test_tiles_follow_each_other_on_one_device() -> None:
    made = model(
        constant("r", np.array([2, 1])),
        constant("s", np.array([1, 3])),
        helper.make_node("Tile", ["x", "r"], ["a"]),
        helper.make_node("Tile", ["a", "s"], ["b"]),
        helper.make_node("Tile", ["b", "r"], ["y"]),
    )
    prepared = TileBackend.prepare(made, target="windows-11-21h2")
    for x in (X, X + 1):
        np.testing.assert_array_equal(prepared.run([x])[0], np.tile(x, (4, 3)))
    assert prepared.device.target.name == "windows-11-21h2"
    assert prepared.device.removal is None


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_opset_1_tiles_along_an_axis(dtype: type[Any]) -> None:
    made = model(
        constant("tiles", np.array(3, dtype)),
        constant("axis", np.array(1, dtype)),
        helper.make_node("Tile", ["x", "tiles", "axis"], ["y"]),
        opset=1,
    )
    np.testing.assert_array_equal(run(made), np.tile(X, (1, 3)))


@pytest.mark.parametrize(("opset", "taken"), [(6, False), (12, False), (13, True), (defs.onnx_opset_version(), True)])
def test_the_opset_decides_whether_bfloat16_is_tiled(opset: int, taken: bool) -> None:
    made = tiled_model(np.array([2, 2]), opset=opset, x=TensorProto.BFLOAT16)
    x = X.astype(helper.tensor_dtype_to_np_dtype(TensorProto.BFLOAT16))
    if taken:
        np.testing.assert_array_equal(run(made, x), np.tile(x, (2, 2)))
    else:
        with pytest.raises(DialectError, match="ONNX Tile-6: data type: bfloat16"):
            run(made, x)


@pytest.mark.parametrize(
    ("kind", "x", "repeats"),
    [
        (TensorProto.BOOL, X > 2, [2, 2]),
        (TensorProto.DOUBLE, X.astype(np.float64), [2, 2]),
        (TensorProto.COMPLEX64, X.astype(np.complex64), [2, 2]),
        (TensorProto.COMPLEX128, X.astype(np.complex128), [2, 2]),
        (TensorProto.STRING, np.array([["a", "b"]], object), [2, 2]),
        (TensorProto.FLOAT, X, [0, 2]),
        (TensorProto.FLOAT, X[:0], [2, 2]),
        (TensorProto.FLOAT, X[:, ::-1], [2, 2]),
        (TensorProto.FLOAT, np.float32(3), np.zeros(0, np.int64)),
        (TensorProto.INT8, np.arange(2**9, dtype=np.int16).astype(np.int8).reshape([2] * 9), [2] * 9),
        (TensorProto.INT8, np.ones([2] + [1] * 9, np.int8), [1] * 9 + [3]),
    ],
    ids=[
        *("bool", "float64", "complex64", "complex128", "string", "a repeat of 0", "an empty input"),
        *("reversed", "a scalar", "rank 9", "rank 10, which is merged"),
    ],
)
def test_what_onnx_takes_is_tiled_with_or_without_directml(kind: Any, x: Any, repeats: Any) -> None:
    result = run(tiled_model(np.asarray(repeats), x=kind, shape=[None] * np.ndim(x)), x)
    expected = np.tile(x, repeats)
    assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(result, expected)


def test_a_target_that_refuses_the_tile_says_so_and_names_the_node() -> None:
    made = tiled_model(np.array([1, 1, 1, 2]), x=TensorProto.INT64, shape=[1, 1, 2, 3])
    made.graph.node[1].name = "widen"
    x = np.ones((1, 1, 2, 3), np.int64)
    with pytest.raises(DmlError, match="INT64 needs DML_FEATURE_LEVEL_4_1; windows-10-2004 has 2_0") as error:
        run(made, x, target="windows-10-2004")
    assert error.value.__notes__ == ["from the node 'widen', a Tile"]
    with simulate("windows-10-2004"), pytest.raises(DmlError):
        run(made, x)
    assert run(made, x).shape == (1, 1, 2, 6)


def test_outputs_have_names_too() -> None:
    outputs = TileBackend.run_model(tiled_model(np.array([1, 2])), [X])
    assert outputs["y"] is outputs[0]  # type: ignore[call-overload]  # onnx's named tuple takes names


def test_initialisers_are_not_inputs() -> None:
    repeats = numpy_helper.from_array(np.array([2, 2]), "r")
    made = model(helper.make_node("Tile", ["x", "r"], ["y"]), initializer=[repeats])
    made.graph.input.append(helper.make_tensor_value_info("r", TensorProto.INT64, [2]))
    np.testing.assert_array_equal(run(made), np.tile(X, (2, 2)))


def test_onnx_s_domain_has_two_names() -> None:
    made = tiled_model(np.array([2, 2]))
    made.opset_import[0].domain = "ai.onnx"
    np.testing.assert_array_equal(run(made), np.tile(X, (2, 2)))


def test_a_node_is_run_alone() -> None:
    node = helper.make_node("Tile", ["x", "r"], ["y"])
    repeats = np.array([2, 2])
    np.testing.assert_array_equal(TileBackend.run_node(node, [X, repeats])[0], np.tile(X, (2, 2)))
    np.testing.assert_array_equal(TileBackend.run_node(constant("c", X), [])[0], X)
    with pytest.raises(DmlError, match="a dimension count of 2 needs DML_FEATURE_LEVEL_3_1"):
        TileBackend.run_node(node, [X, repeats], target="windows-10-2004")
    with pytest.raises(ValidationError):
        TileBackend.run_node(node, [X, repeats], opset_version=1)


# Refusals


def external(tensor: onnx.TensorProto) -> onnx.TensorProto:
    tensor.data_location = TensorProto.EXTERNAL
    tensor.ClearField("raw_data")
    tensor.external_data.add(key="location", value="../elsewhere.bin")
    return tensor


def refused_models() -> dict[str, tuple[onnx.ModelProto, str]]:
    tile = helper.make_node("Tile", ["x", "r"], ["y"])
    repeats = numpy_helper.from_array(np.array([2, 2]), "r")
    with_function = tiled_model(np.array([2, 2]))
    with_function.functions.append(
        helper.make_function("", "Tile", ["x", "r"], ["y"], [], [helper.make_opsetid("", 13)])
    )
    sequence = tiled_model(np.array([2, 2]))
    sequence.graph.input.append(helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None))
    apart = numpy_helper.from_array(np.array([2, 2]))
    sparse = helper.make_sparse_tensor(
        numpy_helper.from_array(np.array([2]), "r"), numpy_helper.from_array(np.array([0])), [2]
    )
    return {
        "another operator": (
            model(helper.make_node("Relu", ["x"], ["y"], name="rectify")),
            "the node 'rectify', a Relu, is not run here; Tile, Constant, Identity, Cast, Reshape are",
        ),
        "another domain": (
            model(helper.make_node("Tile", ["x"], ["y"], domain="com.example")),
            "the node that gives 'y', a com.example.Tile, is not run here",
        ),
        "an old Cast": (
            model(helper.make_node("Cast", ["x"], ["y"], to="FLOAT"), opset=5),
            "a Cast, is of opset 5; it is run from opset 6 on",
        ),
        "a local function": (with_function, "the model has local functions, such as 'Tile'"),
        "an external initialiser": (
            model(tile, initializer=[external(repeats)]),
            "the initialiser 'r', keeps its data in another file",
        ),
        "an external constant": (
            model(helper.make_node("Constant", [], ["r"], value=external(apart)), tile),
            "the node that gives 'r', a Constant, keeps its data in another file",
        ),
        "a sparse constant": (
            model(helper.make_node("Constant", [], ["r"], sparse_value=sparse), tile),
            "a Constant, has a sparse tensor, sparse_value",
        ),
        "a sparse initialiser": (model(tile, sparse_initializer=[sparse]), "the model has sparse initialisers"),
        "an input that is no tensor": (sequence, "the input 's' is no tensor"),
    }


@pytest.mark.parametrize(("made", "message"), refused_models().values(), ids=refused_models())
def test_a_model_of_anything_else_is_refused(made: onnx.ModelProto, message: str) -> None:
    assert not TileBackend.is_compatible(made)
    with pytest.raises(OnnxModelError, match=message):
        TileBackend.prepare(made)


@pytest.mark.parametrize(
    "made",
    [
        model(helper.make_node("Tile", ["x"], ["y"])),
        model(helper.make_node("Tile", ["x", ""], ["y"])),
        model(helper.make_node("Tile", ["x", "r"], ["y"])),
        tiled_model(np.array([2, 2]), output="z"),
    ],
    ids=["an input too few", "an unnamed input", "an input that nothing gives", "an output that nothing gives"],
)
def test_an_invalid_model_is_left_to_onnx_s_checker(made: onnx.ModelProto) -> None:
    assert not TileBackend.is_compatible(made)
    with pytest.raises(ValidationError):
        TileBackend.prepare(made)


def test_a_model_is_a_model_proto() -> None:
    with pytest.raises(TypeError, match=r"model is a bytes; an onnx.ModelProto was expected"):
        TileBackend.prepare(tiled_model(np.array([2, 2])).SerializeToString())


def test_only_the_cpu_is_simulated() -> None:
    assert TileBackend.supports_device("CPU")
    assert TileBackend.supports_device("CPU:0")
    assert not TileBackend.supports_device("CUDA")
    assert not TileBackend.is_compatible(tiled_model(np.array([2, 2])), "CUDA:1")
    with pytest.raises(OnnxModelError, match="device is 'CUDA'; only CPU is simulated"):
        TileBackend.run_node(helper.make_node("Identity", ["x"], ["y"]), [X], "CUDA")


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([], "0 inputs were given; 1 were expected: x"),
        ([X, X], "2 inputs were given"),
        (X, "inputs is a ndarray; a sequence of arrays was expected"),
        ({"x": X}, "inputs is a dict"),
        ([X.astype(np.float64)], "the input 'x' is of float64; float32 was expected"),
        ([X[0]], r"the input 'x' is of shape \(3,\); \(any, 3\) was expected"),
        ([X.T], r"the input 'x' is of shape \(3, 2\); \(any, 3\) was expected"),
    ],
)
def test_inputs_are_as_the_model_declares(inputs: Any, message: str) -> None:
    prepared = TileBackend.prepare(tiled_model(np.array([2, 2]), shape=["n", 3]))
    with pytest.raises(OnnxModelError, match=message):
        prepared.run(inputs)


def test_an_error_of_another_operator_names_its_node() -> None:
    made = model(constant("shape", np.array([4])), helper.make_node("Reshape", ["x", "shape"], ["y"], name="flatten"))
    with pytest.raises(ValueError, match="cannot reshape") as error:
        run(made)
    assert error.value.__notes__ == ["from the node 'flatten', a Reshape"]


def test_the_extra_is_named_where_onnx_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"needs onnx: pip install 'onnx>=1\.19'"):
        exec(Path(onnx_backend.__file__).read_text(), {"__name__": "onnx_backend"})
