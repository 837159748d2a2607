"""Results as Markdown, for the summary of a CI run or a comment: a table of operators and targets, then the findings.

Page: https://github.github.com/gfm/
"""
# ruff: noqa: S704  # Markup marks what is Markdown already

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from markupsafe import Markup

from dml_tile.checks.placements import targets_to_tell, with_places
from dml_tile.checks.result import CheckedFile
from dml_tile.findings import Severity
from dml_tile.reports.overview import OverviewReport
from dml_tile.reports.templates import templates

MAX_IN_A_COMMENT: Final = 50
"""The limit for listed operators with findings, for those without, and for problems: a summary holds 1 MiB."""

_SPECIAL: Final = re.compile(r"([\\`*_\[\]<>#|&~@:$]|(?<=www)\.)", re.IGNORECASE)
"""Characters that mean something; GitHub makes links of ``www.`` too."""
_BACKTICKS: Final = re.compile("`+")
_PIPES: Final = re.compile(r"\\*\|")


class MarkdownReport(OverviewReport):
    """A heading with the counts, the unreadable files, the table, and the findings; written at the end."""

    max_listed = MAX_IN_A_COMMENT

    def end(self, files: Sequence[CheckedFile]) -> None:
        environment = templates(_escaped)
        environment.filters |= {"code": _code, "code_in_a_table": _code_in_a_table}
        placed = self.placed
        departures = [with_places(each, targets_to_tell(each, placed.targets)) for each in placed.departures]
        pieces = environment.get_template("markdown.md").generate(
            report=self,
            rows=self.rows,
            files=files,
            placed=placed,
            worse=[each for each in departures if each.severity is not Severity.NOTE],
            notes=[each for each in departures if each.severity is Severity.NOTE],
            MAX_IN_A_COMMENT=MAX_IN_A_COMMENT,
        )
        for piece in pieces:
            self._write(piece)


def _escaped(value: object) -> Markup:
    return value if isinstance(value, Markup) else Markup(_SPECIAL.sub(r"\\\1", str(value)))


def _code(text: str) -> Markup:
    """Return a name or a value as a code span, in which nothing is a link, a mention or markup."""
    fence = "`" * (max(map(len, _BACKTICKS.findall(text)), default=0) + 1)
    blank = " " * (len(fence) > 1 or text != text.strip(" "))
    return Markup(f"{fence}{blank}{text}{blank}{fence}")


def _code_in_a_table(text: str) -> Markup:
    """Return a name as a code span in a table, where a pipe is escaped in code too.

    A backslash before that would escape the escape.
    """
    return Markup(_PIPES.sub(r"\\|", str(_code(text))))
