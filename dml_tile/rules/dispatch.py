"""Rules for binding tables, and for the operators and initializers that are dispatched with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from dml_tile.directml import pages
from dml_tile.directml.enums import DEVICE_REMOVED, HRESULT, CommandListType
from dml_tile.directml.targets import Target
from dml_tile.findings import Basis, Rules, Violation


class TableRequest(NamedTuple):
    """A DML_BINDING_TABLE_DESC: ``own`` is None for null, ``required_descriptor_count`` for uncompiled objects."""

    own: bool | None
    required_descriptor_count: int | None
    cpu_descriptor_handle: int
    gpu_descriptor_handle: int
    size_in_descriptors: int


class Dispatch(NamedTuple):
    """A call of RecordDispatch.

    ``dispatchable`` and ``table`` are False for null pointers, ``own`` for objects of another device, ``same`` for a
    table that was made for another object, ``filled`` for a table made for none, ``is_graphics`` for a list that is no
    ID3D12GraphicsCommandList. ``list_type`` is None for a null list.
    """

    dispatchable: bool = True
    table: bool = True
    own: bool = True
    same: bool = True
    filled: bool = True
    list_type: int | None = CommandListType.DIRECT
    is_graphics: bool = True


TABLE_RULES: Final = Rules[TableRequest](url=pages.TABLE)
# For a call that binds to a table without a dispatchable, the subject names the binding's fault; "": none.
TABLE_USE_RULES: Final = Rules["str | Dispatch"](url=pages.CREATE_TABLE, hresult=DEVICE_REMOVED)
DISPATCH_RULES: Final = Rules["Dispatch"](url=pages.DISPATCH, hresult=DEVICE_REMOVED)
PERSISTENCE_RULES: Final = Rules[bool](url=pages.BIND_PERSISTENT, hresult=DEVICE_REMOVED, basis=Basis.DOCUMENTED)
# The subjects are numbers of earlier initialisations of the executed operator, or of each initialised one.
EXECUTION_RULES: Final = Rules[int](url=pages.CREATE_INITIALIZER, hresult=DEVICE_REMOVED, basis=Basis.DOCUMENTED)
INITIALIZATION_RULES: Final = Rules[Sequence[int]](
    url=pages.CREATE_INITIALIZER, hresult=DEVICE_REMOVED, basis=Basis.DOCUMENTED
)


@TABLE_RULES.add("DML-TABLE-Dispatchable-null", crash=True)
def dispatchable_is_given(request: TableRequest, target: Target) -> Iterator[Violation]:
    """A binding table's Dispatchable is not null."""
    if request.own is None:
        yield Violation("Dispatchable", "null was provided; DirectML would crash")


@TABLE_RULES.add("DML-TABLE-Dispatchable", hresult=HRESULT.E_NOINTERFACE)
def dispatchable_can_be_dispatched(request: TableRequest, target: Target) -> Iterator[Violation]:
    """A binding table is made for a compiled operator or an initializer."""
    if request.own is not None and request.required_descriptor_count is None:
        message = "an IDMLOperator was provided, but an IDMLDispatchable was expected"
        yield Violation("Dispatchable", message, "compile it first")


@TABLE_RULES.add("DML-TABLE-SizeInDescriptors")
def descriptors_are_enough(request: TableRequest, target: Target) -> Iterator[Violation]:
    """A binding table has at least RequiredDescriptorCount descriptors."""
    required = request.required_descriptor_count
    if required is not None and request.size_in_descriptors < required:
        message = f"{request.size_in_descriptors} was provided, but at least {required} was expected"
        yield Violation("SizeInDescriptors", message)


@TABLE_RULES.add("DML-TABLE-handle")
def handles_are_given(request: TableRequest, target: Target) -> Iterator[Violation]:
    """The descriptor handles of a binding table that has descriptors are not 0."""
    for field, handle in (
        ("CPUDescriptorHandle", request.cpu_descriptor_handle),
        ("GPUDescriptorHandle", request.gpu_descriptor_handle),
    ):
        if request.own is not None and request.size_in_descriptors and not handle:  # a null object crashes before
            yield Violation(field, "0 was provided, but the handle of a descriptor was expected")


@TABLE_RULES.add("DML-TABLE-Dispatchable-device", basis=Basis.DOCUMENTED, url=pages.ERRORS)
def dispatchable_belongs_to_device(request: TableRequest, target: Target) -> Iterator[Violation]:
    """A binding table and its dispatchable belong to the same device."""
    if request.own is False:
        yield Violation("Dispatchable", "the object was made by another device (DirectML does not notice)")


