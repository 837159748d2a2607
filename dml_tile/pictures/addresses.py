"""The elements at the lowest addresses of a strided tensor, however large it is.

Offsets are in elements. Strides may be 0 and may overlap, so several elements may have one offset.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

Index: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Addresses:
    """The lowest offsets of a tensor, with the number of elements at each, and their indices."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    _counts: tuple[Mapping[int, int], ...]
    """For each dimension, what it and those inside it reach: offsets, with the number of elements at each."""

    @property
    def counts(self) -> Mapping[int, int]:
        """The lowest offsets, in their order, with the number of elements at each."""
        return self._counts[0]

    def indices(self, offset: int) -> Iterator[Index]:
        """The indices of the elements at one of these offsets, in row-major order, one by one."""
        return self._indices(0, offset)

    def _indices(self, dimension: int, offset: int) -> Iterator[Index]:
        if dimension == len(self.sizes):
            yield ()
            return
        size, stride = self.sizes[dimension], self.strides[dimension]
        inside = self._counts[dimension + 1]
        for i in range(size if stride == 0 else min(size, offset // stride + 1)):
            if offset - i * stride in inside:
                for index in self._indices(dimension + 1, offset - i * stride):
                    yield i, *index


def lowest_addresses(sizes: Sequence[int], strides: Sequence[int], limit: int) -> Addresses:
    """The ``limit`` lowest offsets of a tensor, or all if it has fewer; no size may be 0."""
    counts: list[dict[int, int]] = [{0: 1}]
    for size, stride in zip(reversed(sizes), reversed(strides), strict=True):
        counts.append(_lowest(counts[-1], size, stride, limit))
    return Addresses(tuple(sizes), tuple(strides), tuple(reversed(counts)))


def _lowest(inside: Mapping[int, int], size: int, stride: int, limit: int) -> dict[int, int]:
    """The lowest sums of what is reached inside a dimension and of its own steps.

    Of both, no more than ``limit`` are needed: a sum of any other has as many sums below it.
    """
    if stride == 0:
        return {offset: count * size for offset, count in inside.items()}
    sums: dict[int, int] = {}
    for start in range(0, min(size, limit) * stride, stride):
        for offset, count in inside.items():
            sums[start + offset] = sums.get(start + offset, 0) + count
    return dict(sorted(sums.items())[:limit])
