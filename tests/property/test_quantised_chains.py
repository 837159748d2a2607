"""Random chains of QuantizeLinear and DequantizeLinear from a constant to a Tile, folded here and by onnxruntime."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Final

import onnx
import pytest

from tests.helpers.onnx_graphs import model, tile_in, tile_node, typed
from tests.helpers.packages import needed

needed("onnxruntime")
from tests.helpers.onnx_chains import session  # noqa: E402  # the package is there

CONSTANTS: Final = "c = [1.0, 2.0]; s = 0.5; i = 1; z = Cast<to=2>(i); same = [-1]; r = [2]; v0 = Identity(c)"
STEPS: Final = {
    # operators of a vector v of floats, or of quantised elements, and what they give
    "float": {
        "QuantizeLinear(v, s, z)": "quantised",
        **dict.fromkeys(("Relu(v)", "Neg(v)", "Abs(v)", "Add(v, c)", "Reshape(v, same)", "Transpose(v)"), "float"),
    },
    "quantised": {
        "DequantizeLinear(v, s, z)": "float",
        **dict.fromkeys(("Reshape(v, same)", "Transpose(v)"), "quantised"),
    },
}


def chain(rng: random.Random) -> str:
    """Return the lines of a chain of up to six steps, half of which quantise or dequantise; the last gives ``x``."""
    lines, kind = [CONSTANTS], "float"
    for number in range(rng.randrange(1, 7)):
        first, *others = STEPS[kind]
        step = first if rng.random() < 0.6 else rng.choice(others)
        lines.append(f"v{number + 1} = {step.replace('(v', f'(v{number}')}")
        kind = STEPS[kind][step]
    return "; ".join([*lines, f"t = Identity(v{number + 1})"])


def is_run(built: onnx.ModelProto, folder: Path) -> bool:
    """Return True if onnxruntime leaves the Tile to a provider."""
    session(built, "ORT_ENABLE_BASIC", folder / "optimised.onnx")
    return any(node.op_type == "Tile" for node in onnx.load(folder / "optimised.onnx").graph.node)


@pytest.mark.parametrize("seed", range(5))
def test_a_tile_behind_quantised_constants_is_folded_where_onnxruntime_folds_it(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    for _ in range(40):
        text = chain(rng)
        built = model(text, tile_node("t", output="u", name="T"), "y = Cast<to=1>(u)", inputs=[typed("x", [2])])
        assert bool(tile_in(built).folded) != is_run(built, tmp_path), text
