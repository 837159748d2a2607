"""A lowering: steps between buffers, their descriptors and cost, and the rules for tiles without a lowering."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import mul
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from dml_tile.back_ends.dialects import Request
from dml_tile.descriptors.tile import BufferTensorDesc, TileOperatorDesc, described
from dml_tile.directml import pages
from dml_tile.directml.data_types import ELEMENT_SIZES, TensorDataType
from dml_tile.directml.enums import UINT_MAX, TensorFlags
from dml_tile.directml.targets import Target
from dml_tile.errors import DmlError
from dml_tile.findings import Basis, Rules, Violation
from dml_tile.geometry.axes import Dimension, TileInBytes, axes_in_units, indivisible_length, packing, unpacking
from dml_tile.geometry.layout import extent, lie_alike, packed_strides
from dml_tile.rules.descriptor import refusals_of
from dml_tile.simulation.target import Origin


class TensorMemory(NamedTuple):
    """The properties that do not depend on the data type: a tensor's size in bytes, flags and alignment."""

    total_in_bytes: int
    flags: TensorFlags | int = TensorFlags.NONE
    alignment: int = 0


class Task(NamedTuple):
    """A tile to lower. ``own`` is its data type, or None if DirectML has none for it.

    ``accepted`` is its descriptor if that passes as it is, ``notes`` say what a lowering drops of it. ``carriers`` are
    the types that may carry it.
    """

    original: TileOperatorDesc | Request
    data_type: str
    own: TensorDataType | None
    walk: TileInBytes
    input: TensorMemory
    output: TensorMemory
    accepted: TileOperatorDesc | None
    notes: tuple[str, ...] = ()
    carriers: tuple[TensorDataType, ...] = ()


class StepTensor(NamedTuple):
    """A step's tensor, in elements of its carrier; ``strides=None`` means packed."""

    name: str
    carrier: TensorDataType
    sizes: tuple[int, ...]
    strides: tuple[int, ...] | None
    total_in_bytes: int


LOWERING_RULES: Final = Rules[Any](basis=Basis.DOCUMENTED | Basis.INFERRED, hresult=None)
"""DirectML is not called where a lowering fails, so these rules have no HRESULT."""


@LOWERING_RULES.add("DML-LOWER-DataType", url=pages.TILE)
def carrier_exists(task: Task, target: Target) -> Iterator[Violation]:
    """At the feature level, Tile takes a data type that may carry the bits; floats may only where their
    reinterpretation is allowed.
    """
    if not task.carriers:
        yield Violation(
            "InputTensor.DataType",
            f"{target.label} takes floats only, which may not carry {task.data_type} here",
            "allow float reinterpretation, where nothing normalises NaNs or denormals",
        )


@LOWERING_RULES.add("DML-LOWER-elements", url=pages.TILE)
def elements_stay_whole(task: Task, target: Target) -> Iterator[Violation]:
    """The bytes move in whole elements of the smallest data type that may carry them: runs and strides are multiples of
    its size. A tile copies elements, so no chain of tiles moves half of one.
    """
    if not task.carriers:
        return
    carrier = min(task.carriers, key=ELEMENT_SIZES.__getitem__)
    size = ELEMENT_SIZES[carrier]
    length = indivisible_length(task.walk.axes, size)
    if length is not None:
        yield Violation(
            "InputTensor.DataType",
            f"{task.data_type} would travel as {carrier.name}, the smallest that may carry it at {target.label}; a "
            f"run or a stride of {length} bytes is no multiple of {size}",
            f"pad the tiled bytes to multiples of {size} bytes",
        )


@LOWERING_RULES.add("DML-LOWER-steps", url=pages.STRIDES)
def gaps_fit_a_tile(task: Task, target: Target) -> Iterator[Violation]:
    """The first tile of a chain reads the input's gaps, and the last one writes the output's: neither tensor's order
    and gaps take more dimensions than a tile has.
    """
    most = target.tile_support.dimension_counts[-1]
    sizes = sorted((ELEMENT_SIZES[carrier] for carrier in task.carriers), reverse=True)
    coarsest = (axes_in_units(task.walk.axes, size) for size in sizes)  # these take the fewest dimensions
    axes = next(filter(None, coarsest), ())
    for name, gaps in (("Input", packing(axes)), ("Output", unpacking(axes))):
        if len(gaps) > most:
            message = f"its order and gaps take {len(gaps)} dimensions; a tile at {target.label} has at most {most}"
            advice = "leave gaps between fewer dimensions, and keep their order"
            yield Violation(f"{name}Tensor.Strides", message, advice)


@LOWERING_RULES.add("DML-LOWER-limits", url=pages.BUFFER)
def limits_are_met(tensor: StepTensor, target: Target) -> Iterator[Violation]:
    """Counted in elements of the data type that carries the bits, each tensor has at most 2^32-1 elements, and its
    strides, its extent and its TotalTensorSizeInBytes are at most as large.
    """
    counted = {
        "Sizes": math.prod(tensor.sizes),
        "Strides": max(extent(tensor.sizes, tensor.strides), *(tensor.strides or (0,))),
        "TotalTensorSizeInBytes": tensor.total_in_bytes // ELEMENT_SIZES[tensor.carrier],
    }
    for name, count in counted.items():
        if count > UINT_MAX:
            yield Violation(
                f"{tensor.name}.{name}",
                f"{count} elements of {tensor.carrier.name}, which would carry the bits, are more than {UINT_MAX}",
            )


