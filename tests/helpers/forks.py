"""Processes of Python that are forked from one which has imported the package, which takes longer than most commands.

A forked process has the arguments, environment, folder and standard streams of the command that asks for it, and no
other descriptors, limits or signal handlers of it.
"""

from __future__ import annotations

import atexit
import gc
import marshal
import os
import runpy
import shutil
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from select import select
from typing import Any, Final

from tests.helpers.paths import ROOT

_CLIENT: Final = Path(__file__).with_name("fork_client.py")
_IMPORTED: Final = """
import sys
import dml_tile, rich.console, dml_tile.cli.config, dml_tile.cli.app, dml_tile.dxdispatch.runner
for name in dml_tile.__all__:
    getattr(dml_tile, name)
sys.path.insert(1, {root!r})
from tests.helpers.forks import serve
serve()
"""


def python() -> list[str]:
    """Return what begins a command of Python with ``-m`` or ``-c``, as ``sys.executable`` does; a fork, if it can be.

    Python is started where the command's environment has other variables for Python, or another language.
    """
    if not hasattr(os, "fork"):
        return [sys.executable]
    return [sys.executable, "-I", "-S", str(_CLIENT), server()]


@cache
def server() -> str:
    """Start the process that forks others, and return the path of its socket; it ends with this process."""
    process = subprocess.Popen(
        [sys.executable, "-c", _IMPORTED.format(root=str(ROOT))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    atexit.register(process.communicate)  # the process ends where its standard input does
    return process.stdout.readline().rstrip("\n")


def serve() -> None:
    """Fork a process for each command, until standard input ends."""
    folder = tempfile.mkdtemp()
    path = f"{folder}/socket"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)
    sys.stdout.write(f"{path}\n")
    sys.stdout.flush()
    gc.freeze()  # collecting it would copy it in each process
    while select([listener, sys.stdin], [], [])[0] == [listener]:
        connection, _ = listener.accept()
        if not os.fork():
            _answer(connection)
            return
        connection.close()
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
    shutil.rmtree(folder)


def _answer(connection: socket.socket) -> None:
    """Run a command in another process, and tell how it ended."""
    _, handed, _, _ = socket.recv_fds(connection, 1, 4)
    arguments, environment, is_open = marshal.loads(connection.makefile("rb").read())
    if _of_python(environment) != _of_python(os.environb):
        os._exit(0)
    if not (child := os.fork()):
        _become(handed, environment, is_open)
        _run(*arguments)
        return
    os.closerange(0, 3)
    for descriptor in handed:
        os.close(descriptor)
    _, status, used = os.wait4(child, 0)
    answer = os.waitstatus_to_exitcode(status), used.ru_utime + used.ru_stime, used.ru_maxrss
    connection.sendall(marshal.dumps(answer))
    os._exit(0)


def _of_python(environment: dict[bytes, bytes] | os._Environ[bytes]) -> dict[bytes, bytes]:
    return {name: value for name, value in environment.items() if name.startswith((b"PYTHON", b"LC_", b"LANG"))}


def _become(handed: list[int], environment: dict[bytes, bytes], is_open: list[bool]) -> None:
    """Take the folder, the environment and the standard streams of a command."""
    os.fchdir(handed[0])
    os.environb.clear()
    os.environb.update(environment)
    streams = iter(handed[1:])
    for number, is_one in enumerate(is_open):
        if is_one:
            os.dup2(next(streams), number)
        else:
            os.close(number)
    os.closerange(3, 1000)
    sys.stdin, sys.stdout, sys.stderr = map(_stream, range(3), (sys.stdin, sys.stdout, sys.stderr), is_open)


def _stream(number: int, own: Any, is_open: bool) -> Any:
    """Return a standard stream as Python opens it, or None where the command has closed it."""
    if not is_open:
        return None
    stream: Any = open(number, "w" if number else "r", encoding=own.encoding, errors=own.errors, closefd=False)  # noqa: SIM115
    stream.reconfigure(line_buffering=number == 2 or stream.isatty())
    return stream


def _run(option: str, what: str, *arguments: str) -> None:
    """Do what Python does with these arguments."""
    if option == "-c":
        sys.argv = ["-c", *arguments]
        exec(compile(what, "<string>", "exec"), {"__name__": "__main__"})
    else:
        assert option == "-m"
        sys.argv = [what, *arguments]
        runpy.run_module(what, run_name="__main__", alter_sys=True)
