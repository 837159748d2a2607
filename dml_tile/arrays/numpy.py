"""Tiles NumPy arrays as numpy.tile does.

Page: https://numpy.org/doc/stable/reference/generated/numpy.tile.html
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from operator import index, mul
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy import empty, may_share_memory, ndarray
from numpy.typing import ArrayLike, NDArray

from dml_tile.bindings.memory import region_of
from dml_tile.calls import record
from dml_tile.descriptors import TileOperatorDesc
from dml_tile.dialects import numpy as dialect
from dml_tile.dtypes import DTYPES, require_native, require_unmasked
from dml_tile.enums import TensorDataType
from dml_tile.execution.executor import keep, require_executable
from dml_tile.execution.numpy_calls import Region
from dml_tile.execution.plan import Plan
from dml_tile.execution.planner import plan_tile
from dml_tile.execution.threads import run, run_once
from dml_tile.execution.thresholds import SCRATCH
from dml_tile.findings import Against
from dml_tile.geometry.axes import Axis, coalesce, tile_axes
from dml_tile.geometry.layout import packed_strides, shares_addresses
from dml_tile.simulation import resolve
from dml_tile.targets import Target, TargetLike
from dml_tile.tile_request import Request

_STRINGS: Final = "SUT"
_OBJECTS: Final = "O"

_DLPACK_CPU: Final = 1
"""kDLCPU, of https://dmlc.github.io/dlpack/latest/c_api.html"""

_MAX_WORK: Final[Any] = 10_000
"""The most candidates that NumPy tries to tell two strided arrays apart; beyond that they are taken to overlap."""

# by NumPy's kind and size of the elements
DATA_TYPES: Final = {dtype.str[1:]: TensorDataType(data_type) for data_type, dtype in DTYPES.items()} | {
    "b1": TensorDataType.UINT8  # DirectML has no bool; its bytes are tiled as they are
}


class SupportsDLPack(Protocol):
    """An array that offers its memory through DLPack, such as a tensor of torch.

    Page: https://data-apis.org/array-api/latest/API_specification/generated/array_api.array.__dlpack__.html
    """

    def __dlpack__(self, *, stream: None = ...) -> Any: ...

    def __dlpack_device__(self) -> tuple[int, int]: ...


