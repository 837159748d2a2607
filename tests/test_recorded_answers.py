"""The emulator against every recorded answer of Microsoft's runtime to descriptors and of devices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import pytest

from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.device import CompiledOperator, Device
from dml_tile.directml.enums import Feature, FeatureLevel
from dml_tile.directml.targets import Target, tile_support
from dml_tile.errors import DmlError
from dml_tile.rules.check import check
from tests.helpers.descriptors import GOOD
from tests.helpers.recorded_answers import CRASH, OVER_READS, ROWS, S_OK, answer, recorded_answer, rows_of
from tests.helpers.recorded_questions import INITIALIZED, OPERATORS
from tests.helpers.recorded_questions import LEVELS as ASKED_LEVELS

LEVELS: Final = ("5_0", "5_2", "6_2")


def assert_answers(rows: list[dict[str, Any]], level: str, expected: Callable[[dict[str, Any]], str]) -> None:
    """Check each row at a level, and on its adapter, against the runtime."""
    wrong = {}
    for row in rows:
        target = Target.parse(level, **row.get("adapter", {}))
        findings = check(TileOperatorDesc.model_validate(row["desc"]), target, against="runtime")
        if answer(findings) != expected(row):
            wrong[row["id"]] = (expected(row), findings)
    assert not wrong


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    ("file", "count"), [("create_operator.jsonl", 3190), ("adapters.jsonl", 336), ("alignments.jsonl", 210)]
)
def test_every_recorded_answer_is_reproduced(file: str, count: int, level: str) -> None:
    rows = rows_of(file)
    assert len(rows) == count
    assert_answers(rows, level, lambda row: recorded_answer(row, level))


@pytest.mark.parametrize("level", LEVELS)
def test_over_reads_are_found_where_the_runtime_was_recorded_to_crash_of_them(level: str) -> None:
    rows = rows_of("over_reads.jsonl")
    assert len(rows) == 85
    assert {recorded_answer(row, level) for row in rows} == {CRASH, S_OK, "0x80070057"}
    for row in rows:
        findings = check(TileOperatorDesc.model_validate(row["desc"]), level, against="runtime")
        rules = {finding.rule for finding in findings}
        if recorded_answer(row, level) == CRASH:
            assert rules & OVER_READS, row["id"]
        else:
            assert answer(findings) == recorded_answer(row, level), row["id"]
            assert rules - OVER_READS or not rules, row["id"]


@pytest.mark.long
@pytest.mark.parametrize("level", [level for level in FeatureLevel if level.short not in LEVELS], ids=str)
def test_another_level_answers_as_the_nearest_recorded_one_within_its_documented_row(level: FeatureLevel) -> None:
    has_rows = level < FeatureLevel.DML_FEATURE_LEVEL_5_0
    recorded_at = "5_0" if has_rows else "5_2" if level < FeatureLevel.DML_FEATURE_LEVEL_6_0 else "6_2"
    support = tile_support(level)

    def expected(row: dict[str, Any]) -> str:
        buffers = [row["desc"][name] for name in ("InputTensor", "OutputTensor") if row["desc"][name]]
        is_in_row = all(
            buffer["DataType"] in support.data_types and buffer["DimensionCount"] in support.dimension_counts
            for buffer in buffers
        )
        return recorded_answer(row, recorded_at) if is_in_row or not has_rows else "0x80070057"

    assert_answers(ROWS, level.short, expected)


# The device: its creation, its queries, what it makes

Case = dict[str, Any]

CASES: Final = [
    row for file in ("device_5_0", "device_6_2", "api_6_2", "interfaces") for row in rows_of(f"{file}.jsonl")
]


def result_of(function: Callable[[], Any]) -> tuple[str, Any]:
    try:
        return "0x00000000", function()
    except DmlError as error:
        return error.hresult.hex if error.hresult is not None else "CRASH", None


def created(case: Case) -> str:
    identity = case["id"]
    if case["group"] == "create_device_flags":
        flags = int(identity.split("flags=")[1].split()[0], 0)
        minimum = 0x7000 if "fl=0x7000" in identity else None
        return result_of(lambda: Device(case["runtime"], minimum, flags, against="runtime"))[0]
    minimum = int(identity, 0) if identity.startswith("0x") else identity
    return result_of(lambda: Device(case["runtime"], minimum, against="runtime"))[0]


def supported(case: Case) -> tuple[str, str]:
    device = Device(case["runtime"], against="runtime")
    identity = case["id"]
    if case["group"] == "unknown_feature":
        return result_of(lambda: device.check_feature_support(int(identity), 0))[0], case["out"]
    if case["group"] == "tensor_data_type_support":
        result, yes = result_of(lambda: device.check_feature_support(Feature.TENSOR_DATA_TYPE_SUPPORT, int(identity)))
        return result, f"{int(yes):#x}"
    levels = ASKED_LEVELS.get(identity) or ([identity.removeprefix("only ")] if identity.startswith("only ") else [])
    result, level = result_of(lambda: device.check_feature_support(Feature.FEATURE_LEVELS, levels))
    return result, f"{int(level or 0):#x}"


def api(case: Case) -> tuple[str, Any]:
    """The result of one call of the API, and what it made."""
    device = Device(case["runtime"], against="runtime")
    operator = device.create_operator(GOOD)
    identity = case["id"]
    match case["group"]:
        case "create_operator" | "operator_type":
            return result_of(lambda: device.create_operator(OPERATORS[identity]))
        case "compile_flags":
            return result_of(lambda: device.compile_operator(operator, int(identity, 0)))
        case "initializer":
            if identity == "count 1 null array":
                return result_of(lambda: device.create_operator_initializer(None))
            compiled = [device.compile_operator(device.create_operator(desc)) for desc in INITIALIZED[identity]]
            return result_of(lambda: device.create_operator_initializer(compiled))
        case "device":
            return device.get_device_removed_reason().hex, None
    foreign = Device(case["runtime"]).create_operator(GOOD)
    calls: dict[str, Callable[[], CompiledOperator]] = {
        "null operator": lambda: device.compile_operator(None),
        "null operator bad flags": lambda: device.compile_operator(None, 8),
        "operator of another device": lambda: device.compile_operator(foreign),
        "twice": lambda: device.compile_operator(operator),
    }
    return result_of(calls[identity])


WITHOUT_A_MEANING: Final[dict[str, Callable[[Case], bool]]] = {
    "Python has no interface ids": lambda case: case["group"].endswith(("_iid", "_qi")) or "null riid" in case["id"],
    "Python has no out-pointers": lambda case: "null ppv" in case["id"],
    "a device of Direct3D 12 is made where none is given": lambda case: "null d3d12 device" in case["id"],
    "a query has no pointers and no structs with sizes": lambda case: (
        case["group"].endswith("_bad") and case["id"] not in ASKED_LEVELS
    ),
    "objects have no COM bookkeeping": lambda case: case["group"] == "after_removal",
}


def why_without_a_meaning(case: Case) -> str | None:
    return next((why for why, applies in WITHOUT_A_MEANING.items() if applies(case)), None)


MEANT: Final = [case for case in CASES if why_without_a_meaning(case) is None]


@pytest.mark.parametrize("group", sorted({case["group"] for case in MEANT}))
def test_the_device_answers_as_recorded(group: str) -> None:
    for case in (case for case in MEANT if case["group"] == group):
        if group.startswith("create_device"):
            assert created(case) == case["hresult"], case
        elif "out" in case:
            assert supported(case) == (case["hresult"], case["out"]), case
        else:
            result, made = api(case)
            assert result == case["hresult"], case
            if "binding" in case:
                properties = made.get_binding_properties()
                assert case["binding"] == {
                    "RequiredDescriptorCount": properties.required_descriptor_count,
                    "TemporaryResourceSize": properties.temporary_resource_size,
                    "PersistentResourceSize": properties.persistent_resource_size,
                }, case


def test_compiling_twice_gives_two_objects() -> None:
    (case,) = (case for case in MEANT if case["id"] == "twice")
    device = Device("6_2")
    operator = device.create_operator(GOOD)
    assert (device.compile_operator(operator) is device.compile_operator(operator)) == case["same_object"]


def test_few_cases_but_those_of_com_are_left_out() -> None:
    assert Counter(map(why_without_a_meaning, CASES)) == {
        None: 258,
        "Python has no interface ids": 146,
        "Python has no out-pointers": 8,
        "a device of Direct3D 12 is made where none is given": 4,
        "a query has no pointers and no structs with sizes": 62,
        "objects have no COM bookkeeping": 15,
    }


@pytest.mark.parametrize("level", LEVELS)
def test_the_persistent_resource_is_as_large_as_recorded(level: str) -> None:
    device = Device(level, against="runtime")
    sizes = [case for case in ROWS if "persistent_resource_size" in case]
    assert len(sizes) > 100
    for case in sizes:
        if isinstance(case["hresult"], dict) and case["hresult"][level] != "0x00000000":
            continue
        expected = case["persistent_resource_size"]
        expected = expected[level] if isinstance(expected, dict) else expected
        operator = device.create_operator(TileOperatorDesc.model_validate(case["desc"]))
        compiled = device.compile_operator(operator)
        assert compiled.get_binding_properties().persistent_resource_size == expected, case
