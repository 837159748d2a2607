"""The support queries of ONNX Runtime's DirectML provider: nodes that it refuses although it registers their operator.

Each query looks at a node's attributes, counts and types, never at shapes, and returns what it refuses, or nothing.

Source: microsoft/onnxruntime, onnxruntime/core/providers/dml/DmlExecutionProvider/src/Operators/: the functions Query*,
and OperatorAuthorHelper/OperatorHelper.cpp
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from string import ascii_letters
from typing import TYPE_CHECKING, Final

from dml_tile.back_ends.kernels import Version, recognised_equations, version_of
from dml_tile.text import abridged

if TYPE_CHECKING:
    from dml_tile.back_ends.placement import Edge, ModelNode


def _set(node: ModelNode, *names: str) -> str:
    """Return the first of these attributes that is not 0."""
    return next((f"{name} is {node.attributes[name]}" for name in names if node.attributes.get(name)), "")


def _given(values: Sequence[Edge | None], names: Mapping[int, str], state: str = "is given") -> str:
    """Return the first of these inputs or outputs, named by their places, that the node has."""
    return next((f"{name} {state}" for i, name in names.items() if i < len(values) and values[i]), "")


def _beyond(values: Sequence[Edge | None], kind: str, most: int) -> str:
    """Return the number of inputs or outputs if there are too many of them."""
    limit = f"at most {most} are" if most > 1 else "1 is"
    return f"there are {len(values)} {kind}; {limit} taken" if len(values) > most else ""


def _batch_normalization(node: ModelNode, release: Version) -> str:
    if refused := _set(node, "training_mode"):
        return refused
    types = dict.fromkeys(edge.type for edge in node.inputs[:5] if edge and edge.type)
    return f"its inputs are of {' and '.join(types)}; one type is needed" if len(types) > 1 else ""


def _attention(node: ModelNode, release: Version) -> str:
    if release >= (1, 15):
        refused = _given(node.inputs, {4: "past", 6: "past_sequence_length"})
        refused = refused or _given(node.outputs, {1: "present"}, "is asked for")
        return refused or _set(node, "unidirectional", "do_rotary", "past_present_share_buffer")
    refused = _beyond(node.inputs, "inputs", 4) or _beyond(node.outputs, "outputs", 1)
    has_sizes = "qkv_hidden_sizes" in node.attributes
    return refused or ("qkv_hidden_sizes is given" if has_sizes else _set(node, "unidirectional"))


def _quantised_attention(node: ModelNode, release: Version) -> str:
    past = node.attributes.get("unidirectional") and _given(node.inputs, {8: "past"})
    return f"unidirectional is 1, and {past}" if past else _set(node, "do_rotary", "past_present_share_buffer")


def _matmul_n_bits(node: ModelNode, release: Version) -> str:
    columns, block, bits = (node.attributes.get(name, 0) for name in ("K", "block_size", "bits"))
    if bits not in (0, 4, 8):
        return f"bits is {bits}; 4 and 8 are taken"
    return f"K is {columns}, no multiple of block_size {block}" if block and columns % block else ""


def _pad(node: ModelNode, release: Version) -> str:
    return next((f"pads[{i}] is {pad}" for i, pad in enumerate(node.attributes.get("pads", ())) if pad < 0), "")


def _resize(node: ModelNode, release: Version) -> str:
    is_cubic = node.attributes.get("mode") == "cubic"
    return "mode is cubic" if is_cubic else _set(node, "exclude_outside", "extrapolation_value")


def _scatter(node: ModelNode, release: Version) -> str:
    reduction = node.attributes.get("reduction", "none")
    return "" if reduction == "none" else f"reduction is {abridged(reduction)}"


ANY_EQUATION: Final = (1, 19)
"""The release that takes any equation of one or two inputs."""


def _einsum(node: ModelNode, release: Version) -> str:
    """Raise ValueError for an unknown character."""
    equation = re.sub(r"\s", "", str(node.attributes.get("equation", "")))
    refused = f"equation is {abridged(equation)}"
    if unknown := re.sub(r"[A-Za-z,.]|->", "", equation):
        raise ValueError(f"{refused}; {unknown[0]!r} is no label")
    given, arrow, result = equation.partition("->")
    if "." in equation:
        return f"{refused}, with an ellipsis"
    inputs = given.split(",")
    if len(inputs) > 2:
        return f"{refused}, of {len(inputs)} inputs"
    if not arrow:
        result = "".join(sorted(label for label, count in Counter("".join(inputs)).items() if count == 1))
    return "" if release >= ANY_EQUATION or _is_recognised(inputs, result, release) else refused


def _is_recognised(inputs: list[str], result: str, release: Version) -> bool:
    if len(inputs) == 1:
        first = inputs[0]
        is_of_two = len(first) == len({*first}) == 2
        return sorted(first) == sorted(result) or not result or (is_of_two and result in (first[0], first[1]))
    if inputs[0] == inputs[1] == result:
        return True
    equation = f"{inputs[0]},{inputs[1]}->{result}"
    labels = "".join(dict.fromkeys(filter(str.isalpha, equation)))
    since = recognised_equations().get(equation.translate(str.maketrans(labels, ascii_letters[: len(labels)])))
    return since is not None and version_of(since) <= release


QUERIES: Final[dict[str, Callable[[ModelNode, Version], str]]] = {
    "Attention": _attention,
    "BatchNormalization": _batch_normalization,
    "EinSum": _einsum,
    "LayerNormalization": lambda node, release: _beyond(node.outputs, "outputs", 1),
    "MatMulNBits": _matmul_n_bits,
    "MaxPool": lambda node, release: _set(node, "storage_order"),
    "Pad": _pad,
    "QAttention": _quantised_attention,
    "QLinearSigmoid": lambda node, release: f"it has {len(node.inputs)} inputs, not 5" if len(node.inputs) < 5 else "",
    "RecurrentNeuralNetwork": lambda node, release: _set(node, "layout"),
    "Resize": _resize,
    "Scatter": _scatter,
    "SkipLayerNormalization": lambda node, release: _given(
        node.outputs, {1: "output 1", 2: "output 2"}, "is asked for"
    ),
}
"""The queries by the names that registrations.json gives them."""
