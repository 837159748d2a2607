"""The simulated device: what it answers and writes, a tile's whole life in one call, removal, and command lists."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import numpy as np
import pytest

from dml_tile import (
    BindingDesc,
    BindingTableDesc,
    Buffer,
    BufferArrayBinding,
    BufferBinding,
    CommandList,
    CompiledOperator,
    Device,
    Direct3DDevice,
    check,
    check_model,
)
from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.device import dispatches
from dml_tile.device.plans import plan_of_operator
from dml_tile.directml.enums import HRESULT, ExecutionFlags, Feature
from dml_tile.directml.targets import Target
from dml_tile.errors import DmlError
from dml_tile.execution.executor import mover_of_tile
from dml_tile.findings import Against
from dml_tile.testing import record_calls
from tests.helpers.descriptors import GOOD, at, page_tile, row
from tests.helpers.devices import (
    NUMBERS,
    OWNED,
    TILED,
    compiled,
    execute,
    floats,
    initialise,
    initialised,
    output,
    removing_rules,
    source,
    table,
    written,
)
from tests.helpers.paths import EXAMPLES

WRAPPING: Final = page_tile(Repeats=[1, 1, 3, 1431655766], OutputTensor__Sizes=[1, 1, 6, 2])
"""A tile that 5_2 accepts because it computes in 32 bits."""


def test_unknown_words_are_refused_at_once() -> None:
    wrong: dict[str, dict[str, Any]] = {
        "did you mean": {"target": "windows-7"},
        "against is 'law'": {"against": "law"},
        "padding is 'zero'; it must be one of 'preserve', 'poison'": {"padding": "zero"},
        "the feature level is -1; an integer from 0 to": {"minimum_feature_level": -1},
        "the feature level is 4294967296; an integer from 0 to": {"minimum_feature_level": 2**32},
        "flags is -1": {"flags": -1},
    }
    for message, arguments in wrong.items():
        with pytest.raises(ValueError, match=message):
            Device(**arguments)


@pytest.mark.parametrize(
    ("target", "types"),
    [
        (at("2_1"), set(range(1, 9))),
        (at("3_0"), set(range(1, 12))),
        (at("6_2"), set(range(1, 12))),
        (at("6_3"), set(range(1, 14))),
        (at("5_2", double_precision=False, typed_uav_loads=False), {1, 2, 3, 4, 6, 7, 10, 11}),
        (at("6_0", typed_uav_loads=False), set(range(1, 12))),
        (at("6_2", native_16_bit_ops=False), set(range(1, 12))),
        (at("6_2", typed_uav_loads=False, native_16_bit_ops=False), {1, 3, 5, 6, 8, 9, 10, 11}),
    ],
)
def test_the_level_and_the_adapter_s_capabilities_decide_on_data_types(target: Target, types: set[int]) -> None:
    device = Device(target)
    assert {kind for kind in range(16) if device.check_feature_support(Feature.TENSOR_DATA_TYPE_SUPPORT, kind)} == types


def test_what_the_runtime_accepts_by_wrapping_writes_nothing() -> None:
    device, memory = Device("5_2", against="runtime"), Buffer.wrap(bytearray(range(256)) * 2)
    before = memory.memory.copy()
    execute(device, compiled(device, WRAPPING), BufferBinding(memory), BufferBinding(memory, 256))
    good = compiled(device, GOOD)
    execute(device, good, BufferBinding(memory, 0), BufferBinding(memory, 0))
    execute(device, good, BufferBinding(memory, 0), BufferBinding(memory, 2**64 - 16, 512))
    assert device.removal is None
    np.testing.assert_array_equal(memory.memory, before)


@pytest.mark.parametrize("desc", [GOOD, OWNED], ids=["bound", "owned"])
@pytest.mark.parametrize("raise_on_removal", [True, False])
def test_it_tiles_arrays_bytes_and_buffers(desc: TileOperatorDesc, raise_on_removal: bool) -> None:
    device = Device(raise_on_removal=raise_on_removal)
    for given in (NUMBERS, NUMBERS.tobytes(), Buffer.wrap(NUMBERS.copy())):
        out = np.zeros((6, 9), np.float32)
        device.execute(desc, given, out)
        np.testing.assert_array_equal(out, TILED)
        output = Buffer(216)
        device.execute(desc, given, output)
        np.testing.assert_array_equal(floats(output).reshape(6, 9), TILED)


@pytest.mark.parametrize("desc", [GOOD, OWNED], ids=["bound", "owned"])
@pytest.mark.parametrize("raise_on_removal", [True, False])
@pytest.mark.parametrize(("sizes", "call"), [((23, 216), "BindInputs"), ((24, 215), "BindOutputs")])
def test_a_buffer_that_is_too_small_is_an_error_and_removes_the_device(
    desc: TileOperatorDesc, raise_on_removal: bool, sizes: tuple[int, int], call: str
) -> None:
    device = Device(raise_on_removal=raise_on_removal)
    with pytest.raises(DmlError, match=f"{call}: .*\n.*DML-BINDING-SizeInBytes"):
        device.execute(desc, bytes(sizes[0]), bytearray(sizes[1]))
    assert device.removal is not None
    assert device.removal.call == call


def test_a_refused_descriptor_leaves_the_device() -> None:
    device = Device("4_0")
    with pytest.raises(DmlError, match="CreateOperator: E_INVALIDARG"):
        device.execute(row("INT64", [2], [2]), bytes(16), bytearray(32))
    with pytest.raises(ValueError, match="read-only"):
        device.execute(GOOD, bytes(24), bytes(216))
    assert device.removal is None


def test_checks_inside_of_a_model_s_are_no_calls_of_the_test() -> None:
    with record_calls() as calls:
        assert check_model(EXAMPLES / "models" / "two_tiles.onnx", "6_4")
        assert not calls
        assert not check(GOOD, "6_4")
        assert len(calls) == 1


def test_calls_are_recorded_with_their_descriptor_while_they_are_asked_for() -> None:
    device, refused = Device(), page_tile(Repeats=None)
    operator = device.create_operator(GOOD)
    bindings = table(device, device.compile_operator(operator))
    with record_calls() as calls:
        with record_calls() as inner, pytest.raises(DmlError):
            device.create_operator(refused)
        with pytest.raises(DmlError):
            device.compile_operator(operator, 2**31)
        bindings.bind_inputs([BufferBinding(Buffer(24))])
        bindings.bind_outputs([BufferBinding(Buffer(4))])
    assert device.removal is not None
    assert [(call.name, call.desc, call.target, bool(call.findings)) for call in calls] == [
        ("CreateOperator", refused, device.target, True),
        ("CompileOperator", GOOD, device.target, True),
        ("BindInputs", GOOD, device.target, False),
        ("BindOutputs", GOOD, device.target, True),
    ]
    assert inner == calls[:1]


@pytest.mark.parametrize(("offset", "is_noticed"), [(4, True), (2**64 - 4, False)])
def test_a_range_beyond_its_buffer_says_whether_directml_notices(offset: int, is_noticed: bool) -> None:
    device = Device()
    table(device, compiled(device, GOOD)).bind_inputs([BufferBinding(Buffer(24), offset, 24)])
    assert device.removal is not None
    (message,) = (each.message for each in device.removal.findings if each.rule == "DML-BINDING-range")
    assert ("does not notice" in message) is not is_noticed


def test_many_threads_use_one_device() -> None:
    device, count = Device(raise_on_removal=True), 25
    rng = np.random.default_rng(7)
    inputs = rng.random((8, count, 2, 3), np.float32)
    outputs = np.zeros((8, count, 6, 9), np.float32)

    def work(i: int) -> None:
        for j in range(count):
            operator = compiled(device, OWNED if j % 2 else GOOD)
            given = BufferBinding(Buffer.wrap(inputs[i, j]))
            (persistent,) = initialise(device, [operator], [given if operator.owns_input else None])
            execute(device, operator, given, BufferBinding(Buffer.wrap(outputs[i, j])), persistent)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))  # and raise what one raised
    np.testing.assert_array_equal(outputs, np.tile(inputs, (1, 1, 3, 3)))


@pytest.mark.parametrize("name", ["write", "copy_bytes"], ids=["tile", "input"])
def test_no_lock_is_held_while_bytes_are_copied(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    device = Device(raise_on_removal=True)
    plan_of_operator.cache_clear()  # so that the mover below is that of the operators
    owner: Any = mover_of_tile(OWNED) if name == "write" else dispatches
    operators, outputs = [compiled(device, OWNED) for _ in range(2)], [output(), output()]
    both_are_copying, copy = threading.Barrier(2, timeout=30), getattr(owner, name)

    def copy_when_both_are_here(*memory: Any) -> None:
        both_are_copying.wait()
        initialise(device, [compiled(device, GOOD)])
        copy(*memory)

    def live(operator: CompiledOperator, out: BufferBinding) -> None:
        (persistent,) = initialise(device, [operator], [source()])
        execute(device, operator, source(), out, persistent)

    monkeypatch.setattr(owner, name, copy_when_both_are_here)
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(live, operators, outputs))
    for out in outputs:
        np.testing.assert_array_equal(written(out), TILED)


# Removing a device: the causes, the reason, and what still works


def test_a_removed_device_does_nothing_and_says_why() -> None:
    (device, operator), out = initialised(), output()
    bindings, recorder = table(device, operator), device.create_command_recorder()
    bindings.bind_inputs([source()])
    bindings.bind_outputs([out])
    table(device, operator).bind_outputs([BufferBinding(Buffer(256), 4)])
    assert device.get_device_removed_reason() == HRESULT.DXGI_ERROR_DEVICE_REMOVED
    assert str(device.removal).startswith("BindOutputs: [DML-BINDING-Offset] OutputTensor: the value of Offset is mis")
    bindings.bind_inputs([source(), source()])
    first = device.removal
    recorder.record_dispatch(operator, bindings)
    assert device.removal is first, "the first removal stays the reason"
    with pytest.raises(DmlError, match=r"the device was removed by BindOutputs: \[DML-BINDING-Offset\]") as error:
        device.create_operator(GOOD)
    assert error.value.hresult == HRESULT.DXGI_ERROR_DEVICE_REMOVED
    assert not written(out).any()
    assert Device().get_device_removed_reason() == HRESULT.S_OK
    assert repr(device) == "<Device at 6_4, removed by BindOutputs>"


def test_a_device_is_made_by_the_function_that_takes_a_minimum_or_by_the_one_that_does_not() -> None:
    with record_calls() as calls:
        Device("windows-10-1903")
        Device("2_0", "2_0")
        with pytest.raises(
            DmlError, match=r"^DMLCreateDevice1: no HRESULT, the process dies\n.*-DMLCreateDevice1\]"
        ) as no:
            Device("windows-10-1903", "1_0", flags=2)
    assert [call.name for call in calls] == ["DMLCreateDevice", "DMLCreateDevice1", "DMLCreateDevice1"]
    assert (no.value.crash, no.value.hresult, len(no.value.findings)) == (True, None, 1)


def test_each_error_names_the_call() -> None:
    device = Device(raise_on_removal=True)
    operator = compiled(device, GOOD)
    made = device.create_operator_initializer([operator])
    empty = device.create_binding_table(None)
    bad_size = BindingTableDesc(operator, size_in_descriptors=1)
    calls: dict[str, Callable[[], object]] = {
        "DMLCreateDevice": lambda: Device("1_0", flags=2),
        "DMLCreateDevice1": lambda: Device("2_0", "2_1"),
        "CheckFeatureSupport": lambda: device.check_feature_support(7, 0),
        "CreateOperator": lambda: device.create_operator(None),
        "CompileOperator": lambda: device.compile_operator(None),
        "CreateOperatorInitializer": lambda: device.create_operator_initializer([compiled(Device(), GOOD)]),
        "Reset": lambda: made.reset([compiled(Device(), GOOD)]),
        "CreateBindingTable": lambda: device.create_binding_table(bad_size),
        "BindInputs": lambda: empty.bind_inputs([]),
        "BindOutputs": lambda: empty.bind_outputs([]),
        "BindTemporaryResource": lambda: empty.bind_temporary_resource(BindingDesc()),
        "BindPersistentResource": lambda: empty.bind_persistent_resource(BindingDesc()),
        "RecordDispatch": lambda: device.create_command_recorder().record_dispatch(operator, empty),
    }
    for name, call in calls.items():
        with pytest.raises(DmlError) as error:
            call()
        assert error.value.call == name
    with pytest.raises(DmlError, match="Reset: E_INVALIDARG"):
        empty.reset(bad_size)
    with pytest.raises(DmlError, match="BindInputs: DXGI_ERROR_DEVICE_REMOVED"):
        table(device, operator).bind_inputs([BindingDesc()])
    with pytest.raises(DmlError, match=r"CreateCommandRecorder: DXGI_ERROR_DEVICE_REMOVED.*\n.*DML-DEVICE-removed"):
        device.create_command_recorder()
    assert device.removal is not None


def test_a_refused_reset_of_an_initializer_leaves_its_tables() -> None:
    device = Device(raise_on_removal=True)
    made = device.create_operator_initializer(iter([compiled(device, GOOD)]))
    bindings = table(device, made)
    with pytest.raises(DmlError, match="compiled by another device"):
        made.reset(compiled(other, GOOD) for other in [Device()])
    device.create_command_recorder().record_dispatch(made, bindings)
    assert [operator.initialisations for operator in made.operators] == [1]


def test_a_failed_reset_of_a_table_leaves_its_bindings() -> None:
    (device, operator), out = initialised(raise_on_removal=True), output()
    bindings = table(device, operator)
    bindings.bind_inputs([source()])
    bindings.bind_outputs([out])
    with pytest.raises(DmlError, match="SizeInDescriptors"):
        bindings.reset(BindingTableDesc(operator, size_in_descriptors=1))
    device.create_command_recorder().record_dispatch(operator, bindings)
    np.testing.assert_array_equal(written(out), TILED)


def test_other_objects_are_type_errors() -> None:
    device = Device()
    operator = device.create_operator(GOOD)
    other = device.compile_operator(operator)
    bindings, recorder = table(device, other), device.create_command_recorder()
    calls: list[tuple[Callable[..., object], tuple[Any, ...], str]] = [
        (device.check_feature_support, (Feature.FEATURE_LEVELS, "5_0"), "several feature levels"),
        (device.check_feature_support, (Feature.TENSOR_DATA_TYPE_SUPPORT, ["INT8"]), "a data type"),
        (device.compile_operator, ("tile",), "an Operator was expected, not a str"),
        (device.create_operator_initializer, (["tile"],), "a CompiledOperator was expected, not a str"),
        (device.create_operator_initializer, (other,), "a sequence of operators was expected, not a CompiledOperator"),
        (device.create_binding_table, (other,), "a BindingTableDesc was expected, not a CompiledOperator"),
        (BindingTableDesc, ("tile",), "a dispatchable was expected, not a str"),
        (recorder.record_dispatch, (operator, bindings), "not an Operator; compile it first"),
        (recorder.record_dispatch, (bindings, other), "a dispatchable was expected, not a BindingTable"),
        (recorder.record_dispatch, (other, bindings, 3), "a CommandList was expected, not a int"),
        (recorder.record_dispatch, (other, other), "a BindingTable was expected, not a CompiledOperator"),
        (bindings.bind_inputs, (source(),), "a sequence of bindings was expected, not a BufferBinding"),
        (bindings.bind_inputs, ([np.zeros(6)],), "a BindingDesc, a BufferBinding or a BufferArrayBinding"),
    ]
    for call, arguments, message in calls:
        with pytest.raises(TypeError, match=message):
            call(*arguments)


# Mistakes that DirectML does not notice, or notices by crashing


@pytest.mark.parametrize("other", [BufferBinding(Buffer(24)), BufferBinding(Buffer.wrap(bytearray(24)))])
def test_another_range_than_that_of_the_initialisation_removes_the_device(other: BufferBinding) -> None:
    device, out = Device(), output()
    operator = compiled(device, OWNED)
    (persistent,) = initialise(device, [operator], [source()])
    assert persistent.buffer is not None
    execute(device, operator, source(), out, BufferBinding(Buffer.wrap(persistent.buffer.memory)))
    np.testing.assert_array_equal(written(out), TILED)
    execute(device, operator, source(), out, other)
    assert removing_rules(device) == {"DML-BINDING-persistent"}
    for desc in (OWNED, GOOD):
        never, untouched = Device(), output()
        execute(never, compiled(never, desc), source(), untouched, other)
        assert removing_rules(never) == {"DML-BINDING-uninitialised"}
        assert not written(untouched).any()


def test_all_that_is_wrong_is_reported_at_once() -> None:
    device = Device()
    operator = compiled(device, GOOD)
    device.create_command_recorder().record_dispatch(operator, table(device, operator))
    assert device.removal is not None
    assert [finding.path for finding in device.removal.findings] == ["InputTensor", "OutputTensor", "dispatchable"]


def test_a_dispatch_that_is_refused_takes_no_memory() -> None:
    (device, operator), huge = initialised(), BufferBinding(Buffer(2**62))
    bindings = table(device, operator)
    bindings.bind_inputs([huge])
    device.create_command_recorder().record_dispatch(operator, bindings)
    assert removing_rules(device) == {"DML-BINDING-missing"}
    lax = Device("5_2", against="runtime")
    execute(lax, compiled(lax, WRAPPING), huge, huge)
    assert lax.removal is None


def test_a_lack_of_memory_is_an_error_that_changes_nothing() -> None:
    (device, operator), out = initialised(raise_on_removal=True), output()
    with pytest.raises(MemoryError):
        execute(device, operator, BufferBinding(Buffer(2**62)), out)
    execute(device, operator, source(), out)
    np.testing.assert_array_equal(written(out), TILED)


@pytest.mark.parametrize("by", ["both", "runtime"])
def test_a_crash_at_one_operator_is_one_whatever_comes_after(by: Against) -> None:
    device = Device(against=by)
    made = device.create_operator_initializer([compiled(device, GOOD), compiled(device, OWNED)])
    short = BufferArrayBinding([BufferBinding(Buffer(8))])
    with pytest.raises(DmlError, match="BindInputs: no HRESULT") as error:
        table(device, made).bind_inputs([BindingDesc(), short])
    assert error.value.hresult is None
    assert device.removal is None
    table(device, device.create_operator_initializer([compiled(device, OWNED), compiled(device, GOOD)])).bind_inputs(
        [short, BindingDesc()]
    )
    assert removing_rules(device) >= {"DML-BINDING-SizeInBytes"}


@pytest.mark.parametrize("against", ["runtime", "both"])
def test_an_owned_input_of_type_none_is_missing_too_by_the_documentation_alone(against: Against) -> None:
    device = Device(against=against)
    made = device.create_operator_initializer([compiled(device, OWNED)])
    with pytest.raises(DmlError) as error:
        table(device, made).bind_inputs([BindingDesc()])
    missing = ["DML-BINDING-missing"] * (against == "both")
    assert [finding.rule for finding in error.value.findings] == ["DML-BINDING-initializer-NONE", *missing]


def test_what_only_the_documentation_allows_passes_against_it() -> None:
    device = Device(against="documentation")
    made = device.create_operator_initializer([compiled(device, GOOD)])
    bindings = table(device, made)
    bindings.bind_inputs([BindingDesc()])
    bindings.bind_temporary_resource(None)
    bindings.bind_persistent_resource(None)
    device.create_command_recorder().record_dispatch(made, bindings)
    assert device.removal is None


# Dispatches that are recorded into a command list, and executed later

TILE = row("UINT8", [4], [2])
SOURCE = np.array([1, 2, 3, 4], np.uint8)


class Life:
    """A device, and an operator of it that is initialised and whose buffers are bound, unless the arguments differ."""

    def __init__(self, *, volatile: bool = False, initialised: bool = True, bound: bool = True, **options: Any) -> None:
        self.device = Device(**options)
        self.recorder = self.device.create_command_recorder()
        self.compiled = compiled(self.device, TILE, ExecutionFlags.DESCRIPTORS_VOLATILE if volatile else 0)
        self.table = table(self.device, self.compiled)
        self.output = Buffer(8)
        if initialised:
            initialise(self.device, [self.compiled])
        if bound:
            self.bind()

    def bind(self) -> None:
        self.table.bind_inputs([BufferBinding(Buffer.wrap(SOURCE.copy()))])
        self.table.bind_outputs([BufferBinding(self.output)])

    def record(self) -> CommandList:
        commands = CommandList()
        self.recorder.record_dispatch(self.compiled, self.table, commands)
        return commands

    @property
    def written(self) -> list[int]:
        written: list[int] = self.output.memory.tolist()
        return written


DONE = [1, 2, 3, 4, 1, 2, 3, 4]
NOTHING = [0] * 8


def test_a_list_writes_whenever_it_is_executed_until_it_is_reset() -> None:
    life = Life()
    with record_calls() as calls:
        commands = life.record()
    assert [(call.name, call.desc, call.findings) for call in calls] == [("RecordDispatch", TILE, ())]
    assert life.written == NOTHING
    for _ in range(2):
        commands.execute()
        assert life.written == DONE
        life.output.memory[:] = 0
    commands.reset()
    commands.execute()
    assert life.written == NOTHING


def test_volatile_bindings_are_there_when_the_list_is_executed() -> None:
    life, lax = Life(volatile=True, bound=False), Life(volatile=True, bound=False, against="runtime")
    commands = life.record()
    assert life.device.removal is None
    commands.execute()
    assert life.device.removal
    assert life.device.removal.call == "ExecuteCommandLists"
    assert removing_rules(life.device) == {"DML-BINDING-missing"}
    lax.record().execute()
    assert lax.device.removal is None, "DirectML does not notice"
    reset = Life(volatile=True)
    commands = reset.record()
    reset.table.reset(BindingTableDesc(reset.compiled))
    commands.execute()
    assert reset.device.removal


def test_volatile_bindings_of_another_operator_are_not_those_of_the_recorded_one() -> None:
    life = Life(volatile=True)
    commands = life.record()
    life.table.reset(BindingTableDesc(compiled(life.device, TILE)))
    life.bind()
    commands.execute()
    assert life.device.removal
    missing = [(finding.rule, finding.path) for finding in life.device.removal.findings]
    assert missing == [("DML-BINDING-missing", "InputTensor"), ("DML-BINDING-missing", "OutputTensor")]
    assert life.written == NOTHING


def test_the_last_volatile_binding_before_the_execution_counts() -> None:
    life, second = Life(volatile=True), Buffer(8)
    commands = life.record()
    life.table.bind_outputs([BufferBinding(second)])
    commands.execute()
    assert (life.written, second.memory.tolist()) == (NOTHING, DONE)
    assert life.device.removal is None


def test_static_bindings_are_those_of_the_recording() -> None:
    life, second = Life(against="runtime"), Buffer(8)
    commands = life.record()
    with record_calls() as calls:
        life.table.bind_outputs([BufferBinding(second)])
        commands.execute()
    assert (life.written, second.memory.tolist()) == (DONE, NOTHING)
    assert life.device.removal is None
    rules = {call.name: [(finding.rule, finding.path) for finding in call.findings] for call in calls}
    assert rules == {"BindOutputs": [("DML-BINDING-recorded", "OutputTensor")], "ExecuteCommandLists": []}
    unbound = Life(bound=False)
    commands = unbound.record()
    assert unbound.device.removal
    assert unbound.device.removal.call == "RecordDispatch"
    commands.execute()
    assert unbound.written == NOTHING


def test_a_table_is_not_bound_again_before_its_dispatch_is_executed() -> None:
    life = Life()
    commands = life.record()
    life.table.bind_inputs([BufferBinding(Buffer.wrap(SOURCE.copy()))])
    commands.execute()
    assert life.device.removal
    assert str(life.device.removal).startswith("BindInputs: [DML-BINDING-recorded] InputTensor: ")
    assert "wrote to the buffer that was bound last" in str(life.device.removal)
    assert life.written == NOTHING
    unbound = Life()
    commands = unbound.record()
    unbound.table.bind_outputs([])
    assert removing_rules(unbound.device) == {"DML-BINDING-recorded"}


def test_a_table_is_bound_again_once_no_list_waits_for_its_bindings() -> None:
    life = Life()
    executed, other = life.record(), compiled(life.device, TILE)
    initialise(life.device, [other])
    executed.execute()
    life.bind()
    life.record().reset()
    life.bind()
    life.record()  # this list is gone
    life.bind()
    commands = life.record()
    life.table.bind_outputs([BufferBinding(life.output)])  # as it was
    commands.execute()
    life.table.reset(BindingTableDesc(other))
    life.bind()
    life.recorder.record_dispatch(other, life.table)
    life.bind()
    assert life.device.removal is None


def test_a_table_that_is_described_anew_may_lie_elsewhere() -> None:
    life = Life()
    commands = life.record()
    life.table.reset(BindingTableDesc(life.compiled, 0x2000, 0x2000))
    life.bind()
    commands.execute()
    assert life.device.removal is None
    assert life.written == DONE


def test_an_operator_is_initialised_when_the_list_is_executed() -> None:
    life = Life(initialised=False)
    uninitialised = life.record()
    assert life.device.removal is None
    uninitialised.execute()
    assert removing_rules(life.device) == {"DML-BINDING-uninitialised"}


@pytest.mark.parametrize("removes_direct3d_device", [True, False])
def test_what_was_recorded_before_the_removal_writes_nothing(removes_direct3d_device: bool) -> None:
    life = Life(direct3d_device=Direct3DDevice())
    commands = life.record()
    if removes_direct3d_device:
        life.device.direct3d_device.remove(HRESULT.DXGI_ERROR_DEVICE_HUNG)
    else:
        life.device.create_binding_table(BindingTableDesc(life.compiled)).bind_inputs([BindingDesc()])
    assert life.device.get_device_removed_reason() != HRESULT.S_OK
    commands.execute()
    assert life.written == NOTHING


def test_a_removed_direct3d_device_executes_nothing() -> None:
    life = Life()
    life.device.direct3d_device.remove(HRESULT.DXGI_ERROR_DEVICE_HUNG)
    life.recorder.record_dispatch(life.compiled, life.table)
    life.bind()  # nothing was recorded
    assert life.written == NOTHING
    assert life.device.removal is None
    life.device.create_operator(TILE)  # all else goes on, until the reason is asked for
    assert life.device.get_device_removed_reason() == HRESULT.DXGI_ERROR_DEVICE_HUNG
    assert str(life.device.removal).startswith("ID3D12Device: [DML-DEVICE-Direct3D-removed]")


def test_no_device_is_made_on_a_removed_direct3d_device() -> None:
    direct3d_device = Direct3DDevice()
    with pytest.raises(ValueError, match="S_OK is no reason"):
        direct3d_device.remove(HRESULT.S_OK)
    direct3d_device.remove()
    with pytest.raises(DmlError, match="DML-DEVICE-Direct3D-removed") as raised:
        Device(direct3d_device=direct3d_device)
    assert raised.value.hresult == HRESULT.DXGI_ERROR_DEVICE_REMOVED
