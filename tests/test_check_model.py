"""check_model: a model checked in Python."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

import dml_tile
from dml_tile import Severity, Verdict, check_model
from dml_tile.errors import InputError
from dml_tile.readers.sandbox import parent
from tests.helpers.ir_models import MODELS
from tests.helpers.model_process import ModelProcess
from tests.helpers.onnx_graphs import constant, model, tile_node, typed
from tests.helpers.paths import EXAMPLES

MODEL = EXAMPLES / "models" / "two_tiles.onnx"
WIDEN = model(constant("r", (1, 2)), tile_node(name="widen"), inputs=[typed("x", ["N", 3])])


def test_a_file_is_checked_as_on_the_command_line() -> None:
    enlarge, number = check_model(MODEL, "windows-11-21h2", dims={"batch": 4})
    assert (enlarge.pointer, enlarge.verdict, enlarge.findings, enlarge.unknown) == ("enlarge", "accepted", (), ())
    assert (number.source, number.verdict) == (str(MODEL), Verdict.REFUSED)
    assert {finding.severity for finding in number.findings} == {Severity.ERROR}
    assert number.tile == "INT64 {1,16} x {4,1} -> {4,16}"


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parent, "started", ModelProcess)


@pytest.mark.usefixtures("in_this_process")
def test_a_saved_model_s_folder_is_checked_as_a_model(tmp_path: Path) -> None:
    (result,) = check_model(MODELS / "tile_saved_model", "2_0")
    assert (result.source, result.pointer) == (str(MODELS / "tile_saved_model"), "Tile")
    assert (result.tile, result.verdict) == ("FLOAT32 {2,3} x {2,1} -> {4,3}", "refused")
    with pytest.raises(InputError):
        check_model(tmp_path)


@pytest.mark.usefixtures("in_this_process")
def test_a_modelproto_is_checked_too(tmp_path: Path) -> None:
    (result,) = check_model(WIDEN)
    assert (result.verdict, result.so_far, result.unknown) == ("accepted", True, ("InputTensor.Sizes[0] (N)",))
    assert result.tile == "FLOAT32 {N,3} x {1,2} -> {N,6}"
    (result,) = check_model(WIDEN, input_shapes={"x": [2, 3]})
    assert (result.so_far, result.tile) == (False, "FLOAT32 {2,3} x {1,2} -> {2,6}")
    onnx.save(WIDEN, tmp_path / "a.onnx")
    assert check_model(str(tmp_path / "a.onnx"))[0].findings == ()


@pytest.mark.usefixtures("in_this_process")
def test_a_back_end_and_the_simulated_target_are_asked() -> None:
    (result,) = check_model(WIDEN, "4_0", via="ort")
    assert [finding.rule for finding in result.findings] == ["DML-VIA-refused"]
    with dml_tile.simulate("2_0"):
        assert check_model(WIDEN)[0].target.name == "2_0"


@pytest.mark.usefixtures("in_this_process")
def test_an_unreadable_model_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        check_model(tmp_path / "missing.onnx")
    with pytest.raises(InputError, match="is no input of the model"):
        check_model(WIDEN, input_shapes={"y": [1]})
    with pytest.raises(TypeError, match=r"a path or an onnx\.ModelProto was expected, not a int"):
        check_model(7)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="there is no back end 'otr'"):
        check_model(WIDEN, via="otr")
