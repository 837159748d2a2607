"""What each feature level takes, for ``dml-tile levels``: tables of Tile and of targets, operators, and a page."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from itertools import groupby
from typing import Any, Final, NamedTuple

from rich.table import Table

from dml_tile.directml import pages
from dml_tile.directml.data_types import TensorDataType, types_of
from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.levels import LEVELS
from dml_tile.directml.operator_table import Column, OperatorTable, Row, tables_of
from dml_tile.directml.operators import Operator, operators
from dml_tile.directml.packages import PACKAGES
from dml_tile.directml.targets import DIRECTML_VERSIONS, WINDOWS_RELEASES, Target, oldest_windows, tile_rows
from dml_tile.reports.markup import Markup, element, html_page, region, table_head

KINDS: Final = {kind: types_of(kind) for kind in dict.fromkeys(row.kind for row in sorted(tile_rows()[-1].data_types))}
"""The data types that Tile has in the same rows."""

KINDS_TEXT: Final = "float: 16 and 32 bits; int: 8 to 32 bits, signed and unsigned; int64: signed and unsigned"
"""The kinds in words."""


def support_table() -> Table:
    """Return Tile's documented rows."""
    table = Table("since level", "dimensions", "data types", title="Tile, input and output")
    for row in tile_rows():
        table.add_row(row.since.short, counts_text(row.dimension_counts), types_text(row.data_types))
    return table


def target_table() -> Table:
    """Return the tiles that each Windows release and DirectML version accepts; narrow enough for 80 columns."""
    table = Table("target", "level", "dimensions", "data types", "DirectML", title="What accepts which tile")
    for row in matrix_rows():
        table.add_row(row.release, *_accepted(row.release), row.directml)
    table.add_section()
    for version in DIRECTML_VERSIONS:
        name = f"directml-{version.version}"
        table.add_row(name, *_accepted(name), version.remark)
    table.columns[0].no_wrap = True  # a name that is cut off is no target
    table.caption = KINDS_TEXT
    return table


def package_table() -> Table:
    """Return the packages with a DirectML, and their releases without one; narrow enough for 80 columns."""
    table = Table(*_PACKAGE_HEADINGS, title=_PACKAGES_TITLE)
    for row in _package_rows():
        table.add_row(*row)
    return table


_PACKAGES_TITLE: Final = "The DirectML in packages"
_PACKAGE_HEADINGS: Final = ("package", "releases", "DirectML", "level")


def _package_rows() -> Iterator[tuple[str, ...]]:
    for row in PACKAGES:
        releases = row.first if row.first == row.last else f"{row.first} to {row.last}"
        level = Target.parse(f"directml-{row.directml}").feature_level.short if row.directml else "-"
        yield row.package, releases, row.directml or "none", level


def levels_table() -> Table:
    """Return the feature levels, with the DirectML versions that bring them."""
    table = Table("level", "value", "DirectML", title="Feature levels")
    for level in FeatureLevel:
        versions = [f"{row.version}.x" for row in DIRECTML_VERSIONS if row.level == level]
        table.add_row(level.short, f"{level.value:#x}", ", ".join(versions))
    return table


def _accepted(name: str) -> tuple[str, str, str]:
    """Return a target's level, dimension counts and kinds of data types."""
    target = Target.parse(name)
    support = target.tile_support
    kinds = (kind for kind, types in KINDS.items() if support.data_types.issuperset(types))
    return target.feature_level.short, counts_text(support.dimension_counts), " ".join(kinds)


NOT_TAKEN: Final = "-"

_MATRIX_TITLE: Final = "Dimensions of the tiles that Windows takes, by data type"
_MATRIX_HEADINGS: Final = ["Windows", "DirectML in the box", "feature level", *KINDS]


class MatrixRow(NamedTuple):
    """A Windows release, its page, the DirectML in its box, that one's feature level, and dimension counts by kind."""

    release: str
    page: str
    directml: str
    level: str
    dimensions: dict[str, str]


def matrix_rows() -> Iterator[MatrixRow]:
    """Yield the rows of the matrix, the oldest release first."""
    for release in WINDOWS_RELEASES:
        target = Target.parse(release.name)
        row = target.tile_support
        taken = {
            kind: counts_text(row.dimension_counts) if row.data_types.issuperset(types) else NOT_TAKEN
            for kind, types in KINDS.items()
        }
        directml = f"{release.directml} inferred" if release.note else release.directml
        yield MatrixRow(release.name, release.page, directml, target.feature_level.short, taken)


