"""The names of element types, and the DirectML data types that carry their bits."""

from __future__ import annotations

import re
from typing import Any

import pytest

from dml_tile.element_types import CARRIERS, ELEMENT_TYPES, ONNX_NAMES, OPENVINO_NAMES, ElementType
from dml_tile.enums import TensorDataType

ov: Any = pytest.importorskip("openvino", reason="there is no wheel of openvino for every platform")


def bits(name: str) -> int:
    """The bits that the name of a type tells, as in int16 and f8e4m3."""
    found = re.match("[a-z]+([0-9]+)", name)
    assert found
    return int(found[1])


@pytest.mark.parametrize("row", ELEMENT_TYPES, ids=lambda row: row.onnx)
def test_openvino_knows_each_name_and_its_size(row: ElementType) -> None:
    known = getattr(ov.Type, row.openvino)
    assert known.to_string() == row.openvino
    assert known.bitwidth == (8 if row.onnx == "bool" else bits(row.openvino))
    assert known.is_real() == (row.onnx[0] in "fb" and row.onnx != "bool")


@pytest.mark.parametrize("row", ELEMENT_TYPES, ids=lambda row: row.onnx)
def test_a_carrier_has_the_size_of_what_it_carries(row: ElementType) -> None:
    assert bits(row.carrier.name.lower()) == (8 if row.onnx == "bool" else bits(row.openvino))
    if row.onnx.upper() in TensorDataType.__members__:
        assert row.carrier is TensorDataType[row.onnx.upper()]
    assert CARRIERS[row.onnx] is CARRIERS[row.openvino] is row.carrier


@pytest.mark.parametrize("row", ELEMENT_TYPES, ids=lambda row: row.onnx)
def test_the_names_translate_both_ways(row: ElementType) -> None:
    assert OPENVINO_NAMES[row.onnx] == row.openvino
    assert ONNX_NAMES[row.openvino] == row.onnx
