"""Writes the generated pages and images of the documentation, and what the commands in the other pages print.

    python -m docs.generate
    python -m docs.generate --words    # counts those that people wrote, page by page

A test compares what it would write with what is there.
"""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final
from unittest.mock import patch

from dml_tile.readers.sandbox import parent
from docs.generator.addresses import REPEATED_IN, with_addresses
from docs.generator.api_page import api_page
from docs.generator.claims_table import with_claims
from docs.generator.cpp_fields import cpp_fields
from docs.generator.images import write_images
from docs.generator.known_page import known_page
from docs.generator.operators_page import operators_page
from docs.generator.rules_page import rules_page
from docs.generator.words import words_in
from tests.helpers.model_process import ModelProcess
from tests.helpers.pages import executed

DOCS: Final = Path(__file__).resolve().parent
GENERATED: Final = {
    "api.md": api_page,
    "known.md": known_page,
    "operators.md": operators_page,
    "rules.md": rules_page,
    "../dml_tile/include/dml_tile/operator_fields.h": cpp_fields,
}
"""The functions that write the files that are generated as a whole."""


def word_counts() -> dict[str, int]:
    """Return the words of README, CONTRIBUTING and the pages that are not generated."""
    root = DOCS.parent
    paths = [root / "README.md", root / "CONTRIBUTING.md", *sorted(DOCS.glob("*.md"))]
    return {
        path.relative_to(root).as_posix(): words_in(path.read_text(encoding="utf-8"))
        for path in paths
        if path.parent == root or path.name not in GENERATED
    }


@patch.object(parent, "started", ModelProcess)
def main() -> None:
    for name, page in GENERATED.items():
        (DOCS / name).write_text(page(), encoding="utf-8")
    for path in sorted(path for path in DOCS.glob("*.md") if path.name not in GENERATED):
        with TemporaryDirectory() as folder:
            text = executed(path.read_text(encoding="utf-8"), Path(folder))
        path.write_text(with_claims(text), encoding="utf-8")
    for path in map(DOCS.parent.joinpath, REPEATED_IN):
        path.write_text(with_addresses(path.read_text(encoding="utf-8")), encoding="utf-8")
    with contextlib.chdir(DOCS.parent):
        write_images(DOCS / "images")


if __name__ == "__main__":
    if sys.argv[1:] == ["--words"]:
        counts = word_counts()
        lines = [f"{count:6,} {name}\n" for name, count in (*counts.items(), ("together", sum(counts.values())))]
        sys.stdout.writelines(lines)
    else:
        main()
