"""Makes a descriptor as plain as it can be without losing what it was found for."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.directml.data_types import ELEMENT_SIZES
from dml_tile.directml.enums import UINT_MAX
from dml_tile.geometry.layout import wrapping_size_in_bytes
from tests.helpers.descriptors import changed

Values = dict[str, Any]
"""A tile's values, or some of them, by paths such as ``InputTensor__Sizes``."""

MAX_ROUNDS: Final = 200

_PLAIN: Final = {"DataType": 1, "Flags": 0, "Strides": None, "GuaranteedBaseOffsetAlignment": 0}


def shrunk(desc: TileOperatorDesc, keeps: Callable[[Sequence[TileOperatorDesc]], Sequence[bool]]) -> TileOperatorDesc:
    """Return the plainest descriptor reached from one by steps that ``keeps`` allows, which is asked of many."""
    for _ in range(MAX_ROUNDS):
        plainer = [candidate for values in _plainer(_values(desc)) if (candidate := changed(desc, **values)) != desc]
        kept = next((candidate for candidate, keep in zip(plainer, keeps(plainer), strict=True) if keep), None)
        if kept is None:
            return desc
        desc = kept
    return desc


def _values(desc: TileOperatorDesc) -> Values:
    values: Values = {"RepeatsCount": desc.repeats_count, "Repeats": desc.repeats}
    for name, tensor in (("InputTensor", desc.input_tensor), ("OutputTensor", desc.output_tensor)):
        if tensor and tensor.desc:
            values |= {f"{name}__{field}": value for field, value in tensor.desc.model_dump(by_alias=True).items()}
    return values


def _plainer(values: Values) -> Iterator[Values]:
    """Yield changes that make a tile plainer in one respect, the boldest first."""
    dimensions = range(len(values["Repeats"] or ()))
    for i in dimensions:
        yield _without_dimension(values, i)
    for tensor in ("InputTensor", "OutputTensor"):
        if f"{tensor}__Sizes" in values:
            yield from ({f"{tensor}__{field}": plain} for field, plain in _PLAIN.items())
            yield _with_implied_total(values, tensor)
    for i in dimensions:
        for array in ("Repeats", "InputTensor__Sizes"):
            if i < len(values.get(array) or ()):
                yield from (_with_product(values, array, i, smaller) for smaller in _smaller(values[array][i]))
    for path, value in values.items():
        if isinstance(value, tuple):
            yield from ({path: _with(value, i, smaller)} for i, old in enumerate(value) for smaller in _smaller(old))
        elif value is not None and not path.endswith("__DataType"):
            yield from ({path: smaller} for smaller in _smaller(value))


def _smaller(value: int) -> list[int]:
    """Return smaller values, the smallest first, closer and closer."""
    return sorted({smaller for smaller in (0, 1, *(value - 2**i for i in range(64))) if 0 <= smaller < value})


def _with(array: tuple[int, ...], i: int, value: int) -> tuple[int, ...]:
    return (*array[:i], value, *array[i + 1 :])


def _with_implied_total(values: Values, tensor: str) -> Values:
    sizes = (values[f"{tensor}__Sizes"] or ())[: values[f"{tensor}__DimensionCount"]]
    element_size = ELEMENT_SIZES.get(values[f"{tensor}__DataType"], 0)
    total = wrapping_size_in_bytes(element_size, sizes, values[f"{tensor}__Strides"]) if sizes else 0
    return {f"{tensor}__TotalTensorSizeInBytes": total}


def _without_dimension(values: Values, i: int) -> Values:
    arrays = {path: value[:i] + value[i + 1 :] for path, value in values.items() if isinstance(value, tuple)}
    counts = {path: max(value - 1, 0) for path, value in values.items() if path.endswith("Count")}
    return arrays | counts


def _with_product(values: Values, array: str, i: int, value: int) -> Values:
    """Return a repeat or an input's size changed, and the output's size with it, modulo 2^32."""
    changes = {array: _with(values[array], i, value)}
    other = values.get("InputTensor__Sizes" if array == "Repeats" else "Repeats") or ()
    output = values.get("OutputTensor__Sizes") or ()
    if i < min(len(other), len(output)):
        changes["OutputTensor__Sizes"] = _with(output, i, value * other[i] & UINT_MAX)
    return changes
