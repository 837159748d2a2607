"""The table of file kinds, read or not: how each is recognised and read, and what messages call it.

Folders, ``paths``, the choice of a reader, messages, ``--help`` and docs/check.md use it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

Reader: TypeAlias = Literal["ONNX", "OpenVINO", "JSON", "JSON lines"]


class Content(NamedTuple):
    """The content that a file of a kind has if it may hold tiles.

    ``pattern`` matches the content, ``name`` names it for messages. Text is decoded by its byte order mark.
    """

    name: str
    pattern: bytes
    is_text: bool = True


_CONTENTS: Final = (
    # the keys of descriptors (each operator has one), graphs, DxDispatch's models and captures; a comma or a closing
    # bracket follows no key, and any other character may replace a missing colon
    Content(
        "a tile's keys",
        rb'"(?:(?:In|Out)put(?:Tensor|Edges|GradientTensor)|(?:in|out)put_(?:tensor|edges|gradient_tensor)'
        rb"|InputParametersTensor|input_parameters_tensor|dispatchables|initialValues|dml_tile_capture)"
        rb'"\s*+(?:[^\s,\]}]|\Z)|"[Tt]ype"\s*+:\s*+"DML_OPERATOR_',
    ),
    Content("a network", rb"<net(?![\w.:-])"),
    Content("a TensorFlow graph", b"Placeholder|Const", False),
)


class FileKind(NamedTuple):
    """A kind of file: its name in messages, its suffixes, and its reader (None: it is not read).

    A model is read in a child process. A file found in a folder is read if it has the ``content``; None: always.
    The bytes that it ``begins`` with, from ``begins_at`` on, recognise files without the suffix. ``advice`` is about a
    kind that is not read.
    """

    name: str
    suffixes: tuple[str, ...]
    reader: Reader | None = None
    is_model: bool = False
    content: Content | None = None
    begins: bytes = b""
    begins_at: int = 0
    advice: str = ""


def _kind(suffixes: list[str], content: str = "", begins: str = "", **fields: Any) -> FileKind:
    """Return a row of file_kinds.json."""
    found = next((each for each in _CONTENTS if each.name == content), None)
    return FileKind(suffixes=tuple(suffixes), content=found, begins=begins.encode("latin-1"), **fields)


KINDS: Final = tuple(
    _kind(**row) for row in json.loads(Path(__file__).with_name("file_kinds.json").read_text(encoding="utf-8"))["kinds"]
)
"""The kinds of files; the first of which a suffix or ``begins`` fits counts."""

LFS_POINTER: Final = b"version https://git-lfs.github.com/spec/"
"""The beginning of a pointer of Git LFS, which replaces a file that was not fetched."""

IS_A_POINTER: Final = "is a pointer of Git LFS; run git lfs pull"


def kind_of(name: str) -> FileKind | None:
    """Return the kind of a file by its suffix; None for a suffix that is not in the table."""
    name = name.lower()
    return next((kind for kind in KINDS if name.endswith(kind.suffixes)), None)


def read_kinds() -> str:
    """Return the kinds of files that are read, each with its suffixes, in words."""
    *others, last = (f"{kind.name} ({', '.join(kind.suffixes)})" for kind in KINDS if kind.reader)
    return f"{', '.join(others)} and {last}"


def read_as_json() -> str:
    """Return which files are read as JSON for want of a suffix of a model's."""
    *others, last = (suffix for kind in KINDS if kind.reader and kind.is_model for suffix in kind.suffixes)
    return f"files of other suffixes than {', '.join(others)} and {last} are read as JSON"


def why_unread(name: str, beginning: bytes) -> str:
    """Return the kind of a file that cannot be read as its name says, or else as JSON, and advice.

    Empty for an unknown kind, and for the one that the name says.
    """
    if beginning.startswith(LFS_POINTER):
        return IS_A_POINTER
    named = kind = kind_of(name)
    if kind is None or kind.reader:
        begun = (kind for kind in KINDS if kind.begins and beginning.startswith(kind.begins, kind.begins_at))
        kind = next(begun, None)
    if kind is None or (kind.reader and kind is named):
        return ""
    if kind.reader:
        suffix = kind.suffixes[0]
        return f"is {kind.name}; models are read from files: save it as a file named *{suffix}, and name that"
    return f"is {kind.name}, which is not read; these are: {read_kinds()}{f'; {kind.advice}' if kind.advice else ''}"
