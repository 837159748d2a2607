"""Random chains of ONNX operators from constants or shapes to Tiles, folded here and by onnxruntime.

``python -m tests.helpers.onnx_chains CHAINS SEED…`` prints the figures of that many random chains for each seed, and of
chains through onnx's own test cases of a node, through each of them from 1,000 on. Exits with 1 if anything is wrong.
"""

from __future__ import annotations

import random
import re
import sys
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import onnx
import onnxruntime
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from dml_tile.back_ends import BACK_ENDS
from dml_tile.checks.judging import judged
from dml_tile.checks.verdict import Verdict
from dml_tile.checks.via import as_optimised
from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.targets import Target
from dml_tile.readers.item import item_of
from dml_tile.readers.model_names import KnownShapes
from dml_tile.readers.model_tile import TileNode
from dml_tile.readers.onnx.folding import MAX_COMPUTED_ELEMENTS, is_computed
from dml_tile.readers.onnx.nodes import Node
from tests.helpers.described_nodes import node_tests
from tests.helpers.onnx_graphs import computed, constant, folded_in, model, node, nodes_of, tile_node, typed

NEWEST_OPSET: Final = 24
"""The newest opset that onnxruntime is asked to read."""

RANK: Final = 2

SHAPES: Final = ([2, 3], ["N", 3], ["N", "M"], [None, 3])
"""The shapes that the input may have in the file; a run gives it the first."""

ALL_CASES: Final = 1000
"""The random chains from which on there is one through each of onnx's test cases, too."""

ELEMENTS: Final = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.INT64)
TARGETS: Final = [Target.parse(name) for name in ("2_0", "4_0", "6_4")]

_STEPS: Final = (
    # operators of x, a vector of floats, and of c and i, constants of floats and integers, that give such a vector y;
    # whole is the model's input
    *(
        f"y = {operator}(x)"
        for operator in (
            *("Abs", "Ceil", "Cos", "Elu", "Erf", "Floor", "HardSigmoid", "Identity", "LeakyRelu", "Neg", "Relu"),
            *("Round", "Sigmoid", "Sign", "Softsign", "Tanh", "ThresholdedRelu"),
        )
    ),
    *(f"y = {operator}(x, c)" for operator in ("Add", "Div", "Max", "Min", "Mul", "Sub")),
    *(f"b = {operator}(x, c); y = Cast<to=1>(b)" for operator in ("Greater", "Equal", "LessOrEqual")),
    *(
        f"one = 1.0; five = 5.0; n = IsNaN(x); k = Where(n, one, x); zero = 0.0; b = Clip(k, zero, five); "
        f"w = Cast<to=7>(b); a = {operator}(w, i); y = Cast<to=1>(a)"
        for operator in ("Add", "Sub", "Mul", "Div", "Mod", "Max", "Pow")
    ),
    "half = 0.5; y = Clip(x, half)",
    *(f"zero = 0; y = CumSum<reverse={reverse}>(x, zero)" for reverse in (0, 1)),
    "y = Mod<fmod=1>(x, c)",
    "b = Cast<to=9>(x); n = Not(b); y = Cast<to=1>(n)",
    "b = Less(x, c); y = Where(b, x, c)",
    "y = Softmax<axis=0>(x)",
    "half = 0.5; m = Max(x, half); y = Reciprocal(m)",
    "a = Abs(x); y = Sqrt(a)",  # its arguments, as all here, make no NaN
    "minus = [-1]; end = [-9]; axis = [0]; y = Slice(x, minus, end, axis, minus)",
    "k = [2]; y, indices = TopK(x, k)",
    (  # NaNs have no integer
        "one = 1.0; n = IsNaN(x); k = Where(n, one, x); s = 0.5; five = 5; z = Cast<to=2>(five); "
        "q = QuantizeLinear(k, s, z); y = DequantizeLinear(q, s, z)"
    ),
    "one = [1]; two = [2]; p = Slice(x, one, two); pads = [1, 0]; value = 2.0; y = Pad(p, pads, value)",
    "m = ReduceMax<keepdims=1>(x); two = [2]; y = Expand(m, two)",
    "wide = [1, -1]; w = Reshape(x, wide); t = Transpose(w); flat = [-1]; y = Reshape(t, flat)",
    *(
        f"{text}; f = Cast<to=1>(t); y = Add(x, f)"
        for text in (
            "t = Shape(whole)",
            "t = Shape<start=1>(whole)",
            "t = Size(whole)",
            "s = Shape(whole); k = ConstantOfShape(s); t = Shape(k)",
            "s = Shape(whole); one = 1; n = Gather(s, one); zero = 0; r = Range(zero, n, one); t = Shape(r)",
            "s = Shape(whole); column = [2, 1]; w = Reshape(x, column); e = Expand(w, s); t = Shape(e)",
            "s = Shape(whole); first = [0]; n = Gather(s, first); w = Tile(x, n); t = Shape(w)",
        )
    ),
    (
        "m = ReduceMax<keepdims=0>(x); one = 1.0; b = Greater(m, one); y = If(b)<"
        "then_branch = then () => (float[2] t) { t = Neg(x) }, else_branch = other () => (float[2] e) { e = Abs(x) }>"
    ),
)

