"""Names that terminals, logs, shells, markup and compilers would take for something else."""

from __future__ import annotations

from typing import Final

HOSTILE_NAMES: Final = (
    "::stop-commands::tok",
    " ::error file=x::",
    "##[command]x",
    "##vso[task.setvariable variable=x]y",
    "x##VSO[task.complete]",
    "\x1b[31m\x07",
    "a\nb\r::error::c",
    "\u202e\u2028\x85\u200b",
    "</script><script>alert(1)</script><img src=x onerror=alert(1)>",
    "\" onload='x' a=\"javascript:alert(1)",
    "]]>&amp;<!--%0A%25",
    "*/ int main() {} //",
    "*\\/ \\",
    '"""\nimport os\n',
    "{0!r:>{1}}%s",
    "[red]bold[/red]:smile:",
    "$(touch x);`touch x`",
    "-rf",
    "~#/@",
    "naïve ☃",
    "www.example.com",
    "https://example.com/x",
    "`` ` a|b\\|c\\\\|`",
)
"""Without slashes and dots at their beginnings, so that each may be in a file's name too."""

CHARACTERS = 'aZ09 *,:[{"\\/\n\r\t\0\x1f\x7f\x85é\u2028\ufeff\uffff😀'
"""What texts are made of, the odd among it: to draw from all of Unicode, hypothesis takes seconds to list it."""
