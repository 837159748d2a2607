"""Lowerings of checked tiles, and suggestions for refused tiles.

lower_item()               lowers a tile, or says why it has no lowering
with_lowering_suggested()  suggests the command that lowers a tile, and other nodes of an ONNX model
"""

from __future__ import annotations

from dataclasses import replace
from math import inf, prod
from typing import TYPE_CHECKING, Final

from dml_tile.back_ends import directml
from dml_tile.back_ends.back_end import BackEnd
from dml_tile.checks.judging import judged
from dml_tile.checks.result import Result
from dml_tile.checks.verdict import Verdict, verdict_of
from dml_tile.descriptors.operator import OperatorDesc, tile_of
from dml_tile.descriptors.tile import TileOperatorDesc, array_text, described
from dml_tile.directml.data_types import CARRIERS, ELEMENT_SIZES, NAMED_SIZES
from dml_tile.directml.enums import DML_TENSOR_DIMENSION_COUNT_MAX1, UINT_MAX
from dml_tile.directml.targets import Target
from dml_tile.errors import DmlError
from dml_tile.files.paths import STANDARD_INPUT
from dml_tile.findings import Finding, Severity, Try
from dml_tile.lowering.lower import REPAIRABLE_RULES, lower
from dml_tile.lowering.steps import Lowering
from dml_tile.readers.item import Item
from dml_tile.readers.model_names import KnownShapes
from dml_tile.rules.descriptor import not_a_tile
from dml_tile.text import as_typed, printable

if TYPE_CHECKING:
    from dml_tile.readers.model_tile import TileNode

_LOWER_IT: Final = "lower it"

_MAX_SHAPE_OPTIONS: Final = 500
"""The characters of names, and the sizes of inputs, in a command that is suggested: nobody would type more."""

_INTEGERS_OF_FLOAT: Final = "exact for integers from -16777216 to 16777216"

_CASTS: Final = {
    # the types that a model may tile instead of each type, the best first, and the range in which that is exact
    "int64": (("int32", "exact from -2147483648 to 2147483647"), ("float32", _INTEGERS_OF_FLOAT)),
    "uint64": (("uint32", "exact from 0 to 4294967295"), ("float32", "exact from 0 to 16777216")),
    "int32": (("float32", _INTEGERS_OF_FLOAT),),
    "uint32": (("float32", "exact from 0 to 16777216"),),
    **dict.fromkeys(("bool", "int8", "uint8", "int16", "uint16", "bfloat16"), (("float32", "which is exact"),)),
    "float64": (("float32", f"which rounds, and is {_INTEGERS_OF_FLOAT}"),),
}


def lower_item(
    source: str, item: Item, target: Target, via: BackEnd | None = None, *, allow_float_reinterpretation: bool = True
) -> Result:
    """Lower a source's item, if its tile is known and has a lowering; a model's tile as ``via`` describes it.

    The result has the lowering, or the findings that say why there is none. It has neither for a model's tile that
    passes as far as it is known.
    """
    if item.departure:
        return Result(replace(item, source=source), target, Verdict.ELSEWHERE, (item.departure,), None)
    if item.unknown:
        (result,) = judged(source, item, [target], "both", via)
        return result
    item = replace(item, source=source, places={})
    try:
        lowering = lowering_of(item, target, via, allow_float_reinterpretation)
    except DmlError as error:
        return Result(item, target, verdict_of(error.findings), error.findings, None)
    return Result(item, target, Verdict.ACCEPTED, (), None, lowering=lowering)


def lowering_of(item: Item, target: Target, via: BackEnd | None = None, allow_floats: bool = True) -> Lowering:
    """Return the lowering of a descriptor, or of a model's tile with all fields known. Raises DmlError.

    Through a back end, the lowering is of the back end's descriptor of the tile; if there is none, the error's findings
    say why.
    """
    node = item.node
    if node is None:
        desc, other = item.desc, item.other
        if other is not None or item.is_null_graph or not isinstance(desc, TileOperatorDesc | OperatorDesc | None):
            raise DmlError([not_a_tile(other or "a graph")])
        return lower(desc, target, allow_float_reinterpretation=allow_floats)
    from dml_tile.checks.via import as_optimised, check_node, ruled_out  # imports the back ends

    if findings := ruled_out(node):
        raise DmlError(findings)
    if via is None:
        return lower(node.request, target, allow_float_reinterpretation=allow_floats)
    node = as_optimised(node, via, target)
    findings = check_node(node, target, via)
    described = via.describe(node.request, target).desc
    if described is None:
        raise DmlError(findings or directml.findings(node.request))  # of an empty tile, the back end reports nothing
    return lower(described, target, allow_float_reinterpretation=allow_floats)


def with_lowering_suggested(result: Result, item: Item, known_shapes: KnownShapes, *, is_alone: bool) -> Result:
    """Return the result, whose findings suggest the command that lowers the item where a lowering may satisfy them.

    A tile that ``is_alone`` in its source needs no pointer. Findings of an ONNX model's tile suggest other nodes first.
    """
    node = item.node
    if not result.item.via and _may_be_lowered(result, node):
        result = _with_lowering(result, known_shapes if node else KnownShapes(), is_alone)
    if node and node.dialect.specification == "ONNX":
        result = replace(result, findings=tuple(_advised(finding, node, result) for finding in result.findings))
    return result


