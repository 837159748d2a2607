"""State that the objects of one device share: the simulated target, and whether the device has been removed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import Lock
from typing import TypeVar

from dml_tile.bindings.resources import Direct3DDevice
from dml_tile.errors import DmlError
from dml_tile.execution.executor import Padding
from dml_tile.findings import Against, Finding, Rule, bases_of
from dml_tile.rules.device import REMOVAL_RULES, Removal
from dml_tile.targets import Target

Subject = TypeVar("Subject")


class Lifetime:
    """A device from its creation to its removal; safe to use from many threads."""

    def __init__(
        self,
        target: Target,
        direct3d_device: Direct3DDevice,
        against: Against,
        padding: Padding,
        *,
        raise_on_removal: bool,
    ) -> None:
        self.target = target
        self.direct3d_device = direct3d_device
        self.against: Against = against
        self.padding: Padding = padding
        self.lock = Lock()  # never held while bytes are copied
        self._bases = bases_of(against)
        self._raise_on_removal = raise_on_removal
        self._removal: Removal | None = None

    @property
    def removal(self) -> Removal | None:
        """The call that removed the device, with its findings; None if the device is present."""
        return self._removal

    def findings(self, rules: Iterable[Rule[Subject]], subject: Subject) -> list[Finding]:
        """Return the findings of the rules on a subject that the device's contract includes."""
        found = (finding for rule in rules for finding in rule.findings(subject, self.target))
        return [finding for finding in found if finding.basis & self._bases]

    def require(self, call: str, rules: Iterable[Rule[Subject]], subject: Subject) -> None:
        """Raise DmlError with the findings if there are any."""
        if findings := self.findings(rules, subject):
            raise DmlError(findings, call)

    def require_present(self, call: str) -> None:
        """Raise DmlError if the device has been removed."""
        if self._removal is not None:
            self.require(call, REMOVAL_RULES, self._removal)

    def is_removed(self, call: str) -> bool:
        """Return whether the device is removed, and the call does nothing. Raises DmlError if removals are raised."""
        if self._raise_on_removal:
            self.require_present(call)
        return self._removal is not None

    def remove(self, call: str, findings: Sequence[Finding]) -> None:
        """Remove the device because of a call's findings.

        Raises DmlError if the first problem that DirectML notices makes it crash, or if removals are raised.
        """
        noticed = next((finding for finding in findings if finding.is_noticed), None)
        if noticed is not None and noticed.crash:
            raise DmlError([finding for finding in findings if finding.crash or not finding.is_noticed], call)
        with self.lock:
            if self._removal is None:
                self._removal = Removal(call, tuple(findings))
        if self._raise_on_removal:
            raise DmlError(findings, call)
