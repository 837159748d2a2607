"""Every target of pytest.ini gets the same labels, each in the best way that it has."""

from __future__ import annotations

import numpy as np
import pytest
from tiler import tile_labels

from dml_tile import Device, TileOperatorDesc
from dml_tile.testing import assert_rejects

WAYS = {"windows-10-2004": "CPU", "windows-11-21h2": "INT32", "6_4": "INT64"}


def test_labels_are_tiled(dml_device: Device) -> None:
    labels = np.array([[0, 1, -1], [2**40, 2**63 - 1, -(2**63)]])
    tiled, way = tile_labels(dml_device, labels, (2, 3))
    assert way == WAYS[dml_device.target.name]
    np.testing.assert_array_equal(tiled, np.tile(labels, (2, 3)))


@pytest.mark.dml(maximum="windows-11-21h2")
def test_int64_needs_a_higher_level() -> None:
    desc = TileOperatorDesc.from_input(data_type="INT64", sizes=[2, 3], repeats=[2, 3])
    assert_rejects(desc, rule="DML-TILE-DataType-level")
