"""Products of matrices, of floats and of quantised elements, and Einsum."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final

from dml_tile.back_ends.descriptions.created import Described, Descriptions, binary, operator, unary
from dml_tile.back_ends.descriptions.node import KernelNode, Table, table_of
from dml_tile.back_ends.descriptions.quantised import uniform
from dml_tile.back_ends.descriptions.refusals import NotDescribed, require
from dml_tile.back_ends.descriptions.tensors import MAX_DIMENSIONS, MIN_DIMENSIONS, OWN, Alignment, Tensor, tensor
from dml_tile.back_ends.queries import ANY_EQUATION
from dml_tile.directml.data_types import TensorDataType
from dml_tile.geometry.layout import packed_strides


def gemm(
    a: Tensor,
    b: Tensor,
    result: Tensor,
    c: Tensor | None = None,
    turns: tuple[object, object] = (False, False),
    alpha: float = 1.0,
    beta: float = 0.0,
    fused: Any = None,
) -> Described:
    """Return a GEMM; ``turns`` says which of A and B are transposed."""
    trans_a, trans_b = ("TRANSPOSE" if turn else "NONE" for turn in turns)
    numbers = {"Alpha": alpha, "Beta": beta, "FusedActivation": fused}
    fields = {"CTensor": c, "TransA": trans_a, "TransB": trans_b, **numbers}
    return operator("GEMM", ATensor=a, BTensor=b, OutputTensor=result, **fields)


def _factors(node: KernelNode, b: int) -> tuple[Tensor, Tensor, Tensor]:
    """Return the tensors of two factors and of the product, whose batch dimensions all have."""
    left, right, result = node.shape(), node.shape(b), node.output_shape()
    if len(right) == 1:
        right, result = [*right, 1], [*result, 1]
    if len(left) == 1:
        left, result = [1, *left], [*result[:-1], 1, result[-1]]
    batch = result[:-2]
    # a vector's own shape has fewer dimensions, and its strides are made of that: those of one on the right are 0, 1
    return node.input(0, batch + left[-2:]), node.input(b, batch + right[-2:]), node.output(0, result)


def _rows(a: Tensor) -> Alignment:
    """Return the alignment of a scale or zero point along the rows of A."""
    return Alignment(len(a.sizes), 2, MAX_DIMENSIONS)


def _matmul(node: KernelNode) -> Descriptions:
    return [gemm(*_factors(node, 1))]


def _gemm(node: KernelNode) -> Descriptions:
    c, turns = node.optional(2, node.output_shape()), (node.attribute("transA", 0), node.attribute("transB", 0))
    numbers = node.attribute("alpha", 1.0), node.attribute("beta", 1.0)
    return [gemm(node.input(0), node.input(1), node.output(), c, turns, *numbers)]


def _qlinear_matmul(node: KernelNode) -> Descriptions:
    a, b, result = _factors(node, 3)
    rows, right = _rows(a), Alignment()
    inputs = {
        "AScaleTensor": (1, rows),
        "AZeroPointTensor": (2, rows),
        "BScaleTensor": (4, right),
        "BZeroPointTensor": (5, right),
        "OutputScaleTensor": (6, rows),
        "OutputZeroPointTensor": (7, rows),
    }
    fields = {name: uniform(node, node.optional(i, align=align), i) for name, (i, align) in inputs.items()}
    return [operator("QUANTIZED_LINEAR_MATRIX_MULTIPLY", ATensor=a, BTensor=b, OutputTensor=result, **fields)]


def _matmul_integer(node: KernelNode) -> Descriptions:
    a, b, result = _factors(node, 1)
    zeros = {"AZeroPointTensor": node.optional(2, align=_rows(a)), "BZeroPointTensor": node.optional(3)}
    return [operator("MATRIX_MULTIPLY_INTEGER", ATensor=a, BTensor=b, OutputTensor=result, **zeros)]


def _matmul_integer_to_float(node: KernelNode) -> Descriptions:
    a, b, result = _factors(node, 1)
    bias = node.optional(6, node.output_shape())
    inputs = {
        "AScaleTensor": node.input(2, align=_rows(a)),
        "AZeroPointTensor": node.optional(4, align=_rows(a)),
        "BScaleTensor": node.input(3),
        "BZeroPointTensor": node.optional(5),
        "BiasTensor": bias,
    }
    return [operator("MATRIX_MULTIPLY_INTEGER_TO_FLOAT", ATensor=a, BTensor=b, OutputTensor=result, **inputs)]


def _dynamic_quantize_matmul(node: KernelNode) -> Descriptions:
    """Describe DynamicQuantizeMatMul; A is quantised to B's type."""
    result, shapes, float32 = node.output(), (node.shape(0), node.shape(1)), TensorDataType.FLOAT32
    rank = len(result.sizes)
    least = min(map(len, shapes))
    require(least >= 2 and least + 2 >= rank, f"A or B of {least} dimensions for an output of {rank}")
    a_sizes, b_sizes = ([*result.sizes[:2], *shape[len(shape) - (rank - 2) :]] for shape in shapes)
    is_broadcast, kind = node.release >= (1, 19), node.type(1)
    ones = (1,) * (rank if is_broadcast else MIN_DIMENSIONS)
    a, b = (node.input(i, sizes if is_broadcast else None) for i, sizes in enumerate((a_sizes, b_sizes)))
    quantised = a.renamed("A quantised", kind)
    scale, zero = Tensor(float32, ones, of="A's scale"), Tensor(kind, ones, of="A's zero point")
    products = {
        "BScaleTensor": node.input(2),
        "BZeroPointTensor": node.optional(3),
        "BiasTensor": node.optional(4, node.output_shape()),
    }
    factors = {"ATensor": quantised, "AScaleTensor": scale, "AZeroPointTensor": zero, "BTensor": b}
    return [
        unary("DYNAMIC_QUANTIZE_LINEAR", a, quantised, OutputScaleTensor=scale, OutputZeroPointTensor=zero),
        operator("MATRIX_MULTIPLY_INTEGER_TO_FLOAT", **factors, **products, OutputTensor=result),
    ]


