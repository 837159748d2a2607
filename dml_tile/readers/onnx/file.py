"""Reads an ONNX model and its small tensors.

Large tensors' data are taken out of the model's bytes, unread, before protobuf parses them.
"""

from __future__ import annotations

import math
import mmap
import re
import stat
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Any, Final, TypeAlias

import numpy as np
import onnx
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError, Message
from numpy.typing import NDArray
from onnx import FunctionProto, GraphProto, NodeProto, TensorProto, helper, numpy_helper

from dml_tile.errors import InputError, input_error
from dml_tile.files.paths import AllowedFolders
from dml_tile.readers.model_tile import MAX_DIMENSIONS
from dml_tile.text import shown

LARGE: Final = 2**16
"""A tensor's data of this many bytes are dropped; shapes and repeats have fewer."""

_MAX_DEPTH: Final = 100
"""The deepest nesting of messages, protobuf's own limit."""

# Protobuf's wire types: how a field is written.
_VARINT: Final = 0
_DELIMITED: Final = 2
_FIXED: Final = {1: 8, 5: 4}
"""Wire types with their fixed numbers of bytes."""

_Bytes: TypeAlias = bytes | mmap.mmap


def _stripped(data: _Bytes, start: int, end: int, message: Descriptor, depth: int) -> bytes:
    """Return the message at ``start`` without large data at any depth. Raises DecodeError."""
    if not depth:
        raise DecodeError
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
            raise DecodeError
        number = tag >> 3
        if position > end or not number:
            raise DecodeError
        if wire != _DELIMITED or length <= LARGE or (field := message.fields_by_number.get(number)) is None:
            continue
        if field.message_type:
            light = _stripped(data, begin, position, field.message_type, depth - 1)
            parts += [data[copied:field_start], _encoded(tag), _encoded(len(light)), light]
            copied = position
        elif message is TensorProto.DESCRIPTOR and field.name.endswith("_data"):
            parts.append(data[copied:field_start])
            copied = position
    return b"".join([*parts, data[copied:end]])


def _varint(data: _Bytes, position: int, end: int) -> tuple[int, int]:
    """Return the number at a position, and the position after it."""
    value = 0
    for shift, place in zip(range(0, 70, 7), range(position, end), strict=False):
        byte = data[place]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, place + 1
    raise DecodeError


