"""A lowering: steps between buffers, and their cost."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

from dml_tile.data_types import ELEMENT_SIZES
from dml_tile.descriptors import BufferTensorDesc, TensorDesc, TileOperatorDesc
from dml_tile.targets import Target
from dml_tile.tile_request import Request

StepBuffer: TypeAlias = Literal["input", "output"] | int
"""The input, the output, or a scratch buffer by its number."""


@dataclass(frozen=True, slots=True)
class LoweringStep:
    """One tile, and the buffers that its tensors are bound to, from byte 0 on."""

    desc: TileOperatorDesc
    reads: StepBuffer
    writes: StepBuffer

    @property
    def bytes_read(self) -> int:
        """The bytes of the input's elements, each counted once."""
        return _bytes_of(self.desc.input_tensor)

    @property
    def bytes_written(self) -> int:
        """The bytes of the output's elements."""
        return _bytes_of(self.desc.output_tensor)

    @property
    def is_a_copy(self) -> bool:
        """True if every repeat is 1."""
        return set(self.desc.repeats or ()) == {1}


@dataclass(frozen=True, slots=True)
class Lowering:
    """Steps that, run in order at the target, write the bytes that the original would write, and no others.

    ``scratch_sizes`` are the sizes of the scratch buffers, in bytes. ``notes`` are sentences for the reader.
    """

    original: TileOperatorDesc | Request
    target: Target
    steps: tuple[LoweringStep, ...]
    scratch_sizes: tuple[int, ...]
    notes: tuple[str, ...]
    original_bytes_read: int
    """The bytes of the original input's elements, each counted once."""
    original_bytes_written: int
    """The bytes of the original output's elements."""
    is_original: bool = False
    """True if the target accepts the original, which is then the only step."""

    @property
    def cost(self) -> float:
        """The bytes that all steps read and write, relative to those of the original."""
        moved = sum(step.bytes_read + step.bytes_written for step in self.steps)
        return moved / (self.original_bytes_read + self.original_bytes_written)


def _bytes_of(tensor: TensorDesc | None) -> int:
    buffer: BufferTensorDesc | None = tensor.desc if tensor else None
    assert buffer is not None, "a step has passed the check"
    return math.prod((buffer.sizes or ())[: buffer.dimension_count]) * ELEMENT_SIZES[buffer.data_type]
