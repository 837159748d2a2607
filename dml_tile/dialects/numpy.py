"""numpy.tile.

Page: https://numpy.org/doc/stable/reference/generated/numpy.tile.html
"""

from __future__ import annotations

from collections.abc import Sequence

from dml_tile.errors import DialectError
from dml_tile.tile_request import Integers, Request, require_fitting, shape_of, vector


def tile(data_type: str, shape: Sequence[int], repeats: Integers) -> Request:
    """numpy.tile: the shorter of shape and repeats gets leading 1s. The data type is any.

    Raises DialectError for a negative repeat, repeats that are not a 1-D array of an integer type, and an output size
    past int64.
    """
    dialect = "numpy.tile"
    sizes = shape_of(dialect, shape)
    counts = vector(dialect, "reps", repeats)
    for i, count in enumerate(counts):
        if count < 0:
            raise DialectError(dialect, f"reps[{i}]", f"is {count}; negative values are not allowed")
    rank = max(len(sizes), len(counts))
    shape, repeats = (1,) * (rank - len(sizes)) + sizes, (1,) * (rank - len(counts)) + counts
    return require_fitting(Request(dialect, data_type, shape, repeats))
