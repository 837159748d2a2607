"""ONNX models for the readers' tests, made node by node."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import numpy as np
import onnx
import onnx.parser
from onnx import GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from dml_tile.errors import Problem
from dml_tile.readers.model_tile import KnownShapes, TileNode
from dml_tile.readers.onnx.tiles import read_nodes

FLOAT: Final = TensorProto.FLOAT
INT64: Final = TensorProto.INT64
BOOL: Final = TensorProto.BOOL

NOTHING_FIXED: Final = KnownShapes()

node = helper.make_node


def tensor(name: str, value: Any, dtype: str = "int64") -> TensorProto:
    return numpy_helper.from_array(np.asarray(value, dtype), name)


def constant(name: str, value: Any, dtype: str = "int64") -> NodeProto:
    return node("Constant", [], [name], value=tensor("", value, dtype))


def computed(text: str) -> list[NodeProto]:
    """Return the nodes of lines, or of parts between ``;``, in ONNX's textual syntax: ``[name] y = Neg(x)``.

    ``a = [2, 3]`` is a Constant of int64, with a point float32, with true or false bool.
    """
    return [_computed(*line.partition(" = ")) for line in map(str.strip, re.split("[;\\n]", text)) if line]


def _computed(name: str, _: str, value: str) -> NodeProto:
    if not re.fullmatch(r"[-\[\]\d., ]+|true|false|\[(true|false|, )+\]", value):
        return onnx.parser.parse_node(f"{name} = {value}")
    dtype = "float32" if "." in value else "bool" if "e" in value else "int64"
    return constant(name, json.loads(value), dtype)


def tile_node(x: str = "x", repeats: str = "r", output: str = "y", name: str = "") -> NodeProto:
    return node("Tile", [x, repeats], [output], name=name)


def typed(name: str, shape: Any = None, element: int = FLOAT) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, element, shape)


def graph(
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto] = (),
    outputs: Sequence[ValueInfoProto] = (),
    **fields: Any,
) -> GraphProto:
    return helper.make_graph(nodes, "graph", inputs, outputs, **fields)


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
        graph(made, inputs, [typed("y")], **fields), opset_imports=imports, ir_version=ir_version, functions=functions
    )


def function(
    name: str, inputs: Sequence[str], outputs: Sequence[str], *nodes: NodeProto, opset: int = 13, **fields: Any
) -> onnx.FunctionProto:
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("own", 1)]
    return helper.make_function("own", name, inputs, outputs, nodes, imports, **fields)


def call(name: str, inputs: Sequence[str], outputs: Sequence[str], called: str = "", **attributes: Any) -> NodeProto:
    return node(name, inputs, outputs, name=called, domain="own", **attributes)


def nodes_of(
    made: ModelProto | bytes, known_shapes: KnownShapes = NOTHING_FIXED, folder: Path | None = None
) -> list[TileNode | Problem]:
    """Return what the reader finds in a model, saved in the folder with its external data if there are any."""
    with TemporaryDirectory() as temporary:
        path = (folder or Path(temporary)) / "model.onnx"
        path.write_bytes(made if isinstance(made, bytes) else made.SerializeToString())
        return list(read_nodes(path, known_shapes))


def tile_in(made: ModelProto, known_shapes: KnownShapes = NOTHING_FIXED, folder: Path | None = None) -> TileNode:
    """Return the model's only Tile."""
    (found,) = nodes_of(made, known_shapes, folder)
    assert isinstance(found, TileNode)
    return found


def places(made: ModelProto) -> list[str]:
    return [found.pointer for found in nodes_of(made)]


def if_node(then: NodeProto, *nodes: NodeProto, name: str = "If_3") -> NodeProto:
    """An If on c that does the given in its first branch."""
    other = graph([node("Identity", ["x"], ["e"])], (), [typed("e")])
    branch = graph([*nodes, then], (), [typed(then.output[0])])
    return node("If", ["c"], ["w"], name=name, then_branch=branch, else_branch=other)
