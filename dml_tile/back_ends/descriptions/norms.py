"""Normalisations."""

from __future__ import annotations

from typing import Any, Final

from dml_tile.back_ends.descriptions.created import Described, Descriptions, binary, operator, unary
from dml_tile.back_ends.descriptions.node import KernelNode, Table, table_of
from dml_tile.back_ends.descriptions.refusals import require
from dml_tile.back_ends.descriptions.rows import name_of, operators_of
from dml_tile.back_ends.descriptions.tensors import (
    LEFT,
    MAX_DIMENSIONS,
    Alignment,
    Tensor,
    at_least,
    channels,
    scalar,
    tensor,
)
from dml_tile.directml.data_types import TensorDataType


def _batch(node: KernelNode) -> Descriptions:
    source = node.input(align=LEFT)
    rank = len(source.sizes)
    inputs = {"MeanTensor": 3, "VarianceTensor": 4, "ScaleTensor": 1, "BiasTensor": 2}
    tensors = {name: node.input(i, align=channels(rank)) for name, i in inputs.items()}
    result = node.output(align=Alignment(rank, 0, MAX_DIMENSIONS))
    fields = {"Spatial": bool(node.attribute("spatial", 1)), "Epsilon": node.attribute("epsilon", 0.0)}
    return [unary("BATCH_NORMALIZATION", source, result, **tensors, **fields)]


def _instance(node: KernelNode) -> Descriptions:
    name, fields = name_of(node), {"NormalizeVariance": True, "Epsilon": node.attribute("epsilon", 1e-5)}
    if name == "MEAN_VARIANCE_NORMALIZATION":  # of three dimensions, channels become rows
        tensors = {"ScaleTensor": node.input(1, align=channels()), "BiasTensor": node.input(2, align=channels())}
        return [unary(name, node.input(), node.output(), CrossChannel=False, **tensors, **fields)]
    source = node.input(align=LEFT)
    rank = len(source.sizes)
    tensors = {each: _channels_of(node, i, rank) for each, i in (("ScaleTensor", 1), ("BiasTensor", 2))}
    result = source.renamed(node.output().of)
    return [unary(name, source, result, **tensors, Axes=[*range(2, rank)], **fields)]


def _channels_of(node: KernelNode, i: int, rank: int) -> Tensor:
    """Return the tensor of a scale or bias, of whose sizes the last one counts."""
    given = node.input(i)
    made = tensor(given.data_type, node.shape(i)[-1:] or [1], None, channels(rank), given.of)
    return made._replace(is_owned=given.is_owned)


def _normalized(
    name: str, source: Tensor, result: Tensor, scale: Tensor | None, bias: Tensor | None, use_mean: bool, **fields: Any
) -> Described:
    """Return MEAN_VARIANCE_NORMALIZATION1, or 2, which can leave the mean alone."""
    tensors = {"ScaleTensor": scale, "BiasTensor": bias}
    is_second = name == "MEAN_VARIANCE_NORMALIZATION2"
    uses = {"UseMean": use_mean, "UseVariance": True} if is_second else {"NormalizeVariance": True}
    return unary(name, source, result, **tensors, **fields, **uses)


def _layer(node: KernelNode) -> Descriptions:
    """Describe LayerNormalization and its simplified form, with a CAST where types differ."""
    rank = len(node.shape())
    source, scale, bias = (_of_rank(node, i, rank) for i in range(3))
    require(source and scale, "an input is missing")
    assert source is not None
    assert scale is not None
    result = Tensor(node.output_type(), source.sizes, of=node.output().of)
    types = {each.data_type for each in (scale, bias, result) if each}
    require(len(types) == 1, "Scale, B and the output of several types")
    casts: list[Described] = []

    def as_float(made: Tensor) -> Tensor:
        cast = made.renamed(f"{made.of} as float", TensorDataType.FLOAT32)
        casts.append(unary("CAST", made, cast))
        return cast

    if source.data_type is TensorDataType.FLOAT16 and scale.data_type is not source.data_type:
        source = as_float(source)
    elif source.data_type is not scale.data_type:
        scale, bias = as_float(scale), as_float(bias) if bias else None
    normalized = result
    if source.data_type is not result.data_type:
        normalized = result.renamed(f"{result.of} as float", source.data_type)
        casts.append(unary("CAST", normalized, result))
    axes = [*range(node.axis(node.attribute("axis", -1), rank), len(source.sizes))]
    fields = {"Axes": axes, "Epsilon": node.attribute("epsilon", 1e-5)}
    use_mean = node.operator == "LayerNormalization"
    return [_normalized(name_of(node), source, normalized, scale, bias, use_mean, **fields), *casts]


