"""The variable DML_TILE_TARGET, for functions, devices and commands, and what goes before and after it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from dml_tile import Device, check, current_target, simulate
from tests.helpers.command_line import Call
from tests.helpers.descriptors import row

LONGS = row("INT64", [1, 1, 1, 2], [1, 1, 1, 2])
VARIABLE = "DML_TILE_TARGET"


@pytest.fixture
def file(tmp_path: Path) -> str:
    (tmp_path / "longs.json").write_text(LONGS.model_dump_json(by_alias=True))
    return "longs.json"


def test_the_variable_is_the_default_target(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "windows-11-21h2")
    assert current_target().name == Device().target.name == "windows-11-21h2"
    assert {finding.rule for finding in check(LONGS)} == {"DML-TILE-DataType-level"}
    assert not check(LONGS, "4_1")
    with simulate("4_1"):
        assert not check(LONGS)
    for nothing in ("", " ", ", "):
        monkeypatch.setenv(VARIABLE, nothing)
        assert current_target().name == "6_4"
    monkeypatch.setattr(os, "environ", {VARIABLE: "2_0"})  # any mapping may stand in for it
    assert current_target().name == "2_0"
    monkeypatch.setattr(os, "environ", {})
    assert current_target().name == "6_4"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("4_0,4_1", r"^DML_TILE_TARGET names 2 targets \(4_0, 4_1\); one is needed here: name it as the target$"),
        ("windows-7", r"^DML_TILE_TARGET: 'windows-7' is no known target; .*did you mean"),
    ],
)
def test_a_variable_that_names_no_target_or_several_is_an_error(
    monkeypatch: pytest.MonkeyPatch, text: str, message: str
) -> None:
    monkeypatch.setenv(VARIABLE, text)
    for ask in (current_target, Device, lambda: check(LONGS)):
        with pytest.raises(ValueError, match=message):
            ask()
    assert not check(LONGS, "4_1")
    with simulate("4_0"):
        assert check(LONGS)


def test_commands_take_several_and_say_what_an_adapter_lacks(
    check: Call, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    monkeypatch.setenv(VARIABLE, "windows-11-21h2, 6_4")
    for arguments, targets in (
        ([], ["windows-11-21h2", "6_4"]),
        (["--target", "5_2+no-typed-uav-loads"], ["5_2+no-typed-uav-loads"]),
    ):
        result = check(file, *arguments, "--format", "json")
        assert [one["target"] for one in json.loads(result.stdout)["results"]] == targets


def test_an_option_goes_before_the_variable_and_that_before_pyproject(
    check: Call, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, file: str
) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.dml-tile]\ntargets = ["4_0"]\n')
    monkeypatch.delenv(VARIABLE, raising=False)
    assert check(file).exit_code == 1
    monkeypatch.setenv(VARIABLE, "4_1")
    assert check(file).exit_code == 0
    assert check(file, "--target", "4_0").exit_code == 1
    with simulate("4_0"):
        assert check(file).exit_code == 1
        assert check(file, "--target", "4_1").exit_code == 0


@pytest.mark.parametrize(
    ("command", "text", "message"),
    [
        ("lower", "4_0 4_1", ""),
        ("show", "4_0 4_1", ""),
        ("check", "windows-7", ": 'windows-7' is no known target"),
    ],
)
def test_a_command_names_the_variable_that_it_cannot_take(
    call: Call, monkeypatch: pytest.MonkeyPatch, file: str, command: str, text: str, message: str
) -> None:
    monkeypatch.setenv(VARIABLE, text)
    result = call(command, file)
    assert result.exit_code == 2
    assert f"Invalid value for {VARIABLE}{message}" in result.stderr
