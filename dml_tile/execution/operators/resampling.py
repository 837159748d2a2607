"""Resampling, and pooling of regions: an output's elements lie between those of the input.

Along each dimension, the elements that are read and their weights are worked out once, for all other dimensions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np

from dml_tile.execution.call import Array, KernelCall, Lengths, OperatorKernels


class Interpolation(NamedTuple):
    """Along one dimension, the two elements that each output lies between, and the weight of the second.

    Of a region's samples, those are ``inside`` that are within the input.
    """

    low: Array
    high: Array
    weight: Array
    inside: Any = True

    def _weights(self, ndim: int, axis: int, dtype: np.dtype[Any]) -> Array:
        return self.weight.reshape([-1 if i == axis else 1 for i in range(ndim)]).astype(dtype)

    def take(self, x: Array, axis: int) -> Array:
        """Return a + (b - a) * weight of the two elements a and b; a itself where the weight is 0."""
        if not self.weight.any():
            return np.take(x, self.low, axis)
        weight = self._weights(x.ndim, axis, x.dtype)
        return np.where(weight == 0, np.take(x, self.low, axis), self.interpolate(x, axis))

    def interpolate(self, x: Array, axis: int) -> Array:
        """Return a + (b - a) * weight also for a weight of 0, which makes NaN of an infinity."""
        low = np.take(x, self.low, axis)
        return low + (np.take(x, self.high, axis) - low) * self._weights(x.ndim, axis, x.dtype)

    def give(self, x: Array, axis: int, size: int) -> Array:
        """Return what ``take`` does with its elements reversed: each of x is added to its two, by their weights."""
        weight, found = np.moveaxis(self._weights(x.ndim, axis, x.dtype), axis, 0), np.moveaxis(x, axis, 0)
        sums = np.zeros((size, *found.shape[1:]), x.dtype)
        np.add.at(sums, self.low, found * (1 - weight))
        second = self.weight != 0
        np.add.at(sums, self.high[second], (found * weight)[second])
        return np.moveaxis(sums, 0, axis)


class ResampledAxis(NamedTuple):
    """One dimension of a resampling; ``offsets`` are the input's and the output's."""

    size: int
    input_size: int
    scale: float
    offsets: tuple[float, float]


def places(axis: ResampledAxis) -> Array:
    """Return where outputs lie in the input, in FLOAT32, as halves have to be found: 4.5 / 1.8 is 2.5."""
    single = np.float32
    input_offset, output_offset = map(single, axis.offsets)
    return (np.arange(axis.size, dtype=single) - output_offset) / single(axis.scale) - input_offset


def nearest(axis: ResampledAxis, direction: int | None, *, floored: bool) -> Interpolation:
    """Return the nearest elements: rounded up for halves, or in RoundingDirection; down for 8-bit integers."""
    at = places(axis)
    if direction is None and not floored:
        at = at + np.float32(0.5)
    rounded = np.ceil(at) if direction == 0 else np.floor(at)
    near = np.clip(rounded, 0, axis.input_size - 1).astype(int)
    return Interpolation(near, near, np.zeros(near.size, np.float32))


def between(axis: ResampledAxis) -> Interpolation:
    """Return the two elements that each output lies between.

    An output further off its place than a pixel, by its offsets, is extrapolated where that place is inside: measured
    in one dimension.
    """
    at = places(axis)
    low = np.floor(at)
    moved = np.floor((np.arange(axis.size, dtype=np.float32) - np.float32(axis.offsets[1])) / np.float32(axis.scale))
    inside = (moved >= 1) & (moved < axis.input_size - 1)
    low = np.where(inside, np.clip(low, 0, max(axis.input_size - 2, 0)), low)
    first, second = (np.clip(each, 0, axis.input_size - 1).astype(int) for each in (low, low + 1))
    return Interpolation(first, second, np.where(first == second, 0, at - low).astype(np.float32))


def antialiased(axis: ResampledAxis) -> Array:
    """Return the weights {output, input} of a triangle that is stretched by 1 / scale. Page: dml_resample3"""
    found = np.maximum(0, 1 - np.abs(np.arange(axis.input_size) - places(axis)[:, None]) * axis.scale)
    weights: Array = found / found.sum(1, keepdims=True)
    return weights.astype(np.float32)


def axes_of(c: KernelCall, large: Lengths, small: Lengths) -> list[ResampledAxis]:
    """Return the dimensions of a resampling; offsets are half a pixel if the operator has none."""
    halves = (0.5,) * len(large), (-0.5,) * len(large)
    offsets = c.get("InputPixelOffsets") or halves[0], c.get("OutputPixelOffsets") or halves[1]
    if "GRAD" in c.name:  # measured: each offset is of the tensor of its name
        offsets = offsets[::-1]
    return [ResampledAxis(*each) for each in zip(large, small, c.Scales, zip(*offsets, strict=True), strict=True)]


def lines_of(c: KernelCall, axes: Sequence[ResampledAxis]) -> Iterator[Interpolation]:
    for axis in axes:
        c.require_finite("Scales", places(axis))
        if c.InterpolationMode == 0:  # NEAREST_NEIGHBOR
            direction = c.get("RoundingDirection")
            yield nearest(axis, direction, floored=direction is None and c.out.dtype.kind in "iu")
        else:
            yield between(axis)


def require_resized(c: KernelCall, x: Array, axis: int, size: int) -> None:
    """Raise DmlError for a tensor that takes more memory than one may once a dimension has another size."""
    c.require(memory=prod(x.shape[:axis]) * size * prod(x.shape[axis + 1 :]) * 8)


def resample(c: KernelCall) -> Array:
    """Return the input at other places; integers that are interpolated are truncated."""
    x = c["InputTensor"]
    axes = axes_of(c, c.out.shape, x.shape)
    x = x.astype(np.float32) if c.InterpolationMode == 1 and x.dtype.kind in "iu" else x
    for i, (axis, line) in enumerate(zip(axes, lines_of(c, axes), strict=True)):
        require_resized(c, x, i, axis.size)
        if c.get("Antialiased") and c.InterpolationMode == 1 and 1 / axis.scale > 2:
            c.require(memory=axis.size * axis.input_size * 8, steps=x.size * axis.size)
            x = np.moveaxis(np.tensordot(antialiased(axis), x, (1, i)), 0, i)
        else:
            x = line.take(x, i)
    return x


def resample_grad(c: KernelCall) -> Array:
    gradient = c["InputGradientTensor"]
    axes = axes_of(c, gradient.shape, c.out.shape)
    for i, (axis, line) in enumerate(zip(axes, lines_of(c, axes), strict=True)):
        require_resized(c, gradient, i, axis.input_size)
        gradient = line.give(gradient, i, axis.input_size)
    return gradient


def upsample_2d(c: KernelCall) -> Array:
    """Return the input at ScaleSize; both dimensions are interpolated, which makes NaN of infinities."""
    x = c["InputTensor"]
    spatial = zip(x.shape[-2:], (c.ScaleSize.height, c.ScaleSize.width), strict=True)
    axes = [ResampledAxis(size * scale, size, scale, (0.5, -0.5)) for size, scale in spatial]
    for i, line in enumerate(lines_of(c, axes), x.ndim - 2):
        x = line.interpolate(x, i) if c.InterpolationMode == 1 else line.take(x, i)
    return x


# regions


def roi_pooling(c: KernelCall) -> Array:
    """Return the greatest element of each cell of a region, whose scaled corners are rounded, halves to even."""
    x, regions = c["InputTensor"], np.clip(np.rint(c.regions([c.SpatialScale] * 4)), -FAR, FAR).astype(int)
    images = c.indices("ROITensor", len(x), c.raw["ROITensor"].reshape(-1, 5)[:, 0])
    c.require(steps=len(regions) * x[0].size, loops=c.out.size // c.out.shape[1])
    found, least = np.zeros(c.out.shape, x.dtype), np.finfo(c.out.dtype).min
    for n, (image, (x1, y1, x2, y2)) in enumerate(zip(images, regions.tolist(), strict=True)):
        for cell in np.ndindex(*c.out.shape[2:]):
            ends = zip(cell, (y1, x1), (y2, x2), c.out.shape[2:], x.shape[2:], strict=True)
            part = x[(image, slice(None), *(cell_range(*each) for each in ends))]
            if part.size:
                found[(n, slice(None), *cell)] = np.fmax.reduce(part, (1, 2), initial=least)
    return found


def cell_range(i: int, first: int, last: int, count: int, limit: int) -> slice:
    """Return the elements of a region's cell along one dimension, within the input."""
    length = max(last - first + 1, 1)
    begin, end = i * length // count + first, -(-(i + 1) * length // count) + first
    return slice(min(max(begin, 0), limit), min(max(end, 0), limit))


