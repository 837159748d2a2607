"""The operator of a node: its domain, its type, and the version of its operator set."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from onnx import NodeProto, OperatorSetIdProto, defs

_OTHER: Final = "ai.onnx@"

MICROSOFT: Final = "com.microsoft"
"""The domain of onnxruntime's own operators."""


class Operator(NamedTuple):
    """A node's operator; onnx's own domain is "", ``opset`` is None if the model imports none of that domain."""

    domain: str
    type: str
    opset: int | None

    @property
    def since(self) -> int | None:
        """The opset that the operator has been the same since."""
        schema = self.schema
        return schema.since_version if schema else None

    @property
    def schema(self) -> defs.OpSchema | None:
        """The schema that onnx has of the operator; None if it has none."""
        if self.opset is None:
            return None
        try:
            return defs.get_schema(self.type, self.opset, self.domain)
        except defs.SchemaError:
            return None


def default_opset(imports: Iterable[OperatorSetIdProto]) -> int | None:
    """Return the version of onnx's own operators that is imported."""
    return next((entry.version for entry in imports if entry.domain in ("", "ai.onnx")), None)


def operator(node: NodeProto, opset: int | None) -> Operator:
    """Return a node's operator in a graph whose default opset is ``opset``, unless the node was moved there."""
    if node.domain.startswith(_OTHER):
        return Operator("", node.op_type, int(node.domain.removeprefix(_OTHER)))
    return Operator("" if node.domain == "ai.onnx" else node.domain, node.op_type, opset)


def move(node: NodeProto, source: int | None, target: int | None) -> None:
    """Make a node of one opset mean the same in a graph of another.

    Where the operator differs, its domain names its opset, so that nothing takes it for the other version.
    """
    here, there = operator(node, source), operator(node, target)
    if not here.domain and here.opset is not None and here.since != there.since:
        node.domain = f"{_OTHER}{source}"
