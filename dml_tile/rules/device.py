"""Rules for creating a device and for the calls of IDMLDevice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from dml_tile.directml import pages
from dml_tile.directml.enums import DEVICE_REMOVED, HRESULT, CreateDeviceFlags, ExecutionFlags, Feature, FeatureLevel
from dml_tile.directml.levels import LEVELS
from dml_tile.directml.targets import Target
from dml_tile.findings import Basis, Finding, Rules, Violation
from dml_tile.rules.tile import level_needed, upgrade_advice

_ALL_EXECUTION_FLAGS: Final = 7
_DEBUG: Final = int(CreateDeviceFlags.DEBUG)
_HIGHEST_BIT: Final = 0x80000000


class Creation(NamedTuple):
    """The arguments of DMLCreateDevice1 or DMLCreateDevice (no minimum), and the Direct3D device's removal reason."""

    flags: int
    minimum_feature_level: int | None
    removed_reason: HRESULT = HRESULT.S_OK


@dataclass(frozen=True, slots=True)
class Removal:
    """The reason for a device's removal: the call that removed it and the findings of that call.

    GetDeviceRemovedReason returns ``reason``.
    """

    call: str
    findings: tuple[Finding, ...]
    reason: HRESULT = HRESULT.DXGI_ERROR_DEVICE_REMOVED

    def __str__(self) -> str:
        return f"{self.call}: {'; '.join(map(str, self.findings))}"


FALLIBLE_CALLS: Final = (
    "CheckFeatureSupport",
    "CreateOperator",
    "CompileOperator",
    "CompileGraph",
    "CreateOperatorInitializer",
    "CreateBindingTable",
    "CreateCommandRecorder",
    "Reset",
)
"""The methods of a device and of its binding tables that return an HRESULT."""


@dataclass(frozen=True, eq=False, slots=True)
class Fault:
    """An HRESULT that a test wants from one call of a method: the one that ``at`` counts to."""

    call: str
    hresult: HRESULT
    at: int

    def __str__(self) -> str:
        return f"Device.fail({self.call!r}, HRESULT.{self.hresult.name}, at={self.at})"


class InitializerObject(NamedTuple):
    """An element of an initializer's array: its device and its kind."""

    own: bool
    compiled: bool


InitializerOperators: TypeAlias = Sequence[InitializerObject | None] | None
"""The array of an initializer's operators; None is a null array, or a null element in it."""


EXPORT_RULES: Final = Rules[Creation](url=pages.CREATE_DEVICE)
"""Applied before the others: without the function, no argument is looked at."""
CREATION_RULES: Final = Rules[Creation](url=pages.CREATE_DEVICE)
FEATURE_RULES: Final = Rules[int](url=pages.FEATURE, hresult=HRESULT.DXGI_ERROR_UNSUPPORTED)
REQUESTED_LEVEL_RULES: Final = Rules[int](url=pages.FEATURE, hresult=HRESULT.DXGI_ERROR_UNSUPPORTED)
FAULT_RULES: Final = Rules["Fault | None"](url=pages.ERRORS)
REMOVAL_RULES: Final = Rules[Removal | None](url=pages.REMOVED, hresult=DEVICE_REMOVED)
COMPILATION_RULES: Final = Rules[bool | None](url=pages.COMPILE)
"""Each subject is True if the operator is the device's own; None if it is null."""
COMPILATION_FLAG_RULES: Final = Rules[int](url=pages.COMPILE)
INITIALIZER_RULES: Final = Rules[InitializerOperators](url=pages.CREATE_INITIALIZER)


@EXPORT_RULES.add("DML-DEVICE-DMLCreateDevice1", basis=Basis.INFERRED, crash=True)
def create_device1_is_exported(creation: Creation, target: Target) -> Iterator[Violation]:
    """DirectML exports DMLCreateDevice1, which DirectML.h declares from 2_0 on. Before it, there is only
    DMLCreateDevice, which takes no minimum feature level.
    """
    if creation.minimum_feature_level is not None and not target.level.exports_create_device1:
        message = (
            f"the DirectML of {target.label} has no DMLCreateDevice1: an application that delay-loads it ends there"
        )
        yield Violation("", message, "ship a newer DirectML with the application, or call DMLCreateDevice")


