"""Hands a command of Python to the process of ``forks``, and ends as the process does that is forked there.

It imports next to nothing, so that it takes a twentieth of the time in which Python imports the package.
"""

import marshal
import os
import sys
from _socket import AF_UNIX, SCM_RIGHTS, SHUT_WR, SOL_SOCKET, socket


def ended(
    path: str, arguments: list[str], folder: str = ".", streams: tuple[int, ...] = (0, 1, 2)
) -> tuple[int, float, int] | None:
    """Return the status of the forked process, its processor time in seconds and its peak memory in KiB.

    Return None where Python has to be started.
    """
    is_open = [is_one_open(stream) for stream in streams]
    server, opened = socket(AF_UNIX), os.open(folder, os.O_RDONLY)
    server.connect(path)
    handed = [opened, *(stream for stream, is_one in zip(streams, is_open, strict=True) if is_one)]
    rights = b"".join(number.to_bytes(4, sys.byteorder) for number in handed)
    server.sendmsg([b"\0"], [(SOL_SOCKET, SCM_RIGHTS, rights)])
    server.sendall(marshal.dumps((arguments, dict(os.environb), is_open)))
    server.shutdown(SHUT_WR)
    os.close(opened)
    answer = server.recv(200)
    server.close()
    return marshal.loads(answer) if answer else None


def is_one_open(stream: int) -> bool:
    """Return True if a descriptor is open."""
    try:
        os.fstat(stream)
    except OSError:
        return False
    return True


if __name__ == "__main__":
    if not (end := ended(sys.argv[1], sys.argv[2:])):
        os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
    if end[0] < 0:
        os.kill(os.getpid(), -end[0])
    os._exit(end[0])
