"""The operators that a graph's line names, by the calls of a capturing device that created them."""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import Any, Final

from dml_tile.descriptors.operator import OperatorDesc

_DIGEST_BYTES: Final = 8


class Operators:
    """The operators that a capture describes, by session and call."""

    def __init__(self) -> None:
        self._descs: dict[tuple[str, int], OperatorDesc] = {}
        self._digests: dict[tuple[str, int], str] = {}

    def add(self, session: str, call: int, desc: OperatorDesc) -> None:
        self._descs[session, call] = desc

    def graph(self, session: str, graph: dict[str, Any]) -> tuple[dict[str, Any], str]:
        """Return a graph with its nodes' operators in place, and its content, independent of the calls' numbers.

        The operators are shared, not copied. Raises LookupError, with the path of a node, for an unknown operator.
        """
        nodes = graph.get("Nodes")
        if not isinstance(nodes, list):
            return graph, json.dumps(graph)
        named = [self._node(session, i, node) for i, node in enumerate(nodes)]
        content = json.dumps(graph | {"Nodes": [digest for _, digest in named]})
        return graph | {"Nodes": [node for node, _ in named]}, content

    def _node(self, session: str, i: int, node: Any) -> tuple[Any, Any]:
        call = node.get("Operator") if isinstance(node, dict) else None
        if type(call) is not int:
            return node, node
        desc = self._descs.get((session, call))
        if desc is None:
            raise LookupError(f"Nodes[{i}].Operator")
        return node | {"Operator": desc}, node | {"Operator": self._digest(session, call, desc)}

    def _digest(self, session: str, call: int, desc: OperatorDesc) -> str:
        if (session, call) not in self._digests:
            text = desc.model_dump_json(by_alias=True)
            self._digests[session, call] = blake2b(text.encode(), digest_size=_DIGEST_BYTES).hexdigest()
        return self._digests[session, call]
