"""Lowerings of checked tiles, and the suggestions for those that a target refuses.

LoweringResult      the lowering of a tile, or the reason why there is none
with_suggestions()  suggests the command that lowers a tile, and another DirectML
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Unpack

from dml_tile.checks.result import Result, results, ruled_out
from dml_tile.descriptors.graph import GraphDesc
from dml_tile.directml.targets import Target
from dml_tile.errors import DmlError
from dml_tile.findings import Finding
from dml_tile.lowering.lower import MENDED_RULES, LoweringOptions, lower
from dml_tile.lowering.steps import Lowering
from dml_tile.readers.descriptors import JsonDescriptor
from dml_tile.readers.model_tile import KnownShapes, TileNode
from dml_tile.rules.check import not_a_tile
from dml_tile.rules.tile import dimension_count_is_supported_at_level
from dml_tile.text import as_typed, printable

_RANK: Final = dimension_count_is_supported_at_level.id
_ANOTHER_DIRECTML: Final = (
    "ship onnxruntime-directml, which brings a DirectML, and check --via ort at onnxruntime-directml-VERSION"
)


@dataclass(frozen=True, slots=True)
class LoweringResult:
    """The lowering of the tile at ``pointer`` of ``source``, or the findings that say why there is none.

    There is neither for a model's tile that passes as far as it is known: ``unknown`` names the fields that are known
    at run time only, and a lowering takes all of them.
    """

    source: str
    pointer: str
    target: Target
    lowering: Lowering | None = None
    findings: tuple[Finding, ...] = ()
    unknown: tuple[str, ...] = ()


def lower_part(
    source: str, part: JsonDescriptor | TileNode, target: Target, **options: Unpack[LoweringOptions]
) -> LoweringResult:
    """Lower a part of a source, if its tile is known and has a lowering."""
    if isinstance(part, TileNode) and part.unknown:
        (result,) = results(source, part, [target], "both")
        return LoweringResult(source, part.pointer, target, None, result.findings, part.unknown)
    try:
        lowering = lowering_of(part, target, **options)
    except DmlError as error:
        return LoweringResult(source, part.pointer, target, None, error.findings)
    return LoweringResult(source, part.pointer, target, lowering)


def lowering_of(part: JsonDescriptor | TileNode, target: Target, **options: Unpack[LoweringOptions]) -> Lowering:
    """Return the lowering of a descriptor, or of a model's tile of which all is known. Raises DmlError."""
    if isinstance(part, JsonDescriptor):
        if part.other is not None or isinstance(part.desc, GraphDesc):
            raise DmlError([not_a_tile(part.other or "a graph")])
        return lower(part.desc, target, **options)
    if findings := ruled_out(part):
        raise DmlError(findings)
    return lower(part.request, target, **options)


def with_suggestions(
    result: Result, part: JsonDescriptor | TileNode, known_shapes: KnownShapes, *, is_alone: bool
) -> Result:
    """Return the result with the lowering of its tile, if there is one that helps; its findings suggest the command.

    A tile that ``is_alone`` in its source needs no pointer. If only the rank of an ONNX model's tile is refused, its
    findings suggest another DirectML: that happens at levels below those at which onnxruntime makes a device.
    """
    if result.via:
        return result
    is_onnx = isinstance(part, TileNode) and part.dialect.specification == "ONNX"
    if is_onnx and {finding.rule for finding in result.findings} == {_RANK}:
        another = (_with_suggestion(finding, _ANOTHER_DIRECTML) for finding in result.findings)
        result = replace(result, findings=tuple(another))
    if result.unknown or not any(finding.rule in MENDED_RULES for finding in result.findings):
        return result
    command = _command(result, known_shapes, is_alone)
    if command != printable(command):  # nobody could type it
        return result
    try:
        lowering = lowering_of(part, result.target)
    except DmlError:
        return result
    findings = (
        _with_suggestion(finding, f"lower it ({command})") if finding.rule in MENDED_RULES else finding
        for finding in result.findings
    )
    return replace(result, findings=tuple(findings), lowering=lowering, command=command)


def _with_suggestion(finding: Finding, first: str) -> Finding:
    """Return the finding with another suggestion before its own."""
    return replace(finding, suggestion=f"{first}{f', or {finding.suggestion}' if finding.suggestion else ''}")


def _command(result: Result, known_shapes: KnownShapes, is_alone: bool) -> str:
    is_an_option = result.source.startswith("-") and result.source != "-"
    arguments = [f"./{result.source}" if is_an_option else result.source, "--target", result.target.name]
    for name, size in known_shapes.dims.items():
        arguments += ["--dim", f"{name}={size}"]
    for name, shape in known_shapes.input_shapes.items():
        arguments += ["--input-shape", f"{name}={','.join('?' if size is None else str(size) for size in shape)}"]
    if known_shapes.infer:
        arguments += ["--infer", known_shapes.infer]
    if result.pointer and not is_alone:
        arguments += ["--pointer", result.pointer]
    command = as_typed(["dml-tile", "lower", *arguments])
    return f"{command} < FILE" if result.source == "-" else command  # standard input cannot be read again
