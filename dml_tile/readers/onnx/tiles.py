"""The Tiles of an ONNX model, at any depth, with as much as the file says of their inputs.

onnx infers types and shapes, first of the whole model with data propagation, then of each node with the constants:
initialisers, Constants, known shapes, and values computed from small tensors of these. Weights are not read.

An initialiser that is also an input of the graph is a default that a caller may override, not a constant, as IR version
4 says; before that version all initialisers had to be inputs, and are constants.

Pages: https://onnx.ai/onnx/operators/onnx__Tile.html and https://onnx.ai/onnx/repo-docs/IR.html
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

try:
    import onnx  # noqa: F401
except ImportError as error:
    raise ImportError("reading an ONNX model needs onnx: pip install 'onnx>=1.19'") from error

from onnx import ModelProto, OperatorSetIdProto, TensorProto

from dml_tile.back_ends.deployment import Deployment
from dml_tile.back_ends.dialects import onnx_tile
from dml_tile.back_ends.kernels import Version, limits_at
from dml_tile.back_ends.placement import LoadedModel, PlacedModel, Placement, Reason
from dml_tile.back_ends.placer import place as placements_at
from dml_tile.back_ends.placer import placed_model
from dml_tile.findings import EXTERNAL_DATA, Finding, unreadable
from dml_tile.readers.model_names import KnownShapes, ModelFacts
from dml_tile.readers.model_tile import Dimension, TileNode, ValueOrigin, require_few_dimensions, tile_node
from dml_tile.readers.onnx.file import ANY, Tensors, load, nodes
from dml_tile.readers.onnx.functions import OVERLOADS_SINCE, Inliner
from dml_tile.readers.onnx.nodes import Node, place
from dml_tile.readers.onnx.scan import GraphScan, ScannedGraph
from dml_tile.readers.onnx.sizes import fix, names_in
from dml_tile.readers.onnx.values import UNKNOWN

FIRST_WITH_DEFAULTS: Final = 4
"""The IR version from which on an initialiser that is an input is a default."""

MAX_NAMED: Final = 5
"""The most tensors without data that are named for each file."""

MAX_CONTRADICTIONS: Final = 10
"""The most contradictions of a model that are reported: later values often repeat a wrong size."""


def read_nodes(
    path: Path, known_shapes: KnownShapes, deployments: Sequence[Deployment] = ()
) -> Generator[TileNode | PlacedModel | Finding, None, ModelFacts]:
    """Yield the Tiles in the order in which they run, and problems of Tiles that cannot be read.

    With ``deployments``, the placements of all nodes in these come first.

    A pointer is the path of a node, such as ``If_3/then_branch/Tile_1``; a node without a unique name is named by its
    output, ``Tile->y``. A Tile of a model-local function comes once for each call, behind the call's name. The data
    that a Tile needs may be in other files of the model's folder; a Finding says why data cannot be read.

    Known shapes are a run's: onnxruntime folds before it gets them. Names that the model lacks are ignored.
    Returns the model's names, and what contradicts itself in it.

    Raises InputError for a file that is not an ONNX model or cannot be read, and for known shapes that contradict the
    model.
    """
    model = load(path)
    overridable = prepare(model)
    facts = names_in(model.graph, known_shapes)
    unsized = deepcopy(model)
    fix(model.graph, known_shapes)
    is_sized = model != unsized
    releases = dict.fromkeys(each.release for each in deployments)
    release = next(iter(releases), None)
    is_overloaded = bool(model.functions) and len({each >= OVERLOADS_SINCE for each in releases}) > 1
    sized = scan(model, path, overridable, release)
    loaded = scan(unsized, path, overridable, release) if is_sized else sized
    if deployments:
        models = dict.fromkeys(releases, loaded.nodes)
        if loaded.nodes.unimported or is_overloaded:  # each release takes opsets, or functions, of its own
            models = {each: scan(again := load(path), path, prepare(again), each).nodes for each in models}
        placed = (placements_at(sized.nodes, each).nodes for each in deployments if is_sized)
        kernels = {(node.place.pointer, node.place.operator): node.kernel for each in placed for node, _ in each}
        yield placed_model(
            [models[each.release] for each in deployments],
            deployments,
            lambda node: kernels.get((node.place.pointer, node.place.operator)) or node.kernel,
        )
    yield from sized.scan.wrong_data.values()
    for (pointer, node), (_, unsized_node) in zip(sized.graph.tiles, loaded.graph.tiles, strict=True):
        origins = sized.scan.origins_of_sizes
        (tile, problems), (before, _) = (_tile(pointer, each, origins) for each in (node, unsized_node))
        if tile and before:
            yield replace(
                _completed(tile, before),
                emptied=_is_empty(tile) and not _is_empty(before),
                inputs=tuple(map(place, node.proto.input)),
                output=place(*node.proto.output[:1]),
                place=node.placed.place.pointer,
                quantised=node.quantised,
                transposed=node.transposed,
            )
        yield from (unreadable(pointer, problem) for problem in problems)
    contradictions = (*sized.scan.inliner.unused, *sized.scan.contradictions.values())[:MAX_CONTRADICTIONS]
    is_checked = bool(deployments or sized.graph.tiles)
    return replace(facts, nodes=sized.node_count, contradictions=contradictions if is_checked else ())


class ScannedModel(NamedTuple):
    """A model's graph and nodes, the number of the nodes, of functions those of each call, and what the scan found."""

    graph: ScannedGraph
    nodes: LoadedModel
    node_count: int
    scan: GraphScan


