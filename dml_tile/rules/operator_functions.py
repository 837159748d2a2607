"""Rules for Sizes that no row of the table states: those of gathers, of FOLD and UNFOLD, and of attention."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Final, NamedTuple, TypeAlias

from dml_tile.findings import BOTH, Basis, Violation
from dml_tile.rules.equations import value_of, without_leading_ones
from dml_tile.rules.operator_view import OperatorView
from dml_tile.text import braced

_Find: TypeAlias = Callable[[OperatorView, dict[str, int]], Iterator[Violation]]
"""Yields violations, and adds values of names in the operator's shapes."""


class SizesRule(NamedTuple):
    """What an operator's tensors need, in a sentence, and the function that finds where they do not have it."""

    says: str
    violations: _Find


FUNCTIONS: Final[dict[str, SizesRule]] = {}
"""By operator."""


def _rule_of(*operators: str, says: str) -> Callable[[_Find], _Find]:
    def add(function: _Find) -> _Find:
        FUNCTIONS.update(dict.fromkeys(operators, SizesRule(says, function)))
        return function

    return add


@_rule_of(
    "GATHER",
    says="OutputTensor has InputTensor's Sizes, with IndicesTensor's last IndexDimensions in place of that along Axis.",
)
def _gathered(op: OperatorView, known: dict[str, int]) -> Iterator[Violation]:
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


@_rule_of(
    "GATHER_ND",
    "GATHER_ND1",
    "SCATTER_ND",
    says="OutputTensor, or UpdatesTensor, has IndicesTensor's Sizes but the last, then InputTensor's not indexed.",
)
def _coordinates(op: OperatorView, known: dict[str, int]) -> Iterator[Violation]:
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


@_rule_of(
    "FOLD",
    "UNFOLD",
    says="A folded tensor ends with the channels times the window's size, and the number of windows.",
)
def _folded(op: OperatorView, known: dict[str, int]) -> Iterator[Violation]:
    whole, folded = ("OutputTensor", "InputTensor") if op.operator.name == "FOLD" else ("InputTensor", "OutputTensor")
    names = ("WindowSizes", "Strides", "Dilations", "StartPadding", "EndPadding")
    count, arrays = op.fields["DimensionCount"], [value_of(op, name) for name in names]
    if whole not in op.sizes or folded not in op.sizes or None in arrays or any(len(each) < count for each in arrays):
        return  # other rules refuse it
    sizes, found = op.sizes[whole][0], op.sizes[folded][0]
    if count >= len(sizes) or 0 in arrays[1]:
        message = f"{count} was provided, but less than {whole}.DimensionCount = {len(sizes)} was expected"
        yield Violation("DimensionCount" if count >= len(sizes) else "Strides", message, basis=BOTH)
        return
    windows = (
        (size + start + end - (window - 1) * dilation - 1) // stride + 1
        for size, window, stride, dilation, start, end in zip(sizes[len(sizes) - count :], *arrays, strict=True)
    )
    wanted = (*sizes[: len(sizes) - count - 1], sizes[-count - 1] * prod(arrays[0]), prod(windows))
    if without_leading_ones(found) != without_leading_ones(wanted):
        expected = f"{braced(wanted)} was expected: channels times WindowSizes, and the number of windows"
        yield Violation(f"{folded}.Sizes", f"{braced(found)} was provided, but {expected}", basis=BOTH)


@_rule_of(
    "MULTIHEAD_ATTENTION",
    says="One query, one key and one value are given, each alone or stacked; past ones may stand for the last two.",
)
def _attention(op: OperatorView, known: dict[str, int]) -> Iterator[Violation]:
    sizes = {name: op.sizes[name][0] for name in op.operator.tensors if name in op.sizes}
    given = {name for name in op.operator.tensors if op.fields[name] is not None}
    heads, stacked = op.fields["HeadCount"], {"StackedQueryKeyTensor", "StackedQueryKeyValueTensor"} & given
    queries = stacked | {"QueryTensor"} & given
    keys = stacked | {"KeyTensor", "StackedKeyValueTensor"} & given
    values = {"ValueTensor", "StackedKeyValueTensor", "StackedQueryKeyValueTensor"} & given
    past = {"PastKeyTensor", "PastValueTensor"} & given
    for kind, tensors in (("query", queries), ("key", keys), ("value", values)):
        if len(tensors) > 1:
            message = f"is given besides {min(tensors)}: one {kind} was expected"
            yield Violation(max(tensors), message, basis=BOTH)
    if not queries:
        yield Violation(
            "QueryTensor", "null was provided, as are the stacked ones, but a query was expected", basis=BOTH
        )
    if len(past) == 1:
        message = f"null was provided, but {min(past)} is given"
        yield Violation(min({"PastKeyTensor", "PastValueTensor"} - past), message, basis=Basis.RUNTIME)
    if not past and not (keys and values):
        missing = "KeyTensor" if not keys else "ValueTensor"
        yield Violation(missing, "null was provided, as are the stacked and the past ones", basis=BOTH)
    if "BiasTensor" in given and not (keys and values):
        message = "is given without a key and a value, to which it would be added"
        yield Violation("BiasTensor", message, basis=Basis.RUNTIME)
    if mask := sizes.get("MaskTensor"):
        mask_type = op.fields["MaskType"]
        if mask_type == 0 or (mask_type > 4 and prod(mask) != 1):
            yield Violation("MaskTensor", "is given, but MaskType has no use for it", basis=Basis.RUNTIME)
    if len(queries) != 1 or len(keys) > 1 or not heads:
        return
    query, key = sizes.get(min(queries)), sizes.get(min(keys, default=""))
    if query is None or (keys and key is None) or len(query) < 3 or (key and len(key) < 3):
        return  # other rules refuse it
    if "PastKeyTensor" not in given:
        known["pastSequenceLength"] = 0
    known["keyValueSequenceLength"] = 0 if not key else key[-2] if "KeyTensor" in given else key[1]
    past_key = sizes.get("PastKeyTensor")
    known["valueSequenceLength"] = known["keyValueSequenceLength"] if key else past_key[-2] if past_key else 0
    hidden = query[-1] if "QueryTensor" in given else heads * query[-1]
    known |= {"hiddenSize": hidden, "headSize": hidden // heads}  # the runtime ignores the remainder
    for name in ("StackedKeyValueTensor", "StackedQueryKeyValueTensor"):
        if name in sizes:
            known["valueHeadSize"] = sizes[name][-1]
