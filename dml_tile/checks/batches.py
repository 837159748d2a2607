"""Checks many descriptors in one call."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TypeAlias

from dml_tile.calls import record
from dml_tile.descriptors import TileOperatorDesc
from dml_tile.findings import Against, Finding
from dml_tile.readers.batches import MAX_TEXTS_KEPT
from dml_tile.rules.check import findings_of
from dml_tile.simulation import resolve
from dml_tile.targets import TargetLike

_Checked: TypeAlias = tuple[TileOperatorDesc, tuple[Finding, ...]]


def check_texts(
    texts: Iterable[bytes | str], target: TargetLike | None = None, against: Against = "both"
) -> list[tuple[TileOperatorDesc, tuple[Finding, ...]]]:
    """Return the descriptors of JSON texts, each of which holds one, with their findings. Equal texts share them.

    The target is resolved once. Raises the errors of ``load_tiles`` and ``check``.
    """
    chosen = resolve(target)

    @lru_cache(MAX_TEXTS_KEPT)
    def checked(text: bytes | str) -> _Checked:
        tile = TileOperatorDesc.model_validate_json(text)
        return tile, findings_of(tile, chosen, against)

    results: list[_Checked] = []
    for text in texts:
        result = checked(text)
        record("check", chosen, *result)
        results.append(result)
    return results
