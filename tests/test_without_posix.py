"""The package with what Windows lacks taken away: in its own processes, and in the one that reads models."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from dml_tile.cli import formats
from dml_tile.errors import OutputError
from tests.helpers.check_files import BAD, INT64, TILE, write
from tests.helpers.command_line import Call
from tests.helpers.paths import EXAMPLES, ROOT

pytestmark = pytest.mark.long

WITHOUT_POSIX: Final = ROOT / "tests" / "helpers" / "without_posix"


def python(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs Python without what Windows lacks; its children lack it too."""
    path = os.pathsep.join([str(WITHOUT_POSIX), str(ROOT)])
    return subprocess.run(
        [sys.executable, "-X", "utf8=0", *arguments],
        capture_output=True,
        check=False,
        encoding="utf-8",
        errors="surrogateescape",
        env=os.environ | {"PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"} | environment,
    )


IMPORTS: Final = """
import os, pkgutil, signal, sys
import dml_tile
assert sys.modules["resource"] is None and not hasattr(os, "fork") and not hasattr(signal, "SIGALRM")
for module in pkgutil.walk_packages(dml_tile.__path__, "dml_tile."):
    if module.name != "dml_tile.__main__":
        __import__(module.name)
for name in dml_tile.__all__:
    getattr(dml_tile, name)
"""


LARGE: Final = "import numpy as np, dml_tile; print(dml_tile.tile(np.ones((1024, 1024), np.float32), (2, 2)).nbytes)"
SLOW: Final = """
import sys, time
from contextlib import closing
from pathlib import Path
from dml_tile.readers.model_names import KnownShapes
from dml_tile.readers.sandbox.parent import ModelReader
command = (sys.executable, "-c", "import time; time.sleep(60)")
with closing(ModelReader(KnownShapes(), seconds=0.5, command=command)) as reader:
    print(*(part.text for part in reader.parts(Path(sys.argv[1]))))
"""


@pytest.mark.parametrize(
    ("code", "printed"),
    [(IMPORTS, ""), (LARGE, f"{4 * 4 * 1024**2}\n"), (SLOW, "reading took longer than 0.5 s\n")],
    ids=["every module is imported", "a large tile takes all processors", "the reading child is bounded by a clock"],
)
def test_python_code_does_the_same(code: str, printed: str) -> None:
    done = python("-c", code, str(EXAMPLES / "models" / "two_tiles.onnx"))
    assert (done.returncode, done.stdout, done.stderr) == (0, printed, "")


@pytest.mark.parametrize(
    "arguments",
    [
        ["check", "two_tiles.onnx", "two_tiles.xml", "-t", "windows-11-21h2,6_4"],
        ["check", ".", "-t", "6_4", "--format", "json"],
        ["check", "*.json", "-t", "6_4", "--format", "sarif"],
        ["check", "int64.json", "-t", "6_4", "--format", "text:out.txt"],
        ["lower", "int64.json", "-t", "2_0"],
        ["show", "a.json"],
        ["run", str(EXAMPLES / "tile.json")],
        ["emit", "a.json", "--lang", "cpp"],
    ],
    ids=" ".join,
)
def test_a_command_does_the_same(arguments: list[str], call: Call) -> None:
    for name, tile in (("a.json", TILE), ("bad.json", BAD), ("int64.json", INT64)):
        write(name, tile)
    for model in ("two_tiles.onnx", "two_tiles.xml", "two_tiles.bin"):
        Path(model).write_bytes((EXAMPLES / "models" / model).read_bytes())
    expected = call(*arguments)
    outputs = {path: path.read_bytes() for path in Path().glob("out.*")}
    done = python("-m", "dml_tile", *arguments)
    assert (done.stdout, done.stderr, done.returncode) == (expected.stdout, expected.stderr, expected.exit_code)
    assert {path: path.read_bytes() for path in Path().glob("out.*")} == outputs


@pytest.mark.parametrize("encoding", ["cp1252", "cp437", "cp1252:strict", "ascii"])
@pytest.mark.parametrize("arguments", [["check", "☃ é.json", "-t", "6_4"], ["check", "--help"]])
def test_a_console_without_utf_8_gets_all_of_it(arguments: list[str], encoding: str, call: Call) -> None:
    write("☃ é.json", INT64)
    expected = call(*arguments).stdout
    codec = encoding.partition(":")[0]
    environment = os.environ | {"PYTHONIOENCODING": encoding}
    done = subprocess.run(
        [sys.executable, "-m", "dml_tile", *arguments], capture_output=True, check=False, env=environment
    )
    assert done.stderr == b""
    assert done.returncode in (0, 1)
    if "--help" not in arguments:  # whose frames are drawn otherwise
        assert done.stdout == expected.encode(codec, "backslashreplace")


class _Departed:
    def write(self, text: str) -> int:
        raise OSError(22, "Invalid argument")

    def fileno(self) -> int:
        raise AssertionError("standard output is dropped by another name")


@pytest.mark.parametrize("is_windows", [True, False])
def test_a_departed_reader_is_an_invalid_argument(is_windows: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    dropped: list[Any] = []
    monkeypatch.setattr(formats, "drop_output", lambda: dropped.append(None))
    output = formats.OutputStream(_Departed())
    if not is_windows:
        with pytest.raises(OutputError, match="Invalid argument"):
            output.write("a")
        return
    monkeypatch.setattr(formats, "READER_HAS_GONE", (32, 22))
    assert output.write("a") == 1
    assert dropped == [None]
