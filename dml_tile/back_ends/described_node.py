"""A node of a model, and what ONNX Runtime's DirectML provider creates of it, as they travel between processes."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple


class NodePlace(NamedTuple):
    """A node of a model, by which its placement, its descriptors and findings about it are known.

    ``pointer`` is its place by numbers and names: ``3``, ``3/then_branch/0``, ``5/FUNCTION/0``. ``version`` is the
    opset that introduced its operator; 0 if it has none. ``function`` names the kind of function whose body it is in:
    "model" for the model's own, "onnx" for an operator's, or neither.
    """

    pointer: str
    name: str = ""
    domain: str = ""
    operator: str = ""
    version: int = 0
    function: str = ""


class DescriptionOutcome(StrEnum):
    """The outcome of describing a node."""

    DESCRIBED = "described"
    REFUSED = "refused by the provider"
    AT_RUN_TIME = "known at run time only"
    NOT_DESCRIBED = "not described"


@dataclass(frozen=True, slots=True)
class DescribedNode:
    """The operators that the provider creates of a node of a model: their names, and their DML_OPERATOR_DESCs.

    Of a node whose outcome is another than DESCRIBED, ``reason`` says why, if there is more to say, ``operators`` are
    the names that are known anyway, and there are no descriptors. ``graph`` is a DML_GRAPH_DESC that CompileGraph may
    refuse: the node's operators, with its small constants, behind those that write an input otherwise than it is read.
    With ``is_static``, they are created with the session, which knows all sizes.
    """

    place: NodePlace
    outcome: DescriptionOutcome
    reason: str = ""
    operators: tuple[str, ...] = ()
    descs: tuple[dict[str, Any], ...] = ()
    graph: dict[str, Any] | None = None
    is_static: bool = True

    @property
    def label(self) -> str:
        """The node's place, operator and name, in short."""
        place = self.place
        return " ".join(filter(None, (place.pointer, place.operator, place.name and repr(place.name))))

    @property
    def known(self) -> str:
        """The operators that are known, behind another clause."""
        return f"; it creates {', '.join(self.operators)}" if self.operators else ""

    @property
    def why_left_out(self) -> str:
        """Why there are no descriptors, and the operators that are known."""
        return f"{self.place.operator} is {self.outcome}{self.reason and f': {self.reason}'}{self.known}"