def _of_rank(node: KernelNode, i: int, rank: int) -> Tensor | None:
    """Return an input with ones in front up to a rank, and behind up to four dimensions."""
    if not node.has(i):
        return None
    given = node.input(i, align=at_least(rank))
    made = tensor(given.data_type, given.sizes, None, LEFT, given.of)
    return made._replace(is_owned=given.is_owned)


def _mean_variance(node: KernelNode) -> Descriptions:
    source = node.input()
    axes = [node.dimension(axis, source) for axis in node.integer_list("axes", (0, 2, 3))]
    return [_normalized(name_of(node), source, node.output(), None, None, True, Axes=axes, Epsilon=1e-5)]


def _lp(node: KernelNode) -> Descriptions:
    source = node.input()
    fields = {"Axis": node.dimension(node.attribute("axis", 0), source), "Epsilon": 1e-5, "P": node.attribute("p", 2)}
    return [unary("LP_NORMALIZATION", source, node.output(), **fields)]


def _skip_layer(node: KernelNode) -> Descriptions:
    """Describe SkipLayerNormalization and its simplified form, whose bias, input 3, is taken as beta."""
    shape, epsilon = node.shape(), node.attribute("epsilon", 1e-5)
    _, name = operators_of(node.domain, node.operator, node.since, node.release)
    if node.release == (1, 14):
        whole, align = shape, at_least(len(shape))
        source, skip, scale, beta, bias = (node.optional(i, shape, align) for i in range(5))
        axes, result = [*range(node.axis(node.attribute("axis", -1)), len(shape))], node.output(align=align)
    else:
        require(len(shape) in (2, 3), f"{len(shape)} dimensions; 2 or 3 are taken")
        hidden = shape[-1]
        whole, row = [shape[0], shape[1] if len(shape) == 3 else 1, hidden, 1], [1, 1, hidden, 1]
        source, skip = node.view(0, whole), node.view(1, whole)
        scale, beta = (node.view(i, row) if node.has(i) else None for i in (2, 3))
        bias = node.view(4, whole, (0, 0, 1, 0)) if node.has(4) else None
        axes, result = [2, 3], node.result(whole)
    require(source and skip, "an input is missing")
    assert source is not None
    assert skip is not None
    total = source.renamed(node.output(3).of if node.gives(3) else "sum")
    added = [binary("ADD", source, skip, total)]
    if bias:
        added.append(binary("ADD", total, bias, total))
    use_mean = node.operator == "SkipLayerNormalization"
    return [*added, _normalized(name, total, result, scale, beta, use_mean, Axes=axes, Epsilon=epsilon)]


_CHANNELS_FIRST_SINCE: Final = (1, 16)
"""The release from which on channels_last may be 0."""


