"""Writes descriptors as C++ source text; the folders of the C++ headers."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from math import isfinite, isnan
from pathlib import Path
from typing import Any, Final

from dml_tile.descriptors.graph import ARRAYS, Descriptor, GraphDesc
from dml_tile.descriptors.numbers import scalar_bits
from dml_tile.descriptors.operator import OperatorDesc, OperatorFields, spelling
from dml_tile.descriptors.structs import Enumerator, Struct
from dml_tile.descriptors.tile import DATA_TYPE, OPERATOR_TYPE, TENSOR_FLAGS, TENSOR_TYPE, TensorDesc, TileOperatorDesc
from dml_tile.directml.enums import DML_TENSOR_DIMENSION_COUNT_MAX1, GraphNodeType, OperatorType
from dml_tile.directml.operators import Field
from dml_tile.errors import require_instance
from dml_tile.text import braced

_INT_MIN: Final = -(2**31)
_INT64_MAX: Final = 2**63 - 1
MAX_ROOM: Final = 4096
"""The entries of a graph's array up to which there is room for a count that is larger than the array."""


def cpp_text(desc: Descriptor | None, name: str) -> str:
    """Return C++11 for namespace or function scope, after DirectML.h; the last line defines ``NAME_operator``.

    All of it has internal linkage. For a graph, it defines ``NAME_graph``, after the operators of its nodes and
    ``NAME_operators``, which take what CreateOperator makes of them. An array that is shorter than its count is filled
    with zeros, since DirectML would read past its end. A number that is not finite needs ``<limits>`` before it. Raises
    ValueError for a name that is no identifier, and for a node that is a constant.
    """
    require_identifier(name)
    lines = _graph(desc, name) if isinstance(desc, GraphDesc) else _operator(desc, name)
    return "".join(f"{line}\n" for line in lines)


def _graph(graph: GraphDesc, name: str) -> Iterator[str]:
    for i, node in enumerate(graph.nodes or ()):
        if node is not None and node.type == GraphNodeType.CONSTANT:
            raise ValueError(f"Nodes[{i}] is a constant; only operators are written as C++")
        if node is not None and node.operator is not None:
            yield from _operator(node.operator, f"{name}_node{i}")
    fields = [str(graph.input_count), str(graph.output_count)]
    for array, described in ARRAYS.items():
        entries, count = getattr(graph, array), getattr(graph, described.counted_by)
        fields += [str(count), "nullptr" if entries is None else f"{name}_{array}"]
        if entries is not None:
            yield from _entries(array, entries, count, name)
    yield f"const DML_GRAPH_DESC {name}_graph = {braced(fields)};"


_ENTRY_TYPES: Final = {
    "nodes": ("static DML_OPERATOR_GRAPH_NODE_DESC", "operators"),
    "input_edges": ("const DML_INPUT_GRAPH_EDGE_DESC", "input_edge_descs"),
    "output_edges": ("const DML_OUTPUT_GRAPH_EDGE_DESC", "output_edge_descs"),
    "intermediate_edges": ("const DML_INTERMEDIATE_GRAPH_EDGE_DESC", "intermediate_edge_descs"),
}
"""The C types of the descriptions of nodes and edges, and the names of their arrays."""


def _entries(array: str, entries: Sequence[Struct | None], count: int, name: str) -> Iterator[str]:
    """Yield the descriptions of nodes or edges, and the array of their types and addresses."""
    (c_type, descs), spelling = _ENTRY_TYPES[array], ARRAYS[array].types
    kind = spelling.prefix.removesuffix("_TYPE_")
    described, listed = list[str](), list[str]()
    for i, entry in enumerate(entries):
        values: dict[str, Any] = dict(entry) if entry is not None else {"type": 1}
        address = f"&{name}_{descs}[{i}]" if entry is not None else "nullptr"
        listed.append(braced([_enumerator(spelling, f"{kind}_TYPE", values.pop("type")), address]))
        label = _c_string(values.pop("name", None))
        fields = ["nullptr"] if "operator" in values else values.values()
        described.append(braced([*fields, label]) if entry is not None else "{}")
    room = f"{max(len(entries), min(count, MAX_ROOM), 1)}"
    if any(entries):  # else nothing uses it, which compilers warn of
        yield f"{c_type} {name}_{descs}[{room}] = {braced(described)};"
    yield f"const {kind}_DESC {name}_{array}[{room}] = {braced(listed)};"


