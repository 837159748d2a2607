"""Reads an ONNX model and its small tensors.

Tensors' data are taken out of the model's bytes, unread, before protobuf parses them, and are read when asked for.
"""

from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Callable, Iterator
from functools import cache, lru_cache, partial
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Any, BinaryIO, Final, TypeAlias

import numpy as np
import onnx
from google.protobuf.descriptor import Descriptor
from google.protobuf.message import DecodeError, Message
from numpy.typing import NDArray
from onnx import FunctionProto, GraphProto, NodeProto, SparseTensorProto, TensorProto, helper, numpy_helper

from dml_tile.back_ends.kernels import Version
from dml_tile.errors import InputError, input_error
from dml_tile.files.paths import AllowedFolders
from dml_tile.readers.file_kinds import why_unread
from dml_tile.readers.model_tile import MAX_DIMENSIONS
from dml_tile.text import shown

LARGE: Final = 2**16
"""A tensor of more bytes is never read; shapes and repeats have fewer."""

KEPT: Final = 2**10
"""A tensor of at most as many bytes is kept in memory; the data of others are read when they are asked for."""

_MAX_DEPTH: Final = 100
"""The deepest nesting of messages, protobuf's own limit."""

# Protobuf's wire types: how a field is written.
_VARINT: Final = 0
_DELIMITED: Final = 2
_FIXED: Final = {1: 8, 5: 4}
"""Wire types with their fixed numbers of bytes."""


def _stripped(file: BinaryIO, start: int, end: int, message: Descriptor, depth: int) -> bytes:
    """Return the message at ``start`` without the data of tensors that are not kept. Raises DecodeError.

    Such a tensor that may be read has, as its segment, its position in the file.
    """
    if not depth:
        raise DecodeError
    is_tensor = message is TensorProto.DESCRIPTOR
    parts = []
    position = copied = start
    while position < end:
        field_start = position
        tag, position = _varint(file, position, end)
        wire = tag & 7
        if wire == _VARINT:
            _, position = _varint(file, position, end)
        elif wire in _FIXED:
            position += _FIXED[wire]
        elif wire == _DELIMITED:
            length, begin = _varint(file, position, end)
            position = begin + length
        else:
            raise DecodeError
        number = tag >> 3
        if position > end or not number:
            raise DecodeError
        is_large = wire == _DELIMITED and length > KEPT
        field = message.fields_by_number.get(number) if is_tensor or is_large else None
        if field is None:
            continue
        if is_tensor and field.name.endswith("_data") and not field.message_type:
            parts.append(_bytes_at(file, copied, field_start))
            copied = position
        elif is_large and field.message_type:
            light = _stripped(file, begin, position, field.message_type, depth - 1)
            parts += [_bytes_at(file, copied, field_start), _encoded(tag), _encoded(len(light)), light]
            copied = position
    parts.append(_bytes_at(file, copied, end))
    if is_tensor and end - start <= LARGE:
        segment = TensorProto.Segment(begin=start, end=end)
        parts.append(TensorProto(segment=segment).SerializeToString())  # the last of two values counts
    return b"".join(parts)


def _bytes_at(file: BinaryIO, start: int, end: int) -> bytes:
    file.seek(start)
    return file.read(end - start)


def _varint(file: BinaryIO, position: int, end: int) -> tuple[int, int]:
    """Return the number at a position, and the position after it."""
    value = 0
    for i, byte in enumerate(_bytes_at(file, position, min(end, position + _VARINT_BYTES))):
        value |= (byte & 0x7F) << 7 * i
        if byte < 0x80:
            return value, position + i + 1
    raise DecodeError


