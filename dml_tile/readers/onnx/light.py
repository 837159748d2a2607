"""Takes the data of large tensors out of the bytes of an ONNX model, before anything parses them.

It needs neither onnx nor protobuf, and looks at no byte of what it leaves out.
"""

from __future__ import annotations

import mmap
from typing import Final, TypeAlias

LARGE: Final = 2**16
"""The bytes from which a tensor's data are dropped; no shape and no repeats have as many."""

TENSOR: Final = "TensorProto"

TENSOR_DATA: Final = frozenset((4, 5, 6, 7, 9, 10, 11))
"""The fields of a TensorProto that hold its data: float_data, int32_data, string_data, int64_data, raw_data, …"""

MESSAGES: Final = {
    # the fields of a message whose messages may hold tensors, at any depth
    "ModelProto": {7: "GraphProto", 20: "TrainingInfoProto", 25: "FunctionProto"},
    "GraphProto": {1: "NodeProto", 5: TENSOR, 15: "SparseTensorProto"},
    "TrainingInfoProto": {1: "GraphProto", 2: "GraphProto"},
    "FunctionProto": {7: "NodeProto", 11: "AttributeProto"},
    "NodeProto": {5: "AttributeProto"},
    "AttributeProto": {
        5: TENSOR,
        6: "GraphProto",
        10: TENSOR,
        11: "GraphProto",
        22: "SparseTensorProto",
        23: "SparseTensorProto",
    },
    "SparseTensorProto": {1: TENSOR, 2: TENSOR},
    TENSOR: {},
}

_MAX_DEPTH: Final = 100
"""The nesting of messages; protobuf's own limit."""

# Protobuf's wire types: how a field is written.
_VARINT: Final = 0
_DELIMITED: Final = 2
_FIXED: Final = {1: 8, 5: 4}
"""Wire types of as many bytes."""

_Bytes: TypeAlias = bytes | mmap.mmap


class _MalformedError(Exception):
    """Bytes are not a protobuf message."""


def without_large_tensors(data: _Bytes) -> bytes | None:
    """Return a model without the data of its large tensors; None where the bytes are not a protobuf message."""
    try:
        return _stripped(data, 0, len(data), "ModelProto", _MAX_DEPTH)
    except _MalformedError:
        return None


def _stripped(data: _Bytes, start: int, end: int, message: str, depth: int) -> bytes:
    """Return the message at ``start`` without large data in it, at any depth."""
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
        field = tag >> 3
        if position > end or not field:
            raise _MalformedError
        if wire != _DELIMITED or length <= LARGE:
            continue
        if message == TENSOR and field in TENSOR_DATA:
            parts.append(data[copied:field_start])
            copied = position
        elif (inner := MESSAGES[message].get(field)) is not None:
            light = _stripped(data, begin, position, inner, depth - 1)
            parts += [data[copied:field_start], _encoded(tag), _encoded(len(light)), light]
            copied = position
    return b"".join([*parts, data[copied:end]])


def _varint(data: _Bytes, position: int, end: int) -> tuple[int, int]:
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
