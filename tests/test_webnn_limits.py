"""WebNN's opSupportLimits() for tile over DirectML, and its printed form."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator

from dml_tile.back_ends.webnn_limits import op_support_limits
from dml_tile.checks.models import check_via
from dml_tile.dialects import webnn as dialect
from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.targets import TargetLike
from dml_tile.emit.schemas import schemas
from dml_tile.errors import DialectError
from dml_tile.simulation.target import simulate
from tests.helpers.command_line import invoke
from tests.helpers.descriptors import at

FROM_4_0 = ["float32", "float16", "int32", "uint32", "int8", "uint8"]
FROM_4_1 = [*FROM_4_0[:4], "int64", "uint64", *FROM_4_0[4:]]


def limits(data_types: list[str]) -> object:
    tensor = {"dataTypes": data_types, "rankRange": {"min": 1, "max": 8}}
    return {"tile": {"input": tensor, "output": tensor}}


@pytest.mark.parametrize(
    ("target", "data_types"),
    [
        ("4_0", FROM_4_0),
        ("6_4", FROM_4_1),
        (at("5_2", typed_uav_loads=False), [name for name in FROM_4_1 if name not in ("int8", "uint8")]),
    ],
)
def test_the_limits_are_those_of_tile_s_documented_row_and_of_the_adapter(
    target: TargetLike, data_types: list[str]
) -> None:
    assert op_support_limits(target) == limits(data_types)
    with simulate(target):
        assert op_support_limits() == limits(data_types)


@pytest.mark.parametrize("target", ["1_0", "windows-10-22h2", "3_1"])
def test_there_is_no_context_below_4_0(target: str) -> None:
    with pytest.raises(DialectError, match="NotSupportedError: WebNN over DirectML needs DML_FEATURE_LEVEL_4_0"):
        op_support_limits(target)


@pytest.mark.parametrize("level", [level for level in FeatureLevel if level >= FeatureLevel.DML_FEATURE_LEVEL_4_0])
def test_exactly_the_tiles_within_the_limits_pass_through_chromium(level: FeatureLevel) -> None:
    tensor = op_support_limits(level)["tile"]["input"]
    for name in dialect.TILE_TYPES:
        for rank in range(10):
            request = dialect.tile(name, [1] * rank, [2] * rank)
            within = name in tensor["dataTypes"] and tensor["rankRange"]["min"] <= rank <= tensor["rankRange"]["max"]
            assert (not check_via(request, level, "chromium")) == within


@pytest.mark.parametrize(("options", "level"), [(["--target", "4_0"], "4_0"), ([], "6_4")])
def test_the_limits_are_printed_as_json_that_its_schema_describes(options: list[str], level: str) -> None:
    result = invoke("levels", "--format", "webnn", *options)
    assert result.exit_code == 0
    printed = json.loads(result.stdout)
    assert printed == op_support_limits(level)
    validator = Draft202012Validator(schemas()["webnn_op_support_limits"])
    validator.validate(printed)
    assert not validator.is_valid({"tile": {"input": printed["tile"]["input"]}})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--format", "webnn", "--target", "windows-10-22h2"], "NotSupportedError"),
        (["--format", "webnn", "--target", "9_9"], "is no known target"),
        (["--target", "6_4"], "the tables are of all targets"),
    ],
)
def test_a_wrong_target_exits_2(arguments: list[str], message: str) -> None:
    result = invoke("levels", *arguments)
    assert result.exit_code == 2
    assert message in " ".join(result.stderr.replace("│", " ").split())