_ZEROS: Final = (
    "s = Shape(x); d = Sub(s, s); one = 1; z = Gather(d, one)",
    "s = Size(x); three = 3; z = Mod(s, three)",
)
"""Computations of a 0 from the shape {2, 3}."""

_REPEATS: Final = (
    "n = IsNaN(x); one = 1.0; k = Where(n, one, x); zero = 0.0; five = 5.0; b = Clip(k, zero, five);"
    "shift = 0.2637; a = Add(b, shift); f = Floor(a); y = Cast<to=7>(f)"
)
"""Computes integers from 0 to 5 of floats, rounded far from where a small error would matter."""

_VECTOR: Final = (
    "f = Cast<to=1>(x); minus = [-1]; flat = Reshape(f, minus); more = [1.0, 2.0]; all = Concat<axis=0>(flat, more);"
    "zero = [0]; two = [2]; y = Slice(all, zero, two)"
)
"""Computes RANK floats of a tensor of any type and shape."""


_NINE: Final = "nine = [2, 1, 1, 1, 1, 1, 1, 1, 1]; y = Reshape(x, nine)"
"""Gives a vector more dimensions than ONNX Runtime's DirectML provider takes."""

_OPEN: Final = {
    # what a verdict may become as more is known
    Verdict.ACCEPTED_SO_FAR: set(Verdict),
    Verdict.UNDOCUMENTED_SO_FAR: {Verdict.UNDOCUMENTED, Verdict.UNDOCUMENTED_SO_FAR, Verdict.REFUSED},
}


@dataclass
class Figures:
    """The numbers of chains built, and of those folded by onnxruntime, and what is wrong.

    ``followed`` are the Tiles that onnxruntime folds by single elements of shapes.
    """

    built: int = 0
    folded_by_onnxruntime: int = 0
    followed: int = 0
    wrong: list[str] = field(default_factory=list)


