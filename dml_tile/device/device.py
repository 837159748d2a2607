"""The device: what it supports, and the objects that it creates.

Page: https://learn.microsoft.com/en-us/windows/win32/api/directml/nn-directml-idmldevice
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from operator import index
from types import NoneType
from typing import Any, Literal, SupportsIndex, overload

from dml_tile.bindings.memory import BufferLike, Padding, byte_view, element_dtype, require_padding
from dml_tile.bindings.resources import BindingDesc, Buffer, BufferArrayBinding, BufferBinding, Direct3DDevice
from dml_tile.bindings.slots import Slot
from dml_tile.descriptors.graph import GraphDesc
from dml_tile.descriptors.operator import OperatorDesc, OperatorFields, tile_of
from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.device.dispatchables import CompiledOperator, Operator, OperatorInitializer
from dml_tile.device.dispatches import CommandRecorder
from dml_tile.device.plans import plan_of_graph, plan_of_operator
from dml_tile.device.state import DeviceState
from dml_tile.device.table import BindingTable, BindingTableDesc
from dml_tile.directml.data_types import TensorDataType
from dml_tile.directml.enums import HRESULT, CreateDeviceFlags, ExecutionFlags, Feature, FeatureLevel
from dml_tile.directml.targets import Target, TargetLike
from dml_tile.errors import require_instance, require_uint
from dml_tile.findings import Against
from dml_tile.rules.descriptor import created_anyway, findings_of, findings_of_null_graph, refusals_of
from dml_tile.rules.device import (
    COMPILATION_FLAG_RULES,
    COMPILATION_RULES,
    CREATION_RULES,
    EXPORT_RULES,
    FALLIBLE_CALLS,
    FEATURE_RULES,
    REQUESTED_LEVEL_RULES,
    Creation,
    Fault,
    Removal,
)
from dml_tile.rules.tile_findings import blocks_creation
from dml_tile.simulation.target import origin_of, resolve
from dml_tile.text import did_you_mean

LevelLike = FeatureLevel | int | str
"""A feature level, its value, or its name, such as ``"4_1"``."""


class Device:
    """IDMLDevice, of the DirectML that ``target`` names; None means the current target.

    It is made by DMLCreateDevice1, or by DMLCreateDevice if there is no ``minimum_feature_level``. Creation fails if
    DirectML's feature level is below that, which has no other effect; at 1_0 there is no DMLCreateDevice1.
    ``against`` is the contract that is enforced: the default is stricter than any real device, since it includes
    documented requirements that nothing checks at run time. ``padding`` is for the bytes between an output's elements,
    as in ``execute``. With ``raise_on_removal``, the call that removes the device raises DmlError, and so does each
    later call; without it, calls return as in C, and ``removal`` says why.

    ``direct3d_device`` is the Direct3D 12 device to create it on; None creates one. Once the Direct3D device is
    removed, dispatches do nothing, and everything else goes on, as in the runtime, until GetDeviceRemovedReason is
    called; then this device is removed.

    A device may be used from many threads. If its target was not named, or is ``current_target()``, it raises
    TargetError in a later test of pytest at another target: something kept it, as ``lru_cache`` does.

    Raises DmlError if the function would fail, ValueError for an unknown target, feature level, contract or
    padding.
    """

    def __init__(
        self,
        target: TargetLike | None = None,
        minimum_feature_level: LevelLike | None = None,
        flags: CreateDeviceFlags | int = CreateDeviceFlags.NONE,
        *,
        against: Against = "both",
        padding: Padding = "preserve",
        raise_on_removal: bool = False,
        direct3d_device: Direct3DDevice | None = None,
    ) -> None:
        require_padding(padding)
        direct3d_device = direct3d_device or Direct3DDevice()
        require_instance(direct3d_device, Direct3DDevice)
        named, target = target, resolve(target)
        origin = origin_of("device", named, target)
        self._state = DeviceState(target, direct3d_device, against, padding, raise_on_removal, origin)
        minimum = None if minimum_feature_level is None else _level(minimum_feature_level)
        creation = Creation(require_uint("flags", flags), minimum, direct3d_device.removed_reason)
        call = "DMLCreateDevice" if minimum is None else "DMLCreateDevice1"
        for rules in (EXPORT_RULES, CREATION_RULES):
            self._state.require(call, rules, creation)
        self._state.record(call)

    def __repr__(self) -> str:
        call = self._state.removing_call
        removed = f", removed by {call}" if call else ""
        return f"<Device at {self._state.target.label}{removed}>"

    @property
    def target(self) -> Target:
        """The simulated target."""
        self._state.require_test()
        return self._state.target

    @property
    def direct3d_device(self) -> Direct3DDevice:
        """The Direct3D 12 device that it was created on."""
        return self._state.direct3d_device

    @property
    def removal(self) -> Removal | None:
        """The call that removed the device, with its findings; None if the device is present."""
        return self._state.removal

    def get_device_removed_reason(self) -> HRESULT:
        """Return DXGI_ERROR_DEVICE_REMOVED if a call removed the device, else the Direct3D device's own reason.

        The first reason stays. The Direct3D device's reason removes this device too.
        """
        return self._state.removed_reason()

    def fail(self, call: str, hresult: HRESULT, *, at: int = 1) -> None:
        """Let the first ``call`` from now on return ``hresult``, or the call that ``at`` counts to.

        ``call`` is a C method that returns an HRESULT, such as ``"CreateOperator"``, ``"CompileGraph"`` or a binding
        table's ``"Reset"``. The call raises DmlError with the finding DML-DEVICE-fault, and is recorded. A test of
        pytest fails if the call never comes. Raises ValueError for another method, for S_OK, and for ``at`` below 1.
        """
        if call not in FALLIBLE_CALLS:
            raise ValueError(f"call is {call!r}; {did_you_mean(str(call), FALLIBLE_CALLS, ', '.join(FALLIBLE_CALLS))}")
        if not HRESULT(hresult):
            raise ValueError("S_OK is no failure")
        if at < 1:
            raise ValueError(f"at is {at}; it must be at least 1")
        self._state.fail(Fault(call, HRESULT(hresult), at))

    @overload
    def check_feature_support(
        self, feature: Literal[Feature.FEATURE_LEVELS], query: Iterable[LevelLike]
    ) -> FeatureLevel | int: ...

    @overload
    def check_feature_support(
        self, feature: Literal[Feature.TENSOR_DATA_TYPE_SUPPORT], query: TensorDataType | int
    ) -> bool: ...

    @overload
    def check_feature_support(self, feature: int, query: object) -> FeatureLevel | int | bool: ...

    def check_feature_support(self, feature: int, query: object) -> FeatureLevel | int | bool:
        """Return the highest supported level among those queried, or True if the queried data type is supported.

        A level that no header lists is returned as an int, as the runtime does. Raises DmlError if the call fails (an
        unknown feature, no supported level, a removed device), TypeError for a query of the wrong type, ValueError for
        a level that no UINT holds.
        """
        call = self._state.begin("CheckFeatureSupport")
        self._state.require(call, FEATURE_RULES, require_uint("feature", feature))
        if feature == Feature.FEATURE_LEVELS:
            if isinstance(query, str) or not isinstance(query, Iterable):
                raise TypeError(f"query is {query!r}; several feature levels were expected")
            levels = [_level(level) for level in query]
            highest = max((level for level in levels if level <= self.target.feature_level), default=0)
            self._state.require(call, REQUESTED_LEVEL_RULES, highest)
            self._state.record(call)
            return FeatureLevel(highest) if highest in {*FeatureLevel} else highest
        self._state.record(call)
        if not isinstance(query, SupportsIndex):
            raise TypeError(f"query is {query!r}; a data type was expected")
        return self.target.supports_data_type(index(query))

    def create_operator(self, desc: OperatorDesc | TileOperatorDesc | None) -> Operator:
        """Return an operator that can be compiled. Raises DmlError with the findings of ``check``.

        Creates any operator that DirectML would, as far as its table tells.
        """
        call = self._state.begin("CreateOperator")
        refusals = refusals_of(desc, self.target, self._state.against)
        self._state.refuse(call, [each for each in refusals if not created_anyway(each)], desc)
        assert desc is not None, "check refuses null"
        self._state.record(call, desc)
        return Operator(self._state, tile_of(desc) or desc)

    def compile_operator(
        self, op: Operator | None, flags: ExecutionFlags | int = ExecutionFlags.NONE
    ) -> CompiledOperator:
        """Return a new compiled operator, which can be initialised and executed.

        Raises DmlError for a null operator, an operator of another device, and unknown flags.
        """
        call = self._state.begin("CompileOperator")
        require_instance(op, Operator, NoneType)
        is_own = None if op is None else op.state is self._state
        findings = self._state.findings(COMPILATION_RULES, is_own)
        findings += self._state.findings(COMPILATION_FLAG_RULES, require_uint("flags", flags))
        if op is not None:
            findings += filter(created_anyway, refusals_of(op.desc, self.target, self._state.against))
        self._state.refuse(call, findings, op.desc if op else None)
        assert op is not None
        self._state.record(call, op.desc)
        plan = plan_of_operator(op.desc, self._state.target)
        return CompiledOperator(self._state, op.desc, ExecutionFlags(flags), plan)

    def compile_graph(
        self, graph: GraphDesc | None, flags: ExecutionFlags | int = ExecutionFlags.NONE
    ) -> CompiledOperator:
        """Return a compiled operator of a graph, as IDMLDevice1::CompileGraph does.

        The nodes' operators are created from their descriptors, and executed one by one; recording the dispatch of a
        graph with a constant whose bytes are not given raises DmlError. Raises DmlError with every reason at once,
        about operators, nodes, edges and flags. Raises ValueError for more than 65,536 inputs or outputs, which take
        memory even if unused.
        """
        call = self._state.begin("CompileGraph")
        require_instance(graph, GraphDesc, NoneType)
        given = self.target, self._state.against
        found = findings_of_null_graph(*given) if graph is None else findings_of(graph, *given)
        findings = [*found, *self._state.findings(COMPILATION_FLAG_RULES, require_uint("flags", flags))]
        if any(map(blocks_creation, findings)):
            self._state.refuse(call, findings, graph)
        assert graph is not None
        self._state.record(call, graph)
        return CompiledOperator(self._state, graph, ExecutionFlags(flags), plan_of_graph(graph, self._state.target))

    def create_operator_initializer(self, operators: Iterable[CompiledOperator] | None = ()) -> OperatorInitializer:
        """Return an initializer of the operators, in this order.

        Raises DmlError for None (a null array), for None in the array, and for an object that is not compiled, or of
        another device.
        """
        return OperatorInitializer(self._state, operators, self._state.begin("CreateOperatorInitializer"))

    def create_binding_table(self, desc: BindingTableDesc | None) -> BindingTable:
        """Return a table that binds buffers for one dispatchable; None makes a table that needs a ``reset`` before use.

        Raises DmlError for too few descriptors, null handles and an operator that is not compiled; also for a
        dispatchable of another device, unless ``against`` is ``"runtime"``.
        """
        return BindingTable(self._state, desc, self._state.begin("CreateBindingTable"))

    def create_command_recorder(self) -> CommandRecorder:
        """Return a recorder, which executes at once what it records, or appends it to a command list."""
        self._state.begin("CreateCommandRecorder")
        return CommandRecorder(self._state)

    def execute(
        self,
        desc: OperatorDesc | TileOperatorDesc | None,
        input: BufferLike | Buffer | Mapping[str, Any],  # noqa: A002
        output: BufferLike | Buffer | None = None,
        flags: ExecutionFlags | int = ExecutionFlags.NONE,
    ) -> None:
        """Run the whole life of an operator: create, compile and initialise it, bind its buffers, and dispatch it.

        ``input`` and ``output`` are a tile's; another operator's ``input`` has the buffers of all tensors by
        field, as ``execute`` of dml_tile takes them. Each is a Buffer, or a contiguous object with the buffer protocol,
        of at least TotalTensorSizeInBytes bytes; they are bound from byte 0. An input that is OWNED_BY_DML goes into a
        persistent resource of this call's own. Raises DmlError if a call is refused or removes the device, whether or
        not the device raises its removal, TypeError and ValueError as ``Buffer.wrap`` does, TypeError for a buffer that
        is missing.
        """
        compiled = self.compile_operator(self.create_operator(desc), flags)
        plan = compiled.plan
        given = input if isinstance(input, Mapping) else {"InputTensor": input, "OutputTensor": output}
        buffers = _buffers(compiled.desc, given, {slot.name for slot in plan.output_slots})

        def bound(slots: Iterable[Slot]) -> list[BufferBinding]:
            return [BufferBinding(buffers.get(slot.name) if slot.size_in_bytes else None) for slot in slots]

        initializer = self.create_operator_initializer((compiled,))
        table = self.create_binding_table(BindingTableDesc(initializer))
        recorder = self.create_command_recorder()
        persistent = BufferBinding(Buffer(compiled.get_binding_properties().persistent_resource_size))
        if compiled.owns_input:
            table.bind_inputs([BufferArrayBinding(bound(plan.initial_slots))])
            table.bind_outputs([persistent])
        recorder.record_dispatch(initializer, table)
        self._state.raise_if_removed()
        table.reset(BindingTableDesc(compiled))
        if compiled.owns_input:
            table.bind_persistent_resource(persistent)
        table.bind_inputs([each if each.buffer else BindingDesc() for each in bound(plan.input_slots)])
        table.bind_outputs([each if each.buffer else BindingDesc() for each in bound(plan.output_slots)])
        recorder.record_dispatch(compiled, table)
        self._state.raise_if_removed()


def _buffers(desc: Any, given: Mapping[str, Any], outputs: Container[str]) -> dict[str, Buffer]:
    """Return the values given for an operator's tensors, by the names of their slots."""
    if isinstance(desc, OperatorDesc):
        from dml_tile.execution.evaluation import by_field  # most devices execute tiles alone

        assert isinstance(desc.desc, OperatorFields)
        given = by_field(desc.desc, dict.fromkeys(desc.desc.operator.tensors), given)
    found = dict[str, Buffer]()
    for name, value in given.items():
        many = isinstance(value, list | tuple)
        for i, each in enumerate(value if many else [value]):
            slot = f"{name}[{i}]" if many else name
            if each is not None:
                argument = {"InputTensor": "input", "OutputTensor": "output"}.get(slot, slot)
                found[slot] = _buffer_of(each, argument, writable=slot in outputs)
    return found


def _buffer_of(memory: BufferLike | Buffer, name: str, *, writable: bool = False) -> Buffer:
    """Return a buffer over memory; read-only memory is copied, since buffers can be written to."""
    if isinstance(memory, Buffer):
        return memory
    view, dtype = byte_view(memory, name, writable=writable), element_dtype(memory, name)
    buffer = Buffer.wrap(view if view.flags.writeable else view.copy())
    buffer.dtype = dtype
    return buffer


def _level(level: LevelLike) -> int:
    return require_uint("the feature level", FeatureLevel.parse(level) if isinstance(level, str) else level)
