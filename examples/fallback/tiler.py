"""Tiles INT64 labels with DirectML, also with one that takes no INT64, or floats only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dml_tile import Device, TileOperatorDesc, check

Labels = NDArray[np.int64]
Way = Literal["INT64", "INT32", "CPU"]


def tile_labels(device: Device, labels: Labels, repeats: Sequence[int]) -> tuple[Labels, Way]:
    """The tiled labels, and the way they took: as they are, as pairs of INT32, or on the CPU.

    The labels have at least one dimension, and there is a repeat for each.
    """
    labels = np.array(labels, np.int64, order="C")
    ways: tuple[tuple[Way, NDArray[Any]], ...] = (
        ("INT64", labels),
        ("INT32", labels.view(np.int32)),  # the same bytes; as floats, a GPU might flush some to zero
    )
    for way, values in ways:
        desc = TileOperatorDesc.from_input(data_type=way, sizes=values.shape, repeats=repeats)
        if check(desc, device.target):
            continue
        output = np.empty(np.multiply(values.shape, repeats), values.dtype)
        device.execute(desc, values, output)
        return output.view(np.int64), way
    return np.tile(labels, repeats), "CPU"
