"""A tile that is checked and planned once: bound to buffers, and executed many times."""

from __future__ import annotations

import io
import sys
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dml_tile.cli import console as terminal
from dml_tile.cli.console import run_tile
from dml_tile.errors import DmlError
from dml_tile.execution.executor import compile_tile
from dml_tile.simulation.calls import record_calls
from tests.helpers.descriptors import GOOD, row

INPUT = np.arange(6, dtype=np.float32)
TILED = np.tile(INPUT.reshape(2, 3), (3, 3)).ravel()
LARGE = row("FLOAT32", [1000, 1200], [2, 4])


def test_a_tile_that_is_compiled_or_bound_reads_what_its_input_holds_then() -> None:
    source, output = INPUT.copy(), np.zeros(54, np.float32)
    compiled = compile_tile(GOOD, "windows-10-2004")
    assert compiled.target.name == "windows-10-2004"
    bound = compiled.bind(source, output)
    assert not output.any()
    for run in (bound.run, partial(compiled.execute, source, output)) * 2:
        source += 7
        run()
        np.testing.assert_array_equal(output, np.tile(source.reshape(2, 3), (3, 3)).ravel())


def test_each_step_is_recorded_under_its_name() -> None:
    with record_calls() as calls:
        compiled = compile_tile(GOOD, "windows-10-2004")
        compiled.bind(INPUT, np.zeros(54, np.float32)).run()
        compiled.execute(INPUT, np.zeros(54, np.float32))
    assert [call.name for call in calls] == ["compile_tile", "bind", "execute"]
    assert all(call.desc is GOOD and call.target is compiled.target and not call.findings for call in calls)


def test_what_a_target_refuses_is_not_compiled() -> None:
    with pytest.raises(DmlError, match="DML-TILE-DataType-level"):
        compile_tile(row("INT64", [1, 1, 2, 3], [1, 1, 1, 2]), "windows-10-2004")


FLOATS = np.zeros(60, np.float32)
UNFIT = {
    # the input, the output, and what is said
    "an input that is too small": (INPUT[:5], np.zeros(54, np.float32), DmlError, "InputTensor"),
    "an output that is too small": (INPUT, np.zeros(53, np.float32), DmlError, "OutputTensor"),
    "an output that is read-only": (INPUT, np.frombuffer(bytes(216), np.float32), ValueError, "read-only"),
    "a strided input": (np.zeros((6, 2), np.float32)[:, 0], bytearray(216), ValueError, "input: .*contiguous"),
    "a strided output": (INPUT, np.zeros((54, 2), np.float32)[:, 0], ValueError, "output: .*contiguous"),
    "an input of objects": (np.zeros(6, object), np.zeros(54, np.float32), TypeError, "Python objects"),
    "an output of objects": (INPUT, np.zeros(54, object), TypeError, "Python objects"),
    "an input of text": ("text", bytearray(216), TypeError, "input is of type str; an object with the buffer protocol"),
    "an output that overlaps": (FLOATS[:6], FLOATS[5:], DmlError, "DML-BINDING-overlap"),
}


@pytest.mark.parametrize(("source", "output", "error", "message"), UNFIT.values(), ids=UNFIT)
def test_unfit_buffers_are_refused_before_anything_is_written(
    source: Any, output: Any, error: type[Exception], message: str
) -> None:
    compiled = compile_tile(GOOD)
    before = bytes(memoryview(output).tobytes()) if not isinstance(output, np.ndarray) else output.tobytes()
    for call in (compiled.execute, compiled.bind):
        with pytest.raises(error, match=message):
            call(source, output)
    after = bytes(output) if isinstance(output, bytearray) else output.tobytes()
    assert before == after


def test_a_file_that_is_mapped_is_an_output(tmp_path: Path) -> None:
    output = np.memmap(tmp_path / "out.bin", np.float32, "w+", shape=(2000, 4800))
    source = np.random.default_rng(1).random((1000, 1200), np.float32)
    told: list[int] = []
    compile_tile(LARGE).bind(source, output).run(progress=lambda done, of: told.append(done))
    np.testing.assert_array_equal(output, np.tile(source, (2, 4)))
    assert told[-1] == output.nbytes


def test_a_small_tile_tells_its_progress_too() -> None:
    told: list[tuple[int, int]] = []
    compile_tile(GOOD).bind(INPUT, np.zeros(54, np.float32)).run(progress=lambda *done: told.append(done))
    assert told == [(216, 216)]


@pytest.mark.parametrize(
    ("sizes", "repeats"),
    [((1000, 1200), (2, 4)), ((30, 3), (50, 20)), ((251, 195, 3), (4, 1, 4))],
    ids=["on several threads", "by way of scratch memory", "in blocks, by way of scratch memory"],
)
def test_a_bound_tile_may_be_run_by_eight_threads_at_once(sizes: tuple[int, ...], repeats: tuple[int, ...]) -> None:
    source = np.random.default_rng(1).random(sizes, np.float32)
    expected = np.tile(source, repeats)
    output = np.zeros_like(expected)
    bound = compile_tile(row("FLOAT32", [*sizes], [*repeats])).bind(source, output)
    with ThreadPoolExecutor(8) as callers:
        list(callers.map(lambda _: bound.run(3), range(24)))
    np.testing.assert_array_equal(output, expected)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("stream", "has_bar"), [(Terminal, True), (io.StringIO, False)])
def test_a_long_tile_has_a_progress_bar_on_a_terminal(
    stream: type[io.StringIO], has_bar: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "_MIN_BYTES_FOR_PROGRESS", 2**24)
    monkeypatch.setenv("TERM", "xterm-256color")
    shown = stream()
    monkeypatch.setattr(sys, "stderr", shown)
    output = np.zeros((2000, 4800), np.float32)
    run_tile("large", compile_tile(LARGE).bind(np.ones((1000, 1200), np.float32), output), explain_plan=False)
    assert output.all()
    assert ("tiling" in shown.getvalue()) == has_bar
