"""The tiles that are measured: a list of named ones, and random ones.

Random tiles have 1 to 8 dimensions, elements of 1, 2, 4 or 8 bytes and outputs of 100 bytes to 8 MB, or as asked, all
sizes alike by their logarithm, which is shared out among sizes and repeats at random. Of 20 tiles, about 12 are
packed, 2 have padded rows in the input, 3 a permuted input, 2 a broadcast one, and 1 padded rows on both sides.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from operator import mul
from typing import Final

import numpy as np

from dml_tile.geometry.layout import extent, packed_strides


@dataclass(frozen=True)
class Shape:
    """A tile of elements of ``size`` bytes; strides are in elements, None means packed."""

    name: str
    size: int
    sizes: tuple[int, ...]
    repeats: tuple[int, ...]
    strides: tuple[int, ...] | None = None
    output_strides: tuple[int, ...] | None = None

    @property
    def output_sizes(self) -> tuple[int, ...]:
        return tuple(map(mul, self.sizes, self.repeats))

    @property
    def written(self) -> int:
        """The bytes of the output's elements."""
        return math.prod(self.output_sizes) * self.size

    @property
    def is_packed(self) -> bool:
        return self.strides is None and self.output_strides is None

    @property
    def is_dense(self) -> bool:
        """True if nothing lies between the output's elements."""
        return extent(self.output_sizes, self.output_strides) * self.size == self.written

    @property
    def is_plain_copy(self) -> bool:
        return self.is_packed and set(self.repeats) == {1}

    def byte_strides(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The input's, and the output's."""
        given = (self.sizes, self.strides), (self.output_sizes, self.output_strides)
        source, destination = (
            tuple(stride * self.size for stride in (packed_strides(sizes) if strides is None else strides))
            for sizes, strides in given
        )
        return source, destination


SHAPES: Final = (
    Shape("the reference page's example", 4, (1, 1, 2, 3), (1, 1, 3, 3)),
    Shape("200 bytes", 4, (5, 2), (1, 5)),
    Shape("a row, repeated", 4, (1, 1024), (4096, 1)),
    Shape("a short row, repeated", 4, (1, 8), (100_000, 1)),
    Shape("a batch, repeated", 4, (1, 3, 224, 224), (16, 1, 1, 1)),
    Shape("key-value heads", 2, (4, 8, 1, 512 * 128), (1, 1, 4, 1)),
    Shape("feature maps of one value", 4, (8, 256, 1, 1), (1, 1, 64, 64)),
    Shape("each byte twice", 1, (2**22, 1), (1, 2)),
    Shape("each byte 3 times", 1, (2**22, 1), (1, 3)),
    Shape("each byte 256 times", 1, (2**16, 1), (1, 256)),
    Shape("each float twice", 4, (2**20, 1), (1, 2)),
    Shape("each float 3 times", 4, (2**20, 1), (1, 3)),
    Shape("each float 256 times", 4, (2**16, 1), (1, 256)),
    Shape("grey to RGB", 1, (1080, 1920, 1), (1, 1, 3)),
    Shape("rows of RGB floats", 4, (512, 512, 3), (1, 2, 2)),
    Shape("rows of RGB bytes", 1, (1080, 1920, 3), (1, 2, 1)),
    Shape("8-D, floats", 4, (2,) * 8, (2,) * 8),
    Shape("8-D, bytes", 1, (3, 2) * 4, (2, 2, 2, 2, 2, 2, 2, 3)),
    Shape("a long odd row", 4, (1_000_003,), (7,)),
    Shape("a short odd row", 1, (37,), (999_983,)),
    Shape("4096 x 4096, 1 byte", 1, (2048, 2048), (2, 2)),
    Shape("4096 x 4096, 2 bytes", 2, (2048, 2048), (2, 2)),
    Shape("4096 x 4096, 4 bytes", 4, (2048, 2048), (2, 2)),
    Shape("4096 x 4096, 8 bytes", 8, (2048, 2048), (2, 2)),
    Shape("a scalar, to 100 MB", 4, (1,), (25_000_000,)),
    Shape("500 MB", 4, (5000, 25, 100), (1, 10, 1)),
    Shape("a copy of 1 MB", 4, (512, 512), (1, 1)),
    Shape("a copy of 26 MB", 4, (6_500_000,), (1,)),
    Shape("a copy of 100 MB", 4, (25_000_000,), (1,)),
    Shape("a transposed input", 4, (2048, 2048), (1, 2), (1, 2048)),
    Shape("a transposed input, odd", 4, (1000, 3000), (2, 1), (1, 1000)),
    Shape("NHWC to NCHW", 4, (1, 64, 112, 112), (2, 1, 1, 1), (64 * 112 * 112, 1, 112 * 64, 64)),
    Shape("NCHW to NHWC", 4, (1, 64, 112, 112), (1, 1, 1, 1), None, (64 * 112 * 112, 1, 112 * 64, 64)),
    Shape("a broadcast dimension", 4, (64, 1000, 64), (1, 1, 2), (64, 0, 1)),
    Shape("padded rows", 4, (512, 500), (4, 4), (512, 1), (2048, 1)),
    Shape("elements apart", 4, (1_000_000,), (2,), (2,), (2,)),
    Shape("a feature map, 2 x 2", 4, (1, 64, 56, 56), (1, 1, 2, 2)),
    Shape("each row 256 times", 4, (1, 1, 4096, 1), (1, 1, 1, 256)),
    Shape("rows of 3 floats", 4, (1024, 1, 3), (1, 7, 5)),
    Shape("rows of 3 bytes", 1, (1024, 1, 3), (1, 7, 5)),
    Shape("four dimensions of 16", 4, (16, 16, 16, 16), (2, 2, 2, 2)),
    Shape("NHWC as NCHW, 2 x 2", 4, (4, 3, 224, 224), (1, 1, 2, 2), (224 * 224 * 3, 1, 224 * 3, 3)),
    Shape("every second element", 4, (256, 256), (2, 2), None, (1024, 2)),
)

MIN_BYTES: Final = 100
LARGEST: Final = 8_000_000
"""The bytes of the largest random output, unless another bound is asked for."""
LAYOUTS: Final = {"packed": 0.6, "padded": 0.1, "permuted": 0.15, "broadcast": 0.1, "padded twice": 0.05}


def random_shapes(count: int, seed: int, largest: int = LARGEST, smallest: int = MIN_BYTES) -> list[Shape]:
    """So many random tiles, always the same ones for a seed; the bounds are the bytes of their outputs."""
    generator = np.random.default_rng(seed)
    shapes: list[Shape] = []
    while len(shapes) < count:
        shape = _random_shape(generator, largest, smallest)
        if smallest <= shape.written <= largest:
            shapes.append(shape)
    return shapes


def _random_shape(generator: np.random.Generator, largest: int, smallest: int) -> Shape:
    size, rank = int(generator.choice([1, 2, 4, 8])), int(generator.integers(1, 9))
    elements = math.exp(generator.uniform(math.log(smallest), math.log(largest))) / size
    weights = generator.exponential(1, 2 * rank)
    weights *= generator.random(2 * rank) < np.repeat([0.8, 0.5], rank)  # else the size or the repeat is 1
    shares = weights / max(weights.sum(), 1e-9)
    lengths = [max(1, round(elements**share)) if elements > 1 else 1 for share in shares.tolist()]
    sizes, repeats = tuple(lengths[:rank]), tuple(lengths[rank:])
    outputs = tuple(map(mul, sizes, repeats))
    layout = str(generator.choice(list(LAYOUTS), p=list(LAYOUTS.values())))
    strides = output_strides = None
    match layout:
        case "padded":
            strides = _padded(sizes, int(generator.integers(1, 9)))
        case "permuted":
            order = generator.permutation(rank).tolist()
            packed = dict(zip(order, packed_strides([sizes[i] for i in order]), strict=True))
            strides = tuple(packed[i] for i in range(rank))
        case "broadcast":
            strides = tuple(0 if generator.random() < 0.4 else stride for stride in packed_strides(sizes))
        case "padded twice":
            strides, output_strides = (_padded(each, int(generator.integers(1, 9))) for each in (sizes, outputs))
    name = f"{'x'.join(map(str, sizes))} by {'x'.join(map(str, repeats))}, {size} B, {layout}"
    return Shape(name, size, sizes, repeats, strides, output_strides)


def _padded(sizes: tuple[int, ...], gap: int) -> tuple[int, ...]:
    return packed_strides([*sizes[:-1], sizes[-1] + gap])
