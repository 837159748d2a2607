"""The fields of any DML_TILE_OPERATOR_DESC that C can hold, as strategies of hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from dml_tile.directml.enums import UINT64_MAX, UINT_MAX

UINTS = st.integers(0, UINT_MAX)
ARRAYS = st.none() | st.lists(UINTS, max_size=12)
BUFFERS = st.fixed_dictionaries(
    {
        "DataType": UINTS,
        "Flags": UINTS,
        "DimensionCount": UINTS,
        "Sizes": ARRAYS,
        "Strides": st.none() | st.lists(UINTS, min_size=1, max_size=12),
        "TotalTensorSizeInBytes": st.integers(0, UINT64_MAX),
        "GuaranteedBaseOffsetAlignment": UINTS,
    }
)
TENSORS = st.none() | st.fixed_dictionaries({"Type": UINTS, "Desc": st.none() | BUFFERS})
TILE_FIELDS = st.fixed_dictionaries(
    {"InputTensor": TENSORS, "OutputTensor": TENSORS, "RepeatsCount": UINTS, "Repeats": ARRAYS}
)
