"""Loads an .onnx file without the data of its large tensors, since no shape depends on them.

The data are dropped before the bytes are parsed: a model takes the memory of its graph, not of its weights.
"""

from __future__ import annotations

import mmap
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import onnx
from google.protobuf.message import DecodeError, Message

from dml_tile.errors import InputError
from dml_tile.input_errors import unreadable
from dml_tile.readers.onnx.light import without_large_tensors

MAX_MODEL_BYTES: Final = 2**31 - 1
"""The largest message that protobuf reads."""


def load(path: Path) -> onnx.ModelProto:
    """Load a model without its external data. Raises InputError for a file that is not a readable ONNX model."""
    try:
        data = _light(path)
    except OSError as error:
        raise unreadable("", f"cannot be read: {error.strerror}") from None
    if data is None:
        raise _no_model("it is truncated, or another format")
    try:
        model = onnx.load_model_from_string(data)
    except DecodeError:
        raise _no_model("it is truncated, or another format") from None
    if not model.ir_version:
        raise _no_model("it has no ir_version")
    if not model.HasField("graph"):
        raise _no_model("it has no graph")
    if not model.opset_import and model.ir_version >= 3:
        raise _no_model("it imports no operator set")
    if not all(isinstance(text, str) for text in _texts(model)):
        raise unreadable("", "has a text that is not UTF-8")
    return model


def _no_model(reason: str) -> InputError:
    return unreadable("", f"is not an ONNX model: {reason}")


def _texts(message: Message) -> Iterator[object]:
    """Yield all strings in a message; protobuf gives bytes for those that are not UTF-8."""
    for field, value in message.ListFields():
        if field.message_type:
            for part in (value,) if isinstance(value, Message) else value:
                yield from _texts(part)
        elif field.type == field.TYPE_STRING:
            yield from (value,) if isinstance(value, str | bytes) else value


def _light(path: Path) -> bytes | None:
    """Read the file's bytes, without large data; None where they are no model's."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise unreadable("", "is not a regular file")
    if not status.st_size:
        raise _no_model("it is empty")
    if status.st_size > MAX_MODEL_BYTES:
        raise unreadable("", f"has {status.st_size} bytes; protobuf reads at most {MAX_MODEL_BYTES}")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return without_large_tensors(data)
