"""The folder of the C++ header, for compilers."""

from __future__ import annotations

from pathlib import Path


def get_include() -> str:
    """Return the folder to give a compiler with -I, so that ``#include <dml_tile/capture.h>`` is found."""
    return str(Path(__file__).parent.parent / "include")
