"""The short way of a binding table, held to the rules of bindings."""

from __future__ import annotations

from typing import Final

from hypothesis import given
from hypothesis import strategies as st

from dml_tile.bindings.resources import BindingDesc, Buffer, BufferArrayBinding, BufferBinding, Direct3DDevice
from dml_tile.bindings.slots import (
    INITIALIZER_INPUT,
    INITIALIZER_OUTPUT,
    INITIALIZER_PERSISTENT,
    PERSISTENT,
    TEMPORARY,
    BoundRange,
    Slot,
    SlotBinding,
)
from dml_tile.descriptors.tile import BufferTensorDesc
from dml_tile.device.table import _bind_point
from dml_tile.directml.enums import BindingType, HeapType, ResourceDimension
from dml_tile.rules.binding import BIND_POINT_RULES, RANGE_RULES, SLOT_RULES, is_ordinary_binding
from tests.helpers.descriptors import at

TARGET: Final = at("6_4")
DIRECT3D_DEVICE: Final = Direct3DDevice()
FIELDS: Final = {"DataType": "UINT8", "Sizes": [8]}
PLAIN: Final = BufferTensorDesc.model_validate(FIELDS)
OWNED: Final = BufferTensorDesc.model_validate({**FIELDS, "Flags": "OWNED_BY_DML"})
ALIGNED: Final = Slot.tensor(
    "InputTensor", BufferTensorDesc.model_validate({**FIELDS, "GuaranteedBaseOffsetAlignment": 64})
)
SLOTS: Final = (
    Slot.tensor("InputTensor", PLAIN),
    Slot.tensor("InputTensor", OWNED),
    ALIGNED,
    Slot.tensor("operators[0].InputTensor", PLAIN, INITIALIZER_INPUT),
    Slot.tensor("operators[0].InputTensor", OWNED, INITIALIZER_INPUT),
    Slot.resource("PersistentResource", PERSISTENT, 8),
    Slot.resource("TemporaryResource", TEMPORARY, 0),
    Slot.resource("PersistentResource", INITIALIZER_PERSISTENT, 0),
    Slot.resource("operators[0].PersistentResource", INITIALIZER_OUTPUT, 8),
)
BUFFERS: Final = st.builds(
    Buffer,
    st.sampled_from([8, 64, 256]),
    heap=st.sampled_from([*HeapType, 9]),
    flags=st.sampled_from([0, 4, 5]),
    dimension=st.sampled_from([*ResourceDimension, 9]),
    direct3d_device=st.sampled_from([None, DIRECT3D_DEVICE, Direct3DDevice()]),
)
RANGES: Final = st.builds(
    BufferBinding,
    st.none() | BUFFERS,
    st.sampled_from([0, 8, 16, 64, 2**64 - 16]),
    st.none() | st.sampled_from([0, 7, 8, 32, 2**64 - 1]),
)
GIVEN: Final = (
    st.none()
    | st.just(BindingDesc())
    | st.builds(BindingDesc, st.just(BindingType.BUFFER), st.none() | RANGES)
    | st.builds(BindingDesc, st.just(BindingType.BUFFER_ARRAY), RANGES.map(lambda one: BufferArrayBinding([one])))
)


def broken(bound: SlotBinding) -> list[str]:
    """The rules that a binding breaks."""
    found = [finding for rule in SLOT_RULES for finding in rule.findings(bound, TARGET)]
    found += (finding for rule in BIND_POINT_RULES for finding in rule.findings(_bind_point(bound), TARGET))
    if bound.range is not None:
        binding = BoundRange(bound.slot, bound.range[0].size_in_bytes, bound.range[0].offset)
        found += (finding for rule in RANGE_RULES for finding in rule.findings(binding, TARGET))
    return [finding.rule for finding in found]


@given(st.sampled_from(SLOTS), GIVEN, st.sampled_from([DIRECT3D_DEVICE, Direct3DDevice()]))
def test_a_plainly_fine_binding_breaks_no_rule(
    slot: Slot, desc: BindingDesc | None, direct3d_device: Direct3DDevice
) -> None:
    bound = SlotBinding(slot, desc, direct3d_device)
    if is_ordinary_binding(bound):
        assert not broken(bound)


@given(st.sampled_from([0, 16, 64, 128]), st.sampled_from([7, 8, 64]), st.sampled_from([64, 72, 136]))
def test_an_ordinary_binding_takes_the_short_way_exactly_if_it_breaks_no_rule(
    offset: int, size_in_bytes: int, size: int
) -> None:
    for slot in (SLOTS[0], ALIGNED):
        binding = BufferBinding(Buffer(size), offset, size_in_bytes)
        bound = SlotBinding(slot, BindingDesc(BindingType.BUFFER, binding), DIRECT3D_DEVICE)
        assert is_ordinary_binding(bound) == (not broken(bound))
