"""A record of calls, for tests: checks, creations, bindings, dispatches, tiles, and the devices that were removed.

Nothing is recorded unless a test asks for it. The record is the process's: it has the calls of all threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from dml_tile.descriptors.graph import Descriptor
    from dml_tile.directml.targets import Target
    from dml_tile.findings import Finding


@dataclass(frozen=True, slots=True)
class Call:
    """A call of the package.

    ``name`` is the function's (``check``, ``tile``, ``lower``, …) or the C method's (``DMLCreateDevice1``,
    ``CreateOperator``, ``BindInputs``, …). ``desc`` is the descriptor in question, if it is one that is not null.
    ``findings`` are those that the call was refused with, or gave; empty if all was well.
    """

    name: str
    target: Target
    desc: Descriptor | None
    findings: tuple[Finding, ...]

    def __str__(self) -> str:
        """Return the call in one line: ``check at 4_0: INT64 {2} x {1} -> {2}: DML-TILE-DataType-level``."""
        rules = ", ".join(dict.fromkeys(finding.rule for finding in self.findings))
        parts = [f"{self.name} at {self.target.label}", str(self.desc) if self.desc is not None else "", rules]
        return ": ".join(filter(None, parts))


class Calls(list[Call]):
    """Calls in order; ``repr`` has a line for each."""

    def __repr__(self) -> str:
        return "\n".join(map(str, self)) or "no calls"


_recordings: Final[list[Calls]] = []


@contextmanager
def record_calls() -> Iterator[Calls]:
    """Give a list that receives each call of the package within the ``with`` block, in order.

    >>> from dml_tile import TileOperatorDesc, check
    >>> desc = TileOperatorDesc.from_input(data_type="INT64", sizes=[2], repeats=[2])
    >>> with record_calls() as calls:
    ...     findings = check(desc, "windows-11-21h2")
    >>> calls
    check at windows-11-21h2 (4_0): INT64 {2} x {2} -> {4}: DML-TILE-DataType-level
    """
    calls = Calls()
    _recordings.append(calls)
    try:
        yield calls
    finally:
        _recordings[:] = [other for other in _recordings if other is not calls]


def record(name: str, target: Target, desc: Descriptor | None, findings: Iterable[Finding] = ()) -> None:
    """Add a call to the open records."""
    if _recordings:
        call = Call(name, target, desc, tuple(findings))
        for calls in _recordings:
            calls.append(call)


class RemovalWatch:
    """Devices that were removed, or used after their removal, while this is the innermost open watch."""

    def __init__(self) -> None:
        self.removals: dict[object, str] = {}  # the reason of each device
        self._known: set[object] = set()
        self.unmet: dict[object, str] = {}
        """The faults that the test asked for and no call has met, each with its request."""

    def __enter__(self) -> RemovalWatch:
        _watches.append(self)
        return self

    def __exit__(self, *_: object) -> None:
        _watches.remove(self)

    def new_unasked(self) -> list[str]:
        """Return the removals whose reason nobody asked for, each once."""
        unasked = [reason for device, reason in self.removals.items() if device not in self._known]
        self._known.update(self.removals)
        return unasked


_watches: Final[list[RemovalWatch]] = []


def report_removal(device: object, reason: str) -> None:
    """Report a device that is removed, because of this call or of an earlier one."""
    if _watches:
        _watches[-1].removals.setdefault(device, reason)


def report_fault(fault: object, asked: str) -> None:
    """Report that a test asks for a fault; if no call meets it, the test fails."""
    if _watches:
        _watches[-1].unmet[fault] = asked


def report_met(fault: object) -> None:
    """Report that a call has met a fault."""
    for watch in _watches:
        watch.unmet.pop(fault, None)


def report_question(device: object) -> None:
    """Report that the reason of a device's removal was asked for."""
    if _watches:
        _watches[-1]._known.add(device)
