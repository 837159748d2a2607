"""The fields of any DML_TILE_OPERATOR_DESC that C can hold, as strategies of hypothesis."""

from __future__ import annotations

from hypothesis import strategies as st

from dml_tile.directml.enums import UINT64_MAX, UINT_MAX

UINTS = st.integers(0, 9) | st.integers(0, UINT_MAX)
COUNTS = st.integers(0, 10) | UINTS
ARRAYS = st.none() | st.lists(UINTS, max_size=12)
BUFFERS = st.fixed_dictionaries(
    {
        "DataType": st.integers(0, 14) | UINTS,
        "Flags": UINTS,
        "DimensionCount": COUNTS,
        "Sizes": ARRAYS,
        "Strides": ARRAYS,
        "TotalTensorSizeInBytes": st.integers(0, UINT64_MAX),
        "GuaranteedBaseOffsetAlignment": UINTS,
    }
)
TENSORS = st.none() | st.fixed_dictionaries({"Type": st.integers(0, 1) | UINTS, "Desc": st.none() | BUFFERS})
TILE_FIELDS = st.fixed_dictionaries(
    {"InputTensor": TENSORS, "OutputTensor": TENSORS, "RepeatsCount": COUNTS, "Repeats": ARRAYS}
)
