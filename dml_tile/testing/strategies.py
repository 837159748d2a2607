"""Random descriptors for hypothesis: valid tiles, ones with one fault, and whatever the C structs can hold.

    @pytest.mark.dml
    @given(desc=strategies.tiles())
    def test_every_tile_is_taken(desc): ...

A target is whatever ``Target.parse`` takes; None means the current target when a tile is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

import numpy as np

try:
    from hypothesis import strategies as st
except ImportError as error:
    raise ImportError("dml_tile.testing.strategies needs hypothesis: pip install hypothesis") from error

from dml_tile.bindings.memory import Bytes
from dml_tile.descriptors.tile import BufferTensorDesc, DataTypeLike, TileOperatorDesc
from dml_tile.directml.enums import UINT64_MAX, UINT_MAX
from dml_tile.directml.targets import Target, TargetLike
from dml_tile.rules.check import refusals_of
from dml_tile.simulation.target import resolve
from dml_tile.testing.drafts import Draft, drafts, faulty_drafts

MAX_ELEMENTS: Final = 1024
_MAX_BYTES: Final = 2**26
_MAX_SHRUNK_BYTES: Final = 128
"""The bytes of both buffers that are few enough for hypothesis to shrink each; more are made from a seed."""
_SEEDS: Final = st.integers(0, UINT_MAX)

_UINTS: Final = st.integers(0, 9) | st.sampled_from([2**16, 2**31, UINT_MAX - 1, UINT_MAX]) | st.integers(0, UINT_MAX)
_ARRAYS: Final = st.none() | st.lists(_UINTS, max_size=9)

_ANY_TENSOR: Final = st.none() | st.fixed_dictionaries(
    {"DataType": st.integers(0, 15) | _UINTS, "Sizes": _ARRAYS},
    optional={
        "Type": _UINTS,
        "NullDesc": st.booleans(),
        "Flags": _UINTS,
        "DimensionCount": _UINTS,
        "Strides": _ARRAYS,
        "TotalTensorSizeInBytes": _UINTS | st.integers(0, UINT64_MAX),
        "GuaranteedBaseOffsetAlignment": _UINTS,
    },
)
_ANY_TILE: Final = st.fixed_dictionaries(
    {"InputTensor": _ANY_TENSOR, "OutputTensor": _ANY_TENSOR, "Repeats": _ARRAYS}, optional={"RepeatsCount": _UINTS}
)


def tiles(
    target: TargetLike | None = None,
    *,
    max_elements: int = MAX_ELEMENTS,
    data_types: Iterable[DataTypeLike] = (),
    dimension_counts: Iterable[int] = (),
) -> st.SearchStrategy[TileOperatorDesc]:
    """Tiles that pass ``check`` at the target: of each data type and dimension count in its row of the support table.

    They may be strided (inputs also broadcast and overlapping, outputs padded), have totals larger than need be,
    alignments, and inputs that DirectML owns. The output has at most ``max_elements`` elements. ``data_types`` and
    ``dimension_counts`` name those to draw; the target must support one of each. ``st.from_type(TileOperatorDesc)``
    draws these tiles at the current target. Raises ValueError for an unknown target or data type, for ``max_elements``
    below 1, and, when a tile is drawn, where the target supports none.
    """
    if max_elements < 1:
        raise ValueError(f"max_elements is {max_elements}; it must be at least 1")
    types = (BufferTensorDesc(data_type=data_type, sizes=()).data_type for data_type in data_types)
    return _made(drafts(_parsed(target), max_elements, tuple(types), tuple(dimension_counts)))


def nearly_valid_tiles(target: TargetLike | None = None) -> st.SearchStrategy[TileOperatorDesc]:
    """Tiles that ``check`` refuses at the target because of one fault. Raises ValueError for an unknown target."""
    return _made(faulty_drafts(_parsed(target), MAX_ELEMENTS))


def invalid_tiles(target: TargetLike | None = None) -> st.SearchStrategy[TileOperatorDesc]:
    """Whatever a DML_TILE_OPERATOR_DESC can hold, and ``check`` refuses at the target.

    Null pointers, unknown enumerators, counts that lie, extreme integers. Raises ValueError for an unknown target.
    """
    parsed = _parsed(target)
    return _made(_ANY_TILE).filter(lambda desc: bool(refusals_of(desc, resolve(parsed))))


def tile_buffers(desc: TileOperatorDesc) -> st.SearchStrategy[tuple[Bytes, Bytes]]:
    """An input and an output buffer of TotalTensorSizeInBytes bytes each, with random bytes in both.

    Raises ValueError for a tensor without a description, and for one of more than 2^26 bytes.
    """
    sizes = []
    for name, tensor in (("InputTensor", desc.input_tensor), ("OutputTensor", desc.output_tensor)):
        if tensor is None or tensor.desc is None:
            raise ValueError(f"{name} has no DML_BUFFER_TENSOR_DESC, which would give the buffer's size")
        sizes.append(tensor.desc.total_tensor_size_in_bytes)
        if sizes[-1] > _MAX_BYTES:
            raise ValueError(f"{name} has {sizes[-1]} bytes; buffers of at most {_MAX_BYTES} are drawn")
    return _bytes(sum(sizes)).map(lambda memory: (memory[: sizes[0]].copy(), memory[sizes[0] :].copy()))


@st.composite
def _made(draw: st.DrawFn, fields: st.SearchStrategy[Draft]) -> TileOperatorDesc:
    """A descriptor of its fields; a composite, so that a counterexample is reported as a descriptor."""
    return TileOperatorDesc.model_validate(draw(fields))


@lru_cache(maxsize=_MAX_SHRUNK_BYTES)
def _bytes(size: int) -> st.SearchStrategy[Bytes]:
    if size <= _MAX_SHRUNK_BYTES:
        return st.binary(min_size=size, max_size=size).map(lambda data: np.frombuffer(data, np.uint8))
    return _SEEDS.map(lambda seed: np.random.default_rng(seed).integers(0, 256, size, np.uint8))


def _parsed(target: TargetLike | None) -> Target | None:
    return None if target is None else Target.parse(target)


st.register_type_strategy(TileOperatorDesc, tiles())
