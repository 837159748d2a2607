"""The answers of Microsoft's runtime to recorded descriptors, row by row, and those that findings predict."""

from __future__ import annotations

import json
import lzma
from collections.abc import Sequence
from typing import Any, Final

from dml_tile.findings import Finding
from dml_tile.rules.descriptor import created_anyway
from tests.helpers.paths import ROOT


def rows_of(file: str) -> list[dict[str, Any]]:
    """The rows of a recorded file."""
    return [json.loads(line) for line in text_of(file).splitlines()]


def text_of(file: str) -> str:
    """The text of a recorded file, unpacked if need be."""
    content = (ROOT / "tests/data" / file).read_bytes()
    return (lzma.decompress(content) if file.endswith(".xz") else content).decode()


ROWS: Final = rows_of("create_operator.jsonl")

S_OK: Final = "0x00000000"
CRASH: Final = "CRASH:SIGSEGV"
OVER_READS: Final = frozenset({"DML-BUFFER-array-length", "DML-TILE-Repeats-length", "DML-TENSOR-Type-private"})
"""The rules of arrays that are shorter than their counts, and of a struct that is shorter than its type's: DirectML
reads on, and crashes where memory ends."""


def answer(findings: Sequence[Finding]) -> str:
    """Returns what CreateOperator does, by the findings against the runtime."""
    findings = [finding for finding in findings if not created_anyway(finding)]
    if not findings:
        return S_OK
    refusals = [finding.hresult for finding in findings if finding.hresult is not None]
    return refusals[0].hex if refusals else CRASH


def recorded_answer(row: dict[str, Any], level: str) -> str:
    """Returns what the release of a level answered to a recorded descriptor."""
    result: str = row["hresult"] if isinstance(row["hresult"], str) else row["hresult"][level]
    return result
