"""Files that release 0.1.0 wrote are read, or refused with the sentence that says what to do."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Final

import pytest

from tests.helpers.command_line import Call, errors_of
from tests.helpers.paths import ROOT

DATA: Final = ROOT / "tests" / "data" / "0.1.0"
CHECK: Final = ("check", "int64.json", "classifier.onnx", "--via", "ort")
TARGETS: Final = ("--target", "windows-11-21h2,onnxruntime-directml-1.24.4")


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for path in (*DATA.iterdir(), ROOT / "examples" / "int64.json", ROOT / "examples" / "models" / "classifier.onnx"):
        shutil.copy(path, tmp_path)


def test_a_baseline_is_read_and_written_again_with_reasons(call: Call) -> None:
    before = call(*CHECK, *TARGETS)
    assert before.exit_code == 1
    done = call(*CHECK, *TARGETS, "--baseline", "baseline.json")
    assert done.exit_code == 0, done.stdout
    assert "refused at windows-11-21h2 (4_0)" in done.stdout
    assert "2 findings in the baseline" in done.stdout
    assert "note[old-baseline-entry] has no reason, rewrite it: classifier.onnx#Conv-22" in done.stdout + done.stderr
    assert call(*CHECK, *TARGETS, "--write-baseline", "baseline.json").exit_code == 0
    again = call(*CHECK, *TARGETS, "--baseline", "baseline.json")
    assert again.exit_code == 0
    assert "old-baseline-entry" not in again.stdout + again.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ("check", "output.json"),
            "output.json: is an output of `dml-tile check`; check the files that it names again",
        ),
        (("check", "baseline.json"), "baseline.json: is a baseline; --baseline names it, beside the files to check"),
        (
            ("check", "int64.json", "--baseline", "output.json"),
            "cannot be read as a baseline: it is an output of `dml-tile check`; --write-baseline writes a baseline",
        ),
    ],
)
def test_a_file_in_the_place_of_another_is_refused_with_what_to_do(
    call: Call, arguments: tuple[str, ...], told: str
) -> None:
    assert told in errors_of(call, *arguments)


def test_the_output_has_all_keys_that_it_had(call: Call) -> None:
    old: Any = json.loads((DATA / "output.json").read_text())
    new: Any = json.loads(call(*CHECK, *TARGETS, "--format", "json").stdout)
    assert (old["version"], new["version"]) == (1, 1)
    for kind in ("results", "nodes"):
        assert {*old[kind][0]} <= {*new[kind][0]}
    assert {*old["results"][0]["findings"][0]} <= {*new["results"][0]["findings"][0]}


def test_a_capture_is_read(call: Call) -> None:
    done = call("check", "capture.jsonl", "--target", "6_4", "--format", "json", "--fail-on", "never")
    assert done.exit_code == 0
    lines = (DATA / "capture.jsonl").read_text().splitlines()
    assert len(json.loads(done.stdout)["results"]) >= sum('"operator"' in line for line in lines) > 2
