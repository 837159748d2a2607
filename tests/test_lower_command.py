"""``dml-tile lower``, as a person or a program would use it, and ``check``'s suggestion to do so."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import pytest
from jsonschema import Draft202012Validator
from typer.testing import Result

from dml_tile.checks import lowerings
from dml_tile.descriptors.operator import OperatorDesc
from tests.helpers.check_files import GATHER, WITHOUT_FIELDS, write
from tests.helpers.command_line import Call
from tests.helpers.dxdispatch_models import tile_json
from tests.helpers.onnx_graphs import BOOL, constant, save, tile_node, typed
from tests.helpers.paths import EXAMPLES
from tests.test_editors import SCHEMAS

OLD: Final = "windows-10-2004"
AT_OLD: Final = "windows-10-2004 (2_0)"
NO_MODEL_RUNS: Final = "dml-tile: DxDispatch runs no model at {}: it needs IDMLDevice1, of 2_1 and later\n"
LONG: Final = tile_json([2, 3, 1, 4, 5], [1, 1, 6, 1, 2], "INT64")
ODD: Final = tile_json([3], [2], "UINT8")
BROKEN: Final = LONG | {"RepeatsCount": 4}
PLAIN: Final = tile_json([1, 1, 2, 3], [1, 1, 2, 1])
MODEL: Final = EXAMPLES / "models" / "two_tiles.onnx"
UNKNOWN: Final = "Repeats[0]: computed by Shape 'shape_of' from the dimension 'batch'"


@pytest.fixture
def lower(call: Call) -> Call:
    def lowered(*arguments: str, stdin: str | None = None) -> Result:
        return call("lower", *arguments, "--target", OLD, stdin=stdin)

    return lowered


# Text


def test_each_tile_of_a_folder_has_a_verdict_and_the_status_is_1_if_one_has_no_lowering(lower: Call) -> None:
    write("in/all.json", [LONG, ODD, PLAIN, BROKEN, WITHOUT_FIELDS])
    shutil.copy(MODEL, "in")
    result = lower("in", "--dim", "batch=4")
    assert result.exit_code == 1
    verdicts = [line for line in result.stdout.splitlines() if line.startswith("in/")]
    assert verdicts == [
        f"in/all.json#/0: lowered at {AT_OLD}",
        f"in/all.json#/1: not lowered at {AT_OLD}",
        f"in/all.json#/2: accepted at {AT_OLD}; there is nothing to lower",
        f"in/all.json#/3: not lowered at {AT_OLD}",
        f"in/all.json#/4/operator: not lowered at {AT_OLD}",
        *(f"in/two_tiles.onnx#{node}: lowered at {AT_OLD}" for node in ("enlarge", "number")),
    ]
    assert "error[DML-LOWER-elements] there is no lowering\n" in result.stdout
    assert "error[DML-TILE-RepeatsCount] E_INVALIDARG" in result.stdout
    assert "note[DML-OPERATOR-not-a-tile] not emulated\n" in result.stdout
    assert "DML_OPERATOR_GATHER is not Tile; only Tile can be lowered\n" in result.stdout
    assert "not checked" not in result.stdout
    assert result.stdout.endswith("1 accepted, 3 lowered, 3 not lowered\n")


REPEATED: Final = tile_json([2] * 8, [2] * 8)
UNREADABLE: Final = {"InputTensor": 1, "OutputTensor": 2, "Repeats": [1]}
NONE: Final = "0 accepted, 0 lowered\n"


@pytest.mark.parametrize(
    ("value", "options", "status", "stdout", "stderr"),
    [
        (LONG, "--no-float-carriers", 1, "error[DML-LOWER-DataType] there is no lowering", ""),
        (REPEATED, "", 0, "cost: 3 tiles, 300032 bytes read and written, 1.14 times the direct", ""),
        ([LONG, PLAIN, UNREADABLE], "--pointer /1", 0, f"a.json#/1: accepted at {AT_OLD}; there is nothing to", ""),
        ([LONG, UNREADABLE], "--pointer /1", 2, NONE, "#/1: InputTensor is 1; an object was"),
        ([LONG, UNREADABLE], "", 2, f"a.json#/0: lowered at {AT_OLD}\n", "#/1: InputTensor is 1; an object was"),
        ([LONG, ODD], "--pointer /7", 2, NONE, "a.json#/7: there is no such tile; there are /0, /1\n"),
        ([], "--pointer /7", 2, NONE, "a.json#/7: there is no such tile; no tile has a pointer\n"),
        (LONG, "--pointer /7", 2, NONE, "a.json#/7: there is no such tile; no tile has a pointer\n"),
        ([LONG, ODD], "--format json --pointer /0", 0, '"dispatchables"', NO_MODEL_RUNS.format(OLD)),
        ([LONG, ODD], "--format json", 2, "", "a.json: a model is of one tile; choose one with --pointer: /0, /1\n"),
        ([LONG, GATHER, ODD], "--format json", 2, "", "choose one with --pointer: /0, /2\n"),
        ([GATHER] * 2, "--format json", 1, "", f"a.json#/1: not lowered at {AT_OLD}\n  note[DML-OPERATOR-not-a-tile]"),
        ([LONG] * 12, "--format json", 2, "", "--pointer: /0, /1, /2, /3, /4, /5, /6, /7, /8, /9 and 2 more\n"),
        (ODD, "--format json", 1, "", f"a.json: not lowered at {AT_OLD}\n  error[DML-LOWER-elements]"),
        (ODD, "--format cpp", 1, "", f"a.json: not lowered at {AT_OLD}\n  error[DML-LOWER-elements]"),
        ([LONG, ODD, LONG], "--format cpp", 1, "tile_2_step1_operator = ", f"a.json#/1: not lowered at {AT_OLD}\n"),
        (ODD, "--format python", 1, "", f"a.json: not lowered at {AT_OLD}\n  error[DML-LOWER-elements]"),
        (LONG, "--dim batch", 2, "", "NAME=SIZE"),
    ],
)
def test_options_choose_tiles_and_bound_their_lowerings(
    lower: Call, value: Any, options: str, status: int, stdout: str, stderr: str
) -> None:
    result = lower(write("a.json", value), *options.split())
    assert result.exit_code == status
    for text, expected in (result.stdout, stdout), (result.stderr, stderr):
        assert expected in text if expected else not text


def test_a_model_without_a_tile_is_an_error_unless_it_is_one_of_a_folder(lower: Call) -> None:
    Path("in").mkdir()
    save("in/none.onnx", onnx.helper.make_node("Relu", ["x"], ["y"]), inputs=[typed("x", [2])])
    assert lower("in").exit_code == 0
    advice = "`dml-tile check --via ort` says which provider takes its nodes"
    for options in ((), ("--via", "ort")):
        result = lower("in/none.onnx", *options)
        assert (result.exit_code, result.stdout) == (2, NONE)
        assert result.stderr == f"dml-tile: in/none.onnx: has no tiles; {advice}\n"


def test_a_tile_that_onnxruntime_keeps_from_directml_is_not_lowered_through_it(call: Call) -> None:
    nodes = (tile_node("c"), onnx.helper.make_node("Add", ["x", "y"], ["z"]))
    folded = save("folded.onnx", constant("c", [1, 2]), *nodes, repeats=[2], inputs=[typed("x", [4])])
    cases = (
        ("1.24", folded, "note[ORT-NODE-gone] no refusal\n    its inputs are constants; onnxruntime folds it\n"),
        ("1.9", save("cpu.onnx", ir_version=7), "note[ORT-CPU-version] no refusal\n    Tile-13: "),
        (
            "1.24",
            save("empty.onnx", repeats=[2, 0]),
            "error[DML-DIALECT-empty] DirectML is not called\n    Repeats[1]: ",
        ),
    )
    for release, file, reason in cases:
        result = call("lower", file, "--via", "ort", "--target", f"onnxruntime-directml-{release}")
        assert result.exit_code == 1
        assert reason in result.stdout


def test_a_node_that_is_partly_unknown_or_that_its_dialect_refuses_is_not_lowered(lower: Call, call: Call) -> None:
    result = lower(save("wrong.onnx", tile_node(name="wrong"), inputs=[typed("x", [2, 3, 4])]))
    assert result.exit_code == 1
    assert "wrong.onnx#wrong: not lowered" in result.stdout
    assert "error[DML-DIALECT-ONNX] DirectML is not called" in result.stdout
    result = lower(str(MODEL), "--pointer", "number")
    assert result.exit_code == 1
    assert result.stdout.splitlines()[1] == f"  known at run time only: {UNKNOWN}"
    assert "error[DML-TILE-DataType-level]" in result.stdout
    accepted = call("lower", str(MODEL), "--pointer", "number")
    assert (accepted.exit_code, accepted.stdout) == (
        0, f"{MODEL}#number: accepted so far at 6_4\n  known at run time only: {UNKNOWN}\n",
    )  # fmt: skip
    no_model = call("lower", str(MODEL), "--pointer", "number", "--format", "json")
    assert (no_model.exit_code, no_model.stdout) == (1, "")
    assert f"accepted so far at 6_4\n  known at run time only: {UNKNOWN}\n" in no_model.stderr


# Models of DxDispatch


RUNS: Final = [
    (data_type, target, sizes, repeats, flags)
    for data_type in ("FLOAT32", "FLOAT64", "INT64", "INT16", "UINT8")
    for target in ("windows-10-1903", "directml-1.2", "windows-11-21h2")
    for sizes, repeats, flags in (([2, 1, 2, 3], [1, 2, 1, 3], 1), ([2] * 6, [2] * 6, 0))
    if (data_type, target, flags) != ("UINT8", "windows-10-1903", 1)  # which has no lowering: 3 is odd
]


@pytest.mark.parametrize(("data_type", "target", "sizes", "repeats", "flags"), RUNS)
def test_the_model_runs_at_the_target_and_prints_what_numpy_tiles(
    call: Call, data_type: str, target: str, sizes: list[int], repeats: list[int], flags: int
) -> None:
    write("tile.json", tile_json(sizes, repeats, data_type, input={"Flags": flags}))
    made = call("lower", "tile.json", "--target", target, "--format", "json")
    runs = target != "windows-10-1903"  # where the tiles pass, but DxDispatch has no device
    assert (made.exit_code, made.stderr) == (0, "" if runs else NO_MODEL_RUNS.format(target))
    assert call("check", "-", "--target", target, stdin=made.stdout).exit_code == 0
    result = call("run", "-", "--target", target if runs else "2_1", stdin=made.stdout)
    values = np.arange(np.prod(sizes)).astype(data_type.lower()).reshape(sizes)
    expected = ", ".join(f"{value:g}" for value in np.tile(values, repeats).ravel().tolist())
    assert (result.exit_code, result.stdout) == (0, f"Resource 'output': {expected}\n")


def test_the_model_of_a_tile_that_passes_and_of_a_node_runs_too(call: Call, lower: Call) -> None:
    made = lower(write("plain.json", PLAIN), "--format", "json").stdout
    printed = call("run", "-", "--target", "2_1", stdin=made).stdout
    assert printed == "Resource 'output': 0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5\n"
    assert Draft202012Validator(SCHEMAS["dxdispatch_model"]).is_valid(json.loads(made))
    save("bools.onnx", tile_node(name="bools"), inputs=[typed("x", [2, 2], BOOL)])
    made = lower("bools.onnx", "--format", "json").stdout
    assert call("run", "-", "--target", "2_1", stdin=made).stdout == "Resource 'output': 0, 1, 0, 1, 2, 3, 2, 3\n"


# Code


@pytest.mark.parametrize("form", ["text", "json", "cpp", "python"])
def test_standard_input_is_lowered_and_an_unreadable_file_exits_2(lower: Call, form: str) -> None:
    assert lower("-", "--format", form, stdin=json.dumps(LONG)).exit_code == 0
    Path("broken.json").write_text("{")
    Path("empty").mkdir()
    for name, message in (
        ("broken.json", "unreadable JSON: EOF"),
        ("missing.json", "No such file"),
        ("empty", "the folder holds no models and no descriptors"),
    ):
        result = lower(name, "--format", form)
        assert result.exit_code == 2
        assert message in result.stderr
        assert result.stdout == ("0 accepted, 0 lowered\n" if form == "text" else "")


# Suggestions of check


def suggestions(result: Result) -> set[str]:
    """Return the commands that the output of a check suggests."""
    lines = [line.partition("lower it (")[2] for line in result.stdout.splitlines()]
    return {line.rpartition(")")[0] for line in lines if line}


def test_check_suggests_the_command_and_other_remedies(call: Call) -> None:
    operator = OperatorDesc.model_validate({"Type": "TILE", "Desc": LONG})
    path = write("a.json", operator.model_dump(mode="json", by_alias=True))
    assert suggestions(call("check", path, "-t", "3_0")) == {"dml-tile lower a.json --target 3_0"}
    path = write("long.json", LONG)
    printed = call("check", path, "--target", OLD).stdout
    command = f"dml-tile lower long.json --target {OLD}"
    for version in ("1.5.0", "1.7.0"):
        assert f"try: lower it ({command}), or ship DirectML {version} or later with the application\n" in printed
    findings = json.loads(call("check", path, "--target", OLD, "--format", "json").stdout)["results"][0]["findings"]
    assert all(finding["suggestion"].startswith(f"lower it ({command})") for finding in findings)


def lowered_by(call: Call, commands: set[str]) -> list[int]:
    """Return the number of tiles that each command lowers, in this folder."""
    split = [shlex.split(command) for command in commands]
    assert {program for program, *_ in split} <= {"dml-tile"}
    done = [call(*arguments) for _, *arguments in split]
    assert {each.exit_code for each in done} <= {0}
    return [each.stdout.count(": lowered at") for each in done]


NAMES: Final = ["long.json", "it's two.json", "-option.json", "$HOME;x.json", "é.json", "folder/a.json"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *((name, LONG) for name in NAMES),
        *((NAMES[1], value) for value in ([LONG, BROKEN, LONG], [LONG, {"Repeats": 1}])),
    ],
)
def test_the_suggested_commands_do_what_they_promise(call: Call, name: str, value: Any) -> None:
    result = call("check", "--target", "windows-11-21h2", "--target", OLD, "--", write(name, value))
    assert lowered_by(call, suggestions(result)) == [1] * 2 * (value == LONG or value.count(LONG))


def test_the_suggested_command_names_the_node_and_fixes_the_same(call: Call) -> None:
    fixed = ["--dim", "batch=4", "--input-shape", "tokens=4,16"]
    result = call("check", str(MODEL), "--target", OLD, *fixed)
    assert lowered_by(call, suggestions(result)) == [1, 1]
    long = [word for i in range(20) for word in ("--dim", f"{'d' * 50}{i}=1", "--input-shape", f"{'i' * 50}{i}=1")]
    assert not suggestions(call("check", str(MODEL), "--target", OLD, *fixed, *long)), "nobody types as much"
    assert len(suggestions(call("check", write("a.json", LONG), "--target", OLD, *long))) == 1, "it needs none of them"


@pytest.mark.parametrize(
    ("data_type", "name"),
    [
        *((data_type, "a") for data_type in ("float64", "bfloat16", "bool", "complex64", "complex128")),
        *(("float64", name) for name in ("", "-t", "a b'", "a/b#c")),
    ],
)
def test_the_suggested_commands_find_nodes_of_any_type_and_name(call: Call, data_type: str, name: str) -> None:
    element = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(data_type)) if data_type != "bfloat16" else 16
    tiles = tile_node(name=name), tile_node(output="z", name="other")
    save("a.onnx", *tiles, inputs=[typed("x", [2, 2], element)])
    assert lowered_by(call, suggestions(call("check", "a.onnx", "--target", OLD))) == [1, 1]


def test_a_command_is_quoted_as_its_shell_does(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write("two words.json", LONG)
    assert suggestions(call("check", path, "-t", OLD)) == {f"dml-tile lower 'two words.json' --target {OLD}"}
    monkeypatch.setattr(lowerings, "as_typed", subprocess.list2cmdline)
    assert suggestions(call("check", path, "-t", OLD)) == {f'dml-tile lower "two words.json" --target {OLD}'}


def test_nothing_is_suggested_that_would_not_help(call: Call) -> None:
    aligned = tile_json([1, 1, 2, 3], [1, 1, 3, 3], input={"GuaranteedBaseOffsetAlignment": 4})
    write("a.json", [PLAIN, BROKEN, aligned])
    save("strings.onnx", tile_node(name="strings"), inputs=[typed("x", [2, 3], onnx.TensorProto.STRING)])
    save("large.onnx", tile_node(name="large"), repeats=(2**40, 1), inputs=[typed("x", [2, 3])])
    result = call("check", "a.json", "strings.onnx", "large.onnx", str(MODEL), "--target", OLD)
    assert {command.rpartition(" ")[2] for command in suggestions(result)} == {"enlarge"}
    assert not suggestions(call("check", str(MODEL), "--target", OLD, "--via", "chromium"))
    result = call("check", write("a\nb.json", LONG), "--target", OLD)
    assert "try: ship DirectML 1.7.0" in result.stdout
    assert not suggestions(result), "nobody can type its name"
