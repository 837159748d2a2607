"""A tile in one line: ``INT64 {2,3,4} x {1,2,1} -> {2,6,4}``, with the strides of tensors that have them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

MAX_ENTRIES: Final = 16
"""The entries of an array that a line shows; DirectML's tensors have at most 8 dimensions."""


def tile_line(input_tensor: str, repeats: str, output_tensor: str) -> str:
    """The line of a tile, of the texts of its parts."""
    return f"{input_tensor} x {repeats} -> {output_tensor}"


def tensor_text(data_type: str, sizes: str, strides: str = "") -> str:
    """A tensor: ``INT64 {2,3,4} strides {24,8,2}``. What is empty is left out, with the word before it."""
    return " ".join(word for word in (data_type, sizes, strides and f"strides {strides}") if word)


def array_text(values: Sequence[object] | None) -> str:
    """The values of an array: ``{2,3,4}``; of a null one ``null``. A long array is cut, with its length."""
    if values is None:
        return "null"
    shown = ",".join(map(str, values[:MAX_ENTRIES]))
    return f"{{{shown}}}" if len(values) <= MAX_ENTRIES else f"{{{shown},…}} of {len(values)}"
