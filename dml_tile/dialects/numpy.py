"""numpy.tile.

Page: https://numpy.org/doc/stable/reference/generated/numpy.tile.html
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dml_tile.dialects.request import (
    Dialect,
    Integers,
    Request,
    Specification,
    promoted,
    require_fitting,
    shape_of,
    vector,
)


def tile(data_type: str, shape: Sequence[int], repeats: Integers) -> Request:
    """Return the request of a numpy.tile: the shorter of shape and repeats gets leading 1s; any data type is accepted.

    Raises DialectError for a negative repeat, repeats that are not a 1-D array of an integer type, and an output size
    that exceeds an int64.
    """
    sizes = shape_of(TILE, shape)
    counts = vector(TILE, "reps", repeats)
    for i, count in enumerate(counts):
        if count < 0:
            raise TILE.error(f"reps[{i}]", f"is {count}; negative values are not allowed")
    return require_fitting(Request(TILE, data_type, *promoted(sizes, counts)))


TILE: Final = Dialect("numpy.tile", Specification.NUMPY, None, tile, arguments=("reps",))
