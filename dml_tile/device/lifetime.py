"""What the objects of one device have in common: what is simulated, and whether the device has been removed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import Lock
from typing import TypeVar

from dml_tile.errors import DmlError
from dml_tile.execution.executor import Padding
from dml_tile.findings import Against, Finding, Rule, bases_of
from dml_tile.rules.device import REMOVAL_RULES, Removal
from dml_tile.targets import Target

Subject = TypeVar("Subject")


class Lifetime:
    """A device from its creation to its removal; safe to use from many threads."""

    def __init__(self, target: Target, against: Against, padding: Padding, *, raise_on_removal: bool) -> None:
        self.target = target
        self.against: Against = against
        self.padding: Padding = padding
        self.lock = Lock()  # held to look and to write down, never while bytes are copied
        self._bases = bases_of(against)
        self._raise_on_removal = raise_on_removal
        self._removal: Removal | None = None

    @property
    def removal(self) -> Removal | None:
        """Why the device was removed; None if it was not."""
        return self._removal

    def findings(self, rules: Iterable[Rule[Subject]], subject: Subject) -> list[Finding]:
        """The findings of some rules on a subject, of the contract that the device is held to."""
        found = (finding for rule in rules for finding in rule.findings(subject, self.target))
        return [finding for finding in found if finding.basis & self._bases]

    def require(self, call: str, rules: Iterable[Rule[Subject]], subject: Subject) -> None:
        """Raise DmlError with the findings, if there are any."""
        if findings := self.findings(rules, subject):
            raise DmlError(findings, call)

    def require_present(self, call: str) -> None:
        """Raise DmlError if the device has been removed."""
        if self._removal is not None:
            self.require(call, REMOVAL_RULES, self._removal)

    def is_removed(self, call: str) -> bool:
        """Whether a call that returns nothing is to do nothing. Raises DmlError if removals are to be raised."""
        if self._raise_on_removal:
            self.require_present(call)
        return self._removal is not None

    def remove(self, call: str, findings: Sequence[Finding]) -> None:
        """Remove the device because of what a call did.

        Raises DmlError if the first that DirectML notices is a crash, or if removals are to be raised.
        """
        noticed = next((finding for finding in findings if finding.is_noticed), None)
        if noticed is not None and noticed.crash:
            raise DmlError([finding for finding in findings if finding.crash or not finding.is_noticed], call)
        with self.lock:
            if self._removal is None:
                self._removal = Removal(call, tuple(findings))
        if self._raise_on_removal:
            raise DmlError(findings, call)
