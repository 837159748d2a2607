"""Measures `dml-tile check MODEL --via ort` of models without Tiles: what a node costs, at one target and at eight.

Beside each is the same check by another checkout of the package, of the commit before nodes were placed. Times are of
the processor, of processes that take turns, and in microseconds a node beyond the other's.

python benchmarks/bench_models.py [--before FOLDER] [--nodes 1000 --nodes 10000] [--samples 5]
"""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path
from typing import Annotated, Final

import onnx
import typer
from harness import ROOT, process, processor_time, show
from onnx import TensorProto, helper
from rich.table import Table

TARGETS: Final = [
    f"onnxruntime-directml-{minor}" for minor in ("1.24", "1.23", "1.22", "1.21", "1.20", "1.19", "1.18", "1.17")
]
OPERATORS: Final = ("Add", "Relu", "Mul", "Sigmoid")


def save(count: int, name: Path) -> None:
    """A model of so many nodes, one behind the other, of four operators in turn."""
    nodes = []
    for i in range(count):
        operator = OPERATORS[i % len(OPERATORS)]
        inputs = [f"v{i}", "w"][: 1 + (operator in ("Add", "Mul"))]
        nodes.append(helper.make_node(operator, inputs, [f"v{i + 1}"], name=f"n{i}"))
    value = helper.make_tensor_value_info("v0", TensorProto.FLOAT, ["N", 8])
    output = helper.make_tensor_value_info(f"v{count}", TensorProto.FLOAT, ["N", 8])
    weights = helper.make_tensor("w", TensorProto.FLOAT, [8], [1.0] * 8)
    graph = helper.make_graph(nodes, "chain", [value], [output], [weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), name)


def seconds(model: Path, targets: int, checkout: Path, samples: int) -> float:
    """The median time of a check, by a checkout of the package."""
    options = [each for target in TARGETS[:targets] for each in ("-t", target)]
    run = process(
        "-P", "-m", "dml_tile", "check", str(model), "--via", "ort", *options, statuses=(0, 2), checkout=checkout
    )
    taken = []
    for _ in range(samples):
        start = processor_time()
        run()
        taken.append(processor_time() - start)
    return statistics.median(taken)


def main(
    before: Annotated[str, typer.Option(help="A checkout of the package that placed no nodes.")] = "",
    nodes: Annotated[list[int] | None, typer.Option(help="Nodes of a model.")] = None,
    samples: Annotated[int, typer.Option(help="Runs of each, of which the median counts.")] = 5,
) -> None:
    """Print what a node costs at one target, and each further target."""
    table = Table("nodes", "one target, s", "before, s", "µs a node", "µs a node and further target")
    with tempfile.TemporaryDirectory() as folder:
        for count in nodes or (1000, 10_000):
            model = Path(folder, f"{count}.onnx")
            save(count, model)
            one, eight = (seconds(model, targets, ROOT, samples) for targets in (1, 8))
            old = seconds(model, 1, Path(before), samples) if before else 0.0
            cells = one, old, (one - old) / count * 1e6, (eight - one) / count / 7 * 1e6
            table.add_row(f"{count:,}", *(f"{cell:.2f}" for cell in cells))
    show(table)


if __name__ == "__main__":
    typer.run(main)
