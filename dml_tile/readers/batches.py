"""Loading and checking many descriptors at once.

Python's cyclic garbage collector is paused meanwhile: it would look through all that is loaded again and again, and
find nothing. It is enabled again afterwards, after an error too, and takes what was loaded for old.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from dml_tile.descriptors import TileOperatorDesc
from dml_tile.findings import Against, Finding
from dml_tile.rules.check import check
from dml_tile.simulation import resolve
from dml_tile.targets import TargetLike


def load_tiles(texts: Iterable[bytes | str]) -> list[TileOperatorDesc]:
    """The descriptors of JSON texts, one in each.

    Raises pydantic's ValidationError for a text that is no DML_TILE_OPERATOR_DESC.
    """
    with _uncollected():
        return list(map(TileOperatorDesc.model_validate_json, texts))


def check_texts(
    texts: Iterable[bytes | str], target: TargetLike | None = None, against: Against = "both"
) -> list[tuple[TileOperatorDesc, tuple[Finding, ...]]]:
    """The descriptors of JSON texts, one in each, with their findings.

    Raises what ``load_tiles`` and ``check`` raise.
    """
    chosen = resolve(target)
    with _uncollected():
        tiles = map(TileOperatorDesc.model_validate_json, texts)
        return [(tile, check(tile, chosen, against)) for tile in tiles]


@contextmanager
def _uncollected() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if not gc.get_freeze_count():  # else it would thaw what somebody keeps frozen
                gc.freeze()
                gc.unfreeze()  # now all is old, and not the first thing to be looked through
            gc.enable()
