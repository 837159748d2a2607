"""A record of calls, for tests: what was checked, created, bound, dispatched and tiled, and which devices were removed.

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


_recordings: Final[list[list[Call]]] = []


@contextmanager
def record_calls() -> Iterator[list[Call]]:
    """Give a list that receives each call of the package within the ``with`` block, in order.

    >>> with record_calls() as calls:
    ...     findings = check(desc, "windows-11-21h2")
    >>> print(calls[0].name, calls[0].target, [finding.rule for finding in calls[0].findings])
    check windows-11-21h2 (4_0) ['DML-TILE-DataType-level', 'DML-TILE-DataType-level']
    """
    calls: list[Call] = []
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


def report_question(device: object) -> None:
    """Report that the reason of a device's removal was asked for."""
    if _watches:
        _watches[-1]._known.add(device)
