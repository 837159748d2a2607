"""What a check is given: descriptors, models and folders of them, each read by what reads its kind."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Self

from dml_tile.frontends.documents import Described, read_source
from dml_tile.frontends.nodes import Fixed, TileNode
from dml_tile.frontends.problems import Problem
from dml_tile.frontends.reading import ModelReader

MODEL_SUFFIXES: Final = (".onnx", ".xml", ".tflite", ".pb", ".pdmodel")
"""The files that ONNX's and OpenVINO's readers read; everything else is JSON."""

_KINDS: Final = {
    # what of XML and JSON is looked at in a folder: that whose first bytes hold one of these
    ".xml": (b"<net",),
    **dict.fromkeys(
        (".json", ".jsonl", ".ndjson"), (b"InputTensor", b"input_tensor", b"dispatchables", b"initialValues")
    ),
}
_BEGINNING: Final = 2**16


def is_model(name: str) -> bool:
    """Whether a file is a model's, by its name."""
    return name.lower().endswith(MODEL_SUFFIXES)


class Sources:
    """Reads the sources of one check; what reads models is started when the first comes, and ends with the block."""

    def __init__(self, fixed: Fixed) -> None:
        self._fixed = fixed
        self._models = ExitStack()
        self._reader: ModelReader | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._models.close()

    def parts(self, name: str) -> Iterator[Described | TileNode | Problem]:
        """The tiles of a file, or of standard input (``-``), and what of it cannot be read."""
        if not is_model(name):
            yield from read_source(name)
            return
        if self._reader is None:
            self._reader = self._models.enter_context(ModelReader(self._fixed))
        yield from self._reader.parts(Path(name))


def expanded(name: str) -> Iterator[str]:
    """A file itself; of a folder, the files at any depth that may have tiles, in the order of their names.

    Hidden folders and links that leave the folder are passed over, and so are XML and JSON of other kinds.
    """
    if name != "-" and Path(name).is_dir():
        yield from _files_below(Path(name))
    else:
        yield name


def _files_below(folder: Path) -> Iterator[str]:
    root = folder.resolve()
    for path, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            file = Path(path, name)
            if file.resolve().is_relative_to(root) and _may_have_tiles(file):
                yield str(file)


def _may_have_tiles(file: Path) -> bool:
    suffix = file.suffix.lower()
    if not file.is_file() or suffix not in _KINDS:
        return file.is_file() and suffix in MODEL_SUFFIXES
    try:
        with file.open("rb") as opened:
            beginning = opened.read(_BEGINNING)
    except OSError:
        return True  # that it cannot be opened is told when it is read
    return any(word in beginning for word in _KINDS[suffix])
