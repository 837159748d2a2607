"""Activations that are fused into another operator: their tensors are null, and nothing is rounded before them."""

from __future__ import annotations

from dml_tile.descriptors.operator import OperatorDesc, OperatorFields
from dml_tile.directml.data_types import TensorDataType
from dml_tile.directml.targets import Target
from dml_tile.execution.operators import element_wise, reductions
from dml_tile.execution.operators.call import Array, Call, Output


def activated(desc: OperatorDesc, x: Array, target: Target) -> Array:
    """Return a fused activation's values."""
    assert isinstance(desc.desc, OperatorFields), "check refuses others"
    kernels = element_wise.KERNELS | reductions.KERNELS
    c = Call(desc.desc, {"InputTensor": x}, {"OutputTensor": Output(TensorDataType.FLOAT32, x.shape)}, target)
    found: Array = kernels[c.name](c)
    return found
