"""Windows that move over a tensor: of poolings, FOLD, UNFOLD and sums of neighbours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from dml_tile.execution.call import Array, KernelCall, Lengths


class Windows:
    """The windows of an operator over the last dimensions of a tensor of a shape; ``out`` has their numbers.

    ``over`` and ``all_of`` put ``fill`` where a window is beyond the tensor.
    """

    def __init__(self, c: KernelCall, shape: Lengths, out: Lengths, size: Lengths, step: Lengths, **more: Any) -> None:
        self._call = c
        self.shape, self.out, self.size, self.step = shape, out, tuple(size), step
        count = len(self.size)
        self.dilation: Sequence[int] = more.get("dilation") or (1,) * count
        self.start: Sequence[int] = more["start"]
        self.axes = tuple(range(-count, 0))
        walked = zip(self.out, self.step, self.size, self.dilation, strict=True)
        reach = [(o - 1) * s + (w - 1) * d + 1 for o, s, w, d in walked]
        padded = zip(reach, shape[-count:], self.start, strict=True)
        self.padded = (*shape[:-count], *(max(end, length + start) for end, length, start in padded))
        steps = prod((*self.counts, *self.size))
        c.require(memory=prod(self.padded) * 8, steps=steps, loops=prod(self.size))

    @property
    def counts(self) -> Lengths:
        """The shape of what each window gives one element of."""
        return *self.shape[: -len(self.size)], *self.out

    def over(self, x: Array, fill: Any = 0) -> Array:
        """Return a view {..., *out, *size} of the elements under each window."""
        count = len(self.size)
        padded = x
        if self.padded != x.shape:
            padded = np.full(self.padded, fill, x.dtype)
            ends = zip(self.start, x.shape[-count:], strict=True)
            inner_part: Any = (..., *(slice(start, start + length) for start, length in ends))
            padded[inner_part] = x
        outer, inner = padded.strides[:-count], padded.strides[-count:]
        steps = (a * s for a, s in zip(inner, self.step, strict=True))
        within = (a * d for a, d in zip(inner, self.dilation, strict=True))
        return as_strided(padded, (*self.counts, *self.size), (*outer, *steps, *within), writeable=False)

    def places(self) -> Array:
        """Return the elements' places in memory under each window, -1 beyond the tensor, for an array to index with."""
        self._call.require(memory=prod((*self.counts, *self.size)) * 8)
        return self.over(np.arange(prod(self.shape)).reshape(self.shape), -1)

    def one_by_one(self, x: Array, fill: Any = 0, *, backward: bool = False) -> Iterator[Array]:
        """Yield, for each place within a window, the elements there of all windows: in the order of memory.

        ``backward``, the last comes first, so that an element meets its windows in their order.
        """
        view, places = self.over(x, fill), np.ndindex(*self.size)
        return (view[(..., *place)] for place in (reversed([*places]) if backward else places))


def added_back(shape: Lengths, places: Array, parts: Array) -> Array:
    """Return zeros of a shape, to which parts are added at their places; -1 is beyond."""
    found = np.zeros(prod(shape) + 1, parts.dtype)
    np.add.at(found, places, parts)
    return found[:-1].reshape(shape)
