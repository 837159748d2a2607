"""The rules of bindings, of the device's calls and of dispatch, with what they refuse and what they accept.

Each rule has a refused and an accepted call in docs/generator/call_examples.py, which test_docs.py tries; the cases
here are those in which a rule looks at something else.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product, starmap
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dml_tile.bindings.resources import BindingDesc, Buffer, BufferArrayBinding, BufferBinding, Direct3DDevice
from dml_tile.bindings.slots import (
    INITIALIZER_INPUT,
    INITIALIZER_OUTPUT,
    INITIALIZER_PERSISTENT,
    PERSISTENT,
    TEMPORARY,
    TENSOR,
    BindingStage,
    BindPoint,
    BoundRange,
    Slot,
    SlotBinding,
    SlotKind,
)
from dml_tile.checks.catalogue import RULES
from dml_tile.descriptors.tile import BufferTensorDesc
from dml_tile.device.table import _bind_point
from dml_tile.directml.enums import HRESULT, BindingType, FeatureLevel, HeapType, ResourceDimension
from dml_tile.directml.targets import Target
from dml_tile.findings import Basis
from dml_tile.rules.binding import BIND_POINT_RULES, RANGE_RULES, SLOT_RULES, is_ordinary_binding
from dml_tile.rules.device import Creation, InitializerObject
from dml_tile.rules.dispatch import (
    DISPATCH_RULES,
    ORDINARY_DISPATCH,
    TABLE_RULES,
    Dispatch,
    TableRequest,
    is_ordinary_table,
)
from tests.helpers.descriptors import at

D, R = Basis.DOCUMENTED, Basis.RUNTIME
INPUT, OWNED_INPUT, RESOURCE = "InputTensor", "operators[0].InputTensor", "PersistentResource"

ALIGNED: Final = Slot.tensor(
    "InputTensor",
    BufferTensorDesc.model_validate({"DataType": "UINT8", "Sizes": [8], "GuaranteedBaseOffsetAlignment": 64}),
)
OWNED: Final = BufferTensorDesc.model_validate({"DataType": "UINT8", "Sizes": [8], "Flags": "OWNED_BY_DML"})
PLAIN: Final = BufferTensorDesc.model_validate({"DataType": "UINT8", "Sizes": [8]})
GOOD: Final = BufferBinding(Buffer(64))
EMPTY: Final = BufferBinding(None)
DIRECT3D_DEVICE: Final = Direct3DDevice()
LATE: Final = BufferBinding(Buffer(64), 2**64 - 16, 32)


def point(stage: BindingStage, *, owned: bool = False, bound: bool) -> BindPoint:
    kind = TENSOR if stage == "execution" else INITIALIZER_INPUT
    return BindPoint(Slot.tensor("InputTensor", OWNED if owned else PLAIN, kind), bound)


def tensor(binding: Any, kind: int = BindingType.BUFFER) -> SlotBinding:
    return SlotBinding(Slot.tensor("InputTensor", PLAIN), BindingDesc(kind, binding))


def resource(
    slot_kind: SlotKind, size: int, binding: BufferBinding | BufferArrayBinding | None, kind: int = BindingType.BUFFER
) -> SlotBinding:
    return SlotBinding(Slot.resource("PersistentResource", slot_kind, size), BindingDesc(kind, binding))


def initialised(desc: BufferTensorDesc, *bindings: BufferBinding) -> SlotBinding:
    slot = Slot.tensor("operators[0].InputTensor", desc, INITIALIZER_INPUT)
    return SlotBinding(slot, BindingDesc(BindingType.BUFFER_ARRAY, BufferArrayBinding(bindings)))


def of_buffer(**options: Any) -> SlotBinding:
    """A buffer bound to an input of a device that was made on DIRECT3D_DEVICE."""
    binding = BufferBinding(Buffer(64, **options))
    return SlotBinding(Slot.tensor("InputTensor", PLAIN), BindingDesc(BindingType.BUFFER, binding), DIRECT3D_DEVICE)


def of_64(offset: int, size: int | None = None) -> BufferBinding:
    """A range of a buffer of 64 bytes."""
    return BufferBinding(Buffer(64), offset, size)


def unbound(slot_kind: SlotKind) -> SlotBinding:
    return resource(slot_kind, 0, None, BindingType.NONE)


def unneeded(desc: BindingDesc) -> SlotBinding:
    """A binding of an initializer's input where there is nothing to bind."""
    return SlotBinding(Slot.tensor(OWNED_INPUT, PLAIN, INITIALIZER_INPUT), desc)


