"""Draws random graphs of tiles or of any operators, good ones and ones with a fault.

Tiles are drawn too: their data types, sizes, strides, alignments, and room to spare. A node that reads another
describes what that writes mostly alike, or as other elements in as many bytes. Graphs of any operators are compiled
alone: what binding them takes is not emulated. No two edges lead to one output of a graph.
"""

from __future__ import annotations

import random
from math import prod
from typing import Any, Final

from dml_tile.descriptors.tile import BufferTensorDesc, described
from dml_tile.directml.data_types import ELEMENT_SIZES, TensorDataType
from dml_tile.directml.enums import UINT_MAX
from dml_tile.geometry.layout import minimum_size_in_bytes
from tests.helpers.descriptors import row
from tests.helpers.played_lives import Life
from tests.recorder.draws import broadcast, packed, padded, permuted

TYPES: Final = ("FLOAT32", "FLOAT32", "FLOAT16", "FLOAT16", "UINT8", "INT8", "UINT16", "INT32", "INT64")
ARRAYS: Final = ("InputEdges", "OutputEdges", "IntermediateEdges")
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


def draw_graph(seed: str) -> Life:
    """The life that compiles the graph of a seed, and asks for its binding properties if it is one of tiles."""
    drawn = random.Random(seed)
    is_of_tiles = drawn.random() < 0.75
    compiling = ["CompileGraph", "d0", _graph(drawn, is_of_tiles=is_of_tiles), drawn.choice((0, 0, 0, 4, 7, 8))]
    return {"asks": False, "calls": [compiling, *[["GetBindingProperties", "c0"]] * is_of_tiles]}


def _strides(drawn: random.Random, sizes: list[int], *, is_output: bool) -> list[int] | None:
    """Draw strides: none, or those of a packed, padded or turned tensor; or of an input that repeats elements."""
    kinds = (packed, padded, permuted) if is_output else (packed, padded, permuted, broadcast)
    return None if drawn.random() < 0.5 else drawn.choice(kinds)(drawn, sizes)


