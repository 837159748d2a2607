"""A node of a model as ONNX Runtime's DirectML provider describes it, as it travels between processes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class DescriptionOutcome(StrEnum):
    """The outcome of describing a node."""

    DESCRIBED = "described"
    REFUSED = "refused by the provider"
    AT_RUN_TIME = "known at run time only"
    NOT_DESCRIBED = "not described"


@dataclass(frozen=True, slots=True)
class DescribedNode:
    """The operators that the provider creates of a node of a model: their names, and their DML_OPERATOR_DESCs.

    Of a node whose outcome is another than DESCRIBED, ``reason`` says why, ``operators`` are the names that are known
    anyway, and there are no descriptors. ``pointer``, ``name`` and ``operator`` are ModelNode's. ``graph`` is a
    DML_GRAPH_DESC of what CompileGraph may refuse: the node's operators behind those that make its inputs otherwise.
    """

    pointer: str
    name: str
    operator: str
    outcome: DescriptionOutcome
    reason: str = ""
    operators: tuple[str, ...] = ()
    descs: tuple[dict[str, Any], ...] = ()
    graph: dict[str, Any] | None = None

    @property
    def label(self) -> str:
        """The node's place, operator and name, in short."""
        return " ".join(filter(None, (self.pointer, self.operator, self.name and repr(self.name))))

    @property
    def why_left_out(self) -> str:
        """Why there are no descriptors, and the operators that are known."""
        known = f"; it creates {', '.join(self.operators)}" if self.operators else ""
        return f"{self.operator} is {self.outcome}: {self.reason}{known}"
