"""Files of all kinds, of which some cannot be read."""

from __future__ import annotations

import shutil

from tests.helpers.check_files import BAD, INT64, TILE, write
from tests.helpers.paths import EXAMPLES


def write_zoo(descriptors: int = 30, models: int = 4) -> list[str]:
    """Write files into the current folder, and return their names; one is missing."""
    names = [write(f"{i:03}.json", (TILE, BAD, INT64, {"InputTensor": 1})[i % 4]) for i in range(descriptors)]
    for i in range(models):
        names.append(f"m{i}.onnx")
        shutil.copy(EXAMPLES / "models" / "two_tiles.onnx", names[-1])
    lines = ('{"InputTensor": null}' if i % 9 else "{" for i in range(500))
    return [*names, write("broken.onnx", "no model"), "missing.json", write("many.jsonl", "\n".join(lines))]