def matrix_markdown() -> str:
    """Return the matrix as a Markdown table."""
    lines = [_MATRIX_HEADINGS, ["---"] * len(_MATRIX_HEADINGS)]
    lines += [[row.release, row.directml, row.level, *row.dimensions.values()] for row in matrix_rows()]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _matrix_section() -> Iterator[str]:
    """Yield the matrix as a section of an HTML page."""
    rows = (element("tr", *_cells(row)) for row in matrix_rows())
    table = element("table", table_head(_MATRIX_HEADINGS), element("tbody", *rows), class_="matrix")
    yield element("h2", _MATRIX_TITLE)
    yield from region(_MATRIX_TITLE, [table])
    source = element("a", "Tile's tensor support", href=pages.TILE)
    yield element("p", f"{KINDS_TEXT}; {NOT_TAKEN}: not taken. The dimensions and data types are in ", source, ".")


def _package_section() -> Iterator[str]:
    """Yield the packages as a section of an HTML page."""
    rows = (
        element("tr", element("th", package, scope="row"), *(element("td", cell) for cell in cells))
        for package, *cells in _package_rows()
    )
    table = element("table", table_head(_PACKAGE_HEADINGS), element("tbody", *rows), class_="matrix")
    yield element("h2", _PACKAGES_TITLE)
    yield from region(_PACKAGES_TITLE, [table])


def _cells(row: MatrixRow) -> Iterator[Markup]:
    yield element("th", row.release, scope="row")
    yield element("td", element("a", row.directml, href=row.page))
    yield element("td", row.level)
    for dimensions in row.dimensions.values():
        kinds = {NOT_TAKEN: "none", counts_text(tile_rows()[-1].dimension_counts): "all"}
        yield element("td", dimensions, class_=kinds.get(dimensions, "some"))


def operator_lines(operator: Operator) -> str:
    """Return an operator's rows, and what its tensors and fields share, as text."""
    lines = [f"{operator.c_name} ({operator.value}), since {operator.level.short}"]
    page = ""
    for choice, table in tables_of(operator):
        page = table.page
        lines += [f"  {choice}"] * bool(choice)
        for heading, rows in (("from", table.rows), ("the runtime, measured, from", table.runtime)):
            for level, row in rows.items():
                lines.append(f"  {heading} {level.short}:")
                lines += [f"    {', '.join(tensors)}: {_column_text(column)}" for column, tensors in _alike(row)]
        lines += [f"  {sentence}" for sentence in _sentences(operator, table)]
    return "\n".join([*lines, page]) + "\n"


def operator_json(operator: Operator) -> str:
    """Return the same as JSON."""
    tables = [
        {
            "choice": choice,
            "page": table.page,
            "documented": {level.short: _row_record(row) for level, row in table.rows.items()},
            "runtime": {level.short: _row_record(row) for level, row in table.runtime.items()},
            "requirements": [*_sentences(operator, table)],
        }
        for choice, table in tables_of(operator)
    ]
    record = {"operator": operator.c_name, "value": operator.value, "since": operator.level.short, "tables": tables}
    return f"{json.dumps(record, indent=2)}\n"


_HELD: Final = {
    (True, True): "",
    (True, False): " (by its page only)",
    (False, True): " (runtime only)",
    (False, False): " (else DirectML may crash)",
}
"""Words for who holds a descriptor to a sentence: whether its page has it, and whether the runtime looks at it."""

_PAGE_TITLE: Final = "What each DirectML feature level accepts"


_ROW_HEADINGS: Final = ("from", "basis", "tensors", "dimensions", "data types")


def levels_html() -> str:
    """Return a page of all operators, with a search field, that needs nothing else."""
    return "".join(html_page(_PAGE_TITLE, _page_body(), "levels.js"))


def _page_body() -> Iterator[str]:
    measured = ", ".join(row.level.short for row in LEVELS.values() if row.operators_are_measured)
    yield "<main>\n"
    yield element("h1", _PAGE_TITLE)
    yield from _matrix_section()
    yield from _package_section()
    yield element("h2", "Operators")
    yield element(
        "p",
        "A row is what the operator's page documents of its tensors, from a level on. Rows marked measured are what "
        f"Microsoft's library takes instead; it was asked at {measured}, and about Tile at 5_0 too.",
    )
    search = Markup('<input type="search" name="text" placeholder="GATHER INT64" autocomplete="off">')
    label = element("label", "Search names and types: ", search)
    yield element("form", label, element("span", role="status"), id="filters", role="search", hidden="")
    yield "\n"
    yield '<div class="report">\n'
    for operator in operators().values():
        yield from _operator_section(operator)
    yield "</div>\n</main>\n"


