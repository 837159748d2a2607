"""Tiles NumPy arrays: as numpy.tile does, for what DirectML accepts, or as any dialect does, whatever DirectML accepts.

Page: https://numpy.org/doc/stable/reference/generated/numpy.tile.html
"""

from __future__ import annotations

from collections.abc import Iterable
from operator import index
from typing import Any, Final, NamedTuple

import numpy as np
from numpy import empty, may_share_memory, ndarray
from numpy.typing import ArrayLike, NDArray

from dml_tile.back_ends.dialects import NUMPY_TILE, Dialect
from dml_tile.bindings.memory import SupportsDLPack, as_array, require_array, share_memory
from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.directml.dtypes import ARRAY_TYPES, require_native
from dml_tile.directml.targets import Target, TargetLike
from dml_tile.execution.executor import require_executable
from dml_tile.execution.mover import Move, mover_of
from dml_tile.execution.steps import Lengths
from dml_tile.findings import Against
from dml_tile.geometry.layout import packed_strides, shares_addresses
from dml_tile.simulation.calls import record
from dml_tile.simulation.target import resolve

_STRINGS: Final = "SUTO"
"""The kinds of arrays that hold strings: of str, bytes and objects."""


def tile(
    array: ArrayLike | SupportsDLPack,
    repeats: int | Iterable[int],
    target: TargetLike | None = None,
    against: Against = "both",
    out: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """Tile an array as numpy.tile does, if DirectML accepts the tile at ``target``.

        >>> tile(np.array([[1, 2]], np.float32), (2, 2), "windows-11-21h2")
        array([[1., 2., 1., 2.],
               [1., 2., 1., 2.]], dtype=float32)

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
        array = as_array(array)
    target = resolve(target)
    if type(repeats) is not tuple:
        repeats = _counts(repeats)
    flags, layout, is_shared = array.flags, None, False
    if out is not None:
        if type(out) is not ndarray:
            require_array(out, "out")
        written = out.flags
        if not written.writeable:
            raise ValueError("out is read-only; a writable array was expected")
        layout = out.dtype, out.shape, None if written.c_contiguous else out.strides
        if out is array or not (written.owndata and flags.owndata):
            is_shared = may_share_memory(out, array) and share_memory(out, array)
    strides = None if flags.c_contiguous else array.strides  # those of a contiguous array follow from its shape
    key = array.dtype, array.shape, strides, repeats, id(target), against, layout
    try:
        kept = _prepared.get(key)
    except TypeError:  # a repeat that cannot be hashed
        kept = None
    if kept is None or kept.repeats is not repeats:
        kept = _prepared_for(key, kept, array, repeats, target, against, out)
    if is_shared:
        raise ValueError("out shares memory with the array; Tile has no in-place form")
    if out is None:
        out = empty(kept.shape, array.dtype)
    kept.move(array, out)
    record("tile", target, kept.desc)
    return out


class _Prepared(NamedTuple):
    """A tile that was checked and planned for arrays of one layout."""

    target: Target
    repeats: Lengths
    desc: TileOperatorDesc
    shape: Lengths
    move: Move


_prepared: Final[dict[tuple[object, ...], _Prepared]] = {}
"""By layouts, repeats and the target's id, which the value keeps alive: to hash a target takes long."""
_MAX_PREPARED: Final = 256


def _prepared_for(
    key: tuple[object, ...],
    kept: _Prepared | None,
    array: NDArray[Any],
    repeats: tuple[int, ...],
    target: Target,
    against: Against,
    out: NDArray[Any] | None,
) -> _Prepared:
    """Return the bound tile kept for equal repeats; else check and plan the tile, and keep it."""
    counts = tuple(map(index, repeats))  # raises TypeError for 3.0, which is found where 3 is known
    if kept is not None and counts == kept.repeats:
        return kept
    dtype, shape, strides, _, *others = key
    if all(type(repeat) is int for repeat in repeats):
        counts = repeats  # the tuple that is looked up next
    elif kept := _prepared.get((dtype, shape, strides, counts, *others)):  # the repeats' values may change
        return kept
    prepared = _prepare(array, counts, target, against, out)
    if len(_prepared) >= _MAX_PREPARED:
        _prepared.clear()
    _prepared[dtype, shape, strides, counts, *others] = prepared
    return prepared


def _prepare(
    array: NDArray[Any], repeats: Lengths, target: Target, against: Against, out: NDArray[Any] | None
) -> _Prepared:
    """Check and plan a tile."""
    dtype = array.dtype
    require_native(dtype, "the array", "array")
    data_type = ARRAY_TYPES.get(dtype.name)
    if data_type is None:
        raise TypeError(f"DirectML has no tensor data type for {dtype}")
    request = NUMPY_TILE.request(dtype.name, array.shape, repeats)
    desc = TileOperatorDesc.from_input(
        data_type=data_type, sizes=request.shape or (1,), repeats=request.repeats or (1,)
    )
    require_executable("tile", desc, target, against)
    shape = request.output_shape
    output_strides = packed_strides(shape, dtype.itemsize) if out is None else out.strides
    if out is not None:
        if (out.shape, out.dtype) != (shape, dtype):
            raise ValueError(f"out is {out.dtype} of shape {out.shape}; {dtype} of shape {shape} was expected")
        if shares_addresses((*shape, dtype.itemsize), (*map(abs, output_strides), 1)) is not False:  # byte by byte
            raise ValueError(f"the strides {output_strides} let elements of out share memory")
    strides = (0,) * (len(request.shape) - array.ndim) + array.strides
    mover = mover_of(dtype.itemsize, request.shape, request.repeats, strides, output_strides)
    return _Prepared(target, repeats, desc, shape, mover.tile)


def _counts(repeats: int | Iterable[int]) -> tuple[int, ...]:
    try:
        return (index(repeats),)  # type: ignore[arg-type]  # an array of rank 0 is an index too
    except TypeError:
        if not isinstance(repeats, Iterable):
            raise TypeError(f"repeats is {repeats!r}; an integer or several were expected") from None
        return tuple(map(index, repeats))


def tile_as(dialect: Dialect, array: ArrayLike, *arguments: Any) -> NDArray[Any]:
    """Tile an array as a dialect does, with the dialect's own arguments.

        >>> from dml_tile.back_ends.dialects import ONNX_TILE_1
        >>> tile_as(ONNX_TILE_1, [1.0, 2.0], 3, 0)
        array([1., 2., 1., 2., 1., 2.])

    Strings are arrays of str, bytes or objects, and NumPy tiles them; bfloat16 is ml_dtypes' dtype of that name. Raises
    DialectError if the specification rejects the tile, ValueError for a result that is too large for an array.
    """
    given = np.asarray(array)
    dtype = given.dtype
    name = "string" if dtype.kind in _STRINGS else dtype.name
    request = dialect.request(dialect.type_name(name), given.shape, *arguments)
    source = given.reshape(request.shape)
    out = np.empty(request.output_shape, dtype)  # in C order; numpy.tile crashes if a result is too large
    if not out.size:
        return out
    if dtype.hasobject or dtype.kind in _STRINGS:  # all others are moved as bits
        return np.tile(source, request.repeats)
    mover_of(dtype.itemsize, request.shape, request.repeats, source.strides, out.strides).tile(source, out)
    return out
