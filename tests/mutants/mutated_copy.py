"""Runs tests on a mutated copy of the project, each time in a fork of a process that has imported the libraries."""

from __future__ import annotations

import importlib
import importlib.util
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

_COPIED: Final = ("dml_tile", "tests", "docs", "examples", "benchmarks", "schemas", ".github", ".ci")
_LIBRARIES: Final = (
    "hypothesis.extra.numpy",
    "hypothesis.stateful",
    "jsonschema",
    "numpy",
    "onnx.helper",
    "onnx.reference",
    "pydantic",
    "pytest",
    "rich.console",
    "typer.testing",
)
_WAITING: Final = 5
"""Times as many seconds as tests may compute, they may take, on a machine that has other work too."""
_POLL: Final = 0.02
_MEMORY: Final = 8 << 30
_OPTIONS: Final = (
    *("-x", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:xdist"),  # nobody reads why a test fails
    *("-p", "tests.mutants.profile", "--hypothesis-profile=mutants"),
)


class MutatedCopy:
    """A copy of the project in a folder, in which one file at a time is changed; the copy goes with the block."""

    def __init__(self, root: Path, folder: Path) -> None:
        self._folder = folder / "copy"
        self._running = folder / "running"
        self._folder.mkdir()
        for path in root.iterdir():
            if path.is_file():
                shutil.copy2(path, self._folder)
            elif path.name in _COPIED:
                shutil.copytree(path, self._folder / path.name, ignore=shutil.ignore_patterns("__pycache__"))
        self._environment = os.environ.copy()
        os.environ["PYTHONPATH"] = str(self._folder)  # commands that tests start import the copy too
        os.environ["OPENBLAS_NUM_THREADS"] = "1"  # a fork has one thread
        os.environ["MUTANTS_RUNNING"] = str(self._running)
        for library in _LIBRARIES:
            if importlib.util.find_spec(library.partition(".")[0]):
                importlib.import_module(library)
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        subprocess.run([sys.executable, "-m", "compileall", "-q", "dml_tile", "tests"], cwd=self._folder, check=True)
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"  # a mutant is as long as the original at times, and as new

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.environ.clear()
        os.environ.update(self._environment)

    def collected(self) -> set[str]:
        """The ids of all tests but the long ones, without their parameters."""
        command = [sys.executable, "-m", "pytest", "--collect-only", "-p", "no:cacheprovider"]
        done = subprocess.run(command, cwd=self._folder, capture_output=True, text=True, check=True)
        return {line.partition("[")[0] for line in done.stdout.splitlines() if "::" in line}

    def failing(self, file: str, text: bytes, seconds: Mapping[str, float]) -> str | None:
        """The first test that fails, or takes longer than some seconds of a processor, with another text in one file.

        It is an empty string if the tests cannot be imported, and None if all of them pass.
        """
        path = self._folder / file
        original, times = path.read_bytes(), path.stat()
        compiled = {cached: cached.read_bytes() for cached in (path.parent / "__pycache__").glob(f"{path.stem}.*")}
        for cached in compiled:
            cached.unlink()
        path.write_bytes(text)
        self._running.write_text("")
        try:
            return self._running.read_text() if self._fails(seconds) else None
        finally:
            path.write_bytes(original)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
            for cached, content in compiled.items():
                cached.write_bytes(content)

    def _fails(self, seconds: Mapping[str, float]) -> bool:
        child = os.fork()
        if not child:
            try:
                os.setsid()
                os.environ["MUTANTS_SECONDS"] = str(max(seconds.values()))
                resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
                _run(self._folder, [*seconds])
            finally:
                os._exit(1)
        status = 1
        for _ in range(
            int(sum(seconds.values()) * _WAITING / _POLL)
        ):  # not by the clock, which goes on while this process is stopped
            finished, status = os.waitpid(child, os.WNOHANG)
            if finished:
                break
            time.sleep(_POLL)
        with suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # it, or what it left behind
        if not finished:
            os.waitpid(child, 0)
        return not finished or status != 0


def _run(folder: Path, tests: Sequence[str]) -> None:
    """Run tests, and end this process with their status."""
    os.chdir(folder)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True
    for name in [name for name in sys.modules if name.partition(".")[0] == "tests"]:
        del sys.modules[name]
    import pytest

    os._exit(int(pytest.main([*_OPTIONS, *tests])))
