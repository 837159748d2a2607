"""``dml-tile check`` of models and folders, as a person or a program would use it."""

from __future__ import annotations

import json
import re
import runpy
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import pytest
from jsonschema import Draft202012Validator
from typer.testing import Result

import dml_tile
from dml_tile import Severity, Verdict, check_model, sweep
from dml_tile.back_ends import BACK_ENDS
from dml_tile.checks.questions import Questions, checked_here
from dml_tile.checks.result import CheckedFile
from dml_tile.cli.jobs import counted_files
from dml_tile.directml.targets import DEFAULT_TARGET
from dml_tile.errors import InputError
from dml_tile.findings import Finding
from dml_tile.readers.model_names import MAX_NAMES, KnownShapes
from dml_tile.readers.model_tile import MAX_DIMENSIONS
from dml_tile.readers.onnx.file import subgraphs
from dml_tile.readers.onnx.tiles import MAX_CONTRADICTIONS, read_nodes
from tests.helpers.check_files import INT64 as LONG_TILE
from tests.helpers.check_files import TILE, captured, write
from tests.helpers.check_files import model as dxdispatch_model
from tests.helpers.command_line import Call, errors_of
from tests.helpers.descriptors import page_tile
from tests.helpers.ir_models import MODELS
from tests.helpers.onnx_graphs import BOOL, FLOAT, INT64, function, if_text, model, save, tile_node, typed
from tests.helpers.packages import needed
from tests.helpers.paths import EXAMPLES
from tests.test_editors import SCHEMAS

MODEL = str(EXAMPLES / "models" / "two_tiles.onnx")


def results(result: Result) -> list[dict[str, Any]]:
    return list(json.loads(result.stdout)["results"])


def test_directml_is_not_called_for_a_tile_that_its_specification_rules_out(check: Call) -> None:
    told = check(save("a.onnx", repeats=(1, -1))).stdout
    message = "ONNX Tile-13: repeats[1]: is -1; repeats must not contain negative values"
    assert f"error[DML-DIALECT-ONNX] DirectML is not called\n    {message}\n" in told


@pytest.mark.parametrize("on_a_terminal", [True, False])
def test_what_is_read_is_told_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_a_terminal: bool) -> None:
    files = [str(tmp_path / f"{i}.json") for i in range(31)]
    for file in files:
        Path(file).write_text(page_tile().model_dump_json(by_alias=True))
    monkeypatch.setattr(sys.stderr, "isatty", lambda: on_a_terminal, raising=False)
    events = counted_files(checked_here(Questions([DEFAULT_TARGET], "both"), files), len(files))
    assert isinstance(next(events)[1], tuple)
    Path(files[-1]).write_text('{"InputTensor"')
    kinds = [type(event) for _, event in events]
    assert kinds == [CheckedFile, *[tuple, CheckedFile] * 29, Finding, CheckedFile]


def test_the_example_s_models_are_what_their_script_writes(tmp_path: Path) -> None:
    needed("openvino")
    script = runpy.run_path(str(EXAMPLES / "models" / "make.py"))
    made = tmp_path / "made.onnx"
    onnx.save(script["two_tiles"](), made)
    assert list(read_nodes(made, KnownShapes())) == list(read_nodes(Path(MODEL), KnownShapes()))
    assert script["classifier"]() == onnx.load(EXAMPLES / "models" / "classifier.onnx")


def test_the_example_tells_the_same_of_onnx_and_openvino(check: Call) -> None:
    needed("openvino")
    of_ir = results(check(MODEL.replace(".onnx", ".xml"), "--input-shape", "tokens=4,16", "--format", "json"))
    of_onnx = results(check(MODEL, "--input-shape", "tokens=4,16", "--format", "json"))
    assert sorted(result["lowest_level"] for result in of_ir) == sorted(result["lowest_level"] for result in of_onnx)
    assert np.all([not result["unknown"] for result in of_ir])


@pytest.mark.parametrize(
    ("size", "rank"),
    [*((size, MAX_DIMENSIONS) for size in (2**62, 0, 1, "n")), (2**62, MAX_DIMENSIONS + 1), ("n", 60_000)],
)
def test_a_tile_of_any_number_of_dimensions_is_a_result_or_one_problem(check: Call, size: int | str, rank: int) -> None:
    """The product of many sizes is a number that Python does not print, and takes long to compute."""
    save("m.onnx", tile_node(), repeats=[1] * rank, inputs=[typed("x", [size] * rank)])
    result = check("m.onnx")
    if rank <= MAX_DIMENSIONS:
        assert (result.exit_code, result.stderr) == (0 if size in (1, "n") else 1, "")
    else:
        message = f"the input has {rank} dimensions; at most {MAX_DIMENSIONS} are read"
        assert result.exit_code == 2
        assert result.stdout == "", "a table of nothing says nothing"
        assert result.stderr.startswith(f"dml-tile: m.onnx#Tile->y: {message}\n")


