"""Reads the Tiles of the models that OpenVINO reads: its IR, and the other formats in the table of file kinds.

OpenVINO infers types, shapes and the bounds of computed repeats; nothing is compiled. An IR's weights are mapped, not
loaded.

Page: https://docs.openvino.ai/2025/openvino-workflow.html
"""

from __future__ import annotations

import mmap
import os
import re
from collections import deque
from collections.abc import Generator, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

try:
    import openvino as ov
except ImportError as error:
    raise ImportError("reading this model needs openvino: pip install openvino") from error

from openvino.frontend import FrontEndManager
from openvino.op import Constant

from dml_tile.back_ends.dialects import INT64_MAX, OPENVINO_TILE_1
from dml_tile.errors import InputError, input_error
from dml_tile.files.paths import AllowedFolders
from dml_tile.readers.contents import require_no_pointer
from dml_tile.readers.model_names import KnownShapes, ModelFacts, limited_names
from dml_tile.readers.model_tile import TileNode, ValueOrigin, ValueSource, tile_node
from dml_tile.text import short_name, shortened

MAX_OPERATORS_FOLLOWED: Final = 10_000
"""The most operators that are searched for the input that a Tile's unknown fields depend on."""

_FORMATS: Final = {"ir": "OpenVINO IR", "paddle": "Paddle", "tf": "TensorFlow", "tflite": "TensorFlow Lite"}
"""The formats that are read, by OpenVINO's names of its front ends."""

_WEIGHTS: Final = {"ir": ".bin", "paddle": ".pdiparams"}
"""The suffixes of the weights' files beside a model."""

_BODIES: Final = {
    # the graphs inside an operator: their names in a pointer, and the methods that give them
    "If": (("then_body", "get_then_body"), ("else_body", "get_else_body")),
    "Loop": (("body", "get_function"),),
    "TensorIterator": (("body", "get_body"),),
}

# pugixml ignores a document type and expands no entities; no IR has one.
_IR_BEGINS: Final = re.compile(rb"(?>\xef\xbb\xbf)?(?>\s+|<\?.*?\?>|<!--.*?-->)*+<net\b", re.DOTALL)
_BEGINNING: Final = 2**16
_CONSTANT: Final = re.compile(rb'offset="([0-9]{1,19})" size="([0-9]{1,19})"')
"""A constant's place in the weights, in bytes, as OpenVINO writes it."""

# Lines of a message that name a place in OpenVINO's sources, or the step that failed.
_PASSED_OVER: Final = re.compile(
    r"Exception from |Check '.*' failed at |While validating node |FrontEnd API |(Loading|Converting) input model$"
)
_MAX_REASON_LENGTH: Final = 300

# pybind11 raises these for C++ exceptions and strings that are not UTF-8.
_NATIVE_ERRORS: Final = (IndexError, OSError, RuntimeError, TypeError, ValueError)


def read_nodes(path: Path, known_shapes: KnownShapes) -> Generator[TileNode, None, ModelFacts]:
    """Yield the Tiles of the model, then those of the graphs inside its operators, such as ``Loop_3/body/Tile_1``.

    TensorFlow Lite's operators have no names; their pointers name the output, as in ``Tile->y``. Known shapes may use
    any name of an input; names that the model lacks are ignored, as are names of dimensions, which OpenVINO lacks.
    Returns the names of the inputs.

    Raises InputError for a file that OpenVINO cannot read, or that is ONNX, and for a shape that contradicts the
    model; MemoryError if OpenVINO runs out of memory.
    """
    try:
        model = _read(path)
        inputs = {name: port for port in model.inputs for name in _names(port)}
        if shapes := _shapes(inputs, known_shapes):
            model.reshape(shapes)
        for place, node in _tiles(model):
            yield _tile_node(place, node)
        return ModelFacts(inputs=limited_names(inputs, known_shapes.input_shapes))
    except InputError:
        raise
    except UnicodeDecodeError:
        raise input_error("", "has a name that is not UTF-8") from None
    except _NATIVE_ERRORS as error:
        if "bad_alloc" in str(error):
            raise MemoryError from None
        raise input_error("", f"OpenVINO cannot read it: {_reason(str(error))}{_weights_given(path, error)}") from None


