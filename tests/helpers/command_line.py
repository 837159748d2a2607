"""Calls of the command line, in this process and in a shell that knows it."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeAlias

from typer import testing
from typer.main import get_command

from dml_tile.cli.app import application
from dml_tile.cli.check_run import DEFAULT_TARGET_NOTICE
from tests.helpers.forks import python

Call: TypeAlias = Callable[..., testing.Result]

APPLICATION: Final = application()
COMMAND: Final[Any] = get_command(APPLICATION)
# typer makes it anew for each call, which takes longer than most commands
setattr(testing, "_get_command", lambda _: COMMAND)  # noqa: B010  # it is not among the module's exports


_NOTICE: Final = f"{DEFAULT_TARGET_NOTICE}\n".encode()
"""Standard error of most tests' checks; the calls below leave it out, so that it stands in its own tests only."""


def invoke_bare(*arguments: str, stdin: str | bytes | None = None, **options: Any) -> testing.Result:
    """Call the command line; an exception but the exit itself is an error."""
    return testing.CliRunner().invoke(APPLICATION, arguments, input=stdin, catch_exceptions=False, **options)


def invoke(*arguments: str, stdin: str | bytes | None = None, **options: Any) -> testing.Result:
    """Call the command line, without the notice that no target was named."""
    result = invoke_bare(*arguments, stdin=stdin, **options)
    result.stderr_bytes = result.stderr_bytes.replace(_NOTICE, b"")
    return result


def errors_of(call: Call, *arguments: str, **options: Any) -> str:
    """Return what a call that fails with status 2 prints on standard error."""
    result = call(*arguments, **options)
    assert result.exit_code == 2
    return result.stderr


def bash(
    command: str, folder: Path, stdin: bytes = b"", *, starts_python: bool = False
) -> subprocess.CompletedProcess[bytes]:
    """Runs a shell command in which ``dml-tile`` is the command line; forked, unless Python's own start matters."""
    words = shlex.join([sys.executable] if starts_python else python())
    function = f'dml-tile() {{ {words} -m dml_tile "$@"; }}; '
    done = subprocess.run(["bash", "-c", function + command], input=stdin, capture_output=True, check=False, cwd=folder)
    done.stderr = done.stderr.replace(_NOTICE, b"")
    return done
