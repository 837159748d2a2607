"""``--via ort-1.20``: a release of ONNX Runtime over a DirectML that it was not built with."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

import pytest
from onnx import TensorProto

from dml_tile import Target, check_model, sweep
from dml_tile.back_ends import back_end_named
from dml_tile.back_ends.dialects import ONNX_TILE_13
from dml_tile.back_ends.kernels import releases, version_text
from dml_tile.checks.via import check_via
from tests.helpers.command_line import Call
from tests.helpers.onnx_graphs import tensor, typed
from tests.test_model_nodes import save

WINDOWS_11: Final = "windows-11-23h2"
SHAPE: Final = [2, 3]


def resized(name: str = "a.onnx") -> str:
    scales = tensor("s", [1.0, 1.0, 2.0, 2.0], "float32")
    return save("y = Resize(x, , s)", name, inputs=[typed("x", [1, 2, 4, 4])], initializer=[scales], opset=13)


@pytest.mark.parametrize("release", [*map(version_text, releases())])
def test_each_release_that_was_read_has_a_name(release: str) -> None:
    back_end = back_end_named(f"ort-{release}")
    assert (back_end.name, back_end.release) == (f"ort-{release}", release)
    assert version_text(back_end.deployed(Target.parse("6_4")).release) == release


def test_a_patch_release_is_its_minor_release_unless_its_kernels_differ() -> None:
    assert back_end_named("ort-1.20.1").name == "ort-1.20"
    sequences = back_end_named("ort-1.14.0")
    assert sequences.name == "ort-1.14.0"
    assert "lacks DirectML's seven sequence kernels" in sequences.deployed(Target.parse("6_4")).difference
    assert not back_end_named("ort-1.14").deployed(Target.parse("6_4")).difference
    assert back_end_named("ort-1.14").deployed(Target.parse("onnxruntime-directml-1.14.0")).difference


@pytest.mark.parametrize(
    ("via", "expected"),
    [
        ("ort-1.31", "1.31 is no known release of ONNX Runtime, as 1.9 to 1.30 are; did you mean ort-1.30?"),
        ("ort-1.8.1", "1.8.1 is no known release of ONNX Runtime, as 1.9 to 1.30 are; did you mean ort-1.9?"),
        ("ort-2", "'2' is no release; MAJOR.MINOR was expected, such as 1.24"),
        ("ort-1.2٠", "'1.2٠' is no release"),
        ("ort-", "there is no back end 'ort-'; did you mean ort?"),
        ("chromium-1.20", "there is no back end 'chromium-1.20'; did you mean chromium?"),
    ],
)
def test_an_unknown_release_is_refused_with_the_nearest(check: Call, via: str, expected: str) -> None:
    with pytest.raises(ValueError, match=re.escape(expected)):
        back_end_named(via)
    result = check(resized(), "--via", via)
    assert result.exit_code == 2
    assert "--via" in result.stderr


@pytest.mark.parametrize("command", ["check", "device", "lower", "emit"])
def test_a_package_of_another_release_is_refused(call: Call, command: str) -> None:
    files = [] if command == "device" else [resized()]
    options = ["--lang", "json"] if command == "emit" else []
    result = call(command, *files, *options, "--via", "ort-1.20", "-t", "onnxruntime-directml-1.24.4")
    assert result.exit_code == 2
    expected = "onnxruntime-directml-1.24.4 is a package of another release than 1.20"
    assert expected in " ".join(result.stderr.replace("│", " ").split())


def test_the_newest_release_is_named_where_none_is(check: Call) -> None:
    printed = check(resized(), "--via", "ort", "-t", f"{WINDOWS_11},onnxruntime-directml-1.16.3").stdout
    assert f"a.onnx at {WINDOWS_11} (5_0) via ort-1.24: " in printed
    assert "a.onnx at onnxruntime-directml-1.16.3 (6_1): " in printed


def test_settings_and_python_take_a_release(check: Call) -> None:
    Path("pyproject.toml").write_text(f'[tool.dml-tile]\nvia = "ort-1.18"\ntargets = ["{WINDOWS_11}"]\n')
    assert " via ort-1.18: " in check(resized()).stdout
    (finding,) = check_model("a.onnx", WINDOWS_11, via="ort-1.18").findings
    assert "RESAMPLE2 (5_1)" in finding.message
    assert not check_model("a.onnx", "windows-11-24h2", via="ort-1.18").findings
    with pytest.raises(ValueError, match=r"another release than 1\.18"):
        check_model("a.onnx", "onnxruntime-directml-1.24.4", via="ort-1.18")
    with pytest.raises(ValueError, match=r"another release than 1\.18"):
        sweep(["a.onnx"], ["onnxruntime-directml-1.24.4"], via="ort-1.18")
    (swept,) = sweep(["a.onnx"], [WINDOWS_11], via="ort-1.18")
    assert swept.nodes
    assert swept.nodes.via.name == "ort-1.18"
    Path("pyproject.toml").write_text('[tool.dml-tile]\nvia = "ort-1.20"\ntargets = ["onnxruntime-directml-1.24.4"]\n')
    refused = check("a.onnx")
    assert refused.exit_code == 2
    assert "pyproject.toml: tool.dml-tile.via: onnxruntime-directml-1.24.4 is a package" in refused.stderr


def test_a_tile_goes_through_the_release_over_any_directml(check: Call) -> None:
    request = ONNX_TILE_13.request("float32", [2, 3], [1, 2])
    assert [finding.rule for finding in check_via(request, "5_0", "ort-1.9")] == ["ORT-CPU-version"]
    assert not check_via(request, "5_0", "ort-1.10")
    save("y = Tile(x, r)", inputs=[typed("x", SHAPE)], initializer=[tensor("r", [1, 2])])
    (result,) = json.loads(check("a.onnx", "--via", "ort-1.20", "-t", "5_0", "--format", "json").stdout)["results"]
    assert (result["via"], result["verdict"]) == ("ort-1.20", "accepted")


def test_a_tile_s_advice_ships_the_directml_of_the_release(check: Call) -> None:
    path = save("y = Tile(x, r)", inputs=[typed("x", SHAPE, TensorProto.INT64)], initializer=[tensor("r", [1, 2])])
    printed = check(path, "--via", "ort-1.12", "-t", "windows-11-21h2").stdout
    assert ", or ship DirectML 1.9.0, as in onnxruntime-directml 1.12, beside the executable\n" in printed
    assert "or later with the application" not in printed
    assert "ship DirectML 1.7.0 or later with the application" in check(path, "-t", "4_0").stdout


def test_machine_formats_name_the_release(check: Call) -> None:
    options = resized(), "--via", "ort-1.18.1", "-t", WINDOWS_11
    (node,) = json.loads(check(*options, "--format", "json").stdout)["nodes"]
    assert node["via"] == "ort-1.18"
    (result,) = json.loads(check(*options, "--format", "sarif").stdout)["runs"][0]["results"]
    assert f"at {WINDOWS_11} via ort-1.18" in result["message"]["text"]
    assert f"| Model | {WINDOWS_11} (5_0) via ort-1.18 |" in check(*options, "--format", "markdown").stdout
    newer = check(resized(), "--via", "ort-1.18", "-t", "windows-11-24h2", "--format", "junit").stdout
    assert 'name="nodes at windows-11-24h2 (6_2) via ort-1.18"' in newer


@pytest.mark.parametrize(
    ("via", "written", "other"),
    [("ort-1.18", {"via": "ort-1.18"}, "ort"), ("ort", {}, "ort-1.24")],  # older releases of this package read the last
)
def test_a_baseline_knows_a_release_apart(check: Call, via: str, written: dict[str, str], other: str) -> None:
    options = resized(), "-t", WINDOWS_11, "--via"
    assert check(*options, via, "--write-baseline", "b.json").exit_code == 0
    (entry,) = json.loads(Path("b.json").read_text())["findings"]
    assert {key: value for key, value in entry.items() if key == "via"} == written
    assert check(*options, via, "--baseline", "b.json").exit_code == 0
    result = check(*options, other, "--baseline", "b.json")
    assert (result.exit_code, "unused-baseline-entry" in result.stdout) == (1, False), "this run did not look for it"


def test_windows_10_has_a_device_for_old_releases_and_no_interface_for_graphs(check: Call) -> None:
    fixed, windows_10 = save("y = Relu(x)", inputs=[typed("x", SHAPE)]), ("-t", "windows-10-22h2")
    missing = "windows-10-22h2 has no IDMLDevice1, with which ONNX Runtime's provider compiles nodes of known sizes"
    printed = check(fixed, "--via", "ort-1.12", *windows_10).stdout
    assert f": the session fails: {missing} (E_NOINTERFACE 0x80004002)\n" in printed
    assert "  error[ORT-MODEL-interface] " in printed
    assert "    try: ship DirectML 1.9.0, as in onnxruntime-directml 1.12, beside the executable\n" in printed
    assert "887A0004" not in printed
    save("y = Relu(x)", "open.onnx", inputs=[typed("x", ["N", 3])])
    assert ": it loads so far\n" in check("open.onnx", "--via", "ort-1.12", *windows_10).stdout
    assert "no device" in check(fixed, "--via", "ort-1.14", *windows_10).stdout
    assert ": it loads\n" in check(fixed, "--via", "ort-1.12", "-t", "2_1").stdout


def test_emit_writes_the_operators_of_the_release(call: Call) -> None:
    written = call("emit", resized(), "--lang", "json", "--via", "ort-1.18", "-t", WINDOWS_11).stdout
    assert "DML_OPERATOR_RESAMPLE2" in written