OPEN = model("r = [1, 2]", tile_node(name="widen"), inputs=[typed("x", ["N", 3])])


def test_a_file_is_checked_as_on_the_command_line() -> None:
    enlarge, number = check_model(Path(MODEL), "windows-11-21h2", dims={"batch": 4})
    assert (enlarge.item.pointer, enlarge.item.unknown) == ("enlarge", ())
    assert (enlarge.verdict, enlarge.findings) == ("accepted", ())
    assert (number.item.source, number.verdict) == (MODEL, Verdict.REFUSED)
    assert {finding.severity for finding in number.findings} == {Severity.ERROR}
    assert number.item.operator == "INT64 {1,16} x {4,1} -> {4,16}"


@pytest.mark.usefixtures("call")
def test_dims_are_of_models_alone() -> None:
    (result,) = check_model(EXAMPLES / "tile.json", dims={"N": 1})
    assert result.verdict == "accepted"


@pytest.mark.usefixtures("call")
def test_a_modelproto_is_checked_too() -> None:
    (result,) = check_model(OPEN)
    assert (result.verdict, result.ok, *map(str, result.item.unknown)) == (
        "accepted so far",
        True,
        "InputTensor.Sizes[0] (N)",
    )
    assert result.item.operator == "FLOAT32 {N,3} x {1,2} -> {N,6}"
    assert str(check_model(OPEN, input_shapes={"x": [None, 3]})[0].item.unknown[0]) == "InputTensor.Sizes[0] (N)"
    (result,) = check_model(OPEN, input_shapes={"x": [2, 3]})
    assert (result.verdict, result.item.operator) == ("accepted", "FLOAT32 {2,3} x {1,2} -> {2,6}")


@pytest.mark.usefixtures("call")
def test_a_back_end_and_the_simulated_target_are_asked() -> None:
    assert [finding.rule for finding in check_model(OPEN, "4_0", via="ort").findings] == ["ORT-MODEL-device"]
    with dml_tile.simulate("2_0"):
        assert check_model(OPEN)[0].target.name == "2_0"


