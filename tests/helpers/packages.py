"""Packages that some tests need and not every platform has."""

from __future__ import annotations

import re
from typing import Any

import pytest


def needed(package: str) -> Any:
    """Returns the module; skips the test, or the module of tests, where it is not installed."""
    name = package.partition(".")[0]
    return pytest.importorskip(package, reason=f"{name} is not installed; not every platform has a wheel of it")


def skip_without_reader(text: str) -> None:
    """Skips the test of an example that reads an OpenVINO model where OpenVINO is not installed."""
    if re.search(r"/\w+\.xml\b", text):
        needed("openvino")