def _read(path: Path) -> ov.Model:
    front_end = FrontEndManager().load_by_model(path)
    if front_end is None:
        raise input_error("", "OpenVINO finds no reader for it: it is of another format, damaged, or too large")
    name = front_end.get_name()
    if name not in _FORMATS:
        raise input_error("", f"OpenVINO would read it as {name}; {', '.join(_FORMATS.values())} and *.onnx are read")
    if name == "ir":
        _require_bare(path)
    suffix = _WEIGHTS.get(name)
    weights = _weights(path.parent, path.with_suffix(suffix).name) if suffix else None
    if not weights:
        return ov.Core().read_model(path)
    model = ov.Core().read_model(path, weights)
    if name == "ir":
        _require_its_weights(path, weights)
    return model


def _require_bare(path: Path) -> None:
    with path.open("rb") as file:
        if not _IR_BEGINS.match(file.read(_BEGINNING)):
            expected = "<net>, behind an XML declaration and comments, without a document type"
            raise input_error("", f"an IR begins with {expected}")


def _require_its_weights(path: Path, weights: Path) -> None:
    """Raise InputError for weights that go on behind the last constant of an IR: they are another IR's."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        end = max((int(offset) + int(size) for offset, size in _CONSTANT.findall(text)), default=0)
    given = weights.stat().st_size
    if given > end:
        raise input_error("", f"its weights: {weights.name} has {given} bytes; the model's constants end at byte {end}")


def _weights(folder: Path, name: str) -> Path | None:
    """Return the path of a model's weights; None without weights. Raises InputError unless they are in its folder."""
    if not os.path.lexists(folder / name):  # a link that leads nowhere, or to itself, is not OpenVINO's to open
        return None
    try:
        # only a regular file: OpenVINO would wait for a pipe
        weights = AllowedFolders((folder,), allow_hidden=True, follow_links=True).readable(name, "")
    except InputError as error:
        raise input_error("", f"its weights: {error}") from None
    require_no_pointer(weights, name)
    return weights


def _names(port: Any) -> list[str]:
    return sorted({*port.get_names(), port.get_node().get_friendly_name()})


def _shapes(inputs: Mapping[str, Any], known_shapes: KnownShapes) -> dict[Any, Any]:
    """Return the known shapes of inputs, by their ports."""
    shapes = {}
    for name, shape in known_shapes.input_shapes.items():
        if name not in inputs:
            continue
        if any(size is not None and not 0 <= size <= INT64_MAX for size in shape):
            raise input_error(name, f"{list(shape)} was given; sizes are from 0 to {INT64_MAX}")
        declared = inputs[name].get_partial_shape()
        wanted = ov.PartialShape([-1 if size is None else size for size in shape])
        if not declared.compatible(wanted):
            given = ["?" if size is None else size for size in shape]
            raise input_error(name, f"has the shape {declared}; [{', '.join(map(str, given))}] was given")
        kept = declared if declared.rank.is_static else wanted
        sizes = [old if size is None else ov.Dimension(size) for old, size in zip(kept, shape, strict=True)]
        shapes[inputs[name]] = ov.PartialShape(sizes)
    return shapes


def _tiles(model: ov.Model) -> Iterator[tuple[str, Any]]:
    """Yield the pointer's beginning, the operators that contain a Tile, and the Tile."""
    graphs = deque([("", model)])
    while graphs:
        place, graph = graphs.popleft()
        for node in graph.get_ordered_ops():
            kind = node.get_type_name()
            if kind == "Tile":
                yield place, node
            for body, method in _BODIES.get(kind, ()):
                inner = f"{short_name(f'{place}{node.get_friendly_name()}/{body}')}/"
                graphs.append((inner, getattr(node, method)()))


