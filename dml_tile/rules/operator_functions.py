"""Rules for Sizes that no row of the table states: GATHER's, GATHER_ND's and SCATTER_ND's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from dml_tile.findings import BOTH, Basis, Violation
from dml_tile.rules.operator_view import OperatorView
from dml_tile.rules.shapes import without_leading_ones
from dml_tile.text import braced

SizesRule: TypeAlias = Callable[[OperatorView], Iterator[Violation]]
FUNCTIONS: Final[dict[str, SizesRule]] = {}
"""By operator."""


def _rule_of(*operators: str) -> Callable[[SizesRule], SizesRule]:
    def add(function: SizesRule) -> SizesRule:
        FUNCTIONS.update(dict.fromkeys(operators, function))
        return function

    return add


@_rule_of("GATHER")
def _gathered(op: OperatorView) -> Iterator[Violation]:
    """OutputTensor has InputTensor's Sizes, with IndicesTensor's last IndexDimensions in place of that along Axis."""
    given = [op.sizes[name][0] for name in ("InputTensor", "IndicesTensor", "OutputTensor") if name in op.sizes]
    rank, axis, count = len(given[0]) if given else 0, op.fields["Axis"], op.fields["IndexDimensions"]
    if len(given) < 3 or {*map(len, given)} != {rank} or axis >= rank or count > rank:
        return  # other rules refuse it
    inputs, indices, output = given
    if count > axis + 1:
        message = f"{count} was provided, but at most Axis + 1 = {axis + 1} was expected"
        yield Violation("IndexDimensions", message, basis=Basis.INFERRED)
        return
    if batch := without_leading_ones(indices[: rank - count]):
        # the runtime takes them for batches, where InputTensor begins with the same
        is_taken = len(batch) <= axis and without_leading_ones(inputs)[: len(batch)] == batch
        message = f"{braced(indices)} was provided, but 1 was expected before the last {count}"
        yield Violation("IndicesTensor.Sizes", message, basis=Basis.DOCUMENTED if is_taken else BOTH)
    whole = inputs[:axis] + indices[rank - count :] + inputs[axis + 1 :]
    cropped, wanted = whole[:-rank], whole[-rank:]
    expected = f"{braced(whole)} was expected: InputTensor's Sizes, with the last {count} of IndicesTensor at Axis"
    if output[rank - len(wanted) :] != wanted:
        yield Violation("OutputTensor.Sizes", f"{braced(output)} was provided, but {expected}", basis=BOTH)
    elif without_leading_ones(cropped):
        message = f"{expected}; {rank} dimensions have no room for {braced(cropped)}"
        yield Violation("OutputTensor.Sizes", message, basis=Basis.DOCUMENTED)
    elif without_leading_ones(output[: rank - len(wanted)]):
        message = f"{braced(output)} was provided, but {expected}, after ones"
        yield Violation("OutputTensor.Sizes", message, basis=Basis.DOCUMENTED)


@_rule_of("GATHER_ND", "GATHER_ND1", "SCATTER_ND")
def _coordinates(op: OperatorView) -> Iterator[Violation]:
    """OutputTensor, or UpdatesTensor, has the Sizes of IndicesTensor without the last, then InputTensor's unindexed."""
    result = "UpdatesTensor" if op.operator.name == "SCATTER_ND" else "OutputTensor"
    given = [op.sizes[name][0] for name in ("InputTensor", "IndicesTensor", result) if name in op.sizes]
    counts = op.fields["InputDimensionCount"], op.fields["IndicesDimensionCount"]
    batch = op.fields["BatchDimensionCount"] if op.operator.name == "GATHER_ND1" else 0
    if len(given) < 3 or not all(1 <= count <= len(sizes) for count, sizes in zip(counts, given, strict=False)):
        return  # other rules refuse it
    for name, sizes, count in zip(("InputTensor", "IndicesTensor"), given, counts, strict=False):
        if without_leading_ones(sizes[: len(sizes) - count]):
            message = f"{braced(sizes)} was provided, but 1 was expected before the last {count}"
            yield Violation(f"{name}.Sizes", message, basis=BOTH)
    inputs, indices = given[0][-counts[0] :], given[1][-counts[1] :]
    coordinates = indices[-1]
    if batch >= len(indices) or coordinates > len(inputs) - batch:
        if batch < len(indices):
            less = " - BatchDimensionCount" if batch else ""
            message = f"{coordinates} was provided, but at most InputDimensionCount{less} = {len(inputs) - batch}"
            index = len(given[1]) - 1
            is_documented = coordinates > len(given[0])
            basis = BOTH if is_documented else Basis.RUNTIME
            yield Violation(f"IndicesTensor.Sizes[{index}]", f"{message} was expected", basis=basis)
        return
    wanted = indices[:-1] + inputs[batch + coordinates :]
    if without_leading_ones(given[2]) != without_leading_ones(wanted) or len(wanted) > len(given[2]):
        expected = f"{braced(wanted)} was expected: IndicesTensor's Sizes but the last, then InputTensor's not indexed"
        yield Violation(f"{result}.Sizes", f"{braced(given[2])} was provided, but {expected}", basis=BOTH)
