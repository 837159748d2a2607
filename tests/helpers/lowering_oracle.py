"""A tile's lowering by exhaustive search: from the bytes that it writes back to those that it reads."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np
from numpy.typing import NDArray

from dml_tile.geometry.axes import Axis

Addresses = NDArray[np.int64]


def fewest_steps(axes: tuple[Axis, ...], most: int) -> tuple[int, int] | None:
    """Returns how many tiles of at most ``most`` dimensions do it, and their packed scratch memory; or None.

    Each way is tried to see what is written as sizes and repeats; what a step reads is packed, but for the first.
    """
    read, written = np.zeros(1, np.int64), np.zeros(1, np.int64)
    for axis in axes:
        read = np.add.outer(read, axis.source * np.arange(axis.length)).ravel()
        written = np.add.outer(written, axis.destination * np.arange(axis.length)).ravel()
    wanted = {read.tobytes(): 0}
    seen: set[bytes] = set()
    for steps in range(1, 12):
        least: dict[bytes, int] = {}
        finished: list[int] = []
        for contents, scratch in wanted.items():
            needed = np.frombuffer(contents, np.int64)
            places = written if steps == 1 else np.arange(len(needed))
            for source in _sources(needed, places, most):
                if _is_regular(source) and source.flat[0] == 0:
                    finished.append(scratch)
                key = source.tobytes()
                if key not in seen:
                    least[key] = min(least.get(key, scratch + source.size), scratch + source.size)
        if finished:
            return steps, min(finished)
        seen |= least.keys()
        wanted = least
    return None


def _sources(needed: Addresses, places: Addresses, most: int) -> Iterator[Addresses]:
    """All that one tile could read, in its dimensions, to write ``needed`` at these places."""
    for sizes, repeats in _factorings(len(needed), most):
        if not _is_regular(places.reshape(np.multiply(sizes, repeats))):
            continue
        split = needed.reshape([factor for pair in zip(repeats, sizes, strict=True) for factor in pair])
        first = split[tuple(slice(None) if i % 2 else slice(1) for i in range(2 * len(sizes)))]
        if (split == first).all():
            yield first.reshape(sizes)


def _is_regular(addresses: Addresses) -> bool:
    """Tells whether each dimension has a stride."""
    return all(
        np.unique(np.diff(addresses, axis=i)).size <= 1 and (np.diff(addresses, axis=i) >= 0).all()
        for i in range(addresses.ndim)
    )


@cache
def _factorings(count: int, dimensions: int) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """All sizes and repeats of exactly so many dimensions, some of size 1, with ``count`` elements."""
    if dimensions == 0:
        return [((), ())] if count == 1 else []
    return [
        ((size, *sizes), (repeat, *repeats))
        for size in range(1, count + 1)
        if count % size == 0
        for repeat in range(1, count // size + 1)
        if count // size % repeat == 0
        for sizes, repeats in _factorings(count // size // repeat, dimensions - 1)
    ]
