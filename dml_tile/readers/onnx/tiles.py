"""The Tiles of an ONNX model, at any depth, with as much as the file says of their inputs.

onnx infers types and shapes, first of the whole model with data propagation, then of each node with the constants:
initialisers, Constants, known shapes, and what is computed from small tensors of these. Weights are not read.

An initialiser that is also an input of the graph is a default that a caller may override, not a constant, as IR version
4 says; before that version all initialisers had to be inputs, and are constants.

Pages: https://onnx.ai/onnx/operators/onnx__Tile.html and https://onnx.ai/onnx/repo-docs/IR.html
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

try:
    import onnx  # noqa: F401
except ImportError as error:
    raise ImportError("reading an ONNX model needs onnx: pip install 'onnx>=1.19'") from error

from onnx import GraphProto, ModelProto

from dml_tile.back_ends.dialects import onnx_tile
from dml_tile.back_ends.placement import LoadedModel, PlacedModel
from dml_tile.back_ends.placer import placed_model
from dml_tile.directml.targets import Target
from dml_tile.findings import Finding, unreadable
from dml_tile.readers.model_names import KnownShapes, ModelNames
from dml_tile.readers.model_tile import Dimension, TileNode, ValueOrigin, tile_node
from dml_tile.readers.onnx.file import load
from dml_tile.readers.onnx.functions import Inliner, place_of
from dml_tile.readers.onnx.inference import fix, names_in, nodes, sizes_in_file, take_loop_types, with_types
from dml_tile.readers.onnx.nodes import place
from dml_tile.readers.onnx.operators import RUNTIME_DOMAINS
from dml_tile.readers.onnx.scan import FoundTile, GraphScan
from dml_tile.readers.onnx.values import UNKNOWN

FIRST_WITH_DEFAULTS: Final = 4
"""The IR version from which on an initialiser that is an input is a default."""

MAX_CONTRADICTIONS: Final = 10
"""The most contradictions of a model that are reported: later values often repeat a wrong size."""


def read_nodes(
    path: Path, known_shapes: KnownShapes, targets: Sequence[Target] = ()
) -> Generator[TileNode | PlacedModel | Finding, None, ModelNames]:
    """Yield the Tiles in the order in which they run, and problems of Tiles that cannot be read.

    With ``targets``, the placements of all nodes at these come first.

    A pointer is the path of a node, such as ``If_3/then_branch/Tile_1``; a node without a unique name is named by its
    output, ``Tile->y``. A Tile of a model-local function comes once for each call, behind the call's name. The data
    that a Tile needs may be in other files of the model's folder; a Finding says why data cannot be read.

    Known shapes are a run's: onnxruntime folds before it gets them. Names that the model lacks are ignored; the model's
    names are returned.

    Raises InputError for a file that is not an ONNX model or cannot be read, and for known shapes that contradict the
    model.
    """
    model = load(path)
    overridable = prepare(model)
    names = names_in(model.graph, known_shapes)
    unsized = deepcopy(model)
    fix(model.graph, known_shapes)
    is_sized = model != unsized
    for_tiles_only = not targets
    sized = scan(model, path.parent, overridable, for_tiles_only=for_tiles_only)
    loaded = scan(unsized, path.parent, overridable, for_tiles_only=for_tiles_only) if is_sized else sized
    contradictions = sized.remarks[:MAX_CONTRADICTIONS]
    if targets:
        yield replace(placed_model(loaded.nodes, targets), remarks=contradictions)
        contradictions = ()
    yield from sized.problems
    for found, found_before in zip(sized.tiles, loaded.tiles, strict=True):
        for part in _parts(found, found_before, sized.origins_of_sizes):
            if isinstance(part, TileNode):
                part, contradictions = replace(part, contradictions=contradictions), ()
            yield part
    return names._replace(nodes=sized.node_count)


class ScannedModel(NamedTuple):
    """A model's Tiles and nodes, what is to be said of the file, its wrong data, and the origins of unknown sizes.

    ``node_count`` is the number of its nodes, of functions those of each call.
    """

    tiles: list[FoundTile]
    nodes: LoadedModel
    remarks: tuple[str, ...]
    problems: tuple[Finding, ...]
    node_count: int
    origins_of_sizes: Mapping[str, ValueOrigin]


def scan(
    model: ModelProto, folder: Path, overridable: Mapping[str, int], *, for_tiles_only: bool = False
) -> ScannedModel:
    """Scan a model that ``prepare`` has prepared. Inlines its functions. ``for_tiles_only``, it has no other nodes."""
    inliner = Inliner(model)
    inliner.expand_graph(model.graph, inliner.opset)
    del model.functions[:]
    opset = inliner.opset
    imports = {each.domain: each.version for each in model.opset_import if each.domain not in ("", "ai.onnx")}
    opsets = imports if opset is None else {"": opset, **imports}
    every = [(node.op_type, node.domain) for node in nodes(model.graph)]
    has_tiles = any(operator == "Tile" for operator, _ in every)
    if for_tiles_only and not has_tiles:
        return ScannedModel([], LoadedModel(model.ir_version, opsets, ()), tuple(inliner.unused), (), len(every), {})
    loop_types = take_loop_types(model.graph)
    sizes = sizes_in_file(model.graph)
    graph_scan = GraphScan(folder, inliner, loop_types, sizes, imports, overridable, has_tiles)
    found = graph_scan.scanned(with_types(model).graph)
    unimported = sorted({domain for _, domain in every}.intersection(RUNTIME_DOMAINS).difference(imports))
    loaded = LoadedModel(model.ir_version, opsets, found.nodes, tuple(unimported))
    remarks = (*inliner.unused, *graph_scan.contradictions.values())
    problems = tuple(graph_scan.wrong_data)
    return ScannedModel(found.tiles, loaded, remarks, problems, len(every), graph_scan.origins_of_sizes)


def prepare(model: ModelProto) -> dict[str, int]:
    """Give a model what old IR versions leave out; return the elements of the defaults of its inputs, by name."""
    if not model.opset_import:  # none before IR version 3
        model.opset_import.add(version=1)
    overridable = {} if model.ir_version < FIRST_WITH_DEFAULTS else _defaults(model.graph)
    _keep_one_of_input_and_initialiser(model)
    return overridable


def _defaults(graph: GraphProto) -> dict[str, int]:
    names = {value.name for value in graph.input}
    return {tensor.name: math.prod(tensor.dims) for tensor in graph.initializer if tensor.name in names}


def _keep_one_of_input_and_initialiser(model: ModelProto) -> None:
    """Drop the initialisers or inputs that do not count, where both have one name."""
    graph = model.graph
    if model.ir_version < FIRST_WITH_DEFAULTS:
        initialisers = {tensor.name for tensor in graph.initializer}
        inputs = [value for value in graph.input if value.name not in initialisers]
        del graph.input[:]
        graph.input.extend(inputs)
        model.ir_version = FIRST_WITH_DEFAULTS
    else:
        names = {value.name for value in graph.input}
        constants = [tensor for tensor in graph.initializer if tensor.name not in names]
        del graph.initializer[:]
        graph.initializer.extend(constants)


def _parts(found: FoundTile, before: FoundTile, origins: Mapping[str, ValueOrigin]) -> Iterator[TileNode | Finding]:
    """Yield a Tile with known shapes; onnxruntime folds by what is known ``before`` it gets them."""
    unsized = next((part for part in _tile(before, origins) if isinstance(part, TileNode)), None)
    is_empty_before = unsized is not None and _is_empty(unsized)
    proto = found.node.proto
    for part in _tile(found, origins):
        if isinstance(part, TileNode):
            part = replace(
                _completed(part, unsized) if unsized else part,
                folded=before.gone.reason if before.gone else "",
                emptied=_is_empty(part) and not is_empty_before,
                inputs=tuple(map(place, proto.input)),
                output=place(*proto.output[:1]),
                place=place_of(proto).pointer,
                quantised=found.around.quantised,
                transposed=found.around.transposed,
            )
        yield part


_Known = TypeVar("_Known", bound=Dimension)


def _completed(part: TileNode, unsized: TileNode) -> TileNode:
    """Return a Tile completed by what is known without the given sizes.

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


