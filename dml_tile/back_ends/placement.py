"""The provider of ONNX Runtime that takes each node of a model: DirectML, the CPU, or none.

ModelNode     a node, with what placing it takes; a LoadedModel has them
Reason        a placement, and why
PlacedModel   the placements of a model's nodes at several targets, as ``dml_tile.back_ends.placer`` finds them
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dml_tile.back_ends.described_node import DescribedNode, NodePlace
from dml_tile.back_ends.kernels import Version
from dml_tile.findings import OWN

if TYPE_CHECKING:  # descriptions import NumPy
    from dml_tile.back_ends.descriptions.node import KernelNode


class Placement(StrEnum):
    """The provider that takes a node, or the reason why none is asked."""

    DIRECTML = "directml"
    CPU = "cpu"
    NONE = "none"
    """No provider takes it."""
    UNKNOWN = "unknown"
    """An input's type is not known, or the release's kernels are not."""
    GONE = "gone"
    """It is folded, dropped or replaced before any provider sees it."""


NAMELESS: Final = "(without a name)"
"""Stands for the name of an operator that has none."""


class Reason(NamedTuple):
    """A *placement* of the design, as it travels between processes: the provider, and why.

    ``rule`` is the rule's id, empty if there is nothing to report, ``why`` the reason in words.

    A sentence about the ``operator``, which has no domain here, goes on behind ``joint``; empty for other reasons.
    """

    placement: Placement
    rule: str = ""
    why: str = ""
    suggestion: str | None = None
    operator: str = ""
    joint: str = ""

    @property
    def text(self) -> str:
        """The reason, behind the operator that it is about."""
        return f"{self.operator}{self.joint}{self.why}"


@dataclass(slots=True, eq=False)
class Edge:
    """A value: ONNX's name of its type, and its number of elements; None if unknown.

    ``is_input`` marks an input of its graph, ``is_initialiser`` a value that is there before the model runs. ``name``
    is the model's, cut short.
    """

    type: str | None = None
    elements: int | None = None
    is_input: bool = False
    is_initialiser: bool = False
    name: str = ""


class Crossing(NamedTuple):
    """The name of a value that one provider makes and another reads, and the provider in whose memory it is read."""

    value: str
    to: Placement


class OpsetAdvice(NamedTuple):
    """An opset at which no node's version keeps it from DirectML, and how many of the nodes would be there."""

    opset: int
    on_directml: int
    nodes: int


class Facts(NamedTuple):
    """The sizes of a value, None where one or all are unknown, and its elements, if it is a small constant."""

    sizes: tuple[int | None, ...] | None = None
    elements: tuple[Any, ...] | None = None


class Formals(NamedTuple):
    """The names of an operator's inputs and outputs, each with that of its type: a variable or a type."""

    inputs: Sequence[tuple[str, str]] = ()
    outputs: Sequence[tuple[str, str]] = ()


class Gone(NamedTuple):
    """The reason why level 1 removes a node, from a release on.

    ``is_computed`` is True if it does so by the CPU provider's kernel, from inputs that are constants. ``is_unwrapped``
    marks an If that is replaced by one of its graphs. ``kept`` are the values that replace the node's outputs.
    """

    reason: str
    since: Version = (1, 0)
    is_computed: bool = False
    is_unwrapped: bool = False
    kept: tuple[Edge | None, ...] = ()


class Fusion(NamedTuple):
    """The node that ONNX Runtime makes of ``parts`` from a release to another, at the place of the last of them.

    Level 1 does so before a provider is asked, level 2 if all parts are on DirectML. Nothing uses the nodes ``dropped``
    then.
    """

    node: ModelNode
    parts: tuple[ModelNode, ...]
    level: int
    since: Version
    to: Version
    dropped: tuple[ModelNode, ...] = ()


