"""The public ``check`` and ``require``: the rules at a target, as recorded calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dml_tile.directml.targets import TargetLike
from dml_tile.errors import DmlError
from dml_tile.findings import Against, Finding, Severity
from dml_tile.rules.descriptor import findings_of
from dml_tile.simulation.calls import record
from dml_tile.simulation.target import resolve

if TYPE_CHECKING:
    from dml_tile.descriptors.graph import Descriptor


def check(desc: Descriptor | None, target: TargetLike | None = None, against: Against = "both") -> tuple[Finding, ...]:
    """Return all findings of a descriptor at a target: InputTensor's first, then OutputTensor's, then the operator's.

    The findings of a graph's nodes come before the graph's own. Notes on what DirectML is known to compute otherwise
    than documented come last (docs/known.md).

        >>> from dml_tile import TileOperatorDesc
        >>> desc = TileOperatorDesc.from_input(data_type="INT64", sizes=[1, 1, 2, 3], repeats=[1, 1, 3, 3])
        >>> for finding in check(desc, "windows-11-21h2"):
        ...     print(finding)
        [DML-TILE-DataType-level] InputTensor.DataType: INT64 needs DML_FEATURE_LEVEL_4_1; windows-11-21h2 has 4_0
        [DML-TILE-DataType-level] OutputTensor.DataType: INT64 needs DML_FEATURE_LEVEL_4_1; windows-11-21h2 has 4_0
        >>> check(desc, "4_1")
        ()

    ``target`` is whatever ``Target.parse`` takes; None means the current target. ``against`` is the contract: what the
    ``"documentation"`` says, what the ``"runtime"`` was measured to do, or ``"both"``, the default: findings of either.
    Raises ValueError for an unknown target or ``against``, TypeError for anything but a descriptor.
    """
    target = resolve(target)
    findings = findings_of(desc, target, against)
    record("check", target, desc, findings)
    return findings


def require(desc: Descriptor | None, target: TargetLike | None = None, against: Against = "both") -> None:
    """Raise DmlError, with all findings, if ``check`` finds an error or a warning; a note alone raises nothing."""
    findings = check(desc, target, against)
    if any(finding.severity > Severity.NOTE for finding in findings):
        raise DmlError(findings)