@pytest.mark.usefixtures("call")
@pytest.mark.parametrize(
    ("source", "options", "error", "message"),
    [
        ("missing.onnx", {}, InputError, "No such file"),
        (OPEN, {"input_shapes": {"y": [1]}}, ValueError, "no model has an input 'y'; there are 'x'"),
        (OPEN, {"dims": {"M": 1}}, ValueError, "no model names a dimension 'M'; there are 'N'"),
        (7, {}, TypeError, r"a path or an onnx\.ModelProto was expected, not a int"),
        (OPEN, {"via": "otr"}, ValueError, "there is no back end 'otr'"),
    ],
)
def test_an_unreadable_model_is_an_error(source: Any, options: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        check_model(source, **options)


READ = "these are: an ONNX model (.onnx), OpenVINO IR (.xml), a TensorFlow Lite model (.tflite)"


@pytest.mark.parametrize(
    ("wrong", "right", "message"),
    [
        ("--dim=bacth=4", "--dim=batch=4", "names a dimension 'bacth'; did you mean batch?"),
        ("--input-shape=token=2,3", "--input-shape=tokens=2,3", "has an input 'token'; did you mean tokens?"),
    ],
)
def test_a_name_that_no_model_has_is_an_error_with_near_names_and_one_that_some_lack_is_fine(
    check: Call, call: Call, wrong: str, right: str, message: str
) -> None:
    save("a.onnx", inputs=[typed("tokens", [2, 3]), typed("x", ["batch", 3])])
    save("b.onnx", inputs=[typed("x", [2, 3])])
    errors = errors_of(check, "a.onnx", "b.onnx", wrong)
    assert errors == f"dml-tile: {wrong.rpartition('=')[0].rpartition('=')[0]}: no model {message}\n"
    for command in "show", "lower":
        assert call(command, "a.onnx", "--target", "6_2", wrong).stderr == errors
    assert check("a.onnx", "b.onnx", right).exit_code == 0


def test_without_a_near_name_the_names_of_dimensions_are_listed(check: Call) -> None:
    assert "there are 'batch'" in check(save("a.onnx", inputs=[typed("x", ["batch", 3])]), "--dim", "zzz=4").stderr
    assert "none has a name" in check(save("b.onnx"), "--dim", "zzz=4").stderr


@pytest.mark.parametrize(("option", "kind"), [("--dim=batch=4", "a dimension"), ("--input-shape=batch=4", "an input")])
def test_a_size_without_a_model_is_an_error_but_for_the_hook(option: str, kind: str, check: Call, call: Call) -> None:
    write("in/a.json", TILE)
    errors = f"dml-tile: {option.partition('=')[0]}: 'batch' is {kind} of models, and no model was checked\n"
    for arguments in ["check", "in"], ["check", "in/a.json"], ["show", "in/a.json"], ["lower", "in"]:
        result = call(*arguments, "--target", "6_2", option)
        assert (result.exit_code, result.stderr) == (2, errors)
    assert check("in/a.json", "--skip-others", option).exit_code == 0
    write("broken.onnx", "")
    assert "no model was checked" not in check("in", "broken.onnx", option).stderr


def test_an_input_of_no_model_of_openvino_is_an_error_too(check: Call) -> None:
    needed("openvino")
    model = MODEL.replace(".onnx", ".xml")
    assert "no model has an input 'x'; there are " in errors_of(check, model, "--input-shape", "x=2,3")
    assert check(model, save("a.onnx"), "--input-shape", "x=2,3").exit_code == 0


def test_a_given_size_hides_no_refusal_of_what_onnxruntime_gives_to_directml(check: Call) -> None:
    """Of nine dimensions, the Tile that a session keeps is refused with sizes and without."""
    shape = [*"abcdefghi"]
    text = (
        "s = Shape(x); z = [0]; t = Gather(s, z); c = Expand(t, s); r = [1, 1, 1, 1, 1, 1, 1, 1, 2]; [T] y = Tile(c, r)"
    )
    onnx.save(model(text, inputs=[typed("x", shape)]), "a.onnx")
    sizes = [option for name in shape for option in ("--dim", f"{name}=2")]
    for options in [], sizes:
        result = check("a.onnx", "--via", "ort", "-t", "6_4", *options)
        assert (result.exit_code, "refused at 6_4" in result.stdout) == (1, True)
    save("b.onnx", inputs=[typed("x", ["N", 3], onnx.TensorProto.DOUBLE)])
    for options in [], ["--dim", "N=2"], ["--dim", "N=0"]:
        result = check("b.onnx", "--via", "ort", "-t", "6_4", *options)
        assert (result.exit_code, "#widen: undocumented" in result.stdout) == (1, True)
    save("c.onnx", inputs=[typed("x", [0, 3], onnx.TensorProto.DOUBLE)])
    assert "#widen: accepted at 6_4" in check("c.onnx", "--via", "ort", "-t", "6_4", "--fail-on", "note").stdout


def test_a_size_with_which_the_model_cannot_run_makes_nothing_unknown(check: Call) -> None:
    text = "z = Add(x, k); e = Shape(z); s = Neg(q); t = Reshape(s, e); r = [0, 2]; [T] y = Tile(t, r)"
    inputs = [typed("x", ["N", 3]), typed("q", [2, 3]), typed("k", [2, 3])]
    onnx.save(model(text, inputs=inputs), "a.onnx")
    for options in [], ["--dim", "N=2"], ["--dim", "N=5"], ["--dim", "N=0"]:
        (result,) = results(check("a.onnx", "--format", "json", *options))
        assert (result["operator"], result["verdict"]) == ("FLOAT32 {2,3} x {0,2} -> {0,6}", "refused")


def test_of_a_model_with_many_names_of_dimensions_those_that_were_asked_for_are_known(check: Call) -> None:
    names = [*(f"n{i:04}" for i in range(MAX_NAMES)), "z", "zz"]
    inputs = [typed("x", [2, 3]), *(typed(f"{i}", names[i : i + 64]) for i in range(0, len(names), 64))]
    save("a.onnx", tile_node(), inputs=inputs)
    assert "no model names" not in check("a.onnx", "--dim", "zz=4").stderr
    assert "did you mean n0" in check("a.onnx", "--dim", "n000=4").stderr


def test_a_dim_of_the_settings_that_no_model_has_is_fine(check: Call) -> None:
    save("b.onnx")
    write("pyproject.toml", '[tool.dml-tile]\ndim = ["batch=4"]\n')
    assert check("b.onnx").exit_code == 0


@pytest.mark.parametrize(
    ("name", "data", "kind"),
    [
        ("m.ort", b"\x20\0\0\0ORTM", "a model in ONNX Runtime's own format"),
        ("m.pt", b"PK\x03\x04", "a PyTorch file"),
        ("m.h5", b"\x89HDF\r\n\x1a\n", "a Keras model"),
        ("m.cpp", b"int main() {}\n", "C or C++ source"),
        ("m", b"\x20\0\0\0ORTM", "a model in ONNX Runtime's own format"),
        ("m.onnx", b"\x20\0\0\0ORTM", "a model in ONNX Runtime's own format"),
        ("m.onnx", b"PK\x03\x04", "a zip archive, such as PyTorch and Keras write"),
        ("m.bin", b"\0" * 9, "a file of weights"),
    ],
)
def test_a_file_of_another_kind_is_named_also_where_a_back_end_is(
    check: Call, name: str, data: bytes, kind: str
) -> None:
    Path(name).write_bytes(data)
    for options in [], ["--via", "ort"]:
        assert errors_of(check, name, *options).startswith(f"dml-tile: {name}: is {kind}, which is not read; {READ}")


def test_a_model_of_another_format_named_as_an_onnx_model_is_named(check: Call) -> None:
    Path("m.onnx").write_bytes(b"\x1c\0\0\0TFL3")
    message = "is a TensorFlow Lite model; models are read from files: save it as a file named *.tflite, and name that"
    assert errors_of(check, "m.onnx", "--via", "ort") == f"dml-tile: m.onnx: {message}\n"
    for data in b"\x08", b"none of them":
        Path("m.onnx").write_bytes(data)
        assert "is not an ONNX model: " in errors_of(check, "m.onnx")


def test_what_is_json_is_read_whatever_its_name(check: Call) -> None:
    assert check(write("m.cpp", TILE)).exit_code == 0
    assert (
        check(write("m.json", "{")).stderr
        == "dml-tile: m.json:1:1: unreadable JSON: EOF while parsing an object at line 1 column 1\n"
    )
    Path("m.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    assert errors_of(check, "m.png").endswith(" and .pdmodel are read as JSON)\n")


def test_an_onnx_model_where_none_is_read_is_named(call: Call) -> None:
    save("a.onnx")
    message = "is an ONNX model; models are read from files: save it as a file named *.onnx"
    assert message in errors_of(call, "check", "-", stdin=Path("a.onnx").read_bytes())
    message = "is no DxDispatch model, which run takes; `dml-tile check` checks"
    assert message in errors_of(call, "run", "a.onnx")


def test_a_command_for_standard_input_reads_a_file(check: Call) -> None:
    printed = check("-", "-t", "4_0", stdin=json.dumps(LONG_TILE)).stdout
    assert "try: lower it (dml-tile lower - --target 4_0 < FILE), or ship DirectML" in printed


CAST: Final = "Cast to {} before the Tile and back to {} behind it, {}"
UNSQUEEZE: Final = "Unsqueeze the input and Squeeze the output:"
BFLOAT16, DOUBLE, UINT64 = (getattr(onnx.TensorProto, name) for name in ("BFLOAT16", "DOUBLE", "UINT64"))
BIG: Final = "exact for integers from -16777216 to 16777216"


@pytest.mark.parametrize(
    ("shape", "repeats", "element", "options", "advice"),
    [
        ([2, 3], (1, 2), FLOAT, "-t 2_1", f"{UNSQUEEZE} tile {{1,1,2,3}} x {{1,1,1,2}}"),
        (["N", 3], (1, 2), FLOAT, "-t 2_1", f"{UNSQUEEZE} to 4 dimensions"),
        ([3, 1, 1, 1, 2], (2, 1, 1, 1, 6), FLOAT, "-t 2_1", "tile {1,1,3,2} x {1,1,2,6} between two Reshapes"),
        ([3, *[1] * 7, 2], (2, *[1] * 7, 6), FLOAT, "--via ort", "tile {3,2} x {2,6} between two Reshapes"),
        ([3, *[1] * 7, "N"], (2, *[1] * 7, 6), FLOAT, "--via ort", "merge dimensions by a Reshape before the"),
        ([2], (2,), INT64, "-t 4_0", CAST.format("int32", "int64", "exact from -2147483648 to 2147483647")),
        ([2], (2,), INT64, "-t 4_0 --via chromium", CAST.format("int32", "int64", "exact from -2147483648")),
        ([1, 1, 1, 2], (1, 1, 1, 2), INT64, "-t 1_0", CAST.format("float32", "int64", BIG)),
        ([2], (2,), UINT64, "-t 4_0", CAST.format("uint32", "uint64", "exact from 0 to 4294967295")),
        ([2], (2,), DOUBLE, "--via ort", CAST.format("float32", "float64", f"which rounds, and is {BIG}")),
        ([2], (2,), BFLOAT16, "--via ort", "Cast to float32 before it and back to bfloat16 behind it"),
    ],
)
def test_the_advice_on_an_onnx_model_is_what_its_nodes_can_do_with_the_numbers(
    check: Call, shape: Any, repeats: Any, element: int, options: str, advice: str
) -> None:
    printed = check(save("a.onnx", repeats=repeats, inputs=[typed("x", shape, element)]), *options.split()).stdout
    assert f"    try: {advice}" in printed
    if "chromium" in options:
        assert "ship DirectML" not in printed
    assert "--via ort" not in printed.partition("note:")[0]
    assert "leading sizes of 1" not in printed


@pytest.mark.parametrize("via", BACK_ENDS)
def test_a_named_model_that_a_back_end_does_not_read_is_an_error(
    check: Call, call: Call, via: str, tmp_path: Path
) -> None:
    (tmp_path / "models").mkdir()
    ir = write("models/a.xml", Path(MODEL.replace(".onnx", ".xml")).read_text())
    save("models/b.onnx")
    reason = f"OpenVINO IR, which {BACK_ENDS[via].title} does not read"
    for command, *options in (["check"], ["lower", "--target", "6_4"]):
        assert errors_of(call, command, ir, *options, "--via", via) == f"dml-tile: models/a.xml: is {reason}\n"
    for name in "models", "models/*":
        result = check(name, "--via", via, "--verbose")
        assert result.exit_code == 0
        assert "models/b.onnx#widen: accepted" in result.stdout
        assert reason in result.stdout + result.stderr
    write("pyproject.toml", '[tool.dml-tile]\npaths = ["models/a.xml"]\n')
    assert reason in errors_of(check, "--via", via)
    with pytest.raises(InputError, match=reason):
        check_model("models/a.xml", via=via)
    (file,) = (each for each in sweep(["models/a.xml"], via=via))
    assert reason in str(file.findings)


@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "model.json", "-"])
def test_a_back_end_of_descriptors_alone_is_wrong_usage(check: Call, call: Call, name: str) -> None:
    """They are what DirectML gets."""
    write("a.json", TILE)
    write("model.json", dxdispatch_model(t=TILE))
    write("a.jsonl", json.dumps(captured(None, None)))
    wrong = check(name, "--via", "chromium", stdin=json.dumps(TILE)), call("lower", name, "--via", "chromium", stdin="")
    for result in wrong:
        assert (result.exit_code, result.stdout) == (2, "")
        assert "descriptors are what DirectML gets" in " ".join(result.stderr.replace("│", " ").split())


