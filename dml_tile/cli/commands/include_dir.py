"""``dml-tile include-dir``"""

from __future__ import annotations

from dml_tile.cli.output_files import print_text
from dml_tile.emit.headers import get_include


def include_dir() -> None:
    """Print the folder of dml_tile/capture.h, for a compiler's -I."""
    print_text(f"{get_include()}\n")
