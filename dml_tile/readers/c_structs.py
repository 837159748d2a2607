"""C structs in memory: reads descriptors that ctypes or C built, and writes descriptors for C.

The structures have DirectML.h's 64-bit layout. (On a 32-bit Python their pointers are as short as C's.)

Reading copies, and follows a pointer only as far as DirectML would: an array of numbers whose count is above 8, which
DirectML refuses, is not read. A wrong address crashes Python, as it would crash C.

Pages: https://learn.microsoft.com/en-us/windows/win32/api/directml/ (the four structs, each by its name)
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Sequence
from ctypes import POINTER, Structure, Union, addressof, byref, c_float, c_uint32, c_uint64, c_void_p, pointer, sizeof
from ctypes import _Pointer as Pointer
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from dml_tile.descriptors.graph import ARRAYS, GraphArray, GraphDesc, OperatorGraphNodeDesc
from dml_tile.descriptors.numbers import ScaleBias, Size2D, scalar_bits
from dml_tile.descriptors.operator import KINDS, UNKNOWN_STRUCT, OperatorDesc, OperatorFields
from dml_tile.descriptors.structs import Struct, c_names
from dml_tile.descriptors.tile import BufferTensorDesc, TensorDesc, TileOperatorDesc
from dml_tile.directml.enums import DML_TENSOR_DIMENSION_COUNT_MAX1, GraphNodeType, OperatorType, TensorType
from dml_tile.directml.operators import Field, OperatorRow, operators
from dml_tile.errors import require_instance

if TYPE_CHECKING:
    from ctypes import _CArgObject as ByReference

    CSource = int | c_void_p | Structure | Union | Pointer[Any] | ByReference | None
    """An address, a ctypes structure or union, or a pointer to one, also from ``byref``."""
else:
    ByReference = type(byref(c_uint32()))  # ctypes does not name it


class DML_BUFFER_TENSOR_DESC(Structure):  # noqa: N801 - C's name
    """A tensor in a buffer; 48 bytes."""

    _fields_ = (
        ("DataType", c_uint32),
        ("Flags", c_uint32),
        ("DimensionCount", c_uint32),
        ("Sizes", POINTER(c_uint32)),
        ("Strides", POINTER(c_uint32)),
        ("TotalTensorSizeInBytes", c_uint64),
        ("GuaranteedBaseOffsetAlignment", c_uint32),
    )


class _TypeAndDesc(Structure):
    _fields_ = (("Type", c_uint32), ("Desc", c_void_p))


class DML_TENSOR_DESC(_TypeAndDesc):  # noqa: N801
    """A tensor's kind, and its description; 16 bytes."""


class DML_TILE_OPERATOR_DESC(Structure):  # noqa: N801
    """A tile; 32 bytes."""

    _fields_ = (
        ("InputTensor", POINTER(DML_TENSOR_DESC)),
        ("OutputTensor", POINTER(DML_TENSOR_DESC)),
        ("RepeatsCount", c_uint32),
        ("Repeats", POINTER(c_uint32)),
    )


class DML_OPERATOR_DESC(_TypeAndDesc):  # noqa: N801
    """An operator's type, and its description; 16 bytes."""


class DML_SCALE_BIAS(Structure):  # noqa: N801
    """A scale and a bias; 8 bytes."""

    _fields_ = (("Scale", c_float), ("Bias", c_float))


class DML_SIZE_2D(Structure):  # noqa: N801
    """A width and a height; 8 bytes."""

    _fields_ = (("Width", c_uint32), ("Height", c_uint32))


_C_TYPES: Final[dict[str, Any]] = {
    "UINT": c_uint32,
    "INT": ctypes.c_int32,
    "FLOAT": c_float,
    "BOOL": ctypes.c_int32,
    "DML_SCALAR_UNION": c_uint64,
    **{struct.__name__: struct for struct in (DML_TENSOR_DESC, DML_OPERATOR_DESC, DML_SCALE_BIAS, DML_SIZE_2D)},
}


def c_type_of(kind: str) -> Any:
    """Return the type of fields of a kind of ``dml_tile.directml.operators``; an enumerator's is UINT's."""
    name = KINDS[kind].c_type if kind in KINDS else "UINT"
    c_type = _C_TYPES[name.rstrip("*")]
    return POINTER(c_type) if name.endswith("*") else c_type


@cache
def structure_of(operator: OperatorRow) -> type[Structure]:
    """Return the structure of an operator's description."""
    fields = [(field.name, c_type_of(field.kind)) for field in operator.fields]
    return type(operator.struct, (Structure,), {"_fields_": fields})


