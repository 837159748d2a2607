"""Random lives of a device: nothing that the documentation excludes ever comes to pass.

A record, as plain as can be, holds how often each operator was initialised, and where. Whatever it says is out of order
must remove the device, and leave every byte as it was; whatever it says is in order must happen.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations, product
from typing import Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dml_tile import BindingDesc, Buffer, BufferArrayBinding, BufferBinding, Device
from tests.helpers.descriptors import row
from tests.helpers.devices import compiled, table

SIZES, REPEATS = [1, 1, 2, 3], [1, 1, 2, 2]
READ, WRITTEN = 24, 96
KINDS: Final = [(owned, flags) for owned in (0, 1) for flags in (0, 4)] * 2
PLACES: Final = (0, 256, 512, 1024, 1280, 2048)

Place = int | None
"""The offset of a range in the one buffer; None where nothing is bound."""
SELDOM: Final = st.integers(0, 9).map(lambda luck: luck == 7)  # what ends a life is to be rare
ANYWHERE: Final = st.lists(st.sampled_from([*PLACES, 16, 80, None]), min_size=6, max_size=6)
APART: Final = st.permutations(PLACES).map(list[Place])


class Life:
    """A device with operators of all kinds, one buffer, and the record of both."""

    def __init__(self, level: str) -> None:
        self.device = Device(level)
        self.recorder = self.device.create_command_recorder()
        tiles = [row("FLOAT32", SIZES, REPEATS, InputTensor__Flags=owned) for owned, _ in KINDS]
        self.operators = [compiled(self.device, tile, flags) for tile, (_, flags) in zip(tiles, KINDS, strict=True)]
        self.buffer = Buffer.wrap(np.arange(4096).astype(np.uint8))
        self.memory = self.buffer.memory.copy()
        self.initialised: Counter[int] = Counter()
        self.persistent: dict[int, Place] = {}

    def range(self, place: Place) -> BufferBinding:
        return BufferBinding(self.buffer, place or 0)

    def initialise(self, chosen: list[int], places: list[Place]) -> bool:
        """Initialise operators; returns whether that is out of order. An array is bound whole, or not at all."""
        owned = [number for number in chosen if KINDS[number][0]]
        sources, targets = dict(zip(owned, places, strict=False)), dict(zip(owned, places[3:], strict=False))
        made = self.device.create_operator_initializer([self.operators[number] for number in chosen])
        bindings = table(self.device, made)
        is_wrong = None in (*sources.values(), *targets.values())
        if not is_wrong:
            inputs = [self.range(sources[one]) if one in owned else BufferBinding(None) for one in chosen]
            bindings.bind_inputs([BufferArrayBinding([one]) for one in inputs])
            bindings.bind_outputs([self.range(targets[one]) if one in owned else BindingDesc() for one in chosen])
        self.recorder.record_dispatch(made, bindings)
        self.initialised.update(chosen)
        is_wrong = is_wrong or max(self.initialised.values()) > 1 or any(map(is_misaligned, targets.values()))
        pairs = [*combinations(targets.values(), 2), *product(targets.values(), sources.values())]
        if is_wrong or any(overlap(one, READ, other, READ) for one, other in pairs):
            return True
        self.persistent |= targets
        for number in owned:
            self.copy(sources[number], targets[number], 1)
        return False

    def execute(self, number: int, source: Place, output: Place) -> bool:
        """Execute an operator; returns whether that is out of order."""
        bindings, owned = table(self.device, self.operators[number]), KINDS[number][0]
        source = self.persistent.get(number, source) if owned and source != PLACES[0] else source
        if source is not None:
            bind = bindings.bind_persistent_resource if owned else lambda one: bindings.bind_inputs([one])
            bind(self.range(source))
        if output is not None:
            bindings.bind_outputs([self.range(output)])
        self.recorder.record_dispatch(self.operators[number], bindings)
        if self.initialised[number] != 1 or overlap(source, READ, output, WRITTEN):
            return True
        if owned and (source != self.persistent[number] or is_misaligned(source)):
            return True
        self.copy(source, output, 4)
        return False

    def copy(self, source: Place, target: Place, times: int) -> None:
        """Write what is at one place to another, once, or as the tile does."""
        assert source is not None
        assert target is not None
        read = self.memory[source : source + READ]
        written = np.tile(read.view(np.float32).reshape(SIZES), REPEATS if times > 1 else [1])
        self.memory[target : target + times * READ] = written.ravel().view(np.uint8)


def is_misaligned(place: Place) -> bool:
    """Return True where a persistent resource does not lie."""
    return place is not None and place % 256 != 0


def overlap(one: Place, size: int, other: Place, other_size: int) -> bool:
    """Return True for ranges that share a byte, or of which one is not bound."""
    return one is None or other is None or (one < other + other_size and other < one + size)


@pytest.mark.parametrize("level", ["6_2", pytest.param("windows-10-2004", marks=pytest.mark.long)])
@given(data=st.data())
def test_a_device_is_removed_exactly_when_the_record_says_so_and_bytes_agree(level: str, data: st.DataObject) -> None:
    life, numbers = Life(level), set(range(len(KINDS)))
    for wanted in data.draw(st.lists(st.booleans(), max_size=12)):
        executes = wanted and (bool(life.initialised) or data.draw(SELDOM))
        usual = {number for number in numbers if (life.initialised[number] > 0) == executes}
        possible = sorted(numbers if data.draw(SELDOM) or not usual else usual)
        chosen = data.draw(st.lists(st.sampled_from(possible), min_size=1, max_size=3, unique=True))
        places = data.draw(ANYWHERE if data.draw(SELDOM) else APART)
        wrong = life.execute(chosen[0], *places[:2]) if executes else life.initialise(chosen, places)
        assert (life.device.removal is not None) == wrong, str(life.device.removal)
        assert np.array_equal(life.buffer.memory, life.memory)
        if wrong:
            return
