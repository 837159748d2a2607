"""Draws random graphs of tiles, good ones and ones with a fault. No two edges lead to one output of the graph."""

from __future__ import annotations

import random
from typing import Any, Final

from dml_tile.descriptors.tile import described
from dml_tile.directml.enums import UINT_MAX
from tests.helpers.played_lives import GRAPH_TILES, Life

NAMES: Final = (*GRAPH_TILES, *("A", "B", "I") * 3)
ARRAYS: Final = ("InputEdges", "OutputEdges", "IntermediateEdges")


def draw_graph(seed: str) -> Life:
    """The life that compiles the graph of a seed."""
    drawn = random.Random(seed)
    return {"asks": False, "calls": [["CompileGraph", "d0", _graph(drawn), drawn.choice((0, 0, 0, 4, 7, 8))]]}


def _graph(drawn: random.Random) -> dict[str, Any]:
    count = drawn.choice((1, 1, 2, 2, 3, 4, 5))
    names = [drawn.choice(NAMES) for _ in range(count)]
    inputs, outputs = drawn.choice((1, 1, 2, 3)), count + drawn.choice((0, 0, 1, 2))
    edges: dict[str, list[Any]] = {array: [] for array in ARRAYS}
    order = drawn.sample(range(count), count)
    totals = {
        node: [tensor.total_tensor_size_in_bytes for tensor in described(GRAPH_TILES[names[node]])] for node in order
    }
    used = set()
    for place, node in enumerate(order):
        before = order[:place]
        if drawn.random() < 0.85:
            before = [other for other in before if totals[other][1] == totals[node][0]]
        if before and drawn.random() < 0.7:
            used.add(other := drawn.choice(before))
            edges["IntermediateEdges"].append([other, 0, node, 0])
        else:
            edges["InputEdges"].append([drawn.randrange(inputs), node, 0])
    free = drawn.sample(range(outputs), outputs)
    for node in order:
        if node not in used or drawn.random() < 0.2:
            edges["OutputEdges"].append([node, 0, free.pop()])
    graph: dict[str, Any] = {
        "InputCount": inputs,
        "OutputCount": outputs,
        "Nodes": [[1, name] for name in names],
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
            graph["Nodes"][drawn.randrange(count)] = drawn.choice((None, [1, None], [0, "A"], [3, "A"]))
