"""The inputs that fuzzing begins with, those of the tests and examples, and mutants of those that are JSON."""

from __future__ import annotations

import json
import lzma
import random
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final

from dml_tile.findings import unreadable
from dml_tile.readers.model_names import ModelFacts
from dml_tile.readers.model_tile import DIALECTS, TileNode, ValueOrigin
from dml_tile.readers.sandbox.child import answer_line
from tests.helpers.check_files import BAD, FLAT, TILE, captured
from tests.helpers.dxdispatch_models import dispatch, model, show, source, write_file
from tests.helpers.hostile_names import HOSTILE_NAMES
from tests.helpers.paths import EXAMPLES, ROOT

DATA: Final = ROOT / "tests" / "data"
_LARGEST: Final = 2**13
_EVERY: Final = 64  # of the recorded descriptors, of which most differ little
_OPERATORS: Final = 300


_GRAPH: Final = {
    "InputCount": 1,
    "OutputCount": 1,
    "Nodes": [{"Operator": TILE}, {"Operator": {"Type": "TILE", "Desc": BAD}}],
    "InputEdges": [{"GraphInputIndex": 0, "ToNodeIndex": 0, "ToNodeInputIndex": 0}],
    "IntermediateEdges": [{"FromNodeIndex": 0, "FromNodeOutputIndex": 0, "ToNodeIndex": 1, "ToNodeInputIndex": 0}],
    "OutputEdges": [{"FromNodeIndex": 1, "FromNodeOutputIndex": 0, "GraphOutputIndex": 0}],
}


def documents() -> Iterator[bytes]:
    """Descriptors: the examples, and some of those that DirectML was asked about."""
    for path in sorted(EXAMPLES.glob("*.json")):
        yield path.read_bytes()
    yield json.dumps(_GRAPH).encode()
    with (DATA / "create_operator.jsonl").open("rb") as lines:
        for line in islice(lines, 0, None, _EVERY):
            yield json.dumps(json.loads(line)["desc"]).encode()


def operators() -> Iterator[bytes]:
    """Descriptors of any operator, some of which DirectML refused."""
    with lzma.open(DATA / "operators.jsonl.xz") as lines:
        for line in islice(lines, _OPERATORS):
            yield json.dumps(json.loads(line)["desc"]).encode()


def captures() -> Iterator[bytes]:
    """Captured lines: those of the example, and of tiles."""
    lines = (EXAMPLES / "operators.jsonl").read_bytes().splitlines(keepends=True)
    yield from lines
    yield b"".join(lines)
    yield b"".join(lines * 2)  # as two processes of one session
    tile = json.dumps(captured(BAD))
    yield f"{tile} // a comment\n{tile}\n{json.dumps(captured(TILE, None))}\n".encode()


def patterns() -> Iterator[bytes]:
    """Patterns in the language of .gitignore, one a line."""
    yield b"build/\n*.tmp\n!keep.json\n/a/**/b.json\n"
    yield b"a/*\n!a/b/\n**/x\n\\#a\n# comment\na\\ \n[!a-c]?.json\n[[:alpha:]]*\n[]a]\n"
    yield b"*a*a*a*ab7\n**/**/**/a\n***/b\n[a\n\\\n!\n/\n"


def lists() -> Iterator[bytes]:
    """Lists of files, one a line or ended by NUL."""
    yield b"a.json\nsub/b.json\n*.json\n-\nmissing.json\n"
    yield b"a.json\0sub/b.json\0**/*.json\0"
    yield b"../a.json\n/dev/zero\nsub/../out.json\n.\n" + b"a/" * 257
    yield b"\xef\xbb\xbfa.json\r\n\r\nhttp://127.0.0.1:9/a.json\r\nzip://*::a.zip\r\n"


def dxdispatch_models() -> Iterator[bytes]:
    for path in sorted(EXAMPLES.glob("*.json")):
        yield path.read_bytes()
    values = {"initialValuesDataType": "FLOAT32", "initialValues": {"valueCount": 64, "valueStart": 0, "valueDelta": 1}}
    typed = {"initialValues": [{"type": "INT8", "value": 1}, {"type": "FLOAT64", "value": "nan"}]}
    commands = [
        dispatch(InputTensor="In", OutputTensor={"name": "Out", "elementOffset": 0}),
        *(show("Out"), write_file("Out", "sub/out.npy", dimensions=[2, 3])),
    ]
    resources = {"In": values, "Out": values, "File": source("in.bin", "UINT8"), "Typed": typed}
    yield json.dumps(model(resources=resources, commands=commands)).encode()
    relu = {"type": "DML_OPERATOR_ACTIVATION_RELU", "desc": TILE}
    join = {"type": "JOIN", "desc": {"InputTensors": [FLAT, FLAT], "OutputTensor": FLAT, "Axis": 0}}
    commands = [dispatch("relu", InputTensor="In", OutputTensor="Out"), dispatch("join", InputTensors=["In", "In"])]
    yield json.dumps(model(dispatchables={"relu": relu, "join": join}, commands=commands)).encode()


def files(*patterns: str) -> Iterator[bytes]:
    """The small files below ``tests/data`` that match a pattern."""
    for pattern in patterns:
        for path in sorted(DATA.rglob(pattern)):
            if path.is_file() and path.stat().st_size <= _LARGEST:
                yield path.read_bytes()


