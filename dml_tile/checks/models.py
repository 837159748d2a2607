"""Checks a model in Python, as ``dml-tile check`` does on the command line."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from dml_tile.checks.file_check import file_check
from dml_tile.checks.result import Result, results
from dml_tile.directml.targets import TargetLike
from dml_tile.errors import InputError, Problem
from dml_tile.files.urls import Url, source_named
from dml_tile.findings import Against
from dml_tile.readers.file_kinds import SAVED_MODEL
from dml_tile.readers.model_tile import ONNXRUNTIME
from dml_tile.readers.sources import Sources

if TYPE_CHECKING:
    from onnx import ModelProto


def check_model(
    model: str | os.PathLike[str] | ModelProto,
    target: TargetLike | None = None,
    *,
    via: str | None = None,
    dims: Mapping[str, int] | None = None,
    input_shapes: Mapping[str, Sequence[int]] | None = None,
    infer: str | None = None,
    against: Against = "both",
) -> tuple[Result, ...]:
    """Return the result of each tile of a model: its verdict, its findings, and what is known at run time only.

    ``model`` is a file of any kind that ``dml-tile check`` reads, a SavedModel's folder, or an onnx.ModelProto, of
    which tensors in other files are not read. ``target`` None means the current target. ``via`` names the back end that
    the tiles go through. ``dims`` are the sizes of named dimensions, ``input_shapes`` the shapes of inputs, in
    elements. ``infer="onnxruntime"`` has onnxruntime infer what its own operators give; it must be installed, and
    sympy.

    Raises InputError if a part of the model cannot be read, ValueError for an unknown target, back end, inference or
    ``against``.
    """
    if infer not in (None, ONNXRUNTIME):
        raise ValueError(f"infer is {infer!r}; {ONNXRUNTIME!r} or None was expected")
    check = file_check([target], against, via=via, dims=dims, input_shapes=input_shapes, infer=infer)
    with _named_file(model) as (name, file), Sources(check.known_shapes) as sources:
        parts = list(sources.parts(file))
    if problems := [part for part in parts if isinstance(part, Problem)]:
        raise InputError(problems)
    tiles = (part for part in parts if not isinstance(part, Problem))
    return tuple(result for part in tiles for result in results(name, part, check.targets, against, check.via))


@contextmanager
def _named_file(model: str | os.PathLike[str] | ModelProto) -> Iterator[tuple[str, str]]:
    """Yield the model's name in results, and its file."""
    if isinstance(model, str | os.PathLike):
        name = source_named(model)
        saved_model = Path(name, SAVED_MODEL)
        yield name, str(saved_model) if not isinstance(name, Url) and saved_model.is_file() else name
        return
    if not hasattr(model, "SerializeToString"):
        raise TypeError(f"a path or an onnx.ModelProto was expected, not a {type(model).__name__}")
    with TemporaryDirectory() as folder:
        file = Path(folder, "model.onnx")
        file.write_bytes(model.SerializeToString())
        yield model.graph.name or "model", str(file)
