"""Checks many descriptors in one call."""

from __future__ import annotations

from collections.abc import Iterable

from dml_tile.descriptors import TileOperatorDesc
from dml_tile.findings import Against, Finding
from dml_tile.rules.check import check
from dml_tile.simulation import resolve
from dml_tile.targets import TargetLike


def check_texts(
    texts: Iterable[bytes | str], target: TargetLike | None = None, against: Against = "both"
) -> list[tuple[TileOperatorDesc, tuple[Finding, ...]]]:
    """Return the descriptors of JSON texts, each of which holds one, with their findings.

    The target is resolved once. Raises the errors of ``load_tiles`` and ``check``.
    """
    chosen = resolve(target)
    return [(tile, check(tile, chosen, against)) for tile in map(TileOperatorDesc.model_validate_json, texts)]
