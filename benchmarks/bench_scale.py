"""Measures `dml-tile check` of many descriptors and many models: time and memory by their number, and what more
processes and a Dask cluster save.

Each row is a process; its start, as the check of one item takes it, is not part of the cost of an item.

python benchmarks/bench_scale.py descriptors [--most 1000000]
python benchmarks/bench_scale.py models [--most 10000]
python benchmarks/bench_scale.py engines [--count 10000]
python benchmarks/bench_scale.py jobs [--most 1600]
"""

from __future__ import annotations

import filecmp
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Final

import numpy as np
import onnx
import typer
from harness import show
from onnx import TensorProto, helper, numpy_helper
from rich.table import Table

from dml_tile import TileOperatorDesc

app: Final = typer.Typer()

TARGET: Final = "windows-11-21h2"
REFUSED: Final = 10
"""One item in so many is refused."""
SHAPES: Final = 1000
JOBS: Final = 2


def write_descriptors(file: Path, count: int) -> None:
    """Write JSON lines of descriptors of SHAPES shapes."""
    lines = []
    for i in range(min(count, SHAPES)):
        data_type = "INT64" if i % REFUSED == 0 else "FLOAT32"
        desc = TileOperatorDesc.from_input(data_type=data_type, sizes=[1, 1, 2, i + 1], repeats=[1, 1, 3, 3])
        lines.append(f"{desc.model_dump_json(by_alias=True)}\n")
    with file.open("w") as written:
        for i in range(count):
            written.write(lines[i % SHAPES])


def write_models(folder: Path, count: int) -> None:
    """Write ONNX models of three Tiles each; one in seven has a dynamic dimension."""
    folder.mkdir()
    for i in range(count):
        data_type = TensorProto.INT64 if i % REFUSED == 0 else TensorProto.FLOAT
        name, nodes, repeats = "x", [], []
        for k in range(3):
            repeats.append(numpy_helper.from_array(np.array([1, 1, 2, 1 + k], np.int64), f"repeats{k}"))
            nodes.append(helper.make_node("Tile", [name, f"repeats{k}"], [f"y{k}"], name=f"tile{k}"))
            name = f"y{k}"
        value = helper.make_tensor_value_info("x", data_type, ["N" if i % 7 == 0 else 1, 3, 2, i % 50 + 1])
        result = helper.make_tensor_value_info(name, data_type, None)
        graph = helper.make_graph(nodes, "g", [value], [result], repeats)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        onnx.save(model, folder / f"{i:07}.onnx")


def measured(*arguments: str) -> tuple[float, float]:
    """The seconds that a check takes, and the megabytes of the largest of its processes."""
    command = [sys.executable, "-m", "dml_tile", "check", "--target", TARGET, *arguments]
    started = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:  # noqa: S603
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode in (0, 1)
    return time.perf_counter() - started, usage.ru_maxrss / 1024


def best(samples: int, *arguments: str) -> tuple[float, float]:
    """The least time of several checks, and the most memory."""
    times, peaks = zip(*(measured(*arguments) for _ in range(samples)), strict=True)
    return min(times), max(peaks)


def samples_of(seconds: float) -> int:
    """Short checks are measured more often than long ones."""
    return 5 if seconds < 3 else 2 if seconds < 20 else 1


def show_rows(title: str, rows: Iterator[tuple[int, float, float]], start: float) -> None:
    """Print a table of counts, seconds and megabytes."""
    table = Table("items", "seconds", "microseconds an item", "peak MB", title=title)
    for count, seconds, peak in rows:
        table.add_row(f"{count:,}", f"{seconds:.2f}", f"{(seconds - start) / (count - 1) * 1e6:.1f}", f"{peak:.0f}")
    show(table)


@app.command()
def descriptors(most: int = 1_000_000, form: str = "jsonl") -> None:
    """Measure JSON lines of 10^3, 10^4, … descriptors."""
    with tempfile.TemporaryDirectory() as name:
        one = Path(name, "one.jsonl")
        write_descriptors(one, 1)
        start, _ = best(5, str(one), "--format", form)

        def rows() -> Iterator[tuple[int, float, float]]:
            count, seconds = 1000, 0.0
            while count <= most:
                file = Path(name, f"{count}.jsonl")
                write_descriptors(file, count)
                seconds, peak = best(samples_of(seconds * 10), str(file), "--format", form)
                yield count, seconds, peak
                file.unlink()
                count *= 10

        show_rows(f"descriptors, as {form}", rows(), start)


@app.command()
def models(most: int = 10_000, form: str = "jsonl") -> None:
    """Measure folders of 10^2, 10^3, … ONNX models, in one process."""
    with tempfile.TemporaryDirectory() as name:
        write_models(Path(name, "one"), 1)
        start, _ = best(5, str(Path(name, "one")), "--format", form, "--jobs", "1")

        def rows() -> Iterator[tuple[int, float, float]]:
            count, seconds = 100, 0.0
            while count <= most:
                folder = Path(name, str(count))
                write_models(folder, count)
                seconds, peak = best(samples_of(seconds * 10), str(folder), "--format", form, "--jobs", "1")
                yield count, seconds, peak
                count *= 10

        show_rows(f"models, as {form}", rows(), start)


@app.command()
def jobs(most: int = 1600) -> None:
    """Measure from how many models, or descriptors in a file each, two processes take less time than one."""
    table = Table("files", "kind", "seconds, one process", f"seconds, --jobs {JOBS}", "times as fast")
    with tempfile.TemporaryDirectory() as name:
        count = 50
        while count <= most:
            models = Path(name, f"models{count}")
            write_models(models, count)
            descriptors = Path(name, f"descriptors{count}")
            descriptors.mkdir()
            for i in range(count):
                write_descriptors(descriptors / f"{i:07}.jsonl", 1)
            for kind, folder in (("ONNX models", models), ("descriptors", descriptors)):
                alone, together = (best(3, str(folder), "--jobs", str(number))[0] for number in (1, JOBS))
                table.add_row(f"{count:,}", kind, f"{alone:.2f}", f"{together:.2f}", f"{alone / together:.2f}")
            count *= 2
    show(table)


@contextmanager
def a_cluster() -> Iterator[tuple[str, str]]:
    """The options for a Dask cluster of this machine with two processes."""
    from distributed import LocalCluster

    with LocalCluster(
        n_workers=JOBS, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=0
    ) as cluster:
        yield "--dask", cluster.scheduler_address


@app.command()
def engines(count: int = 10_000) -> None:
    """Measure one process, two, and a Dask cluster of two on the same models, and compare the bytes that they write."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "zoo")
        write_models(folder, count)
        table = Table("engine", "seconds", "models a second", "times as fast", "peak MB", "same bytes")
        alone = 0.0
        for engine, options in (
            ("one process", nullcontext(("--jobs", "1"))),
            (f"--jobs {JOBS}", nullcontext(("--jobs", str(JOBS)))),
            (f"--dask, {JOBS} workers", a_cluster()),
        ):
            output = Path(name, f"{engine}.jsonl")
            with options as chosen:
                seconds, peak = measured(str(folder), *chosen, "--format", f"jsonl:{output}")
            alone = alone or seconds
            is_same = filecmp.cmp(Path(name, "one process.jsonl"), output, shallow=False)
            row = (engine, f"{seconds:.1f}", f"{count / seconds:.0f}", f"{alone / seconds:.2f}", f"{peak:.0f}")
            table.add_row(*row, "yes" if is_same else "no")
        show(table)


if __name__ == "__main__":
    app()
