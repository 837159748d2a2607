"""docs/known.md: what DirectML is known to compute otherwise than documented, by operator and by release."""

from __future__ import annotations

from dml_tile.directml.known import OTHER_LINES, SURE, TABLE, Known, known
from dml_tile.directml.sections import values_below

_ABOUT = """\
# Known departures

This page is for wrong values: it lists what DirectML is known to compute otherwise than documented, by operator and by
release. `dml-tile check` adds a note where a target's release may, and an operator meets the condition. What stands in
*italics* is not looked at; of some rows that is all, and they make no note. `dml-tile explain ID` shows a row with all
its sources, and `--ignore DML-KNOWN,ORT-KNOWN` leaves all notes out.

Behind DirectML's operators stand ONNX's, which ONNX Runtime's provider is known to compute otherwise on DirectML:
`check --via ort` adds a note to nodes there, by the release of ONNX Runtime that the target means.

A target that names a release of DirectML, of Windows or of a package gets the rows of that release; a feature level
alone gets what all its releases are known to have, or what was seen at it. The last column says how sure a row is:
{sure}.

| operator | id | condition | releases | it may | try | source |
|---|---|---|---|---|---|---|
"""
_OTHERS = """
## Lines that are no row

DirectML's [Releases.md]({url}) was read
line by line, below its table of versions. Its other lines tell of:

"""
_NEXT = "\nNext: [rules](rules.md), for what else a check finds; [operators](operators.md), for how true values are.\n"


def known_page() -> str:
    """The page."""
    rows = sorted(
        known().values(),
        key=lambda row: (row.id.startswith("ORT"), not row.subjects, row.subjects, row.since, row.fixed),
    )
    return (
        _ABOUT.format(sure="; ".join(f"*{word}*, {text}" for word, text in SURE.items()))
        + "".join(map(_row, rows))
        + _other_lines()
        + _NEXT
    )


def _other_lines() -> str:
    address = values_below(TABLE, "sources")["releases"].partition("?")[0]
    told = values_below(TABLE, OTHER_LINES).items()
    return _OTHERS.format(url=address) + "".join(f"- {what[1:-1]}: {', '.join(lines)}\n" for what, lines in told)


def _row(row: Known) -> str:
    operators = ", ".join(row.subjects) or ("(models)" if row.id.startswith("ORT") else "(calls)")
    where = f"`{row.where}`" if row.where not in ("", "1") else ""
    parts = [
        "" if row.where else "no note",
        "in a graph" if row.graph else "",
        where,
        f"*{row.only}*" if row.only else "",
    ]
    condition = ", ".join(filter(None, parts)) or "always"
    cells = (operators, row.id, condition, row.releases, row.does, "; ".join(row.tries), f"[{row.sure}]({row.url})")
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"
