"""The values of a model's small tensors, from the file itself or from others in its folder.

Page: https://onnx.ai/onnx/repo-docs/ExternalData.html
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from onnx import GraphProto, NodeProto, SparseTensorProto, TensorProto, numpy_helper

from dml_tile.errors import InputError
from dml_tile.files.paths import AllowedFolders
from dml_tile.input_errors import unreadable
from dml_tile.text import shown

Array = NDArray[Any]

MAX_ELEMENTS: Final = 2**16
"""The most elements that a tensor may have to be read; shapes and repeats have one for each dimension."""

_EXTERNAL_TYPES: Final[dict[int, np.dtype[Any]]] = {
    TensorProto.INT64: np.dtype("<i8"),
    TensorProto.INT32: np.dtype("<i4"),
}
"""The types of shapes, repeats and axes; of no other is external data read."""


@dataclass(frozen=True, slots=True)
class Unread:
    """Why a tensor's external data are not known."""

    reason: str


def small(tensor: TensorProto, folder: Path) -> Array | Unread | None:
    """Return the tensor's values; None for a large one, one whose data are malformed, or external of another type than
    int64 and int32. ``folder`` is the model's, which external data do not leave.
    """
    if any(size < 0 for size in tensor.dims) or math.prod(tensor.dims) > MAX_ELEMENTS:
        return None
    if tensor.data_location == TensorProto.EXTERNAL:
        if tensor.data_type not in _EXTERNAL_TYPES:
            return None
        try:
            return _external(tensor, folder)
        except InputError as error:
            return Unread(str(error))
    try:
        return np.asarray(numpy_helper.to_array(tensor))
    except Exception:  # of any class: too little data, too much, none at all, an unknown type
        return None


def dense(sparse: SparseTensorProto) -> TensorProto:
    """Return the sparse tensor as a whole; without data if it is large, malformed or external."""
    whole = TensorProto(name=sparse.values.name, data_type=sparse.values.data_type, dims=sparse.dims)
    is_inside = TensorProto.EXTERNAL not in (sparse.values.data_location, sparse.indices.data_location)
    if not is_inside or any(size < 0 for size in sparse.dims) or math.prod(sparse.dims) > MAX_ELEMENTS:
        return whole
    try:
        values, indices = numpy_helper.to_array(sparse.values), numpy_helper.to_array(sparse.indices)
        array = np.zeros(tuple(sparse.dims), values.dtype)
        array[tuple(indices.T) if indices.ndim == 2 else np.unravel_index(indices, array.shape)] = values
        return numpy_helper.from_array(array, sparse.values.name)
    except Exception:  # of any class: of data as of other tensors', and of indices that do not fit
        return whole


def subgraphs(node: NodeProto) -> Iterator[tuple[str, GraphProto]]:
    """Yield the graphs that are attributes of a node, each with its place."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.name, attribute.g
        for i, graph in enumerate(attribute.graphs):
            yield f"{attribute.name}[{i}]", graph


def _external(tensor: TensorProto, folder: Path) -> Array:
    """Read external data. Raises InputError where they are outside the folder, missing, or of another length."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    where = f"the data of {tensor.name!r}"
    if PurePath(location).is_absolute() or ".." in PurePath(location).parts:
        raise unreadable(where, f"{location!r} is no path below the model's folder")
    path = AllowedFolders((folder,), allow_hidden=True, follow_links=True).readable(location, where)
    dtype = _EXTERNAL_TYPES[tensor.data_type]
    count = math.prod(tensor.dims)
    wanted = count * dtype.itemsize
    try:
        offset, length = int(entries.get("offset", 0)), int(entries.get("length", wanted))
        if offset < 0 or length != wanted:
            raise ValueError
    except ValueError:
        given = f"offset {shown(entries.get('offset'))} and length {shown(entries.get('length'))}"
        raise unreadable(where, f"{given} in {location!r}; the tensor has {wanted} bytes") from None
    try:
        with path.open("rb") as file:
            file.seek(offset)
            data = file.read(wanted)
    except (OSError, ValueError) as error:  # ValueError: an offset past int64
        raise unreadable(where, f"{location!r} cannot be read: {error}") from None
    if len(data) < wanted:
        raise unreadable(where, f"{location!r} ends before byte {offset + wanted}")
    array: Array = np.frombuffer(data, dtype).reshape(tuple(tensor.dims))
    return array
