"""The support queries of ONNX Runtime's DirectML provider: nodes that it refuses although it registers their operator.

Each query looks at a node's attributes, counts and types, never at shapes, and returns what it refuses, or nothing.

Source: microsoft/onnxruntime, onnxruntime/core/providers/dml/DmlExecutionProvider/src/Operators/: the functions Query*,
and OperatorAuthorHelper/OperatorHelper.cpp
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from dml_tile.back_ends.kernels import Version


class QueriedNode(Protocol):
    """A node's attributes, and the types of its inputs and outputs: None if left out, "" if unknown."""

    @property
    def attributes(self) -> Mapping[str, Any]: ...
    @property
    def input_types(self) -> tuple[str | None, ...]: ...
    @property
    def output_types(self) -> tuple[str | None, ...]: ...


QUERIES: Final[dict[str, Callable[[QueriedNode, Version], str]]] = {}
"""The queries by the names that registrations.json gives them."""


def _query(name: str) -> Callable[[Callable[[QueriedNode, Version], str]], Callable[[QueriedNode, Version], str]]:
    def add(query: Callable[[QueriedNode, Version], str]) -> Callable[[QueriedNode, Version], str]:
        QUERIES[name] = query
        return query

    return add


def _set(node: QueriedNode, *names: str) -> str:
    """Return the first of these attributes that is not 0."""
    return next((f"{name} is {node.attributes[name]}" for name in names if node.attributes.get(name)), "")


def _is_there(types: tuple[str | None, ...], i: int) -> bool:
    return i < len(types) and types[i] is not None


@_query("MaxPool")
def _max_pool(node: QueriedNode, release: Version) -> str:
    return _set(node, "storage_order")


@_query("Slice")
def _slice(node: QueriedNode, release: Version) -> str:
    return f"there are {len(node.input_types)} inputs; at most 5 are taken" if len(node.input_types) > 5 else ""


@_query("Resize")
def _resize(node: QueriedNode, release: Version) -> str:
    if node.attributes.get("mode") == "cubic":
        return "mode is cubic"
    return _set(node, "exclude_outside", "extrapolation_value")


@_query("Scatter")
def _scatter(node: QueriedNode, release: Version) -> str:
    reduction = node.attributes.get("reduction", "none")
    return "" if reduction == "none" else f"reduction is {reduction}"


@_query("RecurrentNeuralNetwork")
def _recurrent(node: QueriedNode, release: Version) -> str:
    return _set(node, "layout")


@_query("BatchNormalization")
def _batch_normalization(node: QueriedNode, release: Version) -> str:
    if refused := _set(node, "training_mode"):
        return refused
    if len(node.input_types) < 5:
        return f"there are {len(node.input_types)} inputs; 5 are needed"
    types = dict.fromkeys(type_ for type_ in node.input_types[:5] if type_)
    return f"its inputs are of {' and '.join(types)}; one type is needed" if len(types) > 1 else ""


@_query("Pad")
def _pad(node: QueriedNode, release: Version) -> str:
    pads = node.attributes.get("pads", ())
    return next((f"pads[{i}] is {pad}" for i, pad in enumerate(pads) if pad < 0), "")


@_query("LayerNormalization")
def _layer_normalization(node: QueriedNode, release: Version) -> str:
    return f"there are {len(node.output_types)} outputs; 1 is taken" if len(node.output_types) > 1 else ""


@_query("SkipLayerNormalization")
def _skip_layer_normalization(node: QueriedNode, release: Version) -> str:
    return next((f"output {i} is asked for" for i in (1, 2) if _is_there(node.output_types, i)), "")


@_query("QLinearSigmoid")
def _quantised_sigmoid(node: QueriedNode, release: Version) -> str:
    return f"there are {len(node.input_types)} inputs; 5 are needed" if len(node.input_types) < 5 else ""


