"""The known parts of a value before a model runs: its type and shape, and its elements if they are few."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from onnx import NodeProto, TensorProto, TensorShapeProto, TypeProto, helper

from dml_tile.readers.model_tile import MAX_DIMENSIONS, Dimension, ValueOrigin, ValueSource
from dml_tile.readers.onnx.functions import MICROSOFT, OnnxOperator, place

Array = NDArray[Any]
Mask = NDArray[np.bool_]

_NAMES: Final = {
    number: "string" if number == TensorProto.STRING else helper.tensor_dtype_to_np_dtype(number).name
    for number in TensorProto.DataType.values()
    if number != TensorProto.UNDEFINED
}

_WHOLE: Final = frozenset({TensorProto.BOOL, TensorProto.INT32, TensorProto.INT64})
"""The types of shapes, indices and conditions."""


Origins: TypeAlias = Mapping[str, ValueOrigin]

_NO_ORIGIN: Final = ValueOrigin()


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor: its type, None if unknown; its elements, None if there are many or no element is known.

    ``known`` is True for each known element, and None if all are known; unknown elements are 1. ``is_folded`` says that
    onnxruntime, too, has the value as a constant before it runs, and ``early_type`` is the type that it has by then:
    from declared types and constants, not from single elements. ``unread`` says why external data are missing, if more
    would be known with them. The origins say what computes the unknown elements, and the unknown type or sizes;
    ``origins`` what computes each element of a vector, if they differ.
    """

    type: TypeProto | None = None
    elements: Array | None = None
    known: Mask | None = None
    is_folded: bool = False
    early_type: TypeProto | None = None
    unread: str = ""
    elements_origin: ValueOrigin = _NO_ORIGIN
    sizes_origin: ValueOrigin = _NO_ORIGIN
    origins: tuple[ValueOrigin, ...] = ()

    @property
    def mask(self) -> Mask:
        """The mask of the known elements; the value has elements."""
        assert self.elements is not None
        return np.ones(self.elements.shape, bool) if self.known is None else self.known

    @property
    def argument(self) -> Array | None:
        """The elements, masked if unknown; None if there are none."""
        if self.elements is None or self.known is None:
            return self.elements
        masked: Array = np.ma.masked_array(self.elements, ~self.known)
        return masked

    @property
    def constant(self) -> Array | None:
        """The elements, if all are known."""
        return self.elements if self.known is None or self.known.all() else None

    @property
    def shape(self) -> tuple[Dimension, ...] | None:
        """The sizes, None if not even the rank is known; a size with a name that onnx made up is None too."""
        sizes = None if self.type is None else dimensions(self.type)
        return sizes and tuple(None if is_made_up(size) else size for size in sizes)

    @property
    def is_static(self) -> bool:
        """True if each size is known."""
        return self.shape is not None and all(isinstance(size, int) for size in self.shape)

    @property
    def is_typed(self) -> bool:
        """True if the type and each size are known."""
        return self.data_type is not None and self.is_static

    @property
    def is_whole(self) -> bool:
        """True if the type is one of shapes, indices and conditions."""
        return self.type is not None and self.type.tensor_type.elem_type in _WHOLE

    @property
    def data_type(self) -> str | None:
        """ONNX's name of the type in NumPy's spelling."""
        return None if self.type is None else _NAMES.get(self.type.tensor_type.elem_type)


def dimensions(type_: TypeProto) -> tuple[Dimension, ...] | None:
    """Return the sizes of a tensor; None for a size that is negative or has no name."""
    tensor = type_.tensor_type
    return tuple(map(_dimension, tensor.shape.dim)) if tensor.HasField("shape") else None


def is_made_up(size: Dimension) -> bool:
    """Return True for a name that onnx's inference gave an unknown size."""
    return isinstance(size, str) and size.startswith("unk__")


def merged(inferred: TypeProto | None, declared: TypeProto | None) -> TypeProto | None:
    """Return the type by two sources; if they disagree, the first is right."""
    if inferred is None or declared is None:
        return inferred or declared
    ours, others = dimensions(inferred), dimensions(declared)
    if inferred.tensor_type.elem_type != declared.tensor_type.elem_type or others is None:
        return inferred
    if ours is None:
        return declared
    if len(ours) != len(others):
        return inferred
    dims = [_either(our, other) for our, other in zip(ours, others, strict=True)]
    return helper.make_tensor_type_proto(inferred.tensor_type.elem_type, dims)


def common(first: TypeProto | None, second: TypeProto | None) -> TypeProto | None:
    """Return the type of a value that is of either type; None if they have nothing in common."""
    if first is None or second is None or first.tensor_type.elem_type != second.tensor_type.elem_type:
        return None
    ours, others = dimensions(first), dimensions(second)
    if ours is None or others is None or len(ours) != len(others):
        return helper.make_tensor_type_proto(first.tensor_type.elem_type, None)
    dims = [our if our == other else None for our, other in zip(ours, others, strict=True)]
    return helper.make_tensor_type_proto(first.tensor_type.elem_type, dims)


def _either(our: Dimension, other: Dimension) -> Dimension:
    is_better = isinstance(other, int) or (is_made_up(our) and other is not None and not is_made_up(other))
    return other if our is None or (isinstance(our, str) and is_better) else our


def _dimension(dim: TensorShapeProto.Dimension) -> Dimension:
    if dim.HasField("dim_value"):
        return dim.dim_value if dim.dim_value >= 0 else None
    return dim.dim_param or None


_PASSED_ON: Final = frozenset({"Cast", "Identity", "Reshape", "Squeeze", "Unsqueeze"})
"""Operators that keep the order of a vector's elements."""

