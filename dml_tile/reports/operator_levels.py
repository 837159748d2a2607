"""Writes ``dml-tile levels OPERATOR``: its rows, its ONNX operators, how true its values are, and known departures."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

from dml_tile.back_ends.descriptions import Creator, creators_of
from dml_tile.back_ends.kernels import version_text
from dml_tile.directml.data_types import TensorDataType
from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.known import Known, known
from dml_tile.directml.operator_table import BOTH, Basis, Column, OperatorTable, Row, tables_of
from dml_tile.directml.operators import OperatorRow
from dml_tile.directml.targets import DIRECTML_VERSIONS, oldest_windows
from dml_tile.directml.values import NOT_EXECUTED, values
from dml_tile.text import counts_text


def operator_lines(operator: OperatorRow) -> str:
    """Return what is known of an operator as text: the front, then its rows and what its tensors and fields share."""
    lines = [f"{operator.c_name} ({operator.value}), since {operator.level.short} ({_bringers(operator.level)})"]
    lines += [f"  {line}" for line in _front(operator)]
    blocks = defaultdict[tuple[str, ...], list[str]](list)
    for choice, table in tables_of(operator):
        blocks[(*_rows_text(table), *(f"  {sentence}" for sentence in sentences(operator, table)))].append(choice)
    for block, choices in blocks.items():
        lines += [f"  {', '.join(choices)}"] * any(choices)
        lines += block
    _, table = next(tables_of(operator))
    return "\n".join([*lines, table.page]) + "\n"


def _rows_text(table: OperatorTable) -> Iterator[str]:
    for (kind, level), rows in groupby(rows_of(table), itemgetter(0, 1)):
        yield f"  {_KINDS[kind]}from {level.short}:"
        for _, _, tensors, column in rows:
            types = types_text(column.data_types) or "no types are given"
            yield f"    {tensors}: {counts_text(column.dimension_counts)} dimensions; {types}"


def _bringers(level: FeatureLevel) -> str:
    """Return the oldest DirectML, and the oldest Windows, that have a level."""
    directml = next(row.version for row in DIRECTML_VERSIONS if row.level >= level)
    return f"DirectML {directml}, {oldest_windows(level) or 'no Windows'}"


def _front(operator: OperatorRow) -> Iterator[str]:
    """Yield the ONNX operators of which an operator is created, how true its values are, and its known departures."""
    creators = creators_of(operator.name)
    for span, names in created_of(creators).items():
        yield f"ONNX Runtime {span} creates it of {', '.join(names)}"
    if not creators:
        yield "ONNX Runtime creates it of no node"
    yield f"executed: {values().get(operator.name) or NOT_EXECUTED}"
    own, of_nodes = departures_of(operator.name), node_departures(creators)
    yield f"known departures:{'' if own or of_nodes else ' none'}"
    for row in own:
        yield f"  {row.id}: {row.told_of('it')}"
    if of_nodes:
        yield f"  of its ONNX operators: {', '.join(row.id for row in of_nodes)}"


def created_of(creators: Collection[Creator]) -> dict[str, list[str]]:
    """Return the ONNX operators of which an operator is created, by the releases of ONNX Runtime, in words."""
    found = defaultdict[str, list[str]](list)
    for creator in sorted(creators, key=lambda each: each.releases):
        found[creator.span].append(creator.label)
    return found


def departures_of(name: str) -> list[Known]:
    """Return the known departures of an operator, by its name without prefix."""
    return [row for row in known().values() if name in row.operators]


def node_departures(creators: Collection[Creator]) -> list[Known]:
    """Return the known departures of ONNX Runtime's provider for nodes, in a release that creates the operator."""
    return [row for row in known().values() if any(_departs(row, creator) for creator in creators)]


def _departs(row: Known, creator: Creator) -> bool:
    named = {node.partition("-")[0] for node in row.nodes}
    return creator.operator in named and any(map(row.is_in, creator.releases))


def operator_json(operator: OperatorRow) -> str:
    """Return the same as JSON."""
    tables = [
        {
            "choice": choice,
            "page": table.page,
            "documented": {level.short: _row_record(row) for level, row in table.rows.items()},
            "runtime": {level.short: _row_record(row) for level, row in table.runtime.items()},
            "page_rows": {level.short: _row_record(row) for level, row in table.page_rows.items()},
            "history_rows": {level.short: _row_record(row) for level, row in table.history_rows.items()},
            "requirements": [*sentences(operator, table)],
        }
        for choice, table in tables_of(operator)
    ]
    row, creators = values().get(operator.name), creators_of(operator.name)
    record: dict[str, Any] = {
        "operator": operator.c_name,
        "value": operator.value,
        "since": operator.level.short,
        "onnx": [
            {"operator": each.operator, "opsets": each.opsets, "releases": [*map(version_text, each.releases)]}
            for each in creators
        ],
        "executed": None if row is None else row._asdict(),
        "known": [known.id for known in (*departures_of(operator.name), *node_departures(creators))],
        "tables": tables,
    }
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


def rows_of(table: OperatorTable) -> Iterator[tuple[str, FeatureLevel, str, Column]]:
    """Yield the rows of a table, level by level: what they rest on, the level, tensors, and what these may be."""
    for kind, rows in zip(_KINDS, (table.rows, table.runtime, table.page_rows, table.history_rows), strict=True):
        for level, row in rows.items():
            for column in dict.fromkeys(row.values()):
                yield kind, level, ", ".join(tensor for tensor in row if row[tensor] == column), column


def types_text(data_types: Collection[TensorDataType]) -> str:
    """Return data types by name, in their order."""
    return " ".join(data_type.name for data_type in sorted(data_types))


def sentences(operator: OperatorRow, table: OperatorTable) -> Iterator[str]:
    """Yield what tensors share, and what values, Sizes and pointers have to be."""
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