@_query("Attention")
def _attention(node: QueriedNode, release: Version) -> str:
    if release < (1, 15):
        if len(node.input_types) > 4:
            return f"there are {len(node.input_types)} inputs; at most 4 are taken"
        if len(node.output_types) > 1:
            return f"there are {len(node.output_types)} outputs; 1 is taken"
        return "qkv_hidden_sizes is given" if "qkv_hidden_sizes" in node.attributes else _set(node, "unidirectional")
    inputs = {4: "past", 6: "past_sequence_length"}
    if given := next((name for i, name in inputs.items() if _is_there(node.input_types, i)), ""):
        return f"{given} is given"
    if _is_there(node.output_types, 1):
        return "present is asked for"
    return _set(node, "unidirectional", "do_rotary", "past_present_share_buffer")


@_query("QAttention")
def _quantised_attention(node: QueriedNode, release: Version) -> str:
    if node.attributes.get("unidirectional") and _is_there(node.input_types, 8):
        return "unidirectional is 1, and past is given"
    return _set(node, "do_rotary", "past_present_share_buffer")


@_query("MatMulNBits")
def _matmul_n_bits(node: QueriedNode, release: Version) -> str:
    columns, block, bits = (node.attributes.get(name, 0) for name in ("K", "block_size", "bits"))
    if bits not in (0, 4, 8):
        return f"bits is {bits}; 4 and 8 are taken"
    return f"K is {columns}, no multiple of block_size {block}" if block and columns % block else ""


@dataclass(frozen=True, slots=True)
class _Product:
    """Equations of two inputs, their labels numbered in order, that are recognised from a release on."""

    since: Version
    equations: frozenset[str]


_PRODUCTS: Final = (
    _Product(
        (1, 9),
        frozenset(
            # plain, the first transposed, the second transposed; of 2 to 4 labels
            {
                *("ab,bc->ac", "abc,acd->abd", "abcd,abde->abce"),
                *("ab,ac->bc", "abc,abd->acd", "abcd,abce->abde"),
                *("ab,cb->ac", "abc,adc->abd", "abcd,abed->abce", "a,a->"),
            }
        ),
    ),
    _Product((1, 14), frozenset({"abcd,adce->abce", "abcd,abce->adce", "abcd,aecd->abce"})),
    _Product((1, 16), frozenset({"a,b->ab"})),
)
_ANY_EQUATION: Final = (1, 19)
"""The release that takes any equation of one or two inputs."""


@_query("EinSum")
def _einsum(node: QueriedNode, release: Version) -> str:
    """Raise ValueError for an unknown character."""
    equation = re.sub(r"\s", "", str(node.attributes.get("equation", "")))
    if unknown := re.sub(r"[A-Za-z,.]|->", "", equation):
        raise ValueError(f"equation is {equation}; {unknown[0]!r} is no label")
    given, arrow, result = equation.partition("->")
    if "." in equation:
        return f"equation is {equation}, with an ellipsis"
    inputs = given.split(",")
    if len(inputs) > 2:
        return f"equation is {equation}, of {len(inputs)} inputs"
    if not arrow:
        result = "".join(sorted(label for label, count in Counter("".join(inputs)).items() if count == 1))
    return "" if release >= _ANY_EQUATION or _is_recognised(inputs, result, release) else f"equation is {equation}"


def _is_recognised(inputs: list[str], result: str, release: Version) -> bool:
    if len(inputs) == 1:
        first = inputs[0]
        is_of_two = len(first) == len({*first}) == 2
        return sorted(first) == sorted(result) or not result or (is_of_two and result in (first[0], first[1]))
    if inputs[0] == inputs[1] == result:
        return True
    numbers: dict[str, str] = {}
    text = "".join(_numbered(f"{inputs[0]},{inputs[1]}->{result}", numbers))
    return any(text in product.equations for product in _PRODUCTS if product.since <= release)


def _numbered(equation: str, numbers: dict[str, str]) -> Iterator[str]:
    """Yield the equation with the labels a, b, c, … in the order of their first appearance."""
    for character in equation:
        yield numbers.setdefault(character, chr(ord("a") + len(numbers))) if character.isalpha() else character
