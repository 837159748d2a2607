"""Random tiles with strides, lowered, executed and compared: ``python -m tests.helpers.strided_tiles COUNT SEED``."""

from __future__ import annotations

import math
import random
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dml_tile.checking import check
from dml_tile.descriptors.tile import BufferTensorDesc, TileOperatorDesc, described
from dml_tile.directml.data_types import ELEMENT_SIZES
from dml_tile.directml.targets import Target
from dml_tile.errors import DmlError
from dml_tile.execution.executor import execute
from dml_tile.geometry.layout import packed_strides
from dml_tile.lowering.lower import lower, run_lowering
from dml_tile.lowering.steps import Lowering

GUARD: Final = 0xA5
MAX_ELEMENTS: Final = 1024
MAX_EXTENT: Final = 200_000
LEVELS: Final = ("1_0", "2_1", "3_1", "4_0")
TYPES: Final = ("FLOAT32", "FLOAT16", "INT32", "UINT16", "INT8", "UINT8", "INT64")


def random_tile(random: random.Random) -> TileOperatorDesc:
    """A tile of 4 to 8 dimensions that 6_4 accepts: nested or not, permuted, with gaps in the input and the output."""
    while True:
        rank = random.choice((4, 5, 5, 5, 6, 6, 7, 8))
        sizes = random.choices((1, 2, 2, 2, 3, 4, 5), k=rank)
        repeats = random.choices((1, 1, 1, 2, 3), k=rank)
        written = [size * repeat for size, repeat in zip(sizes, repeats, strict=True)]
        strides = nested(sizes, random) if random.random() < 0.6 else random.choices(range(41), k=rank)
        spread = nested(written, random) if random.random() < 0.7 else random.choices(range(1, 61), k=rank)
        reach = sum((size - 1) * stride for size, stride in zip(written, spread, strict=True))
        if math.prod(written) > MAX_ELEMENTS or reach >= MAX_EXTENT:
            continue
        desc = TileOperatorDesc.from_input(
            data_type=random.choice(TYPES), sizes=sizes, repeats=repeats, strides=strides, output_strides=spread
        )
        if not check(desc, "6_4"):
            return desc


def nested(sizes: Sequence[int], random: random.Random) -> list[int]:
    """Strides of dimensions that follow one another in some order, some with gaps between them."""
    order = list(range(len(sizes)))
    if random.random() < 0.5:
        random.shuffle(order)
    gaps = random.choice((0, 0.5, 1))
    strides, stride = [0] * len(sizes), random.choice((1, 1, 1, 2))
    for i in reversed(order):
        strides[i] = stride
        stride = stride * sizes[i] + (random.randint(1, 3) if random.random() < gaps else 0)
    return strides


def element_addresses(buffer: BufferTensorDesc) -> NDArray[np.int64]:
    """Return the address in bytes of each element of a tensor."""
    sizes = buffer.sizes or ()
    addresses = np.zeros((), np.int64)
    for size, stride in zip(sizes, buffer.strides or packed_strides(sizes), strict=True):
        addresses = np.add.outer(addresses, np.arange(size) * stride)
    return addresses * ELEMENT_SIZES[buffer.data_type]


def byte_addresses(desc: TileOperatorDesc) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the addresses of the bytes that a tile reads, and where it writes each, in the order of its elements."""
    source, destination = described(desc)
    reads = np.tile(element_addresses(source), desc.repeats or ())
    bytes_of_element = np.arange(ELEMENT_SIZES[source.data_type])
    reads, writes = (np.add.outer(each, bytes_of_element).ravel() for each in (reads, element_addresses(destination)))
    return reads, writes


def moves_whole_elements(desc: TileOperatorDesc, size: int) -> bool:
    """Return whether all bytes move in elements of this size, by comparing them byte by byte."""
    reads, writes = byte_addresses(desc)
    order = np.argsort(writes)
    reads, writes = reads[order], writes[order]
    if len(writes) % size:
        return False
    steps = np.arange(size)
    return all(
        bool(((addresses[:, :1] % size == 0) & (addresses == addresses[:, :1] + steps)).all())
        for addresses in (reads.reshape(-1, size), writes.reshape(-1, size))
    )


def steps_to(desc: TileOperatorDesc, target: Target, values: np.random.Generator) -> int | None:
    """Return the number of steps of a tile's lowering, which must write the same bytes; None if it has none."""
    try:
        lowering = lower(desc, target)
    except DmlError as error:
        if {finding.rule for finding in error.findings} <= {"DML-LOWER-elements", "DML-LOWER-steps"}:
            return None
        raise
    assert_same_bytes(desc, lowering, values)
    return len(lowering.steps)


def assert_same_bytes(desc: TileOperatorDesc, lowering: Lowering, values: np.random.Generator) -> None:
    """Execute a tile and its lowering, whose steps must pass at its target, read and write no more than the tile."""
    assert all(not check(step.desc, lowering.target) for step in lowering.steps), (desc, lowering.target)
    source, destination = described(desc)
    given = values.integers(0, 256, source.total_tensor_size_in_bytes, np.uint8)
    read = given.copy()
    expected = np.full(destination.total_tensor_size_in_bytes + 32, GUARD, np.uint8)
    written = expected.copy()
    execute(desc, given, expected[16:], "6_4", "runtime")
    run_lowering(lowering, read, written[16:])
    assert written.tobytes() == expected.tobytes(), (desc, lowering.target)
    assert read.tobytes() == given.tobytes(), (desc, lowering.target)


def compare(count: int, seed: int) -> Counter[int]:
    """By their numbers of steps, how many of ``count`` tiles that a target refuses were lowered and wrote the same."""
    draw, values = random.Random(seed), np.random.default_rng(seed)
    targets = [Target.parse(level) for level in LEVELS]
    lowered = Counter[int]()
    while lowered.total() < count:
        desc, target = random_tile(draw), draw.choice(targets)
        if check(desc, target) and (steps := steps_to(desc, target, values)):
            lowered[steps] += 1
    return lowered


if __name__ == "__main__":
    for steps, tiles in sorted(compare(int(sys.argv[1]), int(sys.argv[2])).items()):
        sys.stdout.write(f"{tiles} tiles in {steps} {'step' if steps == 1 else 'steps'}\n")
