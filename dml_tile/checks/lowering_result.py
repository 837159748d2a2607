"""The lowering of one tile of a source, or the reason why there is none."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from dml_tile.checks.result import results, ruled_out
from dml_tile.directml.targets import Target
from dml_tile.errors import DmlError
from dml_tile.findings import Finding
from dml_tile.lowering.lower import DEFAULT_OPTIONS, LoweringOptions, lower, lower_request
from dml_tile.lowering.steps import Lowering
from dml_tile.readers.descriptors import JsonDescriptor
from dml_tile.readers.model_tile import TileNode
from dml_tile.rules.check import not_a_tile


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
    source: str, part: JsonDescriptor | TileNode, target: Target, options: LoweringOptions = DEFAULT_OPTIONS
) -> LoweringResult:
    """Lower a part of a source, if its tile is known and has a lowering."""
    if isinstance(part, TileNode) and part.unknown:
        (result,) = results(source, part, [target], "both")
        return LoweringResult(source, part.pointer, target, None, result.findings, part.unknown)
    try:
        lowering = lowering_of(part, target, options)
    except DmlError as error:
        return LoweringResult(source, part.pointer, target, None, error.findings)
    return LoweringResult(source, part.pointer, target, lowering)


def lowering_of(
    part: JsonDescriptor | TileNode, target: Target, options: LoweringOptions = DEFAULT_OPTIONS
) -> Lowering:
    """Return the lowering of a descriptor, or of a model's tile of which all is known.

    Raises DmlError as ``lower`` does.
    """
    if isinstance(part, JsonDescriptor):
        if part.other is not None:
            raise DmlError([not_a_tile(part.other)])
        return lower(part.desc, target, **asdict(options))
    if findings := ruled_out(part):
        raise DmlError(findings)
    return lower_request(part.request, target, **asdict(options))