StepBuffer: TypeAlias = Literal["input", "output"] | int
"""The input, the output, or a scratch buffer by its number."""


@dataclass(frozen=True, slots=True)
class LoweringStep:
    """A tile, and the buffers that its tensors are bound to, from byte 0 on."""

    desc: TileOperatorDesc
    reads: StepBuffer
    writes: StepBuffer

    @property
    def bytes_read(self) -> int:
        """The bytes of the input's elements, each counted once."""
        return _bytes_of(described(self.desc)[0])

    @property
    def bytes_written(self) -> int:
        """The bytes of the output's elements."""
        return _bytes_of(described(self.desc)[1])

    @property
    def is_a_copy(self) -> bool:
        """True if every repeat is 1."""
        return set(self.desc.repeats or ()) == {1}


@dataclass(frozen=True, slots=True)
class Lowering:
    """Steps that, run in order at the target, write the original's bytes and no others.

    ``scratch_sizes`` are the sizes of the scratch buffers, in bytes. ``notes`` are sentences for the reader.
    """

    original: TileOperatorDesc | Request
    target: Target
    _steps: tuple[LoweringStep, ...]
    scratch_sizes: tuple[int, ...]
    notes: tuple[str, ...]
    original_bytes_read: int
    """The bytes of the original input's elements, each counted once."""
    original_bytes_written: int
    """The bytes of the original output's elements."""
    is_original: bool = False
    """True if the target accepts the original, then the only step."""
    _origin: Origin | None = field(default=None, compare=False, repr=False)

    @property
    def steps(self) -> tuple[LoweringStep, ...]:
        """The tiles, in the order in which they run. Raises TargetError in a test at another target."""
        if self._origin is not None:
            self._origin.require_test()
        return self._steps

    @property
    def data_type(self) -> TensorDataType | None:
        """The original's data type; None if DirectML lacks the type, such as complex numbers."""
        if isinstance(self.original, Request):
            return self.original.carrier
        return TensorDataType(described(self.original)[0].data_type)

    @property
    def cost(self) -> float:
        """The bytes that all steps read and write, relative to the original's."""
        moved = sum(step.bytes_read + step.bytes_written for step in self.steps)
        return moved / (self.original_bytes_read + self.original_bytes_written)


def with_dimensions_of(walk: TileInBytes, unit: int, tile: tuple[Dimension, ...], most: int) -> Sequence[Dimension]:
    """Return a tile of elements of ``unit`` bytes that does a whole walk in its own dimensions, if not too many.

    Else dimensions of size 1 are left out; if that is not enough, or elements are larger, the tile stays as it is.
    """
    if unit > walk.element_size:
        return tile
    parts = walk.element_size // unit
    in_units = [
        Dimension(size, repeat, source // unit, destination // unit)
        for size, repeat, source, destination in walk.dimensions
    ]
    *kept, last = in_units or [Dimension(1, 1, 0, 0)]  # which takes an element's units, if they lie side by side
    reads_on = last.source == parts or last.size == 1
    writes_on = last.destination == parts or last.size * last.repeat == 1
    if reads_on and writes_on:
        kept.append(Dimension(last.size * parts, last.repeat, 1, 1))
    else:
        kept += last, Dimension(parts, 1, 1, 1)
    squeezed = [dimension for dimension in kept if dimension.size * dimension.repeat > 1]
    return next(each for each in (kept, squeezed, tile) if len(each) <= most)


def step_desc(
    carrier: TensorDataType,
    dimensions: Sequence[Dimension],
    source: TensorMemory,
    destination: TensorMemory,
    target: Target,
) -> TileOperatorDesc:
    """Return a tile's descriptor, with leading 1s if the target requires them. Raises DmlError above the limits."""
    missing = target.tile_support.dimension_counts[0] - len(dimensions)
    dimensions = (*[Dimension(1, 1, 0, 0)] * missing, *dimensions)
    sizes, repeats, *strides = map(tuple, zip(*dimensions, strict=True))
    shapes = sizes, tuple(map(mul, sizes, repeats))
    memory = {"InputTensor": source, "OutputTensor": destination}
    fields: dict[str, object] = {"Repeats": repeats}
    for (name, held), shape, steps in zip(memory.items(), shapes, strides, strict=True):
        is_packed = lie_alike(shape, steps, packed_strides(shape))  # a dimension of size 1 has any stride
        kept = tuple(stride if size > 1 else 0 for size, stride in zip(shape, steps, strict=True))
        tensor = StepTensor(name, carrier, shape, None if is_packed else kept, held.total_in_bytes)
        if findings := tuple(limits_are_met.findings(tensor, target)):
            raise DmlError(findings)
        fields[name] = {
            "DataType": carrier,
            "Flags": held.flags,
            "Sizes": shape,
            "Strides": tensor.strides,
            "TotalTensorSizeInBytes": held.total_in_bytes,
            "GuaranteedBaseOffsetAlignment": held.alignment,
        }
    desc = TileOperatorDesc.model_validate(fields)
    if refused := refusals_of(desc, target):
        raise DmlError(refused)
    return desc


def _bytes_of(buffer: BufferTensorDesc) -> int:
    return math.prod((buffer.sizes or ())[: buffer.dimension_count]) * ELEMENT_SIZES[buffer.data_type]