def test_a_back_end_beside_descriptors_is_noticed_once(check: Call) -> None:
    for name in ("in/a.json", "in/b.json"):
        write(name, TILE)
    save("in/a.onnx")
    noticed = (
        "in/a.json: note[unused-via] its descriptors are checked as DirectML gets them, as are those of 1 more file"
    )
    for arguments in (["in"], ["in/a.json", "in/b.json", "in/a.onnx"], ["in/*.json"]):
        result = check(*arguments, "--via", "chromium")
        assert (result.exit_code, result.stdout.count("note[unused-via]")) == (0, 1)
        assert f"{noticed}; --via chromium is of models\n" in result.stdout
    assert check("in", "--via", "chromium", "--fail-on", "note", "--ignore", "unused-via").exit_code == 0
    assert check("in", "--via", "chromium", "--fail-on", "note").exit_code == 1
    write("pyproject.toml", '[tool.dml-tile]\nvia = "chromium"\n')
    for arguments in (["in"], ["in/a.json"], ["in/a.json", "--skip-others"]):
        result = check(*arguments)
        assert (result.exit_code, "unused-via" in result.stdout) == (0, False)


@pytest.mark.parametrize(
    "targets", ["onnxruntime-directml-1.10,windows-11-21h2", "windows-11-21h2,onnxruntime-directml-1.10"]
)
def test_the_oldest_windows_of_several_targets_is_one_that_all_their_releases_take(check: Call, targets: str) -> None:
    """Windows 11 21H2 has 4_0, at which releases from 1.14 on make no device."""
    printed = check(save("a.onnx", opset=12, ir_version=7), "--via", "ort", "-t", targets).stdout
    assert "5_0 windows-11-22h2" in " ".join(printed.rpartition("oldest Windows")[2].replace("│", " ").split())