class Chain:
    """A model under construction: nodes, initialisers, and names of values that nobody else has."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.shape, self.element = rng.choice(SHAPES), rng.choice(ELEMENTS)
        self.nodes: list[NodeProto] = []
        self.initialisers: list[TensorProto] = []

    def constant(self, array: Any, dtype: Any = None) -> str:
        """Add a constant, as an initialiser, as a node, or computed so that it depends on the shape of the input x."""
        values, name = np.asarray(array, dtype), self._name()
        way = self.rng.choice(["initialiser", "node", "shape"])
        if way == "initialiser":
            self.initialisers.append(numpy_helper.from_array(values, name))
            return name
        self.nodes.append(constant(name, values, values.dtype.name))
        if way == "node" or values.dtype not in (np.float32, np.int64):
            return name
        zero = f"{self.rng.choice(_ZEROS)}; k = Cast<to={1 if values.dtype == np.float32 else 7}>(z); y = Add(a, k)"
        return self.add(zero, "x", a=name)

    def _name(self) -> str:
        return f"v{len(self.nodes)}_{len(self.initialisers)}"

    def add(self, text: str, x: str, *, is_step: bool = False, **values: str) -> str:
        """Add the nodes of a text, which compute y of x and other values; return the name of y."""
        names = {"x": x, "whole": "x", **values}
        for each in computed(text):
            if is_step and each.op_type == "Constant":
                names[each.output[0]] = self.constant(numpy_helper.to_array(each.attribute[0].t))
                continue
            names |= {output: f"{self._name()}_{output}" for output in each.output}
            _rename(each, names)
            self.nodes.append(each)
        return names["y"]

    def step(self, value: str) -> str:
        """Add a random operator to a vector of floats of RANK elements; return a vector of as many."""
        text, constants = self.rng.choice(_STEPS), {}
        if re.search(r"\bc\b", text):
            constants["c"] = self.constant(self.rng.choices([0.5, 1.0, 2.0, 3.0, -1.5], k=RANK), np.float32)
        if re.search(r"\bi\b", text):
            constants["i"] = self.constant(self.rng.choices(range(1, 5), k=RANK), np.int64)
        return self.add(text, value, is_step=True, **constants)

    def model(self, value: str, opset: int) -> ModelProto:
        """Return the model that tiles its input x by repeats made of a vector of floats, and the vector itself.

        Of the tiled vector, all or only the shape is an output.
        """
        repeats, moved = self.add(_REPEATS, value), value
        counts = [2]
        if self.rng.random() < 0.3:
            moved, counts = self.add(_NINE, value), [2] * 9
        nodes = [tile_node("x", repeats, name="T"), tile_node(moved, self.constant(counts, np.int64), "v", name="V")]
        if self.rng.random() < 0.5:
            nodes.append(node("Shape", ["v"], ["z"]))
        else:
            nodes.append(node("Cast", ["v"], ["z"], to=TensorProto.INT64))
        inputs = [typed("x", self.shape, self.element)]
        made = model(*self.nodes, *nodes, inputs=inputs, opset=opset, initializer=self.initialisers)
        made.graph.output[0].CopyFrom(typed("y", None, self.element))
        made.graph.output.append(typed("z", None, TensorProto.INT64))
        return made


def _rename(node: NodeProto, names: Mapping[str, str]) -> None:
    """Rename values of a node and of its subgraphs."""
    node.input[:] = [names.get(name, name) for name in node.input]
    node.output[:] = [names.get(name, name) for name in node.output]
    for attribute in node.attribute:
        for inner in attribute.g.node:
            _rename(inner, names)


def random_chain(rng: random.Random) -> ModelProto:
    """Return a chain of up to six random operators of vectors."""
    chain = Chain(rng)
    value = chain.constant(rng.choices([0.0, 0.25, 1.0, 2.0, 4.0], k=RANK), np.float32)
    if rng.random() < 0.5:
        value = chain.add("s = Shape(x); y = Cast<to=1>(s)", "x")
    for _ in range(rng.randrange(1, 7)):
        value = chain.step(value)
    return chain.model(value, 18)


_MOVED_STEPS: Final = (
    # operators of x, a tensor, and of other, an input of its shape, that give such a tensor y, or one of other sizes
    *(f"y = {operator}(x)" for operator in ("Relu", "Exp", "Neg", "Tanh", "Identity", "Softmax")),
    "y = Cast<to=1>(x)",
    *(f"k = 2.0; y = {operator}(x, k)" for operator in ("Add", "Mul", "Max")),
    "y = Sub(x, other)",
    "y = ReduceMax<axes=[1], keepdims=1>(x)",
    "y = Softmax<axis=1>(x)",
)


def transposed_chain(rng: random.Random) -> ModelProto:
    """Return a chain of up to nine random operators, of which about a third are Transposes and a third are Tiles.

    Each value has one user: of a value with several, onnxruntime 1.32 keeps a Transpose where 1.24 moves it.
    """
    shape = [2, 3, 4] if rng.random() < 0.7 else ["N", 3, "M"]
    names = ["x"]
    nodes: list[NodeProto] = []
    for i in range(rng.randrange(3, 10)):
        source, kind, made = names[-1], rng.random(), f"v{i}"
        if kind < 0.35:
            nodes.append(node("Transpose", [source], [made], perm=rng.sample(range(3), 3)))
        elif kind < 0.65:
            nodes.append(constant(f"r{i}", rng.choices((1, 2, 3), k=3)))
            nodes.append(tile_node(source, f"r{i}", made, name=f"T{i}"))
        else:
            step = computed(rng.choice(_MOVED_STEPS))
            for each in step:
                _rename(each, {"x": source, "y": made, "other": "w", "k": f"k{i}"})
            nodes += step
        names.append(made)
    built = model(*nodes, inputs=[typed("x", shape), typed("w", shape)], opset=13)
    built.graph.output[0].name = names[-1]
    return built


def compare_transposed(model: ModelProto, figures: Figures, folder: Path) -> None:
    """Hold each Tile of a chain with Transposes to the Tile of onnxruntime's optimised model."""
    optimised = folder / "optimised.onnx"
    try:
        session(model, "ORT_ENABLE_BASIC", optimised)
    except Exception:  # of any class: shapes do not fit
        return
    figures.built += 1
    ort = BACK_ENDS["ort"]
    target = Target(FeatureLevel.DML_FEATURE_LEVEL_6_4, f"onnxruntime-windowsml-{onnxruntime.__version__}")
    theirs = {tile.pointer: tile for tile in nodes_of(onnx.load(optimised)) if isinstance(tile, TileNode)}
    for tile in nodes_of(model):
        if isinstance(tile, TileNode) and tile.pointer in theirs:
            ours, other = as_optimised(tile, ort, target), theirs[tile.pointer]
            figures.followed += bool(tile.transposed)
            if ours.repeats != other.repeats or any(
                one != size
                for one, size in zip(ours.shape or (), other.shape or (), strict=True)
                if isinstance(one, int) and isinstance(size, int)
            ):
                chain = " ".join(
                    f"{each.op_type}{list(each.attribute[0].ints)}" if each.op_type == "Transpose" else each.op_type
                    for each in model.graph.node
                )
                figures.wrong.append(f"{chain}: {tile.pointer} is {ours}; onnxruntime has {other}")


