"""LSTM, GRU and RNN."""

from __future__ import annotations

from typing import Any, Final

from dml_tile.back_ends.descriptions.created import Descriptions, operator
from dml_tile.back_ends.descriptions.node import KernelNode, Table, table_of
from dml_tile.back_ends.descriptions.refusals import require
from dml_tile.back_ends.descriptions.rows import activation

_ACTIVATIONS: Final = {"LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",)}
"""The activations of one direction that a node has by default."""

_DIRECTIONS: Final = {"forward": "FORWARD", "reverse": "BACKWARD", "bidirectional": "BIDIRECTIONAL"}


def _recurrent(node: KernelNode) -> Descriptions:
    """Describe a kernel of its own, never a part of a graph, whose activations have their defaults."""
    node = node._replace(is_in_graph=False)
    direction, clip = node.attribute("direction", "forward"), node.attributes.get("clip")
    defaults = _ACTIVATIONS[node.operator] * (1 + (direction == "bidirectional"))
    names = (node.attribute("activations") or defaults)[: len(defaults)]
    fused = [activation(name, {}) for name in names]
    require(None not in fused and len(fused) == len(defaults), f"the activations {', '.join(names)}")
    inputs = {"InputTensor": 0, "WeightTensor": 1, "RecurrenceTensor": 2, "BiasTensor": 3, "HiddenInitTensor": 5}
    fields: dict[str, Any] = {name: node.optional(i) for name, i in inputs.items()}
    if node.has(4):
        fields["SequenceLengthsTensor"] = node.input(4).unsigned
    fields["OutputSequenceTensor"], fields["OutputSingleTensor"] = node.optional_output(0), node.optional_output(1)
    fields |= {"ActivationDescs": fused, "Direction": _DIRECTIONS[direction]}
    if node.operator == "GRU":
        fields["LinearBeforeReset"] = bool(node.attribute("linear_before_reset", 0))
    if node.operator == "LSTM":
        fields |= {"CellMemInitTensor": node.optional(6), "PeepholeTensor": node.optional(7)}
        fields |= {"OutputCellSingleTensor": node.optional_output(2), "ClipThreshold": clip or 0.0}
        fields |= {"UseClipThreshold": clip is not None, "CoupleInputForget": bool(node.attribute("input_forget", 0))}
    return [operator(node.operator, **fields)]


RECURRENT: Final[Table] = table_of({"LSTM GRU RNN": _recurrent})
