"""ONNX models for the readers' tests, made node by node."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import onnx
import onnx.parser
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from dml_tile.back_ends.deployment import Deployment, deployed
from dml_tile.back_ends.placement import ModelNode, PlacedModel, Placement, Reason
from dml_tile.back_ends.placer import place
from dml_tile.directml.targets import DEFAULT_TARGET, Target, TargetLike
from dml_tile.readers.model_names import KnownShapes
from dml_tile.readers.model_tile import TileNode
from dml_tile.readers.onnx.tiles import prepare, read_nodes, scan

FLOAT: Final = TensorProto.FLOAT
INT64: Final = TensorProto.INT64
BOOL: Final = TensorProto.BOOL

NOTHING_FIXED: Final = KnownShapes()

_LITERAL: Final = re.compile(r"(\w+) = (-?\d[\d.]*|true|false|\[[^;<({]*\])")

node = helper.make_node


def tensor(name: str, value: Any, dtype: str = "int64") -> TensorProto:
    return numpy_helper.from_array(np.asarray(value, dtype), name)


def constant(name: str, value: Any, dtype: str = "int64") -> NodeProto:
    return node("Constant", [], [name], value=tensor("", value, dtype))


def computed(text: str) -> list[NodeProto]:
    """Return the nodes of a text in ONNX's syntax, with ``;`` between them: ``[name] y = Neg(x)``."""
    return list(onnx.parser.parse_graph(f"graph () => () {{ {_with_constants(text)} }}").node)


def _with_constants(text: str) -> str:
    """``a = [2, 3]`` becomes a Constant of int64, with a point float32, with true or false bool."""
    return _LITERAL.sub(_constant, text).replace(";", " ")


def _constant(match: re.Match[str]) -> str:
    name, literal = match.groups()
    value = np.array(json.loads(literal))
    kind = {"f": "float", "b": "bool", "i": "int64"}[value.dtype.kind]
    elements = ", ".join(str(element) for element in value.astype(float if kind == "float" else int).flat)
    return f"{name} = Constant<value = {kind}{[*value.shape] or ''} {{{elements}}}>()"


def tile_node(x: str = "x", repeats: str = "r", output: str = "y", name: str = "") -> NodeProto:
    return node("Tile", [x, repeats], [output], name=name)


def typed(name: str, shape: Any = None, element: int = FLOAT) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, element, shape)


def model(
    *nodes: NodeProto | str,
    inputs: Sequence[ValueInfoProto] = (typed("x", [2, 3]),),
    opset: int = 13,
    ir_version: int = 10,
    functions: Sequence[onnx.FunctionProto] = (),
    domains: Mapping[str, int] | None = None,
    **fields: Any,
) -> ModelProto:
    """Return a model of nodes, of which some may be given as ``computed`` takes them."""
    imports = [helper.make_opsetid(domain, version) for domain, version in {"": opset, **(domains or {})}.items()]
    made = [each for part in nodes for each in (computed(part) if isinstance(part, str) else [part])]
    return helper.make_model(
        helper.make_graph(made, "graph", inputs, [helper.make_empty_tensor_value_info("y")], **fields),
        opset_imports=imports,
        ir_version=ir_version,
        functions=functions,
    )


def save(name: str, *nodes: NodeProto, repeats: Any = (1, 2), **fields: Any) -> str:
    """Save a model of constant repeats r and of nodes, by default a Tile called ``widen``; return its name."""
    onnx.save(model(constant("r", repeats), *(nodes or [tile_node(name="widen")]), **fields), name)
    return name


def function(text: str, opset: int = 13) -> onnx.FunctionProto:
    """Return a function of the domain ``own``, as ``computed`` takes its nodes: ``Name (a) => (b) { b = Neg(a) }``."""
    imports = f'<domain: "own", opset_import: ["": {opset}, "own": 1]>'
    return onnx.parser.parse_function(f"{imports} {_with_constants(text)}")


def parsed(graph: str, opset: int) -> ModelProto:
    """Return a model of one graph in the syntax of onnx's parser; there may be ``;`` between its nodes."""
    imports = f'<ir_version: 8, opset_import: ["" : {opset}, "com.microsoft" : 1]>'
    return onnx.parser.parse_model(f"{imports} g {graph.replace(';', ' ')}")


def nodes_of(
    made: ModelProto | bytes,
    fixed: KnownShapes = NOTHING_FIXED,
    folder: Path | None = None,
    deployments: Sequence[Deployment] = (),
) -> list[Any]:
    """Return the TileNodes and Problems of a model, saved in the folder with its external data if there are any."""
    with TemporaryDirectory() as temporary:
        path = (folder or Path(temporary)) / "model.onnx"
        path.write_bytes(made if isinstance(made, bytes) else made.SerializeToString())
        return list(read_nodes(path, fixed, deployments))


def placed_model(made: ModelProto, *targets: TargetLike) -> PlacedModel:
    """Return a model's nodes with their placements at targets."""
    found, *_ = nodes_of(made, deployments=[deployed(Target.parse(target)) for target in targets])
    assert isinstance(found, PlacedModel)
    return found


def tile_in(made: ModelProto, fixed: KnownShapes = NOTHING_FIXED, folder: Path | None = None) -> TileNode:
    """Return the model's only Tile."""
    (found,) = nodes_of(made, fixed, folder)
    assert isinstance(found, TileNode)
    return found


def folded_in(made: ModelProto, fixed: KnownShapes = NOTHING_FIXED) -> dict[str, str]:
    """Return why ONNX Runtime never runs each Tile of a model, by its pointer; empty for one that it runs."""
    placed, *found = nodes_of(made, fixed, deployments=[deployed(DEFAULT_TARGET)])
    gone = {node.pointer: reason.text for node, reason in placed.at(0) if reason.placement is Placement.GONE}
    return {tile.pointer: gone.get(tile.place, "") for tile in found if isinstance(tile, TileNode)}


def places(made: ModelProto) -> list[str]:
    return [found.pointer for found in nodes_of(made)]


def if_text(then: str, name: str = "If_3", output: str = "w") -> str:
    """Return the text of an If on c whose first branch computes t."""
    other = "else_branch = other () => (float[] e) { e = Identity(x) }"
    return f"[{name}] {output} = If(c)<then_branch = then () => (float[] t) {{ {then} }}, {other}>"


def placements(made: ModelProto, target: TargetLike) -> list[tuple[ModelNode, Reason]]:
    """Return the nodes of a model with their placements at a target."""
    return placed(made, target)[1]


def placed(
    made: ModelProto, target: TargetLike, folder: Path | None = None
) -> tuple[list[Reason], list[tuple[ModelNode, Reason]]]:
    """Return what keeps a model from loading at a target, and its nodes with their placements."""
    made, at = deepcopy(made), deployed(Target.parse(target))
    overridable = prepare(made)
    return place(scan(made, Path(folder or "", "model.onnx"), overridable, at.release).nodes, at)[:2]
