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
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError, Message

from dml_tile.errors import InputError
from dml_tile.input_errors import unreadable

MAX_MODEL_BYTES: Final = 2**31 - 1
"""The largest message that protobuf reads."""

LARGE: Final = 2**16
"""The bytes from which a tensor's data are dropped; no shape and no repeats have as many."""

_DATA: Final = {"raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data", "string_data"}
_MAX_DEPTH: Final = 100
"""The nesting of messages; protobuf's own limit."""

# Protobuf's wire types: how a field is written.
_VARINT: Final = 0
_DELIMITED: Final = 2
_FIXED: Final = {1: 8, 5: 4}
"""Wire types of as many bytes."""


def load(path: Path) -> onnx.ModelProto:
    """Load a model without its external data. Raises InputError for a file that is not a readable ONNX model."""
    try:
        data = _light(path)
    except OSError as error:
        raise unreadable("", f"cannot be read: {error.strerror}") from None
    except _MalformedError:
        raise _no_model("it is truncated, or another format") from None
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


class _MalformedError(ValueError):
    """Bytes are not a protobuf message."""


def _no_model(reason: str) -> InputError:
    return unreadable("", f"is not an ONNX model: {reason}")


def _texts(message: Message) -> Iterator[object]:
    """All strings in a message; protobuf gives bytes for those that are not UTF-8."""
    for field, value in message.ListFields():
        if field.message_type:
            for part in (value,) if isinstance(value, Message) else value:
                yield from _texts(part)
        elif field.type == field.TYPE_STRING:
            yield from (value,) if isinstance(value, str | bytes) else value


def _light(path: Path) -> bytes:
    """Read the file's bytes, without large data."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise unreadable("", "is not a regular file")
    if not status.st_size:
        raise _no_model("it is empty")
    if status.st_size > MAX_MODEL_BYTES:
        raise unreadable("", f"has {status.st_size} bytes; protobuf reads at most {MAX_MODEL_BYTES}")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return _lightened(data, 0, len(data), onnx.ModelProto.DESCRIPTOR, _MAX_DEPTH)


def _lightened(data: mmap.mmap, start: int, end: int, message: Descriptor, depth: int) -> bytes:
    """The message at ``start`` without large data in it, at any depth."""
    if not depth:
        raise _MalformedError
    parts = []
    position = copied = start
    while position < end:
        field_start = position
        tag, position = _varint(data, position, end)
        wire = tag & 7
        if wire == _VARINT:
            _, position = _varint(data, position, end)
        elif wire in _FIXED:
            position += _FIXED[wire]
        elif wire == _DELIMITED:
            length, begin = _varint(data, position, end)
            position = begin + length
        else:
            raise _MalformedError
        if position > end or not tag >> 3:
            raise _MalformedError
        field = message.fields_by_number.get(tag >> 3)
        if wire != _DELIMITED or length <= LARGE or field is None:
            continue
        if message.name == "TensorProto" and field.name in _DATA:
            parts.append(data[copied:field_start])
            copied = position
        elif field.message_type:
            light = _lightened(data, begin, position, field.message_type, depth - 1)
            parts += [data[copied:field_start], _encoded(tag), _encoded(len(light)), light]
            copied = position
    return b"".join([*parts, data[copied:end]])


def _varint(data: mmap.mmap, position: int, end: int) -> tuple[int, int]:
    """Decode the number at a position; return it and the position after it."""
    value = 0
    for shift, place in zip(range(0, 70, 7), range(position, end), strict=False):
        byte = data[place]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place + 1
    raise _MalformedError


def _encoded(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])
