"""The picture of a plan in docs/speed.md: the beginnings of a tile's memories after each step, a cell for each run."""

from __future__ import annotations

from operator import mul
from typing import Final

import numpy as np

from dml_tile.execution.plan import plan_tile
from dml_tile.geometry.axes import tile_axes
from dml_tile.geometry.layout import packed_strides

SIZES: Final = (4096, 2, 1, 16)
REPEATS: Final = (1, 8, 1, 5)
_RUN: Final = 16
_SHOWN: Final = {"the input": 32, "scratch memory": 160, "the output": 1280}
"""The bytes of each memory that belong to the first of the 4,096."""
_CELL, _HEIGHT, _LEFT, _MARGIN, _COLUMNS = 40, 20, 210, 14, 10
_STYLE: Final = (
    ".page { fill: #ffffff } .text { fill: #1b1f24 } .faint { fill: #57606a } .run { stroke: #57606a } "
    ".first { fill: #9ecae9 } .second { fill: #f5c189 } "
    "@media (prefers-color-scheme: dark) { .page { fill: #0f1419 } .text { fill: #e6edf3 } .faint { fill: #9aa6b2 } "
    ".first { fill: #2f6690 } .second { fill: #9a5a1f } }"
)


def plan_picture() -> str:
    """Make the steps of the plan's first block, and draw what the memories hold then."""
    shape = tuple(map(mul, SIZES, REPEATS))
    plan = plan_tile(1, tile_axes(SIZES, REPEATS, packed_strides(SIZES), packed_strides(shape)))
    source = np.repeat(np.arange(2 * SIZES[0], dtype=np.uint8) % 2 + 1, _RUN)
    memories = source, np.zeros(plan.scratch, np.uint8), np.zeros(plan.size, np.uint8)
    read, written, length = plan.blocks[0]
    for call in plan.calls[length]:
        call(memories, (read, 0, written))
    parts, y = [], _MARGIN
    made = ["", *dict.fromkeys(map(str, plan.steps[length]))]
    for (name, shown), memory, sentence in zip(_SHOWN.items(), memories, made, strict=True):
        parts.append(f'<text class="text" x="{_MARGIN}" y="{y + 15}">{name}, {shown} bytes</text>')
        parts.append(f'<text class="faint" x="{_LEFT}" y="{y - 7}">{sentence}</text>')
        for i, run in enumerate(memory[:shown:_RUN].tolist()):
            row, column = divmod(i, _COLUMNS)
            place = f'x="{_LEFT + _CELL * column}" y="{y + _HEIGHT * row}" width="{_CELL}" height="{_HEIGHT}"'
            parts.append(f'<rect class="run {("none", "first", "second")[run]}" {place}/>')
        y += _HEIGHT * -(-shown // (_RUN * _COLUMNS)) + 36
    width, height = _LEFT + _CELL * _COLUMNS + _MARGIN + 110, y - 36 + _MARGIN
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    title = "Two runs of the input, five times each in scratch memory, and eight times in the output"
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-size="13" font-family="system-ui, sans-serif" role="img"',
        f'aria-labelledby="title"><title id="title">{title}</title>',
        f'<style>{_STYLE}</style><rect class="page" width="{width}" height="{height}"/>',
    )
    return "\n".join([*head, *parts, "</svg>\n"])