def test_a_tile_that_fails_above_the_lowest_level_says_why_it_passes_there(check: Call) -> None:
    save("a.onnx", inputs=[typed("x", [2, 3], DOUBLE)], ir_version=7)
    line = check("a.onnx", "--via", "ort", "-t", "onnxruntime-directml-1.10").stdout.splitlines()[2]
    assert line.startswith("a.onnx#widen: undocumented at onnxruntime-directml-1.10 (5_0) via ort; ")
    assert line.endswith("; lowest level 2_0, in the box from windows-10-2004, where the device has no FLOAT64")


def test_lower_takes_what_a_back_end_makes_of_a_model(call: Call) -> None:
    save("a.onnx", repeats=[1, 1, 2], inputs=[typed("x", [1, 1, 3], INT64)], ir_version=8)
    for via, target, status, printed in (
        ([], "4_0", 0, "a.onnx#widen: lowered at 4_0"),
        (["--via", "chromium"], "4_0", 0, "a.onnx#widen: lowered at 4_0"),
        (["--via", "ort"], "4_0", 1, "DML-VIA-refused"),
        (["--via", "ort"], "6_4", 0, "accepted at 6_4; there is nothing to lower"),
        (["--via", "ort"], "onnxruntime-directml-1.9.0", 1, "note[ORT-CPU-version] no refusal\n    Tile-13: regist"),
    ):
        result = call("lower", "a.onnx", "--target", target, *via)
        assert (result.exit_code, printed in result.stdout) == (status, True), result.stdout
    onnx.save(model("r = [2]; s = Shape(x); y = Tile(s, r)", inputs=[typed("x", ["N", 3])]), "s.onnx")
    result = call("lower", "s.onnx", "--target", "6_4", "--via", "ort")
    assert (result.exit_code, "Tile-13: all that it needs is in the CPU's memory" in result.stdout) == (1, True)


