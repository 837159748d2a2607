"""Folds nodes: computes the elements of a node's outputs from known elements of its inputs, before a model runs.

Shape and Size   depend on the type of their input alone
moving           each element of an output is an element of an input, known if that is
elementwise      each element of an output is known if all that it is computed from are
computed         folds if its inputs are known as a whole
any other        is not computed: what it costs does not follow from its inputs' sizes, or onnxruntime computes it
                 otherwise, such as Sigmoid, where one gives 1 and the other a float just below it

onnx's reference implementation computes numbers, within bounds. Strings and NaNs are unknown.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from typing import Final

import numpy as np
from onnx import TypeProto, defs, helper
from onnx.reference import ReferenceEvaluator

from dml_tile.readers.onnx.file import MAX_ELEMENTS, subgraphs
from dml_tile.readers.onnx.nodes import OPERATORS, Node
from dml_tile.readers.onnx.origins import UNSIZED
from dml_tile.readers.onnx.values import Array, Mask, Value, agree, dimensions, with_sizes

MAX_FOLDED_NODES: Final = 50_000
"""The most nodes of a model that are computed; each takes the reference implementation about half a millisecond."""

MAX_COST: Final = 2**27
"""The most elements that the computed nodes of a model may read and write together: some seconds."""

MAX_KEPT_ELEMENTS: Final = 2**24
"""The most elements that the computed nodes of a model may have together."""

MAX_COMPUTED_ELEMENTS: Final = 2**10
"""The most elements of an input of an operator that neither moves elements nor is elementwise."""

_DATA: Final[dict[str, tuple[int, ...] | None]] = {
    **dict.fromkeys(("Expand", "Flatten", "Gather", "GatherElements", "GatherND", "Identity", "Reshape"), (0,)),
    **dict.fromkeys(("Slice", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze"), (0,)),
    "Concat": None,
    "Where": (1, 2),
}
"""Operators that move elements, with the inputs that they move, None for all; other inputs must be wholly known."""

_ELEMENTWISE: Final = OPERATORS["elementwise"]
"""Operators that compute each element of the output from one element of each (broadcast) input."""

_ROUNDING: Final = frozenset({"Cast", "CastLike", "DynamicQuantizeLinear", "QuantizeLinear"})
"""Operators that make integers of floats."""

_COMPUTED: Final = _ELEMENTWISE.union(_DATA, OPERATORS["computed"])
"""The operators that are computed; ``_COSTS`` has those that may take longer than their inputs and outputs say."""

_COSTS: Final[dict[str, Callable[[Node, Sequence[Array]], float]]] = {
    "GatherND": lambda node, inputs: 16 * inputs[1].size,  # in Python, slice by slice
    "MatMul": lambda node, inputs: math.prod(each.size for each in inputs),
    "Range": lambda node, inputs: abs((inputs[1].item() - inputs[0].item()) / inputs[2].item()),
    "Split": lambda node, inputs: node.attributes["num_outputs"].i,  # which may be more than it has
    "Tile": lambda node, inputs: inputs[0].size * math.prod(max(each, 1) for each in inputs[1].ravel().tolist()),
}


def is_computed(node: Node) -> bool:
    """Return True if the operator may be computed."""
    return node.type in _COMPUTED


def is_deterministic(node: Node) -> bool:
    """Return True if the same inputs always give the same outputs, and no subgraph computes them."""
    is_known = not node.domain and node.opset is not None and node.type not in OPERATORS["random"]
    return is_known and next(subgraphs(node.proto), None) is None


class ConstantFolding:
    """Folds the nodes of one model, as many as its bounds allow."""

    def __init__(self) -> None:
        self._nodes_left = MAX_FOLDED_NODES
        self._cost_left = float(MAX_COST)
        self._elements_left = MAX_KEPT_ELEMENTS

    def folded(self, node: Node, types: Mapping[str, TypeProto]) -> Mapping[str, Value]:
        """Return the outputs with known elements; none if no element is known, or there are too many.

        ``types`` are inferred for the outputs.
        """
        if not is_deterministic(node):
            return {}
        if node.type in ("Shape", "Size"):
            return {name: _measured(node, types[name]) for name in node.proto.output if name in types and node.inputs}
        values = self._computed(node.seeing(_with_elements), types) if is_computed(node) else {}
        self._elements_left -= sum(value.elements.size for value in values.values() if value.elements is not None)
        return values if self._elements_left >= 0 else {}

    def _computed(self, node: Node, types: Mapping[str, TypeProto]) -> Mapping[str, Value]:
        # unknown elements become 1, a value that most operators accept
        if any(value.held is None for value in node.given.values()):
            return {}
        given = ((name, value.elements) for name, value in node.given.items())
        elements = {name: np.ma.filled(array, 1) for name, array in given if array is not None}
        cost = _cost(node, elements, types) if len(elements) == len(node.given) else math.inf
        if min(self._nodes_left, self._elements_left) <= 0 or not cost <= self._cost_left:  # NaN is not within it
            return {}
        self._nodes_left, self._cost_left = self._nodes_left - 1, self._cost_left - cost
        is_known = all(value.constant is not None for value in node.given.values())
        masks = {} if is_known else _known_elements(node)
        found = {}
        for name, array in (_evaluated(node, elements) if is_known or masks else {}).items():
            known = np.ones(array.shape, bool) if is_known else masks[name]
            if known.shape == array.shape and (is_known or known.any()) and _is_of(types.get(name), array):
                kept = array if known.all() else np.ma.masked_array(array, ~known)
                found[name] = Value(with_sizes(types[name], array.shape), kept)
        return found


def _cost(node: Node, inputs: Mapping[str, Array], types: Mapping[str, TypeProto]) -> float:
    """Return the elements that computing a node reads and writes; infinite for more than a node may, and strings."""
    outputs = [Value(types.get(name)) for name in node.proto.output if name]
    arrays = [inputs[name] for name in node.proto.input if name]
    counts = [0 if node.type in UNSIZED else each.count for each in outputs]
    most = MAX_ELEMENTS if node.type in _DATA or node.type in _ELEMENTWISE else MAX_COMPUTED_ELEMENTS
    is_of_strings = any(each.dtype.kind in "OSU" for each in arrays) or (
        counts != [1] and any(each.data_type == "string" for each in outputs)
    )
    sizes, written = [each.size for each in arrays], [each for each in counts if each is not None]
    is_small = max(sizes, default=0) <= most and max(written, default=0) <= MAX_ELEMENTS
    if not is_small or is_of_strings or len(written) < len(counts):
        return math.inf
    try:
        more = _COSTS[node.type](node, arrays) if node.type in _COSTS else 0
    except (ArithmeticError, IndexError, ValueError):  # of wrong inputs
        return math.inf
    return sum(sizes) + (len(sizes) + 1) * max(written, default=0) + more


def _with_elements(value: Value) -> Value:
    """Return the value; a shape, or indices, without known elements gets an array of unknown elements."""
    if value.type is None or value.held is not None or not value.is_whole or not value.is_static:
        return value
    shape = tuple(size for size in value.shape or () if isinstance(size, int))
    if math.prod(size or 1 for size in shape) > MAX_COMPUTED_ELEMENTS:  # NumPy takes no large size beside a 0
        return value
    dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
    return replace(value, held=np.ma.masked_array(np.ones(shape, dtype), mask=True))


def _measured(node: Node, type_: TypeProto) -> Value:
    """Return the result of a Shape or Size, as far as the sizes are known."""
    shape = node.inputs[0].shape
    if shape is None:
        return Value(type_)
    known = np.array([isinstance(size, int) for size in shape], bool)
    sizes = [size if isinstance(size, int) else 1 for size in shape]
    if node.type == "Size":
        total = math.prod(sizes)
        return Value(type_, np.array(total)) if known.all() and total < 2**63 else Value(type_)
    part = np.ma.masked_array(np.array(sizes, np.int64), ~known)[node.bounds]
    return Value(type_, part if np.ma.is_masked(part) else part.data)


def _known_elements(node: Node) -> Mapping[str, Mask]:
    """Return the masks of the outputs' known elements if the operator moves elements, or is elementwise; else none."""
    if node.type in _DATA:
        moved = _DATA[node.type] or range(len(node.inputs))
        inputs = enumerate(zip(node.proto.input, node.inputs, strict=True))
        masks = [(name, value.mask if i in moved else value.constant) for i, (name, value) in inputs if name]
        known = {name: mask for name, mask in masks if mask is not None}
        found = {} if any(mask is None for _, mask in masks) else _evaluated(node, known)
        if found:
            return found
    if node.type not in _ELEMENTWISE or not node.proto.output:
        return {}
    try:
        mask = np.logical_and.reduce(np.broadcast_arrays(*(value.mask for value in node.given.values())))
    except ValueError:  # of the shapes
        return {}
    return {node.proto.output[0]: mask}


