"""The known parts of a value before a model runs: its type and shape, and its elements if they are few."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, TensorShapeProto, TypeProto, helper

from dml_tile.back_ends.placement import Edge
from dml_tile.readers.model_tile import MAX_DIMENSIONS, NO_ORIGIN, Dimension, ValueOrigin

Array = NDArray[Any]
Mask = NDArray[np.bool_]

_NAMES: Final = {
    number: "string" if number == TensorProto.STRING else helper.tensor_dtype_to_np_dtype(number).name
    for number in TensorProto.DataType.values()
    if number != TensorProto.UNDEFINED
}

_WHOLE: Final = frozenset({TensorProto.BOOL, TensorProto.INT32, TensorProto.INT64})
"""The types of shapes, indices and conditions."""


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor: its type, None if unknown; its elements, None if there are many or no element is known.

    Unknown elements are masked; ``held`` are the elements, or the function that reads them. ``is_folded`` says that
    onnxruntime, too, has the value as a constant before it runs, and ``early_type`` is the type that it has by then:
    from declared types and constants, not from single elements.
    ``unread`` says why external data are missing, if more would be known with them. The origins say what computes the
    unknown elements, and the unknown type or sizes; ``origins`` what computes each element of a vector, if they differ.
    ``edge`` is the value as placing sees it, None before a node computes it.
    """

    type: TypeProto | None = None
    held: Array | Callable[[], Array | None] | None = None
    is_folded: bool = False
    early_type: TypeProto | None = None
    unread: str = ""
    elements_origin: ValueOrigin = NO_ORIGIN
    sizes_origin: ValueOrigin = NO_ORIGIN
    origins: tuple[ValueOrigin, ...] = ()
    edge: Edge | None = None

    @property
    def elements(self) -> Array | None:
        """The elements, read if they are not in memory."""
        return self.held() if callable(self.held) else self.held

    @property
    def mask(self) -> Mask:
        """The mask of the known elements; the value has elements."""
        elements = self.elements
        assert elements is not None
        return ~np.ma.getmaskarray(elements)

    @property
    def constant(self) -> Array | None:
        """The elements, if all are known."""
        elements = self.elements
        return None if np.ma.is_masked(elements) else elements

    @property
    def sizes(self) -> tuple[Dimension, ...] | None:
        """The sizes by what the file and onnx call them; None if not even the rank is known."""
        return None if self.type is None else dimensions(self.type)

    @property
    def shape(self) -> tuple[Dimension, ...] | None:
        """The sizes; one with a name that onnx made up is None."""
        sizes = self.sizes
        return sizes and tuple(None if is_made_up(size) else size for size in sizes)

    @property
    def is_static(self) -> bool:
        """True if each size is known."""
        return self.count is not None

    @property
    def count(self) -> int | None:
        """The number of elements; None if it is unknown."""
        sizes = self.sizes
        known = [size for size in sizes or () if isinstance(size, int)]
        return math.prod(known) if sizes is not None and len(known) == len(sizes) else None

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


UNKNOWN: Final = Value()


def dimensions(type_: TypeProto) -> tuple[Dimension, ...] | None:
    """Return the sizes of a tensor; None for a size that is negative or has no name.

    Of more than MAX_DIMENSIONS, whose product may be of any length, none is known.
    """
    tensor = type_.tensor_type
    is_known = tensor.HasField("shape") and len(tensor.shape.dim) <= MAX_DIMENSIONS
    return tuple(map(_dimension, tensor.shape.dim)) if is_known else None


def _dimension(dim: TensorShapeProto.Dimension) -> Dimension:
    if dim.HasField("dim_value"):
        return dim.dim_value if dim.dim_value >= 0 else None
    return dim.dim_param or None


def is_made_up(size: Dimension) -> bool:
    """Return True for a name that onnx's inference gave an unknown size."""
    return isinstance(size, str) and size.startswith("unk__")


def with_sizes(type_: TypeProto, sizes: Sequence[Dimension] | None) -> TypeProto:
    """Return the type of tensors of the same elements, with these sizes, or of any rank."""
    return helper.make_tensor_type_proto(type_.tensor_type.elem_type, sizes)


def without_shape(type_: TypeProto) -> TypeProto:
    """Return the type of tensors of any rank, if it is one of tensors."""
    return with_sizes(type_, None) if type_.HasField("tensor_type") else type_


def agree(one: Sequence[Dimension] | None, other: Sequence[Dimension] | None) -> bool:
    """Return True if no size that is known of both differs; None is a shape of any rank."""
    pairs = zip(one or (), other or (), strict=False)
    is_of_one_rank = one is None or other is None or len(one) == len(other)
    return is_of_one_rank and all(a == b for a, b in pairs if isinstance(a, int) and isinstance(b, int))


def merged(inferred: TypeProto | None, declared: TypeProto | None) -> TypeProto | None:
    """Return the type by two sources; if they disagree, the first is right."""
    if inferred is None or declared is None:
        return inferred or declared
    ours, others = dimensions(inferred), dimensions(declared)
    if inferred.tensor_type.elem_type != declared.tensor_type.elem_type or others is None:
        return inferred
    if ours is None:
        return declared
    return inferred if len(ours) != len(others) else with_sizes(inferred, [*map(_either, ours, others)])


def common(first: TypeProto | None, second: TypeProto | None) -> TypeProto | None:
    """Return the type of a value that is of either type; None if they have nothing in common."""
    if first is None or second is None or first.tensor_type.elem_type != second.tensor_type.elem_type:
        return None
    ours, others = dimensions(first), dimensions(second)
    if ours is None or others is None or len(ours) != len(others):
        return with_sizes(first, None)
    return with_sizes(first, [our if our == other else None for our, other in zip(ours, others, strict=True)])


def _either(our: Dimension, other: Dimension) -> Dimension:
    is_better = isinstance(other, int) or (is_made_up(our) and other is not None and not is_made_up(other))
    return other if our is None or (isinstance(our, str) and is_better) else our