def _encoded(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


_VARINT_BYTES: Final = 10
"""The most bytes of an element that is no string."""

_KNOWN_TYPES: Final = {number: name for name, number in TensorProto.DataType.items() if name != "UNDEFINED"}

Array = NDArray[Any]

MAX_ELEMENTS: Final = 2**16
"""The most elements that a tensor may have to be read; shapes and repeats have one for each dimension."""

_EXTERNAL_TYPES: Final = (TensorProto.INT64, TensorProto.INT32)
"""The types of shapes, repeats and axes; other external data are not read."""

_NUMBER: Final = re.compile("[0-9]{1,24}")
"""An offset or a length of external data."""


def small(tensor: TensorProto, folder: Path) -> Array | None:
    """Return the tensor's values; None if it is large, or external of another type than int64 and int32.

    ``folder`` is the model's. Raises InputError for external data that cannot be read below it, and for other data than
    the tensor's type and shape say.
    """
    count = elements_of(tensor)
    if count is None or any(size < 0 for size in tensor.dims) or count > MAX_ELEMENTS:
        return None
    if tensor.data_location == TensorProto.EXTERNAL:
        return _external(tensor, folder) if tensor.data_type in _EXTERNAL_TYPES else None
    try:
        return np.asarray(numpy_helper.to_array(tensor))
    except Exception:  # of any class: too little data, too much, none at all, an unknown type
        if count * _VARINT_BYTES > LARGE or tensor.data_type not in _KNOWN_TYPES:
            return None
        kind = _KNOWN_TYPES[tensor.data_type]
        reason = f"are no {count} elements of {kind}, which its shape {[*tensor.dims]} and type say"
        raise input_error("", f"the data of {shown(tensor.name)} {reason}") from None


def elements_of(tensor: TensorProto) -> int | None:
    """Return the number of a tensor's elements; None for one of so many dimensions that it may have any length."""
    return math.prod(tensor.dims) if len(tensor.dims) <= MAX_DIMENSIONS else None


def subgraphs(node: NodeProto) -> Iterator[tuple[str, GraphProto]]:
    """Yield the graphs that are attributes of a node, each after its place."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.name, attribute.g
        if attribute.graphs:
            yield from ((f"{attribute.name}[{i}]", graph) for i, graph in enumerate(attribute.graphs))


def graphs(graph: GraphProto) -> Iterator[GraphProto]:
    """Yield a graph, and those inside its nodes, at any depth."""
    yield graph
    for node in graph.node:
        for _, inner in subgraphs(node):
            yield from graphs(inner)


def nodes(graph: GraphProto | FunctionProto) -> Iterator[NodeProto]:
    """Yield the nodes of a graph or a function, at any depth."""
    for node in graph.node:
        yield node
        for _, inner in subgraphs(node):
            yield from nodes(inner)


def _external(tensor: TensorProto, folder: Path) -> Array:
    """Read external data. Raises InputError if they are outside the folder, missing, or of another length."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    where = f"the data of {tensor.name!r}"
    if PurePath(location).is_absolute() or ".." in PurePath(location).parts:
        raise input_error(where, f"{location!r} is no path below the model's folder")
    path = AllowedFolders((folder,), allow_hidden=True, follow_links=True).readable(location, where)
    dtype = helper.tensor_dtype_to_np_dtype(tensor.data_type).newbyteorder("<")
    count = math.prod(tensor.dims)
    wanted = count * dtype.itemsize
    numbers = entries.get("offset", "0"), entries.get("length", str(wanted))
    if not all(map(_NUMBER.fullmatch, numbers)) or int(numbers[1]) != wanted:
        given = f"offset {shown(entries.get('offset'))} and length {shown(entries.get('length'))}"
        raise input_error(where, f"{given} in {location!r}; the tensor has {wanted} bytes")
    offset = int(numbers[0])
    try:
        with path.open("rb") as file:
            file.seek(offset)
            data = file.read(wanted)
    except (OSError, ValueError) as error:  # ValueError: an offset past int64
        raise input_error(where, f"{location!r} cannot be read: {error}") from None
    if len(data) < wanted:
        raise input_error(where, f"{location!r} ends before byte {offset + wanted}")
    array: Array = np.frombuffer(data, dtype).reshape(tuple(tensor.dims))
    return array


MAX_MODEL_BYTES: Final = 2**31 - 1
"""The largest message that protobuf reads."""


def load(path: Path) -> onnx.ModelProto:
    """Load a model without its external data. Raises InputError for a file that is not a readable ONNX model."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise input_error("", "is not a regular file")
        if not status.st_size:
            raise _no_model("it is empty")
        if status.st_size > MAX_MODEL_BYTES:
            raise input_error("", f"has {status.st_size} bytes; protobuf reads at most {MAX_MODEL_BYTES}")
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            light = _stripped(data, 0, len(data), onnx.ModelProto.DESCRIPTOR, _MAX_DEPTH)
        model = onnx.load_model_from_string(light)
    except OSError as error:
        raise input_error("", f"cannot be read: {error.strerror}") from None
    except DecodeError:
        raise _no_model("it is truncated, or another format") from None
    if not model.ir_version:
        raise _no_model("it has no ir_version")
    if not model.HasField("graph"):
        raise _no_model("it has no graph")
    if not model.opset_import and model.ir_version >= 3:
        raise _no_model("it imports no operator set")
    if not all(isinstance(text, str) for text in _texts(model)):
        raise input_error("", "has a text that is not UTF-8")
    return model


def _no_model(reason: str) -> InputError:
    return input_error("", f"is not an ONNX model: {reason}")


def _texts(message: Message) -> Iterator[object]:
    """Yield all strings in a message, as bytes if they are not UTF-8."""
    for field, value in message.ListFields():
        if field.message_type:
            for part in (value,) if isinstance(value, Message) else value:
                yield from _texts(part)
        elif field.type == field.TYPE_STRING:
            yield from (value,) if isinstance(value, str | bytes) else value