def sample_count(c: KernelCall, length: Any, size: int) -> Any:
    """Return how many samples a region of a length, or each of several, takes for ``size`` cells."""
    return size * np.clip(np.ceil(length / size), c.MinimumSamplesPerOutput, c.MaximumSamplesPerOutput).astype(float)


def samples_along(c: KernelCall, first: float, last: float, size: int, limit: int) -> Interpolation:
    """Return the samples of a region along a dimension: as many as elements of the input, within the two limits.

    They may lie a pixel beyond the input's elements, with AlignRegionsToCorners not at all.
    """
    total, has_offsets = int(sample_count(c, last - first, size)), "InputPixelOffset" in c.fields.values
    input_offset, output_offset = (c.InputPixelOffset, c.OutputPixelOffset) if has_offsets else (0.5, -0.5)
    aligned = bool(c.get("AlignRegionsToCorners"))
    steps = max(total - 1, 1) if aligned else total
    at = (np.arange(total) - output_offset) * (last - first) / steps + first - input_offset
    low = np.floor(at + 0.5) if c.InterpolationMode == 0 else np.floor(np.clip(at, 0, limit - 1))
    weight = np.clip(at, 0, limit - 1) - low if c.InterpolationMode else np.zeros(total)
    near, next_ = (np.clip(each, 0, limit - 1).astype(int) for each in (low, low + 1))
    margin = 0 if aligned else 1
    return Interpolation(near, next_, weight, (at >= -margin) & (at <= limit - 1 + margin))


