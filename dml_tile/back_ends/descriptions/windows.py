"""A window over spatial dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from dml_tile.back_ends.descriptions.node import KernelNode
from dml_tile.back_ends.descriptions.refusals import require

_SAME: Final = ("SAME_UPPER", "SAME_LOWER")


class Window(NamedTuple):
    """The fields of a window, a value for each spatial dimension."""

    strides: list[int]
    dilations: list[int]
    size: list[int]
    start: list[int]
    end: list[int]

    def fields(self, count: int) -> dict[str, list[int]]:
        """Return the fields, raised to ``count`` spatial dimensions by ones and zeros in front."""
        more = count - len(self.size)
        names = {"Strides": 1, "Dilations": 1, "WindowSize": 1, "StartPadding": 0, "EndPadding": 0}
        return {name: [fill] * more + values for (name, fill), values in zip(names.items(), self, strict=True)}

    def of_convolution(self) -> dict[str, list[int]]:
        """Return the fields of a convolution, of two spatial dimensions at least, which has no WindowSize."""
        fields = self.fields(max(2, len(self.size)))
        del fields["WindowSize"]
        return fields


def spatial_of(shape: Sequence[int]) -> list[int]:
    """Return the spatial sizes of a shape of a batch and channels."""
    require(3 <= len(shape) <= 5, f"an input of {len(shape)} dimensions; 3 to 5 are taken")
    return [*shape[2:]]


_POSITIVE_SINCE: Final = (1, 26)
COUNTED_SINCE: Final = (1, 30)


def window_of(node: KernelNode, spatial: Sequence[int], weights: Sequence[int] | None = None) -> Window:
    count = len(spatial)
    given = node.integer_list("strides", [1] * count), node.integer_list("dilations", [1] * count)
    strides, dilations = (values[:count] for values in given)
    if node.release >= _POSITIVE_SINCE:
        require(min(strides + dilations) > 0, "strides and dilations must be positive, as of 1.26")
    kernel = node.integer_list("kernel_shape", [*(weights or ())] or [1] * count)
    if node.release >= COUNTED_SINCE and node.attribute("kernel_shape"):
        require(len(kernel) == count, f"kernel_shape has {len(kernel)} values for {count} dimensions")
    size, mode = kernel[-count:], node.attribute("auto_pad", "NOTSET")
    if mode in _SAME:
        start, end = [], []
        for length, stride, dilation, extent in zip(spatial, strides, dilations, size, strict=True):
            covered = stride * (-(-length // stride) - 1) + 1 + (extent - 1) * dilation
            padding = max(0, covered - length)
            start.append((padding + (mode == "SAME_LOWER")) // 2)
            end.append(padding - start[-1])
    else:
        pads = (node.integer_list("pads") if mode == "NOTSET" else []) or [0] * (2 * count)
        start, end = pads[:count], pads[count : 2 * count]
    window = Window(strides, dilations, size, start, end)
    require(all(len(values) == count for values in window), f"a window of other than {count} dimensions")
    return window


def whole_window(spatial: Sequence[int]) -> Window:
    """Return the window of a global pool."""
    count = len(spatial)
    return Window([1] * count, [1] * count, [*spatial], [0] * count, [0] * count)
