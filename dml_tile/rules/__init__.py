"""The rules of DirectML, one module for each subject, and `descriptor`, which applies the rules of descriptors.

The rules of DxDispatch's parser stand with its model (``dxdispatch.rules``), those of specifications and back ends with
what they judge (``back_ends``), those of lowerings in ``lowering``; ``checks.catalogue`` lists all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dml_tile.descriptors.operator import OperatorDesc
    from dml_tile.directml.enums import FeatureLevel
    from dml_tile.directml.targets import Target
    from dml_tile.findings import Finding


class DescriptorRules(Protocol):
    """A module that applies the rules of one kind of descriptor; ``rules_of`` returns it with what it takes."""

    def findings(self, subject: Any, target: Target, /) -> Iterable[Finding]:
        """Return the findings of a descriptor at a target."""

    def lowest_level(self, subject: Any, /) -> FeatureLevel | None:
        """Return the lowest level from which on a descriptor passes; None if it does not at the newest."""

    def not_looked_at(self, subject: Any, /) -> tuple[str, ...]:
        """Return the fields that no rule is about."""


def rules_of(desc: OperatorDesc | None) -> tuple[DescriptorRules, Any]:
    """Return the rules of an operator, and what they take.

    The module of operators other than Tile is imported where one comes.
    """
    from dml_tile.descriptors.operator import OperatorFields, tile_of

    if desc is not None and isinstance(desc.desc, OperatorFields):
        from dml_tile.rules import operator

        return operator, desc.desc
    from dml_tile.rules import tile_findings

    return tile_findings, tile_of(desc) or desc
