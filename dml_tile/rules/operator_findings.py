"""Selects the rules of an operator: those of tiles, or those of other operators, which are imported where one comes."""

from __future__ import annotations

from typing import Any

from dml_tile.descriptors.operator import OperatorDesc, OperatorFields, tile_of
from dml_tile.rules import tile_findings


def rules_of(desc: OperatorDesc | None) -> tuple[Any, Any]:
    """Return an operator's module with ``findings``, ``lowest_level`` and ``not_looked_at``, and what these take."""
    if desc is not None and isinstance(desc.desc, OperatorFields):
        from dml_tile.rules import operator

        return operator, desc.desc
    return tile_findings, tile_of(desc) or desc
