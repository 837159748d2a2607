"""A device's state: what it is made of, its record of calls, the faults that it is to meet, and its removal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import NoReturn, TypeVar

from dml_tile.bindings.memory import Padding
from dml_tile.bindings.resources import Direct3DDevice
from dml_tile.descriptors.graph import Descriptor
from dml_tile.directml.enums import HRESULT
from dml_tile.directml.targets import Target
from dml_tile.errors import DmlError
from dml_tile.findings import Against, Finding, Rule, Severity, apply_rules, bases_of
from dml_tile.rules.device import FAULT_RULES, REMOVAL_RULES, Creation, Fault, Removal, direct3d_device_is_present
from dml_tile.simulation.calls import record, report_fault, report_met, report_question, report_removal
from dml_tile.simulation.process import caller
from dml_tile.simulation.target import Origin

Subject = TypeVar("Subject")


@dataclass(eq=False)
class DeviceState:
    """A device from its creation to its removal; safe to use from many threads."""

    target: Target
    direct3d_device: Direct3DDevice
    against: Against
    padding: Padding
    raise_on_removal: bool
    origin: Origin | None

    def __post_init__(self) -> None:
        self.lock = Lock()  # never held while bytes are copied
        self._bases = bases_of(self.against)
        self._removal: Removal | None = None
        self._faults: dict[Fault, int] = {}  # and the calls so far

    def __reduce__(self) -> NoReturn:
        raise TypeError("a device is one object, as in C, and is not copied or pickled; make another Device")

    def require_test(self) -> None:
        """Raise TargetError in another test at another target, if the device's target was not named."""
        if self.origin is not None:
            self.origin.require_test()

    @property
    def removal(self) -> Removal | None:
        """The call that removed the device, if any; a test that reads it knows of the removal."""
        if self._removal is not None:
            report_question(self)
        return self._removal

    def removed_reason(self) -> HRESULT:
        """Return GetDeviceRemovedReason's reason; the first reason of the Direct3D device stays."""
        with self.lock:
            reason = self.direct3d_device.removed_reason
            if self._removal is None and reason:
                self._removal = Removal("ID3D12Device", tuple(filter(self.enforces, self._lost_direct3d())), reason)
        removal = self.removal
        return removal.reason if removal is not None else HRESULT.S_OK

    @property
    def removing_call(self) -> str:
        """The call that removed the device; empty if none did."""
        return self._removal.call if self._removal else ""

    def record(self, call: str, desc: Descriptor | None = None, findings: Iterable[Finding] = ()) -> None:
        """Record a call for tests that list calls."""
        record(call, self.target, desc, findings)

    def refuse(self, call: str, findings: Sequence[Finding], desc: Descriptor | None) -> None:
        """Raise DmlError if a call on a descriptor has findings."""
        if findings:
            self.record(call, desc, findings)
            raise DmlError(findings, call)

    def findings(self, rules: Iterable[Rule[Subject]], subject: Subject) -> list[Finding]:
        """Return the rules' findings on a subject, as the device's contract has them."""
        return [finding for finding in apply_rules(rules, subject, self.target) if self.enforces(finding)]

    def enforces(self, finding: Finding) -> bool:
        """Return True if the finding is of the device's contract."""
        return bool(finding.basis & self._bases)

    def require(self, call: str, rules: Iterable[Rule[Subject]], subject: Subject) -> None:
        """Raise DmlError with the findings if there are any."""
        self.refuse(call, self.findings(rules, subject), None)

    def begin(self, call: str) -> str:
        """Return the name of a call that returns an HRESULT.

        Raises DmlError if the device was removed, or for a fault of this call.
        """
        if self.is_removed(call):
            self.require(call, REMOVAL_RULES, self._removal)
        for fault in [fault for fault in self._faults if fault.call == call]:
            with self.lock:
                self._faults[fault] = calls = self._faults[fault] + 1
            if calls == fault.at:
                report_met(fault)
                self.refuse(call, [*apply_rules(FAULT_RULES, fault, self.target)], None)
        return call

    def fail(self, fault: Fault) -> None:
        """Let a later call fail; a test of pytest fails if no call does."""
        report_fault(fault, f"{fault} of {caller()}")
        self._faults[fault] = 0

    def count_dispatch(self) -> None:
        """Count an executed dispatch, after which a test may have asked to remove the Direct3D device."""
        if self.direct3d_device.count_dispatch():
            self.record("RemoveDevice", None, self._lost_direct3d())

    def _lost_direct3d(self) -> Iterator[Finding]:
        """Yield the finding of a Direct3D device that is removed."""
        return direct3d_device_is_present.findings(Creation(0, None, self.direct3d_device.removed_reason), self.target)

    def is_removed(self, call: str) -> bool:
        """Return True if the device is removed, and the call does nothing. Raises DmlError if removals are raised."""
        self.require_test()
        if self._removal is not None:
            self._report()
            if self.raise_on_removal:
                self.require(call, REMOVAL_RULES, self._removal)
        return self._removal is not None

    def remove(self, call: str, findings: Sequence[Finding], desc: Descriptor | None = None) -> None:
        """Remove the device because of the findings of a call, on a tile with this descriptor.

        Raises DmlError if DirectML crashes at the first problem that it notices, or if removals are raised.
        """
        self.record(call, desc, findings)
        noticed = next((finding for finding in findings if finding.severity is Severity.ERROR), None)
        if noticed is not None and noticed.crash:
            raise DmlError([each for each in findings if each.crash or each.severity is not Severity.ERROR], call)
        with self.lock:
            if self._removal is None:
                self._removal = Removal(call, tuple(findings))
        self._report()
        if self.raise_on_removal:
            raise DmlError(findings, call)

    def raise_if_removed(self) -> None:
        """Raise DmlError with the reason, if the device was removed."""
        if self._removal is not None:
            raise DmlError(self._removal.findings, self._removal.call)

    def _report(self) -> None:
        """Tell a watching test that the device is removed, or is used after its removal."""
        report_removal(self, f"A device at {self.target.label} was removed by {self._removal}")
