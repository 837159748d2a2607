"""The figures of docs/limits.md are those of the code."""

from __future__ import annotations

import re
from inspect import signature
from typing import Final

from dml_tile import input_errors, json_text
from dml_tile.checks import baseline
from dml_tile.cli import config
from dml_tile.cli.run import run
from dml_tile.dxdispatch import model, resources, runner
from dml_tile.files import paths, repository, urls, whole
from dml_tile.geometry import layout
from dml_tile.readers import descriptors, model_tile, remote
from dml_tile.readers.onnx import file, folding, functions
from dml_tile.readers.sandbox import parent
from tests.helpers.paths import ROOT
from tests.test_costs import BYTES_PER_BYTE, SECONDS_PER_BYTE

UNITS: Final = {"KiB": 10, "MiB": 20, "GiB": 30}

BOUNDS: Final[dict[str, tuple[int, ...]]] = {
    "a JSON document, or a line of JSON lines, and its nesting": (descriptors.MAX_DOCUMENT_BYTES,),
    "the resources of a DxDispatch model, with the copies that tiles own": (resources.MAX_RESOURCE_BYTES,),
    "problems told of one object, of one source": (
        input_errors.MAX_PROBLEMS,
        input_errors.MAX_PROBLEMS_OF_A_SOURCE,
        input_errors.MAX_PROBLEMS_COUNTED,
    ),
    "findings of one rule on one part of a DxDispatch model": (input_errors.MAX_PROBLEMS,),
    "tensors that one `bindings` names, resources of one of them": (model.MAX_BOUND,),
    "of an array, wrong values told": (),
    "of a list of descriptors, those that are null told": (),
    "keys of a baseline's entry or a captured line": (input_errors.MAX_KEYS,),
    "addresses looked at for whether an output's elements share one, of one tile, by one command": (
        layout.MAX_ENUMERATED_ADDRESSES,
        layout.MAX_ADDRESSES_OF_A_RUN,
    ),
    "pyproject.toml, the parts of a key in it, the entries of a list": (
        config.MAX_BYTES,
        config.MAX_KEY_PARTS,
        config.MAX_ENTRIES,
    ),
    "the parts of a pattern, and of a path that a file names": (paths.MAX_PARTS,),
    "folders looked at for a pattern": (),
    "a baseline": (baseline.MAX_BYTES,),
    "a .gitignore": (
        repository.MAX_GITIGNORE_BYTES,
        repository.MAX_PATTERNS,
        repository.MAX_STARS,
        repository.MAX_STARS,
    ),
    "comments of a JSON text, or of a JSON line, that silence findings": (json_text.MAX_COMMENTS,),
    "for each byte of a JSON document, besides its tiles, or of a baseline": (
        round(SECONDS_PER_BYTE * 1e6),
        BYTES_PER_BYTE,
    ),
    "dimensions of a model's tile": (model_tile.MAX_DIMENSIONS,),
    "reading one model": (parent.MAX_SECONDS, parent.MAX_MEMORY_BYTES),
    "what is told of one model": (parent.MAX_ANSWER_BYTES,),
    "an ONNX file without the data of its large tensors, the elements of a tensor that is read": (
        file.MAX_MODEL_BYTES + 1,
        file.MAX_ELEMENTS,
    ),
    "of an ONNX model, the nodes that its functions expand to, their nesting, nodes that are computed": (
        functions.MAX_NODES,
        functions.DEEPEST,
        folding.MAX_FOLDED_NODES,
    ),
    "time lost to models that cannot be read": (parent.MAX_SECONDS_LOST,),
    "fetching a file, or a model with its weights, from a URL": (remote.MAX_SECONDS, remote.MAX_BYTES + 1),
    "looking for the files of a folder or a pattern of a URL": (remote.MAX_SECONDS_TO_LIST, remote.MAX_SECONDS),
    "members of an archive that a URL names, and of those within it": (urls.MAX_NESTING // 16**2, 16),
    "waiting for a pipe that is named as a file": (whole.MAX_SECONDS_WITHOUT_WRITER,),
    "`run`: its files, of which each, like each of their folders, counts as 4 KiB at least": (
        runner.MAX_WRITTEN_BYTES,
    ),
    "`run`: what it prints": (runner.MAX_PRINTED_BYTES,),
    "`run`: its time": (signature(run).parameters["max_time"].default,),
}
"""Each row of the table, with the constants that its figures begin with."""


def test_the_bounds_of_the_page_are_those_of_the_code() -> None:
    _, _, page = (ROOT / "docs/limits.md").read_text(encoding="utf-8").partition("| what | at most |")
    rows = re.findall(r"^ +\| ([^|]*) \| ([^|]*) \|$", page, re.MULTILINE)
    assert [name for name, _ in rows] == list(BOUNDS)
    for name, text in rows:
        figures = [
            int(figure.replace(",", "")) ** int(power or 1) * 2 ** UNITS.get(unit, 0)
            for figure, power, unit in re.findall(r"([\d,]*\d)(?:\^(\d+))?(?: ([KMG]iB))?", text)
        ]
        constants = BOUNDS[name]
        assert tuple(figures[: len(constants)]) == constants, name
