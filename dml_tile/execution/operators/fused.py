"""Activations that are fused into another operator: their tensors are null, and nothing is rounded before them."""

from __future__ import annotations

from collections.abc import Mapping

from dml_tile.descriptors.operator import OperatorDesc, OperatorFields
from dml_tile.directml.data_types import TensorDataType
from dml_tile.directml.targets import Target
from dml_tile.execution.call import Array, KernelCall, OperatorKernel, Output
from dml_tile.execution.operators import element_wise, reductions


def kernel_of(name: str, kernels: Mapping[str, OperatorKernel]) -> OperatorKernel:
    """Return an operator's kernel; a later version, such as ADD1, has that of the first, which has fewer fields."""
    return kernels[name if name in kernels else name.rstrip("123")]


def activated(desc: OperatorDesc, x: Array, target: Target) -> Array:
    """Return a fused activation's values."""
    assert isinstance(desc.desc, OperatorFields), "check refuses others"
    output = Output(TensorDataType.FLOAT32, x.shape)
    c = KernelCall(desc.desc, {"InputTensor": x}, {"OutputTensor": output}, target)
    found: Array = kernel_of(c.name, element_wise.KERNELS | reductions.KERNELS)(c)
    return found
