"""Takes away what Windows lacks, in each process whose PYTHONPATH has this folder."""

from __future__ import annotations

import os
import signal
import sys

MODULES = ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty")
OF_OS = (
    "O_NOFOLLOW", "O_NONBLOCK", "fchmod", "fork", "forkpty", "killpg", "mkfifo",
    "openpty", "register_at_fork", "sched_getaffinity", "set_blocking",
)  # fmt: skip
OF_SIGNAL = ("SIGALRM", "SIGHUP", "SIGPIPE", "SIGUSR1", "alarm", "pthread_sigmask", "setitimer")

for module in MODULES:
    sys.modules[module] = None  # type: ignore[assignment]
for owner, names in ((os, OF_OS), (signal, OF_SIGNAL)):
    for name in names:
        if hasattr(owner, name):
            delattr(owner, name)
