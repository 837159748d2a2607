"""Random descriptors for hypothesis: valid tiles, ones with one fault, and whatever the C structs can hold.

A target is whatever ``Target.parse`` takes.
"""

from __future__ import annotations

from typing import Final

from hypothesis import strategies as st

from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.directml.enums import UINT64_MAX, UINT_MAX
from dml_tile.directml.targets import Target, TargetLike
from dml_tile.rules.descriptor import refusals_of
from tests.helpers.drafts import Draft, drafts, faulty_drafts

MAX_ELEMENTS: Final = 1024

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


def tiles(target: TargetLike = "6_4", *, max_elements: int = MAX_ELEMENTS) -> st.SearchStrategy[TileOperatorDesc]:
    """Tiles that pass ``check`` at the target: of each data type and dimension count in its row of the support table.

    They may be strided (inputs also broadcast and overlapping, outputs padded), have totals larger than need be,
    alignments, and inputs that DirectML owns. The output has at most ``max_elements`` elements.
    """
    return _made(drafts(Target.parse(target), max_elements))


def nearly_valid_tiles(target: TargetLike = "6_4") -> st.SearchStrategy[TileOperatorDesc]:
    """Tiles that ``check`` refuses at the target because of one fault."""
    return _made(faulty_drafts(Target.parse(target), MAX_ELEMENTS))


def invalid_tiles(target: TargetLike = "6_4") -> st.SearchStrategy[TileOperatorDesc]:
    """Whatever a DML_TILE_OPERATOR_DESC can hold, and ``check`` refuses at the target."""
    parsed = Target.parse(target)
    return _made(_ANY_TILE).filter(lambda desc: bool(refusals_of(desc, parsed)))


@st.composite
def _made(draw: st.DrawFn, fields: st.SearchStrategy[Draft]) -> TileOperatorDesc:
    """A descriptor of its fields; a composite, so that a counterexample is reported as a descriptor."""
    return TileOperatorDesc.model_validate(draw(fields))
