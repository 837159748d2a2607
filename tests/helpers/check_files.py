"""Files for tests of what ``dml-tile check`` takes and what it writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FLAT = {"DataType": "FLOAT32", "Sizes": [2]}
TILE = {"InputTensor": FLAT, "OutputTensor": FLAT, "Repeats": [1]}
BAD = TILE | {"Repeats": [2]}
INT64 = {"InputTensor": FLAT | {"DataType": "INT64"}, "OutputTensor": FLAT | {"DataType": "INT64"}, "Repeats": [1]}


def write(name: str, value: Any) -> str:
    """A file of JSON, one field a line, or of text; its folder is made."""
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value, indent=1))
    return name


def model(**dispatchables: Any) -> dict[str, Any]:
    """A DxDispatch model of tiles that are run nowhere."""
    tiles = {name: {"type": "TILE", "desc": desc | {"RepeatsCount": 1}} for name, desc in dispatchables.items()}
    return {"resources": {}, "dispatchables": tiles, "commands": []}
