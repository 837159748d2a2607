"""Names files of kinds that are not read, by their suffixes or their first bytes, for messages."""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import Final

from dml_tile.input_errors import unreadable

SAVED_MODEL: Final = "saved_model.pb"
"""The file that makes a folder a TensorFlow SavedModel; it stands for the folder, which is read as one model."""

SAVED_MODEL_PARTS: Final = frozenset(
    ("assets", "assets.extra", "debug", "fingerprint.pb", "keras_metadata.pb", "variables")
)
"""Files and folders that TensorFlow writes next to a saved_model.pb, which stands for them all."""

READ_KINDS: Final = (
    "ONNX models (.onnx), OpenVINO IR (.xml), TensorFlow Lite (.tflite), frozen TensorFlow graphs (.pb), TensorFlow "
    "SavedModel folders, Paddle models (.pdmodel) and JSON are read"
)

_BY_SUFFIX: Final = {
    ".ort": "a model in ONNX Runtime's own format",
    **dict.fromkeys((".pt", ".pth", ".pt2", ".ckpt"), "a PyTorch file"),
    **dict.fromkeys((".h5", ".hdf5", ".keras"), "a Keras model"),
    **dict.fromkeys((".c", ".cc", ".cpp", ".cxx", ".h", ".hpp"), "C or C++ source"),
    ".py": "Python source",
    ".safetensors": "a file of weights (safetensors)",
    ".gguf": "a GGUF model",
    ".mlmodel": "a Core ML model",
    ".bin": "a file of weights",
    ".onnx": "an ONNX model",
    ".tflite": "a TensorFlow Lite model",
    ".zip": "a zip archive, such as PyTorch and Keras write",
}

_BY_BEGINNING: Final = (
    # where the bytes stand, the bytes, and the suffix of files that begin so
    (4, b"TFL3", ".tflite"),
    (4, b"ORTM", ".ort"),
    (0, b"\x89HDF\r\n", ".h5"),
    (0, b"GGUF", ".gguf"),
    (0, b"PK\x03\x04", ".zip"),
    (0, b"\x80\x02", ".pt"),
    (0, b"\x08", ".onnx"),  # the field ir_version, which comes first
)

_ADVICE: Final = {
    ".ort": "check the .onnx file that it was converted from",
    ".pt": "export it with torch.onnx.export and check the .onnx file",
    ".h5": "convert it with tf2onnx and check the .onnx file, or save it as a SavedModel",
}

_LFS_POINTER: Final = b"version https://git-lfs.github.com/spec/"


def require_no_pointer(path: Path, name: str = "") -> None:
    """Raise InputError for a pointer of Git LFS in place of a file; ``name`` is that of weights beside the model."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        if file.read(len(_LFS_POINTER)) == _LFS_POINTER:
            raise unreadable("", f"{f'its weights: {name} ' if name else ''}is a pointer of Git LFS; run git lfs pull")


def unread_kind(name: str, beginning: bytes) -> str:
    """Return a name for the kind of an unsupported file, and what to do instead; empty for an unknown kind."""
    suffix = PurePath(name).suffix.lower()
    if suffix not in _BY_SUFFIX:
        found = (kind for start, magic, kind in _BY_BEGINNING if beginning[start:].startswith(magic))
        suffix = next(found, "")
    if suffix not in _BY_SUFFIX:
        return ""
    kind = _BY_SUFFIX[suffix]
    if suffix in (".onnx", ".tflite"):
        return f"is {kind}; models are read from files: save it as a file named *{suffix}, and name that"
    advice = next((_ADVICE[known] for known in _ADVICE if _BY_SUFFIX[known] == kind), "")
    return f"is {kind}, which is not read; {READ_KINDS}{f'; {advice}' if advice else ''}"