def scan(
    model: ModelProto, path: Path, overridable: Mapping[str, TensorProto], release: Version | None
) -> ScannedModel:
    """Scan a model of a file that ``prepare`` has prepared, as a release loads it; without one, only for its Tiles.

    Inlines its functions. Domains that the model does not import have the release's newest opsets.
    """
    imported = {"" if each.domain == "ai.onnx" else each.domain: each.version for each in model.opset_import}
    newest = limits_at(release).opsets if release else {}
    implied = {domain: newest[domain] for domain in newest.keys() - imported} if imported else {"": 1}
    model.opset_import.extend(OperatorSetIdProto(domain=domain, version=implied[domain]) for domain in sorted(implied))
    inliner = Inliner(model, by_overload=release is None or release >= OVERLOADS_SINCE)
    inliner.expand_graph(model.graph, model.opset_import)
    del model.functions[:]
    operators = []
    for node in nodes(model.graph):
        operators.append(("" if node.domain == "ai.onnx" else node.domain, node.op_type))
        if node.op_type == "Constant":
            del node.attribute[1:]  # ONNX Runtime looks at the first alone
    has_tiles = any(operator == "Tile" for _, operator in operators)
    if release is None and not has_tiles:
        model.graph.Clear()
    graph_scan = GraphScan(Tensors(path), inliner, {**implied, **imported}, overridable, has_tiles)
    found = graph_scan.scanned(model)
    unimported = sorted({domain for domain, _ in operators}.intersection(implied))
    faults = [(since, fault) for (since, _), fault in inliner.faults.items()]
    faults += [(ANY, found.fault)] if found.fault else []
    faults += [(since, _without_data(why, names)) for (why, since), names in graph_scan.lacking.items()]
    unused = tuple(imported.keys() - {domain for domain, _ in operators})
    loaded = LoadedModel(
        model.ir_version, imported, found.nodes, tuple(unimported) if imported else (), tuple(faults), unused
    )
    return ScannedModel(found, loaded, len(operators), graph_scan)


def _without_data(why: str, names: Sequence[str]) -> Reason:
    """Return what keeps a model from loading whose file lacks the data of tensors with these names."""
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    text = f"the data of {', '.join(names[:MAX_NAMED])}{more} are {why}; onnxruntime makes no session"
    return Reason(Placement.NONE, EXTERNAL_DATA, text)


def prepare(model: ModelProto) -> dict[str, TensorProto]:
    """Give a model what old IR versions leave out; return the defaults of its inputs, by name.

    Of inputs and initialisers with one name, those that do not count are dropped.
    """
    initialisers = {tensor.name: tensor for tensor in model.graph.initializer}
    shared = {value.name: initialisers[value.name] for value in model.graph.input if value.name in initialisers}
    has_defaults = model.ir_version >= FIRST_WITH_DEFAULTS
    values: Any = model.graph.initializer if has_defaults else model.graph.input
    kept = [value for value in values if value.name not in shared]
    del values[:]
    values.extend(kept)
    model.ir_version = max(model.ir_version, FIRST_WITH_DEFAULTS)
    return shared if has_defaults else {}


_Known = TypeVar("_Known", bound=Dimension)


def _completed(part: TileNode, unsized: TileNode) -> TileNode:
    """Return a Tile completed by values known without the given sizes.

    A model cannot run with every size: if onnx's inference of a node fails with a size, it forgets the rest.
    """
    if part.shape is not None and unsized.shape is not None and len(part.shape) != len(unsized.shape):
        return part
    return replace(
        part,
        data_type=part.data_type or unsized.data_type,
        shape=_known_of(part.shape, unsized.shape),
        repeats=_known_of(part.repeats, unsized.repeats),
        error=part.error or unsized.error,
    )


def _known_of(values: tuple[_Known, ...] | None, others: tuple[_Known, ...] | None) -> tuple[_Known | None, ...] | None:
    """Return the values; an unknown value is replaced by the other's number."""
    if others is None:
        return values
    pairs = zip(values or (None,) * len(others), others, strict=True)
    return tuple(other if isinstance(other, int) and not isinstance(value, int) else value for value, other in pairs)


def _is_empty(tile: TileNode) -> bool:
    return 0 in (*(tile.shape or ()), *(tile.repeats or ()))


def _tile(
    pointer: str, node: Node, origins_of_sizes: Mapping[str, ValueOrigin]
) -> tuple[TileNode | None, Iterable[str]]:
    """Return a Tile, and reasons why it or its data cannot be read."""
    if node.opset is None or node.opset < 1:
        opset = "no opset" if node.opset is None else f"opset {node.opset}, which has no Tile,"
        return None, [f"is a Tile; the model imports {opset} of onnx's operators"]
    dialect = onnx_tile(node.opset)
    expected = ("input", *dialect.arguments)
    value, *others = node.inputs or [UNKNOWN]
    if value.type is not None and value.sizes is None:
        require_few_dimensions(pointer, len(value.type.tensor_type.shape.dim))
    shape = value.shape and tuple(place(size) if isinstance(size, str) else size for size in value.shape)
    if len(node.inputs) != len(expected) or not all(node.proto.input):
        message = f"inputs: there are {sum(map(bool, node.proto.input))}; {', '.join(expected)} were expected"
        return TileNode(pointer, dialect, value.data_type, shape, None, message), ()
    unknown = [other for other in others if other.constant is None]
    origins = next((other.origins or (other.elements_origin,) for other in unknown), ())
    sizes = () if value.is_typed else value.sizes or ("",)  # without sizes, of the whole
    tile = replace(
        tile_node(pointer, dialect, value.data_type, shape, [other.elements for other in others]),
        input_origins=tuple(origins_of_sizes.get(str(size), value.sizes_origin) for size in sizes),
        repeats_origins=origins if any(map(str, origins)) else (),
    )
    reasons = [each.unread for each in [*unknown, *[value] * (not value.is_static)]]
    return tile, dict.fromkeys(filter(None, reasons))
