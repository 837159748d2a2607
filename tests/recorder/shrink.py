"""Makes a descriptor as plain as it can be without losing what it was found for."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.geometry.layout import calc_buffer_tensor_size

Tile = dict[str, Any]

MAX_ROUNDS: Final = 200

_ARRAYS: Final = ("Sizes", "Strides")
_PLAIN: Final = {"DataType": 1, "Flags": 0, "Strides": None, "GuaranteedBaseOffsetAlignment": 0}


def shrunk(desc: TileOperatorDesc, keeps: Callable[[Sequence[TileOperatorDesc]], Sequence[bool]]) -> TileOperatorDesc:
    """The plainest descriptor that can be reached from one by steps that ``keeps`` allows, which is asked of many."""
    for _ in range(MAX_ROUNDS):
        plainer = [TileOperatorDesc.model_validate(tile) for tile in _plainer(_flat(desc))]
        plainer = [candidate for candidate in plainer if candidate != desc]
        kept = next((candidate for candidate, keep in zip(plainer, keeps(plainer), strict=True) if keep), None)
        if kept is None:
            return desc
        desc = kept
    return desc


def _flat(desc: TileOperatorDesc) -> Tile:
    """A descriptor in the recorded form, its enumerators as numbers."""
    tile: Tile = {"RepeatsCount": desc.repeats_count, "Repeats": desc.repeats and list(desc.repeats)}
    for name, tensor in (("InputTensor", desc.input_tensor), ("OutputTensor", desc.output_tensor)):
        buffer = tensor.desc if tensor else None
        tile[name] = tensor and {
            "Type": int(tensor.type),
            "Desc": buffer
            and {
                "DataType": int(buffer.data_type),
                "Flags": int(buffer.flags),
                "DimensionCount": buffer.dimension_count,
                "Sizes": None if buffer.sizes is None else list(buffer.sizes),
                "Strides": buffer.strides and list(buffer.strides),
                "TotalTensorSizeInBytes": buffer.total_tensor_size_in_bytes,
                "GuaranteedBaseOffsetAlignment": buffer.guaranteed_base_offset_alignment,
            },
        }
    return tile


def _plainer(tile: Tile) -> Iterator[Tile]:
    """Tiles that are plainer in one respect, the boldest first."""
    for i in range(len(tile["Repeats"] or ())):
        yield _without_dimension(tile, i)
    for buffer in _buffers(tile):
        for field, value in _PLAIN.items():
            yield _with(tile, buffer, field, value)
        yield _with_implied_total(tile, buffer)
    for i in range(len(tile["Repeats"] or ())):
        for value in _smaller(tile["Repeats"][i]):
            yield _with_product(tile, i, "Repeats", value)
        for buffer in _buffers(tile)[:1]:
            for value in _smaller(_size(tile, buffer, i)):
                yield _with_product(tile, i, "Sizes", value)
    for value in _smaller(tile["RepeatsCount"]):
        yield {**tile, "RepeatsCount": value}
    for buffer in _buffers(tile):
        for field in ("Flags", "DimensionCount", "TotalTensorSizeInBytes", "GuaranteedBaseOffsetAlignment"):
            for value in _smaller(tile[buffer]["Desc"][field]):
                yield _with(tile, buffer, field, value)
        for array in _ARRAYS:
            for i, old in enumerate(tile[buffer]["Desc"][array] or ()):
                for value in _smaller(old):
                    changed = copy.deepcopy(tile)
                    changed[buffer]["Desc"][array][i] = value
                    yield changed


def _buffers(tile: Tile) -> list[str]:
    return [name for name in ("InputTensor", "OutputTensor") if tile[name] and tile[name]["Desc"]]


def _smaller(value: int) -> list[int]:
    """Smaller values, the smallest first, closer and closer."""
    return sorted({smaller for smaller in (0, 1, *(value - 2**i for i in range(64))) if 0 <= smaller < value})


def _size(tile: Tile, buffer: str, i: int) -> int:
    sizes = tile[buffer]["Desc"]["Sizes"] or ()
    return sizes[i] if i < len(sizes) else 0


def _with(tile: Tile, buffer: str, field: str, value: Any) -> Tile:
    changed = copy.deepcopy(tile)
    changed[buffer]["Desc"][field] = value
    return changed


def _with_implied_total(tile: Tile, buffer: str) -> Tile:
    desc = tile[buffer]["Desc"]
    sizes = (desc["Sizes"] or ())[: desc["DimensionCount"]]
    total = calc_buffer_tensor_size(desc["DataType"], sizes, desc["Strides"]) if sizes else 0
    return _with(tile, buffer, "TotalTensorSizeInBytes", total)


def _without_dimension(tile: Tile, i: int) -> Tile:
    changed = copy.deepcopy(tile)
    del changed["Repeats"][i]
    changed["RepeatsCount"] = max(changed["RepeatsCount"] - 1, 0)
    for buffer in _buffers(changed):
        desc = changed[buffer]["Desc"]
        desc["DimensionCount"] = max(desc["DimensionCount"] - 1, 0)
        for array in _ARRAYS:
            if desc[array]:
                del desc[array][i : i + 1]
    return changed


def _with_product(tile: Tile, i: int, field: str, value: int) -> Tile:
    """A repeat or an input's size changed, and the output's size with it, modulo 2^32."""
    changed = copy.deepcopy(tile)
    if field == "Repeats":
        changed["Repeats"][i] = value
    elif i < len(changed["InputTensor"]["Desc"]["Sizes"] or () if changed["InputTensor"] else ()):
        changed["InputTensor"]["Desc"]["Sizes"][i] = value
    if _buffers(changed) == ["InputTensor", "OutputTensor"] and i < len(changed["OutputTensor"]["Desc"]["Sizes"] or ()):
        product = _size(changed, "InputTensor", i) * changed["Repeats"][i] % 2**32
        changed["OutputTensor"]["Desc"]["Sizes"][i] = product
    return changed
