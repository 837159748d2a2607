"""Reads many descriptors in one call."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from dml_tile.descriptors import TileOperatorDesc

MAX_TEXTS_KEPT: Final = 2**14
"""The most texts of a batch whose descriptors are kept for equal texts: a program creates the same few tiles anew."""


def load_tiles(texts: Iterable[bytes | str]) -> list[TileOperatorDesc]:
    """Return the descriptors of JSON texts, each of which holds one. Equal texts share a descriptor.

    Raises pydantic's ValidationError for a text that is not a DML_TILE_OPERATOR_DESC.
    """
    read = lru_cache(MAX_TEXTS_KEPT)(TileOperatorDesc.model_validate_json)
    return [read(text) for text in texts]