def test_json_has_null_for_what_is_not_known_of_a_tile(check: Call) -> None:
    onnx.save(model("[U] w = Tile(q, p)", inputs=[typed("p", None, INT64)]), "a.onnx")
    (unknown,) = results(check("a.onnx", "--format", "json"))
    assert unknown["node"] == dict.fromkeys(("data_type", "sizes", "repeats", "output_sizes")) | {
        "inputs": ["q", "p"],
        "output": "w",
    }


@pytest.mark.parametrize(
    ("options", "status", "printed"),
    [
        (
            "-t windows-10-22h2",
            0,
            "windows-10-22h2 (2_0): device\n  DirectML 1.1.0, in the box of windows-10-22h2\n  note: shares the serv",
        ),
        ("-t 5_0 --via ort", 0, "5_0 via ort: device\n  DirectML 1.8.0 or another of this level\n"),
        ("-t directml-1.7.0 --via ort", 1, "returns DXGI_ERROR_UNSUPPORTED 0x887A0004: ONNX Runtime's"),
        ("-t directml-1.7.0 --via ort", 1, "  try: ship DirectML 1.15.4, as in onnxruntime-directml 1.24, besid"),
        ("-t onnxruntime-directml-1.9 --via ort", 0, "  DirectML 1.5.1, in the package\n"),
        ("-t windows-10-22h2 --via chromium", 1, "try: nothing, since a page brings no DirectML: windows-11-21h2"),
        (
            "-t windows-10-1909 --via ort",
            1,
            "\n  the DirectML of windows-10-1909 (1_0) has no DMLCreateDevice1: an application that delay-loads it ",
        ),
        ("-t 5_0,4_1 --via ort", 1, "4_1 via ort: no device"),
        (
            "-t windows-10-22h2 --via ort-1.12",
            1,
            "  QueryInterface returns E_NOINTERFACE 0x80004002: windows-10-22h2 ",
        ),
        ("-t windows-11-23h2 --via ort-1.20", 0, "on; 1.20 was built with 1.15.2, which has all of its operators\n"),
        ("-t 4_1 --via ort-1.20", 1, "ship DirectML 1.15.2, as in onnxruntime-directml 1.20, beside the executable; "),
        ("-t windows-10-22h2 --via ort", 1, "1.15.4, as in onnxruntime-directml 1.24, beside onnxruntime"),
        ("-t 4_1 --via ort-1.26", 1, "ship DirectML 1.15.4, as in onnxruntime-node 1.26, beside onnxruntime.dll; "),
        ("-t directml-1.4.0 --via ort-1.12", 0, "  a device comes from DirectML 1.1.0 on; 1.12 was built with 1.9.0"),
        ("-t 5_0 --via otr", 2, ""),
    ],
)
def test_device_says_whether_one_is_made_and_what_to_ship(call: Call, options: str, status: int, printed: str) -> None:
    result = call("device", *options.split())
    assert (result.exit_code, printed in result.stdout) == (status, True)
    assert "1.8.0 or later" not in result.stdout
    if status == 2:
        return
    answers = [json.loads(line) for line in call("device", *options.split(), "--format", "json").stdout.splitlines()]
    validator = Draft202012Validator(SCHEMAS["device_output"])
    for answer in answers:
        validator.validate(answer)
        assert answer["created"] == (answer["reason"] is None)
        assert (answer["hresult"] is None) == (answer["created"] or "has no DMLCreateDevice1" in answer["reason"])
    assert all(answer["created"] for answer in answers) == (status == 0)


