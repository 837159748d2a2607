"""Random descriptors of all operators that a level has: valid ones with one fault, two or none."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import product, starmap
from random import Random
from typing import Any, Final

from dml_tile.checking import check
from dml_tile.descriptors.operator import OperatorDesc
from dml_tile.directml.data_types import TensorDataType
from dml_tile.directml.enums import UINT_MAX, FeatureLevel
from dml_tile.directml.operator_table import Column, OperatorTable, Shared, tables_of
from dml_tile.directml.operators import OperatorRow, enumerations, operators
from dml_tile.findings import Basis, Severity
from dml_tile.geometry.layout import extent, round_up_4
from tests.recorder.draws import ALIGNMENTS, EDGES, SMALL, STRIDES, TOTAL_CHANGES
from tests.recorder.operator_bases import Fields, base

FAULTS_OF_ONE: Final = (0, *(1,) * 7, 2, 2)
"""How many faults a descriptor has."""
CRASHING: Final = 0.15
"""How many null pointers may be arrays, or descriptions of tensors, at which DirectML often crashes."""
FLOATS: Final = (0.0, -1.0, 0.5, 1.0, 2.0, 1e30, "Infinity", "-Infinity", "NaN")
SCALES: Final = ((2.0, -1.0), (0.0, 0.0), (1.0, 0.0))
"""Scales and biases; the last changes nothing."""
INTEGERS: Final = (0, 1, -1, 2, -2, 100, 2**31 - 1, -(2**31))
Faults = Mapping[str, Callable[[Random, OperatorRow, Fields], None]]
Groups = list[tuple[Sequence[str], list[int]]]
"""Tensors that have a field in common, and the values of it that they all may have."""

TIED: Final = {"TILE": Shared("DimensionCount", ("InputTensor", "OutputTensor"))}
"""Properties that tensors share by other rules than the table's ``same``."""


def draw(count: int, draw_seed: str, level: FeatureLevel, kinds: Faults | None = None) -> Iterator[Fields]:
    """``count`` lines for a release of this level, the same ones for the same seed; none that a guard refuses.

    Their faults are of these kinds, of all eight unless others are given.
    """
    kinds = kinds or FAULTS
    random = Random(f"{draw_seed} {level}")
    known = [operator for operator in operators().values() if operator.level <= level]
    drawn = 0
    while drawn < count:
        operator = random.choice(known)
        fields = valid(operator, level, random)
        faults = [random.choice(tuple(kinds)) for _ in range(random.choice(FAULTS_OF_ONE))]
        for fault in faults:
            kinds[fault](random, operator, fields)
        if not _is_guarded(operator, fields, level):
            drawn += 1
            yield line(operator, fields, level, faults)


def _is_guarded(operator: OperatorRow, fields: Fields, level: FeatureLevel) -> bool:
    """True where a rule that was not measured refuses: DirectML may crash, and is not asked."""
    findings = check(OperatorDesc(type=operator.value, desc=fields), level)
    return any(each.basis == Basis.INFERRED and each.severity is Severity.ERROR for each in findings)


def line(operator: OperatorRow, fields: Fields, level: FeatureLevel, faults: Sequence[str] = ()) -> Fields:
    """A line of a recorded file."""
    return {"level": level.short, "faults": faults, "desc": {"Type": operator.c_name, "Desc": fields}}


def valid(operator: OperatorRow, level: FeatureLevel, random: Random) -> Fields:
    """A descriptor's fields, as the operator's row of a level has them."""
    table, attributes = random.choice(tables(operator))
    types, counts = (_chosen(groups, random.choice) for groups in tied_columns(operator, table, level))
    return completed(operator, base(operator, level, random, counts, types) | attributes)


