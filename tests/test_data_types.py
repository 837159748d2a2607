"""The one table of data types, and what the package makes of each row."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Final

import numpy as np
import pytest

from dml_tile import Target, TensorDataType, TileOperatorDesc, check, execute, lower, run_lowering
from dml_tile.arrays.numpy import tile
from dml_tile.directml.data_types import (
    CARRIERS,
    ELEMENT_SIZES,
    ELEMENT_TYPES,
    ONNX_NAMES,
    OPENVINO_NAMES,
    ElementType,
    types_of,
)
from dml_tile.directml.dtypes import DTYPES, data_type_of
from dml_tile.directml.targets import TILE_SUPPORT
from dml_tile.reports.tables import KINDS

TAKEN: Final = sorted(TILE_SUPPORT[-1].data_types)


def missing(data_type: TensorDataType) -> list[str]:
    """What a data type of the support table needs and does not have."""
    since = next((row.since for row in TILE_SUPPORT if data_type in row.data_types), TILE_SUPPORT[-1].since)
    needed = {
        "whole bytes": data_type in ELEMENT_SIZES,
        "a dtype of its size": data_type in DTYPES and DTYPES[data_type].itemsize * 8 == data_type.bits,
        "its dtype's name": data_type in DTYPES and data_type_of(DTYPES[data_type]) is data_type,
        "its names in models": CARRIERS.get(data_type.onnx) is CARRIERS.get(data_type.openvino) is data_type,
        "its level": Target(since).supports_data_type(data_type),
        "a column of the matrix": data_type in KINDS.get(data_type.kind, ()),
    }
    return [what for what, has in needed.items() if not has]


@pytest.mark.parametrize("data_type", TAKEN, ids=lambda member: member.name)
def test_each_type_of_the_support_table_has_all_it_needs(data_type: TensorDataType) -> None:
    assert missing(data_type) == []
    array = np.arange(8).reshape(2, 4).astype(DTYPES[data_type])
    expected, output = np.tile(array, (2, 2)), np.zeros((4, 8), array.dtype)
    desc = TileOperatorDesc.from_array(array, (2, 2))
    assert check(desc) == ()
    execute(desc, array, output)
    assert output.tobytes() == expected.tobytes() == tile(array, (2, 2)).tobytes()
    lowered = np.zeros_like(output)
    run_lowering(lower(desc, "2_1"), array, lowered)
    assert lowered.tobytes() == expected.tobytes()


def test_a_type_that_lacks_something_is_found_out() -> None:
    assert missing(TensorDataType.UINT4) == [
        *("whole bytes", "a dtype of its size", "its dtype's name", "its level", "a column of the matrix")
    ]


MADE_UP: Final = """
import importlib.util
import sys
from pathlib import Path

def load(name, *edits):
    spec = importlib.util.find_spec(name)
    text = Path(spec.origin).read_text(encoding="utf-8")
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    exec(compile(text, spec.origin, "exec"), module.__dict__)

row = '    INT4 = 13, "int4", 4, "i4"\\n'
load(
    "dml_tile.directml.data_types",
    (row, row + '    COMPLEX64 = 14, "complex", 64, "c64"\\n'),
    ('    ElementType("complex64", None, 64, None),\\n', ""),
)
load(
    "dml_tile.directml.targets",
    ('types_of("float", "int", "int64"), TILE_PAGE', 'types_of("float", "int", "int64", "complex"), TILE_PAGE'),
    ('types_of("float64", "int64")', 'types_of("float64", "int64", "complex")'),
)
"""


def test_a_made_up_type_takes_a_row_of_its_own_and_one_of_its_level() -> None:
    """DirectML takes complex64, in a child process."""
    code = f"""{MADE_UP}
import numpy as np
from tests.test_data_types import missing
from dml_tile import *
from dml_tile.arrays.numpy import tile
from dml_tile.dialects import directml, onnx
from dml_tile.reports.tables import matrix_markdown

assert missing(TensorDataType.COMPLEX64) == []
array = np.array([1 + 2j, 3], np.complex64)
desc = TileOperatorDesc.from_array(array, [2])
assert str(desc) == "COMPLEX64 {{2}} x {{2}} -> {{4}}"
assert check(desc) == ()
assert [finding.rule for finding in check(desc, "4_0")] == ["DML-TILE-DataType-level"] * 2
output = np.zeros(4, np.complex64)
execute(desc, array, output)
assert (output == np.tile(array, 2)).all()
assert (tile(array, 2) == output).all()
lowered = np.zeros(4, np.complex64)
run_lowering(lower(desc, "2_1"), array, lowered)
assert (lowered == output).all()
assert directml.tile_desc(onnx.tile_13("complex64", [2], [2])) == desc
assert "COMPLEX64" in matrix_markdown()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_only_known_kinds_are_kinds() -> None:
    assert types_of("float64", "int4") == {TensorDataType.FLOAT64, TensorDataType.UINT4, TensorDataType.INT4}
    with pytest.raises(ValueError, match="complex: no data type is of this kind"):
        types_of("float", "complex")


def bits(name: str) -> int:
    """The bits that the name of a type gives, as in int16 and f8e4m3."""
    found = re.match("[a-z]+([0-9]+)", name)
    return int(found[1]) if found else 8  # bool


@pytest.mark.parametrize("row", ELEMENT_TYPES, ids=lambda row: row.onnx)
def test_an_element_type_and_its_carrier_have_the_size_that_their_names_give(row: ElementType) -> None:
    assert row.bits == bits(row.onnx) == bits(row.openvino or row.onnx)
    if row.carrier is not None:
        assert bits(row.carrier.onnx) == row.bits
        assert CARRIERS[row.onnx] is CARRIERS[str(row.openvino)] is row.carrier
    assert ONNX_NAMES.get(OPENVINO_NAMES.get(row.onnx, "")) == (row.onnx if row.openvino else None)


@pytest.mark.parametrize("row", [row for row in ELEMENT_TYPES if row.openvino], ids=lambda row: row.onnx)
def test_openvino_knows_each_name_and_its_size(row: ElementType) -> None:
    ov = pytest.importorskip("openvino", reason="there is no wheel of openvino for every platform")
    known = getattr(ov.Type, str(row.openvino))
    assert known.to_string() == row.openvino
    assert known.bitwidth == row.bits
    assert known.is_real() == (row.onnx[0] in "fb" and row.onnx != "bool")
