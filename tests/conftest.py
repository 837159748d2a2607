"""Fixtures shared by all tests."""

from __future__ import annotations

import inspect
import os
import re
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, settings

from dml_tile.dxdispatch.model import read_model
from dml_tile.dxdispatch.runner import run_model
from dml_tile.files.paths import AllowedFolders
from dml_tile.readers.sandbox import parent
from tests.helpers.check_files import write_zoo
from tests.helpers.command_line import Call, invoke
from tests.helpers.model_process import ModelProcess

# Shared machines are slow at times; what is tested is what comes out, not how soon.
settings.register_profile("local", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=50)
settings.register_profile("ci", settings.get_profile("local"), max_examples=100)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if "CI" in os.environ else "local"))

IS_POSIX: Final = hasattr(os, "mkfifo")

collect_ignore = [] if IS_POSIX else ["recorder", "test_cli_process.py", "test_faults.py"]

_POSIX_ONLY: Final = re.compile(r"mkfifo|bash\b|/dev/|preexec_fn|\bfork\(|SIGALRM|SIGHUP|sched_getaffinity")
"""What a test that only POSIX systems can run has in its source."""

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # as in a shell's background jobs, whose children ignore it too
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # each process that imports NumPy would start threads for nothing

sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]  # importing OpenVINO would tell Intel


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests that need POSIX where it is not there."""
    if IS_POSIX:
        return
    needing = [item for item in items if isinstance(item, pytest.Function) and _needs_posix(item)]
    config.hook.pytest_deselected(items=needing)
    items[:] = [item for item in items if item not in needing]


def _needs_posix(test: pytest.Function) -> bool:
    return bool(test.get_closest_marker("posix") or _POSIX_ONLY.search(inspect.getsource(test.function)))


def pytest_sessionfinish() -> None:
    """Save what coverage has measured: xdist kills a worker that takes longer than ten seconds to end."""
    if "coverage" in sys.modules:
        from coverage import Coverage

        if measured := Coverage.current():
            measured.save()


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Calls the command line in a folder of its own; models are read in this process."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(parent, "started", ModelProcess)
    return invoke


@pytest.fixture
def check(call: Call) -> Call:
    """Calls ``dml-tile check``."""
    return partial(call, "check")


@pytest.fixture
def show(call: Call) -> Call:
    """Calls ``dml-tile show``."""
    return partial(call, "show")


@pytest.fixture
def zoo(call: Call) -> list[str]:
    """Files of all kinds in a folder of their own, of which some cannot be read."""
    return write_zoo()


@pytest.fixture(name="run")
def run_model_in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Runs a model in a folder of its own, and gives what it prints."""
    monkeypatch.chdir(tmp_path)

    def run_it(data: Any, *, overwrite: bool = False, allow_hidden: bool = False, **where: Any) -> str:
        printed: list[str] = []
        folders = AllowedFolders((tmp_path, Path()), allow_hidden=allow_hidden, overwrite=overwrite)
        run_model(read_model(data), folders, printed.append, **where)
        return "".join(printed)

    return run_it
