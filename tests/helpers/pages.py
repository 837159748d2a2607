"""Markdown pages, and the run of their examples.

A fenced block of ``console`` is commands and what they print; of ``python``, code whose comments behind ``print(…)``
begin what is printed. A block below a line of a file's name and a colon is that file.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.helpers.command_line import invoke
from tests.helpers.compilers import link_directx_headers
from tests.helpers.paths import ROOT

_BLOCK: Final = re.compile(r"^(?:`(?P<file>[\w./-]+)`:\n\n)?```(?P<language>\w+)\n(?P<text>.*?)^```$", re.M | re.S)
_COMMAND: Final = re.compile(r"^\$ ((?:.*\\\n)*.*)\n", re.M)
_PRINTED: Final = re.compile(r"print\(.*  # (.*)")
_WORD: Final = re.compile(r"(?:(?:\(dml-tile [^)]*\)|https://)\S*|\S+)\s*")

COLUMNS: Final = 90
"""As many as code hosts show without scrolling."""


class Block(NamedTuple):
    """A fenced block, its text, and the name of the file that it is."""

    language: str
    text: str
    file: str | None


def blocks_of(page: str) -> Iterator[Block]:
    """Yield the fenced blocks of a page."""
    for match in _BLOCK.finditer(page):
        yield Block(match["language"], match["text"], match["file"])


def commands_of(console: str) -> list[tuple[str, str]]:
    """Return the commands in a block of ``console``, in one line, each with the output shown below it."""
    _, *parts = _COMMAND.split(console)
    return list(zip(map(in_one_line, parts[::2]), parts[1::2], strict=True))


def in_one_line(command: str) -> str:
    """Return a command without the ends of its lines."""
    return re.sub(r" \\\n\s+", " ", command)


def in_columns(text: str) -> str:
    """Return text as a terminal of ``COLUMNS`` shows it: long lines in rows within their indent, links whole."""
    rows = []
    for line in text.splitlines():
        indent, row = line[: len(line) - len(line.lstrip())], ""
        for word in _WORD.findall(line):
            if row and len(indent + row + word.rstrip()) > COLUMNS:
                rows.append(indent + row.rstrip())
                row = ""
            row += word
        rows.append((indent + row).rstrip())
    return "".join(f"{row}\n" for row in rows)


def printed_by(command: str) -> str:
    """Returns what a command prints on standard output, in the current folder."""
    if command.startswith("dml-tile "):
        _, *arguments = shlex.split(command)
        printed = invoke(*arguments).stdout
        is_prose = arguments[0] in ("check", "device", "explain", "levels") and "--format" not in arguments
        return in_columns(printed) if is_prose else printed
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = os.environ | {"PATH": path, "PYTEST_ADDOPTS": "-p no:randomly"}
    return subprocess.run(["bash", "-c", command], capture_output=True, check=True, text=True, env=environment).stdout


def run_python(code: str, names: dict[str, Any]) -> None:
    """Run code, and raise AssertionError unless it prints what its comments say; ``…`` cuts a comment short."""
    comments = [comment.removesuffix("…") for comment in _PRINTED.findall(code)]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, names)
    lines = dict.fromkeys(printed.getvalue().splitlines())  # both tensors may have the same finding
    for comment in comments:
        assert any(line.startswith(comment) for line in lines), f"{comment!r} is not printed, but {list(lines)}"


def executed(page: str, folder: Path) -> str:
    """A page with what its commands really print, done block by block in a folder.

    The folder gets the repository's ``examples`` and ``DirectX-Headers``: those that a variable names, or a stand-in.
    Python's blocks share their names.
    """
    shutil.copytree(ROOT / "examples", folder / "examples")
    link_directx_headers(folder)
    names: dict[str, Any] = {}

    def done(block: re.Match[str]) -> str:
        text = block["text"]
        if block["file"] is not None:
            Path(block["file"]).parent.mkdir(parents=True, exist_ok=True)
            Path(block["file"]).write_text(text)
        elif block["language"] == "console":
            text = "".join(f"$ {command}\n{printed_by(in_one_line(command))}" for command in _COMMAND.findall(text))
        elif block["language"] == "python":
            run_python(text, names)
        return f"{page[block.start() : block.start('text')]}{text}```"

    with contextlib.chdir(folder):
        return _BLOCK.sub(done, page)
