"""FLOAT16 numbers as DxDispatch makes them: rounded toward zero from a FLOAT32, at each step of a sequence too."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_SIGN, _EXPONENT, _FRACTION = 0x80000000, 0x7F800000, 0x007FFFFF
_BIAS: Final = 127 - 15
_INFINITY: Final = 31


def round_to_halves(singles: NDArray[np.float32]) -> NDArray[np.float16]:
    """Round FLOAT32 numbers to FLOAT16 toward zero; from 65536 on they are infinite, and a NaN keeps its upper bits."""
    bits = singles.view(np.uint32)
    sign = (bits & _SIGN) >> 16
    exponent = ((bits & _EXPONENT) >> 23).astype(np.int32) - _BIAS
    fraction = bits & _FRACTION
    normal = (np.clip(exponent, 0, _INFINITY).astype(np.uint32) << 10) + (fraction >> 13)
    shift = np.clip(14 - exponent, 14, 31).astype(np.uint32)
    subnormal = (fraction | 0x00800000) >> shift
    infinite = np.where(np.isnan(singles), 0x7C00 + (fraction >> 13), 0x7C00).astype(np.uint32)
    magnitude = np.where(exponent <= 0, subnormal, np.where(exponent >= _INFINITY, infinite, normal))
    return (sign + magnitude).astype(np.uint16).view(np.float16)


def fill_halves(steps: NDArray[Any], start: NDArray[Any], delta: NDArray[Any]) -> None:
    """Fill an array of FLOAT16 with ``start``, ``start + delta`` and so on, each step rounded.

    A step depends on the one before alone, of which there are 65536: after as many at most, the steps repeat.
    """
    every = np.arange(2**16, dtype=np.uint16).view(np.float16).astype(np.float32)
    with np.errstate(all="ignore"):
        following = round_to_halves(every + np.float32(delta[0]))
    after = following.view(np.uint16).tolist()
    places: dict[int, int] = {}
    path: list[int] = []
    step = int(start.view(np.uint16)[0])
    while step not in places and len(path) < len(steps):
        places[step] = len(path)
        path.append(step)
        step = after[step]
    bits = steps.view(np.uint16)
    bits[: len(path)] = path
    if len(path) < len(steps):
        cycle = np.array(path[places[step] :], np.uint16)
        rest = bits[len(path) :]
        whole = len(rest) // len(cycle) * len(cycle)
        rest[:whole].reshape(-1, len(cycle))[:] = cycle
        rest[whole:] = cycle[: len(rest) - whole]
