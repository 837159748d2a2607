"""Elements that are moved, chosen or filled in, and not changed.

Pages: the operators' own. What they leave open is said where it is decided.
"""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np

from dml_tile.execution.call import Array, FirstRows, KernelCall, Lengths, OperatorKernels, saturated, scalar_of


def positions(shape: Lengths, axes: Lengths) -> Array:
    """Return the index of each element within the dimensions ``axes``, in their order in memory; it broadcasts."""
    lengths = [size if i in {axis % len(shape) for axis in axes} else 1 for i, size in enumerate(shape)]
    return np.arange(prod(lengths)).reshape(lengths)


def slice_(c: KernelCall) -> Array:
    ends = zip(c.Offsets, c.Sizes, c.Strides, strict=True)
    return c.x[tuple(slice(start, start + (size - 1) * step + 1, step) for start, size, step in ends)]


def window_index(c: KernelCall, sizes: Lengths) -> tuple[Array, ...]:
    """Return the index of the elements of SLICE1 and SLICE_GRAD; a negative stride begins at its window's end."""
    windows = zip(c.InputWindowOffsets, c.InputWindowSizes, c.InputWindowStrides, sizes, strict=True)
    return np.ix_(
        *(start + (window - 1 if step < 0 else 0) + step * np.arange(size) for start, window, step, size in windows)
    )


def slice_grad(c: KernelCall) -> Array:
    gradient, found = c.raw["InputGradientTensor"], np.zeros(c.out.shape, c.out.dtype)
    found[window_index(c, gradient.shape)] = gradient
    return found


def split(c: KernelCall) -> tuple[list[Array]]:
    outputs: Any = c.outputs["OutputTensors"]
    ends = np.cumsum([output.shape[c.Axis] for output in outputs])
    return (np.split(c.x, ends[:-1], c.Axis),)


# indices


def gather(c: KernelCall) -> Array:
    """Return slices of the input along Axis. Batches of indices, which no page mentions, take from their own part."""
    x, given, count = c.x, c.raw["IndicesTensor"], c.IndexDimensions
    indices = c.indices("IndicesTensor", x.shape[c.Axis])
    batch, shape = given.shape[: given.ndim - count], given.shape[given.ndim - count :]
    if prod(batch) == 1:
        return np.take(x, indices.reshape(shape), c.Axis)
    c.require(loops=prod(batch))
    lead = next(i for i, size in enumerate(x.shape) if size > 1)
    first = lead + sum(size > 1 for size in batch)
    parts = zip(x.reshape(-1, *x.shape[first:]), indices.reshape(-1, *shape), strict=True)
    return np.stack([np.take(part, index, c.Axis - first) for part, index in parts])


def along(c: KernelCall, x: Array) -> tuple[Array, ...]:
    """Return the index of each element of IndicesTensor, which counts along Axis."""
    indices = c.indices("IndicesTensor", x.shape[c.Axis])
    grid = np.ogrid[tuple(map(slice, indices.shape))]
    return (*grid[: c.Axis], indices, *grid[c.Axis + 1 :])


def scatter(c: KernelCall) -> Array:
    found = c.x.copy()
    found[along(c, found)] = c.raw["UpdatesTensor"]
    return found


def of_last_dimensions(tensor: Array, count: int) -> Array:
    return tensor.reshape(tensor.shape[tensor.ndim - count :])


def nd_index(c: KernelCall, sizes: Lengths) -> tuple[Array, ...]:
    """Return the index of GATHER_ND and SCATTER_ND into the last InputDimensionCount dimensions."""
    batches, count = c.get("BatchDimensionCount") or 0, c.raw["IndicesTensor"].shape[-1]
    indices = c.indices("IndicesTensor", np.array(sizes[batches : batches + count]))
    indices = of_last_dimensions(indices, c.IndicesDimensionCount)
    grid = np.ogrid[tuple(map(slice, indices.shape[:batches]))] if batches else ()
    lead = (each.reshape(*each.shape, *[1] * (indices.ndim - 1 - batches)) for each in grid)
    return *lead, *np.moveaxis(indices, -1, 0)


def gather_nd(c: KernelCall) -> Array:
    x = of_last_dimensions(c.x, c.InputDimensionCount)
    return x[nd_index(c, x.shape)]


def scatter_nd(c: KernelCall) -> Array:
    found = c.x.copy()
    part = of_last_dimensions(found, c.InputDimensionCount)
    index = nd_index(c, part.shape)
    part[index] = c.raw["UpdatesTensor"].reshape(part[index].shape)
    return found


def one_hot(c: KernelCall) -> Array:
    """Return the second value where the index is, else the first; an index out of range is nowhere."""
    off, on = c.raw["ValuesTensor"].ravel()[:2]
    size, indices = c.out.shape[c.Axis], c.raw["IndicesTensor"].astype(np.int64)
    return np.where(positions(c.out.shape, (c.Axis,)) == np.where(indices < 0, indices + size, indices), on, off)


def reverse_subsequences(c: KernelCall) -> Array:
    size, at = c.x.shape[c.Axis], positions(c.x.shape, (c.Axis,))
    lengths = np.minimum(c.raw["SequenceLengthsTensor"].astype(np.int64), size)
    return np.take_along_axis(c.x, np.where(at < lengths, lengths - 1 - at, at), c.Axis)


