"""Notes on nodes that ONNX Runtime's DirectML provider is known to compute otherwise than ONNX documents."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from dml_tile.back_ends.kernels import Version, version_text
from dml_tile.directml.known import known_of_nodes
from dml_tile.rules.equations import is_met, names_in, with_names

if TYPE_CHECKING:
    from dml_tile.back_ends.placement import ModelNode


def looked_at(domain: str, operator: str) -> frozenset[str]:
    """Return the names that conditions on an operator's nodes look at, its attributes among them."""
    rows = known_of_nodes().get(_named(domain, operator), ())
    return frozenset().union(*(names_in(with_names(row.where)) for row in rows))


def known_departures(node: ModelNode, release: Version) -> Iterator[tuple[str, str, str]]:
    """Yield the ids of the known departures of a node on DirectML, each with what happens and what to try, in words."""
    for row in known_of_nodes().get(_named(node.place.domain, node.place.operator), ()):
        is_asked = row.is_in(release) and any(_is_of(each, node) for each in row.nodes)
        if is_asked and is_met(row.where, partial(_value, node=node)):
            yield row.id, row.told_of(f"onnxruntime {version_text(release)}"), ", or ".join(row.tries)


def _named(domain: str, operator: str) -> str:
    return f"{domain}.{operator}" if domain else operator


def _is_of(named: str, node: ModelNode) -> bool:
    """Return True for a node whose operator and version a row names: any, one, or one and later."""
    operator, _, version = named.partition("-")
    is_version = not version or node.place.version == int(version.rstrip("+"))
    return operator == _named(node.place.domain, node.place.operator) and (
        is_version or (version.endswith("+") and node.place.version > int(version[:-1]))
    )


def _value(name: str, node: ModelNode) -> Any:
    """Return an attribute, the sizes of an input or output, its type or constant elements, or a fact of the node."""
    if name in _FACTS:
        return _FACTS[name](node)
    if name in node.attributes:
        return node.attributes[name]
    field, of, formal = name.rpartition("_of_")
    for formals, edges, number in ((node.formals.inputs, node.inputs, 0), (node.formals.outputs, node.outputs, 1)):
        i = next((i for i, (each, _) in enumerate(formals) if each == formal), None)
        if i is not None:
            edge = edges[i] if i < len(edges) else None
            if field == "DataType":
                return edge.type if edge else ""
            facts = node.facts()[number][i] if edge else None
            return facts and (facts.elements if of else facts.sizes)
    return None


_FACTS: Any = {
    "Inputs": lambda node: [facts.sizes for facts in node.facts()[0] if facts],
    "Operator": lambda node: node.place.operator,
    "Outputs": lambda node: [facts.sizes for facts in node.facts()[1] if facts],
    "Types": lambda node: [edge.type for edge in node.inputs if edge],
    "Version": lambda node: node.place.version,
}
