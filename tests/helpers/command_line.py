"""Calls of the command line: the type of the fixtures that call it in this process, and a shell that knows it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from typer.testing import Result

Call: TypeAlias = Callable[..., Result]


def bash(command: str, folder: Path, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Runs a shell command in which ``dml-tile`` is the command line."""
    function = f'dml-tile() {{ "{sys.executable}" -m dml_tile "$@"; }}; '
    return subprocess.run(["bash", "-c", function + command], input=stdin, capture_output=True, check=False, cwd=folder)
