"""com.microsoft's operators of attention."""

from __future__ import annotations

import math
from typing import Any, Final, NamedTuple

from dml_tile.back_ends.descriptions.created import Described, Descriptions, operator, unary
from dml_tile.back_ends.descriptions.matrices import gemm
from dml_tile.back_ends.descriptions.node import KernelNode, Table, table_of
from dml_tile.back_ends.descriptions.refusals import NotDescribed, require
from dml_tile.back_ends.descriptions.tensors import OWN, Tensor, scalar
from dml_tile.directml.data_types import TensorDataType

_MASK_FILTER_VALUE: Final = -10000.0
_FLOAT32_MIN: Final = -3.4028234663852886e38
_INT32: Final = TensorDataType.INT32


def _own(node: KernelNode, i: int) -> Tensor | None:
    return node.optional(i, align=OWN)


def _scale(node: KernelNode, head: int) -> dict[str, Any]:
    """Return the fields of the scale, by default the root of a head's size, and of what masks."""
    scale = node.attributes.get("scale") or 1 / math.sqrt(head)
    return {"Scale": scale, "MaskFilterValue": node.attribute("mask_filter_value", _MASK_FILTER_VALUE)}


def _multi_head(node: KernelNode) -> Descriptions:
    query, heads = node.shape(0), node.attribute("num_heads")
    key = node.shape(1) if node.has(1) else []
    is_stacked, past_in_key, stacked_kv = len(query) == 5, len(key) == 4, len(key) == 5
    has_key, has_value = bool(key) and not past_in_key and not stacked_kv, node.has(2) and not past_in_key
    pasts = (1, 2) if past_in_key else tuple(i for i in (6, 7) if _has_past(node, i))
    require(is_stacked or len(query) == 3, f"a query of {len(query)} dimensions; 3 or 5 are taken")
    batch, length = query[:2]
    head = query[4] if is_stacked else query[2] // heads
    hidden = heads * head
    past = node.shape(pasts[0])[2] if pasts else 0
    own_length = key[1] if has_key or stacked_kv else past if pasts else length
    value = node.shape(2) if has_value else [batch, own_length, hidden]
    total = own_length + past
    shapes = [
        ("query", query, [batch, length, heads, 3, head] if is_stacked else [batch, length, hidden]),
        ("key", key if has_key else None, [batch, own_length, hidden]),
        ("stacked key and value", key if stacked_kv else None, [batch, own_length, heads, 2, head]),
        ("value", value, [batch, own_length, *value[2:3]]),
        ("bias", node.shape(3) if node.has(3) else None, [2 * hidden + value[-1]]),
        ("attention_bias", node.shape(5) if node.has(5) else None, [batch, heads, length, total]),
        *(("past", node.shape(i), [batch, heads, past, head]) for i in pasts),
    ]
    for name, shape, wanted in shapes:
        require(shape is None or shape == wanted, f"{name} of {shape}; {wanted} is taken")
    mask, kind = _multi_head_mask(node, batch, heads, length, own_length, total)
    past_tensors = {field: _own(node, i) for field, i in zip(("PastKeyTensor", "PastValueTensor"), pasts, strict=False)}
    tensors = {
        "StackedQueryKeyValueTensor" if is_stacked else "QueryTensor": _own(node, 0),
        "KeyTensor": _own(node, 1) if has_key else None,
        "ValueTensor": _own(node, 2) if has_value else None,
        "StackedKeyValueTensor": _own(node, 1) if stacked_kv else None,
        "BiasTensor": _own(node, 3),
        "MaskTensor": mask,
        "RelativePositionBiasTensor": _own(node, 5),
        **past_tensors,
        "OutputTensor": node.output(align=OWN),
        "OutputPresentKeyTensor": node.optional_output(1, OWN),
        "OutputPresentValueTensor": node.optional_output(2, OWN),
    }
    return [operator("MULTIHEAD_ATTENTION", **tensors, **_scale(node, head), HeadCount=heads, MaskType=kind)]


def _has_past(node: KernelNode, i: int) -> bool:
    """Return True for a past; one of length 0 is left out from 1.18 on."""
    return node.has(i) and (node.release < (1, 18) or node.shape(i)[2] != 0)


