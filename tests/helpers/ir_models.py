"""Models for OpenVINO's readers: IRs that OpenVINO saves, or that are written by hand."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, Final

import numpy as np

from tests.helpers.packages import needed
from tests.helpers.paths import ROOT

ov = needed("openvino")
op = needed("openvino.opset13")

MODELS: Final = ROOT / "tests" / "data" / "models"


def parameter(name: str, shape: Any, data_type: str = "f32") -> Any:
    node = op.parameter(ov.PartialShape(shape), getattr(ov.Type, data_type), name=name)
    node.output(0).set_names({f"{name}_tensor"})
    return node


def tile_operation(data: Any, repeats: Any, name: str = "tile", repeats_type: Any = None) -> Any:
    """Return a Tile; repeats are a list, or a node that computes them."""
    if isinstance(repeats, list):
        repeats = op.constant(np.array(repeats, np.int64), dtype=repeats_type)
    node = op.tile(data, repeats)
    node.set_friendly_name(name)
    return node


def save(path: Path, *results: Any, inputs: list[Any]) -> Path:
    """Save an IR there, its weights beside it; return its path."""
    outputs = [result.output(0) if isinstance(result, ov.Node) else result for result in results]
    ov.save_model(ov.Model(outputs, inputs), path, compress_to_fp16=False)
    return path


def tile_ir(path: Path, repeats: Any = (1, 2), data_type: str = "f32", **options: Any) -> Path:
    """Save the IR of a Tile of an input ``x`` of shape (2, 3)."""
    x = parameter("x", [2, 3], data_type)
    return save(path, tile_operation(x, list(repeats), **options), inputs=[x])


def burn_tile(path: Path, *changes: tuple[str, str], weights: bytes | None = None) -> Path:
    """Save burn's model with parts of its text replaced, and other weights."""
    text = (MODELS / "burn_tile.ir.xml").read_text()
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)
    path.with_suffix(".bin").write_bytes((MODELS / "burn_tile.ir.bin").read_bytes() if weights is None else weights)
    return path


_PORT: Final = '<port id="{}" precision="FP32"><dim>2</dim></port>'
_PARAMETERS: Final = (
    '<layer id="0" name="x" type="Parameter" version="opset1"><data shape="2" element_type="f32"/>'
    f"<output>{_PORT.format(0)}</output></layer>"
    '<layer id="3" name="c" type="Parameter" version="opset1"><data shape="" element_type="boolean"/>'
    '<output><port id="0" precision="BOOL"/></output></layer>'
)
_RESULT: Final = f'<layer id="2" name="r" type="Result" version="opset1"><input>{_PORT.format(0)}</input></layer>'
_IDENTITY: Final = (
    f"<layers>{_PARAMETERS}{_RESULT}</layers>"
    '<edges><edge from-layer="0" from-port="0" to-layer="2" to-port="0"/></edges>'
)
_PORT_MAP: Final = (
    '<input external_port_id="1" internal_layer_id="0"/><input external_port_id="0" internal_layer_id="3"/>'
    '<output external_port_id="2" internal_layer_id="2"/>'
)
_IF: Final = (
    '<layer id="1" name="if" type="If" version="opset8">'
    f"<then_port_map>{_PORT_MAP}</then_port_map><else_port_map>{_PORT_MAP}</else_port_map>"
    f'<input><port id="0" precision="BOOL"/>{_PORT.format(1)}</input><output>{_PORT.format(2)}</output><then_body>'
)
_AROUND: Final = (
    f"</then_body><else_body>{_IDENTITY}</else_body></layer>{_RESULT}</layers><edges>"
    '<edge from-layer="3" from-port="0" to-layer="1" to-port="0"/>'
    '<edge from-layer="0" from-port="0" to-layer="1" to-port="1"/>'
    '<edge from-layer="1" from-port="2" to-layer="2" to-port="0"/></edges>'
)


def nested_ifs(path: Path, depth: int) -> Path:
    """Save an IR of as many Ifs, each in the one before."""
    beginning = f"<layers>{_PARAMETERS}{_IF}" * depth
    path.write_text(f'<?xml version="1.0"?><net name="n" version="11">{beginning}{_IDENTITY}{_AROUND * depth}</net>')
    return path


def many_repeats(path: Path, count: int) -> Path:
    """Save an IR whose repeats are computed, and as many as its weights say."""
    x = parameter("x", [-1])
    save(path, tile_operation(x, op.broadcast(op.constant(np.array(7)), op.constant(np.array([1000])))), inputs=[x])
    path.write_text(path.read_text().replace("<dim>1000</dim>", f"<dim>{count}</dim>"))
    weights = path.with_suffix(".bin")
    weights.write_bytes(weights.read_bytes().replace(struct.pack("<q", 1000), struct.pack("<q", count)))
    return path
