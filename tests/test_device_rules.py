"""The rules of bindings, of the device's calls and of dispatch, with what they refuse and what they accept.

Each rule has a refused and an accepted call in docs/generator/call_examples.py, which test_docs.py tries; the cases
here are those in which a rule looks at something else.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import pytest

from dml_tile.bindings.resources import (
    BindingDesc,
    BindingLike,
    Buffer,
    BufferArrayBinding,
    BufferBinding,
    Direct3DDevice,
    binding_desc,
)
from dml_tile.bindings.slots import (
    INITIALIZER_INPUT,
    INITIALIZER_OUTPUT,
    INITIALIZER_PERSISTENT,
    PERSISTENT,
    TEMPORARY,
    TENSOR,
    BoundRange,
    Slot,
    SlotKind,
    ranges_of,
)
from dml_tile.checks.catalogue import RULES
from dml_tile.descriptors.tile import TensorDesc
from dml_tile.directml.enums import HRESULT
from dml_tile.findings import Basis
from dml_tile.rules.binding import in_order_of_notice
from dml_tile.rules.device import Creation, InitializerObject
from dml_tile.rules.dispatch import (
    Dispatch,
    TableRequest,
)
from tests.helpers.descriptors import at

D, R, INFERRED = Basis.DOCUMENTED, Basis.RUNTIME, Basis.INFERRED
INPUT, FIRST_INPUT = "InputTensor", "operators[0].InputTensor"
RESOURCE, FIRST_RESOURCE = "PersistentResource", "operators[0].PersistentResource"
TEMPORARY_RESOURCE: Final = "TemporaryResource"
MINIMUM: Final = "minimumFeatureLevel"
NO_MORE: Final = "but directml-1.10.0 takes none above DML_FEATURE_LEVEL_5_0; ship DirectML 1.10.1 or later"


def tensor(name: str = INPUT, kind: SlotKind = TENSOR, **fields: Any) -> Slot:
    """The slot of a tensor of 8 bytes."""
    return Slot.tensor(name, TensorDesc.model_validate({"DataType": "UINT8", "Sizes": [8]} | fields), kind)


PLAIN: Final = tensor()
OWNED: Final = tensor(Flags="OWNED_BY_DML")
ALIGNED: Final = tensor(GuaranteedBaseOffsetAlignment=64)
FIRST_PLAIN: Final = tensor(FIRST_INPUT, INITIALIZER_INPUT)
FIRST_OWNED: Final = tensor(FIRST_INPUT, INITIALIZER_INPUT, Flags="OWNED_BY_DML")
KEPT: Final = Slot.resource(PERSISTENT, 8)
TEMPORARY_SLOT: Final = Slot.resource(TEMPORARY, 0)
INITIALIZER_SLOT: Final = Slot.resource(INITIALIZER_PERSISTENT, 0)
FIRST_OUTPUT: Final = Slot.resource(INITIALIZER_OUTPUT, 8)._replace(name=FIRST_RESOURCE)
FIRST_UNNEEDED: Final = FIRST_OUTPUT._replace(size_in_bytes=0)
DIRECT3D_DEVICE: Final = Direct3DDevice()
TARGET: Final = at("6_4")


def bound(slot: Slot, binding: BindingLike | None) -> BoundRange:
    """What is bound to a slot of a device that was made on DIRECT3D_DEVICE."""
    (found,) = ranges_of(None if binding is None else binding_desc(binding), [slot], DIRECT3D_DEVICE)
    return found


def placed(offset: int = 0, size: int | None = None, **options: Any) -> BufferBinding:
    """A range of a buffer of 64 bytes."""
    return BufferBinding(Buffer(64, **options), offset, size)


def array(*bindings: BufferBinding) -> BufferArrayBinding:
    return BufferArrayBinding(bindings)


GOOD: Final = placed()
EMPTY: Final = BufferBinding(None)
CUSTOM: Final = placed(heap="CUSTOM")
NONE: Final = BindingDesc()
COMPILED: Final = InitializerObject(True, True)


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
        (bound(ALIGNED, placed(32, 8)), bound(ALIGNED, placed(128, 8)), INPUT),
        (bound(KEPT, placed(128, 8)), bound(KEPT, placed(256, 8)), RESOURCE),
    ],
    "DML-BINDING-missing": [
        (BoundRange(FIRST_OWNED, None), BoundRange(FIRST_PLAIN, None), FIRST_INPUT),
        (BoundRange(ALIGNED, None, "why"), BoundRange(ALIGNED, GOOD, "why"), INPUT, D),
    ],
    "DML-BINDING-owned": [
        (BoundRange(FIRST_PLAIN, GOOD), BoundRange(FIRST_OWNED, GOOD), FIRST_INPUT),
        (BoundRange(FIRST_PLAIN, GOOD), BoundRange(FIRST_PLAIN, EMPTY), FIRST_INPUT),
    ],
    "DML-BINDING-range": [
        (bound(PLAIN, placed(32, 48)), bound(PLAIN, GOOD), INPUT),
        (bound(PLAIN, placed(2**64 - 16, 32)), bound(PLAIN, placed(32)), INPUT, D),
        (bound(PLAIN, placed(2**64 - 16, 80)), bound(PLAIN, GOOD), INPUT, D),
        (bound(PLAIN, placed(2**64 - 16, 81)), bound(PLAIN, GOOD), INPUT),
    ],
    "DML-BINDING-unordered-access": [
        (bound(PLAIN, placed(flags=8)), bound(PLAIN, placed(flags=12)), INPUT),
        (bound(PLAIN, placed(flags=0)), bound(FIRST_OWNED, array(placed(flags=0))), INPUT),
    ],
    "DML-BINDING-heap": [
        (bound(PLAIN, placed(heap="UPLOAD")), bound(FIRST_OWNED, array(placed(heap="UPLOAD"))), INPUT),
        (bound(PLAIN, placed(heap="GPU_UPLOAD")), bound(PLAIN, GOOD), INPUT),
        (bound(FIRST_OWNED, array(CUSTOM)), bound(FIRST_OWNED, array(GOOD)), FIRST_INPUT, D, "1_0"),
        (bound(PLAIN, CUSTOM), bound(FIRST_OWNED, array(CUSTOM)), INPUT, D),
        (bound(FIRST_OWNED, array(placed(heap="READBACK"))), bound(FIRST_OWNED, array(GOOD)), FIRST_INPUT),
        (bound(KEPT, CUSTOM), bound(KEPT, GOOD), RESOURCE, D),
        (bound(FIRST_OUTPUT, CUSTOM), bound(FIRST_OUTPUT, GOOD), FIRST_RESOURCE),
    ],
    "DML-BINDING-count": [((None, 1), (0, 1), "bindings")],
    "DML-BINDING-Type": [
        (bound(PLAIN, BindingDesc(3)), bound(FIRST_OWNED, array(GOOD)), f"{INPUT}.Type"),
        (bound(TEMPORARY_SLOT, array()), bound(TEMPORARY_SLOT, EMPTY), f"{TEMPORARY_RESOURCE}.Type", D),
        (bound(KEPT, array()), bound(KEPT, GOOD), f"{RESOURCE}.Type"),
    ],
    "DML-BINDING-Desc-null": [
        (bound(FIRST_PLAIN, BufferArrayBinding(None)), bound(FIRST_PLAIN, array(EMPTY)), f"{FIRST_INPUT}.Bindings")
    ],
    "DML-BINDING-BindingCount": [
        (bound(FIRST_OWNED, array()), bound(FIRST_OWNED, array(GOOD)), f"{FIRST_INPUT}.BindingCount"),
        (bound(FIRST_PLAIN, array()), bound(FIRST_PLAIN, array(EMPTY)), f"{FIRST_INPUT}.BindingCount", R),
    ],
    "DML-BINDING-unneeded": [
        (bound(TEMPORARY_SLOT, GOOD), bound(KEPT, GOOD), TEMPORARY_RESOURCE),
        (bound(FIRST_UNNEEDED, GOOD), bound(FIRST_UNNEEDED, EMPTY), FIRST_RESOURCE),
    ],
    "DML-BINDING-initializer-persistent": [
        (bound(INITIALIZER_SLOT, GOOD), bound(FIRST_OUTPUT, GOOD), RESOURCE),
        (bound(INITIALIZER_SLOT, NONE), bound(Slot.resource(PERSISTENT, 0), NONE), RESOURCE, R),
    ],
    "DML-BINDING-initializer-NONE": [
        (bound(FIRST_PLAIN, NONE), bound(OWNED, NONE), f"{FIRST_INPUT}.Type"),
        (bound(FIRST_PLAIN, NONE), bound(FIRST_PLAIN, BindingDesc(0, array(EMPTY))), f"{FIRST_INPUT}.Type"),
    ],
    "DML-BINDING-Dimension": [
        (bound(PLAIN, placed(dimension=7)), bound(PLAIN, GOOD), INPUT, None, "6_4", "the resource has dimension 7, but")
    ],
    "DML-DISPATCH-command-list": [(Dispatch(list_type=9), Dispatch(list_type=0), "commandList")],
    "DML-TABLE-empty": [(Dispatch(filled=False), Dispatch(), "")],
    "DML-DISPATCH-null": [
        (Dispatch(list_type=None), Dispatch(), "commandList"),
        (Dispatch(dispatchable=False), Dispatch(), "dispatchable"),
    ],
    "DML-INITIALIZER-operators-null": [((None,), (COMPILED,), "operators[0]")],
    "DML-BINDING-null": [
        (bound(KEPT, None), bound(KEPT, GOOD), RESOURCE, None, "6_4", "null was provided; DirectML would")
    ],
    "DML-DEVICE-DMLCreateDevice1": [
        (Creation(2, 0x1000), Creation(2, None), "", None, target, "the DirectML of ")
        for target in ("1_0", "windows-10-1903", "windows-10-1909", "directml-1.0.0")
    ],
    "DML-DEVICE-flags": [
        (Creation(2, None), Creation(1, None), "flags"),
        (Creation(0x80000000, None), Creation(0, None), "flags", D, "5_0"),
        (Creation(0x80000000, None), Creation(0, None), "flags", None, "5_1"),
        (Creation(0x80000002, None), Creation(0, None), "flags", None, "5_0"),
    ],
    "DML-DEVICE-minimumFeatureLevel": [
        (Creation(0, 0x80000000), Creation(0, 0), MINIMUM, D),
        (Creation(0, 0x7FFFFFFF), Creation(0, 0), MINIMUM, None, "6_4", "0x7fffffff"),
        (Creation(0, 0x5100), Creation(0, 0x5000), MINIMUM, None, "5_0"),
        (Creation(0, 0xFFFFFFFF), Creation(0, None), MINIMUM, D, "5_0"),
        (Creation(0, 0x5100), Creation(0, 0x5000), MINIMUM, D | INFERRED, "directml-1.10.0", NO_MORE),
        (Creation(0, 0x5200), Creation(0, None), MINIMUM, D | INFERRED, "directml-1.10.0+no-double-precision"),
        (Creation(0, 0x6000), Creation(0, 0x5200), MINIMUM, None, "directml-1.10.1"),
        (Creation(0, 0x6000), Creation(0, 0x5200), MINIMUM, None, "directml-1.10"),
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
    assert case.said in f"{finding.message}; {finding.suggestion}"
    assert not list(rule.findings(case.accepted, at(case.level)))


@pytest.mark.parametrize(
    ("slot", "suggestion"), [(FIRST_OWNED, None), (FIRST_PLAIN, "bind an array of one empty buffer binding")]
)
def test_an_empty_binding_is_suggested_where_there_is_nothing_to_bind(slot: Slot, suggestion: str | None) -> None:
    (finding,) = RULES["DML-BINDING-BindingCount"].findings(bound(slot, array()), at("6_4"))
    assert (finding.suggestion or "").startswith(suggestion or "")
    assert bool(finding.suggestion) == bool(suggestion)


@pytest.mark.parametrize(("level", "result"), [("4_1", HRESULT.E_INVALIDARG), ("5_0", HRESULT.E_INVALIDARG),
                                               ("5_1", HRESULT.DXGI_ERROR_UNSUPPORTED)])  # fmt: skip
def test_a_missing_debug_layer_is_answered_otherwise_than_documented(level: str, result: HRESULT) -> None:
    runtime, documented = RULES["DML-DEVICE-debug-layer"].findings(Creation(1, None), at(level))
    assert (runtime.hresult, runtime.basis) == (result, R)
    assert (documented.hresult, documented.basis) == (None, D)
    assert str(HRESULT.DXGI_ERROR_SDK_COMPONENT_MISSING) in documented.message


@pytest.mark.parametrize(("guaranteed", "alignment"), [(0, 16), (8, 16), (16, 16), (64, 64)])
def test_a_tensor_s_alignment_is_at_least_16(guaranteed: int, alignment: int) -> None:
    assert tensor(GuaranteedBaseOffsetAlignment=guaranteed).alignment == alignment


def test_the_runtime_notices_what_is_malformed_before_a_crash_and_a_heap_after_it() -> None:
    crash, heap, size = (
        next(RULES[f"DML-BINDING-{name}"].findings(subject, TARGET))
        for name, subject in (
            ("initializer-NONE", bound(FIRST_PLAIN, NONE)),
            ("heap", bound(FIRST_OWNED, array(placed(heap="READBACK")))),
            ("SizeInBytes", bound(FIRST_OWNED, array(placed(0, 7)))),
        )
    )
    assert in_order_of_notice([heap, crash, size], malformed=False) == [crash, size, heap]
    assert in_order_of_notice([size, crash, heap], malformed=False) == [size, crash, heap]
    assert in_order_of_notice([crash, heap, size], malformed=True) == [heap, size, crash]
