"""What is known of a value before a model is run: its type and shape, and its elements where they are few."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from numpy.typing import NDArray
from onnx import TensorProto, TensorShapeProto, TypeProto, helper

from dml_tile.readers.model_tile import Dimension

Array = NDArray[Any]

_NAMES: Final = {
    number: "string" if number == TensorProto.STRING else helper.tensor_dtype_to_np_dtype(number).name
    for number in TensorProto.DataType.values()
    if number != TensorProto.UNDEFINED
}


@dataclass(frozen=True, slots=True)
class Value:
    """A tensor: its type, None if unknown; its elements, None if there are many or none is known.

    ``known`` has 1 for each element that is known, 0 for one that is not, and is None if all are. ``unread`` tells why
    more is not known, if that is for want of external data.
    """

    type: TypeProto | None = None
    elements: Array | None = None
    known: Array | None = None
    unread: str = ""

    @property
    def constant(self) -> Array | None:
        """The elements, if all are known."""
        return self.elements if self.known is None or self.known.all() else None

    @property
    def shape(self) -> tuple[Dimension, ...] | None:
        """The sizes, None if not even the rank is known."""
        return None if self.type is None else dimensions(self.type)

    @property
    def is_static(self) -> bool:
        """Whether each size is known."""
        return self.shape is not None and all(isinstance(size, int) for size in self.shape)

    @property
    def data_type(self) -> str | None:
        """ONNX's name of the type in NumPy's spelling."""
        return None if self.type is None else _NAMES.get(self.type.tensor_type.elem_type)


def dimensions(type_: TypeProto) -> tuple[Dimension, ...] | None:
    """The sizes of a tensor; a name that onnx's inference made up tells nothing, nor does a negative size."""
    tensor = type_.tensor_type
    return tuple(map(_dimension, tensor.shape.dim)) if tensor.HasField("shape") else None


def merged(inferred: TypeProto | None, declared: TypeProto | None) -> TypeProto | None:
    """What two sources together tell of a type; where they disagree, the first is right."""
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
    """What holds for a value that is of either type."""
    if first is None or second is None or first.tensor_type.elem_type != second.tensor_type.elem_type:
        return None
    ours, others = dimensions(first), dimensions(second)
    if ours is None or others is None or len(ours) != len(others):
        return helper.make_tensor_type_proto(first.tensor_type.elem_type, None)
    dims = [our if our == other else None for our, other in zip(ours, others, strict=True)]
    return helper.make_tensor_type_proto(first.tensor_type.elem_type, dims)


def _either(our: Dimension, other: Dimension) -> Dimension:
    return other if our is None or (isinstance(our, str) and isinstance(other, int)) else our


def _dimension(dim: TensorShapeProto.Dimension) -> Dimension:
    if dim.HasField("dim_value"):
        return dim.dim_value if dim.dim_value >= 0 else None
    return None if dim.dim_param.startswith("unk__") else dim.dim_param or None