@CREATION_RULES.add("DML-DEVICE-flags")
def creation_flags_are_known(creation: Creation, target: Target) -> Iterator[Violation]:
    """The flags of DMLCreateDevice have only bits of DML_CREATE_DEVICE_FLAGS. The runtime of 5_0 accepts 0x80000000
    alone, too.
    """
    if unknown := creation.flags & ~_DEBUG:
        accepted = creation.flags == _HIGHEST_BIT and target.level.runtime.takes_highest_flag
        message = f"{creation.flags:#x} has the unknown bits {unknown:#x}"
        yield Violation("flags", message).unless(not accepted, "DirectML accepts them")


@CREATION_RULES.add("DML-DEVICE-debug-layer", hresult=HRESULT.DXGI_ERROR_UNSUPPORTED)
def debug_layers_are_installed(creation: Creation, target: Target) -> Iterator[Violation]:
    """DML_CREATE_DEVICE_FLAG_DEBUG is set only where the debug layers are installed; no simulated machine has them. The
    documentation promises DXGI_ERROR_SDK_COMPONENT_MISSING; the runtime returns E_INVALIDARG up to 5_0, later
    DXGI_ERROR_UNSUPPORTED.
    """
    if creation.flags & _DEBUG:
        message = "DML_CREATE_DEVICE_FLAG_DEBUG was provided, but the debug layers are not installed"
        result = target.level.runtime.debug_layers
        missing = HRESULT.DXGI_ERROR_SDK_COMPONENT_MISSING
        yield Violation("flags", message, basis=Basis.RUNTIME, hresult=result)
        yield Violation("flags", f"{message} ({missing})", basis=Basis.DOCUMENTED, hresult=missing)


@CREATION_RULES.add("DML-DEVICE-minimumFeatureLevel", hresult=HRESULT.DXGI_ERROR_UNSUPPORTED)
def minimum_feature_level_is_supported(creation: Creation, target: Target) -> Iterator[Violation]:
    """DirectML has at least the minimum feature level; the runtime compares them as signed integers. DirectML 1.10.0
    takes no minimum above 5_0; its release notes do not say what it returns.
    """
    minimum = creation.minimum_feature_level
    if minimum is not None and minimum > target.feature_level:
        message = f"{_level(minimum)} was provided, but {target.name} has {target.feature_level.name}"
        remark = "DirectML compares signed integers, and accepts it"
        yield Violation("minimumFeatureLevel", message).unless(minimum < _HIGHEST_BIT, remark)
    elif minimum is not None and minimum > target.highest_minimum:
        message = f"{_level(minimum)} was provided, but {target.name} takes none above {target.highest_minimum.name}"
        advice = "ship DirectML 1.10.1 or later with the application"
        yield Violation("minimumFeatureLevel", message, advice, basis=Basis.DOCUMENTED | Basis.INFERRED)


@CREATION_RULES.add("DML-DEVICE-Direct3D-removed", url=pages.REMOVED, hresult=DEVICE_REMOVED)
def direct3d_device_is_present(creation: Creation, target: Target) -> Iterator[Violation]:
    """The device of Direct3D 12 that a device is made on has not been removed."""
    if creation.removed_reason:
        yield Violation("d3d12Device", f"it was removed: {creation.removed_reason}", "make a new one")


@FEATURE_RULES.add("DML-DEVICE-feature")
def feature_is_known(feature: int, target: Target) -> Iterator[Violation]:
    """CheckFeatureSupport is asked for TENSOR_DATA_TYPE_SUPPORT, or from 2_0 on for FEATURE_LEVELS."""
    if feature not in (Feature.TENSOR_DATA_TYPE_SUPPORT, Feature.FEATURE_LEVELS):
        yield Violation("feature", f"{feature} is no DML_FEATURE")
    elif feature == Feature.FEATURE_LEVELS and not target.level.has_level_queries:
        since = next(row.level for row in LEVELS.values() if row.has_level_queries)
        message = level_needed("FEATURE_LEVELS", since, target)
        yield Violation("feature", message, upgrade_advice(since), Basis.DOCUMENTED | Basis.INFERRED)


