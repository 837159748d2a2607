"""Tiles NumPy arrays as numpy.tile does.

Page: https://numpy.org/doc/stable/reference/generated/numpy.tile.html
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import index, mul
from typing import Any, Final, NamedTuple, Protocol

import numpy as np
from numpy import empty, may_share_memory, ndarray
from numpy.typing import ArrayLike, NDArray

from dml_tile.bindings.memory import region_of
from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.dialects import numpy as dialect
from dml_tile.dialects.request import Request
from dml_tile.directml.dtypes import ARRAY_TYPES, require_native, require_unmasked
from dml_tile.directml.targets import Target, TargetLike
from dml_tile.execution.assignment import MAX_STARTS, MAX_STRIDED_STARTS, Assignment, assignment_of, starts
from dml_tile.execution.executor import require_executable, store
from dml_tile.execution.numpy_calls import Region
from dml_tile.execution.plan import Plan
from dml_tile.execution.planner import plan_tile
from dml_tile.execution.threads import run, run_once
from dml_tile.execution.thresholds import SCRATCH
from dml_tile.findings import Against
from dml_tile.geometry.axes import Axis, tile_axes
from dml_tile.geometry.layout import lie_alike, packed_strides, shares_addresses
from dml_tile.simulation.calls import record
from dml_tile.simulation.target import resolve

_STRINGS: Final = "SUT"
_OBJECTS: Final = "O"

_DLPACK_CPU: Final = 1
"""kDLCPU, of https://dmlc.github.io/dlpack/latest/c_api.html"""

_MAX_WORK: Final[Any] = 10_000
"""The most candidates that NumPy tries to tell two strided arrays apart; beyond that they are taken to overlap."""


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
    target = resolve(target)
    counts = known if (known := _integers.get(id(repeats), ())) is repeats else _counts(repeats)
    dtype, shape, flags = array.dtype, array.shape, array.flags
    layout = flags.c_contiguous or array.strides
    key: tuple[object, ...]  # what is kept holds its target, so that no other has its id
    if out is None:
        key = dtype, shape, layout, counts, id(target), against
        prepared = _prepared_tiles.get(key) or _prepare(key, array, repeats, counts, target, against)
        out = empty(prepared.shape, dtype)
    else:
        if type(out) is not ndarray:
            _require_array(out)
        out_flags = out.flags
        if not out_flags.writeable:
            raise ValueError("out is read-only; a writable array was expected")
        out_layout = out_flags.c_contiguous or out.strides
        key = dtype, shape, layout, counts, id(target), against, out.dtype, out.shape, out_layout
        prepared = _prepared_tiles.get(key) or _prepare(key, array, repeats, counts, target, against, out)
        have_memory_of_their_own = flags.owndata and out_flags.owndata and out is not array
        if not have_memory_of_their_own and may_share_memory(out, array) and _share_memory(out, array):
            raise ValueError("out shares memory with the array; Tile has no in-place form")
    desc, target, _, assignment, plan, is_contiguous, is_packed_first, order = prepared
    if assignment is not None:
        assignment.make(array, out)
    elif is_contiguous:
        if order is not None:
            array = array.transpose(order)
        elif is_packed_first:
            array = array.copy()
        run_once(plan, array, out)
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


class _Prepared(NamedTuple):
    """A tile that DirectML accepts at a target, and the fastest way to write it between arrays that lie alike.

    That is the assignment, if there is one. Else it is the plan: between contiguous arrays, where the input is copied
    to one beforehand if it ``is_packed_first``, or is one with its axes in another ``order``; or between any.
    """

    desc: TileOperatorDesc
    target: Target
    shape: tuple[int, ...]
    assignment: Assignment | None
    plan: Plan
    is_contiguous: bool
    is_packed_first: bool
    order: tuple[int, ...] | None


_MAX_PACKED_FIRST: Final = SCRATCH
"""The bytes of a strided input that is packed before it is repeated."""


