"""Writes ``dml-tile levels``: tables of Tile, of targets and of operators, and a page."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from rich.table import Table

from dml_tile.directml import pages
from dml_tile.directml.data_types import TensorDataType, types_of
from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.levels import LEVELS
from dml_tile.directml.operator_table import BOTH, Basis, Column, OperatorTable, Row, tables_of
from dml_tile.directml.operators import Operator, operators
from dml_tile.directml.targets import DIRECTML_VERSIONS, PACKAGES, WINDOWS_RELEASES, Target, oldest_windows, tile_rows
from dml_tile.directml.values import NOT_EXECUTED, values
from dml_tile.text import counts_text

KINDS: Final = {kind: types_of(kind) for kind in dict.fromkeys(row.kind for row in sorted(tile_rows()[-1].data_types))}
"""The data types that Tile has in the same rows."""

KINDS_TEXT: Final = "float: 16 and 32 bits; int: 8 to 32 bits, signed and unsigned; int64: signed and unsigned"
"""The kinds in words."""


NOT_TAKEN: Final = "-"

_MATRIX_HEADINGS: Final = ("Windows", "DirectML in the box", "feature level", *KINDS)
_PACKAGE_HEADINGS: Final = ("package", "releases", "DirectML", "level")


def tables() -> list[Table | str]:
    """Return what accepts which tile, the packages, Tile's documented rows and the levels, with blank lines between.

    All are within 80 columns.
    """
    made = Table("target", "level", "dimensions", "data types", "DirectML", title="What accepts which tile")
    for release, directml, *_ in matrix_rows():
        made.add_row(release, *_accepted(release), directml)
    made.add_section()
    for version in DIRECTML_VERSIONS:
        name = f"directml-{version.version}"
        made.add_row(name, *_accepted(name), version.remark)
    made.columns[0].no_wrap = True  # a name that is cut off is no target
    made.caption = KINDS_TEXT
    support = ((row.since.short, counts_text(row.dimension_counts), types_text(row.data_types)) for row in tile_rows())
    return [
        made,
        "",
        _table("The DirectML in packages", _PACKAGE_HEADINGS, _package_rows()),
        "",
        _table("Tile, input and output", ("since level", "dimensions", "data types"), support),
        "",
        _table("Feature levels", ("level", "value", "DirectML"), _level_rows()),
    ]


def _table(title: str, headings: Iterable[str], rows: Iterable[Iterable[str]]) -> Table:
    table = Table(*headings, title=title)
    for row in rows:
        table.add_row(*row)
    return table


def _accepted(name: str) -> tuple[str, str, str]:
    """Return a target's level, dimension counts and kinds of data types."""
    target = Target.parse(name)
    return target.feature_level.short, counts_text(target.tile_support.dimension_counts), " ".join(_kinds_taken(target))


def _kinds_taken(target: Target) -> list[str]:
    return [kind for kind, types in KINDS.items() if target.tile_support.data_types.issuperset(types)]


def _package_rows() -> Iterator[tuple[str, ...]]:
    for row in PACKAGES:
        releases = row.first if row.first == row.last else f"{row.first} to {row.last}"
        level = Target.parse(f"directml-{row.directml}").feature_level.short if row.directml else "-"
        yield row.package, releases, row.directml or "none", level


def _level_rows() -> Iterator[tuple[str, ...]]:
    for level in FeatureLevel:
        versions = [f"{row.version}.x" for row in DIRECTML_VERSIONS if row.level == level]
        yield level.short, f"{level.value:#x}", ", ".join(versions)


def matrix_rows() -> Iterator[tuple[str, ...]]:
    """Yield the Windows releases, the oldest first: DirectML in the box, its level, and dimension counts by kind."""
    for release in WINDOWS_RELEASES:
        target = Target.parse(release.name)
        counts, taken = counts_text(target.tile_support.dimension_counts), _kinds_taken(target)
        directml = f"{release.directml} inferred" if release.note else release.directml
        dimensions = (counts if kind in taken else NOT_TAKEN for kind in KINDS)
        yield release.name, directml, target.feature_level.short, *dimensions


def matrix_markdown() -> str:
    """Return the matrix as a Markdown table."""
    lines = _MATRIX_HEADINGS, ["---"] * len(_MATRIX_HEADINGS), *matrix_rows()
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def operator_lines(operator: Operator) -> str:
    """Return an operator's rows, and what its tensors and fields share, as text."""
    lines = [f"{operator.c_name} ({operator.value}), since {operator.level.short}"]
    page = ""
    for choice, table in tables_of(operator):
        page = table.page
        lines += [f"  {choice}"] * bool(choice)
        for (kind, level), rows in groupby(_rows(table), itemgetter(0, 1)):
            lines.append(f"  {_KINDS[kind]}from {level.short}:")
            for _, _, tensors, column in rows:
                types = types_text(column.data_types) or "no types are given"
                lines.append(f"    {tensors}: {counts_text(column.dimension_counts)} dimensions; {types}")
        lines += [f"  {sentence}" for sentence in _sentences(operator, table)]
    lines.append(f"  executed: {values().get(operator.name) or NOT_EXECUTED}")
    return "\n".join([*lines, page]) + "\n"