def operator_chains(rng: random.Random, share: float) -> Iterator[ModelProto]:
    """Yield a chain through each of a share of onnx's own test cases of one node that takes and gives tensors."""
    if not share:
        return
    for case, runs, *_ in node_tests().values():
        if not runs or len(case.graph.node) != 1 or rng.random() >= share:
            continue
        inputs, outputs = runs[0]
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
        chain = Chain(rng)
        copied = deepcopy(node)
        given = dict(zip((value.name for value in case.graph.input), inputs, strict=True))
        copied.input[:] = [chain.constant(given[name]) if name else "" for name in node.input]
        copied.output[:] = [f"out_{name}" if name else "" for name in node.output]
        chain.nodes.append(copied)
        value = chain.add(_VECTOR, f"out_{case.graph.output[index].name}")
        if np.asarray(outputs[index]).dtype.kind != "f":  # a later step might make much of a small error
            for _ in range(rng.randrange(3)):
                value = chain.step(value)
        yield chain.model(value, min(max(case.opset_import[0].version, 13), NEWEST_OPSET))


def compare(model: ModelProto, figures: Figures, folder: Path) -> None:
    """Add a chain to the figures, unless onnxruntime cannot run it."""
    optimised = folder / "optimised.onnx"
    (whole,) = model.graph.input
    repeats = next(node.input[1] for node in model.graph.node if node.name == "T")
    tapped = deepcopy(model)
    tapped.graph.output.append(typed(repeats, None, TensorProto.INT64))
    x = np.ones(SHAPES[0], helper.tensor_dtype_to_np_dtype(whole.type.tensor_type.elem_type))
    try:
        session(model, "ORT_ENABLE_BASIC", optimised)
        (run,) = session(tapped, "ORT_DISABLE_ALL").run([repeats], {"x": x})
    except Exception:  # of any class: of the chains some are none, or of operators that it lacks
        return
    figures.built += 1
    graph = onnx.load(optimised).graph
    constants = {tensor.name for tensor in graph.initializer}
    is_folded = all(node.input[1] in constants for node in graph.node if node.name == "T")
    figures.folded_by_onnxruntime += is_folded
    sizes = [dim.dim_param or dim.dim_value or None for dim in whole.type.tensor_type.shape.dim]
    chain = f"{' '.join(node.op_type for node in model.graph.node)} of {sizes}"
    runs = KnownShapes(input_shapes={"x": x.shape})
    unsized, sized = (
        {part.pointer: part for part in nodes_of(model, known_shapes) if isinstance(part, TileNode)}
        for known_shapes in (KnownShapes(), runs)
    )
    for found in unsized, sized:
        known = found["T"].repeats if not found["T"].error else ()
        report = f"{chain}: {known}; onnxruntime runs {run.tolist()}"
        if (
            is_folded
            and (known is None or None in known)
            and all(
                is_computed(Node(each, each.domain, None))
                for each in model.graph.node
                if each.op_type not in ("Shape", "Size")
            )
        ):
            figures.wrong.append(f"missed: {report}")
        if known is not None and any(one not in (None, other) for one, other in zip(known, run.tolist(), strict=False)):
            figures.wrong.append(f"contradicted: {report}")
    kept, folded_in_runs = {node.name for node in graph.node}, folded_in(model, runs)
    for name, folded in folded_in(model).items():
        if folded and name in kept:
            figures.wrong.append(f"{chain}: {name} is called folded: {folded}")
        figures.followed += not folded and name not in kept
        if folded_in_runs[name] != folded:
            figures.wrong.append(f"{chain}: with sizes, {name} is called folded: {folded_in_runs[name]!r}")


