"""The command line on a terminal."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress
from typing import IO

from tests.helpers.forks import python


def on_a_terminal(*arguments: str, stdout: IO[bytes] | None = None, **environment: str) -> str:
    """Return what the command line writes to a terminal, which is its standard output, if no other, and its error."""
    import pty

    main, side = pty.openpty()
    clean = {key: value for key, value in os.environ.items() if key not in ("NO_COLOR", "FORCE_COLOR")}
    command = [*python(), "-m", "dml_tile", *arguments]
    environment = clean | {"TERM": "xterm-256color"} | environment
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stdout or side, stderr=side, env=environment)
    os.close(side)
    shown = b""
    with os.fdopen(main, "rb", 0) as terminal, suppress(OSError):  # which on Linux is the end
        while part := terminal.read(65536):
            shown += part
    process.wait(60)
    return shown.decode()