def sweep(level: FeatureLevel, among: Iterable[OperatorRow] = operators().values()) -> Iterator[Fields]:
    """Every group of tied tensors with each data type and 1 to 8 dimensions, the others as their rows have them."""
    for operator in among:
        for table, attributes in tables(operator) if operator.level <= level else ():
            by_type, by_count = tied_columns(operator, table, level)
            types, counts = (_chosen(groups, lambda known: known[len(known) // 2]) for groups in (by_type, by_count))
            for data_type, (of_type, _), count, (of_count, _) in product(range(1, 14), by_type, range(1, 9), by_count):
                asked = counts | dict.fromkeys(of_count, count), types | dict.fromkeys(of_type, data_type)
                fields = base(operator, level, Random(operator.name), *asked)
                yield line(operator, completed(operator, fields | attributes), level)


def tables(operator: OperatorRow) -> list[tuple[OperatorTable, dict[str, Any]]]:
    """Return the operator's table, or that of each value of the field which chooses one, with that field."""
    of_values = enumerate(table for _, table in tables_of(operator))
    return [(table, {table.by: value} if table.by else {}) for value, table in of_values]


def tied_columns(operator: OperatorRow, table: OperatorTable, level: FeatureLevel) -> tuple[Groups, Groups]:
    """Return the groups of tensors that share their data type, and those that share their dimension count.

    Data types that a page alone ties are drawn apart; of other dimension counts, sizes would not fit.
    """
    _, row = table.at(level)
    ties = (*table.same, *filter(None, [TIED.get(operator.name)]))

    def grouped(field: str, column: Callable[[Column], frozenset[int]]) -> Groups:
        groups = {name: [name] for name in row}
        for shared in ties:
            if shared.field == field and (shared.basis & Basis.RUNTIME or field == "DimensionCount"):
                united = list(dict.fromkeys(each for name in shared.tensors for each in groups[name]))
                groups |= dict.fromkeys(united, united)
        different = {id(group): group for group in groups.values()}.values()
        return [(group, sorted(frozenset.intersection(*(column(row[name]) for name in group)))) for group in different]

    return grouped("DataType", lambda each: each.data_types), grouped(
        "DimensionCount", lambda each: each.dimension_counts
    )


def _chosen(groups: Groups, choose: Callable[[list[int]], int]) -> dict[str, int]:
    return {name: int(value) for group, known in groups for value in [choose(known)] for name in group}


def completed(operator: OperatorRow, fields: Fields) -> Fields:
    """The fields with the totals of their tensors, and the counts of their arrays."""
    for tensor in _tensors(operator, fields):
        tensor["TotalTensorSizeInBytes"] = minimum_total(tensor)
    for count, arrays in operator.arrays.items():
        fields[count] = max(len(fields[array] or ()) for array in arrays)
    return fields


def minimum_total(tensor: Fields) -> int:
    """The minimum of TotalTensorSizeInBytes."""
    sizes, strides = tensor["Sizes"], tensor["Strides"]
    elements = math.prod(sizes) if strides is None else extent(sizes, strides)
    bits = TensorDataType(tensor["DataType"]).bits if tensor["DataType"] in list(TensorDataType) else 32
    return max(0, round_up_4(-(-elements * (bits or 32) // 8)))


def _tensors(operator: OperatorRow, desc: Fields) -> list[Fields]:
    values = [desc[field.name] for field in operator.fields if field.is_tensor]
    tensors = [tensor for value in values for tensor in (value if isinstance(value, list) else [value])]
    return [tensor for tensor in tensors if tensor and tensor.get("Sizes")]


def _types(random: Random, operator: OperatorRow, desc: Fields) -> None:
    """Another data type, of one tensor, or of all that have the same."""
    tensors = _tensors(operator, desc)
    if not tensors:
        return
    one, new = random.choice(tensors), random.randrange(14)
    old = one["DataType"]
    for tensor in tensors if random.random() < 0.5 else [one]:
        if tensor is one or tensor["DataType"] == old:
            tensor["DataType"] = new
            tensor["TotalTensorSizeInBytes"] = minimum_total(tensor)


def _counts(random: Random, operator: OperatorRow, desc: Fields) -> None:
    """Another dimension count of one tensor, or of all alike, or another count of an array."""
    counts = sorted(count for count, arrays in operator.arrays.items() if any(desc[array] for array in arrays))
    if counts and random.random() < 0.3:
        count = random.choice(counts)
        desc[count] = max(0, desc[count] + random.choice((-1, 1, 1, 2, -desc[count])))
        if random.random() < 0.8:
            for array in operator.arrays[count]:
                if entries := desc[array]:
                    desc[array] = [*entries, *copy.deepcopy(entries[-1:] * 2)][: desc[count]] or None
        return
    if not (tensors := _tensors(operator, desc)):
        return
    step = random.choice((-2, -1, -1, 1, 1, 2, 5))
    for tensor in tensors if random.random() < 0.4 else [random.choice(tensors)]:
        sizes = tensor["Sizes"]
        tensor["Sizes"] = [1] * step + sizes if step > 0 else sizes[-step:] or [1]
        if (strides := tensor["Strides"]) is not None:
            tensor["Strides"] = [0] * step + strides if step > 0 else strides[-step:] or [0]
        tensor["DimensionCount"] = len(tensor["Sizes"])
        tensor["TotalTensorSizeInBytes"] = minimum_total(tensor)


def _nulls(random: Random, operator: OperatorRow, desc: Fields) -> None:
    """A null pointer."""
    tensors = [field.name for field in operator.fields if field.kind == "t" and (desc[field.name] or {}).get("Sizes")]
    arrays = [field.name for field in operator.fields if field.is_array and desc[field.name]]
    if random.random() >= CRASHING and tensors:
        desc[random.choice(tensors)] = None
    elif arrays and random.random() < 0.5:
        desc[random.choice(arrays)] = None
    elif tensors:
        name = random.choice(tensors)
        if random.random() < 0.5:
            desc[name] = {"Type": "DML_TENSOR_TYPE_BUFFER", "Desc": None}
        else:
            desc[name]["Sizes"] = None


def _sizes(random: Random, operator: OperatorRow, desc: Fields) -> None:
    """Another size of one tensor, or of some or all that have the same there, or anywhere, with its multiples."""
    if not (tensors := _tensors(operator, desc)):
        return
    one = random.choice(tensors)
    i = random.randrange(len(one["Sizes"]))
    old, new = one["Sizes"][i], random.choice((0, 1, 1, 2, 3, 4, 5, 7))
    others = random.choice((0, 0, 0, 0, 0.5, 1))  # which part of the others
    is_anywhere = old > 1 and random.random() < 0.5

    def changed(j: int, size: int) -> int:
        if is_anywhere:
            return size // old * new if size % old == 0 else size
        return new if (j, size) == (i, old) else size

    for tensor in tensors:
        if tensor is one or random.random() < others:
            tensor["Sizes"] = [*starmap(changed, enumerate(tensor["Sizes"]))]
            tensor["TotalTensorSizeInBytes"] = minimum_total(tensor)


def _attributes(random: Random, operator: OperatorRow, desc: Fields) -> None:
    """Another value of what is no tensor and no count of an array."""
    others = [field for field in operator.fields if not field.is_tensor and field.name not in operator.arrays]
    if not others:
        return
    field = random.choice(others)
    match field.kind:
        case "U" | "I" | "F" if entries := desc[field.name]:
            i = random.randrange(len(entries))
            desc[field.name] = [*entries[:i], _number(random, field.kind.lower()), *entries[i + 1 :]]
        case "e":
            known = len(enumerations()[field.enumeration].names)
            desc[field.name] = random.choice((*range(known + 1), known, known + 1, 99, UINT_MAX))
        case "s":
            desc[field.name] = random.choice((None, *({"Scale": scale, "Bias": bias} for scale, bias in SCALES)))
        case "z":
            desc[field.name] = {"Width": _number(random, "u"), "Height": _number(random, "u")}
        case "o":
            desc[field.name] = _activation(random)
        case "O" if entries := desc[field.name]:
            desc[field.name] = [_activation(random), *entries[1:]]
        case "u" | "i" | "f" | "b" | "x" as kind:
            desc[field.name] = _number(random, kind)


def _number(random: Random, kind: str) -> Any:
    if kind == "f":
        return random.choice(FLOATS)
    near = (0, 1, 2, 3, 4, 5, 6, 7, 8)
    return random.choice(INTEGERS if kind in "ib" else (*near, *near, *EDGES) if kind == "u" else SMALL)


def _activation(random: Random) -> Fields:
    """An operator that may be fused, or not, without tensors; of other tensors, one may end the process."""
    plain = [each for each in operators().values() if each.tensors == ("InputTensor", "OutputTensor")]
    named = [each for each in plain if each.name.startswith("ACTIVATION_")]
    operator = random.choice([*named, *[each for each in operators().values() if each.value in (2, 8, 61)]])
    numbers = {field.name: 1 for field in operator.fields if field.kind in "fu" and field.name != "AxisCount"}
    axes = {"Axes": [0]} if any(field.name == "Axes" for field in operator.fields) else {}
    return {"Type": operator.c_name, "Desc": numbers | axes}


def _strides(random: Random, operator: OperatorRow, desc: Fields) -> None:
    """Strides, of which some overlap, with or without the total that they need."""
    if tensors := _tensors(operator, desc):
        tensor = random.choice(tensors)
        tensor["Strides"] = random.choice(STRIDES[-8:])(random, tensor["Sizes"])
        if random.random() < 0.9:
            tensor["TotalTensorSizeInBytes"] = minimum_total(tensor)


def _totals(random: Random, operator: OperatorRow, desc: Fields) -> None:
    """Another TotalTensorSizeInBytes."""
    if tensors := _tensors(operator, desc):
        tensor = random.choice(tensors)
        tensor["TotalTensorSizeInBytes"] = max(0, tensor["TotalTensorSizeInBytes"] + random.choice(TOTAL_CHANGES))


def _flags(random: Random, operator: OperatorRow, desc: Fields) -> None:
    """Flags, or a guaranteed alignment."""
    if tensors := _tensors(operator, desc):
        tensor = random.choice(tensors)
        if random.random() < 0.7:
            tensor["Flags"] = random.choice((1, 1, 1, 2, 3, 4, 2**31))
        else:
            tensor["GuaranteedBaseOffsetAlignment"] = random.choice(ALIGNMENTS)


FAULTS: Final[Faults] = {
    fault.__name__.removeprefix("_"): fault
    for fault in (_types, _counts, _nulls, _sizes, _attributes, _strides, _totals, _flags)
}
"""The eight kinds of faults, each drawn as often as the others."""
