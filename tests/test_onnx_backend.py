"""Models of Tile on the simulated device: onnx's own tests of its Backend interface, and real models.

Page: https://onnx.ai/onnx/api/backend.html
"""

from __future__ import annotations

import math
import unittest
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import numpy_helper
from onnx.backend import base
from onnx.backend.test import BackendTest, loader
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from dml_tile import Device
from dml_tile.arrays import onnx_type
from dml_tile.descriptors.tile import described
from dml_tile.dialects.directml import tile_desc
from dml_tile.dialects.tiles import onnx_tile
from dml_tile.simulation.target import simulate

MODELS: Final = Path(__file__).parent / "data" / "models"


class Tile(OpRun):
    """ONNX's Tile on a device at the simulated target."""

    op_domain = ""

    def _run(self, x: NDArray[Any], *others: NDArray[Any]) -> tuple[NDArray[Any]]:
        request = onnx_tile(self.run_params["opsets"][""]).request(onnx_type(x), x.shape, *others)
        desc = tile_desc(request)
        source, output = (np.zeros(buffer.total_tensor_size_in_bytes, np.uint8) for buffer in described(desc))
        source[: x.nbytes] = np.ascontiguousarray(x).reshape(-1).view(np.uint8)
        Device(raise_on_removal=True).execute(desc, source, output)
        size = math.prod(request.output_shape) * x.itemsize
        return (output[:size].view(x.dtype).reshape(request.output_shape),)


class TileModel(base.BackendRep):
    """A model whose tiles run on the device, all else on onnx's reference implementation."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._evaluator = ReferenceEvaluator(model, new_ops=[Tile])

    def run(self, inputs: Sequence[NDArray[Any]], **kwargs: Any) -> tuple[Any, ...]:
        names = self._evaluator.input_names
        return tuple(self._evaluator.run(None, dict(zip(names, inputs, strict=False))))


class TileBackend(base.Backend):
    """onnx's Backend interface to such models."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> TileModel:
        return TileModel(model)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        return device == "CPU"


def test_onnx_s_runner_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    # which else would compute the data of every operator's tests
    monkeypatch.setattr(loader, "import_recursive", lambda cases: import_module(f"{cases.__name__}.tile"))
    runner = BackendTest(TileBackend, __name__).include("^test_tile.*_cpu$").include("^test_operator_repeat.*_cpu$")
    result = unittest.TestResult()
    runner.test_suite.run(result)
    assert result.wasSuccessful(), result.errors + result.failures
    assert result.testsRun - len(result.skipped) >= 4


@pytest.mark.parametrize("path", sorted(MODELS.glob("*.onnx")), ids=lambda path: path.stem)
@pytest.mark.parametrize("target", ["windows-11-21h2", "6_4"])
def test_a_real_model_gives_numpy_s_result(path: Path, target: str) -> None:
    read = onnx.load(path)
    sizes = [dim.dim_value for dim in read.graph.input[0].type.tensor_type.shape.dim]
    x = np.random.default_rng(5).random(sizes, np.float32)
    given = [numpy_helper.to_array(tensor) for tensor in read.graph.initializer]
    repeats = given[0] if given else np.arange(2, 2 + len(sizes))
    with simulate(target):
        (output,) = TileBackend.run_model(read, [x] if given else [x, repeats])
    np.testing.assert_array_equal(output, np.tile(x, repeats))