def null(slot_kind: SlotKind, size: int) -> SlotBinding:
    return SlotBinding(Slot.resource(RESOURCE, slot_kind, size), None)


def on(heap: str, flags: int = 4) -> BufferBinding:
    return BufferBinding(Buffer(64, heap=heap, flags=flags))


NONE_GIVEN: Final = BindingDesc()
NONE_WITH_DESC: Final = BindingDesc(BindingType.NONE, BufferArrayBinding([EMPTY]))
ARRAY_OF_NULL: Final = BindingDesc(BindingType.BUFFER_ARRAY, BufferArrayBinding(None))
NO_RANGES: Final = BufferArrayBinding(())
ARRAY: Final = BindingType.BUFFER_ARRAY
COMPILED: Final = InitializerObject(True, True)
PERSISTENT_SLOT: Final = Slot.resource("PersistentResource", PERSISTENT, 8)


@dataclass(frozen=True)
class Case:
    """A rule, what it refuses, something similar that it accepts; where, why, at which level and how it refuses."""

    rule: str
    refused: Any
    accepted: Any
    path: str
    basis: Basis | None = None
    level: str = "6_4"
    said: str = ""


ROWS: Final[dict[str, list[tuple[Any, ...]]]] = {
    # rule: what it refuses, something similar that it accepts, the field, then basis, level and words where they differ
    "DML-BINDING-Offset": [
        (BoundRange(ALIGNED, 8, 32), BoundRange(ALIGNED, 8, 128), INPUT),
        (BoundRange(PERSISTENT_SLOT, 8, 128), BoundRange(PERSISTENT_SLOT, 8, 256), RESOURCE),
    ],
    "DML-BINDING-missing": [
        (point("initialisation", owned=True, bound=False), point("initialisation", bound=False), INPUT),
        (BindPoint(ALIGNED, False, "why"), BindPoint(ALIGNED, True, "why"), INPUT, D),
    ],
    "DML-BINDING-owned": [
        (point("initialisation", bound=True), point("initialisation", owned=True, bound=True), INPUT),
    ],
    "DML-BINDING-range": [
        (tensor(of_64(32, 48)), tensor(GOOD), INPUT),
        (tensor(LATE), tensor(of_64(32)), INPUT, D),
        (tensor(of_64(2**64 - 16, 80)), tensor(GOOD), INPUT, D),
        (tensor(of_64(2**64 - 16, 81)), tensor(GOOD), INPUT),
    ],
    "DML-BINDING-unordered-access": [
        (tensor(on("DEFAULT", 8)), tensor(on("DEFAULT", 12)), INPUT),
        (tensor(on("DEFAULT", 0)), initialised(OWNED, on("DEFAULT", 0)), INPUT),
    ],
    "DML-BINDING-heap": [
        (tensor(on("UPLOAD")), initialised(OWNED, on("UPLOAD")), INPUT),
        (tensor(on("GPU_UPLOAD")), tensor(on("DEFAULT")), INPUT),
        (tensor(on("CUSTOM")), tensor(on("DEFAULT")), INPUT, D),
        (initialised(OWNED, on("CUSTOM")), initialised(OWNED, GOOD), OWNED_INPUT, D),
        (initialised(OWNED, on("READBACK")), initialised(OWNED, GOOD), OWNED_INPUT),
        (resource(PERSISTENT, 8, on("CUSTOM")), resource(PERSISTENT, 8, GOOD), RESOURCE, D),
        (resource(INITIALIZER_OUTPUT, 8, on("CUSTOM")), resource(INITIALIZER_OUTPUT, 8, on("DEFAULT")), RESOURCE),
    ],
    "DML-BINDING-count": [((None, 1), (0, 1), "bindings")],
    "DML-BINDING-Type": [
        (tensor(None, 3), initialised(OWNED, GOOD), "InputTensor.Type"),
        (resource(TEMPORARY, 0, NO_RANGES, ARRAY), resource(TEMPORARY, 0, EMPTY), "PersistentResource.Type", D),
        (resource(PERSISTENT, 8, NO_RANGES, ARRAY), resource(PERSISTENT, 8, GOOD), "PersistentResource.Type"),
    ],
    "DML-BINDING-Desc-null": [(unneeded(ARRAY_OF_NULL), initialised(PLAIN, EMPTY), f"{OWNED_INPUT}.Bindings")],
    "DML-BINDING-BindingCount": [
        (initialised(OWNED), initialised(OWNED, GOOD), f"{OWNED_INPUT}.BindingCount"),
        (initialised(PLAIN), initialised(PLAIN, EMPTY), f"{OWNED_INPUT}.BindingCount", R),
    ],
    "DML-BINDING-unneeded": [
        (resource(TEMPORARY, 0, GOOD), resource(PERSISTENT, 8, GOOD), RESOURCE),
        (resource(INITIALIZER_OUTPUT, 0, GOOD), resource(INITIALIZER_OUTPUT, 0, EMPTY), RESOURCE),
    ],
    "DML-BINDING-initializer-persistent": [
        (resource(INITIALIZER_PERSISTENT, 0, GOOD), resource(INITIALIZER_OUTPUT, 8, GOOD), RESOURCE),
        (unbound(INITIALIZER_PERSISTENT), unbound(PERSISTENT), RESOURCE, R),
    ],
    "DML-BINDING-initializer-NONE": [
        (unneeded(NONE_GIVEN), SlotBinding(Slot.tensor("InputTensor", OWNED), NONE_GIVEN), f"{OWNED_INPUT}.Type"),
        (unneeded(NONE_GIVEN), unneeded(NONE_WITH_DESC), f"{OWNED_INPUT}.Type"),
    ],
    "DML-BINDING-Dimension": [
        (of_buffer(dimension=7), of_buffer(), INPUT, None, "6_4", "the resource has dimension 7, but")
    ],
    "DML-DISPATCH-command-list": [(Dispatch(list_type=9), Dispatch(list_type=0), "commandList")],
    "DML-TABLE-empty": [(Dispatch(filled=False), Dispatch(), "")],
    "DML-DISPATCH-null": [
        (Dispatch(list_type=None), Dispatch(), "commandList"),
        (Dispatch(dispatchable=False), Dispatch(), "dispatchable"),
    ],
    "DML-INITIALIZER-operators-null": [((None,), (COMPILED,), "operators[0]")],
    "DML-BINDING-null": [
        (null(PERSISTENT, 8), resource(PERSISTENT, 8, GOOD), RESOURCE, None, "6_4", "null was provided; DirectML would")
    ],
    "DML-DEVICE-flags": [
        (Creation(2, None), Creation(1, None), "flags"),
        (Creation(0x80000000, None), Creation(0, None), "flags", D, "5_0"),
        (Creation(0x80000000, None), Creation(0, None), "flags", None, "5_1"),
        (Creation(0x80000002, None), Creation(0, None), "flags", None, "5_0"),
    ],
    "DML-DEVICE-minimumFeatureLevel": [
        (Creation(0, 0x80000000), Creation(0, 0), "minimumFeatureLevel", D),
        (Creation(0, 0x7FFFFFFF), Creation(0, 0), "minimumFeatureLevel", None, "6_4", "0x7fffffff"),
        (Creation(0, 0x5100), Creation(0, 0x5000), "minimumFeatureLevel", None, "5_0"),
        (Creation(0, 0xFFFFFFFF), Creation(0, None), "minimumFeatureLevel", D, "5_0"),
    ],
    "DML-COMPILE-flags": [(8, 7, "flags")],
    "DML-INITIALIZER-operators-device": [((COMPILED, InitializerObject(False, True)), (COMPILED,), "operators[1]")],
    "DML-TABLE-handle": [(TableRequest(True, 2, 0, 1, 2), TableRequest(True, 0, 0, 1, 0), "CPUDescriptorHandle")],
}
CASES: Final = [Case(rule, *row) for rule, rows in ROWS.items() for row in rows]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}-{case.level}")
def test_a_rule_refuses_and_accepts(case: Case) -> None:
    rule = RULES[case.rule]
    finding, *_ = rule.findings(case.refused, at(case.level))
    assert finding.path == case.path
    assert finding.basis == (case.basis or rule.basis)
    assert finding.message.startswith(case.said)
    assert not list(rule.findings(case.accepted, at(case.level)))


