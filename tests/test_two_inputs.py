"""Two inputs of one check: work that they share grows no faster than their bytes together."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from tempfile import mkdtemp
from typing import Final

import onnx
import pytest

from tests.helpers.check_files import INT64, TILE, captured
from tests.helpers.costs import cost_of, grows_at_most
from tests.helpers.onnx_graphs import model, typed

BROKEN: Final = TILE | {"Repeats": [0], "RepeatsCount": 1}


def set_up(folder: Path, text: str, mode: str = "w") -> None:
    with (folder / "pyproject.toml").open(mode) as settings:
        settings.write(text)


def write_stars(folder: Path, count: int) -> tuple[str, ...]:
    (folder / ".git").mkdir(exist_ok=True)
    (folder / ".gitignore").write_text("*a*a*ab7\n" * count)
    (folder / ("a" * 240 + ".json")).write_text(json.dumps(TILE))
    return ("check", ".")


def write_excluded(folder: Path, count: int) -> tuple[str, ...]:
    patterns = [f"{i:03}{'*b' * 98}" for i in range(count)]
    set_up(folder, f"[tool.dml-tile]\nexclude = {patterns}\n")
    deep = folder.joinpath(*["a" * 245] * 14)
    if not deep.exists():
        deep.mkdir(parents=True)
    for i in range(count // 5):
        (deep / f"{i}.json").write_text(json.dumps(TILE))
    return ("check", ".", "--quiet")


def write_file_ignores(folder: Path, count: int) -> tuple[str, ...]:
    ignores = {f"{'*' * i}.json": ["DML-BUFFER-Flags"] * 600 for i in range(1, 20)}
    text = "\n".join(f"{json.dumps(pattern)} = {json.dumps(rules)}" for pattern, rules in ignores.items())
    set_up(folder, f"[tool.dml-tile.per-file-ignores]\n{text}\n")
    (folder / "many.json").write_text(json.dumps([BROKEN] * count))
    return ("check", "many.json", "--format", "concise")


def write_edges(folder: Path, count: int) -> tuple[str, ...]:
    edge = {"GraphInputIndex": 0, "ToNodeIndex": 9, "ToNodeInputIndex": 0}
    graph = {"InputCount": 1, "OutputCount": 1, "Nodes": [{"Operator": TILE}]}
    graph["InputEdges"] = [edge | {"ToNodeIndex": 9 + i} for i in range(count)]
    (folder / "graph.json").write_text(json.dumps(graph))
    cost_of("check", "graph.json", "--write-baseline", "known.json", "--format", "text:out.txt", folder=folder)
    return ("check", "graph.json", "--baseline", "known.json", "--format", "text:out.txt")


def write_list(folder: Path, count: int) -> tuple[str, ...]:
    patterns = [f"{i:03}{'*b' * 98}" for i in range(count)]
    set_up(folder, f"[tool.dml-tile]\nexclude = {patterns}\n")
    deep = Path(*["a" * 100] * 20)
    (folder / deep).mkdir(parents=True, exist_ok=True)
    names = [str(deep / f"{i}.json") for i in range(4 * count)]
    for name in names:
        (folder / name).write_text(json.dumps(TILE))
    (folder / "list.txt").write_text("\n".join(names))
    return ("check", "--files-from", "list.txt", "--quiet", "--jobs", "1")


def write_capture(folder: Path, count: int) -> tuple[str, ...]:
    lines = [captured(BROKEN | {"Repeats": [i + 2]}) for i in range(count)]
    (folder / "many.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines * 3))
    cost_of("check", "many.jsonl", "--write-baseline", "known.json", "--format", "text:out.txt", folder=folder)
    return ("check", "many.jsonl", "--baseline", "known.json", "--format", "text:out.txt")


def write_dimensions(folder: Path, count: int) -> tuple[str, ...]:
    set_up(folder, f"[tool.dml-tile]\ndim = {[f'{i}{chr(100) * 200}=2' for i in range(count)]}\n")
    (folder / "many.json").write_text(json.dumps([INT64] * 3 * count))
    return ("check", "many.json", "--target", "2_0", "--format", "concise")


def write_patterns(folder: Path, count: int) -> tuple[str, ...]:
    set_up(folder, f"[tool.dml-tile]\npaths = {[f'**/*b{i}*b*.json' for i in range(count)] + ['**/a.json']}\n")
    for i in range(count):
        (folder / f"{i}").mkdir(exist_ok=True)
        for name in ("a.json", f"{'b' * 200}.json"):
            (folder / f"{i}" / name).write_text(json.dumps(TILE))
    return ("check", "--quiet")


def write_targets(folder: Path, count: int) -> tuple[str, ...]:
    set_up(folder, f"[tool.dml-tile]\ntargets = ['{','.join(['6_4', '5_0'] * count)}']\n")
    (folder / "many.json").write_text(json.dumps([TILE] * count))
    return ("check", "many.json", "--quiet")


def write_join(folder: Path, count: int) -> tuple[str, ...]:
    tensor = {"DataType": "FLOAT32", "Sizes": [1]}
    tensors = {"InputCount": count, "InputTensors": [tensor] * count, "OutputTensor": tensor | {"Sizes": [count]}}
    bound = {"OutputTensor": "r"}
    model = {
        "resources": {"r": {"initialValuesDataType": "FLOAT32", "initialValues": [0] * count}},
        "dispatchables": {"join": {"type": "JOIN", "desc": tensors | {"Axis": 0}}},
        "commands": [{"type": "dispatch", "dispatchable": "join", "bindings": bound}] * count,
    }
    (folder / "model.json").write_text(json.dumps(model))
    return ("check", "model.json", "--target", "6_2", "--format", "concise")


def write_graphs(folder: Path, count: int) -> tuple[str, ...]:
    """Write a capture of two large operators, a graph whose nodes name the two, and as many graphs of one node."""
    tensor = {"DataType": "FLOAT32", "Sizes": [1], "TotalTensorSizeInBytes": 4}
    long = tensor | {"DimensionCount": 1, "Sizes": [1] * 2 * count}
    join = {"InputTensors": [tensor] * count, "OutputTensor": tensor | {"Sizes": [count]}, "Axis": 0}
    operators = [
        {"Type": "JOIN", "Desc": join},
        {"Type": "ACTIVATION_GELU", "Desc": {"InputTensor": long, "OutputTensor": long}},
    ]
    edges = [
        {"FromNodeIndex": 2 * i + 1, "FromNodeOutputIndex": 0, "ToNodeIndex": 2 * i + 3, "ToNodeInputIndex": 0}
        for i in range(count - 1)
    ]
    nodes = [{"Type": 1, "Operator": i} for i in (1, 2)]
    graph = {"InputCount": 0, "OutputCount": 0, "Nodes": nodes * count, "IntermediateEdges": edges}
    graphs = [graph, *({"InputCount": i, "OutputCount": 0, "Nodes": nodes} for i in range(count))]
    line = {"dml_tile_capture": 1, "hresult": None, "feature_level": "0x00006200", "session": "s"}
    called = [*(("operator", operator) for operator in operators), *(("graph", each) for each in graphs)]
    lines = (json.dumps({**line, "call": i + 1, kind: each}) for i, (kind, each) in enumerate(called))
    (folder / "graphs.jsonl").write_text("\n".join(lines))
    return ("check", "graphs.jsonl", "--target", "6_2", "--format", "jsonl:out.jsonl")


PAIRS: Final = {
    "patterns of paths and folders": (write_patterns, 50, 2),
    "sizes of dimensions": (write_dimensions, 100, 1),
    "targets": (write_targets, 100, 0),
    "commands and tensors of an array": (write_join, 100, 1),
    "a list of files": (write_list, 100, 0),
    "nodes of captured graphs and tensors of an operator": (write_graphs, 50, 1),
    "a capture": (write_capture, 100, 0),
    "stars in .gitignore": (write_stars, 100, 0),
    "patterns and long folders": (write_excluded, 100, 0),
    "per-file-ignores": (write_file_ignores, 100, 1),
    "a baseline": (write_edges, 400, 0),
}


@pytest.mark.long
@pytest.mark.parametrize(("write", "count", "status"), PAIRS.values(), ids=PAIRS)
def test_two_inputs_cost_no_more_than_both(
    tmp_path: Path, write: Callable[[Path, int], tuple[str, ...]], count: int, status: int
) -> None:
    """Ten times as much of both takes ten times as long, and half as much again; a product would take a hundred."""

    def seconds(times: int) -> float:
        folder = Path(mkdtemp(dir=tmp_path))
        cost = cost_of(*write(folder, times * count), folder=folder)
        assert cost.status == status, cost
        return cost.seconds

    assert grows_at_most(15, lambda: seconds(1), lambda: seconds(10), floor=0.1)


def gitignore(folder: Path, times: int) -> None:
    patterns = (f"{i:03}*a*b" for i in range(100 * times))
    (folder / ".gitignore").write_text("\n".join(patterns))


def long_names(folder: Path, times: int) -> None:
    for i in range(100 * times):
        (folder / f"{'a' * 230}{i}.json").write_text(json.dumps(TILE))


def excluded(folder: Path, times: int) -> None:
    patterns = [f"**/{i:03}{'c' * 20}/*.x" for i in range(100 * times)]
    set_up(folder, f"[tool.dml-tile]\nexclude = {json.dumps(patterns)}\n", "a")


def file_ignores(folder: Path, times: int) -> None:
    rules = "\n".join(f'"*{i}*.json" = {json.dumps(["DML-BUFFER-Flags"] * 10 * times)}' for i in range(10))
    set_up(folder, f"[tool.dml-tile.per-file-ignores]\n{rules}\n", "a")


def edges(folder: Path, times: int) -> None:
    edge = {"FromNodeIndex": 0, "FromNodeOutputIndex": 0, "ToNodeIndex": 7, "ToNodeInputIndex": 0}
    nodes = [{"Operator": {"Type": "TILE", "Desc": TILE}}]
    graph = {"InputCount": 1, "OutputCount": 1, "Nodes": nodes, "IntermediateEdges": [edge] * 1500 * times}
    (folder / "graph.json").write_text(json.dumps(graph))


def known(folder: Path, times: int) -> None:
    sources = ("graph.json", "captured.jsonl", "operators.jsonl")
    entry = {"target": "6_4", "rule": "r", "field": ""}
    entries = [entry | {"source": sources[i % 3], "operator": f"/{i}"} for i in range(2500 * times)]
    (folder / "known.json").write_text(json.dumps({"version": 1, "findings": entries}))


def operators(folder: Path, times: int) -> None:
    tensors = ({"DataType": "INT8", "Sizes": [1, 1, 1, i + 1]} for i in range(150 * times))
    lines = (
        json.dumps({"Type": "ACTIVATION_GELU", "Desc": {"InputTensor": one, "OutputTensor": one}}) for one in tensors
    )
    (folder / "operators.jsonl").write_text("\n".join(lines))


def captures(folder: Path, times: int) -> None:
    lines = [captured(BROKEN | {"Repeats": [i + 2]}) for i in range(100 * times)] * 2
    (folder / "captured.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))


def onnx_model(folder: Path, times: int) -> None:
    tiles = "; ".join(f"y{i} = Tile(x, r)" for i in range(150 * times))
    onnx.save(model(f"r = [1]; {tiles}; y = Relu(x)", inputs=[typed("x", [2])]), folder / "many.onnx")


def dxdispatch_model(folder: Path, times: int) -> None:
    tiles = {f"t{i}": {"type": "TILE", **BROKEN} for i in range(150 * times)}
    (folder / "model.json").write_text(json.dumps({"resources": {}, "dispatchables": tiles, "commands": []}))


def lists(folder: Path, times: int) -> None:
    names = [f"{'d' * 200}{i}.json" for i in range(100 * times)]
    for name in names:
        (folder / name).write_text(json.dumps(TILE))
    (folder / "list.txt").write_text("\n".join(names * 5))


OPTIONS: Final[dict[Callable[[Path, int], None], tuple[str, ...]]] = {
    known: ("--baseline", "known.json"),
    lists: ("--files-from", "list.txt"),
}
KINDS: Final = (
    *(excluded, file_ignores, gitignore, long_names, edges, operators, captures, onnx_model),
    *(dxdispatch_model, *OPTIONS),
)
GROUPS: Final = [sorted((first + step) % len(KINDS) for step in (0, 1, 3, 7)) for first in range(len(KINDS))]
"""Groups of four: the differences of 0, 1, 3 and 7 are all of 1 to 10, modulo 11."""


def test_each_pair_of_kinds_of_input_is_in_a_group() -> None:
    pairs = {pair for group in GROUPS for pair in combinations(group, 2)}
    assert pairs == {*combinations(range(len(KINDS)), 2)}


@pytest.mark.long
@pytest.mark.parametrize(
    "group",
    [
        pytest.param(group, marks=[pytest.mark.exhaustive] * (i > 1), id="-".join(KINDS[i].__name__ for i in group))
        for i, group in enumerate(GROUPS)
    ],
)
def test_ten_times_as_much_of_several_kinds_of_input_takes_at_most_fifteen_times_as_long(
    tmp_path: Path, group: list[int]
) -> None:
    """Each kind takes about 0.1 s alone; what two of them take besides, as a product, would grow a hundredfold."""

    def seconds(times: int) -> float:
        folder, kinds = tmp_path / f"{times} times", [KINDS[i] for i in group]
        if not folder.exists():
            (folder / ".git").mkdir(parents=True)
            (folder / "a.json").write_text(json.dumps(TILE))
            for kind in kinds:
                kind(folder, times)
        options = [option for kind in kinds for option in OPTIONS.get(kind, ())]
        spent = cost_of("check", ".", "--jobs", "1", "--format", "jsonl", *options, folder=folder)
        assert spent.status in (0, 1), spent.printed
        return spent.seconds

    start = seconds(0)
    assert grows_at_most(15, lambda: seconds(1) - start, lambda: seconds(10) - start, floor=0.1 * len(group))
