"""Loading many descriptors at once."""

from __future__ import annotations

import gc
from collections.abc import Iterable

from dml_tile.descriptors import TileOperatorDesc


def load_tiles(texts: Iterable[bytes | str]) -> list[TileOperatorDesc]:
    """The descriptors of JSON texts, one in each.

    Python's cyclic garbage collector is paused meanwhile: it would look through all that is loaded again and again, and
    find nothing. Raises pydantic's ValidationError for a text that is no DML_TILE_OPERATOR_DESC.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        return [TileOperatorDesc.model_validate_json(text) for text in texts]
    finally:
        if was_enabled:
            gc.enable()
