"""What DirectML requires, one module for each subject, and `check`, which applies the rules of descriptors.

The rules of DxDispatch's parser stand with its model (``dxdispatch.rules``), those of specifications and back ends with
what they judge (``back_ends``), those of lowerings in ``lowering``; ``checks.catalogue`` lists all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dml_tile.descriptors.operator import OperatorDesc


def rules_of(desc: OperatorDesc | None) -> tuple[Any, Any]:
    """Return an operator's module with ``findings``, ``lowest_level`` and ``not_looked_at``, and what these take.

    The module of operators other than Tile is imported where one comes.
    """
    from dml_tile.descriptors.operator import OperatorFields, tile_of

    if desc is not None and isinstance(desc.desc, OperatorFields):
        from dml_tile.rules import operator

        return operator, desc.desc
    from dml_tile.rules import tile_findings

    return tile_findings, tile_of(desc) or desc
