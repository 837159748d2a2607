"""Executed gradients beside the operators that they belong to: adjoints, and differences of small steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray

from dml_tile import OperatorDesc, data_type_of, evaluate

pytestmark = pytest.mark.long

Array = NDArray[Any]
SEEDS: Final = range(10)
STEP: Final = 1e-2


def run(operator: str, inputs: Mapping[str, Array | None], outputs: dict[str, tuple[int, ...]], **fields: Any) -> Any:
    """The first output; tensors are FLOAT32, and None where they are null."""
    given = {name: each for name, each in inputs.items() if each is not None}
    tensors: dict[str, Any] = dict.fromkeys(inputs)
    tensors |= {name: {"DataType": data_type_of(each.dtype).name, "Sizes": each.shape} for name, each in given.items()}
    tensors |= {name: {"DataType": "FLOAT32", "Sizes": shape} for name, shape in outputs.items()}
    found = evaluate(OperatorDesc(type=operator, desc=fields | tensors), given, "6_4", "runtime")
    return found[next(iter(outputs))]


def drawn(rng: np.random.Generator, *shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


def require_adjoint(x: Array, y: Array, forward: Array, backward: Array) -> None:
    """For a linear operator, <forward(x), y> is <x, backward(y)>."""
    assert np.vdot(forward, y) == pytest.approx(np.vdot(x, backward), rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_gradient_of_an_average_is_its_adjoint(seed: int) -> None:
    rng = np.random.default_rng(seed)
    (size, step), pad = rng.integers(1, 4, (2, 2)), rng.integers(0, 2, 2)
    sizes = rng.integers(4, 8, 2)
    out = (sizes + 2 * np.minimum(pad, size - 1) - size) // step + 1
    padding = np.minimum(pad, size - 1).tolist()
    fields: dict[str, Any] = {"Strides": step.tolist(), "WindowSize": size.tolist(), "StartPadding": padding}
    fields |= {"EndPadding": padding, "IncludePadding": bool(seed % 2)}
    x, y = drawn(rng, 1, 2, *sizes), drawn(rng, 1, 2, *out)
    forward = run("AVERAGE_POOLING", {"InputTensor": x}, {"OutputTensor": y.shape}, **fields)
    backward = run("AVERAGE_POOLING_GRAD", {"InputGradientTensor": y}, {"OutputGradientTensor": x.shape}, **fields)
    require_adjoint(x, y, forward, backward)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("mode", ["NEAREST_NEIGHBOR", "LINEAR"])
def test_the_gradient_of_a_resampling_is_its_adjoint(seed: int, mode: str) -> None:
    rng = np.random.default_rng(seed)
    sizes, out = rng.integers(2, 6, (2, 2))
    scales = [1, 1, *(out / sizes).tolist()]
    x, y = drawn(rng, 1, 2, *sizes), drawn(rng, 1, 2, *out)
    fields: dict[str, Any] = {"InterpolationMode": mode, "Scales": scales}
    fields |= {"InputPixelOffsets": [0.5] * 4, "OutputPixelOffsets": [-0.5] * 4}
    forward = run("RESAMPLE1", {"InputTensor": x}, {"OutputTensor": y.shape}, **fields)
    fields |= {"InputPixelOffsets": [-0.5] * 4, "OutputPixelOffsets": [0.5] * 4}  # each is of the tensor of its name
    backward = run("RESAMPLE_GRAD", {"InputGradientTensor": y}, {"OutputGradientTensor": x.shape}, **fields)
    require_adjoint(x, y, forward, backward)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_backward_convolution_is_the_adjoint_of_the_forward_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size, step, spread = (rng.integers(1, 4, 2) for _ in range(3))
    x, filter_ = drawn(rng, 2, 4, *rng.integers(7, 10, 2)), drawn(rng, 6, 2, *size)
    out = (np.array(x.shape[2:]) - (size - 1) * spread - 1) // step + 1
    left = np.array(x.shape[2:]) - ((out - 1) * step + (size - 1) * spread + 1)
    x = x[:, :, : x.shape[2] - left[0], : x.shape[3] - left[1]]
    y = drawn(rng, 2, 6, *out)
    fields: dict[str, Any] = {"Mode": "CROSS_CORRELATION", "GroupCount": 2, "Strides": step.tolist()}
    fields |= {name: [0, 0] for name in ("StartPadding", "EndPadding", "OutputPadding")}
    fields["Dilations"] = spread.tolist()
    tensors = {"InputTensor": x, "FilterTensor": filter_, "BiasTensor": None}
    forward = run("CONVOLUTION", tensors, {"OutputTensor": y.shape}, **fields, Direction="FORWARD")
    tensors["InputTensor"] = y
    backward = run("CONVOLUTION", tensors, {"OutputTensor": x.shape}, **fields, Direction="BACKWARD")
    require_adjoint(x, y, forward, backward)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_gradient_of_local_response_normalization_is_that_of_small_steps(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, gradient = drawn(rng, 1, 5, 3, 4), drawn(rng, 1, 5, 3, 4)
    fields: dict[str, Any] = {"CrossChannel": bool(seed % 2), "LocalSize": 3, "Alpha": 0.5, "Beta": 0.75, "Bias": 1.5}

    def forward(values: Array) -> Any:
        return run("LOCAL_RESPONSE_NORMALIZATION", {"InputTensor": values}, {"OutputTensor": x.shape}, **fields)

    inputs = {"InputTensor": x, "InputGradientTensor": gradient}
    found = run("LOCAL_RESPONSE_NORMALIZATION_GRAD", inputs, {"OutputGradientTensor": x.shape}, **fields)
    np.testing.assert_allclose(found, _by_steps(forward, x, gradient), rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_gradient_of_batch_normalization_in_training_is_that_of_small_steps(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, gradient, scale = drawn(rng, 2, 3, 2, 3), drawn(rng, 2, 3, 2, 3), drawn(rng, 1, 3, 1, 1)
    parts = {f"Output{name}Tensor": scale.shape for name in ("Mean", "Variance")}

    def forward(values: Array) -> Any:
        tensors = {"InputTensor": values, "ScaleTensor": scale, "BiasTensor": np.zeros_like(scale)}
        outputs = {"OutputTensor": x.shape} | parts
        return run("BATCH_NORMALIZATION_TRAINING", tensors | {"FusedAddTensor": None}, outputs, Epsilon=1e-3)

    mean, variance = (getattr(x, name)((0, 2, 3), keepdims=True) for name in ("mean", "var"))
    inputs = {"InputTensor": x, "InputGradientTensor": gradient, "MeanTensor": mean, "VarianceTensor": variance}
    outputs = {"OutputGradientTensor": x.shape} | {
        f"Output{name}GradientTensor": scale.shape for name in ("Scale", "Bias")
    }
    found = run("BATCH_NORMALIZATION_TRAINING_GRAD", inputs | {"ScaleTensor": scale}, outputs, Epsilon=1e-3)
    np.testing.assert_allclose(found, _by_steps(forward, x, gradient), rtol=2e-2, atol=2e-2)


def _by_steps(forward: Any, x: Array, gradient: Array) -> Array:
    """The gradient of each element, of the sum of the outputs times ``gradient``."""
    found = np.zeros_like(x)
    for place in np.ndindex(*x.shape):
        above, below = x.copy(), x.copy()
        above[place] += STEP
        below[place] -= STEP
        found[place] = np.vdot(forward(above).astype(float) - forward(below), gradient) / (2 * STEP)
    return found