def _c_string(text: str | None) -> str:
    """Return a string literal, with octal escapes for unprintable and non-ASCII characters, and possible trigraphs."""
    if text is None:
        return "nullptr"
    safe = set(range(32, 127)) - set(b'"?\\')
    return '"' + "".join(chr(byte) if byte in safe else f"\\{byte:03o}" for byte in text.encode()) + '"'


def _operator(desc: OperatorDesc | TileOperatorDesc | None, name: str) -> Iterator[str]:
    if desc is None:
        yield f"const DML_OPERATOR_DESC* const {name}_operator = nullptr;"
        return
    operator = desc if isinstance(desc, OperatorDesc) else OperatorDesc(type=OperatorType.TILE, desc=desc)
    described = yield from _described(operator, name)
    yield f"const DML_OPERATOR_DESC {name}_operator = {described};"


def _described(operator: OperatorDesc, name: str) -> Generator[str, None, str]:
    """Yield the struct of an operator; return what initialises its DML_OPERATOR_DESC."""
    desc = operator.desc
    if isinstance(desc, OperatorFields):
        yield from _struct(desc, name)
        return braced([desc.operator.c_name, f"&{name}_desc"])
    if desc is not None:
        yield from _tile(desc, name)
    kind = _enumerator(OPERATOR_TYPE, "DML_OPERATOR_TYPE", operator.type)
    return braced([kind, "nullptr" if desc is None else f"&{name}_desc"])


def _struct(described: OperatorFields, name: str) -> Iterator[str]:
    """Yield the struct of any operator other than Tile, behind what it points to."""
    fields = list[str]()
    for field in described.operator.fields:
        fields += [(yield from _value(described, field, f"{name}_{described.attributes[field.name]}"))]
    yield f"const {described.operator.struct} {name}_desc = {braced(fields)};"


def _value(described: OperatorFields, field: Field, name: str) -> Generator[str, None, str]:
    """Yield what a field points to, under names that begin so; return its initialiser."""
    value = described[field.name]
    if value is None:
        return "nullptr"
    if field.is_array:
        return (yield from _array_of(field, value, described[field.counted_by], name))
    match field.kind:
        case "t":
            stem = name.removesuffix("_tensor")
            yield from _tensor(value, stem)
            return f"&{stem}_tensor"
        case "o":
            yield from _operator(value, name)
            return f"&{name}_operator"
        case "s":
            yield f"const DML_SCALE_BIAS {name} = {braced([_float(value.scale), _float(value.bias)])};"
            return f"&{name}"
        case "z":
            return braced([str(value.width), str(value.height)])
        case "x":
            bits = scalar_bits(value, described[described.operator.scalar_type])
            return braced([braced(map(str, bits.to_bytes(8, "little")))])
        case "e":
            return _enumerator(spelling(field.enumeration), f"DML_{field.enumeration}", value)
    return _NUMBERS[field.kind](value)


def _array_of(field: Field, values: Sequence[Any], count: int, name: str) -> Generator[str, None, str]:
    """Yield an array behind what it points to, with room for what DirectML would read of it; return its name."""
    written = list[str]()
    for i, value in enumerate(values):
        if field.kind == "T":
            written += [(yield from _tensor_desc(value, f"{name}{i}"))]
        elif field.kind == "O":
            written += [(yield from _described(value, f"{name}{i}"))]
        else:
            written += [_NUMBERS[field.kind.lower()](value)]
    room = max(len(values), min(count, MAX_ROOM), 1)
    yield f"const {_C_TYPES[field.kind]} {name}[{room if room > len(values) else ''}] = {braced(written)};"
    return name


_C_TYPES: Final = {"T": "DML_TENSOR_DESC", "O": "DML_OPERATOR_DESC", "U": "UINT", "I": "INT", "F": "FLOAT"}
"""The C types of the entries of arrays, by the letters of ``dml_tile.directml.operators``."""


def _float(value: float) -> str:
    if isfinite(value):
        return f"{float(value)!r}f"
    number = f"std::numeric_limits<float>::{'quiet_NaN' if isnan(value) else 'infinity'}()"
    return f"-{number}" if value < 0 else number


