"""Enumerators, levels, the DirectML libraries and Windows releases that have them, and the matrix of the releases."""

from __future__ import annotations

import itertools
import re
from typing import Any, Final

import pytest

from dml_tile.checking import check
from dml_tile.directml import enums
from dml_tile.directml.data_types import TensorDataType
from dml_tile.directml.enums import HRESULT, FeatureLevel
from dml_tile.directml.targets import (
    DIRECTML_VERSIONS,
    PACKAGES,
    WINDOWS_RELEASES,
    Target,
    target_names,
    tile_rows,
)
from dml_tile.reports.levels import KINDS, NOT_TAKEN, matrix_rows
from tests.helpers.command_line import invoke
from tests.helpers.descriptors import at, row
from tests.helpers.report_pages import parsed, text_of


@pytest.mark.parametrize(
    "value", ["4_1", "4.1", "DML_FEATURE_LEVEL_4_1", "dml_feature_level_4_1", " 4_1 ", 0x4100, "0x4100"]
)
def test_a_level_is_read_in_each_spelling(value: str | int) -> None:
    assert FeatureLevel.parse(value) is FeatureLevel.DML_FEATURE_LEVEL_4_1


LISTED: Final = r"is no feature level; expected one of 1_0, 2_0, .*6_4"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        *((value, LISTED) for value in ("4_2", "", "4", "0x4200", 0x1100, 0, True, -1, 16640.0, [1])),
        *((number, f"in Python {name} is the integer {number}, write '{name}'")
          for number, name in ((41, "4_1"), (10, "1_0"), (64, "6_4"))),
    ],
)  # fmt: skip
def test_what_is_no_level_is_an_error_that_lists_them_or_says_what_to_write(value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FeatureLevel.parse(value)


TARGETS: Final = {
    "1_0": "directml-1.0.0 windows-10-1903 windows-10-1909",
    "2_0": "directml-1.1.0 windows-10-2004 windows-10-20h2 Windows-10-22H2",
    "2_1": "directml-1.2.0",
    "3_0": "directml-1.4.3",
    "3_1": "directml-1.5.1 onnxruntime-directml-1.9.0",
    "4_0": "directml-1.6.0 windows-11-21h2",
    "4_1": "directml-1.7.0",
    "5_0": "directml-1.8.2 windows-11-22h2 windows-11-23h2",
    "5_1": "directml-1.9.1",
    "5_2": "directml-1.10.1 5_2",
    "6_0": "directml-1.11.0",
    "6_1": "directml-1.12.1 onnxruntime-directml-1.16.3 onnxruntime-directml-1.16",
    "6_2": "directml-1.13.1 windows-11-24h2 windows-server-2025 windows-11-25h2 windows-11-26h2 "
    "onnxruntime-node-1.17.3 onnxruntime-node-1.17",
    "6_3": "directml-1.14.1 onnxruntime-node-1.18.0 onnxruntime-genai-directml-0.2.0 onnxruntime-genai-directml-0.3",
    "6_4": "directml-1.15.4 directml-1.15 onnxruntime-directml-1.24.4 onnxruntime-node-1.19.1 "
    "onnxruntime-node-1.20.1 onnxruntime-node-1.25 "
    "onnxruntime-windowsml-1.23.2 onnxruntime-windowsml-1.30.0 onnxruntime-genai-winml-0.15.0",
}


@pytest.mark.parametrize("level", TARGETS)
def test_a_target_is_found_by_its_name(level: str) -> None:
    for name in TARGETS[level].split():
        target = Target.parse(name)
        assert (target.feature_level.short, target.name) == (level, name.lower())


@pytest.mark.parametrize(
    ("name", "note"),
    [
        *((windows, "inferred") for windows in ("windows-10-22h2", "windows-11-25h2", "windows-10-1909")),
        ("windows-server-2025", "the build of windows-11-24h2, 26100: the DirectML version is inferred"),
        ("directml-1.14.1", "no version table"),
        ("onnxruntime-directml-1.18.1", "no version table"),
        ("onnxruntime-directml-1.14.9", "this release was not read; its DirectML is taken to be that of 1.14.1"),
        *((f"onnxruntime-directml-{release}", "") for release in ("1.14.0", "1.14", "1.24")),
        ("windows-11-26h2", "inferred; build 26300, announced for the fall of 2026"),
        ("onnxruntime-genai-directml-0.2.0", "no version table"),
        ("onnxruntime-node-1.17", "this release was not read; its DirectML is taken to be that of 1.17.3"),
        ("onnxruntime-node-1.24.1", ""),
        ("onnxruntime-genai-winml-0.18.0", ""),
    ],
)
def test_what_is_not_documented_of_a_target_is_noted(name: str, note: str) -> None:
    found = Target.parse(name).note
    assert note in found if note else not found


NO_CAPABILITY: Final = "is no capability; expected no-double-precision, no-typed-uav-loads, no-native"
NONSENSE: Final = "vista,,directml-,directml-1.x,directml-1.15.04,directml-1.１5.0,onnxruntime-directml-1,windows-"
NEAREST: Final = {
    "windows-11-21h1": "windows-11-21h2",
    "widnows-10-2004": "windows-10-2004",
    "directml-1.16.0": "directml-1.15.0",
    "directml-1.3.0": "directml-1.13.0",
    "directml-1.8.3": "directml-1.8.2",
    "onnxruntime-directml-2.0.0": "onnxruntime-directml-1.10.0",
    "onnxruntime-node-1.31": "onnxruntime-node-1.30.0",
    "4_2": "4_1",
    "ort-1.20": r": did you mean onnxruntime-directml-1\.20\?$",
    "ort-1.20.1": r": did you mean onnxruntime-node-1\.20\.1, onnxruntime-directml-1\.20\.1\?$",
    "onnxruntime-1.16.3": r": did you mean onnxruntime-directml-1\.16\.3\?$",
}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        *((name, f"is no known target.*{nearest}") for name, nearest in NEAREST.items()),
        ("onnxruntime-node-1.16.3", "is no target: there is no DirectML in it; it has no DirectML provider"),
        ("onnxruntime-node-1.17.0", "no DirectML in it; its provider loads that of Windows: name windows-RELEASE$"),
        ("onnxruntime-genai-directml-0.14.1", "no DirectML in it; that of onnxruntime-directml, which it requires, is"),
        ("onnxruntime-genai-winml-0.10", "in it; that of the onnxruntime beside it is loaded, else that of"),
        ("windows-11-26h1", "is no target: its build, 28000, is of another servicing branch, for part"),
        ("windows-10-1809", r"'windows-10-1809' is no target: DirectML begins with windows-10-1903 \(build 18362\)$"),
        ("windows-server-2019", "is no target: DirectML begins with windows-10-1903"),
        ("windows-server-2022", "is no target: Microsoft's tables do not say .* 20348; name the feature level"),
        *((nonsense, "is no known target") for nonsense in NONSENSE.split(",")),
        *((f"5_2+{missing}", NO_CAPABILITY) for missing in ("no-uav", "", "no-typed-uav-loads+x")),
    ],
)
def test_an_unknown_name_or_capability_is_an_error_with_what_was_expected(name: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Target.parse(name)


def test_every_listed_name_is_understood() -> None:
    names = target_names()
    assert len(names) == len(set(names))
    for name in names:
        assert Target.parse(name).name == name


def test_a_package_has_releases_in_order_each_with_a_directml_or_what_is_loaded_instead() -> None:
    for package, rows in itertools.groupby(PACKAGES, key=lambda each: each.package):
        ends = [tuple(map(int, end.split("."))) for each in rows for end in dict.fromkeys((each.first, each.last))]
        assert ends == sorted(set(ends)), package
    assert all(bool(each.directml) != bool(each.instead) for each in PACKAGES)


def test_the_rows_only_grow() -> None:
    for older, newer in itertools.pairwise(tile_rows()):
        assert older.since < newer.since
        assert older.data_types <= newer.data_types
        assert set(older.dimension_counts) <= set(newer.dimension_counts)
    never = {TensorDataType.FLOAT64, TensorDataType.UINT4, TensorDataType.INT4, TensorDataType.UNKNOWN}
    assert not never & tile_rows()[-1].data_types


def test_newer_versions_of_directml_never_have_lower_levels() -> None:
    levels = [row.level for row in DIRECTML_VERSIONS]
    assert levels == sorted(levels)


CAPABILITIES: Final = ("double-precision", "typed-uav-loads", "native-16-bit-ops")
WEAK: Final = Target("5_0", name="weak", typed_uav_loads=False)  # type: ignore[arg-type]
NO_LOADS: Final = at("5_2", typed_uav_loads=False)
NO_DOUBLES: Final = at("windows-10-2004", double_precision=False)


@pytest.mark.parametrize(
    ("target", "spelling", "label", "text"),
    [
        (WEAK, "5_0+no-typed-uav-loads", "weak (5_0)", "Target('5_0', name='weak', typed_uav_loads=False)"),
        (
            NO_DOUBLES,
            "windows-10-2004+no-double-precision",
            "windows-10-2004 (2_0)",
            "Target('2_0', name='windows-10-2004', double_precision=False)",
        ),
        ("5_2+no-typed-uav-loads", "5_2+no-typed-uav-loads", None, None),
        (NO_LOADS, "5_2+no-typed-uav-loads", "5_2", "Target('5_2', typed_uav_loads=False)"),
        ("6_2+no-native-16-bit-ops+no-typed-uav-loads", "6_2+no-typed-uav-loads+no-native-16-bit-ops", None, None),
        ("WINDOWS-11-22H2+no-double-precision", "windows-11-22h2+no-double-precision", None, None),
        ("windows-11-21h2", "windows-11-21h2", "windows-11-21h2 (4_0)", None),
        ("directml-1.14", "directml-1.14", None, None),
        ("4_1", "4_1", "4_1", None),
        (0x4100, "4_1", "4_1", None),
    ],
)
def test_a_target_has_a_spelling_a_label_and_a_short_repr_that_reads_back(
    target: Target | str | int, spelling: str, label: str | None, text: str | None
) -> None:
    parsed = Target.parse(target)
    assert parsed.capabilities == (parsed.double_precision, parsed.typed_uav_loads, parsed.native_16_bit_ops)
    assert parsed.capabilities == tuple(f"+no-{name}" not in spelling for name in CAPABILITIES)
    assert parsed is target or not isinstance(target, Target)
    if isinstance(target, str):
        assert {Target.parse(name) for name in (parsed.spelling, parsed.name, target.upper())} == {parsed}
    assert (parsed.spelling, repr(parsed)) == (spelling, text or f"Target.parse('{spelling}')")
    assert label in (None, str(parsed))
    assert eval(repr(parsed)) == parsed


def test_values_are_directml_s() -> None:
    assert [*map(int, enums.Feature)] == [0, 1]
    assert [int(flag) for flag in enums.ExecutionFlags.__members__.values()] == [0, 1, 2, 4]
    names = "1_0 2_0 2_1 3_0 3_1 4_0 4_1 5_0 5_1 5_2 6_0 6_1 6_2 6_3 6_4"
    assert [level.short for level in enums.FeatureLevel] == names.split()
    for level in enums.FeatureLevel:
        major, minor = level.short.split("_")
        assert level.value == int(f"0x{major}{minor}00", 16)


def test_a_result_code_is_shown_with_its_name() -> None:
    assert str(HRESULT.E_INVALIDARG) == "E_INVALIDARG 0x80070057"
    assert HRESULT.DXGI_ERROR_DEVICE_REMOVED.hex == "0x887A0005"
    assert HRESULT.S_OK.hex == "0x00000000"


# The matrix of all releases: each cell against the support table, in each format

RELEASES: Final = [release.name for release in WINDOWS_RELEASES]
TYPES: Final = ["FLOAT32", "FLOAT16", "UINT32", "UINT16", "UINT8", "INT32", "INT16", "INT8", "UINT64", "INT64"]
RANGES: Final = {"4": range(4, 5), "1 to 8": range(1, 9), NOT_TAKEN: range(0)}


@pytest.mark.parametrize("name", RELEASES)
def test_each_cell_agrees_with_check(name: str) -> None:
    (cells,) = (dict(zip(KINDS, line[3:], strict=True)) for line in matrix_rows() if line[0] == name)
    assert [*cells] == ["float", "int", "int64"]
    assert sorted(data_type.name for types in KINDS.values() for data_type in types) == sorted(TYPES)
    for kind, counts in cells.items():
        for data_type, rank in itertools.product(KINDS[kind], range(1, 9)):
            accepted = not check(row(data_type.name, [2] * rank, [1] * rank), name, against="documentation")
            assert accepted == (rank in RANGES[counts])


def test_the_page_holds_the_rows_of_markdown_and_needs_no_other_file() -> None:
    printed = {form: invoke("levels", "--format", form) for form in ("html", "markdown")}
    assert {(result.exit_code, result.stderr) for result in printed.values()} == {(0, "")}
    page = printed["html"].stdout
    heading, _, *lines = (line.strip("| ").split(" | ") for line in printed["markdown"].stdout.splitlines())
    matrix, *_ = parsed(page).iter("table")
    assert [list(map(text_of, tr)) for tr in matrix.iter("tr")] == [heading, *lines]
    assert not re.search(r"<script [^>]*src|<link|<img|@import|url\(|\bsrc=", page)
    assert page.count('scope="row"') == len(RELEASES) + len(PACKAGES)
    assert "float: 16 and 32 bits; int: 8 to 32 bits" in page