def test_tiles_of_models_that_are_refused_or_unknown_say_once_as_what_they_were_checked(check: Call) -> None:
    said = "note: tiles of models were checked as handed to DirectML unchanged"
    save("open.onnx", inputs=[typed("x", ["N", 3])])
    save("good.onnx")
    save("negative.onnx", repeats=(1, -1))
    for names, options, times, below in (
        (["good.onnx"], ["-t", "6_4"], 0, 0),
        (["good.onnx", "open.onnx"], ["-t", "6_4"], 1, 0),
        (["good.onnx", "open.onnx"], ["-t", "4_0,2_0"], 1, 1),
        (["good.onnx"], ["-t", "2_0", "--via", "ort"], 0, 0),
        (["negative.onnx"], ["-t", "6_4", "--via", "ort"], 0, 0),
        (["negative.onnx"], ["-t", "6_4"], 0, 0),
        ([write("a.json", LONG_TILE)], ["-t", "4_0"], 0, 0),
    ):
        printed = check(*names, *options).stdout
        note = next((line for line in printed.splitlines() if line.startswith(said)), "")
        assert (printed.count(said), note.count("makes no device")) == (times, below), names
        assert ("--via ort what" in note) == (times > below), names


def test_a_tile_that_a_back_end_always_refuses_names_the_back_end(check: Call) -> None:
    save("nine.onnx", repeats=[1] * 9, inputs=[typed("x", [2] * 9)])
    assert "; no feature level passes via ort\n" in check("nine.onnx", "--via", "ort").stdout
    assert "no feature level passes both" not in check("nine.onnx", "--via", "chromium").stdout
    double = save("double.onnx", inputs=[typed("x", [2, 3], onnx.TensorProto.DOUBLE)])
    assert "; no feature level passes both documentation and runtime\n" in check(double).stdout
    printed = check(double, "--via", "ort").stdout
    assert "undocumented at 6_4 via ort; no feature level passes via ort\n" in printed
    assert "refused" not in printed


def test_through_chromium_a_tile_that_is_accepted_so_far_names_the_option_that_fixes_it(check: Call) -> None:
    save("a.onnx", inputs=[typed("x", ["batch", 3, None])], repeats=(1, 2, 1))
    assert "    try: --dim batch=SIZE --input-shape x=SIZES\n" in check("a.onnx", "--via", "chromium").stdout
    assert "    try: --dim batch=SIZE\n" in check(MODEL, "--via", "chromium").stdout
    save("b.onnx", inputs=[typed("x", [None, "past + 1"])], value_info=[typed("y", [None, "past + 1"])])
    assert "    try: --input-shape x=SIZES\n" in check("b.onnx", "--via", "chromium").stdout
    repeats_as_input = str(MODELS / "onnx_test_tile_acaa175e7.onnx")
    assert "try:" not in check(repeats_as_input, "--via", "chromium").stdout
    onnx.save(model("[n] n = NonZero(x); r = [2, 1]; [t] y = Tile(n, r)"), "c.onnx")
    printed = check("c.onnx", "--via", "chromium").stdout
    assert "InputTensor.Sizes[1]: computed by NonZero 'n' from the elements of the input 'x'\n" in printed
    assert "try:" not in printed
    assert "try:" not in check("a.onnx", "--via", "ort").stdout
    assert "try:" not in check("a.onnx", "--via", "chromium", "--input-shape", "x=2,3,4").stdout


