"""Packages that some tests need and not every platform has, Node's among them."""

from __future__ import annotations

import os
import re
from pathlib import Path
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


def npm_file(name: str) -> Path | None:
    """A file of a package, such as axe-core/axe.min.js, in the folders of the variable NODE_PATH; None without it."""
    folders = map(Path, filter(None, os.environ.get("NODE_PATH", "").split(os.pathsep)))
    return next((folder / name for folder in folders if (folder / name).is_file()), None)
