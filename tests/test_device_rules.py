"""Every rule of bindings, of the device's calls and of dispatch, with what it refuses and what it accepts."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product, starmap
from typing import Any, Final

import pytest

from dml_tile.bindings.resources import BindingDesc, Buffer, BufferArrayBinding, BufferBinding, Direct3DDevice
from dml_tile.bindings.slots import (
    INITIALIZER_INPUT,
    INITIALIZER_OUTPUT,
    INITIALIZER_PERSISTENT,
    PERSISTENT,
    TEMPORARY,
    BindingCount,
    BindingPair,
    BindingStage,
    BindPoint,
    BoundRange,
    Slot,
    SlotBinding,
    SlotKind,
)
from dml_tile.checks.catalogue import RULES
from dml_tile.descriptors.tile import BufferTensorDesc
from dml_tile.directml.enums import HRESULT, BindingType, Feature, FeatureLevel, ResourceDimension
from dml_tile.directml.targets import Target
from dml_tile.findings import Basis
from dml_tile.rules.check import DESCRIPTOR_RULES
from dml_tile.rules.device import Compilation, Creation, FeatureQuery, InitializerOperators, Removal
from dml_tile.rules.dispatch import (
    DISPATCH_RULES,
    ORDINARY_DISPATCH,
    TABLE_RULES,
    Dispatch,
    Initialization,
    Persistence,
    TableRequest,
    TableUse,
    is_ordinary_table,
)
from tests.helpers.descriptors import at

D, R = Basis.DOCUMENTED, Basis.RUNTIME

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
    return BindPoint("InputTensor", owned, stage, bound)


def tensor(binding: Any, kind: int = BindingType.BUFFER) -> SlotBinding:
    return SlotBinding(Slot.tensor("InputTensor", PLAIN), BindingDesc(kind, binding))


def resource(
    slot_kind: SlotKind, size: int, binding: BufferBinding | None, kind: int = BindingType.BUFFER
) -> SlotBinding:
    return SlotBinding(Slot.resource("PersistentResource", slot_kind, size), BindingDesc(kind, binding))


def initialised(desc: BufferTensorDesc, *bindings: BufferBinding) -> SlotBinding:
    slot = Slot.tensor("operators[0].InputTensor", desc, INITIALIZER_INPUT)
    return SlotBinding(slot, BindingDesc(BindingType.BUFFER_ARRAY, BufferArrayBinding(bindings)))


def of_buffer(buffer: Buffer) -> SlotBinding:
    """A buffer bound to an input of a device that was made on DIRECT3D_DEVICE."""
    return SlotBinding(
        Slot.tensor("InputTensor", PLAIN), BindingDesc(BindingType.BUFFER, BufferBinding(buffer)), DIRECT3D_DEVICE
    )


def on(heap: str, flags: int = 4) -> BufferBinding:
    return BufferBinding(Buffer(64, heap=heap, flags=flags))


def table(
    *, given: bool = True, own: bool = True, required: int | None = 2, cpu: int = 1, size: int = 2
) -> TableRequest:
    return TableRequest(given, own, required, cpu, 1, size)


OWNED_INPUT: Final = "operators[0].InputTensor"
RESOURCE: Final = "PersistentResource"
NONE_GIVEN: Final = BindingDesc()
OF_NOTHING: Final = Slot.tensor("operators[0].InputTensor", PLAIN, INITIALIZER_INPUT)
A_REMOVAL: Final = Removal("BindInputs", ())


@dataclass(frozen=True)
class Case:
    """A rule, what it refuses, something similar that it accepts, and where, why and at which level it refuses."""

    rule: str
    refused: Any
    accepted: Any
    path: str
    basis: Basis | None = None
    level: str = "6_4"


CASES: Final = [
    Case("DML-BINDING-SizeInBytes", BoundRange(ALIGNED, 7), BoundRange(ALIGNED, 8), "InputTensor"),
    Case("DML-BINDING-Offset", BoundRange(ALIGNED, 8, 32), BoundRange(ALIGNED, 8, 128), "InputTensor"),
    Case(
        "DML-BINDING-Offset",
        BoundRange(Slot.resource("PersistentResource", PERSISTENT, 8), 8, 128),
        BoundRange(Slot.resource("PersistentResource", PERSISTENT, 8), 8, 256),
        "PersistentResource",
    ),
    Case(
        "DML-BINDING-overlap",
        BindingPair("OutputTensor", "InputTensor", overlap=True),
        BindingPair("OutputTensor", "InputTensor", overlap=False),
        "OutputTensor",
    ),
    Case("DML-BINDING-missing", point("execution", bound=False), point("execution", bound=True), "InputTensor"),
    Case(
        "DML-BINDING-missing",
        point("initialisation", owned=True, bound=False),
        point("initialisation", bound=False),
        "InputTensor",
    ),
    Case(
        "DML-BINDING-missing",
        BindPoint("InputTensor", False, "execution", False, "why"),
        BindPoint("InputTensor", False, "execution", True, "why"),
        "InputTensor",
        D,
    ),
    Case(
        "DML-BINDING-owned",
        point("execution", owned=True, bound=True),
        point("execution", owned=True, bound=False),
        "InputTensor",
    ),
    Case(
        "DML-BINDING-owned",
        point("initialisation", bound=True),
        point("initialisation", owned=True, bound=True),
        "InputTensor",
    ),
    Case("DML-BINDING-range", tensor(BufferBinding(Buffer(64), 32, 48)), tensor(GOOD), "InputTensor"),
    Case("DML-BINDING-range", tensor(LATE), tensor(BufferBinding(Buffer(64), 32)), "InputTensor", D),
    Case("DML-BINDING-unordered-access", tensor(on("DEFAULT", 8)), tensor(on("DEFAULT", 12)), "InputTensor"),
    Case(
        "DML-BINDING-unordered-access",
        tensor(on("DEFAULT", 0)),
        initialised(OWNED, on("DEFAULT", 0)),
        "InputTensor",
    ),
    Case("DML-BINDING-heap", tensor(on("UPLOAD")), initialised(OWNED, on("UPLOAD")), "InputTensor"),
    Case("DML-BINDING-heap", tensor(on("GPU_UPLOAD")), tensor(on("DEFAULT")), "InputTensor"),
    Case("DML-BINDING-heap", tensor(on("CUSTOM")), tensor(on("DEFAULT")), "InputTensor", D),
    Case("DML-BINDING-heap", initialised(OWNED, on("CUSTOM")), initialised(OWNED, GOOD), OWNED_INPUT, D),
    Case("DML-BINDING-heap", initialised(OWNED, on("READBACK")), initialised(OWNED, GOOD), OWNED_INPUT),
    Case("DML-BINDING-heap", resource(PERSISTENT, 8, on("CUSTOM")), resource(PERSISTENT, 8, GOOD), RESOURCE, D),
    Case(
        "DML-BINDING-heap",
        resource(INITIALIZER_OUTPUT, 8, on("CUSTOM")),
        resource(INITIALIZER_OUTPUT, 8, on("DEFAULT")),
        "PersistentResource",
    ),
    Case("DML-BINDING-count", BindingCount(2, 1), BindingCount(1, 1), "bindingCount"),
    Case("DML-BINDING-count", BindingCount(None, 1), BindingCount(0, 1), "bindings"),
    Case(
        "DML-BINDING-Type",
        tensor(BufferArrayBinding([GOOD]), BindingType.BUFFER_ARRAY),
        tensor(GOOD),
        "InputTensor.Type",
    ),
    Case("DML-BINDING-Type", tensor(None, 3), initialised(OWNED, GOOD), "InputTensor.Type"),
    Case("DML-BINDING-Desc-null", tensor(None), tensor(GOOD), "InputTensor.Desc"),
    Case(
        "DML-BINDING-Desc-null",
        SlotBinding(OF_NOTHING, BindingDesc(BindingType.BUFFER_ARRAY, BufferArrayBinding(None))),
        initialised(PLAIN, EMPTY),
        "operators[0].InputTensor.Bindings",
    ),
    Case(
        "DML-BINDING-BindingCount",
        initialised(OWNED, GOOD, GOOD),
        initialised(OWNED, GOOD),
        "operators[0].InputTensor.BindingCount",
    ),
    Case("DML-BINDING-BindingCount", initialised(OWNED), initialised(OWNED, GOOD), f"{OWNED_INPUT}.BindingCount"),
    Case("DML-BINDING-range", tensor(BufferBinding(Buffer(64), 2**64 - 16, 80)), tensor(GOOD), "InputTensor", D),
    Case("DML-BINDING-range", tensor(BufferBinding(Buffer(64), 2**64 - 16, 81)), tensor(GOOD), "InputTensor"),
    Case(
        "DML-BINDING-BindingCount",
        initialised(PLAIN),
        initialised(PLAIN, EMPTY),
        "operators[0].InputTensor.BindingCount",
        R,
    ),
    Case("DML-BINDING-Buffer-null", tensor(BufferBinding(None, 0, 8)), tensor(GOOD), "InputTensor.Buffer"),
    Case("DML-BINDING-unneeded", resource(PERSISTENT, 0, GOOD), resource(PERSISTENT, 0, EMPTY), "PersistentResource"),
    Case("DML-BINDING-unneeded", resource(TEMPORARY, 0, GOOD), resource(PERSISTENT, 8, GOOD), "PersistentResource"),
    Case(
        "DML-BINDING-unneeded",
        resource(INITIALIZER_OUTPUT, 0, GOOD),
        resource(INITIALIZER_OUTPUT, 0, EMPTY),
        "PersistentResource",
    ),
    Case(
        "DML-BINDING-initializer-persistent",
        resource(INITIALIZER_PERSISTENT, 0, GOOD),
        resource(INITIALIZER_OUTPUT, 8, GOOD),
        "PersistentResource",
    ),
    Case(
        "DML-BINDING-initializer-persistent",
        resource(INITIALIZER_PERSISTENT, 0, None, BindingType.NONE),
        resource(PERSISTENT, 0, None, BindingType.NONE),
        "PersistentResource",
        R,
    ),
    Case(
        "DML-BINDING-initializer-NONE",
        SlotBinding(OF_NOTHING, NONE_GIVEN),
        SlotBinding(Slot.tensor("InputTensor", OWNED), NONE_GIVEN),
        "operators[0].InputTensor.Type",
    ),
    Case(
        "DML-BINDING-initializer-NONE",
        SlotBinding(OF_NOTHING, NONE_GIVEN),
        SlotBinding(OF_NOTHING, BindingDesc(BindingType.NONE, BufferArrayBinding([EMPTY]))),
        "operators[0].InputTensor.Type",
    ),
    Case(
        "DML-BINDING-initializer-NONE-Desc",
        SlotBinding(OF_NOTHING, BindingDesc(BindingType.NONE, BufferArrayBinding([EMPTY]))),
        SlotBinding(OF_NOTHING, NONE_GIVEN),
        "operators[0].InputTensor.Desc",
    ),
    Case(
        "DML-BINDING-Dimension",
        of_buffer(Buffer(64, dimension=ResourceDimension.TEXTURE2D)),
        of_buffer(Buffer(64)),
        "InputTensor",
    ),
    Case("DML-BINDING-Dimension", of_buffer(Buffer(64, dimension=7)), of_buffer(Buffer(64)), "InputTensor"),
    Case(
        "DML-BINDING-device",
        of_buffer(Buffer(64, direct3d_device=Direct3DDevice())),
        of_buffer(Buffer(64, direct3d_device=DIRECT3D_DEVICE)),
        "InputTensor",
    ),
    Case("DML-DISPATCH-command-list", Dispatch(list_type=3), Dispatch(list_type=2), "commandList"),
    Case("DML-DISPATCH-command-list", Dispatch(list_type=9), Dispatch(list_type=0), "commandList"),
    Case("DML-DISPATCH-command-list", Dispatch(is_graphics=False), Dispatch(), "commandList"),
    Case("DML-DISPATCH-null", Dispatch(command_list=False), Dispatch(), "commandList"),
    Case(
        "DML-DEVICE-Direct3D-removed",
        Creation(0, None, HRESULT.DXGI_ERROR_DEVICE_HUNG),
        Creation(0, None),
        "d3d12Device",
    ),
    Case("DML-INITIALIZER-operators-null", InitializerOperators(None), InitializerOperators(()), "operators"),
    Case(
        "DML-BINDING-null",
        SlotBinding(Slot.resource("TemporaryResource", TEMPORARY, 0), None),
        resource(TEMPORARY, 0, None, BindingType.NONE),
        "TemporaryResource",
        R,
    ),
    Case(
        "DML-BINDING-null",
        SlotBinding(Slot.resource("PersistentResource", PERSISTENT, 8), None),
        resource(PERSISTENT, 8, GOOD),
        "PersistentResource",
    ),
    Case("DML-DEVICE-flags", Creation(2, None), Creation(1, None), "flags"),
    Case("DML-DEVICE-flags", Creation(0x80000000, None), Creation(0, None), "flags", D, "5_0"),
    Case("DML-DEVICE-flags", Creation(0x80000000, None), Creation(0, None), "flags", level="5_1"),
    Case("DML-DEVICE-flags", Creation(0x80000002, None), Creation(0, None), "flags", level="5_0"),
    Case("DML-DEVICE-minimumFeatureLevel", Creation(0, 0x80000000), Creation(0, 0), "minimumFeatureLevel", D),
    Case("DML-DEVICE-minimumFeatureLevel", Creation(0, 0x7FFFFFFF), Creation(0, 0), "minimumFeatureLevel"),
    Case("DML-DEVICE-debug-layer", Creation(1, None), Creation(0, None), "flags", R),
    Case(
        "DML-DEVICE-minimumFeatureLevel", Creation(0, 0x5100), Creation(0, 0x5000), "minimumFeatureLevel", level="5_0"
    ),
    Case("DML-DEVICE-minimumFeatureLevel", Creation(0, 0xFFFFFFFF), Creation(0, None), "minimumFeatureLevel", D, "5_0"),
    Case(
        "DML-DEVICE-feature",
        FeatureQuery(2),
        FeatureQuery(Feature.TENSOR_DATA_TYPE_SUPPORT),
        "feature",
    ),
    Case(
        "DML-DEVICE-feature-levels",
        FeatureQuery(Feature.FEATURE_LEVELS),
        FeatureQuery(Feature.FEATURE_LEVELS, 0x1000),
        "RequestedFeatureLevels",
    ),
    Case("DML-DEVICE-removed", A_REMOVAL, None, ""),
    Case("DML-COMPILE-op-null", Compilation(False, False, 0), Compilation(True, True, 0), "op"),
    Case("DML-COMPILE-op-device", Compilation(True, False, 0), Compilation(True, True, 0), "op"),
    Case("DML-COMPILE-flags", Compilation(True, True, 8), Compilation(True, True, 7), "flags"),
    Case(
        "DML-INITIALIZER-operators-device",
        InitializerOperators((True, False)),
        InitializerOperators((True,)),
        "operators[1]",
    ),
    Case("DML-TABLE-Dispatchable-null", table(given=False, required=None), table(), "Dispatchable"),
    Case("DML-TABLE-SizeInDescriptors", table(size=1), table(size=3), "SizeInDescriptors"),
    Case("DML-TABLE-handle", table(cpu=0), table(cpu=0, required=0, size=0), "CPUDescriptorHandle"),
    Case("DML-TABLE-Dispatchable", table(required=None), table(required=0), "Dispatchable"),
    Case("DML-TABLE-Dispatchable-device", table(own=False), table(), "Dispatchable"),
    Case("DML-TABLE-empty", TableUse(filled=False), TableUse(filled=True), ""),
    Case("DML-DISPATCH-null", Dispatch(table=False), Dispatch(), "bindings"),
    Case("DML-DISPATCH-null", Dispatch(dispatchable=False), Dispatch(), "dispatchable"),
    Case("DML-DISPATCH-device", Dispatch(own=False), Dispatch(), "dispatchable"),
    Case("DML-DISPATCH-table", Dispatch(same=False), Dispatch(), "bindings"),
    Case("DML-DISPATCH-table", Dispatch(current=False), Dispatch(), "bindings"),
    Case("DML-BINDING-persistent", Persistence(same=False), Persistence(same=True), "PersistentResource"),
    Case(
        "DML-BINDING-uninitialised",
        Initialization("it", 0, "execution"),
        Initialization("it", 1, "execution"),
        "it",
    ),
    Case(
        "DML-BINDING-initialised-twice",
        Initialization("it", 1, "initialisation"),
        Initialization("it", 0, "initialisation"),
        "it",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}-{case.level}")
def test_a_rule_refuses_and_accepts(case: Case) -> None:
    rule = RULES[case.rule]
    finding, *_ = rule.findings(case.refused, at(case.level))
    assert finding.path == case.path
    assert finding.basis == (case.basis or rule.basis)
    assert not list(rule.findings(case.accepted, at(case.level)))


@pytest.mark.parametrize(("desc", "suggestion"), [(OWNED, None), (PLAIN, "bind an array of one empty buffer binding")])
def test_an_empty_binding_is_suggested_where_there_is_nothing_to_bind(
    desc: BufferTensorDesc, suggestion: str | None
) -> None:
    (finding,) = RULES["DML-BINDING-BindingCount"].findings(initialised(desc), at("6_4"))
    assert (finding.suggestion or "").startswith(suggestion or "")
    assert bool(finding.suggestion) == bool(suggestion)


@pytest.mark.parametrize(("size", "allowed"), [(0, True), (8, False)])
def test_a_null_binding_is_said_to_be_allowed_where_nothing_is_needed(size: int, allowed: bool) -> None:
    bound = SlotBinding(Slot.resource("PersistentResource", PERSISTENT, size), None)
    (finding,) = RULES["DML-BINDING-null"].findings(bound, at("6_4"))
    assert ("which the documentation allows" in finding.message) == allowed


@pytest.mark.parametrize(
    ("dimension", "words"), [(ResourceDimension.TEXTURE2D, "D3D12_RESOURCE_DIMENSION_TEXTURE2D"), (9, "dimension 9")]
)
def test_a_resource_s_dimension_is_named_if_it_has_a_name(dimension: int, words: str) -> None:
    bound = of_buffer(Buffer(64, dimension=dimension))
    (finding,) = RULES["DML-BINDING-Dimension"].findings(bound, at("6_4"))
    assert finding.message.startswith(f"the resource has {words}, but")


def test_each_rule_of_the_device_has_its_cases() -> None:
    others = {rule.id for rule in DESCRIPTOR_RULES}
    without_a_device = ("DML-CAPTURE-", "DML-DIALECT-", "DML-DXDISPATCH-", "DML-VIA-", "DML-LOWER-")
    of_the_device = {rule for rule in RULES if not rule.startswith(without_a_device)} - others
    assert {case.rule for case in CASES} == of_the_device


def test_a_plainly_fine_table_breaks_no_rule() -> None:
    flags, required_counts, handles, sizes = [True, False], [None, 0, 2], [0, 1], [0, 1, 2, 3]
    requests = starmap(TableRequest, product(flags, flags, required_counts, handles, handles, sizes))
    for request in requests:
        findings = [f for rule in TABLE_RULES for f in rule.findings(request, at("6_4"))]
        ordinary = request.cpu_descriptor_handle and request.gpu_descriptor_handle
        assert is_ordinary_table(request) == (not findings and bool(ordinary) and request.given), request


@pytest.mark.parametrize("level", list(FeatureLevel))
def test_an_ordinary_dispatch_breaks_no_rule(level: FeatureLevel) -> None:
    findings = [f for rule in DISPATCH_RULES for f in rule.findings(ORDINARY_DISPATCH, Target(level))]
    assert not findings


def test_a_wrong_binding_removes_the_device() -> None:
    rules = [rule for rule in RULES.values() if rule.id.startswith("DML-BINDING-") and not rule.crash]
    assert {rule.hresult for rule in rules} == {HRESULT.DXGI_ERROR_DEVICE_REMOVED}


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


def test_levels_are_named_where_they_have_a_name() -> None:
    rule = RULES["DML-DEVICE-minimumFeatureLevel"]
    messages = [next(iter(rule.findings(Creation(0, level), at("5_0")))).message for level in (0x6400, 0x7000)]
    assert messages[0].startswith(FeatureLevel.DML_FEATURE_LEVEL_6_4.name)
    assert messages[1].startswith("0x7000")