@pytest.mark.parametrize(("desc", "suggestion"), [(OWNED, None), (PLAIN, "bind an array of one empty buffer binding")])
def test_an_empty_binding_is_suggested_where_there_is_nothing_to_bind(
    desc: BufferTensorDesc, suggestion: str | None
) -> None:
    (finding,) = RULES["DML-BINDING-BindingCount"].findings(initialised(desc), at("6_4"))
    assert (finding.suggestion or "").startswith(suggestion or "")
    assert bool(finding.suggestion) == bool(suggestion)


def test_an_ordinary_table_breaks_no_rule() -> None:
    owners, required_counts, handles, sizes = [True, False, None], [None, 0, 2], [0, 1], [0, 1, 2, 3]
    requests = starmap(TableRequest, product(owners, required_counts, handles, handles, sizes))
    for request in requests:
        findings = [f for rule in TABLE_RULES for f in rule.findings(request, at("6_4"))]
        ordinary = request.cpu_descriptor_handle and request.gpu_descriptor_handle
        assert is_ordinary_table(request) == (not findings and bool(ordinary)), request


@pytest.mark.parametrize("level", list(FeatureLevel))
def test_an_ordinary_dispatch_breaks_no_rule(level: FeatureLevel) -> None:
    findings = [f for rule in DISPATCH_RULES for f in rule.findings(ORDINARY_DISPATCH, Target(level))]
    assert not findings


@pytest.mark.parametrize(("level", "result"), [("4_1", HRESULT.E_INVALIDARG), ("5_0", HRESULT.E_INVALIDARG),
                                               ("5_1", HRESULT.DXGI_ERROR_UNSUPPORTED)])  # fmt: skip
def test_a_missing_debug_layer_is_answered_otherwise_than_documented(level: str, result: HRESULT) -> None:
    runtime, documented = RULES["DML-DEVICE-debug-layer"].findings(Creation(1, None), at(level))
    assert (runtime.hresult, runtime.basis) == (result, R)
    assert (documented.hresult, documented.basis) == (None, D)
    assert str(HRESULT.DXGI_ERROR_SDK_COMPONENT_MISSING) in documented.message


@pytest.mark.parametrize(("guaranteed", "alignment"), [(0, 16), (8, 16), (16, 16), (64, 64)])
def test_a_tensor_s_alignment_is_at_least_16(guaranteed: int, alignment: int) -> None:
    fields = {"DataType": "UINT8", "Sizes": [8], "GuaranteedBaseOffsetAlignment": guaranteed}
    assert Slot.tensor("InputTensor", BufferTensorDesc.model_validate(fields)).alignment == alignment


# The short way of a binding table

TARGET: Final = at("6_4")
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