class DML_GRAPH_NODE_DESC(_TypeAndDesc):  # noqa: N801
    """A node's type, and its description; 16 bytes. DML_GRAPH_EDGE_DESC is the same for an edge."""


class DML_GRAPH_DESC(Structure):  # noqa: N801
    """A graph; 72 bytes."""

    _fields_ = (
        ("InputCount", c_uint32),
        ("OutputCount", c_uint32),
        ("NodeCount", c_uint32),
        ("Nodes", POINTER(DML_GRAPH_NODE_DESC)),
        ("InputEdgeCount", c_uint32),
        ("InputEdges", POINTER(DML_GRAPH_NODE_DESC)),
        ("OutputEdgeCount", c_uint32),
        ("OutputEdges", POINTER(DML_GRAPH_NODE_DESC)),
        ("IntermediateEdgeCount", c_uint32),
        ("IntermediateEdges", POINTER(DML_GRAPH_NODE_DESC)),
    )


def _described(part: type[Struct]) -> type[Structure]:
    """Return the structure of a node or an edge: a node's operator, or the mirror's indices, and a name."""
    indices = {c_name: c_uint32 for name, c_name in c_names(part).items() if name not in ("name", "type")}
    fields = {"Operator": c_void_p} if part is OperatorGraphNodeDesc else indices
    return type(part.__name__, (Structure,), {"_fields_": [*fields.items(), ("Name", ctypes.c_char_p)]})


GRAPH_PARTS: Final = {array.c_name: _described(array.struct) for array in ARRAYS.values()}
"""The structure behind the Desc of each entry of a graph's arrays."""


class DML_CONSTANT_DATA_GRAPH_NODE_DESC(Structure):  # noqa: N801
    """The description of a constant; 24 bytes."""

    _fields_ = (("Data", c_void_p), ("DataSize", ctypes.c_size_t), ("Name", ctypes.c_char_p))


_Struct = TypeVar("_Struct", bound=Structure)

MAX_TENSORS: Final = 2**16
"""The most entries of an array; DirectML's limits on JOIN and SPLIT are unknown."""

MAX_DATA: Final = 2**26
"""The most bytes of a constant that are read."""

_MAX_DEPTH: Final = 3
"""The nesting of operators in fields of operators; DirectML takes 1 level."""

_TENSOR_TYPES: Final = frozenset(TensorType)


def read_operator_desc(source: CSource) -> OperatorDesc | None:
    """Return the DML_OPERATOR_DESC at ``source``; None for a null pointer.

    ``source`` is an address, any ctypes structure of at least 16 bytes, or a pointer to such a structure. Its Desc is
    read only if Type is an operator of DirectML.h; else a tile without tensors stands for it. An array of more entries
    than DirectML takes, 8, or MAX_TENSORS tensors, is not read.

    Raises TypeError for anything else, and for fewer bytes; ValueError for an int that is no address.
    """
    return _read_operator(source, _MAX_DEPTH)


def _read_operator(source: CSource, depth: int) -> OperatorDesc | None:
    desc = _structure(source, DML_OPERATOR_DESC)
    if desc is None:
        return None
    if desc.Type == OperatorType.TILE:
        return OperatorDesc(type=desc.Type, desc=read_tile_operator_desc(desc.Desc))
    operator = operators().get(desc.Type)
    if operator is None:
        return OperatorDesc(type=desc.Type, desc=UNKNOWN_STRUCT if desc.Desc else None)
    struct = _structure(desc.Desc, structure_of(operator)) if depth else None
    return OperatorDesc(type=desc.Type, desc=_read_fields(struct, operator, depth) if struct else None)


def _read_fields(struct: Structure, operator: OperatorRow, depth: int) -> dict[str, Any]:
    return {field.name: _read_field(struct, field, depth) for field in operator.fields}


def _read_field(struct: Structure, field: Field, depth: int) -> Any:
    value = getattr(struct, field.name)
    if not field.is_array:
        return _read_value(value, field.kind, depth)
    most = MAX_TENSORS if field.kind == "T" else DML_TENSOR_DIMENSION_COUNT_MAX1
    entries = _read_array(value, getattr(struct, field.counted_by), most)
    return entries and [_read_value(entry, field.kind.lower(), depth) for entry in entries]


def _read_array(array: Any, count: int, most: int = DML_TENSOR_DIMENSION_COUNT_MAX1) -> list[Any] | None:
    """Return the entries, none if there are more than DirectML takes: there may be no memory behind such a count."""
    return array[: count if count <= most else 0] if bool(array) else None