_NUMBERS: Final[Mapping[str, Callable[[Any], str]]] = {
    "u": str,
    "i": lambda value: str(value) if value > _INT_MIN else f"{value + 1} - 1",  # a literal has no sign
    "b": lambda value: str(int(value)),
    "f": _float,
}
"""Writes numbers, by the same letters."""


def _tile(tile: TileOperatorDesc, name: str) -> Iterator[str]:
    operands = (f"{name}_input", tile.input_tensor), (f"{name}_output", tile.output_tensor)
    for operand, tensor in operands:
        if tensor is not None:
            yield from _tensor(tensor, operand)
    yield from _array(f"{name}_repeats", tile.repeats, tile.repeats_count)
    tensors = [f"&{operand}_tensor" if tensor is not None else "nullptr" for operand, tensor in operands]
    fields = *tensors, str(tile.repeats_count), _pointer(f"{name}_repeats", tile.repeats)
    yield f"const DML_TILE_OPERATOR_DESC {name}_desc = {braced(fields)};"


def _tensor(tensor: TensorDesc, name: str) -> Iterator[str]:
    described = yield from _tensor_desc(tensor, name)
    yield f"const DML_TENSOR_DESC {name}_tensor = {described};"


def _tensor_desc(tensor: TensorDesc, name: str) -> Generator[str, None, str]:
    """Yield the buffer of a tensor; return what initialises its DML_TENSOR_DESC."""
    fields = _enumerator(TENSOR_TYPE, "DML_TENSOR_TYPE", tensor.type), "nullptr"
    if tensor.desc is not None:
        buffer = tensor.desc
        yield from _array(f"{name}_sizes", buffer.sizes, buffer.dimension_count)
        yield from _array(f"{name}_strides", buffer.strides, buffer.dimension_count)
        data_type = _enumerator(DATA_TYPE, "DML_TENSOR_DATA_TYPE", buffer.data_type)
        flags = _enumerator(TENSOR_FLAGS, "DML_TENSOR_FLAGS", buffer.flags)
        total = buffer.total_tensor_size_in_bytes
        yield f"const DML_BUFFER_TENSOR_DESC {name}_buffer = {{"
        yield (
            f"    {data_type}, {flags}, {buffer.dimension_count}, {_pointer(f'{name}_sizes', buffer.sizes)}, "
            f"/*Strides*/ {_pointer(f'{name}_strides', buffer.strides)},"
        )
        yield (
            f"    /*TotalTensorSizeInBytes*/ {total}{'ULL' if total > _INT64_MAX else ''}, "
            f"/*GuaranteedBaseOffsetAlignment*/ {buffer.guaranteed_base_offset_alignment}}};"
        )
        fields = fields[0], f"&{name}_buffer"
    return braced(fields)


def _array(name: str, values: Sequence[int] | None, count: int) -> Iterator[str]:
    """Yield an array with room for what DirectML would read of it; C++ has none without elements."""
    if values is not None:
        room = max(len(values), count if count <= DML_TENSOR_DIMENSION_COUNT_MAX1 else 0, 1)
        yield f"const UINT {name}[{room if room > len(values) else ''}] = {braced(map(str, values))};"


def _pointer(name: str, values: Sequence[int] | None) -> str:
    return "nullptr" if values is None else name


def _enumerator(spelling: Enumerator, c_type: str, value: int) -> str:
    # a header may be older than an operator: Tile alone has its name
    return spelling.c_names.get(value) or f"static_cast<{c_type}>({value})"


def require_identifier(name: str) -> None:
    """Raise ValueError for a name that cannot begin an identifier of C++ and of Python, TypeError for no str."""
    require_instance(name, str)
    if not (name.isascii() and name.isidentifier()):
        raise ValueError(f"{name!r} is no identifier; write letters, digits and _, with no digit first")


def get_include() -> str:
    """Return the folder to give a compiler with -I, so that ``#include <dml_tile/capture.h>`` is found."""
    return str(Path(__file__).parent.parent / "include")


def get_cmake_dir() -> str:
    """Return the folder to give CMake as ``dml_tile_DIR``, so that ``find_package(dml_tile)`` finds the headers."""
    return str(Path(__file__).parent.parent / "share" / "cmake" / "dml_tile")
