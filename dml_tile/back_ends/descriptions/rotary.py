"""com.microsoft's RotaryEmbedding."""

from __future__ import annotations

from typing import Final, TypeAlias

from dml_tile.back_ends.descriptions.created import Descriptions, binary, operator, unary
from dml_tile.back_ends.descriptions.node import KernelNode, Table, table_of
from dml_tile.back_ends.descriptions.refusals import require
from dml_tile.back_ends.descriptions.tensors import Tensor, scalar
from dml_tile.directml.data_types import TensorDataType

_INT64: Final = TensorDataType.INT64

_OF_FOUR_SINCE: Final = (1, 18)
"""The release from which on RotaryEmbedding's input may have four dimensions."""
_HEADS_READ_SINCE: Final = (1, 20)
"""The release from which on num_heads, rotary_embedding_dim and is_packed_batching are read."""


_Rotation: TypeAlias = tuple[int, int, int, int, int, bool]
"""The sizes of a RotaryEmbedding: batch, length, heads, a head, and the first elements of a head, which are rotated.

Behind them, whether its input has four dimensions.
"""


def _rotation(node: KernelNode) -> _Rotation:
    require(len(node.inputs) == 4, f"{len(node.inputs)} inputs; 4 are taken")
    source, *others, cos, sin = (node.input(i) for i in range(4))
    is_taken = all(len(each.sizes) == 4 for each in (source, *others, cos, sin)) and cos.sizes == sin.sizes
    require(is_taken, "an input of more than 4 dimensions, or caches of several shapes")
    is_read = node.release >= _HEADS_READ_SINCE
    heads, part = (node.attribute(name, 0) if is_read else 0 for name in ("num_heads", "rotary_embedding_dim"))
    is_of_four = len(node.shape(0)) == 4 and node.release >= _OF_FOUR_SINCE
    hidden = source.sizes[1] * source.sizes[3] if is_of_four else source.sizes[3]
    head = hidden // heads if heads else cos.sizes[3] * 2
    require(heads or not part, "rotary_embedding_dim without num_heads")
    require(part <= head, f"a rotary_embedding_dim of {part} of heads of {head}")
    require(is_read or source.sizes[3] % head == 0, f"a last dimension of {source.sizes[3]} of heads of {head}")
    heads = heads or hidden // head
    require(not is_of_four or heads == source.sizes[1], f"num_heads {heads} of {source.sizes[1]} heads")
    length = source.sizes[2]
    is_packed = is_read and node.attribute("is_packed_batching", 0) == 1
    require(is_packed or length <= cos.sizes[2], f"{length} positions; the caches have {cos.sizes[2]} (E_NOTIMPL)")
    batch = source.sizes[0] if is_of_four else source.sizes[1]
    return batch, length, heads, head, part or head, is_of_four


def _rotary(node: KernelNode) -> Descriptions:
    """Describe RotaryEmbedding: pairs of elements are split, swapped, and multiplied by the sine and the cosine."""
    batch, length, heads, head, turned, is_of_four = sizes = _rotation(node)
    data_type, source, result = node.type(), node.input().of, node.output().of
    is_part, half, part = head != turned, turned // 2, (batch, length, heads, turned)
    strides = (turned * heads * length, turned, length * turned, 1) if is_of_four else None
    ins, outs = (
        Tensor(data_type, part, strides, of=name)
        for name in (("turned part", "turned result") if is_part else (source, result))
    )
    is_interleaved = bool(node.attribute("interleaved", 0))
    pair, single, axis, signed = (
        ((half, 2), (half, 1), 4, (1, 2)) if is_interleaved else ((2, half), (1, half), 3, (2, 1))
    )
    copied = Tensor(data_type, part, of="copied")
    data = Tensor(data_type, (batch, length, heads, *pair), of="copied")
    first, second = (Tensor(data_type, (batch, length, heads, *single), of=f"half {i}") for i in range(2))
    swapped, signs = data.renamed("swapped"), Tensor(data_type, (2,), of="signs")
    by_sign, by_sine, by_cosine = (data.renamed(name) for name in ("signed", "by sine", "by cosine"))
    is_offset = len(node.shape(1)) == 1
    places = Tensor(node.type(1), (1, 1, batch, length), of="positions") if is_offset else node.input(1)
    waves = [Tensor(data_type, (1, batch, length, half), of=name) for name in ("cosines", "sines")]
    cosines, sines = (Tensor(data_type, (batch, length, 1, *single), of=wave.of).spread(data.sizes) for wave in waves)
    gather = {"IndicesTensor": places, "Axis": 2, "IndexDimensions": 2}
    fill = {"ValueDataType": data_type, "ValueStart": scalar(data_type, -1.0), "ValueDelta": scalar(data_type, 2.0)}
    made = [
        unary("ELEMENT_WISE_IDENTITY", ins, copied, ScaleBias={"Scale": 1.0, "Bias": 0.0}),
        operator("SPLIT", InputTensor=data, OutputTensors=[first, second], Axis=axis),
        *(unary("GATHER", node.input(i), wave, **gather) for i, wave in zip((2, 3), waves, strict=True)),
        operator("FILL_VALUE_SEQUENCE", OutputTensor=signs, **fill),
        operator("JOIN", InputTensors=[second, first], OutputTensor=swapped, Axis=axis),
        binary("MULTIPLY", data, cosines, by_cosine),
        binary("MULTIPLY", swapped, sines, by_sine),
        binary("MULTIPLY", by_sine, signs._replace(sizes=(1, 1, 1, *signed)).spread(data.sizes), by_sign),
        binary("ADD", by_cosine._replace(sizes=part), by_sign._replace(sizes=part), outs),
    ]
    return [*made, *(_offsets(node, places) if is_offset else ()), *(_parts(node, sizes) if is_part else ())]


def _offsets(node: KernelNode, places: Tensor) -> Descriptions:
    """Return the operators that make positions of the first one, position_ids of one dimension."""
    require(node.type(1) is _INT64, "position_ids of one dimension that are not int64")
    count = Tensor(_INT64, (1, 1, 1, places.sizes[3]), of="sequence")
    first = Tensor(_INT64, node.input(1).sizes, of=node.input(1).of).spread(places.sizes)
    fields = {"ValueDataType": _INT64, "ValueStart": scalar(_INT64, 0), "ValueDelta": scalar(_INT64, 1)}
    filled = operator("FILL_VALUE_SEQUENCE", OutputTensor=count, **fields)
    return [filled, binary("ADD", count.spread(places.sizes), first, places)]


def _parts(node: KernelNode, sizes: _Rotation) -> Descriptions:
    """Return the operators that part the elements of a head that are not turned from the others, and join them."""
    batch, length, heads, head, turned, is_of_four = sizes
    whole = (batch, heads, length) if is_of_four else (batch, length, heads)
    parts = [
        Tensor(node.type(), (*whole, size), of=name)
        for size, name in ((turned, "turned part"), (head - turned, "rest"))
    ]
    source, result = (Tensor(node.type(), (*whole, head), of=each.of) for each in (node.input(), node.output()))
    joined = [parts[0].renamed("turned result"), parts[1]]
    return [
        operator("SPLIT", InputTensor=source, OutputTensors=parts, Axis=3),
        operator("JOIN", InputTensors=joined, OutputTensor=result, Axis=3),
    ]


ROTARY: Final[Table] = table_of({"com.microsoft:RotaryEmbedding": _rotary})