UNSIZED: Final = frozenset({"Compress", "NonMaxSuppression", "NonZero", "StringSplit", "Unique"})
"""Operators whose inputs' elements decide the outputs' sizes, which are about as small as the inputs."""

_ADVICE: Final = "save the model with shapes"
_ADVICE_OF_TOOL: Final = f"{_ADVICE}, as onnxruntime.tools.symbolic_shape_infer does"


def input_origins(name: str) -> tuple[ValueOrigin, ValueOrigin]:
    """Return the origins of an input's elements and of its sizes; only sizes may be given before the model runs."""
    return ValueOrigin(source=ValueSource("elements of the input", place(name))), ValueOrigin(
        source=ValueSource("input", place(name))
    )


def node_origin(node: NodeProto, operator: OnnxOperator) -> ValueOrigin:
    """Return the origin of values that a node computes from known inputs, or passes to graphs inside it."""
    kind = f"{operator.domain}.{operator.type}" if operator.domain else operator.type
    return ValueOrigin(f"{place(kind)} {place(node.name)!r}")


def with_origins(
    value: Value, node: NodeProto, operator: OnnxOperator, inputs: Sequence[Value], known: Origins
) -> Value:
    """Return the output of a node with the origins of its unknown parts; ``known`` are made-up sizes' origins."""
    if value.constant is None and not value.elements_origin.node:
        value = replace(value, elements_origin=_elements_origin(value, node, operator, inputs))
        origins = _origins(value, node, operator, inputs, known)
        origin = origins[0] if len(origins) == 1 else value.elements_origin
        value = replace(value, elements_origin=origin, origins=origins)
    if not value.is_typed and not value.sizes_origin.node:
        origin = _sizes_origin(value, node, operator, inputs)
        if operator.domain and origin == node_origin(node, operator):
            origin = origin._replace(advice=_ADVICE_OF_TOOL if operator.domain == MICROSOFT else _ADVICE)
        value = replace(value, sizes_origin=origin)
    return value


def _elements_origin(value: Value, node: NodeProto, operator: OnnxOperator, inputs: Sequence[Value]) -> ValueOrigin:
    own = node_origin(node, operator)
    if operator.type in ("Shape", "Size") and not operator.domain:
        origin = next((given.sizes_origin for given in inputs), ValueOrigin())
        return origin if origin.node else own._replace(source=origin.source)
    unknown = next((given for given in inputs if given.constant is None), None)
    if unknown is None:
        return own
    origin = unknown.elements_origin
    if origin.node and (unknown.is_whole or not value.is_whole or not origin.source):
        return origin
    return own._replace(source=origin.source)


def origin_of_size(value: Value, i: int, inputs: Sequence[Value], known: Origins) -> ValueOrigin:
    """Return the origin of an output's size that no input has; ``known`` are made-up sizes' origins."""
    rank = len(value.shape or ())
    for vector in reversed(inputs):
        is_known = vector.elements is not None and vector.elements.shape == (rank,) and vector.mask[i]
        if vector.constant is None and vector.is_whole and len(vector.shape or ()) == 1 and not is_known:
            return vector.origins[i] if len(vector.origins) == rank else vector.elements_origin
    for given in inputs:
        sizes = (given.type and dimensions(given.type)) or ()
        if len(sizes) == rank and not isinstance(sizes[i], int):
            return _origin_of_known(sizes[i], given, known)
    return value.sizes_origin


def _origin_of_known(size: Dimension, value: Value, known: Origins) -> ValueOrigin:
    """Return the origin of a size of the value: a name of the file's own is an origin."""
    if isinstance(size, str) and not is_made_up(size):
        return ValueOrigin(source=ValueSource("dimension", place(size)))
    return known.get(str(size), value.sizes_origin)


def _origins(
    value: Value, node: NodeProto, operator: OnnxOperator, inputs: Sequence[Value], known: Origins
) -> tuple[ValueOrigin, ...]:
    """Return the origins of a vector's elements, if the operator passes on its inputs' elements one by one."""
    if operator.domain or not inputs or not value.is_whole:
        return ()
    data, *arguments = inputs
    if operator.type == "Shape":
        own = node_origin(node, operator)
        bounds = {attribute.name: attribute.i for attribute in node.attribute}
        sizes = ((data.type and dimensions(data.type)) or ())[bounds.get("start") : bounds.get("end")]
        found = (_origin_of_known(size, data, known) for size in sizes)
        return tuple(origin if origin.node else own._replace(source=origin.source) for origin in found)
    if operator.type in _PASSED_ON:
        return data.origins
    indices = arguments[0].constant if arguments else None
    is_of_elements = operator.type == "Gather" and data.origins and len(data.shape or ()) == 1
    if is_of_elements and indices is not None and indices.dtype.kind == "i":
        return tuple(data.origins[i % len(data.origins)] for i in indices.ravel().tolist())
    lengths = [given.shape[0] if given.shape and len(given.shape) == 1 else None for given in inputs]
    known_lengths = [length for length in lengths if isinstance(length, int)]
    if operator.type != "Concat" or len(known_lengths) < len(lengths) or sum(known_lengths) > MAX_DIMENSIONS:
        return ()
    origins = (given.origins or (given.elements_origin,) * n for given, n in zip(inputs, known_lengths, strict=True))
    return tuple(chain.from_iterable(origins))


def _sizes_origin(value: Value, node: NodeProto, operator: OnnxOperator, inputs: Sequence[Value]) -> ValueOrigin:
    untyped = None if operator.type in UNSIZED else next((given for given in inputs if not given.is_typed), None)
    if untyped is not None and (not operator.domain or untyped.type is None):
        return untyped.sizes_origin
    own = node_origin(node, operator)
    sources = [given.elements_origin.source for given in inputs if given.constant is None]
    return own._replace(source=sources[-1] if sources and not operator.domain else None)
