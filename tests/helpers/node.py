"""Node, and the files of npm's packages that some tests use where they are installed."""

from __future__ import annotations

import os
from pathlib import Path


def npm_file(name: str) -> Path | None:
    """A file of a package, such as axe-core/axe.min.js, in the folders of the variable NODE_PATH; None without it."""
    folders = map(Path, filter(None, os.environ.get("NODE_PATH", "").split(os.pathsep)))
    return next((folder / name for folder in folders if (folder / name).is_file()), None)
