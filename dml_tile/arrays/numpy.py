"""Tiles NumPy arrays as numpy.tile does.

Page: https://numpy.org/doc/stable/reference/generated/numpy.tile.html
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import index, mul
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dml_tile.bindings.memory import DTYPES, region_of
from dml_tile.calls import record
from dml_tile.descriptors import TileOperatorDesc
from dml_tile.dialects import numpy as dialect
from dml_tile.enums import TensorDataType
from dml_tile.execution.executor import require_executable
from dml_tile.execution.moves import Region
from dml_tile.execution.planner import plan_tile
from dml_tile.execution.threads import run
from dml_tile.findings import Against
from dml_tile.geometry.layout import shares_addresses
from dml_tile.simulation import resolve
from dml_tile.targets import TargetLike
from dml_tile.tile_request import Request

_STRINGS: Final = "SUT"
_OBJECTS: Final = "O"

_MAX_WORK: Final[Any] = 10_000
"""The most candidates that NumPy tries to tell two strided arrays apart; beyond that they are taken to overlap."""

# by NumPy's kind and size of the elements
DATA_TYPES: Final = {dtype.str[1:]: TensorDataType(data_type) for data_type, dtype in DTYPES.items()} | {
    "b1": TensorDataType.UINT8  # DirectML has no bool; its bytes are tiled as they are
}


def tile(
    array: ArrayLike,
    repeats: int | Iterable[int],
    target: TargetLike | None = None,
    against: Against = "both",
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """Tile an array as numpy.tile does, if DirectML accepts the tile at ``target``.

    The shorter of the array's shape and ``repeats`` gets leading 1s; a scalar is described by the sizes {1}. The
    descriptor that is checked is packed, whatever the array's strides; bool is described as UINT8. ``out``, if given,
    has the result's shape and dtype, and receives it.

    Raises DmlError with the findings where DirectML refuses the tile (also for a repeat of 0, and for an array without
    elements), TypeError for a dtype without a DirectML type, DialectError for a negative repeat, ValueError for a
    result that no descriptor can hold, or an ``out`` that does not fit, is read-only or shares memory with the array.
    """
    target = resolve(target)
    array = np.asarray(array)
    data_type = DATA_TYPES.get(array.dtype.str[1:])
    if data_type is None:
        raise TypeError(f"DirectML has no tensor data type for {array.dtype}")
    request = dialect.tile(array.dtype.name, array.shape, _counts(repeats))
    described = TileOperatorDesc.from_input(
        data_type=data_type, sizes=request.shape or (1,), repeats=request.repeats or (1,)
    )
    require_executable("tile", described, target, against)
    if out is None:
        out = np.empty(request.output_shape, array.dtype)
    else:
        _require_fitting(out, request.output_shape, array)
    source = array.reshape(request.shape)
    plan = plan_tile(array.itemsize, request.shape, request.repeats, source.strides, out.strides)
    run(plan, Region(*region_of(source)), Region(*region_of(out)))
    record("tile", target, described)
    return out


def tiled(array: NDArray[Any], request: Request) -> NDArray[Any]:
    """The result of a request, in C order. The array has the request's shape, or that without its leading 1s.

    Any dtype is accepted. Elements of 1, 2, 4, 8 or 16 bytes are moved as bits, in the way of a descriptor's; NumPy
    tiles all others, strings and Python objects among them.
    """
    source = array.reshape(request.shape)
    if array.dtype.hasobject or array.dtype.kind in _STRINGS or array.itemsize not in (1, 2, 4, 8, 16):
        return np.tile(source, request.repeats)
    repeats = request.repeats
    bits = np.ascontiguousarray(source).reshape(-1).view(np.uint8)
    if array.itemsize == 16:  # two elements of 8 bytes each
        source, repeats = bits.view(np.uint64).reshape(*request.shape, 2), (*repeats, 1)
    else:
        source = bits.view(f"u{array.itemsize}").reshape(request.shape)
    out = np.empty(tuple(map(mul, source.shape, repeats)), source.dtype)
    plan = plan_tile(source.itemsize, source.shape, repeats, source.strides, out.strides)
    run(plan, Region(*region_of(source)), Region(*region_of(out)))
    return out.reshape(-1).view(array.dtype).reshape(request.output_shape)


def onnx_type(array: NDArray[Any]) -> str:
    """ONNX's name of an array's data type, in NumPy's spelling; strings are arrays of str, bytes or objects."""
    return "string" if array.dtype.kind in _STRINGS + _OBJECTS else array.dtype.name


def _counts(repeats: int | Iterable[int]) -> list[int]:
    try:
        return [index(repeats)]  # type: ignore[arg-type]  # an array of rank 0 is an index too
    except TypeError:
        if not isinstance(repeats, Iterable):
            raise TypeError(f"repeats is {repeats!r}; an integer or several were expected") from None
        return [index(repeat) for repeat in repeats]


def _require_fitting(out: NDArray[Any], shape: tuple[int, ...], array: NDArray[Any]) -> None:
    if not isinstance(out, np.ndarray):
        raise TypeError(f"out is a {type(out).__name__}; an array was expected")
    if out.shape != shape or out.dtype != array.dtype:
        raise ValueError(f"out is {out.dtype} of shape {out.shape}; {array.dtype} of shape {shape} was expected")
    if not out.flags.writeable:
        raise ValueError("out is read-only; a writable array was expected")
    if _share_memory(out, array):
        raise ValueError("out shares memory with the array; Tile has no in-place form")
    if shares_addresses((*out.shape, out.itemsize), (*map(abs, out.strides), 1)) is not False:  # byte by byte
        raise ValueError(f"the strides {out.strides} let elements of out share memory")


def _share_memory(out: NDArray[Any], array: NDArray[Any]) -> bool:
    try:
        return np.shares_memory(out, array, max_work=_MAX_WORK)
    except np.exceptions.TooHardError:
        return True
