"""Files for tests of what ``dml-tile check`` takes and what it writes, of which some cannot be read."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from tests.helpers.command_line import Call
from tests.helpers.paths import EXAMPLES

FLAT = {"DataType": "FLOAT32", "Sizes": [2]}
TILE = {"InputTensor": FLAT, "OutputTensor": FLAT, "Repeats": [1]}
BAD = TILE | {"Repeats": [2]}
INT64 = {"InputTensor": FLAT | {"DataType": "INT64"}, "OutputTensor": FLAT | {"DataType": "INT64"}, "Repeats": [1]}
DOUBLES = TILE | dict.fromkeys(("InputTensor", "OutputTensor"), FLAT | {"DataType": "FLOAT64"})
GATHER = {
    "Type": "GATHER",
    "Desc": {
        "InputTensor": {"DataType": "FLOAT32", "Sizes": [1, 1, 10, 4]},
        "IndicesTensor": {"DataType": "UINT32", "Sizes": [1, 1, 1, 3]},
        "OutputTensor": {"DataType": "FLOAT32", "Sizes": [1, 1, 3, 4]},
        "Axis": 2,
        "IndexDimensions": 1,
    },
}
ALIGNED = TILE | {"InputTensor": FLAT | {"GuaranteedBaseOffsetAlignment": 4}}
WITHOUT_FIELDS = {"dml_tile_capture": 1, "hresult": None, "operator": {"Type": "DML_OPERATOR_GATHER"}}
"""A line of an early dml_tile/capture.h, which is not checked."""


def captured(desc: Any, hresult: str | None = "0x80070057", level: str | None = "0x00006200") -> dict[str, Any]:
    """A line of dml_tile/capture.h."""
    operator = {"Type": 70, "Desc": desc}
    return {"dml_tile_capture": 1, "hresult": hresult, "feature_level": level, "operator": operator}


def write(name: str, value: Any) -> str:
    """A file of JSON, one field a line, or of text; its folder is made."""
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value, indent=1))
    return name


def configure(text: str, folder: str = ".") -> None:
    """Write settings into a folder, which is made."""
    write(f"{folder}/pyproject.toml", f"[tool.dml-tile]\n{text}\n")


def sources(check: Call, *arguments: str) -> list[str]:
    """Return what a check looks into that finds nothing and can read everything."""
    result = check("--format", "json", *arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    return [one["source"] for one in json.loads(result.stdout)["sources"] if not one["passed_over"]]


def model(**dispatchables: Any) -> dict[str, Any]:
    """A DxDispatch model of tiles that are run nowhere."""
    tiles = {name: {"type": "TILE", "desc": desc | {"RepeatsCount": 1}} for name, desc in dispatchables.items()}
    return {"resources": {}, "dispatchables": tiles, "commands": []}


def write_zoo(descriptors: int = 30) -> list[str]:
    """Write files into the current folder, and return their names; one is missing."""
    names = [write(f"{i:03}.json", (TILE, BAD, INT64, {"InputTensor": 1})[i % 4]) for i in range(descriptors)]
    for i in range(4):
        names.append(f"m{i}.onnx")
        shutil.copy(EXAMPLES / "models" / "two_tiles.onnx", names[-1])
    lines = ('{"InputTensor": null}' if i % 9 else "{" for i in range(500))
    return [*names, write("broken.onnx", "no model"), "missing.json", write("many.jsonl", "\n".join(lines))]
