"""Reads many descriptors in one call."""

from __future__ import annotations

from collections.abc import Iterable

from dml_tile.descriptors import TileOperatorDesc


def load_tiles(texts: Iterable[bytes | str]) -> list[TileOperatorDesc]:
    """Return the descriptors of JSON texts, each of which holds one.

    Raises pydantic's ValidationError for a text that is not a DML_TILE_OPERATOR_DESC.
    """
    return [TileOperatorDesc.model_validate_json(text) for text in texts]
