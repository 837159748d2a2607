"""Results of each kind in each format: ``python -m tests.helpers.golden`` writes a file of each format."""

from __future__ import annotations

import contextlib
import json
import re
import tempfile
from pathlib import Path
from typing import Any, Final

from onnx import TensorProto

from dml_tile import __version__
from dml_tile.reports.report import FORMATS
from tests.helpers.check_files import BAD, DOUBLES, GATHER, INT64, TILE, WITHOUT_FIELDS, captured, write
from tests.helpers.command_line import invoke
from tests.helpers.onnx_graphs import computed, save, typed
from tests.helpers.outputs import without_times
from tests.helpers.paths import EXAMPLES, ROOT

FOLDER: Final = ROOT / "tests" / "data" / "golden"
COMMANDS: Final = (
    "check plain missing.json broken.json -t 2_0,windows-11-21h2,6_2 --exclude old.json",
    "check placed --via ort -t 2_0,onnxruntime-directml-1.18.1,onnxruntime-directml-1.24.4",
    "check known --via ort -t windows-11-23h2,6_4 --baseline known.json --ignore DML-TILE-RepeatsCount",
)
_KINDS: Final = {"refused": BAD, "undocumented": DOUBLES, "lowered": INT64, "accepted": TILE, "other": GATHER}
_NOT_COMPARED: Final = re.compile(r"<meta http-eq[^>]*>|<(style|script).*?</\1>", re.DOTALL)
"""The parts of a page that are the same in all."""


def _write_inputs() -> None:
    """Write files of each kind of result into the current folder, which lies in a repository."""
    write("../.git/HEAD", "")
    mistyped = BAD | {"OutputTensor": {"DataType": "FLOT32", "Sizes": [2]}}
    write("plain/tiles.json", [*_KINDS.values(), *[mistyped] * 12])
    write("broken.json", '{"Repeats":\n     x}')
    write("plain/old.json", BAD)
    write("plain/notes.xml", "")
    calls = (EXAMPLES / "operators.jsonl").read_text().replace('"call"', '"label":"words","call"')
    write("plain/calls.jsonl", calls)
    write("plain/lines.jsonl", "\n".join(map(json.dumps, [captured(TILE), captured(TILE), WITHOUT_FIELDS])))
    for name in ("call_never_returned", "graph_unknown_operator"):
        write(f"plain/{name}.jsonl", (ROOT / "tests" / "data" / f"{name}.jsonl").read_text())
    save("plain/dynamic.onnx", inputs=[typed("x", ["N", 3])])
    save("plain/dynamic_4d.onnx", repeats=(1, 1, 1, 2), inputs=[typed("x", ["N", 3, 2, 2])])
    save("plain/strings.onnx", inputs=[typed("x", [2, 3], TensorProto.STRING)])
    write("placed/broken.onnx", "no model")
    inputs = [typed("x", [1, 1, 3, 3]), typed("w", [1, 1, 1, 1])]
    save(
        "placed/nodes.onnx",
        *computed("e = Relu(x); a = Conv(e, w); b = Det(a); y = Unique(b)"),
        opset=22,
        inputs=inputs,
    )
    save("placed/strings.onnx", inputs=[typed("x", [2, 3], TensorProto.STRING)])
    _write_known([BAD], "y = Det(v)")
    invoke(*COMMANDS[2].replace("--baseline", "--write-baseline").split())
    nodes = "a = Softmax(x); b = Relu(x); c = Relu(u); d = Det(v); e = Unique(d); y = Sum(a, b, c, e); k = [1, 1, 1, 2]"
    wide = BAD | {"Repeats": [3]}
    _write_known([wide, BAD, BAD | {"RepeatsCount": 7}, wide], f"{nodes}; [tile] z = Tile(w, k)")


def _write_known(tiles: list[Any], nodes: str) -> None:
    write("known/ü%,;].json", tiles)
    inputs = [typed("x", [2, 3]), typed("u", ["N", 3]), typed("v", [3, 3]), typed("w", ["N", 1, 2, 3])]
    save("known/nodes.onnx", *computed(nodes), inputs=inputs)


def outputs() -> dict[str, str]:
    """Return what the commands write, by format, without versions, times and the parts that all pages have."""
    found = dict.fromkeys(FORMATS, "")
    with tempfile.TemporaryDirectory() as folder:
        (work := Path(folder, "work")).mkdir()
        with contextlib.chdir(work):
            _write_inputs()
            for command in COMMANDS:
                invoke(*command.split(), *(f"--format={name}:{name}" for name in FORMATS))
                for name in FORMATS:
                    text = without_times(_NOT_COMPARED.sub("", Path(name).read_text("utf-8")))
                    text = text.replace(folder, "FOLDER").replace(__version__, "VERSION")
                    text = text.replace("}, {", "},\n{")  # for differences that can be read
                    found[name] += f"$ dml-tile {command}\n{text}\n"
    return found


if __name__ == "__main__":
    for name, text in outputs().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