def operator_json(operator: Operator) -> str:
    """Return the same as JSON."""
    tables = [
        {
            "choice": choice,
            "page": table.page,
            "documented": {level.short: _row_record(row) for level, row in table.rows.items()},
            "runtime": {level.short: _row_record(row) for level, row in table.runtime.items()},
            "page_rows": {level.short: _row_record(row) for level, row in table.page_rows.items()},
            "history_rows": {level.short: _row_record(row) for level, row in table.history_rows.items()},
            "requirements": [*_sentences(operator, table)],
        }
        for choice, table in tables_of(operator)
    ]
    record: dict[str, Any] = {
        "operator": operator.c_name,
        "value": operator.value,
        "since": operator.level.short,
        "tables": tables,
    }
    row = values().get(operator.name)
    record["executed"] = None if row is None else row._asdict()
    return f"{json.dumps(record, indent=2)}\n"


_KINDS: Final = {
    "documented": "",
    "measured": "the runtime, measured, ",
    "page only": "its page, which has less, ",
    "history only": "the feature level history, which has less, ",
}
"""Words for what rows rest on; documented ones are those of the source that has the most."""

_HELD: Final = {
    BOTH: "",
    Basis.DOCUMENTED: " (by its page only)",
    Basis.RUNTIME: " (runtime only)",
    Basis.INFERRED: " (else DirectML may crash)",
}
"""Words for who holds a descriptor to a sentence, by its basis."""


def levels_html() -> str:
    """Return a page of all operators, with a search field, that needs nothing else."""
    from dml_tile.reports.templates import html_page  # with its library

    page = html_page(
        "levels",
        matrix_headings=_MATRIX_HEADINGS,
        matrix=zip(WINDOWS_RELEASES, matrix_rows(), strict=True),
        all_counts=counts_text(tile_rows()[-1].dimension_counts),
        not_taken=NOT_TAKEN,
        kinds=KINDS_TEXT,
        tile_page=pages.TILE,
        package_headings=_PACKAGE_HEADINGS,
        packages=_package_rows(),
        measured=[row.level.short for row in LEVELS.values() if row.operators_are_measured],
        operators=[(operator, [*tables_of(operator)]) for operator in operators().values()],
        level_text=_level_text,
        rows_of=_rows,
        counts_text=counts_text,
        types_text=types_text,
        sentences=_sentences,
    )
    return "".join(page)


def _level_text(level: FeatureLevel) -> str:
    """Return a level, with the oldest Windows that has it in the box."""
    windows = oldest_windows(level)
    return f"{level.short} ({windows or 'no Windows'})"


def _rows(table: OperatorTable) -> Iterator[tuple[str, FeatureLevel, str, Column]]:
    """Yield the rows of a table, level by level: what they rest on, the level, tensors, and what these may be."""
    for kind, rows in zip(_KINDS, (table.rows, table.runtime, table.page_rows, table.history_rows), strict=True):
        for level, row in rows.items():
            for column in dict.fromkeys(row.values()):
                yield kind, level, ", ".join(tensor for tensor in row if row[tensor] == column), column


def types_text(data_types: Collection[TensorDataType]) -> str:
    """Return data types by name, in their order."""
    return " ".join(data_type.name for data_type in sorted(data_types))


def _sentences(operator: Operator, table: OperatorTable) -> Iterator[str]:
    for field, tensors, basis, alias, condition in table.same:
        if len(tensors) > 1:
            but = f", but {alias[1].name} for {alias[0].name}" if alias else ""
            but += f", if {condition} is given" if condition else ""
            yield f"the same {field}: {', '.join(tensors)}{but}{_HELD[basis]}"
    for text, basis, below in table.fields:
        yield f"{text}{f' below {below.short}' if below else ''}{_HELD[basis]}"
    for tensors, condition, below, basis in table.given:
        when = f" if {condition.replace(' = ', ' is ')}" if condition else ""
        when += f" below {below.short}" if below else ""
        yield f"not null: {' or '.join(tensors)}{when}{_HELD[basis]}"
    for tensors, condition, _, basis in table.null:
        yield f"null: {', '.join(tensors)} if {condition.replace(' = ', ' is ')}{_HELD[basis]}"
    yield from _shapes(table)
    for text, basis, _ in table.sizes:
        formula, _, words = text.partition("; ")
        tensor = next(word for word in re.split(r"\W+", formula) if word in operator.named)
        words = f"{tensor} has {words}" if words else formula.replace(" == ", " is ")
        yield f"{words}{_HELD[basis]}"
    if table.free:
        yield f"any value: {', '.join(table.free)}"
    if table.without_rule:
        yield f"not looked at: {', '.join(table.without_rule)}"


def _shapes(table: OperatorTable) -> Iterator[str]:
    """Yield the shapes of tensors, those that hold alike in one line, then the words for their letters."""
    for basis, sentences in groupby(table.shapes, lambda each: each.basis):
        shapes = ", ".join(_shape_text(each.text) for each in sentences)
        yield f"Sizes: {shapes}{_HELD[basis]}"
    if table.names:
        yield ", ".join(f"{name} is {words}" for name, words in table.names.items())


def _shape_text(shape: str) -> str:
    """Return a shape in words, such as "ATensor K M if TransA is TRANSPOSE"."""
    tensor, _, sizes = shape.partition(": ")
    name, _, condition = tensor.partition(" if ")
    for sign, word in (("?...", "…"), ("...", "…"), ("?", "any"), ("|", " or ")):
        sizes = sizes.replace(sign, word)
    verb = "" if name.endswith(("Tensor", "Tensors")) else "is "
    text = f"{name} {verb}{sizes}{f' if {condition}' if condition else ''}"
    return text.replace(" == ", " is ").replace(" = ", " is ")


def _row_record(row: Row) -> dict[str, Any]:
    return {
        tensor: {
            "dimension_counts": sorted(column.dimension_counts),
            "data_types": [data_type.name for data_type in sorted(column.data_types)],
        }
        for tensor, column in row.items()
    }