def _group(node: KernelNode) -> Descriptions:
    shape, groups, data_type = node.shape(), node.attribute("groups"), node.type()
    is_last = bool(node.attribute("channels_last", 1)) or node.release < _CHANNELS_FIRST_SINCE
    require(len(node.inputs) == 3 and len(shape) == 4, "other inputs than three, the first of 4 dimensions")
    batch, *others = shape
    area, channel_count = (others[0] * others[1], others[2]) if is_last else (others[1] * others[2], others[0])
    is_taken = node.shape(1) == node.shape(2) == [channel_count] and node.type(1) == node.type(2)
    require(is_taken and channel_count % groups == 0, "gamma and beta of other than one type and a size of groups")
    each = channel_count // groups
    sizes = (batch, groups, each, area)
    strides = (
        (channel_count * area, each, 1, channel_count) if is_last else (channel_count * area, each * area, area, 1)
    )
    source, result = node.view(0, sizes, strides), node.result(sizes, strides)
    gathered = Tensor(data_type, sizes, of="channels first" if is_last else source.of)
    normalized = Tensor(data_type, sizes, of="normalised")
    small = [node.view(i, sizes, (0, each, 1, 0)) for i in (1, 2)]
    casts: list[Described] = []
    if node.type(1) is not data_type:
        cast = [Tensor(data_type, sizes, strides, of=f"{one.of} cast") for one in small]
        casts = [unary("CAST", one, other) for one, other in zip(small, cast, strict=True)]
        small = cast
    tensors = {"ScaleTensor": small[0], "BiasTensor": small[1]}
    fields = {"CrossChannel": False, "NormalizeVariance": True, "Epsilon": node.attribute("epsilon", 1e-5)}
    made = [unary("MEAN_VARIANCE_NORMALIZATION", gathered, normalized, **tensors, **fields)]
    made += [unary("ELEMENT_WISE_IDENTITY", source, gathered)] * is_last + casts
    if node.attribute("activation", 0):
        gate = result.renamed("gate")
        return [*made, unary("ACTIVATION_SIGMOID", normalized, gate), binary("MULTIPLY", normalized, gate, result)]
    return [*made, *[unary("ELEMENT_WISE_IDENTITY", normalized, result)] * is_last]


def _embed_layer(node: KernelNode) -> Descriptions:
    """Describe EmbedLayerNormalization: gathered embeddings, their sum normalised, and the mask's lengths."""
    ids, result = node.input(0), node.output()
    kind, (_, _, batch, length) = ids.data_type, ids.sizes[-4:]
    one = Tensor(kind, (1, 1, 1, 1), of="one")

    def filled(value: int) -> Described:
        return operator("FILL_VALUE_CONSTANT", OutputTensor=one, ValueDataType=kind, Value=scalar(kind, value))

    made: list[Described] = [] if node.has(7) else [filled(0)]
    places = node.input(8) if node.has(8) else Tensor(kind, (1, 1, 1, length), of="positions")
    if not node.has(8):
        values = {"ValueStart": scalar(kind, 0), "ValueDelta": scalar(kind, 1)}
        made.append(operator("FILL_VALUE_SEQUENCE", OutputTensor=places, ValueDataType=kind, **values))
    is_one_row = places.sizes[2] == 1
    places = places._replace(sizes=ids.sizes, strides=(0, 0, 0, 1) if is_one_row else None, is_owned=False)
    tables = [(2, ids), (3, places)] + ([(4, node.input(1))] if node.has(4) else [])
    gathered = [Tensor(node.type(2), result.sizes, of=f"embedding {i}") for i, _ in tables]
    for (i, indices), part in zip(tables, gathered, strict=True):
        fields = {"IndicesTensor": indices, "Axis": 2, "IndexDimensions": 2}
        made.append(unary("GATHER", node.input(i), part, **fields))
    total = gathered[0]
    for part in gathered[1:]:
        before, total = total, total.renamed("sum")
        made.append(binary("ADD", before, part, total))
    norm = {"Axes": [3], "Epsilon": node.attribute("epsilon", 1e-5)}
    made.append(_normalized("MEAN_VARIANCE_NORMALIZATION1", total, result, node.input(5), node.input(6), True, **norm))
    if not node.has(7):
        return made
    equal = Tensor(TensorDataType.UINT32, ids.sizes, of="equal")
    ones = one._replace(sizes=ids.sizes, strides=(0, 0, 0, 0))
    lengths = Tensor(kind, (1, 1, batch, 1), of=node.output(1).of if node.gives(1) else "lengths")
    summed = unary("REDUCE", equal.renamed(equal.of, kind), lengths, Function="SUM", Axes=[3])
    return [*made, filled(1), binary("LOGICAL_EQUALS", node.input(7), ones, equal), summed]


NORMS: Final[Table] = table_of(
    {
        "BatchNormalization": _batch,
        "InstanceNormalization": _instance,
        "LayerNormalization SimplifiedLayerNormalization": _layer,
        "MeanVarianceNormalization": _mean_variance,
        "LpNormalization": _lp,
        "com.microsoft:SkipLayerNormalization SkipSimplifiedLayerNormalization": _skip_layer,
        "com.microsoft:GroupNorm": _group,
        "com.microsoft:EmbedLayerNormalization": _embed_layer,
    }
)
