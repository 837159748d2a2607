"""Notes on operators, and on nodes of graphs, that a target's DirectML is known to compute otherwise."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import Any

from dml_tile.descriptors.graph import CapturedGraph, Descriptor, GraphDesc, is_constant
from dml_tile.descriptors.operator import OperatorDesc, OperatorFields
from dml_tile.directml.data_types import TensorDataType
from dml_tile.directml.known import Known, known_of
from dml_tile.directml.targets import Target
from dml_tile.findings import Finding, Severity, Try
from dml_tile.rules.equations import is_met, value_of
from dml_tile.rules.graph import entries_of, graph_view, output_of
from dml_tile.rules.operator_view import OperatorView, viewed


def known_departures(desc: Descriptor, target: Target) -> Iterator[Finding]:
    """Yield a note for each known departure of a descriptor that DirectML takes at a target."""
    if isinstance(desc, GraphDesc):
        yield from _of_graph(desc, target)
    elif isinstance(desc, OperatorDesc) and isinstance(desc.desc, OperatorFields):
        yield from _of_operator(desc.desc, target)


def known_in_graph(names: Iterable[str], descs: Iterable[OperatorDesc], target: Target) -> Iterator[Finding]:
    """Yield a note for each known departure of operators that a back end creates, and connects in a way of its own.

    What a finding is ``about`` is the operator without values. Without descriptors, those that hold of any fields.
    """
    described = [desc.desc for desc in descs if isinstance(desc.desc, OperatorFields)]
    for fields in described:
        yield from _of_operator(fields, target, {})
    rows = ((row, name) for name in names for row in known_of(name) if row.where == "1" and row.holds_at(target))
    yield from (_note(row, name, "", target) for row, name in rows if not described)


def _of_operator(
    fields: OperatorFields, target: Target, graph: Mapping[str, Any] | None = None, *, is_alone: bool = True
) -> Iterator[Finding]:
    """Yield the notes on an operator, with what a graph adds to its values; those on it alone unless not asked for."""
    for row in known_of(fields.operator.name):
        is_asked = graph is not None if row.graph else is_alone
        if is_asked and row.holds_at(target):
            op = viewed(fields)
            value = partial(_value, op=op, graph=graph or {})
            if is_met(row.where, value):
                shown = f" with {row.shows} {op.named(row.shows) if row.shows in fields.values else value(row.shows)}"
                yield _note(row, fields.operator.name, shown if row.shows else "", target)


def _of_graph(graph: GraphDesc, target: Target) -> Iterator[Finding]:
    view = graph_view(graph)
    readers, read = defaultdict[int, list[str]](list), defaultdict[int, set[int]](set)
    ends = [(output_of(edge), view.operators[edge.to_node_index].name) for _, edge in view.intermediates]
    for (i, output), reader in (*ends, *((output_of(edge), "") for _, edge in view.outputs)):
        readers[i].append(reader)
        read[i].add(output)
    for i, (node, operator) in enumerate(zip(entries_of(graph, "nodes"), view.operators, strict=True)):
        if is_constant(node):
            rows = (row for row in known_of("CONSTANT") if row.holds_at(target))
            yield from (_note(row, "CONSTANT", "", target).within(f"Nodes[{i}]") for row in rows)
        elif operator.fields is not None and operator.tensors is not None:
            outputs = sum(output is not None for output in operator.tensors[1])
            values = {"Readers": readers[i], "Unread": outputs - len(read[i])}
            is_alone = not isinstance(graph, CapturedGraph)  # whose operators have lines of their own
            for note in _of_operator(operator.fields, target, values, is_alone=is_alone):
                yield note.within(f"Nodes[{i}].Operator")


def _value(name: str, op: OperatorView, graph: Mapping[str, Any]) -> Any:
    """Return a field's value, or that of an enumerator, of a data type or of a graph."""
    if name in graph or name in TensorDataType.__members__:
        return graph[name] if name in graph else TensorDataType[name]
    try:
        return value_of(op, name)
    except LookupError:
        return None


def _note(row: Known, operator: str, shown: str, target: Target) -> Finding:
    release = target.directml
    library = f"DirectML {'.'.join(map(str, release))}" if release else f"DirectML at {target.feature_level.short}"
    told, tries = row.told_of(library), tuple(map(Try, row.tries))
    return Finding(
        row.id, "", f"{operator}{shown}: {told}", Severity.NOTE, url=row.url, tries=tries, about=f"{operator}: {told}"
    )
