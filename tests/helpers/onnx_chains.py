"""onnx's own test cases of operators, between constants and a Tile's repeats, folded here and by onnxruntime."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import onnxruntime
from onnx import ModelProto, NodeProto, TensorProto, numpy_helper
from onnx.backend.test.case.node import collect_testcases

from dml_tile.readers.model_tile import TileNode
from dml_tile.readers.onnx.folding import MAX_COMPUTED_ELEMENTS, is_disputed
from tests.helpers.onnx_graphs import computed, constant, model, nodes_of, typed

NEWEST_OPSET: Final = 24
"""The newest opset that onnxruntime is asked to read."""

_ZEROS: Final = (
    "s{0} = Shape(x); d{0} = Sub(s{0}, s{0}); i{0} = 1; z{0} = Gather(d{0}, i{0})",
    "s{0} = Size(x); i{0} = 3; z{0} = Mod(s{0}, i{0})",
)
"""Computations of a 0 from the shape {2, 3} of the input x."""

_REPEATS: Final = """
    f = Cast<to=1>({}); minus = [-1]; flat = Reshape(f, minus); more = [1.0, 2.0]; all = Concat<axis=0>(flat, more)
    first = [0]; two = [2]; v = Slice(all, first, two)
    n = IsNaN(v); one = 1.0; k = Where(n, one, v); zero = 0.0; five = 5.0; b = Clip(k, zero, five)
    shift = 0.2637; a = Add(b, shift); l = Floor(a); r = Cast<to=7>(l); [T] y = Tile(x, r)
"""
"""Tiles x by integers from 0 to 5 made of any tensor, rounded far from where a small error would matter."""


def constant_nodes(name: str, array: Any, rng: random.Random) -> list[NodeProto] | TensorProto:
    """Return a constant as an initialiser, as a node, or computed so that it depends on the shape of the input x."""
    values, way = np.asarray(array), rng.choice(["initialiser", "node", "shape"])
    if way == "initialiser":
        return numpy_helper.from_array(values, name)
    if way == "node" or values.dtype not in (np.float32, np.int64):
        return [constant(name, values, values.dtype.name)]
    zero = rng.choice(_ZEROS).format(name)
    kind = 1 if values.dtype == np.float32 else 7
    added = computed(f"{zero}; k{name} = Cast<to={kind}>(z{name}); {name} = Add(c{name}, k{name})")
    return [constant(f"c{name}", values, values.dtype.name), *added]


def operator_chains(rng: random.Random, share: float) -> Iterator[ModelProto]:
    """Yield a chain through each of a share of onnx's own test cases of one node that takes and gives tensors."""
    with warnings.catch_warnings(action="ignore"):
        cases = [(case.model, case.data_sets) for case in collect_testcases()]
    for case, data_sets in cases:
        if case is None or not data_sets or len(case.graph.node) != 1 or rng.random() >= share:
            continue
        inputs, outputs = data_sets[0]
        (node,) = case.graph.node
        tensors = [*inputs, *outputs]
        is_random = node.op_type == "Dropout" and len(node.input) > 2
        if node.domain or is_random or not all(isinstance(tensor, np.ndarray | np.generic) for tensor in tensors):
            continue
        sizes = [np.size(tensor) for tensor in tensors]
        index = rng.randrange(len(outputs))
        has_nans = any(tensor.dtype.kind == "f" and np.isnan(tensor).any() for tensor in map(np.asarray, inputs))
        if has_nans or max(sizes) > MAX_COMPUTED_ELEMENTS or np.asarray(outputs[index]).dtype.kind not in "biuf":
            continue
        copied = deepcopy(node)
        copied.input[:] = [f"in_{name}" if name else "" for name in node.input]
        copied.output[:] = [f"out_{name}" if name else "" for name in node.output]
        given = zip(case.graph.input, inputs, strict=True)
        made = [constant_nodes(f"in_{value.name}", array, rng) for value, array in given]
        nodes = [each for part in made if isinstance(part, list) for each in part]
        yield model(
            *nodes,
            copied,
            _REPEATS.format(f"out_{case.graph.output[index].name}"),
            opset=min(max(case.opset_import[0].version, 13), NEWEST_OPSET),
            initializer=[part for part in made if isinstance(part, TensorProto)],
        )


def compare(model: ModelProto, folder: Path) -> tuple[bool, str] | None:
    """Return whether onnxruntime folds a chain, and how it contradicts what is known here; None if it cannot run it."""
    optimised = folder / "optimised.onnx"
    tapped = deepcopy(model)
    tapped.graph.output.append(typed("r", None, TensorProto.INT64))
    try:
        session(model, "ORT_ENABLE_BASIC", optimised)
        (run,) = session(tapped, "ORT_DISABLE_ALL").run(["r"], {"x": np.ones((2, 3), np.float32)})
    except Exception:  # of any class: of the chains some are none, or of operators that it lacks
        return None
    graph = onnx.load(optimised).graph
    constants = {tensor.name for tensor in graph.initializer}
    is_folded = all(node.input[1] in constants for node in graph.node if node.name == "T")
    found = next(part for part in nodes_of(model) if part.pointer == "T")
    known = found.repeats if isinstance(found, TileNode) and not found.error else ()
    is_missed = is_folded and (known is None or None in known) and not any(map(is_disputed, model.graph.node))
    if is_missed or any(one not in (None, other) for one, other in zip(known or (), run.tolist(), strict=False)):
        return is_folded, f"{' '.join(node.op_type for node in model.graph.node)}: {known}; it runs {run.tolist()}"
    return is_folded, ""


def session(model: ModelProto, level: str, optimised: Path | None = None) -> Any:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    if optimised is not None:
        options.optimized_model_filepath = str(optimised)
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
