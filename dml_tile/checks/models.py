"""Checks a model in Python, and tiles that reach DirectML through a back end.

check_via()             the findings on a request, by the back end's name
check_model()           the results of a model's tiles, as ``dml-tile check`` gives them
check_node()            the findings on a model's tile
lowest_level_through()  the lowest feature level at which a model's tile has no findings but notes
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from dml_tile.back_ends import BackEnd, BackEndResult, Outcome, back_end_named
from dml_tile.back_ends.back_end import BACK_END_RULES
from dml_tile.checks.file_check import file_check
from dml_tile.checks.files import unknown_dimension
from dml_tile.checks.result import Result, results
from dml_tile.dialects.directml import sizes_fit
from dml_tile.dialects.tiles import Request
from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.targets import DATA_TYPES, Target, TargetLike
from dml_tile.errors import InputError, Problem, place_of, require_instance
from dml_tile.files.urls import Url, source_named
from dml_tile.findings import Against, Finding, Severity, bases_of, found_by
from dml_tile.readers.file_kinds import SAVED_MODEL
from dml_tile.readers.model_tile import ONNXRUNTIME, TileNode
from dml_tile.readers.sources import Sources
from dml_tile.rules.check import DISTINCT_LEVELS, check
from dml_tile.simulation.target import resolve

if TYPE_CHECKING:
    from onnx import ModelProto


def check_via(
    request: Request, target: TargetLike | None, back_end: str, against: Against = "both"
) -> tuple[Finding, ...]:
    """Return the findings of a tile that goes through the named back end: its own, else those of its descriptor.

    ``target`` None means the current target. ``against`` applies to the descriptor, not to the back end's own findings.
    A tile that does not reach DirectML has a finding that is a note. Raises ValueError for an unknown target, back end
    or ``against``.
    """
    require_instance(request, Request)
    bases_of(against)
    chosen, target = back_end_named(back_end), resolve(target)
    return _findings(request, chosen.describe(request, target), chosen, target, against)


def check_node(node: TileNode, target: Target, back_end: BackEnd, against: Against = "both") -> tuple[Finding, ...]:
    """Return the findings on a model's tile that its dialect accepts.

    Of a tile that is known in part only, these are the back end's own findings, those on the data type, and those on
    known sizes that fit no UINT. A tile that the back end folds away has a finding that says so.
    """
    if node.folded and back_end.folds_constants and target.feature_level >= back_end.minimum_level:
        return _own_findings(BackEndResult(Outcome.NOTHING, reason=node.folded), back_end, target)
    request = node.request
    findings = _findings(request, back_end.describe(request, target), back_end, target, against)
    if not node.unknown:
        return findings
    rules = {sizes_fit.id, *(rule.id for rule in BACK_END_RULES)}
    return tuple(finding for finding in findings if finding.rule in rules or finding.path.endswith(".DataType"))


def lowest_level_through(node: TileNode, back_end: BackEnd) -> FeatureLevel | None:
    """Return the lowest feature level at which a model's tile has no findings but notes, against both; None if none.

    A tile that something other than DirectML runs has that of the back end's device.
    """
    # a back end may ask which data types the device has
    levels = sorted({*DISTINCT_LEVELS, *(since for since, _, _ in DATA_TYPES), back_end.minimum_level})
    for level in levels:
        if all(finding.severity is Severity.NOTE for finding in check_node(node, Target(level), back_end)):
            return level
    return None


def _findings(
    request: Request, result: BackEndResult, back_end: BackEnd, target: Target, against: Against
) -> tuple[Finding, ...]:
    own = _own_findings(result, back_end, target)
    lost = tuple(sizes_fit.findings(request, target))  # a back end that converts to UINT describes another tile
    if own and (result.outcome in (Outcome.ELSEWHERE, Outcome.REFUSED) or not lost):
        return own
    return lost + (check(result.desc, target, against) if result.desc else ())


def _own_findings(result: BackEndResult, back_end: BackEnd, target: Target) -> tuple[Finding, ...]:
    found = found_by(BACK_END_RULES, result, target)
    return tuple(replace(finding, url=back_end.source) for finding in found)


def check_model(
    model: str | os.PathLike[str] | ModelProto,
    target: TargetLike | None = None,
    *,
    via: str | None = None,
    dims: Mapping[str, int] | None = None,
    input_shapes: Mapping[str, Sequence[int | None]] | None = None,
    infer: str | None = None,
    against: Against = "both",
) -> tuple[Result, ...]:
    """Return the result of each tile of a model: its verdict, its findings, and what is known at run time only.

    ``model`` is a file of any kind that ``dml-tile check`` reads, a SavedModel's folder, or an onnx.ModelProto, of
    which tensors in other files are not read. ``target`` None means the current target. ``via`` names the back end that
    the tiles go through. ``dims`` are the sizes of named dimensions, ``input_shapes`` the shapes of inputs, in
    elements; a size of None stays as it is. ``infer="onnxruntime"`` has onnxruntime infer what its own operators give;
    it must be installed, and sympy.

    Warns of declared shapes that contradict the inferred ones.

    Raises InputError, which names the file, if a part of the model cannot be read, ValueError for an unknown target,
    back end, inference or ``against``, and for a name in ``dims`` that the model does not have.
    """
    if infer not in (None, ONNXRUNTIME):
        raise ValueError(f"infer is {infer!r}; {ONNXRUNTIME!r} or None was expected")
    check = file_check([target], against, via=via, dims=dims, input_shapes=input_shapes, infer=infer)
    with _named_file(model) as (name, file), Sources(check.known_shapes) as sources:
        parts = list(sources.parts(file))
        names = sources.new_dimension_names()
    if problems := [part for part in parts if isinstance(part, Problem)]:
        raise InputError([replace(each, pointer=place_of(name, each.pointer)) for each in problems])
    if problem := unknown_dimension(dims or (), names, [file]):
        raise ValueError(f"{name}: {problem}")
    tiles = [part for part in parts if not isinstance(part, Problem)]
    for text in chain.from_iterable(part.contradictions for part in tiles if isinstance(part, TileNode)):
        warnings.warn(f"{name}: {text}", stacklevel=2)
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
