"""From a request to the DML_TILE_OPERATOR_DESC that does it, where there is one."""

from __future__ import annotations

from dml_tile.descriptors import TileOperatorDesc
from dml_tile.errors import DmlError
from dml_tile.findings import Finding
from dml_tile.rules.dialect import CARRIERS, DIALECT_RULES, expressed
from dml_tile.simulation import DEFAULT_TARGET
from dml_tile.tile_request import Request


def findings(request: Request) -> tuple[Finding, ...]:
    """What keeps the request from being a descriptor at all; a descriptor that there is may still have its own."""
    return tuple(finding for rule in DIALECT_RULES for finding in rule.findings(request, DEFAULT_TARGET))


def tile_desc(request: Request) -> TileOperatorDesc:
    """The packed descriptor that tiles the same bits.

    A bool is a UINT8, a bfloat16 a UINT16, and a scalar has the sizes {1}. Dimensions are merged only where there are
    more than 8. Raises DmlError, with the findings, where there is no descriptor.
    """
    if found := findings(request):
        raise DmlError(found)
    sizes, repeats = expressed(request)
    return TileOperatorDesc.from_input(data_type=CARRIERS[request.data_type], sizes=sizes, repeats=repeats)
