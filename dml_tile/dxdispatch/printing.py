"""Prints resources as DxDispatch does, and in rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dml_tile.dxdispatch.model import PrintCommand
from dml_tile.text import printable

_VALUES_AT_ONCE: Final = 4096
"""The values of each part of a text."""


def printed_parts(
    command: PrintCommand, values: NDArray[Any], *, as_dxdispatch: bool, row: int = 0
) -> Iterator[tuple[str, int]]:
    """Yield the parts of ``Resource 'Out': 1, 2, 3``, each with the number of values from there on.

    ``row`` is the number of elements of each row, or 0 for a single line.
    """
    left = len(values)
    is_in_rows = 0 < row < left and not command.verbose
    yield f"Resource '{printable(command.resource)}':{chr(10) if command.verbose or is_in_rows else ' '}", left
    if is_in_rows:
        yield from _rows(values, row)
        return
    for part in printed(values, verbose=command.verbose, as_dxdispatch=as_dxdispatch):
        if as_dxdispatch and "\0" in part:  # where C's text ends
            yield part.partition("\0")[0], left
            break
        yield part, left
        left -= _VALUES_AT_ONCE
    if as_dxdispatch or not command.verbose:
        yield "\n", 0


def _rows(values: NDArray[Any], row: int) -> Iterator[tuple[str, int]]:
    """Yield rows of elements, right-aligned in columns that are as wide as the widest of the rows yielded with them."""
    spell = _spelling(values.dtype, as_dxdispatch=False)
    step = max(_VALUES_AT_ONCE // row, 1) * row
    for start in range(0, len(values), step):
        texts = [*map(spell, values[start : start + step].tolist())]
        width = max(map(len, texts))
        cells = [text.rjust(width) for text in texts]
        lines = (", ".join(cells[first : first + row]) for first in range(0, len(cells), row))
        yield "".join(f"  {line}\n" for line in lines), len(values) - start


def printed(values: NDArray[Any], *, verbose: bool = False, as_dxdispatch: bool = False) -> Iterator[str]:
    """Yield the elements as text, in parts: ``1, 2, 3``, or if ``verbose``, lines such as ``[0] 1 (0x3F800000)``.

    Floats have six digits, as C++ streams print them. ``as_dxdispatch`` gives what DxDispatch writes, which differs for
    integers of 8 bits, which become characters (from 128 on the lone surrogates of ``surrogateescape``, as they are
    bytes), and for the leading zeros of hexadecimal numbers, which become blanks.
    """
    spell = _spelling(values.dtype, as_dxdispatch=as_dxdispatch)
    width, digits = len(str(len(values))), f"{'' if as_dxdispatch else '0'}{2 * values.itemsize}X"
    for start in range(0, len(values), _VALUES_AT_ONCE):
        part = values[start : start + _VALUES_AT_ONCE]
        texts = map(spell, part.tolist())
        if verbose:
            numbered = enumerate(zip(texts, part.view(f"u{part.itemsize}").tolist(), strict=True), start)
            yield "".join(f"[{index:{width}}] {text} (0x{bits:{digits}})\n" for index, (text, bits) in numbered)
        else:
            yield (", " if start else "") + ", ".join(texts)


def _spelling(dtype: np.dtype[Any], *, as_dxdispatch: bool) -> Callable[[Any], str]:
    if dtype.kind == "f":
        return lambda value: "-nan" if value != value and np.signbit(value) else f"{value:g}"
    if dtype.itemsize == 1 and as_dxdispatch:
        return lambda value: bytes([value % 256]).decode(errors="surrogateescape")
    return str