@dataclass(slots=True, eq=False)
class ModelNode:
    """A node of a model, or of the body of one of its functions.

    ``implicit`` are the values from outside that its ``graphs`` use. ``body`` returns the nodes that may replace it,
    None if they depend on a type that is not known; it is None for a node that nothing replaces. ``introduced`` is the
    first version of its operator; ``fits`` tells whether an older version has the node's attributes and their values;
    ``version_at`` returns the operator's version at an opset, 0 if that lacks it. ``fault`` says why its operator is
    unknown, or no session has it. ``fusions`` are those of which it is the last part, of which the first that applies
    is made; of a node that is made so, ``parts`` is their number. ``facts`` returns those of its inputs and outputs.
    """

    place: NodePlace
    inputs: tuple[Edge | None, ...]
    outputs: tuple[Edge | None, ...]
    formals: Formals
    attributes: Mapping[str, Any] = field(default_factory=dict)
    implicit: tuple[Edge, ...] = ()
    graphs: tuple[Sequence[ModelNode], ...] = ()
    body: Callable[[], Sequence[ModelNode] | None] | None = None
    introduced: int = 1
    fits: Callable[[int], bool] = lambda version: True
    version_at: Callable[[int], int] = lambda opset: 0
    gone: Gone | None = None
    fault: Reason | None = None
    kernel: Callable[[Version], KernelNode] | None = None
    fusions: tuple[Fusion, ...] = ()
    parts: int = 0
    may_become: tuple[str, ...] = ()
    facts: Callable[[], tuple[Sequence[Facts | None], Sequence[Facts | None]]] = lambda: ((), ())


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model: its IR version, the opsets that it imports by domain ("" for onnx's own operators), and its nodes.

    It has nodes of the domains ``unimported``, which it does not import: at the newest opset that the release knows.
    No node uses an import of the domains ``unused``.
    ``faults`` are those of its graph, each behind the release from which on it is one.
    """

    ir: int
    opsets: Mapping[str, int]
    nodes: Sequence[ModelNode]
    unimported: tuple[str, ...] = ()
    faults: tuple[tuple[Version, Reason], ...] = ()
    unused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PlacedModel:
    """The placements of a model's nodes at several targets.

    ``reasons`` are those that occur. ``errors`` and ``placed`` have an entry a target: the reasons why the model does
    not load, and the reason of each of the ``nodes``, -1 where it is not there; both by their numbers. So do ``notes``:
    a node on DirectML and a known departure, each by its number. ``descriptions`` are those that occur of nodes on
    DirectML, without places and names; ``described`` has the number of each node's, a target each, -1 for none.
    ``crossings`` are those that occur of values; ``crossed`` has their numbers, a target each, one for each value.
    ``opsets`` has the advice on the opset, a target each, None where there is none.
    """

    nodes: tuple[NodePlace, ...]
    reasons: tuple[Reason, ...]
    errors: tuple[tuple[int, ...], ...]
    placed: tuple[tuple[int, ...], ...]
    descriptions: tuple[DescribedNode, ...]
    described: tuple[tuple[int, ...], ...]
    notes: tuple[tuple[tuple[int, int], ...], ...] = ()
    crossings: tuple[Crossing, ...] = ()
    crossed: tuple[tuple[int, ...], ...] = ()
    opsets: tuple[OpsetAdvice | None, ...] = ()

    def __post_init__(self) -> None:
        """Raise ValueError for a number of no reason, a rule that is none of nodes, and a node too many or few."""
        numbers = range(len(self.reasons))
        if any(number not in numbers and number != -1 for each in self.placed for number in each):
            raise ValueError("a number is that of no reason")
        if any(number not in numbers or not self.reasons[number].rule for each in self.errors for number in each):
            raise ValueError("an error has no rule")
        if not all(map(_has_its_rule, self.reasons)) or (self.nodes and not self.reasons):
            raise ValueError("a rule is none of nodes")
        notes = [pair for at in self.notes for pair in at]
        if not all(0 <= i < len(self.nodes) and n in numbers and self.reasons[n].rule for i, n in notes):
            raise ValueError("a note is of no node, or has no rule")
        columns = (*self.placed, *self.described)
        if not len(self.errors) == len(self.placed) == len(self.described) or any(
            len(each) != len(self.nodes) for each in columns
        ):
            raise ValueError("each node has a placement at each target")
        numbers = range(-1, len(self.descriptions))
        if any(number not in numbers for each in self.described for number in each):
            raise ValueError("a number is that of no description")
        numbers = range(len(self.crossings))
        if any(number not in numbers for each in self.crossed for number in each):
            raise ValueError("a number is that of no crossing")

    def notes_at(self, target: int) -> Iterator[tuple[NodePlace, Reason]]:
        """Yield the nodes on DirectML with all their known departures at a target, by its number."""
        for node, reason in self.notes[target] if self.notes else ():
            yield self.nodes[node], self.reasons[reason]

    def crossings_at(self, target: int) -> Iterator[Crossing]:
        """Yield the values that cross between DirectML and the CPU at a target, by its number."""
        return (self.crossings[number] for number in (self.crossed[target] if self.crossed else ()))

    def opset_at(self, target: int) -> OpsetAdvice | None:
        """Return the advice on the opset at a target, by its number; None where there is none."""
        return self.opsets[target] if self.opsets else None

    def without(self, rule: str) -> PlacedModel:
        """Return the placements without a rule's findings on the model."""
        errors = (tuple(i for i in at if self.reasons[i].rule != rule) for at in self.errors)
        return replace(self, errors=tuple(errors))

    def at(self, target: int) -> Iterator[tuple[NodePlace, Reason]]:
        """Yield the nodes with their placements at a target, by its number."""
        for node, reason in zip(self.nodes, self.placed[target], strict=True):
            if reason >= 0:
                yield node, self.reasons[reason]


def _has_its_rule(reason: Reason) -> bool:
    """Return True for a rule of nodes, and for none where there is nothing to report."""
    if reason.rule:
        return reason.rule in OWN and OWN[reason.rule].key == "nodes"
    return reason.placement in (Placement.DIRECTML, Placement.GONE)
