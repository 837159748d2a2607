"""A shell offers the right words when Tab is pressed, asked for as bash does."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.paths import ROOT

pytestmark = pytest.mark.long

COMMAND_LINE = """
import sys
from dml_tile.cli.app import main
sys.argv[0] = "dml-tile"
try:
    main()
finally:
    print(sorted({"numpy", "dml_tile.descriptors.tile"} & set(sys.modules)), file=sys.stderr)
"""


def completed(words: str) -> tuple[list[str], str]:
    """Complete the last of the words; return what is offered, and what was imported for it."""
    environment = os.environ | {
        "_DML_TILE_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
    }
    command = [sys.executable, "-c", COMMAND_LINE]
    done = subprocess.run(command, capture_output=True, check=True, env=environment, text=True)
    return done.stdout.split(), done.stderr


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (
            "dml-tile ",
            ["check", "cmake-dir", "emit", "explain", "include-dir", "levels", "lower", "run", "schema", "show"],
        ),
        ("dml-tile check --ag", ["--against"]),
        ("dml-tile lower examples/tile.json --no-f", ["--no-float-carriers"]),
        ("dml-tile check --against ", ["documentation", "runtime", "both"]),
        ("dml-tile emit --lang ", ["cpp", "json", "python"]),
        ("dml-tile check -t 4", ["4_0", "4_1"]),
        ("dml-tile lower a.json --target windows-10-21", ["windows-10-21h1", "windows-10-21h2"]),
        ("dml-tile explain DML-OPERATOR-Type", ["DML-OPERATOR-Type", "DML-OPERATOR-Type-unsupported"]),
        ("dml-tile check --via o", ["ort"]),
        ("dml-tile check --ignore DML-OPERATOR-n", ["DML-OPERATOR-null", "DML-OPERATOR-not-a-tile"]),
        ("dml-tile zzz", []),
        ("dml-tile check examples/ti", []),  # files are completed by the shell itself
    ],
)
def test_a_word_is_completed(words: str, expected: list[str]) -> None:
    offered, _ = completed(words)
    assert sorted(offered) == sorted(expected)


def test_completing_imports_neither_numpy_nor_the_descriptors() -> None:
    _, imported = completed("dml-tile run --against ")
    assert imported == "[]\n"


def test_the_line_that_the_page_gives_makes_bash_complete(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "completion.md").read_text()
    (line,) = (line.strip() for line in page.splitlines() if line.strip().startswith("eval "))
    bash = shutil.which("bash")
    assert bash is not None
    (tmp_path / "dml-tile").write_text(f"#!{sys.executable}\n{COMMAND_LINE}")
    (tmp_path / "dml-tile").chmod(0o755)
    pressed = 'COMP_WORDS=(dml-tile ch) COMP_CWORD=1; _dml_tile_completion dml-tile; echo "${COMPREPLY[@]}"'
    command = [bash, "--norc", "-c", f"{line}\n{pressed}"]
    environment = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    assert subprocess.run(command, capture_output=True, check=True, env=environment, text=True).stdout == "check\n"
