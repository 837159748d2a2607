"""The data types of a target that can carry another's bits."""

from __future__ import annotations

from typing import Final

from dml_tile.enums import TensorDataType
from dml_tile.geometry.layout import ELEMENT_SIZES
from dml_tile.targets import Target

FLOATS: Final = frozenset({TensorDataType.FLOAT32, TensorDataType.FLOAT16, TensorDataType.FLOAT64})

_CARRIERS: Final = (
    # the first of each size that the target takes; a float may be changed on its way, by what normalises floats
    TensorDataType.UINT64,
    TensorDataType.UINT32,
    TensorDataType.UINT16,
    TensorDataType.UINT8,
    TensorDataType.FLOAT32,
    TensorDataType.FLOAT16,
)


def carriers(
    element_size: int, own: TensorDataType | None, target: Target, *, allow_float_reinterpretation: bool
) -> tuple[TensorDataType, ...]:
    """One data type of each size that the target takes, the nearest to ``own`` first.

    That is ``own`` itself, then what has its size, what is larger and what is smaller, the largest first; a type whose
    elements are larger holds several. ``own`` is None for what no DirectML type stands for.
    """
    by_size: dict[int, TensorDataType] = {}
    for data_type in (own, *_CARRIERS) if own is not None else _CARRIERS:
        taken = data_type in target.tile_support.data_types and target.supports_data_type(data_type)
        if taken and (allow_float_reinterpretation or data_type == own or data_type not in FLOATS):
            by_size.setdefault(ELEMENT_SIZES[data_type], data_type)
    sizes = sorted(by_size, key=lambda size: (size != element_size, -size))
    return tuple(by_size[size] for size in sizes)
