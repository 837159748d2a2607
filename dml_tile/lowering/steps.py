"""What a lowering is: steps between buffers, and what they cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from dml_tile.descriptors import BufferTensorDesc, TensorDesc, TileOperatorDesc
from dml_tile.geometry.byte_walk import ByteWalk
from dml_tile.geometry.layout import ELEMENT_SIZES
from dml_tile.targets import Target
from dml_tile.tile_request import Request

Place: TypeAlias = Literal["input", "output"] | int
"""A buffer: the input, the output, or a scratch buffer by its number."""


@dataclass(frozen=True, slots=True)
class LoweringStep:
    """One tile, and the buffers that its tensors are bound to, each from its first byte on."""

    desc: TileOperatorDesc
    reads: Place
    writes: Place

    @property
    def bytes_read(self) -> int:
        """The bytes of its input's elements, each counted once."""
        return _bytes_of(self.desc.input_tensor)

    @property
    def bytes_written(self) -> int:
        """The bytes of its output's elements."""
        return _bytes_of(self.desc.output_tensor)

    @property
    def is_a_copy(self) -> bool:
        """Whether it repeats nothing."""
        return set(self.desc.repeats or ()) == {1}


@dataclass(frozen=True, slots=True)
class Lowering:
    """Steps that, done in order at the target, write what the original would write, and nothing else.

    ``scratch_sizes`` are those of the scratch buffers, in bytes. ``notes`` say what is to be known about it.
    """

    original: TileOperatorDesc | Request
    target: Target
    steps: tuple[LoweringStep, ...]
    scratch_sizes: tuple[int, ...]
    notes: tuple[str, ...]
    direct: ByteWalk
    """What the original alone would do."""
    is_original: bool = False
    """Whether the target takes the original as it is: then that is the only step."""

    @property
    def cost(self) -> float:
        """The bytes that all steps read and write, relative to what the original would."""
        moved = sum(step.bytes_read + step.bytes_written for step in self.steps)
        return moved / (self.direct.bytes_read + self.direct.bytes_written)


def _bytes_of(tensor: TensorDesc | None) -> int:
    buffer: BufferTensorDesc | None = tensor.desc if tensor else None
    assert buffer is not None, "a step has passed the check"
    return math.prod((buffer.sizes or ())[: buffer.dimension_count]) * ELEMENT_SIZES[buffer.data_type]
