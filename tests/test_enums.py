"""The constants, against the values in DirectML.h."""

from __future__ import annotations

from enum import IntEnum, IntFlag

import pytest

from dml_tile.directml import enums
from dml_tile.directml.data_types import TensorDataType
from dml_tile.directml.enums import HRESULT, FeatureLevel


@pytest.mark.parametrize(
    ("enum", "names"),
    [
        (
            TensorDataType,
            "UNKNOWN FLOAT32 FLOAT16 UINT32 UINT16 UINT8 INT32 INT16 INT8 FLOAT64 UINT64 INT64 UINT4 INT4",
        ),
        (enums.TensorType, "INVALID BUFFER"),
        (enums.TensorFlags, "NONE OWNED_BY_DML"),
        (enums.Feature, "TENSOR_DATA_TYPE_SUPPORT FEATURE_LEVELS"),
        (enums.CreateDeviceFlags, "NONE DEBUG"),
    ],
)
def test_enumerators_count_from_0(enum: type[IntEnum | IntFlag], names: str) -> None:
    assert {name: int(member) for name, member in enum.__members__.items()} == {
        name: value for value, name in enumerate(names.split())
    }


def test_the_execution_flags_are_bits() -> None:
    assert [int(flag) for flag in enums.ExecutionFlags.__members__.values()] == [0, 1, 2, 4]


def test_a_tile_is_operator_70() -> None:
    assert int(enums.OperatorType.TILE) == 70


def test_the_levels_are_their_digits() -> None:
    names = "1_0 2_0 2_1 3_0 3_1 4_0 4_1 5_0 5_1 5_2 6_0 6_1 6_2 6_3 6_4"
    assert [level.short for level in enums.FeatureLevel] == names.split()
    for level in enums.FeatureLevel:
        major, minor = level.short.split("_")
        assert level.value == int(f"0x{major}{minor}00", 16)


def test_a_result_code_is_shown_with_its_name() -> None:
    assert str(HRESULT.E_INVALIDARG) == "E_INVALIDARG 0x80070057"
    assert HRESULT.DXGI_ERROR_DEVICE_REMOVED.hex == "0x887A0005"
    assert HRESULT.S_OK.hex == "0x00000000"


def test_the_limits_are_directml_s() -> None:
    assert (enums.DML_TENSOR_DIMENSION_COUNT_MAX, enums.DML_TENSOR_DIMENSION_COUNT_MAX1) == (5, 8)
    assert enums.DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT == 16
    assert enums.DML_TEMPORARY_BUFFER_ALIGNMENT == enums.DML_PERSISTENT_BUFFER_ALIGNMENT == 256


@pytest.mark.parametrize("number", [41, 10, 64])
def test_a_level_without_quotes_is_told_from_an_integer(number: int) -> None:
    name = f"{number // 10}_{number % 10}"
    with pytest.raises(ValueError, match=f"in Python {name} is the integer {number}, write '{name}'"):
        FeatureLevel.parse(number)