def nonzero_coordinates(c: KernelCall) -> tuple[Array, FirstRows]:
    """Return the number of elements other than 0, and a row of coordinates for each; further rows are not written."""
    output: Any = c.outputs["OutputCoordinatesTensor"]
    rows = np.argwhere(of_last_dimensions(c.x, output.shape[-1]) != 0)
    return np.array(len(rows), np.uint32), FirstRows(rows.reshape(*output.shape[:-2], *rows.shape))


# padding and filling


def before(padding: int) -> int:
    """Return a UINT of padding as 32-bit sums take it: 2^32 - 3 crops three elements."""
    return padding - 2**32 if padding >= 2**31 else padding


def reflected(at: Array, size: int) -> Array:
    return np.abs((at + size - 1) % (2 * size - 2) - (size - 1)) if size > 1 else at * 0


def symmetric(at: Array, size: int) -> Array:
    at = at % (2 * size)
    return np.where(at < size, at, 2 * size - 1 - at)


def clipped(at: Array, size: int) -> Array:
    return np.clip(at, 0, size - 1)


MODES: Final = (clipped, clipped, reflected, symmetric, np.mod)
"""By DML_PADDING_MODE, the element that is read at a place outside: CONSTANT writes PaddingValue over it."""


def padding(c: KernelCall) -> Array:
    x = c.x
    places = [np.arange(size) - before(start) for start, size in zip(c.StartPadding, c.out.shape, strict=True)]
    found = x[np.ix_(*(clipped(MODES[c.PaddingMode](at, n), n) for at, n in zip(places, x.shape, strict=True)))]
    if c.PaddingMode == 0:
        for axis, (at, size) in enumerate(zip(places, x.shape, strict=True)):
            np.moveaxis(found, axis, 0)[(at < 0) | (at >= size)] = scalar_of(c.PaddingValue, x.dtype)
    return found


def fill_sequence(c: KernelCall) -> Array:
    """Return ValueStart and further steps of ValueDelta; integers wrap."""
    start, step = (scalar_of(value, c.out.dtype) for value in (c.ValueStart, c.ValueDelta))
    if c.out.dtype.kind == "f":
        return start.astype(float) + np.arange(c.out.size) * step.astype(float)
    steps: Array = np.arange(c.out.size, dtype=np.uint64).astype(c.out.dtype)
    return steps * step + start


def diagonal_matrix(c: KernelCall) -> Array:
    """Return Value on the diagonals from Offset or DiagonalFillBegin on; the input, or zeros, elsewhere."""
    begin = c.get("DiagonalFillBegin") if c.get("Offset") is None else c.Offset
    end = c.get("DiagonalFillEnd") if c.get("Offset") is None else c.Offset + 1
    diagonal = np.arange(c.out.shape[-1]) - np.arange(c.out.shape[-2])[:, None]
    filled = (end >= begin) ^ (diagonal >= begin) ^ (diagonal < end)
    value, given = c.Value, c.raw.get("InputTensor")
    if isinstance(value, float) and c.out.dtype.kind in "iu":  # measured: the low bits of an integer
        value = saturated(np.array(value), np.dtype(np.int64)).astype(c.out.dtype)[()]
    return np.where(
        filled, scalar_of(value, c.out.dtype), np.zeros(c.out.shape, c.out.dtype) if given is None else given
    )


# blocks


def block_shape(c: KernelCall, wide: Lengths) -> tuple[Lengths, Lengths]:
    """Return the shape of the tensor with more channels, in blocks, and its permutation to the other's.

    Order chooses the neighbours: all channels of a block's place, or all places of a channel.
    """
    (batch, channels, height, width), size = wide, c.BlockSize
    channels //= size * size
    if c.get("Order"):  # COLUMN_ROW_DEPTH
        return (batch, channels, size, size, height, width), (0, 1, 4, 2, 5, 3)
    return (batch, size, size, channels, height, width), (0, 3, 4, 1, 5, 2)


def depth_to_space(c: KernelCall) -> Array:
    shape, order = block_shape(c, c.x.shape)
    return c.x.reshape(shape).transpose(order)


def space_to_depth(c: KernelCall) -> Array:
    shape, order = block_shape(c, c.out.shape)
    return c.x.reshape([shape[i] for i in order]).transpose(np.argsort(order))


KERNELS: Final[OperatorKernels] = {
    "DEPTH_TO_SPACE": depth_to_space,
    "DIAGONAL_MATRIX": diagonal_matrix,
    "FILL_VALUE_CONSTANT": lambda c: scalar_of(c.Value, c.out.dtype),
    "FILL_VALUE_SEQUENCE": fill_sequence,
    "GATHER": gather,
    "GATHER_ELEMENTS": lambda c: c.x[along(c, c.x)],
    "GATHER_ND": gather_nd,
    "JOIN": lambda c: np.concatenate(c.raw["InputTensors"], c.Axis),
    "NONZERO_COORDINATES": nonzero_coordinates,
    "ONE_HOT": one_hot,
    "PADDING": padding,
    "REVERSE_SUBSEQUENCES": reverse_subsequences,
    "SCATTER": scatter,
    "SCATTER_ND": scatter_nd,
    "SLICE": slice_,
    "SLICE1": lambda c: c.x[window_index(c, c.out.shape)],
    "SLICE_GRAD": slice_grad,
    "SPACE_TO_DEPTH": space_to_depth,
    "SPLIT": split,
    "TILE": lambda c: np.tile(c.x, c.Repeats),
    "VALUE_SCALE_2D": lambda c: c["InputTensor"] * c.Scale + np.array(c.Bias, np.float32).reshape(1, -1, 1, 1),
}