@TABLE_USE_RULES.add("DML-TABLE-empty", crash=True)
def table_is_made_for_something(use: str | Dispatch, target: Target) -> Iterator[Violation]:
    """A binding table is used only if it was made, or last reset, with a description."""
    if not (use if isinstance(use, str) else use.filled):
        yield Violation("", "the table is empty; DirectML would crash", "Reset it with a DML_BINDING_TABLE_DESC")


@TABLE_USE_RULES.add("DML-TABLE-empty-binding")
def binding_to_an_empty_table_is_well_formed(use: str | Dispatch, target: Target) -> Iterator[Violation]:
    """Nothing is bound to an empty table. A binding that is wrong by itself, such as a null buffer with an Offset,
    removes the device.
    """
    if use and isinstance(use, str):
        yield Violation("", f"the table is empty, and {use}", "Reset it with a DML_BINDING_TABLE_DESC")


@DISPATCH_RULES.add("DML-DISPATCH-null", crash=True)
def dispatch_is_complete(dispatch: Dispatch, target: Target) -> Iterator[Violation]:
    """RecordDispatch is called with a command list, a dispatchable and a binding table. The runtime compares the
    devices of the objects before it looks for the other two.
    """
    pointers = (dispatch.list_type is not None, dispatch.dispatchable, dispatch.table)
    for name, is_passed in zip(("commandList", "dispatchable", "bindings"), pointers, strict=True):
        if not is_passed and (name == "dispatchable" or dispatch.own):
            yield Violation(name, "null was provided; DirectML would crash")


@DISPATCH_RULES.add("DML-DISPATCH-device")
def objects_belong_to_one_device(dispatch: Dispatch, target: Target) -> Iterator[Violation]:
    """A recorder, its dispatchable and its binding table belong to one device; else the recorder's is removed."""
    if not dispatch.own:
        yield Violation("dispatchable", "it, or its binding table, was made by another device than the recorder")


@DISPATCH_RULES.add("DML-DISPATCH-command-list")
def command_list_has_a_type_for_dispatches(dispatch: Dispatch, target: Target) -> Iterator[Violation]:
    """The command list is of type DIRECT or COMPUTE."""
    if dispatch.list_type not in (None, CommandListType.DIRECT, CommandListType.COMPUTE):
        is_known = dispatch.list_type in CommandListType._value2member_map_
        name = CommandListType(dispatch.list_type).name if is_known else str(dispatch.list_type)
        yield Violation("commandList", f"its type is {name}, but DIRECT or COMPUTE was expected")


DISPATCH_RULES.append(table_is_made_for_something)


@DISPATCH_RULES.add("DML-DISPATCH-graphics-list")
def command_list_is_graphics(dispatch: Dispatch, target: Target) -> Iterator[Violation]:
    """The command list is an ID3D12GraphicsCommandList."""
    if not dispatch.is_graphics:
        yield Violation("commandList", "it is no ID3D12GraphicsCommandList")


@DISPATCH_RULES.add("DML-DISPATCH-table")
def table_belongs_to_dispatchable(dispatch: Dispatch, target: Target) -> Iterator[Violation]:
    """The binding table was made for the dispatched object."""
    if not dispatch.same:
        yield Violation("bindings", "the table was made for another object")


@PERSISTENCE_RULES.add("DML-BINDING-persistent")
def persistent_resource_is_the_initialised_one(is_same: bool, target: Target) -> Iterator[Violation]:
    """An operator is executed with the persistent resource that its initialisation wrote, at the same place."""
    if not is_same:
        message = "the range is not the one that the operator's initialisation wrote (DirectML does not notice)"
        advice = "bind the same range as at initialisation; its bytes cannot be moved"
        yield Violation("PersistentResource", message, advice)


@EXECUTION_RULES.add("DML-BINDING-uninitialised")
def operator_is_initialised(times: int, target: Target) -> Iterator[Violation]:
    """An operator is initialised before it is executed."""
    if not times:
        yield Violation("dispatchable", "the operator was never initialised (DirectML does not notice)")


@INITIALIZATION_RULES.add("DML-BINDING-initialised-twice")
def operators_are_initialised_once(times: Sequence[int], target: Target) -> Iterator[Violation]:
    """An operator is initialised exactly once."""
    for i, before in enumerate(times):
        if before:
            yield Violation(f"operators[{i}]", "the operator is initialised already (DirectML does not notice)")
