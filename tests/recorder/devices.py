"""The real DirectML behind the emulator's own interface, so that the same calls can be made of both.

Its objects are of the emulator's classes, but hold addresses; what C returns as an HRESULT is raised as DmlError.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ctypes import Array, Structure, addressof, c_uint32, c_uint64, create_string_buffer, sizeof
from typing import Any, Final, TypeVar

from dml_tile import (
    BindingProperties,
    BindingTable,
    BindingTableDesc,
    BufferArrayBinding,
    BufferBinding,
    CommandList,
    CompiledOperator,
    Direct3DDevice,
    Operator,
    OperatorInitializer,
)
from dml_tile.bindings.resources import BindingLike, binding_desc
from dml_tile.descriptors.graph import ARRAYS, GraphDesc, OperatorGraphNodeDesc, is_constant
from dml_tile.descriptors.operator import OperatorDesc
from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.device.dispatches import IMMEDIATE
from dml_tile.directml.enums import HRESULT, FeatureLevel
from dml_tile.errors import DmlError
from dml_tile.readers.c_structs import (
    DML_CONSTANT_DATA_GRAPH_NODE_DESC,
    DML_GRAPH_DESC,
    DML_GRAPH_NODE_DESC,
    GRAPH_PARTS,
)
from tests.recorder import interfaces
from tests.recorder.interfaces import Object
from tests.recorder.memory import guarded
from tests.recorder.releases import Release
from tests.recorder.runtime import Adapter, binding_properties, create_device, host_device, stand_in

DESCRIPTORS: Final = 16
"""In a binding table that is not said to have another number of them."""


Made = TypeVar("Made", bound="_Real")


def raise_failure(hresult: int) -> None:
    """Raise what C returns, if it is no success."""
    if hresult:
        error = DmlError(())
        error.hresult = HRESULT(hresult)
        raise error


class RealDirect3DDevice(Direct3DDevice):
    """A device of Direct3D 12, as the stand-in makes it."""

    def __init__(self) -> None:
        super().__init__()
        self.host = host_device(Adapter())

    def remove(self, reason: HRESULT = HRESULT.DXGI_ERROR_DEVICE_REMOVED, *, after_dispatches: int = 0) -> None:
        super().remove(reason)
        stand_in().stand_in_remove_device(self.host.address, reason)


class _Real:
    """What a device of DirectML made: its address, and its device of Direct3D 12."""

    def __init__(self, address: int, direct3d_device: RealDirect3DDevice) -> None:
        self.object, self._direct3d_device = Object(address), direct3d_device


class RealOperator(_Real, Operator):
    """An IDMLOperator."""


class RealCompiledOperator(_Real, CompiledOperator):
    """An IDMLCompiledOperator."""

    def get_binding_properties(self) -> BindingProperties:
        return binding_properties(self.object)


class RealInitializer(_Real, OperatorInitializer):
    """An IDMLOperatorInitializer."""

    def reset(self, operators: Iterable[CompiledOperator] | None = ()) -> None:
        raise_failure(self.object.call(interfaces.INITIALIZER_RESET, c_uint32, *_addresses(operators)))


class RealBindingTable(_Real, BindingTable):
    """An IDMLBindingTable."""

    def reset(self, desc: BindingTableDesc | None) -> None:
        raise_failure(self.object.call(interfaces.TABLE_RESET, c_uint32, _table_desc(desc)))

    def bind_inputs(self, bindings: Sequence[BindingLike] | None) -> None:
        self._bind_all(interfaces.BIND_INPUTS, bindings)

    def bind_outputs(self, bindings: Sequence[BindingLike] | None) -> None:
        self._bind_all(interfaces.BIND_OUTPUTS, bindings)

    def bind_temporary_resource(self, binding: BindingLike | None) -> None:
        self.object.call(interfaces.BIND_TEMPORARY_RESOURCE, None, self._written(binding))

    def bind_persistent_resource(self, binding: BindingLike | None) -> None:
        self.object.call(interfaces.BIND_PERSISTENT_RESOURCE, None, self._written(binding))

    def _bind_all(self, method: int, bindings: Sequence[BindingLike] | None) -> None:
        descs = [self._written(binding) for binding in bindings or ()]
        array = None if bindings is None else _array(interfaces.DML_BINDING_DESC, descs)
        self.object.call(method, None, c_uint32(1 if bindings is None else len(descs)), array)

    def _written(self, binding: BindingLike | None) -> Structure | None:
        """A DML_BINDING_DESC."""
        if binding is None:
            return None
        desc = binding_desc(binding)
        match desc.desc:
            case BufferBinding() as buffer:
                return interfaces.DML_BINDING_DESC(desc.type, _kept(self._range(buffer)))
            case BufferArrayBinding(buffers):
                ranges = None if buffers is None else _array(interfaces.DML_BUFFER_BINDING, map(self._range, buffers))
                count = 1 if buffers is None else len(buffers)
                struct = interfaces.DML_BUFFER_ARRAY_BINDING(count, ranges and _kept(ranges))
                return interfaces.DML_BINDING_DESC(desc.type, _kept(struct))
        return interfaces.DML_BINDING_DESC(desc.type, None)

    def _range(self, binding: BufferBinding) -> Structure:
        """A DML_BUFFER_BINDING of a resource of the stand-in that is like the buffer."""
        address, buffer = None, binding.buffer
        if buffer is not None:
            owner = buffer.direct3d_device or self._direct3d_device
            host = (owner if isinstance(owner, RealDirect3DDevice) else RealDirect3DDevice()).host.address
            sizes = buffer.size, buffer.heap, 0, 0, buffer.flags, buffer.dimension
            address = stand_in().stand_in_resource(host, *sizes)
        return interfaces.DML_BUFFER_BINDING(address, binding.offset, binding.size_in_bytes)


class RealCommandRecorder(_Real):
    """An IDMLCommandRecorder, and the command lists of the stand-in."""

    def record_dispatch(
        self, dispatchable: Any, bindings: RealBindingTable | None, commands: CommandList | None = IMMEDIATE
    ) -> None:
        made = commands and stand_in().stand_in_command_list(
            self._direct3d_device.host.address, commands.type, commands.is_graphics
        )
        given = made and Object(made), dispatchable and dispatchable.object, bindings and bindings.object
        self.object.call(interfaces.RECORD_DISPATCH, None, *given)


class RealDevice:
    """An IDMLDevice on a device of Direct3D 12."""

    def __init__(
        self, release: Release, minimum: str | int | None = None, flags: int = 0, *, direct3d_device: RealDirect3DDevice
    ) -> None:
        level = FeatureLevel.parse(minimum) if isinstance(minimum, str) else minimum
        hresult, address = create_device(release, direct3d_device.host, flags=flags, minimum=level)
        raise_failure(hresult)
        self.object = Object(address or 0)
        self.direct3d_device = direct3d_device

    def get_device_removed_reason(self) -> HRESULT:
        return HRESULT(self.object.call(interfaces.GET_DEVICE_REMOVED_REASON, c_uint32))

    def check_feature_support(self, feature: int, query: Sequence[str | int] | int) -> int:
        answer: Any = (c_uint32 * 1)()
        if isinstance(query, int):
            asked: Any = (c_uint32 * 1)(query)
        else:
            levels = _array(c_uint32, [FeatureLevel.parse(each) if isinstance(each, str) else each for each in query])
            asked = (c_uint64 * 2)(len(query), addressof(levels))
        given = c_uint32(feature), c_uint32(sizeof(asked)), asked, c_uint32(sizeof(answer)), answer
        raise_failure(self.object.call(interfaces.CHECK_FEATURE_SUPPORT, c_uint32, *given))
        return int(answer[0])

    def create_operator(self, desc: OperatorDesc | TileOperatorDesc | None) -> RealOperator:
        return self._make(RealOperator, interfaces.CREATE_OPERATOR, "IDMLOperator", desc and guarded(desc))

    def compile_operator(self, operator: RealOperator | None, flags: int = 0) -> RealCompiledOperator:
        given = operator and operator.object, c_uint32(flags)
        return self._make(RealCompiledOperator, interfaces.COMPILE_OPERATOR, "IDMLCompiledOperator", *given)

    def compile_graph(self, graph: GraphDesc | None, flags: int = 0) -> RealCompiledOperator:
        device1 = Object(self.object.make(interfaces.QUERY_INTERFACE, "IDMLDevice1")[1] or 0)
        made = [self._operator(node) for node in graph.nodes or ()] if graph else []
        given = graph and written_graph(graph, made), c_uint32(flags)
        return self._make(RealCompiledOperator, interfaces.COMPILE_GRAPH, "IDMLCompiledOperator", *given, maker=device1)

    def _operator(self, node: OperatorGraphNodeDesc | None) -> int | None:
        operator = None if node is None else node.operator
        return None if operator is None else self.create_operator(operator).object.address

    def create_operator_initializer(self, operators: Iterable[CompiledOperator] | None = ()) -> RealInitializer:
        given = interfaces.CREATE_OPERATOR_INITIALIZER, "IDMLOperatorInitializer", *_addresses(operators)
        return self._make(RealInitializer, *given)

    def create_binding_table(self, desc: BindingTableDesc | None) -> RealBindingTable:
        return self._make(RealBindingTable, interfaces.CREATE_BINDING_TABLE, "IDMLBindingTable", _table_desc(desc))

    def create_command_recorder(self) -> RealCommandRecorder:
        return self._make(RealCommandRecorder, interfaces.CREATE_COMMAND_RECORDER, "IDMLCommandRecorder")

    def _make(
        self, kind: type[Made], method: int, interface: str, *arguments: Any, maker: Object | None = None
    ) -> Made:
        """Call a method, of this object unless of another, that makes something."""
        hresult, address = (maker or self.object).make(method, interface, *arguments)
        raise_failure(hresult)
        return kind(address or 0, self.direct3d_device)


def written_graph(graph: GraphDesc, operators: Sequence[int | None]) -> DML_GRAPH_DESC:
    """A DML_GRAPH_DESC, with the addresses of its nodes' operators."""
    desc = DML_GRAPH_DESC(InputCount=graph.input_count, OutputCount=graph.output_count)
    for array, (name, count, *_) in ARRAYS.items():
        entries = getattr(graph, array)
        setattr(desc, str(GraphDesc.model_fields[count].alias), getattr(graph, count))
        if entries is not None:
            given = operators if name == "Nodes" else [None] * len(entries)
            written = [_entry(name, *pair) for pair in zip(entries, given, strict=True)]
            setattr(desc, name, _array(DML_GRAPH_NODE_DESC, written))
    return desc


