"""Descriptors and levels that the recorded calls of a device are about, by the names of the cases."""

from __future__ import annotations

from typing import Final

from dml_tile.descriptors.tile import OperatorDesc, TileOperatorDesc
from dml_tile.directml.enums import FeatureLevel
from tests.helpers.descriptors import GOOD, page_tile, row

LEVELS: Final[dict[str, list[int | str]]] = {
    "all known": list(FeatureLevel),
    "descending": sorted(FeatureLevel, reverse=True),
    "dup": [0x1000, 0x1000],
    "unknown 0x7000 only": [0x7000],
    "unknown 0x1234 + 1_0": [0x1234, 0x1000],
    "0 only": [0],
    "0x7000+1_0": [0x7000, 0x1000],
    "0x1234 only": [0x1234],
    "0x1FFF + 2_0": [0x1FFF, 0x2000],
    "0x5FFF only": [0x5FFF],
    "0x4FFF+1_0": [0x4FFF, 0x1000],
    "count 0": [],
    "null list count 0": [],
}

OWNED: Final = {"InputTensor__Flags": 1}
INITIALIZED: Final[dict[str, list[TileOperatorDesc]]] = {
    "1 plain": [GOOD],
    "1 owned": [page_tile(**OWNED)],
    "2 plain": [GOOD] * 2,
    "2 owned": [page_tile(**OWNED)] * 2,
    "owned+plain": [page_tile(**OWNED), GOOD],
    "0 operators": [],
    "0 operators null array": [],
    "8 owned": [page_tile(**OWNED)] * 8,
    "owned strided": [row("FLOAT32", [2, 3], [1, 1], InputTensor__Strides=[3, 1], **OWNED)],
    "owned uint8": [row("UINT8", [1, 1, 2, 3], [1, 1, 3, 3], **OWNED)],
    "owned int64": [row("INT64", [1, 1, 2, 3], [1, 1, 3, 3], **OWNED)],
}
NO_OPERATORS: Final = (
    *(0, 178, 179, 1000, 1001, 12_345, 100_000, 0x7FFFFFFF, 0x80000020, 0xBFFFFFFF, 0xC0000000, 0xC0000001, 0xFFFFFFFE),
    0xFFFFFFFF,
)
"""Types of operators that there are not."""
BAD: Final = page_tile(Repeats=[1, 1, 3, 4])
OPERATORS: Final[dict[str, OperatorDesc | TileOperatorDesc | None]] = {
    "good": GOOD,
    "bad": BAD,
    "null DML_OPERATOR_DESC*": None,
    "type 0, null desc": OperatorDesc(type=0, desc=None),
    **{f"type {number}, tile desc": OperatorDesc(type=number, desc=GOOD) for number in NO_OPERATORS},
}
