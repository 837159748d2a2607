"""Inputs that are built to cost much: time and memory grow no faster than the bytes of all inputs together."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, Final, NamedTuple, TypeAlias

import onnx
import pytest

from dml_tile.directml.enums import UINT_MAX
from tests.helpers.check_files import FLAT, INT64, captured
from tests.helpers.costs import BYTES, BYTES_PER_BYTE, SECONDS, SECONDS_PER_BYTE, cost_of, grows_at_most
from tests.helpers.dxdispatch_models import dispatch
from tests.helpers.onnx_graphs import model, typed

TILE: Final = {"InputTensor": FLAT, "OutputTensor": FLAT, "Repeats": [1], "RepeatsCount": 1}
BROKEN: Final = TILE | {"Repeats": [0]}
ASTRONOMIC: Final = {"DataType": "FLOAT32", "Sizes": [UINT_MAX] * 8}
ENTRY: Final = {"source": "a.json", "operator": "", "target": "6_4", "rule": "r", "field": ""}

Write: TypeAlias = Callable[[Path, int], tuple[str, ...]]
"""Writes inputs of a size into a folder, and returns the command that reads them."""


class Row(NamedTuple):
    """Inputs, their size, and the statuses and the text with which the command may end."""

    write: Write
    size: int
    statuses: tuple[int, ...]
    says: str = ""


def numbered(n: int) -> dict[str, int]:
    return dict.fromkeys(map(str, range(n)), 1)


def dxdispatch(**parts: Any) -> Any:
    return {"resources": {}, "dispatchables": {}, "commands": []} | parts


DOCUMENTS: Final[dict[str, Callable[[int], Any]]] = {
    "nested lists": lambda n: b"[%s[]]" % (b"[[]]," * n),
    "lines of lists": lambda n: b"[[]]\n" * n,
    "commands": lambda n: dxdispatch(commands=[1] * n),
    "dispatchables": lambda n: dxdispatch(dispatchables=numbered(n)),
    "resources": lambda n: dxdispatch(resources=numbered(n)),
    "bindings at initialisation": lambda n: dxdispatch(
        dispatchables={"t": {"type": "TILE", **TILE, "bindings": numbered(n)}}
    ),
    "bindings of a command": lambda n: dxdispatch(commands=[dispatch("t", **numbered(n))]),
    "sources of a binding": lambda n: dxdispatch(commands=[dispatch("t", InputTensor=[1] * n)]),
    "sources that are bound": lambda n: dxdispatch(commands=[dispatch("t", InputTensor=["r"] * n)]),
    "words as a shape": lambda n: dxdispatch(commands=[dispatch("t", InputTensor={"name": "r", "shape": ["x"] * n})]),
    "nulls": lambda n: [None] * n,
    "lines of nulls": lambda n: b'{"Type": 1}\n' + b"null\n" * 3 * n,
    "repeats that are 0": lambda n: TILE | {"Repeats": [0] * n, "RepeatsCount": n},
    "unknown keys of a capture": lambda n: {"dml_tile_capture": 1} | dict.fromkeys(map(str, range(2 * n)), 1),
    "words as sizes": lambda n: TILE | {"InputTensor": FLAT | {"Sizes": ["x"] * n}},
    "sizes": lambda n: TILE | {"InputTensor": FLAT | {"Sizes": [3] * n}, "OutputTensor": FLAT | {"Sizes": [3] * n}},
    "repeats": lambda n: TILE | {"Repeats": [3] * n, "RepeatsCount": n},
    "unknown keys": lambda n: TILE | numbered(n),
    "unknown keys of a tensor": lambda n: TILE | {"InputTensor": FLAT | numbered(n)},
    "typed values": lambda n: dxdispatch(resources={"r": {"initialValues": [{"type": "INT8", "value": "x"}] * n}}),
    "values": lambda n: dxdispatch(resources={"r": {"initialValues": ["x"] * n, "initialValuesDataType": "INT8"}}),
    "a long number": lambda n: b'{"Repeats": [%s]}' % (b"9" * n),
    "a long name": lambda n: {"x" * n: 1},
    "comments": lambda n: b"/**/" * n + b"7",
    "open comments": lambda n: b"/*" * n,
    "trailing commas": lambda n: b"[%s]" % (b"[7,]," * n),
    "blanks before brackets": lambda n: b"[1," + b" " * n * 4 + b"}",
    "quotation marks": lambda n: b'"\\' * n,
    "brackets": lambda n: b"[" * n,
    "objects": lambda n: b'{"InputTensor":' * n,
    "words as flags": lambda n: TILE | {"InputTensor": FLAT | {"Flags": ["x"] * n}},
    "astronomic sizes": lambda n: dict.fromkeys(TILE, ASTRONOMIC) | {"Repeats": [UINT_MAX] * 8},
    "wrong edges of a graph": lambda n: (
        {"InputCount": 1, "OutputCount": 1, "Nodes": [{"Operator": TILE}]}
        | {"InputEdges": [{"GraphInputIndex": 0, "ToNodeIndex": 9, "ToNodeInputIndex": 0}] * n}
    ),
    "a cut object": lambda n: json.dumps(TILE).encode()[:-9],
    "no UTF-8": lambda n: b"\xff\xfe\x00",
    "nothing": lambda n: b"",
}
NO_MODELS = ("brackets", "objects", "words as sizes", "words as flags", "unknown keys", *[*DOCUMENTS][-4:])


def document(make: Callable[[int], Any], command: str = "check") -> Write:
    def write(folder: Path, n: int) -> tuple[str, ...]:
        value = make(n)
        (folder / "much.json").write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())
        return command, "much.json"

    return write


def known_findings(make: Callable[[int], Any]) -> Write:
    def write(folder: Path, n: int) -> tuple[str, ...]:
        (folder / "a.json").write_text(json.dumps(TILE))
        (folder / "much.json").write_text(json.dumps({"version": 1, "findings": make(n)}))
        return "check", "a.json", "--baseline", "much.json"

    return write


def set_up(folder: Path, text: str, mode: str = "w") -> None:
    with (folder / "pyproject.toml").open(mode) as settings:
        settings.write(text)


def write_file_ignores(folder: Path, count: int) -> tuple[str, ...]:
    ignores = {f"{'*' * i}.json": ["DML-BUFFER-Flags"] * 600 for i in range(1, 20)}
    text = "\n".join(f"{json.dumps(pattern)} = {json.dumps(rules)}" for pattern, rules in ignores.items())
    set_up(folder, f"[tool.dml-tile.per-file-ignores]\n{text}\n")
    (folder / "many.json").write_text(json.dumps([BROKEN] * count))
    return ("check", "many.json", "--format", "concise")


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


KINDS: Final[tuple[Callable[[Path, int], None], ...]] = (
    *(gitignore, long_names, excluded, file_ignores, edges, known, operators, captures, onnx_model, dxdispatch_model),
    lists,
)


def write_all(folder: Path, times: int) -> tuple[str, ...]:
    """Write all kinds of input: work that two of them share, as a product, would grow a hundredfold."""
    (folder / ".git").mkdir()
    (folder / "a.json").write_text(json.dumps(TILE))
    for kind in KINDS:
        kind(folder, times)
    options = "--jobs 1 --format jsonl --baseline known.json --files-from list.txt"
    return "check", ".", *options.split()


def write_concat(folder: Path, times: int) -> tuple[str, ...]:
    text = f"y = Concat <axis=0> ({', '.join(['x'] * times)})"
    onnx.save(model(text, inputs=[typed("x", [2])]), folder / "wide.onnx")
    return "check", "wide.onnx", "--via", "ort", "--quiet"


def write_chain(folder: Path, times: int) -> tuple[str, ...]:
    chain = "; ".join(f"x{i + 1} = Relu(x{i})" for i in range(times))
    onnx.save(model(f"{chain}; y = Relu(x{times})", inputs=[typed("x0", [2])]), folder / "chain.onnx")
    return "emit", "chain.onnx", "--via", "ort", "--lang", "json", "--graph"


ROWS: Final = {
    "inputs of an ONNX node": Row(write_concat, 1500, (0,)),
    "nodes of the graphs of an ONNX model": Row(write_chain, 250, (0,)),
    **{name: Row(document(make), 10_000, (1, 2)) for name, make in DOCUMENTS.items()},
    **{f"run {name}": Row(document(DOCUMENTS[name], "run"), 10_000, (2,), "dml-tile: much.json") for name in NO_MODELS},
    "patterns of paths and folders": Row(write_patterns, 50, (2,)),
    "sizes of dimensions": Row(write_dimensions, 100, (1,)),
    "targets": Row(write_targets, 100, (0,)),
    "commands and tensors of an array": Row(write_join, 100, (1,)),
    "a list of files": Row(write_list, 100, (0,)),
    "nodes of captured graphs and tensors of an operator": Row(write_graphs, 50, (1,)),
    "per-file-ignores": Row(write_file_ignores, 100, (1,)),
    "all kinds of input": Row(write_all, 1, (0, 1)),
    "a baseline of integers": Row(
        known_findings(lambda n: [1] * n), 50_000, (2,), "findings[0] is 1; an object was expected"
    ),
    "a baseline of empty objects": Row(
        known_findings(lambda n: [ENTRY, *[{}] * n]), 50_000, (2,), "findings[1].source is missing"
    ),
    "a baseline's entry of many keys": Row(
        known_findings(lambda n: [numbered(n)]), 50_000, (2,), "keys were provided; at most 64"
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_ten_times_the_input_costs_at_most_fifteen_times_as_much(tmp_path: Path, row: Row) -> None:
    def seconds(times: int) -> float:
        folder = Path(mkdtemp(dir=tmp_path))
        command = row.write(folder, times * row.size)
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        cost = cost_of(*command, folder=folder)
        assert cost.status in row.statuses, cost.printed
        assert row.says.encode() in cost.printed
        assert b"Traceback" not in cost.printed
        assert cost.is_within(SECONDS + SECONDS_PER_BYTE * size)
        assert cost.peak_bytes < BYTES + BYTES_PER_BYTE * size
        return cost.seconds

    assert grows_at_most(15, lambda: seconds(1), lambda: seconds(10), floor=0.1)
