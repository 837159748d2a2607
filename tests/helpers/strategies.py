"""Random descriptors for hypothesis: valid tiles, ones with one fault, and whatever the C structs can hold.

A target is whatever ``Target.parse`` takes; None means the current target when a tile is drawn.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
from hypothesis import strategies as st

from dml_tile.bindings.memory import Bytes
from dml_tile.descriptors.tile import TileOperatorDesc, described
from dml_tile.directml.enums import UINT64_MAX, UINT_MAX
from dml_tile.directml.targets import Target, TargetLike
from dml_tile.rules.descriptor import refusals_of
from dml_tile.simulation.target import resolve
from tests.helpers.drafts import Draft, drafts, faulty_drafts

MAX_ELEMENTS: Final = 1024
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


def tiles(target: TargetLike | None = None, *, max_elements: int = MAX_ELEMENTS) -> st.SearchStrategy[TileOperatorDesc]:
    """Tiles that pass ``check`` at the target: of each data type and dimension count in its row of the support table.

    They may be strided (inputs also broadcast and overlapping, outputs padded), have totals larger than need be,
    alignments, and inputs that DirectML owns. The output has at most ``max_elements`` elements.
    """
    return _made(drafts(_parsed(target), max_elements))


def nearly_valid_tiles(target: TargetLike | None = None) -> st.SearchStrategy[TileOperatorDesc]:
    """Tiles that ``check`` refuses at the target because of one fault."""
    return _made(faulty_drafts(_parsed(target), MAX_ELEMENTS))


def invalid_tiles(target: TargetLike | None = None) -> st.SearchStrategy[TileOperatorDesc]:
    """Whatever a DML_TILE_OPERATOR_DESC can hold, and ``check`` refuses at the target."""
    parsed = _parsed(target)
    return _made(_ANY_TILE).filter(lambda desc: bool(refusals_of(desc, resolve(parsed))))


def tile_buffers(desc: TileOperatorDesc) -> st.SearchStrategy[tuple[Bytes, Bytes]]:
    """An input and an output buffer of TotalTensorSizeInBytes bytes each, with random bytes in both."""
    source, output = (buffer.total_tensor_size_in_bytes for buffer in described(desc))
    return _bytes(source + output).map(lambda memory: (memory[:source].copy(), memory[source:].copy()))


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