def _input(drawn: random.Random, fed: BufferTensorDesc | None) -> tuple[str, list[int], list[int] | None]:
    """Draw the data type, sizes and strides of an input, by default like those of what feeds it."""
    change = "all" if fed is None else drawn.choice(("none", "none", "type", "type", "strides", "all"))
    if fed is None or change == "all":
        sizes = [drawn.choice((1, 1, 2, 3, 4, 5, 6, 9)) for _ in range(drawn.randint(1, 4))]
        while prod(sizes) > (100 if fed is None else max(fed.total_tensor_size_in_bytes // 4, 1)):
            sizes[sizes.index(max(sizes))] //= 2
        return drawn.choice(TYPES), sizes, _strides(drawn, sizes, is_output=False)
    data_type = drawn.choice(TYPES) if change == "type" else TensorDataType(fed.data_type).name
    sizes, strides = list(fed.sizes or ()), list(fed.strides) if fed.strides else None
    if change == "strides":
        strides = _strides(drawn, sizes, is_output=False)
    if len(sizes) < 7 and drawn.random() < 0.3:
        sizes, strides = [1, *sizes], strides and [drawn.choice((0, 1, 7)), *strides]
    return data_type, sizes, strides


def _with_spare(drawn: random.Random, least: int) -> int:
    """Draw a TotalTensorSizeInBytes: the least, or more, such as elements of twice or four times the size take."""
    return least + drawn.choice((0, 0, 0, 0, 4, 8, 16, 48, least, least, 3 * least))


def _tile(drawn: random.Random, fed: BufferTensorDesc | None) -> list[Any]:
    """Draw a tile that DirectML takes, with a TotalTensorSizeInBytes like that of what feeds it."""
    while True:
        data_type, sizes, strides = _input(drawn, fed)
        size = ELEMENT_SIZES[TensorDataType[data_type]]
        least = minimum_size_in_bytes(size, sizes, strides)
        total = _with_spare(drawn, least) if fed is None else fed.total_tensor_size_in_bytes
        if total >= least:
            break
    repeats = [drawn.choice((1, 1, 1, 2, 3)) for _ in sizes]
    tiled = [one * repeat for one, repeat in zip(sizes, repeats, strict=True)]
    written = _strides(drawn, tiled, is_output=True)
    changes = {
        "InputTensor__Strides": strides,
        "InputTensor__TotalTensorSizeInBytes": total,
        "InputTensor__Flags": int(drawn.random() < (0.2 if fed is None else 0.02)),
        "InputTensor__GuaranteedBaseOffsetAlignment": drawn.choice((0, 0, 0, 16, 64, 512)),
        "OutputTensor__Strides": written,
        "OutputTensor__TotalTensorSizeInBytes": _with_spare(drawn, minimum_size_in_bytes(size, tiled, written)),
    }
    return [data_type, sizes, repeats, changes]


def _output(tile: list[Any]) -> BufferTensorDesc:
    data_type, sizes, repeats, changes = tile
    return described(row(data_type, sizes, repeats, **changes))[1]


def _operator(drawn: random.Random) -> dict[str, Any]:
    name = drawn.choice([*NODES])
    without_c = {"CTensor": None} if name == "GEMM" and drawn.random() < 0.5 else {}
    return {"Type": name, "Desc": NODES[name] | without_c}


def _graph(drawn: random.Random, *, is_of_tiles: bool) -> dict[str, Any]:
    count = drawn.choice((1, 1, 2, 2, 3, 4, 5) if is_of_tiles else (1, 2, 2, 3))
    inputs = drawn.choice((1, 1, 2, 3))
    edges: dict[str, list[Any]] = {array: [] for array in ARRAYS}
    order = drawn.sample(range(count), count)
    nodes = dict[int, Any]()
    written = list[tuple[int, int]]()  # the outputs of nodes
    for node in order:
        read, results = ([None], [None]) if is_of_tiles else _tensors(nodes.setdefault(node, _operator(drawn))["Desc"])
        for slot, tensor in enumerate(read):
            if not is_of_tiles and tensor is None and drawn.random() < 0.85:
                continue
            source = drawn.choice(written) if written and drawn.random() < 0.7 else None
            if is_of_tiles:
                nodes[node] = _tile(drawn, _output(nodes[source[0]]) if source and drawn.random() < 0.9 else None)
            if source is None:
                edges["InputEdges"].append([drawn.randrange(inputs), node, slot])
            else:
                edges["IntermediateEdges"].append([*source, node, slot])
        written += ((node, slot) for slot in range(len(results)))
    used = {(node, slot) for node, slot, *_ in edges["IntermediateEdges"]}
    outputs = len(written) + drawn.choice((0, 0, 1, 2))
    free = drawn.sample(range(outputs), outputs)
    edges["OutputEdges"] = [[*one, free.pop()] for one in written if one not in used or drawn.random() < 0.2]
    graph: dict[str, Any] = {
        "InputCount": inputs,
        "OutputCount": outputs,
        "Nodes": [[1, nodes[node]] for node in range(count)],
        **edges,
    }
    if drawn.random() < 0.35:
        _spoil(drawn, graph, drawn.choice([array for array in ARRAYS if graph[array]]))
    for array in ARRAYS:
        if graph[array] and drawn.random() < 0.3:
            drawn.shuffle(graph[array])
    led_to = set[int]()
    for edge in [edge for edge in graph["OutputEdges"] if edge is not None]:
        if edge[2] in led_to:
            graph["OutputEdges"].remove(edge)
        led_to.add(edge[2])
    return graph


def _tensors(fields: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """The inputs and the outputs, null ones among them."""
    tensors = list[Any](), list[Any]()
    for name, value in fields.items():
        if name.endswith("Tensors"):
            tensors[0].extend(value)
        elif name.endswith("Tensor"):
            tensors[name.startswith("Output")].append(value)
    return tensors


def _spoil(drawn: random.Random, graph: dict[str, Any], array: str) -> None:
    """Change one thing, mostly an edge."""
    edges, count = graph[array], len(graph["Nodes"])
    i = drawn.randrange(len(edges))
    match drawn.choice(("drop", "double", "index", "index", "add", "swap", "null", "type", "count", "node")):
        case "drop":
            del edges[i]
        case "double":
            edges.append(edges[i])
        case "index":
            values = (0, 1, count, count - 1, graph["InputCount"], graph["OutputCount"], UINT_MAX)
            edges[i] = list(edges[i])
            edges[i][drawn.randrange(len(edges[i]))] = drawn.choice(values)
        case "add":
            graph["IntermediateEdges"].append([drawn.randrange(count), 0, drawn.randrange(count), 0])
        case "swap":
            j = drawn.randrange(len(edges))
            edges[i], edges[j] = edges[j], edges[i]
        case "null":
            edges[i] = None
        case "type":
            edges[i] = [*edges[i], drawn.choice((0, 1, 2, 3, 4))]
        case "count":
            counted = {"Nodes": "NodeCount", array: f"{array[:-1]}Count"}[name := drawn.choice(("Nodes", array))]
            graph[counted] = drawn.choice((0, len(graph[name]) - 1))
        case "node":
            graph["Nodes"][drawn.randrange(count)] = drawn.choice((None, [1, None], [0, 0], [3, 0]))