def regions_of(c: KernelCall, shape: Lengths, out: Lengths) -> Iterator[tuple[int, Interpolation, Interpolation]]:
    """Yield of each region its image, and its samples along height and width."""
    scales = (c.SpatialScaleX, c.SpatialScaleY) * 2
    images, regions = c.indices("BatchIndicesTensor", shape[0]).ravel(), c.regions(scales)
    counts = (sample_count(c, regions[:, i + 2] - regions[:, i], size) for i, size in zip((1, 0), out, strict=True))
    samples = shape[1] * prod(counts)
    c.require(memory=int(samples.max()) * 8, steps=int(samples.sum()), loops=len(regions))
    for image, (x1, y1, x2, y2) in zip(images, regions, strict=True):
        yield int(image), samples_along(c, y1, y2, out[0], shape[2]), samples_along(c, x1, x2, out[1], shape[3])


def roi_align(c: KernelCall) -> Array:
    """Return the mean or the maximum of samples of each cell of a region; out of bounds, OutOfBoundsInputValue."""
    x, found, (height, width) = c["InputTensor"], list[Array](), c.out.shape[2:]
    least: Any = np.finfo(c.out.dtype).min
    for image, rows, columns in regions_of(c, x.shape, c.out.shape[2:]):
        values = columns.take(rows.take(x[image], 1), 2)
        values = np.where(rows.inside[:, None] & columns.inside, values, x.dtype.type(c.OutOfBoundsInputValue))
        values = values.reshape(x.shape[1], height, -1, width, columns.inside.size // width)
        is_max = c.ReductionFunction == MAX
        found.append(np.fmax.reduce(values, (2, 4), initial=least) if is_max else values.mean((2, 4)))
    return np.stack(found)


def roi_align_grad(c: KernelCall) -> tuple[Array, None]:
    """Return OutputGradientTensor for AVERAGE; the page leaves the rest open."""
    gradient, (_, _, height, width) = c["InputGradientTensor"], c.out.shape
    found = np.zeros(c.out.shape, gradient.dtype)
    regions = regions_of(c, c.out.shape, gradient.shape[2:])
    for part, (image, rows, columns) in zip(gradient, regions, strict=True):
        counts = rows.inside.size // part.shape[1], columns.inside.size // part.shape[2]
        shares = np.repeat(np.repeat(part / prod(counts), counts[0], 1), counts[1], 2)
        shares = np.where(rows.inside[:, None] & columns.inside, shares, 0)
        found[image] += columns.give(rows.give(shares, 1, height), 2, width)
    return found, None


FAR: Final = 2**40
"""Beyond any element of a tensor."""
MAX: Final = 7
"""DML_REDUCE_FUNCTION_MAX."""

KERNELS: Final[OperatorKernels] = {
    "RESAMPLE": resample,
    "RESAMPLE_GRAD": resample_grad,
    "ROI_ALIGN": roi_align,
    "ROI_ALIGN_GRAD": roi_align_grad,
    "ROI_POOLING": roi_pooling,
    "UPSAMPLE_2D": upsample_2d,
}
