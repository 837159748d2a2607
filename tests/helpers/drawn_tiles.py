"""Tiles to be drawn, as JSON values, and what their pictures are drawn of."""

from __future__ import annotations

from typing import Any, Final

from rich.text import Text

from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.directml.enums import UINT_MAX
from dml_tile.pictures.marks import TilePicture, picture_of
from dml_tile.reports.text import Line
from tests.helpers.dxdispatch_models import tile_json

SHARED: Final = tile_json([2, 3], [1, 2], output={"Strides": [3, 1]})
HUGE: Final = tile_json([1] * 8, [1] * 8, input={"Sizes": [UINT_MAX] * 8}, output={"Sizes": [UINT_MAX] * 8})
TILES: Final = {
    "packed": tile_json([1, 1, 2, 3], [1, 1, 3, 3]),
    "shared": SHARED,
    "large": tile_json([64, 64], [2, 2], "FLOAT16"),
    "broadcast": tile_json([2, 3], [2, 2], input={"Strides": [0, 1]}, output={"Strides": [4096, 8]}),
    "beyond": tile_json([2, 3], [1, 2], output={"TotalTensorSizeInBytes": 40}),
    "copies": tile_json([2, 3], [2, 2]) | {"Repeats": [2, 1]},
    "huge": HUGE,
}


def picture(desc: dict[str, Any]) -> TilePicture:
    return picture_of(TileOperatorDesc.model_validate(desc))


def said(verdict: str) -> list[Line]:
    return [Line(0, Text(verdict))]