def _with_lowering(result: Result, known_shapes: KnownShapes, is_alone: bool) -> Result:
    command = _command(result, known_shapes, is_alone)
    if not command or command != printable(command):  # nobody could type it
        return result
    findings = (
        _trying(Try(_LOWER_IT, command), finding) if finding.rule in REPAIRABLE_RULES else finding
        for finding in result.findings
    )
    return replace(result, findings=tuple(findings))


def _may_be_lowered(result: Result, node: TileNode | None) -> bool:
    """Return True if a lowering can satisfy each broken rule; whether one exists is not computed."""
    item, broken = result.item, {finding.rule for finding in result.findings if finding.severity is not Severity.NOTE}
    if item.unknown or not broken or not broken <= REPAIRABLE_RULES:
        return False
    if node:
        most = UINT_MAX * max(ELEMENT_SIZES.values())  # bytes, of elements as large as can be
        return prod(node.request.output_shape) * NAMED_SIZES.get(node.request.data_type, inf) <= most
    desc = item.desc
    tile = tile_of(desc) if isinstance(desc, OperatorDesc | TileOperatorDesc) else None
    return tile is not None and described(tile)[0].data_type in ELEMENT_SIZES


def _advised(finding: Finding, node: TileNode, result: Result) -> Finding:
    """Return the finding on an ONNX model's tile, with advice on the model's nodes."""
    from dml_tile.back_ends.chromium import CHROMIUM

    if result.item.via == CHROMIUM.name:  # a browser brings no DirectML, and takes no other
        finding = replace(finding, tries=tuple(each for each in finding.tries if not each.ships))
    advice = ""
    if finding.field == "DataType":
        advice = _other_type(node.request.onnx_type, result.target)
    elif finding.field == "DimensionCount":
        any_level = range(1, DML_TENSOR_DIMENSION_COUNT_MAX1 + 1)
        ranks = any_level if result.item.via else result.target.tile_support.dimension_counts
        advice = _other_rank(node, ranks)
        if len(node.request.shape) < ranks[0]:  # this gives the tensor the rule's leading 1s
            finding = replace(finding, tries=(Try(_LOWER_IT, result.command),) if result.command else ())
    return _trying(Try(advice), finding) if advice else finding


def _other_type(name: str, target: Target) -> str:
    """Return how to tile another type that the target takes; empty if no type holds the same values."""
    taken = target.tile_support.data_types
    other, exact = next((row for row in _CASTS.get(name, ()) if CARRIERS[row[0]] in taken), ("", ""))
    return f"Cast to {other} before the Tile and back to {name} behind it, {exact}" if other else ""


def _other_rank(node: TileNode, ranks: range) -> str:
    """Return how to give a tile a number of dimensions in ``ranks``; empty if other shapes do not suffice."""
    shape, repeats = node.request.shape, node.request.repeats
    if len(shape) < ranks[0]:
        told = f"to {ranks[0]} dimensions" if node.unknown else f"tile {_sizes_and_repeats(shape, repeats, ranks[0])}"
        return f"Unsqueeze the input and Squeeze the output: {told}"
    if node.unknown:
        return "merge dimensions by a Reshape before the Tile and one behind it"
    sizes, counts = directml.merged_dimensions(shape, repeats)
    return f"tile {_sizes_and_repeats(sizes, counts, ranks[0])} between two Reshapes" if len(sizes) <= ranks[-1] else ""


def _sizes_and_repeats(sizes: tuple[int, ...], repeats: tuple[int, ...], rank: int) -> str:
    return " x ".join(array_text((1,) * (rank - len(values)) + values) for values in (sizes, repeats))


def _trying(first: Try, finding: Finding) -> Finding:
    """Return the finding with another suggestion before its own."""
    return replace(finding, tries=(first, *finding.tries))


def _command(result: Result, known_shapes: KnownShapes, is_alone: bool) -> str:
    """Return the command that lowers a tile; empty where the shapes that it has to give are too many."""
    source = result.item.source
    is_an_option = source.startswith("-") and source != STANDARD_INPUT
    arguments = [f"./{source}" if is_an_option else source, "--target", result.target.name]
    dims, shapes = known_shapes
    are_too_many = len(dims) + len(shapes) > _MAX_SHAPE_OPTIONS  # so that many are not counted again for each tile
    if are_too_many or sum(map(len, (*dims, *shapes, *shapes.values()))) > _MAX_SHAPE_OPTIONS:
        return ""
    for name, size in dims.items():
        arguments += ["--dim", f"{name}={size}"]
    for name, shape in shapes.items():
        arguments += ["--input-shape", f"{name}={','.join('?' if size is None else str(size) for size in shape)}"]
    if result.item.pointer and not is_alone:
        arguments += ["--pointer", result.item.pointer]
    command = as_typed(["dml-tile", "lower", *arguments])
    # standard input cannot be read again
    return f"{command} < FILE" if source == STANDARD_INPUT else command
