"""Fixtures shared by all tests."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, settings

from dml_tile.dxdispatch.runner import run_model
from dml_tile.files.paths import AllowedFolders
from dml_tile.json_text import Document
from dml_tile.readers.sandbox import parent
from tests.helpers.check_files import write_zoo
from tests.helpers.command_line import Call, invoke
from tests.helpers.model_process import ModelProcess

# Shared machines are slow at times; what is tested is what comes out, not how soon.
settings.register_profile("local", deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=20)
settings.register_profile("ci", settings.get_profile("local"), max_examples=100)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if "CI" in os.environ else "local"))

IS_POSIX: Final = hasattr(os, "mkfifo")

collect_ignore = [] if IS_POSIX else ["recorder", "test_cli_process.py", "test_faults.py"]
"""What only POSIX systems can import."""

# A shell's background jobs ignore SIGINT, and what nohup starts ignores SIGHUP; children of tests would inherit that.
for number, handler in ("SIGINT", signal.default_int_handler), ("SIGHUP", signal.SIG_DFL):
    if hasattr(signal, number) and signal.getsignal(getattr(signal, number)) == signal.SIG_IGN:
        signal.signal(getattr(signal, number), handler)

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # each process that imports NumPy would start threads for nothing

sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]  # importing OpenVINO would tell Intel


@pytest.hookimpl(tryfirst=True)
def pytest_collection() -> None:
    """Look for no garbage among what lasts: the modules and thousands of tests."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Look for garbage among what the tests make alone."""
    gc.freeze()
    gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests marked ``posix`` where the system is none."""
    if IS_POSIX:
        return
    config.hook.pytest_deselected(items=[item for item in items if item.get_closest_marker("posix")])
    items[:] = [item for item in items if not item.get_closest_marker("posix")]


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
        run_model(Document(data), folders, printed.append, **where)
        return "".join(printed)

    return run_it