def _multi_head_mask(
    node: KernelNode, batch: int, heads: int, length: int, own_length: int, total: int
) -> tuple[Tensor | None, str]:
    """Return MaskTensor and MaskType of MultiHeadAttention."""
    if not node.has(4):
        return None, "NONE"
    shape = node.shape(4)
    if shape == [batch]:
        return node.view(4, (1, batch)), "KEY_SEQUENCE_LENGTH"
    if len(shape) == 1:
        require(shape == [3 * batch + 2], f"a mask of {shape}")
        return node.input(4, align=OWN), "KEY_QUERY_SEQUENCE_LENGTH_START_END"
    require(len(shape) == 2 or node.release >= (1, 16), f"a mask of {len(shape)} dimensions; before 1.16, 2 are taken")
    wanted = {2: [batch, own_length], 3: [batch, length, total], 4: [batch, heads, length, total]}.get(len(shape))
    require(shape == wanted, f"a mask of {shape}; {wanted} is taken")
    actual = {2: (batch, 1, 1, shape[-1]), 3: (batch, 1, length, shape[-1])}.get(len(shape), tuple(shape))
    return node.view(4, actual).spread((batch, heads, length, shape[-1])), "BOOLEAN"


_CHECKED_SINCE: Final = {"q_norm_weight or k_norm_weight": (1, 28), "causal 0": (1, 30)}


