"""Describes the operators of which a row of rows.toml says all, and names the operators that any kernel creates.

ROWS             the table of functions, one a row
operators_of()   the names of the operators that a node surely becomes, whatever its fields
possible_of()    the names of all that it may become
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from dml_tile.back_ends.descriptions.created import Described, Descriptions
from dml_tile.back_ends.descriptions.node import KernelNode, Table
from dml_tile.back_ends.kernels import Version, version_of

FUSED_DOMAIN: Final = "com.microsoft.dml"
"""The domain of operators into which the provider fused an activation."""

_TABLE: Final = tomllib.loads(Path(__file__).with_name("rows.toml").read_text(encoding="utf-8"))


def _keyed(name: str) -> tuple[str, str]:
    domain, _, operator = name.rpartition(":")
    return domain, operator


def _row(row: Mapping[str, Any], node: KernelNode) -> Descriptions:
    fields = {name: _value(node, field) for name, field in row.items() if name != "creates"}
    return [Described(row["creates"], fields)]


def _value(node: KernelNode, field: Any) -> Any:
    """Return a field's value: a constant, an attribute's, or a tensor."""
    if isinstance(field, list):
        return node.attribute(*field)
    match field.split() if isinstance(field, str) else ():
        case ["input", number, *how]:
            return node.input(int(number), node.output_shape() if how else None)
        case ["output", number]:
            return node.output(int(number))
    return field


def _complete(row: Mapping[str, Any]) -> Mapping[str, Any]:
    taken_over = _TABLE["fields"][row["like"]] if "like" in row else {}
    return taken_over | {name: field for name, field in row.items() if name != "like"}


ROWS: Final[Table] = {_keyed(name): partial(_row, _complete(row)) for name, row in _TABLE["operators"].items()}


class _Name(NamedTuple):
    """A name with the first and the last release of its entry; one that is not sure depends on the node's fields."""

    name: str
    first: Version
    last: Version
    is_sure: bool


@cache
def _named() -> Mapping[tuple[str, str], Mapping[int, tuple[_Name, ...]]]:
    """Return the rows of names, by operator and by the opset from which on they count."""
    found: dict[tuple[str, str], dict[int, tuple[_Name, ...]]] = {}
    for name, row in _TABLE["operators"].items():
        found[_keyed(name)] = {0: (_spanned(row["creates"]),)}
    for name, names in _TABLE["functions"].items():
        operator, _, since = name.partition("-")
        found.setdefault(_keyed(operator), {})[int(since or 0)] = tuple(map(_spanned, names))
    return found


def _spanned(entry: str) -> _Name:
    name, _, span = entry.removesuffix(" ?").partition(" ")
    first, _, last = span.partition("..")
    return _Name(name, version_of(first or "0.0"), version_of(last or f"{10**6}.0"), not entry.endswith("?"))


def fused_operator(operator: str) -> str:
    """Return the operator into which one of FUSED_DOMAIN fuses an activation."""
    return operator.removeprefix("Dml").removeprefix("Fused")


def operators_of(domain: str, operator: str, since: int, release: Version) -> tuple[str, ...]:
    """Return the names of the DirectML operators that a node surely becomes if its output has elements.

    Activations that are fused into one are named, too; names that depend on the node's fields are not. Empty for an
    operator that is not known. ``since`` is the opset that introduced the operator's version.
    """
    return tuple(each.name for each in _created(domain, operator, since, release) if each.is_sure)


def possible_of(domain: str, operator: str, since: int, release: Version) -> frozenset[str]:
    """Return the names of all DirectML operators that a node may become; the arguments are ``operators_of``'s."""
    return frozenset(each.name for each in _created(domain, operator, since, release))


def _created(domain: str, operator: str, since: int, release: Version) -> Iterator[_Name]:
    if domain == FUSED_DOMAIN:
        operator = fused_operator(operator)
        domain = domain if (domain, operator) in _named() else ""
        since = 0
    versions = _named().get((domain, operator), {0: ()})
    for each in versions[max((opset for opset in versions if opset <= since), default=0)]:
        if each.first <= release <= each.last:
            yield each


def name_of(node: KernelNode) -> str:
    """Return the first, often the only, operator that a node becomes."""
    return operators_of(node.domain, node.operator, node.since, node.release)[0]


@cache
def _activations() -> Mapping[str, Mapping[str, Any]]:
    """Return the rows of activations, by ONNX's names in lower case."""
    rows = {_keyed(name)[1].lower(): row for name, row in _TABLE["operators"].items()}
    return {name: row for name, row in rows.items() if row["creates"].startswith("ACTIVATION_")}


def activation(name: str, attributes: Mapping[str, Any], prefix: str = "") -> Mapping[str, Any] | None:
    """Return the descriptor of an activation inside an operator, by its name in ONNX, in any case; None if unknown.

    Its fields are those of the attributes, whose names the prefix begins, or their defaults.
    """
    row = _activations().get(name.lower())
    if row is None:
        return None
    given = {field: value for field, value in row.items() if field not in ("creates", "like")}
    fields = {
        field: attributes.get(prefix + value[0], value[1]) if isinstance(value, list) else value
        for field, value in given.items()
    }
    return {"Type": row["creates"], "Desc": fields}
