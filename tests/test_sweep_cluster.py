"""Checks on a Dask cluster: the same bytes in the same order, also where a worker dies."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from dml_tile import CheckedFile, Target, sweep
from dml_tile.checks.one_file import FileCheck, in_this_process
from dml_tile.errors import Problem
from tests.helpers.check_files import BAD, INT64, TILE, write
from tests.helpers.command_line import Call
from tests.helpers.paths import EXAMPLES

distributed = pytest.importorskip("distributed")

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore")]

CHECK: Final = FileCheck((Target.parse("2_0"), Target.parse("6_4")), "both")


def two_workers() -> Any:
    """A cluster of this machine, each worker a process."""
    return distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=0
    )


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with two_workers() as local:
        yield local


@pytest.fixture
def client(cluster: Any) -> Iterator[Any]:
    with distributed.Client(cluster, set_as_default=False) as one:
        one.wait_for_workers(2)
        yield one


@pytest.fixture
def zoo(call: Call) -> list[str]:
    """Files of all kinds, by their whole names, of which some cannot be read."""
    names = [write(f"{i:03}.json", (TILE, BAD, INT64, {"InputTensor": 1})[i % 4]) for i in range(120)]
    for i in range(8):
        names.append(f"m{i}.onnx")
        shutil.copy(EXAMPLES / "models" / "two_tiles.onnx", names[-1])
    names += [write("broken.onnx", "no model"), "missing.json"]
    return [str(Path(name).absolute()) for name in names]


@pytest.mark.parametrize("form", ["text", "json", "jsonl", "sarif"])
def test_a_cluster_writes_the_bytes_of_one_process(form: str, zoo: list[str], cluster: Any, call: Call) -> None:
    arguments = ["check", *zoo, "-t", "windows-11-21h2,6_4", "--format", form]
    alone, together = call(*arguments, "--jobs", "1"), call(*arguments, "--dask", cluster.scheduler_address)
    assert together.stdout == alone.stdout
    assert together.stderr == alone.stderr
    assert together.exit_code == alone.exit_code == 2


def test_a_worker_that_is_killed_costs_nothing(zoo: list[str], client: Any) -> None:
    from dml_tile.sweeps.cluster import on_cluster

    files = zoo * 5
    events = on_cluster(client)(CHECK, files)
    told = [next(events) for _ in range(50)]
    os.kill(client.run(os.getpid).popitem()[1], signal.SIGTERM if os.name == "nt" else signal.SIGKILL)
    told += events
    assert told == list(in_this_process(CHECK, files))


DEADLY: Final = """
import os
from dml_tile.checks.one_file import FileCheck
from dml_tile.sweeps import worker
events = FileCheck.events
def deadly(check, file, sources):
    if "deadly" in file:
        os._exit(7)
    yield from events(check, file, sources)
FileCheck.events = deadly
worker.main()
"""


def test_a_file_that_ends_its_process_is_lost_alone_and_ends_no_worker(zoo: list[str], client: Any) -> None:
    from dml_tile.sweeps.cluster import on_cluster

    files = [*zoo[:20], write("deadly.json", TILE), *zoo[20:60]]
    workers = set(client.run(os.getpid).values())
    told = list(on_cluster(client, (sys.executable, "-c", DEADLY))(CHECK, files))
    assert [pair for pair in told if "deadly" not in pair[0]] == list(in_this_process(CHECK, zoo[:60]))
    problem, _ = (event for file, event in told if "deadly" in file)
    assert problem == Problem("", "the process that checked it ended (status 0x7)")
    assert set(client.run(os.getpid).values()) == workers


class DyingCluster:
    """A client of a cluster whose workers die of a file: what they were asked beside it is lost with it."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self.plugin: Any = None

    def nthreads(self) -> dict[str, int]:
        return {"a worker": 2}

    def register_plugin(self, plugin: Any, name: str) -> None:
        self.plugin = plugin

    def unregister_worker_plugin(self, name: str) -> None:
        self.plugin.teardown(None)

    def cancel(self, futures: list[Any]) -> None: ...

    def submit(self, function: object, name: str, files: list[str], pure: bool) -> Any:
        client = DyingCluster()
        client.files, client.plugin = files, self.plugin
        return client

    def result(self) -> Any:
        if "deadly" in "".join(self.files):
            raise distributed.KilledWorker("a task", None, 3)
        return self.plugin.told(self.files)


def test_a_file_that_workers_die_of_is_lost_alone(zoo: list[str]) -> None:
    from dml_tile.sweeps.cluster import on_cluster

    files = [*zoo[:20], "deadly.json", *zoo[20:60]]
    told = list(on_cluster(DyingCluster())(CHECK, files))
    assert [pair for pair in told if "deadly" not in pair[0]] == list(in_this_process(CHECK, zoo[:60]))
    problem, _ = (event for file, event in told if "deadly" in file)
    assert problem == Problem("", "the workers that checked it died (4 of them)")


def test_a_sweep_is_the_same_with_and_without_a_cluster(zoo: list[str], client: Any) -> None:
    alone = list(sweep(zoo, ["2_0", "6_4"]))
    assert list(sweep(zoo, ["2_0", "6_4"], client=client)) == alone
    assert [checked.source for checked in alone] == zoo
    first, last = alone[0], alone[-1]
    assert [result.target.name for result in first.results] == ["2_0", "6_4"]
    assert last == CheckedFile(zoo[-1], problems=(Problem("", "No such file or directory"),))


def test_a_sweep_tells_what_names_stand_for_nothing(call: Call) -> None:
    assert list(sweep(["*.onnx"])) == [CheckedFile("*.onnx", problems=(Problem("", "no file matches the pattern"),))]
    with pytest.raises(ValueError, match="there is no back end 'orr'"):
        sweep([], via="orr")


def test_a_scheduler_that_is_not_there_is_wrong_usage(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dml_tile.cli.check_files.MAX_SECONDS_TO_CONNECT", 0.5)
    result = call("check", write("a.json", TILE), "--dask", "tcp://127.0.0.1:9")
    assert result.exit_code == 2
    assert "no scheduler answers at tcp://127.0.0.1:9" in " ".join(result.stderr.replace("│", "").split())
    both = call("check", "a.json", "--dask", "tcp://127.0.0.1:9", "--jobs", "2")
    assert both.exit_code == 2


def test_lines_are_results_then_what_is_unread(call: Call) -> None:
    write("a.json", BAD)
    lines = [json.loads(line) for line in call("check", "a.json", "b.json", "--format", "jsonl").stdout.splitlines()]
    whole = json.loads(call("check", "a.json", "b.json", "--format", "json").stdout)
    assert lines == [*whole["results"], *whole["errors"]]
