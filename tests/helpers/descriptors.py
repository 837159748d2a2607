"""Tiles for tests: the reference page's example, others like it, and targets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dml_tile.descriptors.operator import OperatorDesc
from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.directml.targets import Target


def changed(desc: TileOperatorDesc, **changes: Any) -> TileOperatorDesc:
    """A descriptor with some fields changed, by paths such as ``OutputTensor__Sizes``."""
    data = desc.model_dump(mode="json", by_alias=True)
    for path, value in changes.items():
        tensor, _, field = path.partition("__")
        if not field:
            data[tensor] = value
        elif field == "Type" or (field == "Desc" and value is None):
            data[tensor][field] = value
        else:
            data[tensor]["Desc"][field] = value
    return TileOperatorDesc.model_validate(data)


def page_tile(**changes: Any) -> TileOperatorDesc:
    """The reference page's example, with some fields changed."""
    example = TileOperatorDesc.from_input(data_type="FLOAT32", sizes=[1, 1, 2, 3], repeats=[1, 1, 3, 3])
    return changed(example, **changes)


def row(data_type: str, sizes: list[int], repeats: list[int], **changes: Any) -> TileOperatorDesc:
    """A packed tile, with some fields changed."""
    return changed(TileOperatorDesc.from_input(data_type=data_type, sizes=sizes, repeats=repeats), **changes)


def strided(data_type: str, sizes: list[int], strides: Any, repeats: list[int], output: Any) -> TileOperatorDesc:
    return TileOperatorDesc.from_input(
        data_type=data_type, sizes=sizes, strides=strides, repeats=repeats, output_strides=output
    )


def at(level: str, **capabilities: Any) -> Target:
    return replace(Target.parse(level), **capabilities)


GOOD = page_tile()
OPERATOR = OperatorDesc(type=70, desc=GOOD)
