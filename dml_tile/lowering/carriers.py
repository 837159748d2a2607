"""Choosing the data types that can carry another type's bits at a target."""

from __future__ import annotations

from typing import Final

from dml_tile.data_types import ELEMENT_SIZES, FLOATS, TensorDataType
from dml_tile.targets import Target

_CARRIERS: Final = tuple(sorted(map(TensorDataType, ELEMENT_SIZES), key=FLOATS.__contains__))
"""The first of each size that the target accepts is used; floats come last, since hardware may normalise them."""


def carriers(
    element_size: int, own: TensorDataType | None, target: Target, *, allow_float_reinterpretation: bool
) -> tuple[TensorDataType, ...]:
    """Return one data type of each element size that the target accepts, the best carrier first.

    ``own`` or another type of ``element_size`` bytes comes first, then the other sizes, largest first; an element of a
    larger type carries several. ``own`` is None where DirectML has no type for the elements.
    """
    by_size: dict[int, TensorDataType] = {}
    for data_type in (own, *_CARRIERS) if own is not None else _CARRIERS:
        taken = data_type in target.tile_support.data_types and target.supports_data_type(data_type)
        if taken and (allow_float_reinterpretation or data_type == own or data_type not in FLOATS):
            by_size.setdefault(ELEMENT_SIZES[data_type], data_type)
    sizes = sorted(by_size, key=lambda size: (size != element_size, -size))
    return tuple(by_size[size] for size in sizes)
