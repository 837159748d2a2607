"""Binding tables: the ranges of buffers that a dispatchable reads and writes.

Pages: https://learn.microsoft.com/en-us/windows/win32/api/directml/ (nn-directml-idmlbindingtable,
ns-directml-dml_binding_table_desc)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from types import NoneType
from typing import Final, TypeAlias
from weakref import WeakSet

from dml_tile.bindings.memory import require_data_type
from dml_tile.bindings.resources import (
    BindingDesc,
    BindingLike,
    BufferArrayBinding,
    BufferBinding,
    Direct3DDevice,
    binding_desc,
    bindings_of,
)
from dml_tile.bindings.slots import ranges_of
from dml_tile.descriptors.graph import Descriptor
from dml_tile.device.dispatchables import CompiledOperator, Dispatchable, Operator
from dml_tile.device.state import DeviceState
from dml_tile.directml.enums import BindingType
from dml_tile.directml.targets import Target
from dml_tile.errors import require_instance, require_uint
from dml_tile.findings import apply_rules
from dml_tile.rules.binding import (
    BINDING_COUNT_RULES,
    BINDING_DESC_RULES,
    RANGE_RULES,
    REBINDING_RULES,
    in_order_of_notice,
    wrong_anywhere,
)
from dml_tile.rules.dispatch import TABLE_RULES, TABLE_USE_RULES, TableRequest

Bindings: TypeAlias = list[BufferBinding | None]
"""A binding for each slot, None if nothing is needed; empty if nothing is bound."""

SOME_HANDLE: Final = 0x1000
"""A descriptor handle that is not null; there is no descriptor heap here."""


@dataclass(frozen=True, slots=True)
class BindingTableDesc:
    """DML_BINDING_TABLE_DESC. By default, ``size_in_descriptors`` is the number that the dispatchable requires."""

    dispatchable: Dispatchable | Operator | None
    cpu_descriptor_handle: int = SOME_HANDLE
    gpu_descriptor_handle: int = SOME_HANDLE
    size_in_descriptors: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.dispatchable, Dispatchable | Operator | None):
            raise TypeError(f"a dispatchable was expected, not a {type(self.dispatchable).__name__}")
        if self.size_in_descriptors is not None:
            require_uint("size_in_descriptors", self.size_in_descriptors)


class BindingTable:
    """IDMLBindingTable: the buffers that are bound to one dispatchable. It is not thread-safe.

    The bind methods return nothing: a wrong binding removes the device, after which they do nothing. A binding is a
    BindingDesc, or, for short, a BufferBinding or a BufferArrayBinding.
    """

    dispatchable: Dispatchable | None
    bound: dict[str, Bindings]
    """The bindings by the method that made them, such as ``BindInputs``."""

    def __init__(self, state: DeviceState, desc: BindingTableDesc | None, call: str) -> None:
        self.state = state
        self._set_desc(desc, call)

    def reset(self, desc: BindingTableDesc | None) -> None:
        """Drop all bindings and take another description; a refused description changes nothing.

        Raises DmlError as ``Device.create_binding_table`` does.
        """
        self._set_desc(desc, self.state.begin("Reset"))

    def bind_inputs(self, bindings: Sequence[BindingLike] | None) -> None:
        """Bind all inputs: a buffer for each input, or, for each operator of an initializer, an array of these.

        An empty sequence unbinds all inputs; ``None`` is a null array, which removes the device if there are inputs.
        Raises DmlError where DirectML would crash, or if the device raises removals.
        """
        self._bind("BindInputs", bindings_of(bindings))

    def bind_outputs(self, bindings: Sequence[BindingLike] | None) -> None:
        """Bind all outputs: a buffer for each output, or the operators' persistent resources for an initializer.

        An empty sequence unbinds all outputs; ``None`` is a null array, which removes the device if there are outputs.
        Raises DmlError where DirectML would crash, or if the device raises removals.
        """
        self._bind("BindOutputs", bindings_of(bindings))

    def bind_temporary_resource(self, binding: BindingLike | None) -> None:
        """Bind the temporary resource of a compiled graph; no tile needs one.

        None is a null pointer, at which DirectML crashes. Raises DmlError there, or if the device raises removals.
        """
        self._bind("BindTemporaryResource", [None if binding is None else binding_desc(binding)])

    def bind_persistent_resource(self, binding: BindingLike | None) -> None:
        """Bind the buffer that was an output of the operator's initialisation, if its input is OWNED_BY_DML.

        None is a null pointer, at which DirectML crashes. Raises DmlError there, or if the device raises removals.
        """
        self._bind("BindPersistentResource", [None if binding is None else binding_desc(binding)])

    def _set_desc(self, desc: BindingTableDesc | None, call: str) -> None:
        require_instance(desc, BindingTableDesc, NoneType)
        dispatchable = None
        if desc is not None:
            dispatchable = desc.dispatchable if isinstance(desc.dispatchable, Dispatchable) else None
            required = dispatchable.get_binding_properties().required_descriptor_count if dispatchable else None
            request = TableRequest(
                own=None if desc.dispatchable is None else desc.dispatchable.state is self.state,
                required_descriptor_count=required,
                cpu_descriptor_handle=desc.cpu_descriptor_handle,
                gpu_descriptor_handle=desc.gpu_descriptor_handle,
                size_in_descriptors=(required or 0) if desc.size_in_descriptors is None else desc.size_in_descriptors,
            )
            self.state.require(call, TABLE_RULES, request)
        self.dispatchable = dispatchable
        self.bound = defaultdict(list)
        # dispatches with these bindings that wait in a command list, but volatile ones; a reset may move the table
        self.recorded = WeakSet[object]()
        self.state.record(call, self._desc)

    def _bind(self, call: str, descs: Sequence[BindingDesc | None] | None) -> None:
        """Bind a call's bindings, unless one is wrong, which removes the device."""
        if self.state.is_removed(call):
            return
        if self.dispatchable is None:
            self.state.remove(call, self.state.findings(TABLE_USE_RULES, _malformed(descs, self.state.target)))
            return
        slots, direct3d_device = self.dispatchable.slots[call], self.dispatchable.state.direct3d_device
        counts = None if descs is None else len(descs), len(slots)
        findings = self.state.findings(BINDING_COUNT_RULES, counts)
        bound = [
            each
            for group, desc in (zip(slots, descs or (), strict=False) if not findings else ())
            for each in ranges_of(desc, group, direct3d_device)
        ]
        for each in bound:
            buffer, slot = each.binding.buffer if each.binding else None, each.slot
            if buffer is not None and buffer.dtype is not None and slot.data_type is not None:
                require_data_type(buffer.dtype, slot.data_type, slot.name)
            findings += self.state.findings(BINDING_DESC_RULES, each)
            if each.binding is not None or (each.desc is not None and each.desc.type == BindingType.NONE):
                findings += self.state.findings(RANGE_RULES, each)
        if any(found.crash for found in findings):
            malformed = bool(_malformed(descs, self.state.target, direct3d_device))
            findings = in_order_of_notice(findings, malformed=malformed)
        bindings = [each.binding if each.buffer is not None else None for each in bound]
        if self.recorded and not findings:
            changes = zip_longest(chain.from_iterable(slots), self.bound[call], bindings)
            names = (slot.name for slot, old, new in changes if old != new)
            findings = [found for name in names for found in apply_rules(REBINDING_RULES, name, self.state.target)]
        if any(map(self.state.enforces, findings)):
            self.state.remove(call, findings, self._desc)
            return
        self.state.record(call, self._desc, findings)
        self.bound[call] = bindings

    @property
    def _desc(self) -> Descriptor | None:
        """The descriptor of the operator that the table was made for."""
        return self.dispatchable.desc if isinstance(self.dispatchable, CompiledOperator) else None


def _malformed(
    bindings: Sequence[BindingDesc | None] | None, target: Target, direct3d_device: Direct3DDevice | None = None
) -> str:
    """Return what the runtime finds wrong with a binding by itself, before it looks at what that is bound to.

    It compares a buffer's device with the dispatchable's first. Without a dispatchable, a buffer ends the search.
    """
    if bindings is None:
        return "null was provided for the array of bindings"
    for i, binding in enumerate(bindings):
        if binding is None or binding.type == BindingType.NONE:
            continue
        if binding.type not in (BindingType.BUFFER, BindingType.BUFFER_ARRAY):
            return f"the Type of binding {i} is {binding.type}"
        described = binding.desc.bindings if isinstance(binding.desc, BufferArrayBinding) else binding.desc
        if described is None:
            return f"binding {i} is described by null"
        for each in [described] if isinstance(described, BufferBinding) else described:
            if each.buffer is None and not each.is_empty:
                return f"binding {i} has an Offset or SizeInBytes, but its Buffer is null"
            if each.buffer is not None and direct3d_device is None:
                return ""
            if wrong := wrong_anywhere(each, direct3d_device, target):
                return wrong
    return ""