WRONG: Final = "the file declares (2, 7) for {!r}; {} {!r} makes (2, 6)"


@pytest.mark.parametrize(
    ("built", "text"),
    [
        # downstream of a Tile, inside a branch, and through a function
        (model("r = [1, 2]; t = Tile(x, r); [f] y = Relu(t)"), WRONG.format("y", "Relu", "f")),
        (
            model("r = [1, 2]; [f] t = Tile(x, r); y = Relu(t)", value_info=[typed("t", [2, 7])]),
            WRONG.format("t", "Tile", "f"),
        ),
        (
            model(if_text("r = [1, 2]; [f] t = Tile(x, r)"), inputs=[typed("x", [2, 3]), typed("c", [], BOOL)]),
            WRONG.format("t", "Tile", "f"),
        ),
        (
            model("[called] y = own.F(x)", functions=[function("F (a) => (b) { r = [1, 2]; [f] b = Tile(a, r) }")]),
            WRONG.format("y", "Tile", "called/f"),
        ),
    ],
)
def test_any_declared_shape_that_contradicts_the_inferred_one_is_a_warning_in_each_way_to_check(
    check: Call, built: onnx.ModelProto, text: str
) -> None:
    for value in (
        *built.graph.output,
        *(value for each in built.graph.node for _, inner in subgraphs(each) for value in inner.output),
    ):
        if repr(value.name) in text:
            value.CopyFrom(typed(value.name, [2, 7]))
    onnx.save(built, "a.onnx")
    result = check("a.onnx", "--format", "json", "--format", "sarif:a.sarif")
    assert (result.exit_code, result.stderr) == (0, f"dml-tile: a.onnx: {text}\n")
    assert json.loads(result.stdout)["sources"] == [
        {"source": "a.onnx", "operators": 1, "contradictions": [text], "passed_over": ""}
    ]
    (run,) = json.loads(Path("a.sarif").read_text())["runs"]
    (told,) = run["invocations"][0]["toolExecutionNotifications"]
    assert (told["level"], told["message"]["text"]) == ("warning", text)
    assert [[str(each) for each in file.findings] for file in sweep(["a.onnx"])] == [[f"[contradiction] {text}"]]
    with pytest.warns(UserWarning, match=f"a.onnx: {re.escape(text)}"):
        check_model("a.onnx")


def test_of_many_contradictions_some_are_reported_and_two_branches_may_use_one_name(check: Call) -> None:
    names = [f"v{i}" for i in range(MAX_CONTRADICTIONS + 1)]
    text = "r = [1, 2]; v0 = Tile(x, r); " + "; ".join(f"{b} = Relu({a})" for a, b in pairwise(names))
    onnx.save(model(f"{text}; y = Relu({names[-1]})", value_info=[typed(name, [7]) for name in names]), "a.onnx")
    assert check("a.onnx").stderr.count("the file declares (7)") == MAX_CONTRADICTIONS
    branches = ", ".join(
        f"{way}_branch = {way} () => (float[2, {3 * count}] t) {{ r = [1, {count}]; t = Tile(x, r) }}"
        for way, count in (("then", 2), ("else", 3))
    )
    onnx.save(model(f"y = If(c)<{branches}>", inputs=[typed("x", [2, 3]), typed("c", [], BOOL)]), "b.onnx")
    assert check("b.onnx").stderr == ""


@pytest.mark.parametrize("declared", [[2, 6], ["N", None]])
def test_a_declared_shape_that_contradicts_nothing_is_no_warning(check: Call, declared: list[Any]) -> None:
    built = model("r = [1, 2]", tile_node(name="widen"))
    built.graph.output[0].CopyFrom(typed("y", declared))
    onnx.save(built, "a.onnx")
    assert check("a.onnx").stderr == ""
