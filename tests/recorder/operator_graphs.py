"""Draws random graphs of any operators, good ones and ones with a fault. No two edges lead to one output of the graph.

They are compiled alone: what binding them takes is not emulated.
"""

from __future__ import annotations

from random import Random
from typing import Any, Final

from dml_tile.directml.enums import UINT_MAX
from tests.helpers.played_lives import Life

FLOAT: Final = {"DataType": "FLOAT32", "Sizes": [1, 1, 2, 2]}
UINT: Final = FLOAT | {"DataType": "UINT32"}
WIDE: Final = FLOAT | {"Sizes": [1, 1, 2, 4]}
NARROW: Final = FLOAT | {"Sizes": [1, 1, 2, 1]}
NODES: Final[dict[str, dict[str, Any]]] = {
    "ACTIVATION_RELU": {"InputTensor": FLOAT, "OutputTensor": FLOAT},
    "CAST": {"InputTensor": UINT, "OutputTensor": FLOAT},
    "ELEMENT_WISE_ADD": {"ATensor": FLOAT, "BTensor": FLOAT, "OutputTensor": FLOAT},
    "ELEMENT_WISE_IDENTITY": {"InputTensor": UINT, "OutputTensor": FLOAT},  # which is refused
    "FILL_VALUE_CONSTANT": {"OutputTensor": FLOAT, "ValueDataType": "FLOAT32", "Value": 1},
    "GEMM": {"ATensor": FLOAT, "BTensor": FLOAT, "CTensor": FLOAT, "OutputTensor": FLOAT}
    | {"TransA": "NONE", "TransB": "NONE", "Alpha": 1, "Beta": 1},
    "JOIN": {"InputTensors": [NARROW, NARROW], "OutputTensor": FLOAT, "Axis": 3},
    "TILE": {"InputTensor": FLOAT, "OutputTensor": WIDE, "RepeatsCount": 4, "Repeats": [1, 1, 1, 2]},
    "TOP_K": {"InputTensor": FLOAT, "OutputValueTensor": FLOAT, "OutputIndexTensor": UINT, "Axis": 3, "K": 2},
}
INDICES: Final = (0, 1, 2, 3, 4, UINT_MAX)


def draw_operator_graph(seed: str) -> Life:
    """The life that compiles the graph of a seed."""
    return {"asks": False, "calls": [["CompileGraph", "d0", _graph(Random(seed)), 0]]}


def _graph(drawn: Random) -> dict[str, Any]:
    nodes = list[dict[str, Any]]()
    for name in drawn.choices(list(NODES), k=drawn.randint(1, 3)):
        without_c = {"CTensor": None} if name == "GEMM" and drawn.random() < 0.5 else {}
        nodes.append({"Type": name, "Desc": NODES[name] | without_c})
    inputs, outputs, between = list[list[int]](), list[list[int]](), list[list[int]]()
    tensors = [_tensors(node["Desc"]) for node in nodes]
    for i, (read, _) in enumerate(tensors):
        for slot, tensor in enumerate(read):
            if tensor is None and drawn.random() < 0.85:
                continue
            if i and drawn.random() < 0.6:
                other = drawn.randrange(i)
                between.append([other, drawn.randrange(len(tensors[other][1])), i, slot])
            else:
                inputs.append([len(inputs), i, slot])
    for i, (_, written) in enumerate(tensors):
        for slot in range(len(written)):
            if i == len(nodes) - 1 or drawn.random() < 0.7:
                outputs.append([i, slot, len(outputs)])
    counts = {"InputCount": len(inputs), "OutputCount": len(outputs)}
    for edges in (inputs, outputs, between):
        if edges and drawn.random() < 0.12:
            edge = drawn.choice(edges)
            edge[drawn.randrange(2 if edges is outputs else len(edge))] = drawn.choice(INDICES)
        if edges and drawn.random() < 0.06:
            edges.pop(drawn.randrange(len(edges)))
    edges_by_name = {"InputEdges": inputs, "OutputEdges": outputs, "IntermediateEdges": between}
    return counts | {"Nodes": [[1, node] for node in nodes]} | edges_by_name


def _tensors(fields: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """The inputs and the outputs, null ones among them."""
    tensors = list[Any](), list[Any]()
    for name, value in fields.items():
        if name.endswith("Tensors"):
            tensors[0].extend(value)
        elif name.endswith("Tensor"):
            tensors[name.startswith("Output")].append(value)
    return tensors