def _read_value(value: Any, kind: str, depth: int) -> Any:
    """Return the value of a field that is no array, or an entry of one."""
    match kind:
        case "t":
            return _read_tensor(value)
        case "o":
            return _read_operator(value, depth - 1)
        case "s":
            return {"Scale": value.contents.Scale, "Bias": value.contents.Bias} if bool(value) else None
        case "z":
            return {"Width": value.Width, "Height": value.Height}
        case "x":
            return f"0x{value:016x}"
    return value


def read_tile_operator_desc(source: CSource) -> TileOperatorDesc | None:
    """Return the DML_TILE_OPERATOR_DESC, of 32 bytes, at ``source``; None for a null pointer.

    A tensor's Desc is read only if its Type is DML_TENSOR_TYPE_BUFFER, or 0, a forgotten Type. Takes and raises what
    ``read_operator_desc`` does.
    """
    tile = _structure(source, DML_TILE_OPERATOR_DESC)
    if tile is None:
        return None
    return TileOperatorDesc.model_validate(_read_fields(tile, operators()[OperatorType.TILE], _MAX_DEPTH))


def read_graph_desc(source: CSource, operator_desc: Callable[[int], OperatorDesc | None]) -> GraphDesc | None:
    """Return the DML_GRAPH_DESC, of 72 bytes, at ``source``; None for a null pointer.

    ``operator_desc`` returns the descriptor of the IDMLOperator at an address, since an IDMLOperator does not tell it.
    A constant's data are read up to MAX_DATA bytes. Of another node or edge whose type is not its array's, the type
    alone is read. Takes and raises what ``read_operator_desc`` does, and what ``operator_desc`` raises; ValueError for
    a Name that is not UTF-8.
    """
    graph = _structure(source, DML_GRAPH_DESC)
    if graph is None:
        return None
    values = {field[0]: getattr(graph, field[0]) for field in DML_GRAPH_DESC._fields_}
    for array in ARRAYS.values():
        count = values[f"{array.c_name.removesuffix('s')}Count"]
        entries = values[array.c_name][:count] if bool(values[array.c_name]) else None
        values[array.c_name] = entries and [_read_entry(entry, array, operator_desc) for entry in entries]
    return GraphDesc.model_validate(values)


def _read_entry(
    entry: DML_GRAPH_NODE_DESC, array: GraphArray, operator_desc: Callable[[int], OperatorDesc | None]
) -> dict[str, Any] | None:
    if array.c_name == "Nodes" and entry.Type == GraphNodeType.CONSTANT:
        constant = _structure(entry.Desc, DML_CONSTANT_DATA_GRAPH_NODE_DESC)
        if constant is None:
            return None
        name = constant.Name.decode() if constant.Name else None
        data: dict[str, Any] = {"DataSize": constant.DataSize, "NullData": not constant.Data}
        if constant.Data and constant.DataSize <= MAX_DATA:
            data["Data"] = ctypes.string_at(constant.Data, constant.DataSize)
        return {"Type": entry.Type, "Operator": None, "Name": name, **data}
    part = GRAPH_PARTS[array.c_name]
    desc = _structure(entry.Desc, part)
    if desc is None:
        return None
    is_read = entry.Type == array.type
    values: dict[str, Any] = {field[0]: getattr(desc, field[0]) if is_read else 0 for field in part._fields_}
    values["Name"] = values["Name"].decode() if values["Name"] else None
    if "Operator" in values:
        values["Operator"] = operator_desc(values["Operator"]) if values["Operator"] else None
    return values | {"Type": entry.Type}


def write_operator_desc(desc: OperatorDesc | TileOperatorDesc) -> DML_OPERATOR_DESC:
    """Return a new DML_OPERATOR_DESC, also of a bare tile; it keeps alive all memory that it points to.

    ``ctypes.addressof`` gives its address. Counts are written as they are, even if wrong. C keeps no other length, so
    an array that is longer than its count is read cut; a shorter array is padded with zeros, up to the 8 entries that
    DirectML may look at.
    """
    if isinstance(desc, TileOperatorDesc):
        desc = OperatorDesc(type=OperatorType.TILE, desc=desc)
    require_instance(desc, OperatorDesc, TileOperatorDesc)
    match desc.desc:
        case TileOperatorDesc():
            return DML_OPERATOR_DESC(desc.type, _void(write_tile_operator_desc(desc.desc)))
        case OperatorFields():
            operator = desc.desc.operator
            values = (_written_field(desc.desc, field) for field in operator.fields)
            return DML_OPERATOR_DESC(desc.type, _void(_written(values, structure_of(operator))))
    return DML_OPERATOR_DESC(desc.type, None)