def _group_query(node: KernelNode) -> Descriptions:
    """Describe GroupQueryAttention; do_rotary, the caches, local_window_size and softcap are not read."""
    require(node.has(1) and node.has(2), "a packed query: key and value are left out")
    node.elements(6)  # total_sequence_length
    shapes = [node.shape(i) for i in range(3)]
    is_taken = all(len(shape) == 3 for shape in shapes) and shapes[1] == shapes[2] and shapes[0][0] == shapes[1][0]
    require(is_taken, "query, key and value of other than 3 dimensions, or of unlike shapes")
    refused = {
        "q_norm_weight or k_norm_weight": node.has(14) or node.has(15),
        "causal 0": node.attribute("causal", 1) != 1,
    }
    for reason, is_given in refused.items():
        require(not is_given or node.release < _CHECKED_SINCE[reason], reason)
    heads, (batch, length, hidden) = node.attribute("num_heads"), shapes[0]
    inputs, results = [node.input(i, align=OWN) for i in range(3)], [node.output(i, align=OWN) for i in range(3)]
    casts: list[Described] = []
    if node.type() is TensorDataType.FLOAT16:
        halves = inputs, results
        inputs, results = (
            [each.renamed(f"{each.of} as float", TensorDataType.FLOAT32) for each in side] for side in halves
        )
        pairs = [*zip(halves[0], inputs, strict=True), *zip(results, halves[1], strict=True)]
        casts = [unary("CAST", source, result) for source, result in pairs]
    lengths = Tensor(_INT32, (batch,), of="zeros")
    filled: list[Described] = []
    if length == 1:
        require(node.shape(5) in ([batch], [batch, 1]), f"seqlens_k of {node.shape(5)}; [{batch}] is taken")
        lengths = lengths._replace(of=node.input(5).of)
    else:
        filled = [operator("FILL_VALUE_CONSTANT", OutputTensor=lengths, ValueDataType=_INT32, Value=scalar(_INT32, 0))]
    names = ("Query", "Key", "Value", "Output", "OutputPresentKey", "OutputPresentValue")
    counts = {"QueryHeadCount": heads, "KeyValueHeadCount": node.attribute("kv_num_heads"), "MaskType": "NONE"}
    scale = {**_scale(node, hidden // heads), "MaskFilterValue": _MASK_FILTER_VALUE}
    tensors = {f"{name}Tensor": each for name, each in zip(names, (*inputs, *results), strict=True)}
    tensors["PastSequenceLengthsTensor"] = lengths
    return [operator("MULTIHEAD_ATTENTION1", **tensors, **scale, **counts), *casts, *filled]


class _Mask(NamedTuple):
    """MaskTensor and MaskType of Attention and QAttention, and the operators that cut the mask."""

    tensor: Tensor | None = None
    kind: str = "NONE"
    cut: Descriptions = ()


def _mask(node: KernelNode, i: int, batch: int, heads: int, length: int) -> _Mask:
    if not node.has(i):
        return _Mask()
    own = node.shape(i)
    if len(own) == 1:
        count = own[0] // batch
        require(count in (1, 2), f"a mask of {own}")
        kind = "KEY_SEQUENCE_LENGTH" if count == 1 else "KEY_SEQUENCE_END_START"
        return _Mask(node.view(i, (count, batch)), kind)
    require(2 <= len(own) <= 4, f"a mask of {len(own)} dimensions")
    square = (batch, heads, length, length)
    if len(own) == 4 and own[2] != length:
        require(own[2] == own[3], f"a mask of {own}, which is not square")
        whole = node.view(i, own).spread((batch, heads, own[2], own[2]))
        cut = Tensor(node.type(i), square, of="mask cut")
        return _Mask(cut, "BOOLEAN", [_sliced(whole, cut, [0] * 4)])
    return _Mask(node.view(i, (own[0], *(1,) * (4 - len(own)), *own[1:])).spread(square), "BOOLEAN")


def _sliced(source: Tensor, result: Tensor, offsets: list[int]) -> Described:
    window = {"InputWindowOffsets": offsets, "InputWindowSizes": result.sizes}
    return unary("SLICE1", source, result, **window, InputWindowStrides=[1] * len(offsets))


def _by_heads(data_type: TensorDataType, batch: int, length: int, heads: int, count: int, head: int) -> Described:
    """Return the IDENTITY that turns a product's parts, each of all heads, into heads of all parts."""
    sizes = (batch, length, heads, count, head)
    strides = (length * heads * count * head, heads * count * head, head, heads * head, 1)
    turned = Tensor(data_type, sizes, of="turned")
    return unary("ELEMENT_WISE_IDENTITY", turned._replace(strides=strides, of="product"), turned)


def _require_shapes(node: KernelNode, shape: list[int], weights: list[int]) -> None:
    """Require the shapes of Attention's and QAttention's input, weights and bias."""
    is_taken = len(shape) == 3 and len(weights) == 2 and weights[0] == shape[2] and node.attribute("num_heads") > 0
    require(is_taken, f"an input of {shape} with weights of {weights}")
    require(not node.has(2) or node.shape(2) == [weights[1]], "a bias of another size than the weights")


def _attention(node: KernelNode) -> Descriptions:
    if node.release < (1, 15):
        raise NotDescribed("the Attention of onnxruntime 1.14")
    shape, weights, heads, data_type = node.shape(0), node.shape(1), node.attribute("num_heads"), node.type()
    _require_shapes(node, shape, weights)
    given = node.integer_list("qkv_hidden_sizes") or [weights[1] // 3] * 3
    is_taken = len(given) == 3 and given[0] == given[1] and sum(given) == weights[1]
    require(is_taken, f"qkv_hidden_sizes {given} of {weights[1]}")
    (batch, length, _), (hidden, _, v_hidden) = shape, given
    sizes = (batch, length, weights[1])
    product = Tensor(data_type, sizes, of="product")
    b, bias = node.input(1, [batch, *weights], OWN), node.optional(2, sizes, OWN)
    made = [gemm(node.input(align=OWN), b, product, bias, beta=1.0)]
    mask = _mask(node, 3, batch, heads, length)
    is_whole = not node.has(5) or node.shape(5)[:-1] == [batch, heads, length]
    require(is_whole, "an attention_bias that is broadcast")
    is_split, head = hidden != v_hidden, hidden // heads
    turned = _by_heads(data_type, batch, length, heads, 2 if is_split else 3, head)
    value = Tensor(data_type, (batch, length, v_hidden), of="value")
    slices: list[Described] = []
    if is_split:
        both = Tensor(data_type, (batch, length, 2 * hidden), of="query and key")
        slices = [_sliced(product, both, [0, 0, 0]), _sliced(product, value, [0, 0, 2 * hidden])]
        turned = unary(
            "ELEMENT_WISE_IDENTITY", turned.fields["InputTensor"].renamed(both.of), turned.fields["OutputTensor"]
        )
    tensors = {
        "StackedQueryKeyTensor" if is_split else "StackedQueryKeyValueTensor": turned.fields["OutputTensor"],
        "ValueTensor": value if is_split else None,
        "MaskTensor": mask.tensor,
        "RelativePositionBiasTensor": _own(node, 5),
        "OutputTensor": node.output(align=OWN),
    }
    attended = operator("MULTIHEAD_ATTENTION", **tensors, **_scale(node, head), HeadCount=heads, MaskType=mask.kind)
    return [*made, attended, *slices, turned, *mask.cut]


def _quantised_attention(node: KernelNode) -> Descriptions:
    shape, weights, heads, data_type = node.shape(0), node.shape(1), node.attribute("num_heads"), node.output_type()
    _require_shapes(node, shape, weights)
    require(len(node.inputs) >= 5 and weights[1] % 3 == 0, "fewer than 5 inputs, or weights of no three equal parts")
    has_past, is_causal = node.has(8), bool(node.attribute("unidirectional", 0))
    require(not has_past or node.gives(1), "past without present")
    batch, length, _ = shape
    head, past = weights[1] // 3 // heads, node.shape(8)[3] if has_past else 0
    sizes, total = (batch, length, weights[1]), past + length
    product = Tensor(data_type, sizes, of="product")
    factors = {
        "ATensor": node.input(0, align=OWN),
        "AScaleTensor": node.input(3, align=OWN),
        "AZeroPointTensor": _own(node, 6),
        "BTensor": node.input(1, [batch, *weights], OWN),
        "BScaleTensor": node.input(4, align=OWN),
        "BZeroPointTensor": _own(node, 7),
        "BiasTensor": node.optional(2, sizes, OWN),
    }
    mask, turned = _mask(node, 5, batch, heads, length), _by_heads(data_type, batch, length, heads, 3, head)
    later = [*mask.cut]
    if is_causal and not node.has(5):
        triangle = Tensor(_INT32, (1, 1, length, total), of="triangle")
        mask = _Mask(triangle.spread((batch, heads, length, total)), "BOOLEAN")
        fields = {"ValueDataType": _INT32, "Value": scalar(_INT32, 1), "DiagonalFillBegin": -(2**31)}
        later.append(operator("DIAGONAL_MATRIX1", OutputTensor=triangle, **fields, DiagonalFillEnd=past + 1))
    tensors: dict[str, Any] = {
        "StackedQueryKeyValueTensor": turned.fields["OutputTensor"],
        "MaskTensor": mask.tensor,
        "OutputTensor": node.output(align=OWN),
    }
    if has_past:
        pasts, presents = (
            [Tensor(data_type, (1, batch, heads, n, head), of=f"{when} {what}") for what in ("key", "value")]
            for when, n in (("past", past), ("present", total))
        )
        tensors |= dict(zip(("PastKeyTensor", "PastValueTensor"), pasts, strict=True))
        tensors |= dict(zip(("OutputPresentKeyTensor", "OutputPresentValueTensor"), presents, strict=True))
        whole = node.input(8, align=OWN)
        slices = [_sliced(whole, part, [i, 0, 0, 0, 0]) for i, part in enumerate(pasts)]
        joined = operator("JOIN", InputTensors=presents, OutputTensor=node.output(1, align=OWN), Axis=0)
        later = [*mask.cut, *slices, joined, *later[len(mask.cut) :]]
    scale = _scale(node, head) | ({"MaskFilterValue": _FLOAT32_MIN} if is_causal else {})
    return [
        operator("MATRIX_MULTIPLY_INTEGER_TO_FLOAT", **factors, OutputTensor=product),
        operator("MULTIHEAD_ATTENTION", **tensors, **scale, HeadCount=heads, MaskType=mask.kind),
        turned,
        *later,
    ]


ATTENTION: Final[Table] = table_of(
    {
        "com.microsoft:MultiHeadAttention": _multi_head,
        "com.microsoft:GroupQueryAttention": _group_query,
        "com.microsoft:Attention": _attention,
        "com.microsoft:QAttention": _quantised_attention,
    }
)
