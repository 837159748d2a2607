"""Random lives of a device: nothing that the documentation excludes ever comes to pass.

The machine keeps a record of its own, as plain as can be: which operator was initialised how often, and what is bound
well. Whatever the record says is out of order must remove the device, or be refused, and leave every byte as it was;
whatever it says is in order must happen.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)
from numpy.typing import NDArray

from dml_tile.device import (
    BindingDesc,
    BindingTable,
    BindingTableDesc,
    Buffer,
    BufferArrayBinding,
    BufferBinding,
    CompiledOperator,
    Device,
    OperatorInitializer,
)
from dml_tile.directml.enums import HRESULT, Feature
from dml_tile.errors import DmlError
from tests.helpers.descriptors import row
from tests.helpers.devices import compiled, table

SIZES, REPEATS = [1, 1, 2, 3], [1, 1, 2, 2]
INPUT_BYTES, OUTPUT_BYTES = 24, 96

SELDOM = st.integers(0, 9).map(lambda luck: luck == 7)  # what ends a life is to be rare

GOOD = ("good", "good, further on", "good, at the end")
BAD = ("short", "misaligned", "too far", "upload", "readback", "no unordered access", "null", "none")


@dataclass
class Operator:
    """A compiled operator, and how often it was initialised."""

    made: CompiledOperator
    owned: bool
    volatile: bool
    initialised: int = 0
    persistent: tuple[Buffer, int] | None = None
    """The buffer that its initialisation wrote to, and the offset there in bytes."""


@dataclass
class Initializer:
    made: OperatorInitializer
    operators: list[Operator]
    resets: int = 0


@dataclass
class Table:
    """A binding table, what it was made for, and which ranges are bound well: (buffer, offset), or None."""

    made: BindingTable
    of: Operator | Initializer
    resets: int
    inputs: list[tuple[Buffer, int] | None] = field(default_factory=list)
    outputs: list[tuple[Buffer, int] | None] = field(default_factory=list)
    persistent: tuple[Buffer, int] | None = None


def binding(kind: str, buffer: Buffer, size: int) -> BindingDesc | BufferBinding:
    """A binding that is good, or bad in one way, for a tensor or resource of some bytes."""
    others = {"upload": Buffer(4096, heap="UPLOAD"), "readback": Buffer(4096, heap="READBACK")}
    ranges: dict[str, BindingDesc | BufferBinding] = {
        "good": BufferBinding(buffer, 0, size),
        "good, further on": BufferBinding(buffer, 512),
        "good, at the end": BufferBinding(buffer, 4096 - 256, 256),
        "short": BufferBinding(buffer, 0, size - 1),
        "misaligned": BufferBinding(buffer, 8, size),
        "too far": BufferBinding(buffer, 4096 - 256, 257),
        "no unordered access": BufferBinding(Buffer(4096, flags=0)),
        "null": BufferBinding(None, 0, size),
        "none": BindingDesc(),
    }
    return ranges[kind] if kind in ranges else BufferBinding(others[kind])


def place(kind: str, buffer: Buffer) -> tuple[Buffer, int] | None:
    offsets = {"good": 0, "good, further on": 512, "good, at the end": 4096 - 256}
    return (buffer, offsets[kind]) if kind in offsets else None


def overlap(one: tuple[Buffer, int], size: int, other: tuple[Buffer, int], other_size: int) -> bool:
    return one[0] is other[0] and one[1] < other[1] + other_size and other[1] < one[1] + size


class Life(RuleBasedStateMachine):
    operators = Bundle("operators")
    ready = Bundle("ready")
    initializers = Bundle("initializers")
    tables = Bundle("tables")
    buffers = Bundle("buffers")
    level = "6_2"

    def __init__(self) -> None:
        super().__init__()
        self.device = Device(self.level)
        self.recorder = self.device.create_command_recorder()
        self.removed = False
        self.all_buffers: list[tuple[Buffer, NDArray[np.uint8]]] = []

    def expect_removal(self, why: bool) -> None:
        self.removed = self.removed or why

    @initialize(target=buffers)
    def begin_with_buffers(self) -> Any:
        return multiple(*(self.make_buffer(seed) for seed in range(3)))

    def make_buffer(self, seed: int) -> Buffer:
        buffer = Buffer(4096)
        buffer.memory[:] = np.arange(4096) * 7 + seed
        self.all_buffers.append((buffer, buffer.memory.copy()))
        return buffer

    @rule(target=operators, owned=st.booleans(), volatile=st.booleans())
    def make_operator(self, owned: bool, volatile: bool) -> Any:
        desc = row("FLOAT32", SIZES, REPEATS, InputTensor__Flags=int(owned))
        if self.removed:
            with pytest.raises(DmlError):
                compiled(self.device, desc)
            return multiple()
        return Operator(compiled(self.device, desc, 4 if volatile else 0), owned, volatile)

    @rule(target=initializers, chosen=st.lists(st.one_of(operators, ready), max_size=3))
    def make_initializer(self, chosen: list[Operator]) -> Any:
        operators = [operator.made for operator in chosen]
        if self.removed:
            with pytest.raises(DmlError):
                self.device.create_operator_initializer(operators)
            return multiple()
        return Initializer(self.device.create_operator_initializer(operators), chosen)

    @rule(initializer=initializers, chosen=st.lists(st.one_of(operators, ready), max_size=3))
    def reset_initializer(self, initializer: Initializer, chosen: list[Operator]) -> None:
        initializer.made.reset([operator.made for operator in chosen])
        initializer.operators = chosen
        initializer.resets += 1

    @precondition(lambda self: not self.removed and len(self.bundle("operators")) > 1)
    @rule(target=ready, chosen=st.tuples(consumes(operators), consumes(operators)), data=st.data())
    def initialise_several(self, chosen: tuple[Operator, ...], data: st.DataObject) -> Any:
        """All the steps of one initialisation of several operators, between ranges that seldom overlap."""
        initializer = Initializer(self.device.create_operator_initializer([one.made for one in chosen]), [*chosen])
        bound = Table(table(self.device, initializer.made), initializer, 0)
        offsets = data.draw(st.permutations(range(0, 2048, 256)))
        buffers = [data.draw(st.sampled_from(self.all_buffers))[0] for _ in range(2 * len(chosen))]
        if data.draw(SELDOM):
            offsets[0] = offsets[-1] = offsets[1]
        places = list(zip(buffers, offsets, strict=False))
        bound.inputs = [at if one.owned else None for one, at in zip(chosen, places[::2], strict=True)]
        bound.outputs = [at if one.owned else None for one, at in zip(chosen, places[1::2], strict=True)]
        bound.made.bind_inputs(
            [BufferArrayBinding([BufferBinding(*at) if at else BufferBinding(None)]) for at in bound.inputs]
        )
        bound.made.bind_outputs([BufferBinding(*at) if at else BindingDesc() for at in bound.outputs])
        self.recorder.record_dispatch(initializer.made, bound.made)
        self.initialised(initializer, bound)
        return multiple(*chosen)

    @rule(target=tables, of=st.one_of(operators, ready, initializers))
    def make_table(self, of: Operator | Initializer) -> Any:
        if self.removed:
            with pytest.raises(DmlError):
                table(self.device, of.made)
            return multiple()
        return Table(table(self.device, of.made), of, of.resets if isinstance(of, Initializer) else 0)

    @rule(bound=tables)
    def reset_table(self, bound: Table) -> None:
        if self.removed:
            with pytest.raises(DmlError):
                bound.made.reset(BindingTableDesc(bound.of.made))
            return
        bound.made.reset(BindingTableDesc(bound.of.made))
        bound.resets = bound.of.resets if isinstance(bound.of, Initializer) else 0
        bound.inputs, bound.outputs, bound.persistent = [], [], None

    @rule(bound=tables, buffer=buffers, kind=st.sampled_from(GOOD * 12 + BAD), count=st.sampled_from([1] * 30 + [0, 2]))
    def bind_input(self, bound: Table, buffer: Buffer, kind: str, count: int) -> None:
        if isinstance(bound.of, Initializer):
            return
        given: list[BindingDesc | BufferBinding] = [binding(kind, buffer, INPUT_BYTES)] * count
        bound.made.bind_inputs(given)
        if self.removed:
            return
        self.expect_removal(count == 2)
        if count == 1:
            self.expect_removal(kind != "none" if bound.of.owned else kind not in GOOD)
        if not self.removed:
            bound.inputs = [place(kind, buffer)] if count and not bound.of.owned else []

    @rule(bound=tables, buffer=buffers, kind=st.sampled_from(GOOD * 12 + BAD))
    def bind_output(self, bound: Table, buffer: Buffer, kind: str) -> None:
        if isinstance(bound.of, Initializer):
            return
        bound.made.bind_outputs([binding(kind, buffer, OUTPUT_BYTES)])
        if not self.removed:
            self.expect_removal(kind not in GOOD)
            bound.outputs = [place(kind, buffer)]

    @rule(bound=tables, buffer=buffers, kind=st.sampled_from(GOOD * 12 + BAD))
    def bind_persistent(self, bound: Table, buffer: Buffer, kind: str) -> None:
        bound.made.bind_persistent_resource(binding(kind, buffer, INPUT_BYTES))
        if not self.removed:
            wrong = kind not in GOOD
            if isinstance(bound.of, Initializer):
                wrong = True
            elif not bound.of.owned:
                wrong = kind != "none"
            self.expect_removal(wrong)
            bound.persistent = place(kind, buffer)

    @precondition(lambda self: self.all_buffers)
    @rule(bound=tables, data=st.data())
    def bind_initializer(self, bound: Table, data: st.DataObject) -> None:
        """Well, but for a count that may be wrong since the initializer was reset."""
        if isinstance(bound.of, Operator):
            return
        chosen = [data.draw(st.sampled_from(self.all_buffers))[0] for _ in range(2 * len(bound.of.operators))]
        sources, persistent = chosen[::2], chosen[1::2]
        pairs = list(zip(bound.of.operators, sources, persistent, strict=True))
        bound.made.bind_inputs(
            [BufferArrayBinding([BufferBinding(buffer if one.owned else None)]) for one, buffer, _ in pairs]
        )
        bound.made.bind_outputs([BufferBinding(buffer) if one.owned else BindingDesc() for one, _, buffer in pairs])
        if not self.removed:
            bound.inputs = [(buffer, 0) if one.owned else None for one, buffer, _ in pairs]
            bound.outputs = [(buffer, 0) if one.owned else None for one, _, buffer in pairs]

    @precondition(lambda self: not self.removed)
    @rule(target=ready, operator=consumes(operators), source=buffers, persistent=buffers)
    def initialise_one(self, operator: Operator, source: Buffer, persistent: Buffer) -> Operator:
        """All the steps of one initialisation, which is the operator's first unless it was in an initializer."""
        initializer = Initializer(self.device.create_operator_initializer([operator.made]), [operator])
        bound = Table(table(self.device, initializer.made), initializer, 0)
        if operator.owned:
            bound.made.bind_inputs([BufferArrayBinding([BufferBinding(source, 1024)])])
            bound.made.bind_outputs([BufferBinding(persistent, 2048)])
            bound.inputs, bound.outputs = [(source, 1024)], [(persistent, 2048)]
        self.recorder.record_dispatch(initializer.made, bound.made)
        self.initialised(initializer, bound)
        return operator

    @precondition(lambda self: not self.removed)
    @rule(
        operator=ready,
        source=buffers,
        output=buffers,
        kinds=st.lists(st.sampled_from(GOOD), min_size=2, max_size=2),
    )
    def execute_one(self, operator: Operator, source: Buffer, output: Buffer, kinds: list[str]) -> None:
        """All the steps of one execution."""
        bound = Table(table(self.device, operator.made), operator, 0)
        if operator.owned:
            bound.persistent = operator.persistent or (source, 2048)
            bound.made.bind_persistent_resource(BufferBinding(*bound.persistent))
        else:
            bound.made.bind_inputs([binding(kinds[0], source, INPUT_BYTES)])
            bound.inputs = [place(kinds[0], source)]
        bound.made.bind_outputs([binding(kinds[1], output, OUTPUT_BYTES)])
        bound.outputs = [place(kinds[1], output)]
        self.recorder.record_dispatch(operator.made, bound.made)
        self.executed(operator, bound)

    @rule(bound=tables, other=st.one_of(st.none(), ready, initializers), now=SELDOM)
    def dispatch(self, bound: Table, other: Operator | Initializer | None, now: bool) -> None:
        """With a table that may lack bindings, or be for something else."""
        if not now:
            return
        of = other or bound.of
        self.recorder.record_dispatch(of.made, bound.made)
        if self.removed:
            return
        self.expect_removal(of is not bound.of)
        if self.removed:
            return
        if isinstance(of, Operator):
            self.executed(of, bound)
        else:
            self.initialised(of, bound)

    def executed(self, operator: Operator, bound: Table) -> None:
        source = bound.persistent if operator.owned else (bound.inputs or [None])[0]
        output = (bound.outputs or [None])[0]
        self.expect_removal(operator.initialised != 1 or source is None or output is None)
        if source is None or output is None:
            return
        self.expect_removal(overlap(source, INPUT_BYTES, output, OUTPUT_BYTES))
        self.expect_removal(operator.owned and source != operator.persistent)
        if not self.removed:
            numbers = self.remembered(source[0])[source[1] : source[1] + INPUT_BYTES].view(np.float32).reshape(SIZES)
            tiled = np.tile(numbers, REPEATS).reshape(-1).view(np.uint8)
            self.remembered(output[0])[output[1] : output[1] + OUTPUT_BYTES] = tiled

    def initialised(self, initializer: Initializer, bound: Table) -> None:
        self.expect_removal(bound.resets != initializer.resets)
        if self.removed:
            return
        reads: list[tuple[Buffer, int]] = []
        writes: list[tuple[Buffer, int]] = []
        for i, operator in enumerate(initializer.operators):
            self.expect_removal(operator.initialised > 0)
            operator.initialised += 1
            if operator.owned:
                source, persistent = (bound.inputs or [None] * 3)[i], (bound.outputs or [None] * 3)[i]
                self.expect_removal(source is None or persistent is None)
                if source is not None and persistent is not None:
                    reads.append(source)
                    writes.append(persistent)
                    operator.persistent = persistent
        for i, write in enumerate(writes):
            for read in [*reads, *writes[:i]]:
                self.expect_removal(overlap(write, INPUT_BYTES, read, INPUT_BYTES))
        if not self.removed:
            for read, write in zip(reads, writes, strict=True):
                copied = self.remembered(read[0])[read[1] : read[1] + INPUT_BYTES]
                self.remembered(write[0])[write[1] : write[1] + INPUT_BYTES] = copied

    def remembered(self, buffer: Buffer) -> NDArray[np.uint8]:
        return next(memory for known, memory in self.all_buffers if known is buffer)

    @rule()
    def ask(self) -> None:
        if self.removed:
            with pytest.raises(DmlError) as error:
                self.device.check_feature_support(Feature.FEATURE_LEVELS, ["1_0"])
            assert error.value.hresult == HRESULT.DXGI_ERROR_DEVICE_REMOVED
        else:
            assert self.device.check_feature_support(Feature.FEATURE_LEVELS, ["1_0"]) == 0x1000

    @invariant()
    def the_device_is_removed_exactly_when_the_record_says_so(self) -> None:
        assert (self.device.removal is not None) == self.removed, str(self.device.removal)
        assert (self.device.get_device_removed_reason() != 0) == self.removed

    @invariant()
    def every_byte_is_as_the_record_says(self) -> None:
        for buffer, memory in self.all_buffers:
            assert np.array_equal(buffer.memory, memory)


class OldLife(Life):
    level = "windows-10-2004"


TestLife = Life.TestCase
TestOldLife = pytest.mark.long(OldLife.TestCase)
TestLife.settings = TestOldLife.settings = settings(stateful_step_count=40)
