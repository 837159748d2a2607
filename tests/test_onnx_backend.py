"""Models of Tile on the simulated device: onnx's own tests of its Backend interface, and real models."""

from __future__ import annotations

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

from dml_tile.errors import DialectError, DmlError
from dml_tile.simulation.target import simulate
from tests.helpers.onnx_backend import OPERATORS, TileBackend
from tests.helpers.onnx_graphs import constant, tile_node

MODELS: Final = Path(__file__).parent / "data" / "models"

X: Final = np.arange(6, dtype=np.float32).reshape(2, 3)


def model(*nodes: onnx.NodeProto, opset: int = 13, x: Any = TensorProto.FLOAT, shape: Any = "mn") -> onnx.ModelProto:
    """A model from x to an output of as many dimensions."""
    inputs = [helper.make_tensor_value_info("x", x, shape)]
    outputs = [helper.make_tensor_value_info("y", x, [None] * len(shape))]
    graph = helper.make_graph(nodes, "tiles", inputs, outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def tiled_model(repeats: Any, **fields: Any) -> onnx.ModelProto:
    return model(constant("r", repeats), tile_node(), **fields)


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


def test_tiles_and_what_prepares_them_follow_each_other() -> None:
    made = model(
        helper.make_node("Identity", ["x"], ["same"]),
        constant("shape", [3, 2]),
        helper.make_node("Reshape", ["same", "shape"], ["turned"]),
        constant("floats", [2.0, 1.0], "float32"),
        helper.make_node("Cast", ["floats"], ["r"], to=TensorProto.INT64),
        tile_node("turned", "r", "a"),
        tile_node("a", "shape", "y"),
    )
    assert {node.op_type for node in made.graph.node} == set(OPERATORS)
    prepared = TileBackend.prepare(made, target="windows-11-21h2")
    for x in (X, X + 1):
        np.testing.assert_array_equal(prepared.run([x])[0], np.tile(x.reshape(3, 2), (6, 2)))


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_opset_1_tiles_along_an_axis(dtype: str) -> None:
    made = model(
        constant("tiles", 3, dtype),
        constant("axis", 1, dtype),
        helper.make_node("Tile", ["x", "tiles", "axis"], ["y"]),
        opset=1,
    )
    np.testing.assert_array_equal(run(made), np.tile(X, (1, 3)))


@pytest.mark.parametrize(("opset", "taken"), [(6, False), (12, False), (13, True), (defs.onnx_opset_version(), True)])
def test_the_opset_decides_whether_bfloat16_is_tiled(opset: int, taken: bool) -> None:
    made = tiled_model([2, 2], opset=opset, x=TensorProto.BFLOAT16)
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
    result = run(tiled_model(repeats, x=kind, shape=[None] * np.ndim(x)), x)
    expected = np.tile(x, repeats)
    assert (result.dtype, result.shape) == (expected.dtype, expected.shape)
    np.testing.assert_array_equal(result, expected)


def test_a_target_that_refuses_the_tile_says_so() -> None:
    made = tiled_model([1, 1, 1, 2], x=TensorProto.INT64, shape=[1, 1, 2, 3])
    x = np.ones((1, 1, 2, 3), np.int64)
    with pytest.raises(DmlError, match="INT64 needs DML_FEATURE_LEVEL_4_1; windows-10-2004 has 2_0"):
        run(made, x, target="windows-10-2004")
    with simulate("windows-10-2004"), pytest.raises(DmlError):
        run(made, x)
    assert run(made, x).shape == (1, 1, 2, 6)
