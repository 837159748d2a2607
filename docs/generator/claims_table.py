"""The table of docs/limits.md that says what was measured, and how."""

from __future__ import annotations

import re
from typing import Final

from tests.recorder.claims import CLAIMS

_ROWS: Final = re.compile(r"(?<=^  \| claim \| command \|\n  \|---\|---\|\n)(?:  \|.*\n)*", re.MULTILINE)


def with_claims(page: str) -> str:
    """Return the page with the rows of the recorder's claims."""
    rows = "".join(f"  {claim.row()}\n" for claim in CLAIMS)
    return _ROWS.sub(lambda _: rows, page)
