"""The number of processors that this process may use."""

from __future__ import annotations

import os


def processor_count() -> int:
    """The logical processors that this process may run on; all of the machine where the system cannot tell."""
    if hasattr(os, "process_cpu_count"):  # from Python 3.13 on
        return os.process_cpu_count() or 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
