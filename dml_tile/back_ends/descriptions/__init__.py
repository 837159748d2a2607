"""The DirectML operators that ONNX Runtime's DirectML provider creates of a node that it takes, by release.

describe()         their descriptors, in the provider's order
described_node()   the same as a DescribedNode, which says why there are none, too; described_operators() has both
operators_of()     the names of those that a node surely becomes, whatever its fields
creators_of()      the nodes that become an operator, by release

node               a node and its tensors; rows and rows.toml, operators of which a table says all; the other modules, a
                   family of operators each
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dml_tile.back_ends.described_node import DescribedNode, DescriptionOutcome, NodePlace
from dml_tile.back_ends.descriptions.activations import ACTIVATIONS
from dml_tile.back_ends.descriptions.attention import ATTENTION
from dml_tile.back_ends.descriptions.convolutions import CONVOLUTIONS
from dml_tile.back_ends.descriptions.created import Described, Descriptions, require_c_integers
from dml_tile.back_ends.descriptions.creators import Creator, creators_of
from dml_tile.back_ends.descriptions.element_wise import ELEMENT_WISE
from dml_tile.back_ends.descriptions.matrices import MATRICES
from dml_tile.back_ends.descriptions.movement import MOVEMENT
from dml_tile.back_ends.descriptions.node import KernelNode, Table, table_of
from dml_tile.back_ends.descriptions.norms import NORMS
from dml_tile.back_ends.descriptions.pooling import POOLING
from dml_tile.back_ends.descriptions.quantised import QUANTISED
from dml_tile.back_ends.descriptions.recurrent import RECURRENT
from dml_tile.back_ends.descriptions.reductions import REDUCTIONS
from dml_tile.back_ends.descriptions.refusals import (
    KnownAtRunTime,
    NotDescribed,
    OpenDescription,
    ProviderRefusal,
    require,
)
from dml_tile.back_ends.descriptions.resize import RESIZE
from dml_tile.back_ends.descriptions.rotary import ROTARY
from dml_tile.back_ends.descriptions.rows import FUSED_DOMAIN, ROWS, activation, fused_operator, operators_of
from dml_tile.directml.enums import UINT_MAX

__all__ = ["KnownAtRunTime", "NotDescribed", "OpenDescription", "ProviderRefusal"]
__all__ += ["DESCRIPTIONS", "WITHOUT_OPERATORS", "Creator", "Described", "KernelNode", "creators_of", "describe"]
__all__ += ["described_node", "described_operators", "operators_of"]

WITHOUT_OPERATORS: Final = frozenset(
    (
        *("Shape", "Size", "If", "SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase"),
        *("SequenceInsert", "SequenceLength", "OptionalGetElement", "OptionalHasElement", "DFT", "GridSample"),
    )
)
"""Operators whose kernels create no operator of DirectML's; those of DFT and GridSample are shaders."""

_EMPTY_INPUTS: Final = frozenset({"Concat", "Scatter", "ScatterElements", "NonZero"})
"""Operators that themselves say what becomes of inputs and outputs without elements."""


def _nothing(node: KernelNode) -> Descriptions:
    return ()


_TABLES: Final = (
    *(ROWS, ELEMENT_WISE, ACTIVATIONS, QUANTISED, MATRICES, CONVOLUTIONS, POOLING, NORMS, REDUCTIONS, MOVEMENT, RESIZE),
    *(RECURRENT, ATTENTION, ROTARY, table_of({" ".join(sorted(WITHOUT_OPERATORS)): _nothing})),
)

DESCRIPTIONS: Final[Table] = {operator: function for table in _TABLES for operator, function in table.items()}
"""The functions that describe nodes, by their operators' domain and name."""


def describe(node: KernelNode) -> tuple[Described, ...]:
    """Return the operators that the provider creates of a node, in its order; none for an output without elements.

    Raises ProviderRefusal where the provider itself refuses the node, KnownAtRunTime where its kernel is
    created when it runs, NotDescribed where no description covers it; the last two name the operators that are
    known anyway.
    """
    try:
        _require_uints(size for value in (*node.inputs, *node.outputs) if value for size in value.shape or ())
        made = tuple(_sound(node))
        for each in made:
            require_c_integers(each)
    except OpenDescription as error:
        error.operators = operators_of(node.domain, node.operator, node.since, node.release)
        raise
    return made


def _sound(node: KernelNode) -> Descriptions:
    try:
        return _described(node)
    except (ArithmeticError, LookupError, TypeError, ValueError):
        raise NotDescribed("its shapes and attributes do not fit together") from None


def _require_uints(sizes: Iterable[int]) -> None:
    """Raise NotDescribed for a size that fits no UINT: kernels wrap it, and compute something else."""
    if (most := max(sizes, default=0)) > UINT_MAX:
        raise NotDescribed(f"a size of {most} fits no UINT")


def _described(node: KernelNode) -> Descriptions:
    if node.domain == FUSED_DOMAIN:
        return _with_activation(node)
    function = DESCRIPTIONS.get((node.domain, node.operator))
    if function is None:
        raise NotDescribed
    made = function(node)
    return () if node.operator not in WITHOUT_OPERATORS | _EMPTY_INPUTS and _is_empty(node) else made


def _is_empty(node: KernelNode) -> bool:
    """Return True if an output or the first input has no elements, so that nothing is created."""
    outputs = (node.output_shape(i) for i in range(len(node.outputs)) if node.gives(i))
    return any(0 in shape for shape in outputs) or (node.has(0) and 0 in node.shape(0))


def _with_activation(node: KernelNode) -> Descriptions:
    """Describe an operator of com.microsoft.dml's: that of ONNX, with FusedActivation; an addition is ADD1."""
    plain = node._replace(domain="", operator=fused_operator(node.operator))
    name = node.attribute("activation" if node.release < (1, 13) else "fused_activation", "")
    fused = activation(name, node.attributes, "fused_")
    require(fused, f"the activation {name or 'is missing'}")
    first, *others = _described(plain)
    creates = "ELEMENT_WISE_ADD1" if first.operator == "ELEMENT_WISE_ADD" else first.operator
    return [Described(creates, {**first.fields, "FusedActivation": fused}), *others]


_OUTCOMES: Final = {
    ProviderRefusal: DescriptionOutcome.REFUSED,
    KnownAtRunTime: DescriptionOutcome.AT_RUN_TIME,
    NotDescribed: DescriptionOutcome.NOT_DESCRIBED,
}


def described_node(place: NodePlace, node: KernelNode) -> DescribedNode:
    """Return what the provider creates of a node of a model."""
    return described_operators(place, node)[0]


def described_operators(place: NodePlace, node: KernelNode) -> tuple[DescribedNode, tuple[Described, ...]]:
    """Return what ``described_node`` returns, and the operators with their tensors."""
    place = place._replace(operator=node.operator)
    if node.is_grouped:
        reason = "it is of a quantised group, of which ONNX Runtime may make other nodes"
        return DescribedNode(place, DescriptionOutcome.NOT_DESCRIBED, reason), ()
    try:
        made = describe(node)
    except (ProviderRefusal, OpenDescription) as error:
        known = error.operators if isinstance(error, OpenDescription) else ()
        outcome = _OUTCOMES[type(error)]
        is_static = node.is_static and outcome is not DescriptionOutcome.AT_RUN_TIME
        return DescribedNode(place, outcome, str(error), known, is_static=is_static), ()
    names, descs = tuple(each.operator for each in made), tuple(each.desc for each in made)
    return DescribedNode(place, DescriptionOutcome.DESCRIBED, "", names, descs, is_static=node.is_static), made
