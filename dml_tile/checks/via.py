"""The results of a model's Tile, as its specification has it or through a back end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from dml_tile.back_ends import BackEnd, BackEndResult, back_end_named, directml
from dml_tile.back_ends.back_end import BACK_END_RULES
from dml_tile.back_ends.chromium import CHROMIUM, may_use_onnx_runtime
from dml_tile.back_ends.dialects import Request
from dml_tile.back_ends.directml import sizes_fit
from dml_tile.back_ends.onnxruntime import QUANTISED_SINCE, TRANSPOSES_MOVE_SINCE
from dml_tile.checks.result import CheckedFile, Result
from dml_tile.checks.verdict import verdict_of
from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.levels import LEVELS
from dml_tile.directml.targets import DEFAULT_TARGET, Target, TargetLike, provider_release
from dml_tile.errors import require_instance
from dml_tile.findings import (
    OTHER_RUNTIME,
    OWN,
    UNUSED_VIA,
    Against,
    Finding,
    Severity,
    Try,
    apply_rules,
    bases_of,
    own_finding,
)
from dml_tile.readers.item import item_of
from dml_tile.readers.model_tile import TileNode
from dml_tile.rules.descriptor import findings_of, lowest_level
from dml_tile.rules.tile_findings import DISTINCT_LEVELS
from dml_tile.simulation.target import resolve
from dml_tile.text import plural


def ruled_out(node: TileNode) -> tuple[Finding, ...]:
    """Return the finding on a model's tile that its own specification rules out, if it does."""
    if not node.error:
        return ()
    rule = directml.SPECIFICATION_RULES[node.dialect.specification]
    return tuple(rule.findings(f"{node.dialect}: {node.error}", DEFAULT_TARGET))


def judged_node(
    source: str, node: TileNode, targets: Sequence[Target], against: Against, via: BackEnd | None
) -> Iterator[Result]:
    """Yield the results of a model's Tile, one for each target."""
    refused = () if via else ruled_out(node) or directml.findings(node.request)
    desc = None if via or refused else directml.tile_desc(node.request)
    lowest = lowest_level(desc) if desc else None
    tile = node
    for target in targets:
        if via:
            tile = as_optimised(node, via, target)
            findings, lowest = check_node(tile, target, via, against), lowest_level_through(tile, via, target)
        else:
            findings = refused or findings_of(desc, target, against)
        item = replace(item_of(tile), source=source, via=via.name if via else "")
        yield Result(item, target, verdict_of(findings, item.unknown), findings, lowest)


def as_optimised(node: TileNode, via: BackEnd, target: Target) -> TileNode:
    """Return the Tile that ONNX Runtime's release leaves of a model's: on quantised values, before Transposes."""
    if not (via.places_nodes and (node.quantised or node.transposed)):
        return node
    release = via.deployed(target).release
    if node.quantised and release >= QUANTISED_SINCE:
        node = replace(node, data_type=node.quantised)
    order = [node.transposed.index(i) for i in range(len(node.transposed))]
    if order and release >= TRANSPOSES_MOVE_SINCE:
        moved: dict[str, Any] = {}
        for name in ("shape", "repeats", "input_origins", "repeats_origins"):
            values = getattr(node, name)
            if values and len(values) == len(order):  # one origin may be that of all
                moved[name] = tuple(values[i] for i in order)
        node = replace(node, **moved)
    return replace(node, quantised="", transposed=())


def why_lower(result: Result) -> str:
    """Return why a model's tile that fails at a target passes below it: the device there lacks its type."""
    node, lowest = result.item.node, result.lowest_level
    if not node or not result.item.via or lowest is None or lowest >= result.target.feature_level:
        return ""
    carrier = node.request.carrier
    if carrier is None or _at_level(lowest, result.target).supports_data_type(carrier):
        return ""
    return f"the device has no {carrier.name}"


def check_via(
    request: Request, target: TargetLike | None, back_end: str, against: Against = "both"
) -> tuple[Finding, ...]:
    """Return the findings of a tile that goes through a back end: the back end's, else its descriptor's.

    ``target`` None means the current target. ``against`` applies to the descriptor, not to the back end's own findings.
    A tile that another provider takes has a finding that is a note. Raises ValueError for an unknown target, back end
    or ``against``.
    """
    require_instance(request, Request)
    bases_of(against)
    chosen, target = back_end_named(back_end), resolve(target)
    return _findings(request, chosen, target, against)


