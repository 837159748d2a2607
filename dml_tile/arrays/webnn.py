"""WebNN's tile on NumPy arrays, equal to the specification, and the limits of tile that a context tells.

Pages: https://www.w3.org/TR/webnn/#api-mlgraphbuilder-tile and https://www.w3.org/TR/webnn/#api-mlcontext-opsupportlimits
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import BaseModel, ConfigDict, Field

from dml_tile.arrays.numpy import tiled
from dml_tile.back_ends.chromium import DATA_TYPES, DataType
from dml_tile.back_ends.table import BACK_ENDS
from dml_tile.dialects import webnn
from dml_tile.errors import DialectError
from dml_tile.rules.dialect import CARRIERS
from dml_tile.simulation import resolve
from dml_tile.targets import TargetLike
from dml_tile.tile_request import Integers


def tile(x: ArrayLike, repetitions: Integers) -> NDArray[Any]:
    """tile(input, repetitions), with one repetition of at least 1 for each dimension.

    Raises DialectError where a browser throws a TypeError.
    """
    array = np.asarray(x)
    return tiled(array, webnn.tile(array.dtype.name, array.shape, repetitions))


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
    """MLOpSupportLimits, of which tile is all there is here; the output of `dml-tile levels --format webnn`."""

    tile: SingleInputSupportLimits


def op_support_limits(target: TargetLike | None = None) -> dict[str, Any]:
    """MLContext.opSupportLimits() of tile: ``{"tile": {"input": limits, "output": limits}}``.

    The limits are ``{"dataTypes": […], "rankRange": {"min": …, "max": …}}``, of what works over DirectML at the target:
    the data types of WebNN that Chromium grants and Tile's documented row has, and that row's ranks. Chromium itself
    grants 64-bit integers, which Tile has from 4_1, at 4_0 too, and rank 0, which DirectML refuses. None means the
    simulated target, else 6_4.

    Raises DialectError below 4_0, where Chromium makes no context of DirectML, ValueError for an unknown target.
    """
    target = resolve(target)
    needed = BACK_ENDS["chromium"].minimum_level
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