def _is_of(type_: TypeProto | None, array: Array) -> bool:
    """Return True unless an array contradicts the type that was inferred for it."""
    try:
        element = helper.np_dtype_to_tensor_dtype(array.dtype)
    except (KeyError, ValueError):
        return False
    return type_ is not None and type_.tensor_type.elem_type == element and agree(dimensions(type_), array.shape)


def _evaluated(node: Node, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
    """Return the outputs by name; none if the reference implementation fails, overflows, or returns no tensors."""
    plain = deepcopy(node.proto)
    plain.domain = ""
    opset = min(node.opset or 1, defs.onnx_opset_version())
    if node.type == "Scatter":  # the reference implementation has another name
        plain.op_type, opset = "ScatterElements", 11
    # integers raise, floats may become infinite
    is_float = node.type not in _ROUNDING and all(np.issubdtype(each.dtype, np.floating) for each in inputs.values())
    errors = np.errstate(all="ignore") if is_float else np.errstate(all="raise", under="ignore")
    sources, results = (
        [helper.make_empty_tensor_value_info(name) for name in names if name] for names in (inputs, plain.output)
    )
    try:
        with errors, warnings.catch_warnings(action="ignore"):
            graph = helper.make_graph([plain], "one node", sources, results)
            given = ReferenceEvaluator(graph, opsets={"": opset}).run(None, dict(inputs))
    except Exception:  # of any class: operators assume sound inputs
        return {}
    outputs = zip(filter(None, plain.output), given, strict=True)
    arrays = {name: np.asarray(array) for name, array in outputs if isinstance(array, np.ndarray | np.generic)}
    return {name: array for name, array in arrays.items() if array.dtype.kind != "f" or not np.isnan(array).any()}