def _operator_section(operator: Operator) -> Iterator[str]:
    yield f'<section class="operator" id="{operator.name}">\n'
    yield element("h3", element("a", operator.name, href=f"#{operator.name}"))
    page = next(table.page for _, table in tables_of(operator))
    source = element("a", "its page", href=page, rel="noreferrer")
    yield element("p", f"{operator.value}; from {_level_text(operator.level)}; ", source, class_="note")
    for choice, table in tables_of(operator):
        if choice:
            yield element("h4", choice)
        rows = [
            element("tr", *map(_cell, _ROW_HEADINGS, cells))
            for kind, levels in (("documented", table.rows), ("measured", table.runtime))
            for level, row in levels.items()
            for cells in _row_cells(level, kind, row)
        ]
        if rows:
            grid = element("table", table_head(_ROW_HEADINGS), element("tbody", *rows))
            yield from region(f"{operator.name} {choice}".strip(), [grid])
        if sentences := [*_sentences(operator, table)]:
            yield element("ul", *(element("li", sentence) for sentence in sentences))
    yield "\n</section>\n"


def _row_cells(level: FeatureLevel, kind: str, row: Row) -> Iterator[tuple[str, ...]]:
    for column, tensors in _alike(row):
        types = types_text(column.data_types) or "not given"
        yield _level_text(level), kind, ", ".join(tensors), counts_text(column.dimension_counts), types


def _cell(heading: str, text: str) -> Markup:
    """Return a cell, with a label for narrow screens, where it stands below the cell before it."""
    return element("td", text, data_label=heading if heading in ("from", "dimensions") else None)


def _level_text(level: FeatureLevel) -> str:
    """Return a level, with the oldest Windows that has it in the box."""
    windows = oldest_windows(level)
    return f"{level.short} ({windows or 'no Windows'})"


def _alike(row: Row) -> list[tuple[Column, list[str]]]:
    columns: dict[Column, list[str]] = {}
    for tensor, column in row.items():
        columns.setdefault(column, []).append(tensor)
    return [*columns.items()]


def _column_text(column: Column) -> str:
    return f"{counts_text(column.dimension_counts)} dimensions; {types_text(column.data_types) or 'no types are given'}"


def counts_text(counts: Collection[int]) -> str:
    """Return dimension counts: ``4``, ``1 to 8`` or ``2, 4``."""
    if len(counts) == max(counts) - min(counts) + 1 > 1:
        return f"{min(counts)} to {max(counts)}"
    return ", ".join(map(str, sorted(counts)))


def types_text(data_types: Collection[TensorDataType]) -> str:
    """Return data types by name, in their order."""
    return " ".join(data_type.name for data_type in sorted(data_types))


def _sentences(operator: Operator, table: OperatorTable) -> Iterator[str]:
    for field, tensors, is_documented, is_checked, alias, condition in table.same:
        if len(tensors) > 1:
            but = f", but {alias[1].name} for {alias[0].name}" if alias else ""
            but += f", if {condition} is given" if condition else ""
            yield f"the same {field}: {', '.join(tensors)}{but}{_HELD[is_documented, is_checked]}"
    yield from (f"{text}{_HELD[is_documented, is_checked]}" for text, is_documented, is_checked in table.fields)
    for tensors, condition, below, is_documented, is_checked in table.given:
        when = f" if {condition.replace(' = ', ' is ')}" if condition else ""
        when += f" below {below.short}" if below else ""
        yield f"not null: {' or '.join(tensors)}{when}{_HELD[is_documented, is_checked]}"
    for tensors, condition, _, is_documented, is_checked in table.null:
        yield f"null: {', '.join(tensors)} if {condition.replace(' = ', ' is ')}{_HELD[is_documented, is_checked]}"
    yield from _shapes(table)
    for text, is_documented, is_checked in table.sizes:
        formula, _, words = text.partition("; ")
        tensor = next(word for word in re.split(r"\W+", formula) if word in operator.named)
        words = f"{tensor} has {words}" if words else formula.replace(" == ", " is ")
        yield f"{words}{_HELD[is_documented, is_checked]}"
    if table.free:
        yield f"any value: {', '.join(table.free)}"
    if table.without_rule:
        yield f"not looked at: {', '.join(table.without_rule)}"


def _shapes(table: OperatorTable) -> Iterator[str]:
    """Yield the shapes of tensors, those that hold alike in one line, then the words for their letters."""
    for held, sentences in groupby(table.shapes, lambda each: (each.is_documented, each.is_checked)):
        shapes = ", ".join(_shape_text(each.text) for each in sentences)
        yield f"Sizes: {shapes}{_HELD[held]}"
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
