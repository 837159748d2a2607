"""Checking a descriptor: its findings, their order and text, and its lowest level."""

from __future__ import annotations

import time

import pytest

from dml_tile.descriptors.tile import OperatorDesc, TileOperatorDesc
from dml_tile.directml.data_types import TensorDataType
from dml_tile.directml.enums import HRESULT, FeatureLevel
from dml_tile.errors import DmlError
from dml_tile.execution.executor import execute
from dml_tile.findings import Basis, Severity
from dml_tile.rules.check import check, not_a_tile, require
from tests.helpers.descriptors import GOOD, OPERATOR, at, changed, page_tile, row

D, R, I = Basis.DOCUMENTED, Basis.RUNTIME, Basis.INFERRED  # noqa: E741


IMPLIED = "set it to 4 and Repeats to {1, 1, 3, 3}, which OutputTensor.Sizes implies"


@pytest.mark.parametrize(
    ("fields", "suggestion"),
    [
        ({"RepeatsCount": 3}, "set it to 4"),
        ({"RepeatsCount": 2, "Repeats": [3, 3]}, IMPLIED),
        ({"RepeatsCount": 2, "Repeats": [3, 3], "OutputTensor__Sizes": [1, 1, 6, 10]}, None),
        ({"RepeatsCount": 2, "Repeats": [3, 3], "OutputTensor__Sizes": [1, 1, 0, 9]}, None),
    ],
)
def test_the_repeats_that_the_sizes_imply_are_suggested(fields: dict[str, object], suggestion: str | None) -> None:
    found = check(page_tile(**fields))
    assert [finding.suggestion for finding in found if finding.rule == "DML-TILE-RepeatsCount"] == [suggestion]
    # leading repeats may be missing: no size is suggested
    assert {finding.suggestion for finding in found if finding.rule == "DML-TILE-OutputTensor-Sizes"} <= {None}


@pytest.mark.parametrize(
    ("desc", "crashes", "hresult"),
    [
        (page_tile(Repeats=None), [True], None),
        (page_tile(Repeats=None, RepeatsCount=3), [False, True], HRESULT.E_INVALIDARG),
        (changed(row("FLOAT64", [2], [2]), Repeats=None), [False, False, True], None),
        (row("FLOAT64", [2], [2]), [False, False], None),
    ],
    ids=["alone", "refused before it is read", "beside what only the documentation refuses", "a warning alone"],
)
def test_a_crash_has_no_hresult_unless_something_is_refused_before(
    desc: TileOperatorDesc, crashes: list[bool], hresult: HRESULT | None
) -> None:
    with pytest.raises(DmlError) as caught:
        require(desc, "6_2")
    assert [finding.crash for finding in caught.value.findings] == crashes
    assert caught.value.hresult == hresult
    assert all(finding.hresult is None for finding in caught.value.findings if finding.crash)
    kept = [finding.severity for finding in caught.value.findings if not finding.crash]
    assert set(kept) <= {Severity.WARNING if hresult is None else Severity.ERROR}


def test_what_was_not_measured_is_said_to_be_inferred() -> None:
    (finding,) = check(OperatorDesc(type=1, desc=None))
    assert finding.basis == D | I
    bytes_ = row("UINT8", [1] * 4, [1] * 4)
    assert {finding.basis for finding in check(bytes_, at("2_1", typed_uav_loads=False))} == {I}


def test_require_raises_the_findings_and_nothing_for_a_good_descriptor() -> None:
    require(GOOD, "1_0")
    require(OPERATOR, "1_0")
    with pytest.raises(DmlError, match=r"E_INVALIDARG 0x80070057\n  \[DML-TILE-RepeatsCount\] RepeatsCount: 3 was"):
        require(page_tile(RepeatsCount=3))


def test_messages_say_what_the_runtime_makes_of_32_bits() -> None:
    wide = row("FLOAT32", [2, 1], [1, 1], InputTensor__Strides=[2**32 - 1, 0], InputTensor__TotalTensorSizeInBytes=4)
    messages = {finding.rule: finding.message for finding in check(wide, "5_2")}
    assert messages["DML-BUFFER-Strides-extent"] == "the extent is 4294967296 elements, which is 0 modulo 2^32"
    assert messages["DML-BUFFER-TotalTensorSizeInBytes-minimum"].endswith(
        "at least 17179869184 was expected (DirectML computes in 32 bits here, and expects 0)"
    )
    doubles = row("FLOAT64", [4], [1])
    assert "(DirectML takes it)" in check(doubles)[0].message
    assert "(DirectML takes it)" not in check(doubles, at("6_4", double_precision=False))[0].message


def test_an_operator_of_another_kind_is_not_judged() -> None:
    assert not_a_tile("DML_OPERATOR_GEMM").hresult is None
    assert not_a_tile("DML_OPERATOR_GEMM").message == "DML_OPERATOR_GEMM is not a tile; only tiles are checked"
    assert [finding.rule for finding in check(OperatorDesc(type=1, desc=GOOD))] == ["DML-OPERATOR-not-a-tile"]


def test_acceptance_is_not_monotone_in_the_level() -> None:
    wrapping = row("FLOAT32", [3], [1], InputTensor__Strides=[2**32 - 1], InputTensor__TotalTensorSizeInBytes=2**34 - 4)
    assert not check(wrapping, "5_2", "runtime")
    assert check(wrapping, "6_2", "runtime")


def test_wrong_arguments_are_errors_that_say_what_was_expected() -> None:
    with pytest.raises(TypeError, match="a TileOperatorDesc or an OperatorDesc was expected, not a dict"):
        check({})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a TileOperatorDesc was expected, not a OperatorDesc"):
        execute(OPERATOR, b"", bytearray())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'documentation', 'runtime', 'both'"):
        check(GOOD, against="docs")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"did you mean windows-11-21h2"):
        check(GOOD, "windows-11-21h1")


def test_a_carrier_of_the_bits_is_suggested_where_it_is_supported() -> None:
    doubles = row("FLOAT64", [1] * 4, [1] * 4)
    assert check(doubles, "4_1")[0].suggestion == "tile the same bits as UINT64"
    assert check(doubles, "4_0")[0].suggestion is None


@pytest.mark.parametrize("data_type", list(TensorDataType)[1:], ids=lambda data_type: data_type.name)
@pytest.mark.parametrize("level", list(FeatureLevel), ids=lambda level: level.short)
def test_the_documented_row_decides_on_plain_tiles(data_type: TensorDataType, level: FeatureLevel) -> None:
    floats, integers, longs = {1, 2}, {3, 4, 5, 6, 7, 8}, {10, 11}
    listed = floats | (integers if level >= 0x2100 else set()) | (longs if level >= 0x4100 else set())
    ranks = [4] if level < 0x3100 else list(range(1, 9))
    for rank in range(1, 9):
        desc = TileOperatorDesc.from_input(data_type=data_type, sizes=[2] * rank, repeats=[3] * rank)
        findings = check(desc, level, "documentation")
        assert (not findings) == (data_type in listed and rank in ranks)


def test_a_tensor_of_very_many_dimensions_is_refused_without_a_product() -> None:
    flat = {"DataType": "FLOAT32", "Sizes": [7] * 400_000, "TotalTensorSizeInBytes": 4}
    tile = TileOperatorDesc.model_validate({"InputTensor": flat, "OutputTensor": flat, "Repeats": [1] * 400_000})
    started = time.process_time()
    assert {finding.rule for finding in check(tile)} == {"DML-BUFFER-DimensionCount"}
    assert time.process_time() - started < 5