def _is_empty(part: TileNode | Finding) -> bool:
    return isinstance(part, TileNode) and 0 in (*(part.shape or ()), *(part.repeats or ()))


def _tile(found: FoundTile, origins_of_sizes: Mapping[str, ValueOrigin]) -> Iterator[TileNode | Finding]:
    pointer, node = found.pointer, found.node
    if node.opset is None or node.opset < 1:
        yield unreadable(
            pointer, f"is a Tile; the model imports opset {node.opset} of onnx's operators, which has none"
        )
        return
    dialect = onnx_tile(node.opset)
    expected = ("input", *dialect.arguments)
    value, *others = node.inputs or [UNKNOWN]
    shape = value.shape and tuple(place(size) if isinstance(size, str) else size for size in value.shape)
    if len(node.inputs) != len(expected) or not all(node.proto.input):
        message = f"inputs: there are {sum(map(bool, node.proto.input))}; {', '.join(expected)} were expected"
        yield TileNode(pointer, dialect, value.data_type, shape, None, message)
        return
    unknown = [other for other in others if other.constant is None]
    origins = next((other.origins or (other.elements_origin,) for other in unknown), ())
    sizes = () if value.is_typed else value.sizes or ("",)  # without sizes, of the whole
    yield replace(
        tile_node(pointer, dialect, value.data_type, shape, [other.argument for other in others]),
        input_origins=tuple(origins_of_sizes.get(str(size), value.sizes_origin) for size in sizes),
        repeats_origins=origins if any(map(str, origins)) else (),
    )
    reasons = [each.unread for each in [*unknown, *[value] * (not value.is_static)]]
    yield from (unreadable(pointer, reason) for reason in dict.fromkeys(filter(None, reasons)))
