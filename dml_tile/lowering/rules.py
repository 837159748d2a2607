"""Rules for lowering: a tile that breaks one has no chain of tiles at the target that writes the same bytes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from dml_tile.directml.data_types import ELEMENT_SIZES, TensorDataType
from dml_tile.directml.enums import UINT_MAX
from dml_tile.directml.pages import BUFFER_PAGE, STRIDES_PAGE, TILE_PAGE
from dml_tile.directml.targets import Target
from dml_tile.findings import Basis, Rule, Violation, rule
from dml_tile.geometry.axes import Axis, axes_in_units, indivisible_length, packing, unpacking
from dml_tile.geometry.layout import extent
from dml_tile.lowering.search import MAX_STEPS


@dataclass(frozen=True, slots=True)
class Movement:
    """A tile to lower: coalesced axes in bytes, the name of its data type, and the types that may carry it."""

    data_type: str
    axes: tuple[Axis, ...]
    carriers: tuple[TensorDataType, ...]

    @property
    def coarsest_axes(self) -> tuple[Axis, ...]:
        """The axes in the largest elements that they do not break up: no others take fewer dimensions."""
        sizes = sorted((ELEMENT_SIZES[carrier] for carrier in self.carriers), reverse=True)
        return next(axes for size in sizes if (axes := axes_in_units(self.axes, size)) is not None)


@dataclass(frozen=True, slots=True)
class Steps:
    """The number of tiles of the shortest chain found for a movement; None if none has at most ``allowed``."""

    movement: Movement
    shortest: int | None
    allowed: int


@dataclass(frozen=True, slots=True)
class StepTensor:
    """A step's tensor, in elements of its carrier; ``strides=None`` means packed."""

    name: str
    carrier: TensorDataType
    sizes: tuple[int, ...]
    strides: tuple[int, ...] | None
    total_in_bytes: int


_lowering_rule = partial(rule, basis=Basis.DOCUMENTED | Basis.INFERRED, hresult=None)
"""Makes a rule of what no lowering can do; DirectML is not called, so it returns no HRESULT."""


@_lowering_rule(
    "DML-LOWER-DataType",
    url=TILE_PAGE,
    says="At the feature level, Tile takes a data type that may carry the bits; floats may only where their "
    "reinterpretation is allowed.",
)
def carrier_exists(movement: Movement, target: Target) -> Iterator[Violation]:
    if not movement.carriers:
        yield Violation(
            "InputTensor.DataType",
            f"{target.label} takes floats only, which may not carry {movement.data_type} here",
            "allow float reinterpretation, where nothing normalises NaNs or denormals",
        )


@_lowering_rule(
    "DML-LOWER-elements",
    url=TILE_PAGE,
    says="The bytes move in whole elements of the smallest data type that may carry them: runs and strides are "
    "multiples of its size. A tile copies elements, so no chain of tiles moves half of one.",
)
def elements_stay_whole(movement: Movement, target: Target) -> Iterator[Violation]:
    if not movement.carriers:
        return
    carrier = min(movement.carriers, key=ELEMENT_SIZES.__getitem__)
    size = ELEMENT_SIZES[carrier]
    length = indivisible_length(movement.axes, size)
    if length is not None:
        yield Violation(
            "InputTensor.DataType",
            f"{movement.data_type} would travel as {carrier.name}, the smallest that may carry it at {target.label}; a "
            f"run or a stride of {length} bytes is no multiple of {size}",
            f"pad what is tiled to multiples of {size} bytes",
        )


@_lowering_rule(
    "DML-LOWER-steps",
    url=STRIDES_PAGE,
    says=f"A chain has at most as many tiles as --max-steps allows, by default {MAX_STEPS}. Strides rule out no chain: "
    "a tile of two elements copies the first one and any other, so one tile for each element always does it.",
)
def steps_are_few_enough(steps: Steps, target: Target) -> Iterator[Violation]:
    if steps.shortest is not None and steps.shortest <= steps.allowed:
        return
    takes = f"more than {steps.allowed}" if steps.shortest is None else f"{steps.shortest}"
    most = target.tile_support.dimension_counts[-1]
    gaps = "leave fewer gaps between its dimensions, and keep their order"
    axes = steps.movement.coarsest_axes
    if len(unpacking(axes)) > most:
        field, advice = "OutputTensor.Strides", gaps
    elif len(packing(axes)) > most:
        field, advice = "InputTensor.Strides", gaps
    else:
        field, advice = "Repeats", "repeat fewer dimensions"
    yield Violation(
        field,
        f"the shortest chain found at {target.label} takes {takes} steps; --max-steps is {steps.allowed}",
        f"allow more steps, or {advice}",
    )


@_lowering_rule(
    "DML-LOWER-limits",
    url=BUFFER_PAGE,
    says="Counted in elements of the data type that carries the bits, each tensor has at most 2^32-1 elements, and its "
    "strides, its extent and its TotalTensorSizeInBytes are at most as large.",
)
def limits_are_met(tensor: StepTensor, target: Target) -> Iterator[Violation]:
    counted = {
        "Sizes": math.prod(tensor.sizes),
        "Strides": max(extent(tensor.sizes, tensor.strides), *(tensor.strides or (0,))),
        "TotalTensorSizeInBytes": tensor.total_in_bytes // ELEMENT_SIZES[tensor.carrier],
    }
    for field, count in counted.items():
        if count > UINT_MAX:
            yield Violation(
                f"{tensor.name}.{field}",
                f"{count} elements of {tensor.carrier.name}, which would carry the bits, are more than {UINT_MAX}",
            )


MOVEMENT_RULES: Final[tuple[Rule[Movement], ...]] = (carrier_exists, elements_stay_whole)
LOWERING_RULES: Final[tuple[Rule[Any], ...]] = (*MOVEMENT_RULES, steps_are_few_enough, limits_are_met)