_prepared_tiles: Final[dict[tuple[object, ...], _Prepared]] = {}
_integers: Final[dict[int, tuple[int, ...]]] = {}
"""Repeats that are tuples of Python's integers, and so need not be converted, by their ids."""


def _prepare(
    key: tuple[object, ...],
    array: NDArray[Any],
    repeats: int | Iterable[int],
    counts: tuple[int, ...],
    target: Target,
    against: Against,
    out: NDArray[Any] | None = None,
) -> _Prepared:
    """Check and plan the tile of arrays that lie in memory alike, and store it for the next call."""
    dtype = array.dtype
    require_native(dtype, "the array", "array")
    data_type = ARRAY_TYPES.get(dtype.name)
    if data_type is None:
        raise TypeError(f"DirectML has no tensor data type for {dtype}")
    request = dialect.tile(dtype.name, array.shape, counts)
    desc = TileOperatorDesc.from_input(
        data_type=data_type, sizes=request.shape or (1,), repeats=request.repeats or (1,)
    )
    require_executable("tile", desc, target, against)
    if out is not None:
        _require_fit(out, dtype, request.output_shape)
    prepared = _prepared(desc, target, request, array, out)
    store(_prepared_tiles, key, prepared)
    if type(repeats) is tuple and {int}.issuperset(map(type, repeats)):
        store(_integers, id(repeats), repeats)
    return prepared


def _prepared(
    desc: TileOperatorDesc, target: Target, request: Request, array: NDArray[Any], out: NDArray[Any] | None
) -> _Prepared:
    """Choose the way between such arrays; None stands for a contiguous output."""
    size = array.itemsize
    strides = (0,) * (len(request.shape) - array.ndim) + array.strides
    packed, packed_output = packed_strides(request.shape, size), packed_strides(request.output_shape, size)
    out_strides = packed_output
    if out is not None and not lie_alike(request.output_shape, out.strides, packed_output):
        out_strides = out.strides
    is_packed = is_packed_first = False
    order = None
    if out_strides == packed_output:
        is_packed = lie_alike(request.shape, strides, packed)
        order = None if is_packed else _order_in_memory(array)
        is_packed_first = (
            not is_packed
            and order is None
            and array.nbytes <= _MAX_PACKED_FIRST
            and max(request.repeats) > 1
            and starts(map(Axis, request.shape, strides, packed)) <= MAX_STRIDED_STARTS
        )
    is_contiguous = is_packed or is_packed_first or order is not None
    if is_packed_first:
        plan = plan_tile(size, request.shape, request.repeats, packed, out_strides)
    else:
        plan = plan_tile(size, request.shape, request.repeats, strides, out_strides)
    axes = tile_axes(request.shape, request.repeats, strides, out_strides)
    assignment = None
    if len(plan.blocks) == 1 and starts(axes) <= (MAX_STARTS if is_contiguous else MAX_STRIDED_STARTS):
        assignment = assignment_of(request.shape, request.repeats, is_packed=is_packed)
        assignment = assignment.between(array.shape, request.output_shape)
    return _Prepared(desc, target, request.output_shape, assignment, plan, is_contiguous, is_packed_first, order)


def _order_in_memory(array: NDArray[Any]) -> tuple[int, ...] | None:
    """The order of axes in which an array is contiguous; None if there is none."""
    order = tuple(sorted(range(array.ndim), key=array.strides.__getitem__, reverse=True))
    return order if array.transpose(order).flags.c_contiguous else None


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


def _require_fit(out: NDArray[Any], dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    if out.shape != shape or out.dtype != dtype:
        raise ValueError(f"out is {out.dtype} of shape {out.shape}; {dtype} of shape {shape} was expected")
    if shares_addresses((*shape, dtype.itemsize), (*map(abs, out.strides), 1)) is not False:  # byte by byte
        raise ValueError(f"the strides {out.strides} let elements of out share memory")


def _share_memory(out: NDArray[Any], array: NDArray[Any]) -> bool:
    try:
        return np.shares_memory(out, array, _MAX_WORK)
    except np.exceptions.TooHardError:
        return True
