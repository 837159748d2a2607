"""Messages of check and run that say what else to do: other kinds of files, misspelt names, commands to rerun."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

from dml_tile.readers.onnx.inference import MAX_DIMENSION_NAMES
from tests.helpers.check_files import INT64, TILE, write
from tests.helpers.command_line import Call
from tests.helpers.onnx_graphs import constant, model, tile_node, typed

READ = "ONNX models (.onnx), OpenVINO IR (.xml), TensorFlow Lite (.tflite)"


def save(name: str, *sizes: object) -> str:
    onnx.save(model(constant("r", (1, 2)), tile_node(name="widen"), inputs=[typed("x", list(sizes))]), name)
    return name


def test_a_dim_that_no_model_has_is_an_error_with_near_names(check: Call) -> None:
    save("a.onnx", "batch", 3)
    save("b.onnx", 2, 3)
    result = check("a.onnx", "b.onnx", "--dim", "bacth=4")
    assert result.exit_code == 2
    assert result.stderr == "dml-tile: --dim: no model names a dimension 'bacth'; did you mean batch?\n"
    assert "there are 'batch'" in check("a.onnx", "--dim", "zzz=4").stderr
    assert "none has a name" in check("b.onnx", "--dim", "zzz=4").stderr


def test_of_a_model_with_many_names_of_dimensions_those_that_were_asked_for_are_known(check: Call) -> None:
    names = [*(f"n{i:04}" for i in range(MAX_DIMENSION_NAMES)), "z", "zz"]
    inputs = [typed("x", [2, 3]), *(typed(f"{i}", names[i : i + 64]) for i in range(0, len(names), 64))]
    onnx.save(model(constant("r", (1, 2)), tile_node(), inputs=inputs), "a.onnx")
    assert "no model names" not in check("a.onnx", "--dim", "zz=4").stderr
    assert "did you mean n0" in check("a.onnx", "--dim", "n000=4").stderr


def test_a_dim_that_some_models_lack_is_fine(check: Call) -> None:
    assert check(save("a.onnx", "batch", 3), save("b.onnx", 2, 3), "--dim", "batch=4").exit_code == 0
    assert check(write("a.json", TILE), "--dim", "batch=4").exit_code == 0
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
    ],
)
def test_a_file_of_another_kind_is_named(check: Call, name: str, data: bytes, kind: str) -> None:
    Path(name).write_bytes(data)
    result = check(name)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"dml-tile: {name}: is {kind}, which is not read; {READ}")


def test_what_is_json_is_read_whatever_its_name(check: Call) -> None:
    assert check(write("m.cpp", TILE)).exit_code == 0
    assert "unreadable JSON" in check(write("m.json", "{")).stderr


def test_an_onnx_model_where_none_is_read_is_named(call: Call) -> None:
    save("a.onnx", 2, 3)
    for command, message in (
        ("check -", "is an ONNX model; models are read from files: save it as a file named *.onnx"),
        ("run a.onnx", "is no DxDispatch model, which run takes; `dml-tile check` checks"),
    ):
        result = call(*command.split(), stdin=Path("a.onnx").read_bytes())
        assert result.exit_code == 2
        assert message in result.stderr


def test_a_command_for_standard_input_reads_a_file(check: Call) -> None:
    printed = check("-", "-t", "4_0", stdin=json.dumps(INT64)).stdout
    assert "try: lower it (dml-tile lower - --target 4_0 < FILE), or ship DirectML" in printed


@pytest.mark.long
def test_an_onnx_model_that_is_refused_for_its_rank_alone_may_go_through_onnxruntime(check: Call) -> None:
    save("a.onnx", 1, 1, 1, 2, 3)
    assert "try: --via ort: onnxruntime would hand over another descriptor" not in check("a.onnx").stdout
    printed = check(save("b.onnx", 2, 3), "-t", "2_1").stdout
    assert "--via ort: onnxruntime would hand over another descriptor" in printed
    assert "--via ort" not in check("b.onnx", "-t", "2_1", "--via", "chromium").stdout
