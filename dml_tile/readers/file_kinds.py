"""The table of file kinds, read or not: how each is recognised and read, and what messages call it.

Folders, ``paths``, the choice of a reader, messages, ``--help`` and docs/check.md use it.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

Reader: TypeAlias = Literal["ONNX", "OpenVINO", "JSON", "JSON lines"]


class Content(NamedTuple):
    """The content that a file of a kind has if it may hold tiles.

    ``pattern`` matches the content, ``name`` names it for messages. Text is decoded by its byte order mark.
    """

    name: str
    pattern: bytes
    is_text: bool = True


_KEYS: Final = Content(
    "a tile's keys",
    # A comma or a closing bracket follows no key; any other character may replace a missing colon.
    (
        rb'"(?:(?:In|Out)put(?:Tensor|Edges|GradientTensor)|(?:in|out)put_(?:tensor|edges|gradient_tensor)'
        rb"|InputParametersTensor|input_parameters_tensor|dispatchables|initialValues|dml_tile_capture)"
        rb'"\s*+(?:[^\s,\]}]|\Z)|"[Tt]ype"\s*+:\s*+"DML_OPERATOR_'
    ),
)
"""The keys of descriptors (each operator has one), graphs, DxDispatch's models and captures."""

_NETWORK: Final = Content("a network", rb"<net(?![\w.:-])")
_GRAPH: Final = Content("a TensorFlow graph", b"Placeholder|Const", False)


class FileKind(NamedTuple):
    """A kind of file: its name in messages, its suffixes, and its reader (None: it is not read).

    A model is read in a child process. A file found in a folder is read if it has the ``content``; None: always.
    ``begins``, an offset and the bytes there, recognises files without the suffix. ``advice`` is about a kind that is
    not read.
    """

    name: str
    suffixes: tuple[str, ...]
    reader: Reader | None = None
    is_model: bool = False
    content: Content | None = None
    begins: tuple[int, bytes] | None = None
    advice: str = ""


DOCUMENT: Final = FileKind("descriptors or a DxDispatch model in JSON", (".json",), "JSON", content=_KEYS)
"""The kind of a file whose suffix is not in the table."""

KINDS: tuple[FileKind, ...] = (
    FileKind("an ONNX model", (".onnx",), "ONNX", is_model=True, begins=(0, b"\x08")),  # the field ir_version
    FileKind("OpenVINO IR", (".xml",), "OpenVINO", is_model=True, content=_NETWORK),
    FileKind("a TensorFlow Lite model", (".tflite",), "OpenVINO", is_model=True, begins=(4, b"TFL3")),
    FileKind(
        "a part of a TensorFlow SavedModel",
        ("saved_model.pb", "fingerprint.pb", "keras_metadata.pb"),
        advice="convert it with tf2onnx and check the .onnx file",
    ),
    FileKind("a frozen TensorFlow graph", (".pb",), "OpenVINO", is_model=True, content=_GRAPH),
    FileKind("a Paddle model", (".pdmodel",), "OpenVINO", is_model=True),
    DOCUMENT,
    FileKind("JSON lines", (".jsonl", ".ndjson"), "JSON lines", content=_KEYS),
    FileKind(
        "a model in ONNX Runtime's own format",
        (".ort",),
        begins=(4, b"ORTM"),
        advice="check the .onnx file that it was converted from",
    ),
    FileKind(
        "a PyTorch file",
        (".pt", ".pth", ".pt2", ".ckpt"),
        begins=(0, b"\x80\x02"),
        advice="export it with torch.onnx.export and check the .onnx file",
    ),
    FileKind(
        "a Keras model",
        (".h5", ".hdf5", ".keras"),
        begins=(0, b"\x89HDF\r\n"),
        advice="convert it with tf2onnx and check the .onnx file",
    ),
    FileKind("C or C++ source", (".c", ".cc", ".cpp", ".cxx", ".h", ".hpp")),
    FileKind("Python source", (".py",)),
    FileKind("a file of weights (safetensors)", (".safetensors",)),
    FileKind("a GGUF model", (".gguf",), begins=(0, b"GGUF")),
    FileKind("a Core ML model", (".mlmodel",)),
    FileKind("a file of weights", (".bin",)),
    FileKind("a zip archive, such as PyTorch and Keras write", (".zip",), begins=(0, b"PK\x03\x04")),
)
"""The kinds of files, one a row; the first row of which a suffix or ``begins`` fits counts."""

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
    """Return the kind of a file that cannot be read as JSON, and advice; empty for an unknown kind."""
    if beginning.startswith(LFS_POINTER):
        return IS_A_POINTER
    kind = kind_of(name)
    if kind is None or kind.reader:
        begun = (kind for kind in KINDS if kind.begins and beginning.startswith(kind.begins[1], kind.begins[0]))
        kind = next(begun, None)
    if kind is None:
        return ""
    if kind.reader:
        suffix = kind.suffixes[0]
        return f"is {kind.name}; models are read from files: save it as a file named *{suffix}, and name that"
    return f"is {kind.name}, which is not read; these are: {read_kinds()}{f'; {kind.advice}' if kind.advice else ''}"
