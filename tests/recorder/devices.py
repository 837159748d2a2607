"""The real DirectML behind the emulator's own interface, so that the same calls can be made of both.

Its objects are of the emulator's classes, but hold addresses; what C returns as an HRESULT is raised as DmlError.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ctypes import Structure, addressof, c_uint32, c_uint64, create_string_buffer, sizeof
from typing import Any, Final

from dml_tile import (
    BindingDesc,
    BindingProperties,
    BindingTable,
    BindingTableDesc,
    Buffer,
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
from dml_tile.directml.enums import HRESULT, CommandListType, FeatureLevel
from dml_tile.errors import DmlError
from dml_tile.readers.c_structs import (
    DML_CONSTANT_DATA_GRAPH_NODE_DESC,
    DML_GRAPH_DESC,
    DML_GRAPH_NODE_DESC,
    GRAPH_PARTS,
)
from tests.recorder import interfaces
from tests.recorder.interfaces import Object
from tests.recorder.memory import guarded_memory
from tests.recorder.releases import Release
from tests.recorder.runtime import Adapter, binding_properties, create_device, host_device, stand_in

DESCRIPTORS: Final = 16
"""In a binding table that is not said to have another number of them."""


def raise_failure(hresult: int) -> None:
    """Raise what C returns, if it is no success."""
    if hresult:
        error = DmlError(())
        error.hresult = HRESULT(hresult)
        raise error


def made_by(maker: Object, method: int, interface: str, *arguments: Any) -> int:
    """Call a method that makes something; returns its address."""
    hresult, address = maker.make(method, interface, *arguments)
    raise_failure(hresult)
    return address or 0


class RealDirect3DDevice(Direct3DDevice):
    """A device of Direct3D 12, as the stand-in makes it."""

    def __init__(self) -> None:
        super().__init__()
        self.host = host_device(Adapter())

    def remove(self, reason: HRESULT = HRESULT.DXGI_ERROR_DEVICE_REMOVED, *, after_dispatches: int = 0) -> None:
        super().remove(reason)
        stand_in().stand_in_remove_device(self.host.address, reason)


class RealOperator(Operator):
    """An IDMLOperator."""

    def __init__(self, address: int) -> None:
        self.object = Object(address)


class RealCompiledOperator(CompiledOperator):
    """An IDMLCompiledOperator."""

    def __init__(self, address: int) -> None:
        self.object = Object(address)

    def get_binding_properties(self) -> BindingProperties:
        return binding_properties(self.object)


class RealInitializer(OperatorInitializer):
    """An IDMLOperatorInitializer."""

    def __init__(self, address: int) -> None:
        self.object = Object(address)

    def reset(self, operators: Iterable[CompiledOperator] | None = ()) -> None:
        raise_failure(self.object.call(interfaces.INITIALIZER_RESET, c_uint32, *_addresses(operators)))


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
            values = [FeatureLevel.parse(level) if isinstance(level, str) else level for level in query]
            levels = (c_uint32 * max(len(values), 1))(*values)
            asked = (c_uint64 * 2)(len(values), addressof(levels))
        given = c_uint32(feature), c_uint32(sizeof(asked)), asked, c_uint32(sizeof(answer)), answer
        raise_failure(self.object.call(interfaces.CHECK_FEATURE_SUPPORT, c_uint32, *given))
        return int(answer[0])

    def create_operator(self, desc: OperatorDesc | TileOperatorDesc | None) -> RealOperator:
        written = desc and guarded_memory().write(desc)
        return RealOperator(self.make(interfaces.CREATE_OPERATOR, "IDMLOperator", written))

    def compile_operator(self, operator: RealOperator | None, flags: int = 0) -> RealCompiledOperator:
        given = operator and operator.object
        address = self.make(interfaces.COMPILE_OPERATOR, "IDMLCompiledOperator", given, c_uint32(flags))
        return RealCompiledOperator(address)

    def compile_graph(self, graph: GraphDesc | None, flags: int = 0) -> RealCompiledOperator:
        device1 = Object(self.object.make(interfaces.QUERY_INTERFACE, "IDMLDevice1")[1] or 0)
        written = graph and WrittenGraph(graph, [self._operator(node) for node in graph.nodes or ()])
        desc = written and written.desc
        return RealCompiledOperator(
            made_by(device1, interfaces.COMPILE_GRAPH, "IDMLCompiledOperator", desc, c_uint32(flags))
        )

    def _operator(self, node: OperatorGraphNodeDesc | None) -> int | None:
        operator = node.operator if node is not None else None
        return self.create_operator(operator).object.address if operator is not None else None

    def create_operator_initializer(self, operators: Iterable[CompiledOperator] | None = ()) -> RealInitializer:
        return RealInitializer(
            self.make(interfaces.CREATE_OPERATOR_INITIALIZER, "IDMLOperatorInitializer", *_addresses(operators))
        )

    def create_binding_table(self, desc: BindingTableDesc | None) -> RealBindingTable:
        written = written_table_desc(desc)
        return RealBindingTable(
            self.make(interfaces.CREATE_BINDING_TABLE, "IDMLBindingTable", written), self.direct3d_device
        )

    def create_command_recorder(self) -> RealCommandRecorder:
        return RealCommandRecorder(
            self.make(interfaces.CREATE_COMMAND_RECORDER, "IDMLCommandRecorder"), self.direct3d_device
        )

    def make(self, method: int, interface: str, *arguments: Any) -> int:
        """Call a method that makes something; returns its address."""
        return made_by(self.object, method, interface, *arguments)


class WrittenGraph:
    """A DML_GRAPH_DESC, which is good as long as this object."""

    def __init__(self, graph: GraphDesc, operators: Sequence[int | None]) -> None:
        self._kept: list[Any] = []
        self.desc = DML_GRAPH_DESC(InputCount=graph.input_count, OutputCount=graph.output_count)
        for array, (name, count, *_) in ARRAYS.items():
            entries = getattr(graph, array)
            setattr(self.desc, str(GraphDesc.model_fields[count].alias), getattr(graph, count))
            if entries is not None:
                given = operators if name == "Nodes" else [None] * len(entries)
                written = [self._entry(name, *pair) for pair in zip(entries, given, strict=True)]
                setattr(self.desc, name, (DML_GRAPH_NODE_DESC * max(len(written), 1))(*written))

    def _entry(self, array: str, entry: Any, operator: int | None) -> DML_GRAPH_NODE_DESC:
        if entry is None:
            return DML_GRAPH_NODE_DESC(1, None)
        fields = entry.model_dump(by_alias=True, exclude={*OperatorGraphNodeDesc.model_fields})
        desc: Structure = GRAPH_PARTS[array](**fields, **({"Operator": operator} if array == "Nodes" else {}))
        if array == "Nodes" and is_constant(entry):
            size = entry.data_size or 0
            data = create_string_buffer((entry.data or b"")[:size], size)
            self._kept.append(data)
            address = None if entry.null_data else addressof(data)
            desc = DML_CONSTANT_DATA_GRAPH_NODE_DESC(address, size, None)
        self._kept.append(desc)
        return DML_GRAPH_NODE_DESC(entry.type, addressof(desc))


class RealBindingTable(BindingTable):
    """An IDMLBindingTable."""

    def __init__(self, address: int, direct3d_device: RealDirect3DDevice) -> None:
        self.object = Object(address)
        self._direct3d_device = direct3d_device

    def reset(self, desc: BindingTableDesc | None) -> None:
        raise_failure(self.object.call(interfaces.TABLE_RESET, c_uint32, written_table_desc(desc)))

    def bind_inputs(self, bindings: Sequence[BindingLike] | None) -> None:
        self._bind_all(interfaces.BIND_INPUTS, bindings)

    def bind_outputs(self, bindings: Sequence[BindingLike] | None) -> None:
        self._bind_all(interfaces.BIND_OUTPUTS, bindings)

    def bind_temporary_resource(self, binding: BindingLike | None) -> None:
        self._bind_resource(interfaces.BIND_TEMPORARY_RESOURCE, binding)

    def bind_persistent_resource(self, binding: BindingLike | None) -> None:
        self._bind_resource(interfaces.BIND_PERSISTENT_RESOURCE, binding)

    def _bind_all(self, method: int, bindings: Sequence[BindingLike] | None) -> None:
        written = Bindings(self._direct3d_device)
        descs = [written.desc(binding_desc(binding)) for binding in bindings or ()]
        array = None if bindings is None else (interfaces.DML_BINDING_DESC * max(len(descs), 1))(*descs)
        self.object.call(method, None, c_uint32(1 if bindings is None else len(descs)), array)

    def _bind_resource(self, method: int, binding: BindingLike | None) -> None:
        written = Bindings(self._direct3d_device)
        self.object.call(method, None, None if binding is None else written.desc(binding_desc(binding)))


class RealCommandRecorder:
    """An IDMLCommandRecorder, and the command lists of the stand-in."""

    def __init__(self, address: int, direct3d_device: RealDirect3DDevice) -> None:
        self.object = Object(address)
        self._direct3d_device = direct3d_device

    def record_dispatch(
        self, dispatchable: Any, bindings: RealBindingTable | None, commands: CommandList | None = IMMEDIATE
    ) -> None:
        given = commands or CommandList(CommandListType.DIRECT)
        made = stand_in().stand_in_command_list(self._direct3d_device.host.address, given.type, given.is_graphics)
        self.object.call(
            interfaces.RECORD_DISPATCH,
            None,
            None if commands is None else Object(made),
            dispatchable and dispatchable.object,
            bindings and bindings.object,
        )


class Bindings:
    """Bindings as C structs, and what they point to."""

    def __init__(self, direct3d_device: RealDirect3DDevice) -> None:
        self._direct3d_device = direct3d_device
        self._kept: list[Any] = []

    def desc(self, binding: BindingDesc) -> interfaces.DML_BINDING_DESC:
        """A DML_BINDING_DESC, which is good as long as this object."""
        match binding.desc:
            case BufferBinding() as buffer:
                return self._pointing(binding.type, self._range(buffer))
            case BufferArrayBinding(None):
                return self._pointing(binding.type, interfaces.DML_BUFFER_ARRAY_BINDING(1, None))
            case BufferArrayBinding(tuple() as buffers):
                array = (interfaces.DML_BUFFER_BINDING * max(len(buffers), 1))(*map(self._range, buffers))
                self._kept.append(array)
                struct = interfaces.DML_BUFFER_ARRAY_BINDING(len(buffers), addressof(array))
                return self._pointing(binding.type, struct)
        return interfaces.DML_BINDING_DESC(binding.type, None)

    def _pointing(self, kind: int, struct: Structure) -> interfaces.DML_BINDING_DESC:
        self._kept.append(struct)
        return interfaces.DML_BINDING_DESC(kind, addressof(struct))

    def _range(self, binding: BufferBinding) -> interfaces.DML_BUFFER_BINDING:
        address = None if binding.buffer is None else resource(binding.buffer, self._direct3d_device)
        return interfaces.DML_BUFFER_BINDING(address, binding.offset, binding.size_in_bytes)


def resource(buffer: Buffer, direct3d_device: RealDirect3DDevice) -> int:
    """The address of a resource of the stand-in that is like a buffer of the emulator."""
    owner = buffer.direct3d_device or direct3d_device
    if not isinstance(owner, RealDirect3DDevice):
        owner = RealDirect3DDevice()
    made: int = stand_in().stand_in_resource(
        owner.host.address, buffer.size, buffer.heap, 0, 0, buffer.flags, buffer.dimension
    )
    return made


def _addresses(operators: Iterable[Any] | None) -> tuple[c_uint32, Any]:
    if operators is None:
        return c_uint32(1), None
    addresses = [operator.object.address if operator is not None else 0 for operator in operators]
    return c_uint32(len(addresses)), (c_uint64 * max(len(addresses), 1))(*addresses)


def written_table_desc(desc: BindingTableDesc | None) -> interfaces.DML_BINDING_TABLE_DESC | None:
    if desc is None:
        return None
    dispatchable: Any = desc.dispatchable
    return interfaces.DML_BINDING_TABLE_DESC(
        dispatchable and dispatchable.object.address,
        desc.cpu_descriptor_handle,
        desc.gpu_descriptor_handle,
        DESCRIPTORS if desc.size_in_descriptors is None else desc.size_in_descriptors,
    )
