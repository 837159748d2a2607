"""Rules for what an operator reads when it is executed, and for how much of it is executed."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite, prod
from typing import Final, NamedTuple

from dml_tile.descriptors.graph import GraphDesc, is_constant
from dml_tile.descriptors.operator import OperatorDesc, OperatorFields
from dml_tile.descriptors.tile import array_text
from dml_tile.directml import pages
from dml_tile.directml.targets import Target
from dml_tile.directml.values import values
from dml_tile.findings import Basis, Finding, Rules, Violation, apply_rules
from dml_tile.rules.graph import sizes_of


class Work(NamedTuple):
    """The memory or work of an operator, in a unit, and the most that is executed."""

    operator: str
    amount: int
    most: int
    unit: str


class Element(NamedTuple):
    """An element of a tensor that is an index or part of a region, and the indices that are in range."""

    tensor: str
    place: tuple[int, ...]
    value: float
    least: int = 0
    most: int = 0


OPERATOR_RULES: Final = Rules[OperatorFields](url=pages.OPERATOR, hresult=None, basis=Basis.INFERRED)
WORK_RULES: Final = Rules[Work](url=pages.OPERATOR, hresult=None, basis=Basis.INFERRED)
CONSTANT_RULES: Final = Rules[GraphDesc](url=pages.GRAPH, hresult=None, basis=Basis.INFERRED)
ELEMENT_RULES: Final = Rules[Element](url=pages.OPERATOR, hresult=None, basis=Basis.INFERRED)


@WORK_RULES.add("DML-EXECUTE-bound")
def work_is_bounded(work: Work, target: Target) -> Iterator[Violation]:
    """An executed operator takes at most 4 GiB of memory for a tensor or an intermediate, and 2^36 steps. DirectML has
    bounds of its own.
    """
    if work.amount > work.most:
        message = f"{work.operator} takes {work.amount} {work.unit}; operators of at most {work.most} are executed"
        yield Violation("", message)


@ELEMENT_RULES.add("DML-EXECUTE-index")
def index_is_in_range(element: Element, target: Target) -> Iterator[Violation]:
    """An index lies in its dimension. DirectML does not define what is read or written for another."""
    if not element.least <= element.value <= element.most:
        expected = f"an index from {element.least} to {element.most} was expected"
        yield Violation(element.tensor, f"element {list(element.place)} is {element.value}; {expected}")


@ELEMENT_RULES.add("DML-EXECUTE-region")
def region_is_finite(element: Element, target: Target) -> Iterator[Violation]:
    """The coordinates of a region, or of an element that is resampled, are finite. DirectML does not define what is
    read for others.
    """
    if not isfinite(element.value):
        yield Violation(element.tensor, f"element {list(element.place)} is {element.value}; a finite one was expected")


@OPERATOR_RULES.add("DML-EXECUTE-operator")
def operator_is_known(fields: OperatorFields, target: Target) -> Iterator[Violation]:
    """Microsoft's pages tell, or a measurement showed, what an executed operator computes: not MULTIHEAD_ATTENTION1, an
    unknown MaskType, ROI_ALIGN_GRAD of MAX or with OutputROIGradientTensor, several scales of a pooling, a
    convolution whose DimensionCount is not that of its tensors minus 2, a backward one with a stride of 0, a window of
    no elements, nor a quantisation whose tensors are not one or two that divide the input's Sizes.
    """
    name = fields.operator.name
    if name not in values():
        yield Violation("Type", f"{name} is not executed: its page does not say what it computes")
    elif name == "ROI_ALIGN_GRAD" and (fields["ReductionFunction"] == MAX or fields["OutputROIGradientTensor"]):
        yield Violation("ReductionFunction", f"{name} is executed for AVERAGE, with OutputGradientTensor only")
    elif 0 in (fields.get("WindowSize") or ()):
        yield Violation("WindowSize", "0 was provided; windows of at least one element are executed")
    elif "FilterTensor" in fields.values and fields.get("Direction") and 0 in fields["Strides"]:
        yield Violation("Strides", "0 was provided; backward convolutions with strides of at least 1 are executed")
    elif "FilterTensor" in fields.values:
        yield from _other_dimensions(fields["DimensionCount"], fields["FilterTensor"].desc.dimension_count)
    elif name == "MULTIHEAD_ATTENTION" and fields["MaskType"] > BOOLEAN:
        yield Violation("MaskType", f"{fields['MaskType']} was provided; one that DirectML documents is executed")
    elif name == "QUANTIZED_LINEAR_AVERAGE_POOLING" and any(
        prod(sizes_of(fields[each].desc)) > 1 for each in ("InputScaleTensor", "OutputScaleTensor")
    ):
        yield Violation("InputScaleTensor", f"{name} is executed with one scale for all elements")
    elif "QuantizationTensors" in fields.values:
        yield from _other_blocks(fields)


def _other_dimensions(count: int, dimensions: int) -> Iterator[Violation]:
    """Yield the violation of a convolution along other dimensions than its tensors have."""
    if count != dimensions - 2:
        message = f"{count} was provided; {dimensions - 2} is executed, of tensors of {dimensions}"
        yield Violation("DimensionCount", message)


def _other_blocks(fields: OperatorFields) -> Iterator[Violation]:
    """Yield the violations of a quantisation: its tensors, and Sizes that are not blocks of the input's."""
    kind, count = fields["QuantizationType"], fields["QuantizationTensorCount"]
    if count != kind or not kind:
        message = f"{count} was provided; one tensor for SCALE, two for SCALE_ZERO_POINT are executed"
        yield Violation("QuantizationTensorCount", message)
    whole, written = (sizes_of(fields[name].desc) for name in ("InputTensor", "OutputTensor"))
    if written != whole:
        yield Violation("OutputTensor.Sizes", f"{array_text(written)} was provided; {array_text(whole)} is executed")
    for i, tensor in enumerate(fields["QuantizationTensors"][:count]):
        part = sizes_of(tensor.desc)
        if any(size % each for size, each in zip(whole, part, strict=True)):
            message = f"{array_text(part)} was provided; sizes that divide {array_text(whole)} are executed"
            yield Violation(f"QuantizationTensors[{i}].Sizes", message)


@CONSTANT_RULES.add("DML-EXECUTE-constant")
def constants_are_known(graph: GraphDesc, target: Target) -> Iterator[Violation]:
    """A constant of an executed graph has Data, which captures leave out, and leads to nodes alone, since no tensor
    tells the size of an output.
    """
    nodes = (graph.nodes or ())[: graph.node_count]
    for i, node in enumerate(nodes):
        if is_constant(node) and node is not None and node.data is None:
            yield Violation(f"Nodes[{i}].Data", "the constant's bytes are not given")
    for i, edge in enumerate((graph.output_edges or ())[: graph.output_edge_count]):
        if edge is not None and edge.from_node_index < len(nodes) and is_constant(nodes[edge.from_node_index]):
            yield Violation(f"OutputEdges[{i}]", "it leads from a constant; no tensor tells the size of the output")


def execution_findings(desc: OperatorDesc, target: Target) -> tuple[Finding, ...]:
    """Return why an operator that passed ``check`` is not executed."""
    fields = desc.desc
    return tuple(apply_rules(OPERATOR_RULES, fields, target)) if isinstance(fields, OperatorFields) else ()


BOOLEAN: Final = 4
"""The last DML_MULTIHEAD_ATTENTION_MASK_TYPE."""
MAX: Final = 7
"""DML_REDUCE_FUNCTION_MAX."""