def settings() -> Iterator[bytes]:
    yield b'[tool.dml-tile]\ntargets = ["4_1", "windows-11-21h2"]\npaths = ["a.json"]\nselect = ["DML-TILE"]\n'
    yield b'[tool.dml-tile]\nagainst = "runtime"\nfail-on = "never"\nexclude = ["*.onnx"]\nvia = "chromium"\n'
    yield b'[tool.dml-tile]\npaths = ["*.json", "**/a.json", "./a.json", "reference::x.json", "http://127.0.0.1:9/x"]\n'
    yield b'[tool.dml-tile]\npaths = ["-", "./-", "?"]\nbaseline = "-"\n'
    yield b'[tool.dml-tile]\nbaseline = "base.json"\npaths = ["../*.json"]\nexclude = ["**/a*", "[!a]"]\n'
    yield b'[tool.dml-tile]\ndim = ["n=3"]\ninput-shape = ["x=1,2"]\nignore = ["DML-BUFFER"]\n'


def baselines() -> Iterator[bytes]:
    entry = {
        "source": "a.json",
        "pointer": "/dispatchables/tile",
        "target": "6_4",
        "rule": "DML-TILE-DataType-level",
        "field": "InputTensor.DataType",
    }
    yield json.dumps(
        {"version": 1, "findings": [entry, entry | {"target": "4_0"}, entry | {"source": "../b"}]}
    ).encode()
    yield b'{"version": 1, "findings": []}'


def answers() -> Iterator[bytes]:
    """Lines that the process which reads models answers."""
    node = TileNode(
        "n", DIALECTS["ONNX Tile-13"], "float64", ("n", 2), (1, 2), "n", (ValueOrigin("x"),), (ValueOrigin("y"),)
    )
    for part in (node, unreadable("/n", "is wrong"), ModelFacts(frozenset({"n"}), frozenset({"x"}))):
        yield answer_line(part)


def file_names() -> Iterator[bytes]:
    """Names of files, one a line."""
    yield b"a.json\nsub/b.json\n.hidden/c.json"
    yield b"reference::x.json\ndask::x.json\nsimplecache::a.json\na.json\nplain::y.json"
    yield b"http://127.0.0.1:9/a.json\nhttp:/127.0.0.1:9/a.json\nfile:///etc/passwd.json\n/etc/x.json\n../x.json"
    yield b"[a].json\n*.json\n?.jsonl\n**/x.json\n~/a.json\n$HOME/b.json\n-.json\n--help.json"
    yield b"zip://a.json::b.zip.json\nmemory://x.json\ngithub://o:r@/x.json\nc:\\x.json\n\xff.json"


def names() -> Iterator[bytes]:
    for name in (*HOSTILE_NAMES, "a.json", "\ud800", "-", "--output-dir"):
        yield name.encode("utf-8", "surrogatepass")


# Mutants of JSON by its values, so that most are JSON too

_VALUES: Final[tuple[Any, ...]] = (
    *(None, True, False, -1, 0, 1, 2, 3, 8, 9, 2**16, 2**31, 2**32 - 1, 2**32, 2**63, 2**64, 1.5, 1e999, 10**30),
    *("", "FLOAT32", "INT64", "UINT4", "DML_TENSOR_FLAG_OWNED_BY_DML", "DML_OPERATOR_TILE", "nan", "\u202e", "../x"),
    *([], {}, [1, 2, 3, 4], [4096, 4096], [1] * 9, {"Desc": None}, "In", "Out", "deferred", ".git/config", "a.npy"),
)
_KEYS: Final = (
    *("Type", "Desc", "InputTensor", "OutputTensor", "Repeats", "RepeatsCount", "DataType", "Flags", "DimensionCount"),
    *("Sizes", "Strides", "TotalTensorSizeInBytes", "GuaranteedBaseOffsetAlignment", "NullDesc", "resources"),
    *("dispatchables", "commands", "type", "desc", "bindings", "initialValues", "initialValuesDataType", "sizeInBytes"),
    *("valueCount", "value", "valueStart", "valueDelta", "sourcePath", "targetPath", "dimensions", "elementOffset"),
    *("elementSizeInBytes", "name", "resource", "dispatchable", "executionFlags", "input_tensor", "data_type"),
)


def mutated(text: bytes, seed: int) -> bytes | None:
    """The document, or one of its lines, with one to four of its values or names changed; None if it is no JSON."""
    chosen = random.Random(seed)
    before, line, after = b"", text, b""
    if text.count(b"\n", 0, -1) and text.startswith(b'{"'):
        lines = text.splitlines(keepends=True)
        at = chosen.randrange(len(lines))
        before, line, after = b"".join(lines[:at]), lines[at], b"\n" + b"".join(lines[at + 1 :])
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    for _ in range(chosen.randint(1, 4)):
        value = _changed(value, chosen)
    return before + json.dumps(value).encode() + after


def _changed(value: Any, chosen: random.Random) -> Any:
    if not value or not isinstance(value, list | dict) or chosen.random() < 0.1:
        return _another(value, chosen)
    items: list[tuple[Any, Any]] = [*value.items()] if isinstance(value, dict) else [*enumerate(value)]
    at = chosen.randrange(len(items))
    key, inner = items[at]
    match chosen.randrange(8):
        case 0:
            del items[at]
        case 1:
            items += [(chosen.choice(_KEYS), inner)] * chosen.randint(1, 9)
        case _:
            items[at] = key, _changed(inner, chosen)
    return dict(items) if isinstance(value, dict) else [each for _, each in items]


def _another(value: Any, chosen: random.Random) -> Any:
    if isinstance(value, int) and chosen.random() < 0.5:
        return value + chosen.choice((-1, 1, value, 2**32))
    return chosen.choice(_VALUES)