def _encoded(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


_VARINT_BYTES: Final = 10
"""The most bytes of a number, and of an element that is no string."""

_KNOWN_TYPES: Final = {number: name for name, number in TensorProto.DataType.items() if name != "UNDEFINED"}

Array = NDArray[Any]

MAX_ELEMENTS: Final = 2**16
"""The most elements that a tensor may have to be read; shapes and repeats have one for each dimension."""

_EXTERNAL_TYPES: Final = (TensorProto.INT64, TensorProto.INT32)
"""The types of shapes, repeats and axes; other external data are not read."""

_NUMBER: Final = re.compile("[0-9]{1,24}")
"""An offset or a length of external data."""


_BELOW_FOLDER_SINCE: Final = (1, 24)
"""The first release that refuses external data outside of the model's folder; 1.23.2 reads them."""


Lacking: TypeAlias = tuple[str, Version]
"""Why a release of onnxruntime finds no external data, and the first release that does not."""

ANY: Final = (1, 0)
"""Before all releases that were read."""


class Tensors:
    """Reads the tensors of the model in a file, of which it keeps a few."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._again = lru_cache(2**5)(self._read)
        self._bytes_in = cache(partial(_bytes_in, path.parent))

    def held(self, tensor: TensorProto | SparseTensorProto) -> Array | Callable[[], Array | None] | None:
        """Return the tensor's values, or the function that reads them again, if they are more than are kept.

        Returns None for a large tensor, and for external data of another type than int64 and int32. Raises InputError
        for external data that cannot be read below the model's folder, and for other data than type and shape say.
        """
        values = _small(tensor, self.path)
        is_kept, is_sparse = values is None or values.nbytes <= KEPT, isinstance(tensor, SparseTensorProto)
        return values if is_kept else partial(self._again, tensor.SerializeToString(), is_sparse)

    def _read(self, tensor: bytes, is_sparse: bool) -> Array | None:
        return _small((SparseTensorProto if is_sparse else TensorProto).FromString(tensor), self.path)

    def lacking(self, tensor: TensorProto) -> Lacking | None:
        """Return why onnxruntime finds no data of a tensor; None if it finds them, or the file may not be read."""
        if tensor.data_location != TensorProto.EXTERNAL:
            return None
        entries = {"offset": "0", "length": "0"} | {entry.key: entry.value for entry in tensor.external_data}
        location, numbers = entries.get("location", ""), (entries["offset"], entries["length"])
        if not location:
            return "missing: no file is named", ANY
        if _is_outside(self.path.parent, location):
            return f"at no path below the model's folder: {shown(location)}", _BELOW_FOLDER_SINCE
        size = self._bytes_in(location)
        if size is None:
            return f"missing: {shown(location)} does not exist in the model's folder", ANY
        is_short = all(map(_NUMBER.fullmatch, numbers)) and sum(map(int, numbers)) > size
        return (f"missing: {shown(location)} ends after {size} bytes", ANY) if is_short else None


def of_elements(tensor: TensorProto | SparseTensorProto) -> TensorProto:
    """Return the tensor of the elements, which has the name and the type, of a sparse one too."""
    return tensor.values if isinstance(tensor, SparseTensorProto) else tensor


def _small(tensor: TensorProto | SparseTensorProto, path: Path) -> Array | None:
    """Return the values of a tensor of the model in a file, as ``Tensors`` describes."""
    if isinstance(tensor, SparseTensorProto):
        return _dense(tensor, path)
    count = elements_of(tensor)
    if count is None or any(size < 0 for size in tensor.dims) or count > MAX_ELEMENTS:
        return None
    if tensor.data_location == TensorProto.EXTERNAL:
        return _external(tensor, path.parent) if tensor.data_type in _EXTERNAL_TYPES else None
    try:
        return np.asarray(numpy_helper.to_array(_whole(tensor, path)))
    except Exception:  # of any class: too little data, too much, none at all, an unknown type
        if count * _VARINT_BYTES > LARGE or tensor.data_type not in _KNOWN_TYPES:
            return None
        kind = _KNOWN_TYPES[tensor.data_type]
        reason = f"are no {count} elements of {kind}, which its shape {[*tensor.dims]} and type say"
        raise input_error("", f"the data of {shown(tensor.name)} {reason}") from None


def _whole(tensor: TensorProto, path: Path) -> TensorProto:
    """Return a tensor with its data, if they are still in the model's file."""
    begin, end = tensor.segment.begin, tensor.segment.end
    if not 0 <= begin < end <= begin + LARGE:
        return tensor
    with path.open("rb") as file:
        whole = TensorProto.FromString(_bytes_at(file, begin, end))
    return whole if (whole.dims, whole.data_type) == (tensor.dims, tensor.data_type) else tensor


def _dense(tensor: SparseTensorProto, path: Path) -> Array | None:
    """Return the values of a sparse tensor, whose indices are of elements, or have a number for each dimension."""
    count, shape = elements_of(tensor), tuple(tensor.dims)
    values, indices = _small(tensor.values, path), _small(tensor.indices, path)
    if count is None or min(shape, default=0) < 0 or count > MAX_ELEMENTS or values is None or indices is None:
        return None
    try:
        if indices.dtype != np.int64 or values.shape != indices.shape[:1] or indices.min(initial=0) < 0:
            raise ValueError
        dense = np.zeros(count, values.dtype)
        dense[np.ravel_multi_index(tuple(indices.T), shape) if indices.ndim > 1 else indices] = values
    except (IndexError, ValueError):
        name = shown(tensor.values.name)
        raise input_error("", f"the indices of {name} do not name {values.size} elements of {[*shape]}") from None
    return dense.reshape(shape)


def elements_of(tensor: TensorProto | SparseTensorProto) -> int | None:
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


def _bytes_in(folder: Path, location: str) -> float | None:
    """Return the size of a file below a folder; None if there is none, infinity if it may not be read."""
    try:
        path = _below(folder).found(_relative(location, ""), "")
        return None if path is None else path.stat().st_size
    except (InputError, OSError):
        return math.inf


def _is_outside(folder: Path, location: str) -> bool:
    """Return True for an absolute path, on Windows too, and one out of the folder; links are not followed."""
    if PurePosixPath(location).is_absolute() or PureWindowsPath(location).drive:
        return True
    top = folder.absolute()
    return Path(os.path.relpath(top / location, top)).parts[:1] == (os.pardir,)


def _relative(location: str, where: str) -> str:
    if PurePath(location).is_absolute() or ".." in PurePath(location).parts:
        raise input_error(where, f"{location!r} is no path below the model's folder")
    return location


def _below(folder: Path) -> AllowedFolders:
    return AllowedFolders((folder,), allow_hidden=True, follow_links=True)


def _external(tensor: TensorProto, folder: Path) -> Array:
    """Read external data. Raises InputError if they are outside the folder, missing, or of another length."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    where = f"the data of {tensor.name!r}"
    path = _below(folder).readable(_relative(location, where), where)
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


_BEGINNING: Final = 2**6
"""The bytes of a file that tell its kind."""

MAX_MODEL_BYTES: Final = 2**31 - 1
"""The largest message that protobuf reads."""


def load(path: Path) -> onnx.ModelProto:
    """Load a model without its external data. Raises InputError for a file that is not a readable ONNX model."""
    beginning = b""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise input_error("", "is not a regular file")
        if not status.st_size:
            raise _no_model("it is empty")
        if status.st_size > MAX_MODEL_BYTES:
            raise input_error("", f"has {status.st_size} bytes; protobuf reads at most {MAX_MODEL_BYTES}")
        with path.open("rb") as file:
            beginning = _bytes_at(file, 0, _BEGINNING)
            light = _stripped(file, 0, status.st_size, onnx.ModelProto.DESCRIPTOR, _MAX_DEPTH)
        model = onnx.load_model_from_string(light)
    except OSError as error:
        raise input_error("", f"cannot be read: {error.strerror}") from None
    except DecodeError:
        raise _no_model("it is truncated, or another format", beginning) from None
    if not model.ir_version:
        raise _no_model("it has no ir_version", beginning)
    if not model.HasField("graph"):
        raise _no_model("it has no graph", beginning)
    if not model.opset_import and model.ir_version >= 3:
        raise _no_model("it imports no operator set", beginning)
    if not all(isinstance(text, str) for text in _texts(model)):
        raise input_error("", "has a text that is not UTF-8")
    return model


def _no_model(reason: str, beginning: bytes = b"") -> InputError:
    return input_error("", why_unread("*.onnx", beginning) or f"is not an ONNX model: {reason}")


def _texts(message: Message) -> Iterator[object]:
    """Yield all strings in a message, as bytes if they are not UTF-8."""
    for field, value in message.ListFields():
        if field.message_type:
            for part in (value,) if isinstance(value, Message) else value:
                yield from _texts(part)
        elif field.type == field.TYPE_STRING:
            yield from (value,) if isinstance(value, str | bytes) else value
