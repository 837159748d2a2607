"""The simulated device: what it answers and writes, a tile's whole life in one call, and command lists."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from dml_tile import (
    BindingDesc,
    BindingTableDesc,
    Buffer,
    BufferBinding,
    CommandList,
    CompiledOperator,
    Device,
    Direct3DDevice,
)
from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.device import dispatches
from dml_tile.directml.enums import HRESULT, ExecutionFlags, Feature
from dml_tile.directml.targets import Target
from dml_tile.errors import DmlError
from dml_tile.execution.mover import Mover
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
    output,
    removing_rules,
    source,
    table,
    written,
)


def test_an_owned_input_is_read_once_at_initialisation() -> None:
    device, out, given = Device(raise_on_removal=True), output(), source()
    operator = compiled(device, OWNED)
    (persistent,) = initialise(device, [operator], [given])
    assert given.buffer is not None
    given.buffer.memory[:] = 0
    for _ in range(2):
        execute(device, operator, given, out, persistent)
    np.testing.assert_array_equal(written(out), TILED)


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
    wrapping = page_tile(Repeats=[1, 1, 3, 1431655766], OutputTensor__Sizes=[1, 1, 6, 2])
    execute(device, compiled(device, wrapping), BufferBinding(memory), BufferBinding(memory, 256))
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


def run_in_threads(target: Callable[..., object], arguments: Sequence[tuple[Any, ...]]) -> None:
    threads = [threading.Thread(target=target, args=each) for each in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_many_threads_use_one_device() -> None:
    device, count = Device(raise_on_removal=True), 25
    rng = np.random.default_rng(7)
    inputs = rng.random((8, count, 2, 3), np.float32)
    outputs = np.zeros((8, count, 6, 9), np.float32)
    errors: list[BaseException] = []

    def work(i: int) -> None:
        try:
            for j in range(count):
                operator = compiled(device, OWNED if j % 2 else GOOD)
                given = BufferBinding(Buffer.wrap(inputs[i, j]))
                (persistent,) = initialise(device, [operator], [given if operator.owns_input else None])
                execute(device, operator, given, BufferBinding(Buffer.wrap(outputs[i, j])), persistent)
        except BaseException as error:
            errors.append(error)

    run_in_threads(work, [(i,) for i in range(8)])
    assert not errors
    np.testing.assert_array_equal(outputs, np.tile(inputs, (1, 1, 3, 3)))


@pytest.mark.parametrize(("owner", "name"), [(Mover, "__call__"), (dispatches, "copy_bytes")], ids=["tile", "input"])
def test_no_lock_is_held_while_bytes_are_copied(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
    device = Device(raise_on_removal=True)
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
    run_in_threads(live, list(zip(operators, outputs, strict=True)))
    for out in outputs:
        np.testing.assert_array_equal(written(out), TILED)


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


def test_other_bindings_are_those_of_the_recording() -> None:
    life = Life()
    commands = life.record()
    life.table.bind_outputs([BufferBinding(Buffer(8))])
    commands.execute()
    assert life.written == DONE
    unbound = Life(bound=False)
    commands = unbound.record()
    assert unbound.device.removal
    assert unbound.device.removal.call == "RecordDispatch"
    commands.execute()
    assert unbound.written == NOTHING


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