def tile(
    array: ArrayLike | SupportsDLPack,
    repeats: int | Iterable[int],
    target: TargetLike | None = None,
    against: Against = "both",
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """Tile an array as numpy.tile does, if DirectML accepts the tile at ``target``.

    The shorter of the array's shape and ``repeats`` gets leading 1s; a scalar is described by the sizes {1}. The
    descriptor that is checked is packed, whatever the array's strides; bool is described as UINT8. ``out``, if given,
    has the result's shape and dtype, and receives it.

    ``array`` may also be anything that has ``__dlpack__`` and lies on the CPU, such as a tensor of torch; its memory is
    read as it lies. The result is a new NumPy array in any case (``torch.from_dlpack`` makes a tensor of it without
    copying), or ``out``.

    Raises DmlError with the findings where DirectML refuses the tile (also for a repeat of 0, and for an array without
    elements), DialectError for a negative repeat, TypeError for a dtype without a DirectML type or in the other byte
    order, a masked array and one on another device, ValueError for a result that no descriptor can hold, or an ``out``
    that does not fit, is read-only or shares memory with the array.
    """
    if type(array) is not ndarray:
        array = _as_array(array)
    layout = None
    if out is not None:
        if type(out) is not ndarray:
            _require_array(out)
        if not out.flags.writeable:
            raise ValueError("out is read-only; a writable array was expected")
        layout = out.dtype, out.shape, out.strides
    target = resolve(target)
    counts = tuple(map(index, repeats)) if type(repeats) is tuple else _counts(repeats)
    key = array.dtype, array.shape, array.strides, counts, id(target), against, layout
    prepared = _kept.get(key)
    if prepared is None:  # what is kept holds its target, so that no other has its id
        prepared = _prepared(array.dtype, array.shape, array.strides, counts, target, against, layout)
        keep(_kept, key, prepared)
    desc, target, shape, (pairs, plan, is_contiguous, is_packed_first) = prepared
    if out is None:
        out = empty(shape, array.dtype)
    elif may_share_memory(out, array) and _share_memory(out, array):
        raise ValueError("out shares memory with the array; Tile has no in-place form")
    if pairs is not None:
        out.reshape(pairs[0])[...] = array.reshape(pairs[1])
    elif is_contiguous:
        run_once(plan, array.copy() if is_packed_first else array, out)
    else:
        run(plan, _region(array), _region(out))
    record("tile", target, desc)
    return out


def _require_array(out: object) -> None:
    if not isinstance(out, ndarray):
        raise TypeError(f"out is a {type(out).__name__}; an array was expected")
    require_unmasked(out, "out")


def _as_array(array: Any) -> NDArray[Any]:
    require_unmasked(array, "the array")
    if isinstance(array, np.ndarray) or not hasattr(array, "__dlpack__"):
        return np.asarray(array)
    device, _ = array.__dlpack_device__()
    if device != _DLPACK_CPU:
        raise TypeError(f"the {type(array).__name__} is not in the CPU's memory; move it there first")
    try:
        return np.from_dlpack(array)
    except (BufferError, RuntimeError) as error:  # a tensor that requires its gradient, a type that NumPy lacks
        raise TypeError(f"the {type(array).__name__} cannot be read through DLPack: {error}") from None


class _Route(NamedTuple):
    """The fastest way to write a tile between arrays that lie in memory alike.

    If there are ``pairs``, it is one assignment: they are shapes of output and input with axes for repeats and sizes,
    a repeat's being 1 in the input's. Else the plan says it, between contiguous arrays, of which the input is copied to
    one beforehand if it ``is_packed_first``, or between any.
    """

    pairs: tuple[tuple[int, ...], tuple[int, ...]] | None
    plan: Plan
    is_contiguous: bool
    is_packed_first: bool


class _Prepared(NamedTuple):
    """A tile that DirectML accepts at a target, and its route."""

    desc: TileOperatorDesc
    target: Target
    shape: tuple[int, ...]
    route: _Route


_MAX_STARTS: Final = 64
"""The loops of NumPy that one assignment may start: 0.4 µs, which it takes to make views of longer elements."""
_MAX_STRIDED_STARTS: Final = 1000
"""The loops of one assignment of a strided array: 7 µs, which it takes to find the memory that two of them span."""
_MAX_PACKED_FIRST: Final = SCRATCH
"""The bytes of a strided input that is packed before it is repeated."""


_Layout = tuple[np.dtype[Any], tuple[int, ...], tuple[int, ...]]
_kept: Final[dict[tuple[Any, ...], _Prepared]] = {}


def _prepared(
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    repeats: tuple[int, ...],
    target: Target,
    against: Against,
    out: _Layout | None,
) -> _Prepared:
    """Check and plan the tile of arrays that lie in memory alike; ``out`` is the output's dtype, shape and strides."""
    require_native(dtype, "the array", "array")
    data_type = DATA_TYPES.get(dtype.str[1:])
    if data_type is None:
        raise TypeError(f"DirectML has no tensor data type for {dtype}")
    request = dialect.tile(dtype.name, shape, repeats)
    described = TileOperatorDesc.from_input(
        data_type=data_type, sizes=request.shape or (1,), repeats=request.repeats or (1,)
    )
    require_executable("tile", described, target, against)
    out_strides = None if out is None else _fitting_strides(*out, dtype, request.output_shape)
    strides = (0,) * (len(request.shape) - len(shape)) + strides
    return _Prepared(described, target, request.output_shape, _route(dtype, request, strides, out_strides))


def _route(
    dtype: np.dtype[Any], request: Request, strides: tuple[int, ...], out_strides: tuple[int, ...] | None
) -> _Route:
    """The route between arrays of these strides, in bytes; None for a contiguous output."""
    packed, packed_output = _packed(dtype, request.shape), _packed(dtype, request.output_shape)
    if out_strides is None or _lie_alike(request.output_shape, out_strides, packed_output):
        out_strides = packed_output
    is_packed_first = False
    if is_contiguous := out_strides == packed_output:
        size = dtype.itemsize * math.prod(request.shape)
        is_packed = _lie_alike(request.shape, strides, packed)
        is_packed_first = not is_packed and size <= _MAX_PACKED_FIRST and max(request.repeats) > 1
        is_packed_first &= _starts(map(Axis, request.shape, strides, packed)) <= _MAX_STRIDED_STARTS
        is_contiguous = is_packed or is_packed_first
    axes = tile_axes(request.shape, request.repeats, strides, out_strides)
    pairs = [axis.length for axis in axes], [length for size in request.shape for length in (1, size)]
    if is_contiguous and not is_packed_first:
        axes = coalesce(axes)
        pairs = [axis.length for axis in axes], [axis.length if axis.source else 1 for axis in axes]
    plan = plan_tile(dtype.itemsize, request.shape, request.repeats, packed if is_contiguous else strides, out_strides)
    most = _MAX_STARTS if is_contiguous else _MAX_STRIDED_STARTS
    is_one_assignment = len(plan.blocks) == 1 and _starts(axes) <= most
    return _Route(
        (tuple(pairs[0]), tuple(pairs[1])) if is_one_assignment else None, plan, is_contiguous, is_packed_first
    )


def _starts(axes: Iterable[Axis]) -> int:
    """The number of NumPy's inner loops along axes."""
    return math.prod(axis.length for axis in coalesce(axes)[:-1])


def _lie_alike(shape: tuple[int, ...], strides: tuple[int, ...], others: tuple[int, ...]) -> bool:
    """Whether the strides of all dimensions that have several elements are the same."""
    return all(size == 1 or a == b for size, a, b in zip(shape, strides, others, strict=True))


def _packed(dtype: np.dtype[Any], shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a contiguous array, in bytes."""
    return tuple(stride * dtype.itemsize for stride in packed_strides(shape))


def _region(array: NDArray[Any]) -> Region:
    return Region(array) if array.flags.c_contiguous else Region(*region_of(array))


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
    run(plan, _region(source), _region(out))
    return out.reshape(-1).view(array.dtype).reshape(request.output_shape)


def onnx_type(array: NDArray[Any]) -> str:
    """ONNX's name of an array's data type, in NumPy's spelling; strings are arrays of str, bytes or objects."""
    return "string" if array.dtype.kind in _STRINGS + _OBJECTS else array.dtype.name


def _counts(repeats: int | Iterable[int]) -> tuple[int, ...]:
    if isinstance(repeats, tuple | list):
        return tuple(map(index, repeats))
    try:
        return (index(repeats),)  # type: ignore[arg-type]  # an array of rank 0 is an index too
    except TypeError:
        if not isinstance(repeats, Iterable):
            raise TypeError(f"repeats is {repeats!r}; an integer or several were expected") from None
        return tuple(map(index, repeats))


def _fitting_strides(
    dtype: np.dtype[Any],
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    wanted_dtype: np.dtype[Any],
    wanted_shape: tuple[int, ...],
) -> tuple[int, ...]:
    if shape != wanted_shape or dtype != wanted_dtype:
        raise ValueError(f"out is {dtype} of shape {shape}; {wanted_dtype} of shape {wanted_shape} was expected")
    if shares_addresses((*shape, dtype.itemsize), (*map(abs, strides), 1)) is not False:  # byte by byte
        raise ValueError(f"the strides {strides} let elements of out share memory")
    return strides


def _share_memory(out: NDArray[Any], array: NDArray[Any]) -> bool:
    try:
        return np.shares_memory(out, array, _MAX_WORK)
    except np.exceptions.TooHardError:
        return True