def _entry(array: str, entry: Any, operator: int | None) -> DML_GRAPH_NODE_DESC:
    """A DML_GRAPH_NODE_DESC, or one of an edge."""
    if entry is None:
        return DML_GRAPH_NODE_DESC(1, None)
    if array == "Nodes" and is_constant(entry):
        size = entry.data_size or 0
        data = create_string_buffer((entry.data or b"")[:size], size)
        desc: Structure = DML_CONSTANT_DATA_GRAPH_NODE_DESC(None if entry.null_data else _kept(data), size, None)
    else:
        fields = entry.model_dump(by_alias=True, exclude={*OperatorGraphNodeDesc.model_fields})
        desc = GRAPH_PARTS[array](**fields, **({"Operator": operator} if array == "Nodes" else {}))
    return DML_GRAPH_NODE_DESC(entry.type, _kept(desc))


def _addresses(operators: Iterable[Any] | None) -> tuple[c_uint32, Any]:
    if operators is None:
        return c_uint32(1), None
    addresses = [operator.object.address if operator is not None else 0 for operator in operators]
    return c_uint32(len(addresses)), _array(c_uint64, addresses)


def _table_desc(desc: BindingTableDesc | None) -> Structure | None:
    if desc is None:
        return None
    dispatchable: Any = desc.dispatchable
    return interfaces.DML_BINDING_TABLE_DESC(
        dispatchable and dispatchable.object.address,
        desc.cpu_descriptor_handle,
        desc.gpu_descriptor_handle,
        DESCRIPTORS if desc.size_in_descriptors is None else desc.size_in_descriptors,
    )


def _array(kind: Any, values: Iterable[Any]) -> Array[Any]:
    """An array of C's, of one entry at least."""
    entries = [*values]
    array: Array[Any] = (kind * max(len(entries), 1))(*entries)
    return array


def _kept(value: Structure | Array[Any]) -> int:
    """The address of what is to live as long as the process: as the stand-in, it lets go of nothing."""
    _KEPT.append(value)
    return addressof(value)


_KEPT: Final[list[Any]] = []
