"""The values of a resource: initial ones in each of DxDispatch's forms, FLOAT16 numbers, and printed ones.

It rounds FLOAT16 numbers toward zero from a FLOAT32, at each step of a sequence too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Discriminator, Field, Tag, WithJsonSchema

from dml_tile.bindings.memory import Bytes
from dml_tile.descriptors.tile import DATA_TYPE
from dml_tile.directml.data_types import TensorDataType
from dml_tile.directml.dtypes import DTYPES
from dml_tile.directml.enums import UINT_MAX
from dml_tile.dxdispatch.fields import JsonObject

_SIGN, _EXPONENT, _FRACTION = 0x80000000, 0x7F800000, 0x007FFFFF
_BIAS: Final = 127 - 15
_INFINITY: Final = 31


def round_to_halves(singles: NDArray[np.float32]) -> NDArray[np.float16]:
    """Round FLOAT32 numbers to FLOAT16 toward zero; from 65536 on they are infinite, and a NaN keeps its upper bits."""
    bits = singles.view(np.uint32)
    sign = (bits & _SIGN) >> 16
    exponent = ((bits & _EXPONENT) >> 23).astype(np.int32) - _BIAS
    fraction = bits & _FRACTION
    normal = (np.clip(exponent, 0, _INFINITY).astype(np.uint32) << 10) + (fraction >> 13)
    shift = np.clip(14 - exponent, 14, 31).astype(np.uint32)
    subnormal = (fraction | 0x00800000) >> shift
    infinite = np.where(np.isnan(singles), 0x7C00 + (fraction >> 13), 0x7C00).astype(np.uint32)
    magnitude = np.where(exponent <= 0, subnormal, np.where(exponent >= _INFINITY, infinite, normal))
    return (sign + magnitude).astype(np.uint16).view(np.float16)


def fill_halves(steps: NDArray[Any], start: NDArray[Any], delta: NDArray[Any]) -> None:
    """Fill an array of FLOAT16 with ``start``, ``start + delta`` and so on, each step rounded.

    A step depends on the one before alone, of which there are 65536: after as many at most, the steps repeat.
    """
    every = np.arange(2**16, dtype=np.uint16).view(np.float16).astype(np.float32)
    with np.errstate(all="ignore"):
        following = round_to_halves(every + np.float32(delta[0]))
    after = following.view(np.uint16).tolist()
    places: dict[int, int] = {}
    path: list[int] = []
    step = int(start.view(np.uint16)[0])
    while step not in places and len(path) < len(steps):
        places[step] = len(path)
        path.append(step)
        step = after[step]
    bits = steps.view(np.uint16)
    bits[: len(path)] = path
    if len(path) < len(steps):
        cycle = np.array(path[places[step] :], np.uint16)
        rest = bits[len(path) :]
        whole = len(rest) // len(cycle) * len(cycle)
        rest[:whole].reshape(-1, len(cycle))[:] = cycle
        rest[whole:] = cycle[: len(rest) - whole]


PositiveUINT = Annotated[int, Field(strict=True, ge=1, le=UINT_MAX)]

Number = Annotated[Any, WithJsonSchema({"type": ["number", "string"]})]
"""A JSON number, or one of the strings "nan", "inf" and "-inf" where the type is a floating-point one.

What it must be depends on the data type, so it is looked at where the values are made."""


# Tags of unions are in brackets, so that they are never taken for keys of the data.


class TypedValue(JsonObject):
    """One value of a resource that mixes types."""

    name: Any = Field(default=None, description="A comment.")
    type: Annotated[TensorDataType | int, DATA_TYPE] = Field(description="The value's type.")
    value: Number


class ConstantValues(JsonObject):
    """One value, repeated."""

    value_count: PositiveUINT
    value: Number


class SequenceValues(JsonObject):
    """valueStart, valueStart + valueDelta, and so on."""

    value_count: PositiveUINT
    value_start: Number
    value_delta: Number


class FileValues(JsonObject):
    """The contents of a file: an array (.npy), or raw bytes."""

    source_path: str = Field(min_length=1, description="Relative to the model's folder, or to the current one.")


def _values_tag(values: Any) -> str | None:
    if isinstance(values, list | str):
        return "(list)" if isinstance(values, list) else "(deferred)"
    if isinstance(values, dict):
        kinds = [kind for kind in ("value", "valueStart", "sourcePath") if kind in values]
        return f"({kinds[0]})" if len(kinds) == 1 or kinds == ["valueStart", "sourcePath"] else None
    return None


ListedValues = Annotated[
    list[Any], WithJsonSchema({"type": "array", "minItems": 1, "items": {"type": ["number", "string", "object"]}})
]

InitialValues = Annotated[
    Annotated[ListedValues, Field(min_length=1), Tag("(list)")]
    | Annotated[ConstantValues, Tag("(value)")]
    | Annotated[SequenceValues, Tag("(valueStart)")]
    | Annotated[FileValues, Tag("(sourcePath)")]
    | Annotated[Literal["deferred"], Tag("(deferred)")],
    Discriminator(
        _values_tag,
        custom_error_type="initial_values",
        custom_error_message='Input should be an array, "deferred", or an object with exactly one of value, valueStart '
        "and sourcePath",
    ),
]


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