def check_node(node: TileNode, target: Target, back_end: BackEnd, against: Against = "both") -> tuple[Finding, ...]:
    """Return the findings on a model's tile that its dialect accepts.

    For a tile that is known in part only, or empty in this run of the model only, these are the back end's own findings
    and those on the data type and on known sizes that fit no UINT.
    """
    request = node.request
    findings = _findings(request, back_end, target, against)
    if node.emptied:
        shape, repeats = (tuple(value or 1 for value in values) for values in (request.shape, request.repeats))
        filled = replace(request, shape=shape, repeats=repeats)
        return _of_any_run(_findings(filled, back_end, target, against)) or findings
    return _of_any_run(findings) if node.unknown else findings


def _of_any_run(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings that hold whatever a tile's assumed values are."""
    rules = {sizes_fit.id, *(rule.id for rule in BACK_END_RULES), *OWN}
    return tuple(finding for finding in findings if finding.rule in rules or finding.field == "DataType")


# a back end may ask which data types the device has
_DISTINCT_LEVELS: Final = {*DISTINCT_LEVELS, *(row.level for row in LEVELS.values() if row.new_types)}


def lowest_level_through(node: TileNode, back_end: BackEnd, target: Target = DEFAULT_TARGET) -> FeatureLevel | None:
    """Return the lowest feature level at which a model's tile has at most notes, against both; None if none.

    ``target`` names the release. For a tile that DirectML does not run, this is the level of the back end's device.
    """
    least = back_end.minimum_level(target)
    for level in sorted(level for level in {*_DISTINCT_LEVELS, least} if level >= least):
        found = check_node(node, _at_level(level, target), back_end)
        if all(finding.severity is Severity.NOTE for finding in found):
            return level
    return None


def _at_level(level: FeatureLevel, target: Target) -> Target:
    """Return the target of a level, with the release of ONNX Runtime that a target names."""
    return Target(level, target.name if provider_release(target.name) else "")


def _findings(request: Request, back_end: BackEnd, target: Target, against: Against) -> tuple[Finding, ...]:
    result = back_end.describe(request, target)
    if own := _own_findings(result, back_end, target):
        return own
    # a back end that converts to UINT describes another tile, unless the tile is empty
    lost = () if 0 in request.output_shape else tuple(sizes_fit.findings(request, target))
    if not result.desc:
        return lost
    return lost + tuple(_as_shipped(each, back_end, target) for each in findings_of(result.desc, target, against))


def _as_shipped(finding: Finding, back_end: BackEnd, target: Target) -> Finding:
    """Return a finding whose advice to ship a DirectML, if it has some, is to ship that of ONNX Runtime's release."""
    if back_end.advice is None or not any(each.ships for each in finding.tries):
        return finding
    advice = Try(back_end.advice(back_end.deployed(target)), ships=True)
    return replace(finding, tries=tuple(advice if each.ships else each for each in finding.tries))


def _own_findings(result: BackEndResult, back_end: BackEnd, target: Target) -> tuple[Finding, ...]:
    if result.rule:
        own = own_finding(result.rule, result.reason, result.path, suggestion=result.suggestion)
        return (replace(own, url=OWN[result.rule].url),)
    found = apply_rules(BACK_END_RULES, result, target)
    return tuple(replace(finding, url=result.url or back_end.source) for finding in found)


def back_end_notices(
    via: BackEnd, targets: Iterable[Target], files: Iterable[CheckedFile], *, is_an_option: bool
) -> Iterator[Finding]:
    """Yield a notice, at the first file of descriptors, that an option for a back end says nothing of these.

    Yield another, at the first model, of targets where Chromium may pass a graph to ONNX Runtime.
    """
    files = list(files)
    names = [each.source for each in files if each.operators and not each.is_model]
    if names and is_an_option:
        others = f", as are those of {plural(len(names) - 1, 'more file')}" if len(names) > 1 else ""
        message = f"its descriptors are checked as DirectML gets them{others}; --via {via.name} is of models"
        yield own_finding(UNUSED_VIA, message, source=names[0])
    open_at = [target.name for target in targets if via.name == CHROMIUM.name and may_use_onnx_runtime(target)]
    model = next((each.source for each in files if each.is_model), None)
    if open_at and model is not None:
        where = f"at {', '.join(open_at)}, where Chromium's feature WebNNOnnxRuntime is on"
        message = f"{where}, ONNX Runtime takes the graph, with a provider that is not known here"
        yield own_finding(OTHER_RUNTIME, message, source=model)
