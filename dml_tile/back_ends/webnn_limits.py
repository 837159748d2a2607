"""The limits of WebNN's tile on DirectML, as a context reports them.

Page: https://www.w3.org/TR/webnn/#api-mlcontext-opsupportlimits
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from dml_tile.back_ends.chromium import CHROMIUM, DATA_TYPES, DataType
from dml_tile.directml.data_types import CARRIERS
from dml_tile.directml.targets import TargetLike
from dml_tile.errors import DialectError
from dml_tile.simulation.target import resolve


class _Dictionary(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RankRange(_Dictionary):
    """MLRankRange: both ends are included."""

    min: int
    max: int


class TensorLimits(_Dictionary):
    """MLTensorLimits."""

    data_types: tuple[DataType, ...] = Field(serialization_alias="dataTypes")
    rank_range: RankRange = Field(serialization_alias="rankRange")


class SingleInputSupportLimits(_Dictionary):
    """MLSingleInputSupportLimits."""

    input: TensorLimits
    output: TensorLimits


class OpSupportLimits(_Dictionary):
    """MLOpSupportLimits, of which only tile is given; the output of `dml-tile levels --format webnn`."""

    tile: SingleInputSupportLimits


def op_support_limits(target: TargetLike | None = None) -> dict[str, Any]:
    """Return MLContext.opSupportLimits() of tile: ``{"tile": {"input": limits, "output": limits}}``.

    The limits are ``{"dataTypes": […], "rankRange": {"min": …, "max": …}}``: the data types that both Chromium and
    Tile's documented row at the target support, and that row's ranks. Chromium itself grants 64-bit integers from 4_0
    on, although Tile supports them from 4_1, and rank 0, which DirectML refuses. None means the current target.

    Raises DialectError below 4_0, where Chromium creates no context on DirectML, and ValueError for an unknown target.
    """
    target = resolve(target)
    needed = CHROMIUM.minimum_level
    if target.feature_level < needed:
        message = f"NotSupportedError: WebNN over DirectML needs {needed.name}; the target is {target.label}"
        raise DialectError("WebNN", "context", message)
    row = target.tile_support
    types = tuple(
        name for name in DATA_TYPES if CARRIERS[name] in row.data_types and target.supports_data_type(CARRIERS[name])
    )
    ranks = RankRange(min=row.dimension_counts[0], max=row.dimension_counts[-1])
    limits = TensorLimits(data_types=types, rank_range=ranks)
    whole = OpSupportLimits(tile=SingleInputSupportLimits(input=limits, output=limits))
    return whole.model_dump(mode="json", by_alias=True)
