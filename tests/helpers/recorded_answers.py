"""What Microsoft's runtime answered to descriptors, row by row, and what findings say that it answers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from dml_tile.findings import Finding
from tests.helpers.paths import ROOT

ROWS: Final[list[dict[str, Any]]] = [
    json.loads(line) for line in (ROOT / "tests/data/create_operator.jsonl").read_text().splitlines()
]


def answer(findings: Sequence[Finding]) -> str:
    """What CreateOperator does, by the findings against the runtime."""
    if not findings:
        return "0x00000000"
    refusals = [finding.hresult for finding in findings if finding.hresult is not None]
    return refusals[0].hex if refusals else "CRASH:SIGSEGV"
