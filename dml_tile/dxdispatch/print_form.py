"""The text that a `print` command makes of a resource: numbers, or exactly what DxDispatch writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from dml_tile.bindings.memory import Bytes
from dml_tile.directml.dtypes import DTYPES

VALUES_AT_ONCE: Final = 4096
"""The values of each part of a text."""

_UNSIGNED: Final = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


def printed(data_type: int, data: Bytes, *, verbose: bool = False, as_dxdispatch: bool = False) -> Iterator[str]:
    """Yield the elements as text, in parts: ``1, 2, 3``, or if ``verbose``, lines such as ``[0] 1 (0x3F800000)``.

    Floats have six digits, as C++ streams print them. ``as_dxdispatch`` gives what DxDispatch writes, which differs for
    integers of 8 bits, which become characters (from 128 on the lone surrogates of ``surrogateescape``, as they are
    bytes), and for the leading zeros of hexadecimal numbers, which become blanks.
    """
    dtype = DTYPES[data_type]
    values = data[: len(data) // dtype.itemsize * dtype.itemsize].view(dtype)
    spell = _spelling(dtype, as_dxdispatch=as_dxdispatch)
    for start in range(0, len(values), VALUES_AT_ONCE):
        part = values[start : start + VALUES_AT_ONCE]
        texts = map(spell, part.tolist())
        if verbose:
            yield "".join(_lines(texts, part, start, len(str(len(values))), as_dxdispatch=as_dxdispatch))
        else:
            yield (", " if start else "") + ", ".join(texts)


def _spelling(dtype: np.dtype[Any], *, as_dxdispatch: bool) -> Callable[[Any], str]:
    if dtype.kind == "f":
        return _float
    if dtype.itemsize == 1 and as_dxdispatch:
        return lambda value: bytes([value % 256]).decode(errors="surrogateescape")
    return str


def _float(value: float) -> str:
    return "-nan" if value != value and np.signbit(value) else f"{value:g}"


def _lines(texts: Iterator[str], values: NDArray[Any], start: int, width: int, *, as_dxdispatch: bool) -> Iterator[str]:
    digits = 2 * values.itemsize
    bits = values.view(_UNSIGNED[values.itemsize]).tolist()
    spell = "{:{}X}" if as_dxdispatch else "{:0{}X}"
    for index, (text, number) in enumerate(zip(texts, bits, strict=True), start):
        yield f"[{index:{width}}] {text} (0x{spell.format(number, digits)})\n"
