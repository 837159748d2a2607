"""Element-wise operators of which no row says all."""

from __future__ import annotations

from typing import Final

import numpy as np

from dml_tile.back_ends.descriptions.created import Described, Descriptions, binary, operator, unary
from dml_tile.back_ends.descriptions.node import KernelNode, Table, table_of
from dml_tile.back_ends.descriptions.refusals import require
from dml_tile.back_ends.descriptions.rows import name_of
from dml_tile.back_ends.descriptions.tensors import Tensor, scalar
from dml_tile.directml.data_types import TensorDataType
from dml_tile.directml.dtypes import dtype_of

FLOAT32_MAX: Final = float(np.finfo(np.float32).max)

_OF_MANY: Final = {"Sum": "ADD", "Min": "MIN", "Max": "MAX", "Mean": "MEAN"}


def _ends(node: KernelNode) -> tuple[Tensor, Tensor]:
    """Return the input and the output of most operators: of the output's shape."""
    return node.input(0, node.output_shape()), node.output()


def _absolute(node: KernelNode) -> Descriptions:
    is_unsigned = node.type().name.startswith("U")
    return [unary(f"ELEMENT_WISE_{'IDENTITY' if is_unsigned else 'ABS'}", *_ends(node))]


def _negate(node: KernelNode) -> Descriptions:
    name, (source, result) = name_of(node), _ends(node)
    if name == "ELEMENT_WISE_IDENTITY":
        return [unary(name, source, result, ScaleBias={"Scale": -1.0, "Bias": 0.0})]
    return [unary(name, source, result)]


def _is_infinity(node: KernelNode) -> Descriptions:
    up, down = node.attribute("detect_positive", 1), node.attribute("detect_negative", 1)
    mode = "EITHER" if up == down else "POSITIVE" if up else "NEGATIVE"
    return [unary(name_of(node), *_ends(node), InfinityMode=mode)]


def _modulus(node: KernelNode) -> Descriptions:
    return _binary(node, f"MODULUS_{'TRUNCATE' if node.attribute('fmod', 0) else 'FLOOR'}")


def _bit_shift(node: KernelNode) -> Descriptions:
    direction = node.attribute("direction")
    require(direction in ("LEFT", "RIGHT"), f"the direction {direction!r}")
    return _binary(node, f"BIT_SHIFT_{direction}")


def _binary(node: KernelNode, name: str) -> Descriptions:
    first, result = _ends(node)
    return [binary(name, first, node.input(1, node.output_shape()), result)]


def _of_many(node: KernelNode) -> Descriptions:
    """Describe Sum, Min, Max and Mean, of one input, of two, or of more, one after the other."""
    first, *others = (node.input(i, node.output_shape()) for i in range(len(node.inputs)))
    result, count = node.output(), len(node.inputs)
    if not others:
        return [unary("ELEMENT_WISE_IDENTITY", first, result)]
    is_mean = node.operator == "Mean" and count > 2
    name = "ADD" if is_mean else _OF_MANY[node.operator]
    made = [binary(name, first, others[0], result)]
    made += [binary(name, each, result, result) for each in others[1:]]
    if is_mean:
        made.append(unary("ELEMENT_WISE_IDENTITY", result, result, ScaleBias={"Scale": 1 / count, "Bias": 0.0}))
    return made


def _clip(node: KernelNode) -> Descriptions:
    name, data_type = name_of(node), node.type()
    least, most = -FLOAT32_MAX, FLOAT32_MAX
    if name == "ELEMENT_WISE_CLIP1":
        least, most = _limits(data_type)
    low, high = (
        node.number(i) if node.has(i) else node.attribute(attribute, default)
        for i, attribute, default in ((1, "min", least), (2, "max", most))
    )
    if name == "ELEMENT_WISE_CLIP":
        return [unary(name, *_ends(node), Min=low, Max=high)]
    source, result = _ends(node)
    limits = {"Min": scalar(data_type, low), "Max": scalar(data_type, high)}
    return [unary(name, source, result, MinMaxDataType=data_type, **limits)]


def _limits(data_type: TensorDataType) -> tuple[float, float]:
    """Return the limits of a type; the least of INT64 is -(2^63 - 1) in the provider."""
    dtype = dtype_of(data_type)
    if dtype.kind == "f":
        return float(np.finfo(dtype).min), float(np.finfo(dtype).max)
    limits = np.iinfo(dtype)
    return -limits.max if data_type is TensorDataType.INT64 else limits.min, limits.max


def _power(node: KernelNode) -> Descriptions:
    source, result = _ends(node)
    if node.is_constant(1) and node.shape(1) in ([], [1] * len(node.shape(1))):
        return [unary("ELEMENT_WISE_CONSTANT_POW", source, result, Exponent=float(node.number(1)))]
    return [unary("ELEMENT_WISE_POW", source, result, ExponentTensor=node.input(1, node.output_shape()))]


_CLIPS_BOOLS_SINCE: Final = (1, 21)


def _cast(node: KernelNode) -> Descriptions:
    """Describe a Cast; one to bool has a clip to 0 and 1 behind it, whose MinMaxDataType is left 0."""
    result, target = node.output(), node.outputs[0]
    made = [unary("CAST", node.input(), result)]
    if node.release >= _CLIPS_BOOLS_SINCE and target and target.type == "bool":
        made.append(_clip_to_bool(result))
    return made


def _clip_to_bool(result: Tensor) -> Described:
    limits = {"Min": f"0x{0:016X}", "Max": f"0x{1:016X}"}
    return unary("ELEMENT_WISE_CLIP1", result, result, MinMaxDataType=TensorDataType.UNKNOWN, **limits)


def _affine(node: KernelNode) -> Descriptions:
    scale = {"Scale": node.attribute("alpha", 0.0), "Bias": node.attribute("beta", 0.0)}
    return [operator("ELEMENT_WISE_IDENTITY", InputTensor=node.input(), OutputTensor=node.output(), ScaleBias=scale)]


ELEMENT_WISE: Final[Table] = table_of(
    {
        "Abs": _absolute,
        "Neg": _negate,
        "IsInf": _is_infinity,
        "Mod": _modulus,
        "BitShift": _bit_shift,
        "Sum Min Max Mean": _of_many,
        "Clip": _clip,
        "Pow": _power,
        "Cast CastLike": _cast,
        "Affine": _affine,
    }
)