def compare_verdicts(model: ModelProto, figures: Figures, rng: random.Random) -> None:
    """Hold the verdicts with random sizes to those without."""
    asked = KnownShapes({name: rng.choice([0, 1, 2, 3, 2**32]) for name in ("N", "M") if rng.random() < 0.8})
    unsized, sized = nodes_of(model), nodes_of(model, asked)
    for before, after in zip(unsized, sized, strict=True):
        for via in (None, *BACK_ENDS.values()):
            pairs = zip(*(judged("", item_of(part), TARGETS, "both", via) for part in (before, after)), strict=True)
            for first, second in pairs:
                if second.verdict not in _OPEN.get(first.verdict, {first.verdict}):
                    one, other = first.item.operator, second.item.operator
                    text = f"{one} is {first.verdict}, {other} {second.verdict} at {first.target}"
                    figures.wrong.append(f"{text} through {via and via.name}")


def figures_of(seed: int, chains: int, share: float, folder: Path) -> Figures:
    """Return the figures of as many random chains, and of one through each of a share of onnx's test cases."""
    rng, figures = random.Random(seed), Figures()
    for chain in (*(random_chain(rng) for _ in range(chains)), *operator_chains(rng, share)):
        compare(chain, figures, folder)
        compare_verdicts(chain, figures, rng)
    for _ in range(chains):
        compare_transposed(transposed_chain(rng), figures, folder)
    return figures


def session(model: ModelProto, level: str, optimised: Path | None = None) -> Any:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    if optimised is not None:
        options.optimized_model_filepath = str(optimised)
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def main(chains: int, seeds: list[int]) -> int:
    """Print the figures of each seed, and what is wrong; return 1 if anything is."""
    status = 0
    for seed in seeds:
        with TemporaryDirectory() as folder:
            figures = figures_of(seed, chains, chains / ALL_CASES, Path(folder))
        counts = f"{figures.built} built, {figures.folded_by_onnxruntime} folded, {figures.followed} followed"
        lines = [f"seed {seed}: {counts}, {len(figures.wrong)} wrong", *(f"  {report}" for report in figures.wrong)]
        sys.stdout.write("\n".join([*lines, ""]))
        sys.stdout.flush()
        status |= bool(figures.wrong)
    return status


if __name__ == "__main__":
    count, *numbers = map(int, sys.argv[1:])
    sys.exit(main(count, numbers))
