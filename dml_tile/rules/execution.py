"""Rules for what an operator reads when it is executed, and for how much of it is executed."""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import Final, NamedTuple

from dml_tile.descriptors.operator import OperatorFields
from dml_tile.directml import pages
from dml_tile.directml.targets import Target
from dml_tile.findings import Basis, Rules, Violation


class Work(NamedTuple):
    """What an operator takes, in a unit, and the most of it that is executed."""

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


class Request(NamedTuple):
    """An operator that is to be executed, and whether its kernel is here."""

    fields: OperatorFields
    is_here: bool


REQUEST_RULES: Final = Rules[Request](url=pages.OPERATOR, hresult=None, basis=Basis.INFERRED)
WORK_RULES: Final = Rules[Work](url=pages.OPERATOR, hresult=None, basis=Basis.INFERRED)
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
    """The coordinates of a region are finite. DirectML does not define what is read for others."""
    if not isfinite(element.value):
        yield Violation(element.tensor, f"element {list(element.place)} is {element.value}; a finite one was expected")


@REQUEST_RULES.add("DML-EXECUTE-operator")
def operator_is_known(request: Request, target: Target) -> Iterator[Violation]:
    """Microsoft's pages tell, or a measurement showed, what an executed operator computes: not MULTIHEAD_ATTENTION1,
    nor ROI_ALIGN_GRAD of MAX or with OutputROIGradientTensor.
    """
    fields = request.fields
    name = fields.operator.name
    if not request.is_here:
        yield Violation("Type", f"{name} is not executed: its page does not say what it computes")
    elif name == "ROI_ALIGN_GRAD" and (fields["ReductionFunction"] == MAX or fields["OutputROIGradientTensor"]):
        yield Violation("ReductionFunction", f"{name} is executed for AVERAGE, with OutputGradientTensor only")


MAX: Final = 7
"""DML_REDUCE_FUNCTION_MAX."""
