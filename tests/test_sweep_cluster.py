"""Checks on a Dask cluster: the same bytes in the same order, also where a worker dies."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import Any

import pytest

from dml_tile import sweep
from dml_tile.checks.questions import Questions
from dml_tile.checks.sweep import Workers
from dml_tile.directml.targets import DEFAULT_TARGET
from dml_tile.findings import unreadable
from tests.helpers import deadly
from tests.helpers.check_files import TILE, write, write_zoo
from tests.helpers.command_line import Call
from tests.helpers.outputs import outputs_of_check

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(scope="module")
def distributed() -> Any:
    """The package, which takes a second to import."""
    return pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def cluster(distributed: Any) -> Iterator[Any]:
    """A cluster of two processes of this machine, which gives up what two workers die of."""
    import dask

    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYTHONHASHSEED", "6640")  # distributed sets it in this process, and would leave it set
        with (
            dask.config.set({"distributed.scheduler.allowed-failures": 1}),
            distributed.LocalCluster(
                n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, memory_limit=0
            ) as local,
        ):
            yield local


@pytest.fixture
def client(cluster: Any, distributed: Any) -> Iterator[Any]:
    with distributed.Client(cluster, set_as_default=False) as one:
        one.wait_for_workers(2)
        yield one


@pytest.fixture
def zoo(call: Call) -> list[str]:
    return [str(Path(name).absolute()) for name in write_zoo(descriptors=120)]


def test_a_cluster_writes_the_bytes_of_one_process(zoo: list[str], cluster: Any, call: Call) -> None:
    arguments = [*zoo, "-t", "windows-11-21h2,6_4"]
    alone = outputs_of_check(call, *arguments, "--jobs", "1")
    assert outputs_of_check(call, *arguments, "--dask", cluster.scheduler_address) == alone


def test_a_cluster_reads_files_of_a_store(zoo: list[str], client: Any) -> None:
    import fsspec

    files = fsspec.open_files([f"file://{name}" for name in zoo[:20]])
    swept = sweep(files, executor=client.get_executor(pure=False))
    assert list(swept) == list(sweep(zoo[:20]))


@pytest.mark.exhaustive  # as are the files that end processes of one machine, in test_sweep.py
def test_a_file_that_ends_workers_is_lost_alone(zoo: list[str], client: Any, distributed: Any) -> None:
    class Deadly(distributed.WorkerPlugin):  # type: ignore[misc]  # distributed has no types
        """Lets workers end at some files, also those that take the place of others."""

        def setup(self, worker: object) -> None:
            deadly.install()

    client.register_plugin(Deadly(), name="deadly")
    name = str(Path(write("dies.json", TILE)).absolute())
    swept = list(sweep([*zoo[:20], name, *zoo[20:60]], executor=client.get_executor(pure=False)))
    client.unregister_worker_plugin("deadly")
    assert [checked for checked in swept if checked.source != name] == list(sweep(zoo[:60]))
    assert swept[20].findings == (unreadable("", "the workers that checked it died (2 of them)"),)


def test_a_cluster_that_is_left_ends_the_sweep_in_one_error(zoo: list[str], cluster: Any, distributed: Any) -> None:
    with distributed.Client(cluster, set_as_default=False) as client:
        events = Workers(client.get_executor(pure=False)).events(Questions([DEFAULT_TARGET], "both"), zoo * 20)
        next(events)
    with pytest.raises(BrokenExecutor, match=r"the executor gave up|cannot be checked"):
        list(events)


def test_a_missing_scheduler_is_wrong_usage(call: Call, monkeypatch: pytest.MonkeyPatch, distributed: Any) -> None:
    monkeypatch.setattr("dml_tile.cli.jobs.MAX_SECONDS_TO_CONNECT", 0.5)
    result = call("check", write("a.json", TILE), "--dask", "tcp://127.0.0.1:9")
    assert result.exit_code == 2
    assert "no scheduler answers at tcp://127.0.0.1:9" in " ".join(result.stderr.replace("│", "").split())
    monkeypatch.setattr(distributed, "Client", None)  # a malformed address makes none
    for address in ("nowhere", "tcp://nowhere:port", "carrier-pigeon://nowhere:9"):
        assert "no scheduler answers at" in call("check", "a.json", "--dask", address).stderr
    both = call("check", "a.json", "--dask", "tcp://127.0.0.1:9", "--jobs", "2")
    assert both.exit_code == 2
