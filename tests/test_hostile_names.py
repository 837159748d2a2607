"""Names from strangers, of files, dispatchables, resources and tensors, in every output of every command."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx
import pytest
from jsonschema import Draft4Validator, Draft202012Validator

from dml_tile.reports.report import FORMATS
from tests.helpers.check_files import BAD, INT64, write
from tests.helpers.command_line import Call
from tests.helpers.dxdispatch_models import dispatch, model, show, tile_json, write_file, zeros
from tests.helpers.hostile_names import HOSTILE_NAMES
from tests.helpers.onnx_graphs import constant, tile_node, typed
from tests.helpers.onnx_graphs import model as onnx_model
from tests.helpers.outputs import require_junit, require_safe_log, require_well_formed
from tests.helpers.paths import ROOT

DATA = ROOT / "tests" / "data"
TILE = {"type": "TILE", "RepeatsCount": 1}


def require_well_formed_outputs(check: Call, *arguments: str) -> dict[str, str]:
    """Return what ``check`` writes in each format."""
    Path("out").mkdir()
    result = check(*(f"--format={form}:out/{form}" for form in FORMATS), "-t", "6_4,4_0", "--", *arguments)
    assert result.exit_code in (1, 2)
    require_safe_log(result.stderr)
    require_well_formed("text", check("--", *arguments).stdout)
    found = {form: Path("out", form).read_text(encoding="utf-8") for form in FORMATS}
    for form, text in found.items():
        require_well_formed(form, text)
    Draft4Validator(json.loads((DATA / "sarif-2.1.0-rtm.5.json").read_text())).validate(json.loads(found["sarif"]))
    schema = json.loads((ROOT / "schemas" / "check_output.schema.json").read_text())
    Draft202012Validator(schema).validate(json.loads(found["json"]))
    require_junit(found["junit"])
    return found


def hostile_model(names: Sequence[str] = HOSTILE_NAMES) -> Any:
    """A model in which everything that has a name has each of these."""
    return {
        "resources": {name: {"initialValues": name} for name in names},
        "dispatchables": dict.fromkeys(names, TILE | BAD)
        | {f"{name}64": TILE | INT64 for name in names}
        | {f"other {name}": {"type": name} for name in names},
        "commands": [{"type": "print", "resource": f"no {name}"} for name in names]
        + [{"type": name, "resource": name} for name in names],
    }


def test_names_of_files(check: Call) -> None:
    names = []
    for name in HOSTILE_NAMES:
        for suffix, value in (("bad.json", BAD), ("no.json", [name]), ("l.jsonl", {name: name})):
            names.append(f"{name.replace('/', '_')}{suffix}")
            Path(names[-1]).write_text(json.dumps(value))
        names.append(f"{name.replace('/', '_')}.onnx")  # a folder, which no reader opens
        Path(names[-1]).mkdir()
    names.append(os.fsdecode(b"\xff\xfe.json"))
    write(names[-1], BAD)
    found = require_well_formed_outputs(check, *names)
    assert json.loads(found["json"])["results"]


def test_names_of_dispatchables_resources_and_commands(check: Call) -> None:
    require_well_formed_outputs(check, write("a.json", hostile_model()))
    assert check("a.json").stdout.count("DML-TILE-OutputTensor-Sizes") == len(HOSTILE_NAMES)


def test_names_of_nodes_tensors_and_dimensions(check: Call) -> None:
    nodes = [constant("r", [1, 2])]
    for i, name in enumerate(HOSTILE_NAMES):
        nodes += [
            tile_node("x", "r", f"y{name}", name),
            tile_node("x", f"{name}!", f"z{i}"),
            tile_node("d", name, f"w{i}"),
        ]
    inputs = [typed("x", [2, 3], onnx.TensorProto.INT64), typed("d", [HOSTILE_NAMES[0], 2])]
    inputs += [typed(name, [2], onnx.TensorProto.INT64) for name in HOSTILE_NAMES]
    onnx.save(onnx_model(*nodes, inputs=inputs), "m.onnx")
    found = require_well_formed_outputs(check, "m.onnx")
    assert json.loads(found["json"])["results"]


@pytest.mark.parametrize("name", HOSTILE_NAMES, ids=ascii)
def test_a_name_that_a_run_tells(call: Call, name: str) -> None:
    file = f"{name.replace('/', '_')}.json"
    runnable = model(
        resources=dict.fromkeys([name, f"{name}2"], zeros(4, "INT8")),
        dispatchables={name: {"type": "TILE", "desc": tile_json([4], [1], "INT8")}},
        commands=[
            dispatch(name, InputTensor=name, OutputTensor=f"{name}2"),
            *(show(f"{name}2"), write_file(name, f"of{file}.bin")),
        ],
    )
    write(file, runnable)
    result = call("run", "--", file)
    assert result.exit_code == 0, result.stderr
    require_safe_log(result.output)
    for wrong in (hostile_model([name]), [name], runnable | {"dispatchables": {name: TILE | BAD}, "commands": []}):
        write(file, wrong)
        result = call("run", "--", file)
        assert result.exit_code in (1, 2)
        require_safe_log(result.output)


@pytest.mark.parametrize("command", ["lower", "show"])
def test_names_that_are_printed_with_tables_and_drawings(call: Call, command: str) -> None:
    for name in HOSTILE_NAMES:
        file = write(f"{name.replace('/', '_')}.json", hostile_model([name]))
        require_safe_log(call(command, "-t", "4_0", "--", file).output)


@pytest.mark.parametrize("command", [["emit", "--lang"], ["lower", "-t", "4_0", "--format"]])
@pytest.mark.parametrize("language", ["cpp", "python", "json"])
def test_names_in_source_text(call: Call, command: list[str], language: str) -> None:
    for name in HOSTILE_NAMES:
        named = {"resources": {}, "dispatchables": {name: TILE | {"desc": TILE | INT64}}, "commands": []}
        file = write(f"{name.replace('/', '_')}.json", named)
        result = call(*command, language, "--", file)
        assert result.exit_code == 0
        require_safe_log(result.stderr)
        assert result.stdout.isascii()
        for line in result.stdout.split("\n"):
            assert line.isprintable()
            code, _, comment = line.partition("#" if language == "python" else "//")
            assert language == "json" or name not in code
            assert not comment.endswith("\\")
        if language == "python":
            compile(result.stdout, "emitted", "exec")
        elif language == "json":
            json.loads(result.stdout)
