"""Results of each kind in each format: ``python -m tests.helpers.golden`` writes a file of each format."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

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
)
_KINDS: Final = {"refused": BAD, "undocumented": DOUBLES, "lowered": INT64, "accepted": TILE, "other": GATHER}
_NOT_COMPARED: Final = re.compile(r"<meta http-eq[^>]*>|<(style|script|svg).*?</\1>", re.DOTALL)
"""The parts of a page that are the same in all."""


def _write_inputs() -> None:
    """Write files of each kind of result into the current folder."""
    write(".git/HEAD", "")
    write("plain/tiles.json", [*_KINDS.values(), BAD | {"OutputTensor": {"DataType": "FLOT32", "Sizes": [2]}}])
    write("broken.json", '{"Repeats":\n     x}')
    write("plain/old.json", BAD)
    write("plain/notes.xml", "")
    calls = (EXAMPLES / "operators.jsonl").read_text().replace('"call"', '"label":"words","call"')
    write("plain/calls.jsonl", calls)
    write("plain/lines.jsonl", "\n".join(map(json.dumps, [captured(TILE), captured(TILE), WITHOUT_FIELDS])))
    for name in ("call_never_returned", "graph_unknown_operator"):
        write(f"plain/{name}.jsonl", (ROOT / "tests" / "data" / f"{name}.jsonl").read_text())
    save("plain/dynamic.onnx", inputs=[typed("x", ["N", 3])])
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


def _replaced(text: str, changes: Mapping[str, str]) -> str:
    for old, new in changes.items():
        text = text.replace(old, new)
    return text


def outputs() -> dict[str, str]:
    """Return what the commands write, by format, without versions, times and the parts that all pages have."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            _write_inputs()
            found = dict.fromkeys(FORMATS, "")
            for command in COMMANDS:
                invoke(*command.split(), *(f"--format={name}:{name}" for name in FORMATS))
                for name in FORMATS:
                    found[name] += f"$ dml-tile {command}\n{Path(name).read_text('utf-8')}\n"
        finally:
            os.chdir(before)
    changes = {folder: "FOLDER", __version__: "VERSION", "}, {": "},\n{"}  # the last for differences that can be read
    return {name: _replaced(_NOT_COMPARED.sub("", without_times(text)), changes) for name, text in found.items()}


if __name__ == "__main__":
    for name, text in outputs().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
