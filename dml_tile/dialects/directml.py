"""Describes requests as DML_TILE_OPERATOR_DESC."""

from __future__ import annotations

from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.dialects.request import Request
from dml_tile.dialects.rules import DIALECT_RULES, expressed
from dml_tile.directml.targets import DEFAULT_TARGET
from dml_tile.errors import DmlError
from dml_tile.findings import Finding, found_by


def findings(request: Request) -> tuple[Finding, ...]:
    """Return the reasons why no descriptor can express the request; ``check`` returns those of a descriptor."""
    return tuple(found_by(DIALECT_RULES, request, DEFAULT_TARGET))


def tile_desc(request: Request) -> TileOperatorDesc:
    """Return the packed descriptor that tiles the same bits.

    bool becomes UINT8 and bfloat16 UINT16; a scalar gets the sizes {1}. Dimensions are merged only where there are
    more than 8. Raises DmlError, with the findings, where no descriptor can express the request.
    """
    carrier = request.carrier
    if (found := findings(request)) or carrier is None:
        raise DmlError(found)
    sizes, repeats = expressed(request)
    return TileOperatorDesc.from_input(data_type=carrier, sizes=sizes, repeats=repeats)