def _tile_node(place: str, node: Any) -> TileNode:
    name, outputs = node.get_friendly_name(), node.output(0).get_names()
    if name.isdecimal() and outputs:  # OpenVINO numbers TensorFlow Lite's operators
        name = f"Tile->{min(outputs)}"
    data_type = node.get_input_element_type(0)
    shape = node.get_input_partial_shape(0)
    repeats = _values(node.input_value(1))
    found = tile_node(
        short_name(f"{place}{name}"),
        OPENVINO_TILE_1,
        None if data_type.is_dynamic() else data_type.get_type_name(),
        None if shape.rank.is_dynamic else [int(size.get_length()) if size.is_static else None for size in shape],
        [repeats],
    )
    if not found.unknown:
        return found
    of_input = () if shape.is_static and found.data_type else (_origin(node.input_value(0)),)
    if repeats is not None and not np.ma.is_masked(repeats):
        of_repeats: tuple[ValueOrigin, ...] = of_input if found.repeats is None else ()  # its rank adds ones
    else:
        of_repeats = _origins(node.input_value(1))
    return replace(found, input_origins=of_input, repeats_origins=of_repeats)


def _origins(output: Any) -> tuple[ValueOrigin, ...]:
    """Return the origin of each element of a Concat of vectors; else one origin for all elements."""
    node = output.get_node()
    parts = node.input_values() if node.get_type_name() == "Concat" else []
    if not parts or any(part.get_partial_shape().is_dynamic for part in parts):
        return (_origin(output),)
    return tuple(chain.from_iterable([_origin(part)] * part.get_shape()[0] for part in parts))


def _origin(output: Any) -> ValueOrigin:
    """Return the operator that computes a value, and the first input of the model that it depends on."""
    node = output.get_node()
    kind, name = node.get_type_name(), short_name(node.get_friendly_name())
    origin = ValueOrigin("" if kind == "Parameter" else f"{kind} {name!r}")
    seen, left = set[str](), deque([node])
    while left and len(seen) < MAX_OPERATORS_FOLLOWED:
        node = left.popleft()
        if node.get_type_name() == "Parameter":
            is_static = node.get_output_partial_shape(0).is_static  # no shape can be given
            name = short_name(node.get_friendly_name())
            return origin._replace(source=ValueSource("elements of the input" if is_static else "input", name))
        values = node.input_values()
        for value in [value for value in values if value.get_partial_shape().is_dynamic] or values:
            if (name := value.get_node().get_name()) not in seen:
                seen.add(name)
                left.append(value.get_node())
    return origin


def _values(output: Any) -> NDArray[Any] | None:
    """Return the elements of a value, masked where OpenVINO's bounds differ; None if all differ."""
    node = output.get_node()
    if node.get_type_name() == "Constant":
        return _elements(node)
    tensor = output.get_tensor()
    try:
        lower, upper = (_elements(Constant(bound)) for bound in (tensor.get_lower_value(), tensor.get_upper_value()))
    except RuntimeError:  # there are no bounds
        return None
    return np.ma.masked_array(lower, lower != upper) if (lower != upper).any() else lower


def _elements(constant: Any) -> NDArray[Any]:
    wide = np.uint64 if constant.get_element_type() == ov.Type.u64 else np.int64
    return np.asarray(constant.get_data(dtype=wide))  # it also unpacks elements smaller than a byte


def _weights_given(path: Path, error: Exception) -> str:
    """Return the size of an IR's weights, for an error about them."""
    if "bin file" not in str(error):
        return ""
    weights = path.with_suffix(_WEIGHTS["ir"])
    size = f"has {weights.stat().st_size} bytes" if weights.is_file() else "is not there"
    return f" ({weights.name} {size})"


def _reason(text: str) -> str:
    """Return OpenVINO's message without the lines about OpenVINO itself."""
    lines = [line.strip() for line in text.splitlines() if not _PASSED_OVER.match(line)]
    reason = " ".join(filter(None, lines)) or "it gives no reason"
    return shortened(reason, _MAX_REASON_LENGTH)
