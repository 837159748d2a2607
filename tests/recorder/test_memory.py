"""Descriptors lie in memory so that reading past an array's end is a crash."""

from __future__ import annotations

import sys
from ctypes import POINTER, cast

import pytest

from dml_tile.descriptors.operator import OperatorDesc
from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.readers.c_structs import DML_TILE_OPERATOR_DESC, read_operator_desc
from tests.helpers.descriptors import GOOD, page_tile, strided
from tests.recorder.memory import MAX_ENTRIES, guarded
from tests.recorder.workers import Crash, ask_each

TENSOR = GOOD.input_tensor
SCALED = {"Scale": 2.0, "Bias": 1.0}
RELU = {"Type": "ACTIVATION_RELU", "Desc": {}}
OPERATORS = [
    OperatorDesc(type="ELEMENT_WISE_ABS", desc={"InputTensor": TENSOR, "OutputTensor": None, "ScaleBias": SCALED}),
    OperatorDesc(type="SPLIT", desc={"InputTensor": TENSOR, "OutputTensors": [TENSOR] * 2, "Axis": 1}),
    OperatorDesc(type="FILL_VALUE_CONSTANT", desc={"OutputTensor": TENSOR, "ValueDataType": "FLOAT32", "Value": 1.5}),
    OperatorDesc(
        type="ELEMENT_WISE_ADD1",
        desc=dict.fromkeys(("ATensor", "BTensor", "OutputTensor"), TENSOR) | {"FusedActivation": RELU},
    ),
]

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="DirectML without Windows is a library for Linux")


@pytest.mark.parametrize(
    "desc",
    [
        GOOD,
        strided("UINT8", [2, 3], [1, 2], [2, 2], [9, 1]),
        page_tile(Repeats=None),
        page_tile(InputTensor=None),
        page_tile(OutputTensor__Desc=None),
        OperatorDesc(type=70, desc=GOOD),
        *OPERATORS,
        OperatorDesc(type=1000, desc=None),
    ],
)
def test_a_descriptor_reads_back(desc: TileOperatorDesc | OperatorDesc) -> None:
    expected = OperatorDesc(type=70, desc=desc) if isinstance(desc, TileOperatorDesc) else desc
    assert read_operator_desc(guarded(desc)) == expected


def test_an_entry_past_the_end_cannot_be_read() -> None:
    written = guarded(page_tile(Repeats=[7, 8, 9]))

    def repeat(i: int) -> int:
        return int(cast(written.Desc, POINTER(DML_TILE_OPERATOR_DESC)).contents.Repeats[i])

    assert list(ask_each([0, 1, 2, 3], repeat)) == [7, 8, 9, Crash("SIGSEGV")]


def test_an_array_beyond_a_page_is_refused() -> None:
    with pytest.raises(ValueError, match=f"an array has {MAX_ENTRIES + 1} entries"):
        guarded(page_tile(Repeats=[1] * (MAX_ENTRIES + 1)))