def _matmul_n_bits(node: KernelNode) -> Descriptions:
    count, most = len(node.inputs), 4 if node.release == (1, 18) else 6
    require(3 <= count <= most and not node.has(4) and not node.has(5), "g_idx or bias")
    rows, columns, bits = node.attribute("N"), node.attribute("K"), node.attribute("bits", 4)
    require(bits in (4, 8), f"{bits} bits; 4 and 8 are taken")
    shape = node.shape()
    require(len(shape) >= 2, f"A of {len(shape)} dimensions; 2 or more are taken")
    weights = TensorDataType.UINT4 if bits == 4 else TensorDataType.UINT8
    batch = shape[:-2]
    ones, blocks = [1] * len(batch), prod(node.shape(2)) // rows
    b, scale = (
        _of_block(node, i, data_type, [*batch, rows, n], [*ones, rows, n])
        for i, data_type, n in ((1, weights, columns), (2, node.type(), blocks))
    )
    parts = [scale]
    if node.has(3):
        # a row of an odd number of 4 bits begins at a byte; so do those of 8 bits here
        steps = blocks + blocks % 2
        zero = _of_block(node, 3, weights, [*batch, rows, blocks], [*ones, rows, blocks])
        parts.append(zero._replace(strides=(*(0 for _ in batch), steps, 1)) if blocks % 2 else zero)
    inner = Tensor(node.type(), (*batch, rows, columns), of="dequantised")
    fields = {"QuantizationType": "SCALE_ZERO_POINT" if node.has(3) else "SCALE", "QuantizationTensors": parts}
    dequantize = unary("DEQUANTIZE", b, inner, **fields)
    return [dequantize, gemm(node.view(0, shape), inner, node.output(align=OWN), turns=(False, True))]


def _of_block(
    node: KernelNode, i: int, data_type: TensorDataType, sizes: Sequence[int], actual: Sequence[int]
) -> Tensor:
    """Return an input's memory as a tensor of another type and shape, broadcast over the batch."""
    given = node.input(i)
    return tensor(data_type, sizes, actual, OWN, given.of)._replace(is_owned=given.is_owned)


_TURNS_SINCE: Final = (1, 20)
"""The release from which on TransA and TransB transpose; before, swapped sizes and strides."""

_Layout = tuple[list[int], list[int]]
"""Sizes and strides."""


def _fused_matmul(node: KernelNode) -> Descriptions:
    """Describe FusedMatMul and FusedMatMulActivation, whose strides are always written."""
    require(len(node.inputs) == 2, f"{len(node.inputs)} inputs; 2 are taken")
    shapes, turns = (node.shape(0), node.shape(1)), (node.attribute("transA", 0), node.attribute("transB", 0))
    batches = node.attribute("transBatchA", 0), node.attribute("transBatchB", 0)
    is_taken = not any(batches) or (len(shapes[0]) > 2 and len(shapes[0]) == len(shapes[1]))
    require(is_taken, "transBatchA or transBatchB with inputs of several ranks, or below 3")
    by_strides = node.release < _TURNS_SINCE
    (a, a_steps), (b, b_steps) = (
        _turned(shape, by_strides and turn and len(shape) > 1, batch)
        for shape, turn, batch in zip(shapes, turns, batches, strict=True)
    )
    result = node.output_shape()
    if len(b) == 1:
        b, b_steps, result = [*b, 1], [*b_steps, 0], [*result, 1]
    if len(a) == 1:
        a, a_steps, result = [1, *a], [0, *a_steps], [*result[:-1], 1, result[-1]]
    rank = max(len(a), len(b))
    a, b = ([1] * (rank - len(sizes)) + sizes for sizes in (a, b))
    a_steps, b_steps = ([0] * (rank - len(steps)) + steps for steps in (a_steps, b_steps))
    for i in range(rank - 2):
        if a[i] != b[i]:
            require(1 in (a[i], b[i]), f"batch dimensions of {a[i]} and {b[i]}, which do not broadcast")
            short, steps = (a, a_steps) if a[i] == 1 else (b, b_steps)
            short[i], steps[i] = max(a[i], b[i]), 0
    late = tuple(not by_strides and turn and len(shape) > 1 for shape, turn in zip(shapes, turns, strict=True))
    factors = node.view(0, a, a_steps), node.view(1, b, b_steps), node.output(0, result, OWN)
    return [gemm(*factors, None, (late[0], late[1]), node.attribute("alpha", 1.0), fused=_softmax_of(node))]