def _written_field(fields: OperatorFields, field: Field) -> Any:
    """Return the value of a field; a DML_SCALAR_UNION's bytes as one number."""
    value = fields[field.name]
    return scalar_bits(value, fields[fields.operator.scalar_type]) if field.kind == "x" else value


def _written(values: Iterable[Any], struct: type[_Struct]) -> _Struct:
    """Return a new structure with the values of its fields, in C's order."""
    written, fields = struct(), cast("Sequence[tuple[str, Any]]", struct._fields_)
    for (name, c_type), value in zip(fields, values, strict=True):
        if isinstance(value, tuple):
            entries = c_type._type_ * max(len(value), DML_TENSOR_DIMENSION_COUNT_MAX1)
            value = ctypes.cast(entries(*map(_written_value, value)), c_type)
        elif value is not None:
            value = _written_value(value)
            value = pointer(value) if issubclass(c_type, Pointer) else value
        if value is not None:
            setattr(written, name, value)
    return written


def _written_value(value: object) -> Any:
    """Return a structure, or a number as it is."""
    match value:
        case TensorDesc():
            buffer = _void(_written(value.desc.__dict__.values(), DML_BUFFER_TENSOR_DESC)) if value.desc else None
            return DML_TENSOR_DESC(value.type, buffer)
        case OperatorDesc():
            return write_operator_desc(value)
        case ScaleBias():
            return DML_SCALE_BIAS(value.scale, value.bias)
        case Size2D():
            return DML_SIZE_2D(value.width, value.height)
    return value


def write_tile_operator_desc(desc: TileOperatorDesc) -> DML_TILE_OPERATOR_DESC:
    """Return a new DML_TILE_OPERATOR_DESC, written as ``write_operator_desc`` does it."""
    require_instance(desc, TileOperatorDesc)
    return _written(desc.__dict__.values(), DML_TILE_OPERATOR_DESC)


def _read_tensor(source: Pointer[DML_TENSOR_DESC] | DML_TENSOR_DESC) -> TensorDesc | None:
    tensor = _structure(source, DML_TENSOR_DESC)
    if tensor is None:
        return None
    buffer = _structure(tensor.Desc, DML_BUFFER_TENSOR_DESC) if tensor.Type in _TENSOR_TYPES else None
    if buffer is None:
        return TensorDesc(type=tensor.Type, desc=None)
    fields = {name: getattr(buffer, name) for name, _ in DML_BUFFER_TENSOR_DESC._fields_}
    arrays = {name: _read_array(fields[name], buffer.DimensionCount) for name in ("Sizes", "Strides")}
    return TensorDesc(type=tensor.Type, desc=BufferTensorDesc.model_validate(fields | arrays))


def _void(struct: Structure) -> c_void_p:
    """Return a void pointer that keeps alive what it points to, also if copied, as ctypes' own pointers do."""
    return c_void_p.from_buffer(pointer(struct))


def _structure(source: object, struct: type[_Struct]) -> _Struct | None:
    """Return the structure at ``source``, in place."""
    address = _address(source, struct)
    return struct.from_address(address) if address else None


def _address(source: object, struct: type[Structure]) -> int:
    """Return the address meant by ``source``, with room for the structure there; 0 for a null pointer."""
    match source:
        case None:
            return 0
        case int() if not isinstance(source, bool):
            last = 2 ** (8 * sizeof(c_void_p)) - sizeof(struct)
            if not 0 <= source <= last:
                raise ValueError(f"{source:#x} is no address of a {struct.__name__}; it must be from 0 to {last:#x}")
            return source
        case c_void_p():
            return source.value or 0
        case Pointer():
            if not bool(source):
                return 0
            source = byref(source.contents)
        case Structure() | Union():
            source = byref(source)
    if not isinstance(source, ByReference):
        raise TypeError(
            f"the address of a {struct.__name__}, a ctypes structure or a pointer to one was expected, not "
            f"{type(source).__name__}"
        )
    held, address = source._obj, ctypes.cast(source, c_void_p).value or 0  # type: ignore[attr-defined]
    size = addressof(held) + sizeof(held) - address
    if size < sizeof(struct):
        raise TypeError(f"{type(held).__name__} gives {size} bytes, but {struct.__name__} takes {sizeof(struct)}")
    return address