@REQUESTED_LEVEL_RULES.add("DML-DEVICE-feature-levels")
def some_level_is_supported(highest_supported: int, target: Target) -> Iterator[Violation]:
    """At least one of the requested feature levels is supported."""
    if not highest_supported:
        message = f"none of them is supported: {target.name} has {target.feature_level.name}"
        yield Violation("RequestedFeatureLevels", message)


@FAULT_RULES.add("DML-DEVICE-fault")
def no_fault_is_asked_for(fault: Fault | None, target: Target) -> Iterator[Violation]:
    """No fault was injected with Device.fail. DirectML may return E_OUTOFMEMORY for any valid call."""
    if fault is not None:
        yield Violation("", f"the test asked for {fault.hresult} of call {fault.at}", hresult=fault.hresult)


@REMOVAL_RULES.add("DML-DEVICE-removed")
def device_is_present(removal: Removal | None, target: Target) -> Iterator[Violation]:
    """The device has not been removed; once it is, only a new device helps."""
    if removal is not None:
        yield Violation("", f"the device was removed by {removal}", "make a new device")


@COMPILATION_RULES.add("DML-COMPILE-op-null")
def operator_to_compile_is_given(is_own: bool | None, target: Target) -> Iterator[Violation]:
    """The operator to compile is not null."""
    if is_own is None:
        yield Violation("op", "null was provided, but an operator was expected")


@COMPILATION_RULES.add("DML-COMPILE-op-device")
def operator_belongs_to_device(is_own: bool | None, target: Target) -> Iterator[Violation]:
    """The operator to compile was made by the same device."""
    if is_own is False:
        yield Violation("op", "the operator was made by another device")


@COMPILATION_FLAG_RULES.add("DML-COMPILE-flags")
def compile_flags_are_known(flags: int, target: Target) -> Iterator[Violation]:
    """The flags of CompileOperator have only bits of DML_EXECUTION_FLAGS."""
    if unknown := flags & ~_ALL_EXECUTION_FLAGS:
        names = " | ".join(f"{flag.name} ({int(flag)})" for flag in ExecutionFlags)
        yield Violation("flags", f"{flags:#x} has the unknown bits {unknown:#x}; DML_EXECUTION_FLAGS are {names}")


@INITIALIZER_RULES.add("DML-INITIALIZER-operators-null")
def operators_are_given(operators: InitializerOperators, target: Target) -> Iterator[Violation]:
    """The array of an initializer's operators is null only where there are none, and none of them is null."""
    if operators is None:
        yield Violation("operators", "null was provided, but an array of operators was expected")
    for i, operator in enumerate(operators or ()):
        if operator is None:
            yield Violation(f"operators[{i}]", "null was provided, but a compiled operator was expected")


@INITIALIZER_RULES.add("DML-INITIALIZER-operators-device")
def operators_belong_to_device(operators: InitializerOperators, target: Target) -> Iterator[Violation]:
    """The operators of an initializer were compiled by the same device."""
    for i, operator in enumerate(operators or ()):
        if operator is not None and not operator.own:
            yield Violation(f"operators[{i}]", "the operator was compiled by another device")


@INITIALIZER_RULES.add("DML-INITIALIZER-operators", hresult=HRESULT.E_NOINTERFACE)
def operators_are_compiled(operators: InitializerOperators, target: Target) -> Iterator[Violation]:
    """The operators of an initializer are compiled."""
    for i, operator in enumerate(operators or ()):
        if operator is not None and not operator.compiled:
            yield Violation(f"operators[{i}]", "an IDMLCompiledOperator was expected", "compile the operator first")


def _level(value: int) -> str:
    return FeatureLevel(value).name if value in FeatureLevel._value2member_map_ else f"{value:#x}"
