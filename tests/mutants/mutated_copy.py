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
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, Self

_COPIED: Final = ("dml_tile", "tests", "docs", "examples", "benchmarks", "schemas", ".github", ".ci")
_LIBRARIES: Final = (
    # without those that have plugins for pytest, which imports these itself
    "jsonschema",
    "numpy",
    "onnx.helper",
    "onnx.reference",
    "pydantic",
    "rich.console",
    "typer.testing",
)
_WAITING: Final = 5
"""Times as many seconds as tests may compute, they may take, on a machine that has other work too."""
_ALL_TESTS: Final = ("-p", "no:cacheprovider", "-m", "long or not long")
_OPTIONS: Final = (
    *(*_ALL_TESTS, "-x"),
    *("-p", "tests.mutants.without_shrinking", "--hypothesis-profile=mutants"),
)


class MutatedCopy:
    """A copy of the project in a folder, in which one file at a time is changed; the copy goes with the block."""

    def __init__(self, root: Path, folder: Path) -> None:
        self._folder = folder
        for path in root.iterdir():
            if path.is_file():
                shutil.copy2(path, folder)
            elif path.name in _COPIED:
                shutil.copytree(path, folder / path.name, ignore=shutil.ignore_patterns("__pycache__"))
        os.environ["PYTHONPATH"] = str(folder)  # commands that tests start import the copy too
        os.environ["OPENBLAS_NUM_THREADS"] = "1"  # a fork has one thread
        for library in _LIBRARIES:
            if importlib.util.find_spec(library.partition(".")[0]):
                importlib.import_module(library)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.environ.pop("PYTHONPATH")
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

    def collected(self) -> set[str]:
        """The ids of all tests, without their parameters. Compiles all modules, once for all."""
        command = [sys.executable, "-m", "pytest", "--collect-only", *_ALL_TESTS]
        done = subprocess.run(command, cwd=self._folder, capture_output=True, text=True, check=True)
        os.environ["PYTHONDONTWRITEBYTECODE"] = "1"  # a mutant is as long as the original at times, and as new
        return {line.partition("[")[0] for line in done.stdout.splitlines() if "::" in line}

    def is_killed(self, file: str, text: bytes, tests: Sequence[str], seconds: int) -> bool:
        """Return True if one of the tests fails, or they take longer, with another text in one file."""
        path = self._folder / file
        original = path.read_bytes()
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
            compiled.unlink()
        path.write_bytes(text)
        try:
            return self._fails(tests, seconds)
        finally:
            path.write_bytes(original)

    def _fails(self, tests: Sequence[str], seconds: int) -> bool:
        child = os.fork()
        if not child:
            try:
                os.setsid()
                resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
                _run(self._folder, tests)
            finally:
                os._exit(1)
        deadline = time.monotonic() + seconds * _WAITING
        while time.monotonic() < deadline:
            finished, status = os.waitpid(child, os.WNOHANG)
            if finished:
                with suppress(ProcessLookupError):
                    os.killpg(child, signal.SIGKILL)  # what it left behind
                return status != 0
            time.sleep(0.02)
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
        return True


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