def _turned(shape: list[int], is_turned: object, is_batch_turned: object) -> _Layout:
    """Return sizes and strides with the last two dimensions swapped, or the first one moved behind the batch."""
    order = [*range(len(shape))]
    if is_batch_turned:
        order = [*order[1:-1], 0, order[-1]]
    if is_turned:
        order[-2:] = order[:-3:-1]
    strides = packed_strides(shape)
    return [shape[i] for i in order], [strides[i] for i in order]


def _softmax_of(node: KernelNode) -> dict[str, Any] | None:
    """Return the activation of FusedMatMulActivation, which is Softmax alone."""
    name = node.attribute("activation")
    if not name:
        return None
    require(name == "Softmax", f"the activation {name}; Softmax is taken")
    return {"Type": "ACTIVATION_SOFTMAX1", "Desc": {"Axes": [node.axis(node.attribute("activation_axis", -1))]}}


def _einsum(node: KernelNode) -> Descriptions:
    """Describe an Einsum of one input, or of two, by tensors of all labels, of which strides leave out some."""
    if node.release < ANY_EQUATION:
        raise NotDescribed("an Einsum before onnxruntime 1.19, which depends on its equation")
    given, arrow, kept = str(node.attribute("equation")).replace(" ", "").partition("->")
    terms = given.split(",")
    labels = "".join(dict.fromkeys("".join(terms)))
    if not arrow:
        kept = "".join(sorted(label for label in labels if given.count(label) == 1))
    require(len(terms) == len(node.inputs) <= 2 and {*kept} <= {*labels}, "labels that the inputs lack")
    sizes: dict[str, int] = {}
    for i, term in enumerate(terms):
        require(len(term) == len(node.shape(i)), f"{len(term)} labels of {len(node.shape(i))} dimensions")
        for label, size in zip(term, node.shape(i), strict=True):
            require(sizes.setdefault(label, size) == size, f"several sizes of the label {label}")
    whole = [sizes[label] for label in labels]

    def view(i: int, of: Sequence[str] = labels) -> Tensor:
        return node.view(i, [sizes.get(label, 1) for label in of] or [1], _steps(terms[i], node.shape(i), of) or [0])

    steps = _steps(kept, node.output_shape(), labels)
    reduced = node.result([size if label in kept else 1 for label, size in sizes.items()] or [1], steps or [0])
    axes = [i for i, size in enumerate(reduced.sizes) if size == 1]
    if len(terms) == 1:
        return [unary("REDUCE", view(0), reduced, Function="SUM", Axes=axes)]
    if len(kept) == len(labels):
        return [binary("MULTIPLY", view(0), view(1), reduced)]
    if len(kept) + 1 == len(labels) <= 5 and {*terms[0]} != {*terms[1]}:
        summed, height, width, batch, channel = _roles(labels, [kept, terms[1], terms[0], "", ""])
        a, b = view(0, [batch, channel, height, summed]), view(1, [batch, channel, width, summed])
        order = [batch, channel, height, width]
        result = node.result([sizes.get(label, 1) for label in order], _steps(kept, node.output_shape(), order))
        return [gemm(a, b, result, turns=(False, True))]
    product = Tensor(node.output_type(), tuple(whole), of="product")
    summed_up = unary("REDUCE", product, reduced, Function="SUM", Axes=axes)
    return [binary("MULTIPLY", view(0), view(1), product), summed_up]


def _steps(term: str, shape: Sequence[int], order: Sequence[str]) -> list[int]:
    """Return the strides of a tensor's labels in an order; a label that occurs twice has the sum, a missing one 0."""
    strides = packed_strides(shape)
    return [sum(step for each, step in zip(term, strides, strict=True) if each == label) for label in order]


def _roles(labels: str, excluded: Sequence[str]) -> list[str]:
    """Return a label for each role, the first that is not taken and not excluded; empty for none."""
    left, found = [*labels], []
    for names in excluded:
        label = next((each for each in left if each not in names), "")
        found.append(label)
        left = [each for each in left if each != label]
    return found


MATRICES: Final[Table] = table_of(
    {
        "MatMul": _matmul,
        "Gemm": _gemm,
        "QLinearMatMul": _qlinear_matmul,
        "MatMulInteger": _matmul_integer,
        "Einsum": _einsum,
        "com.microsoft:FusedMatMul FusedMatMulActivation": _fused_matmul,
        "com.microsoft:MatMulIntegerToFloat": _matmul_integer_to_float,
        "com.microsoft:DynamicQuantizeMatMul": _dynamic_quantize_matmul,
        "com.microsoft:MatMulNBits": _matmul_n_bits,
    }
)
