"""Random descriptors of any operator, for hypothesis.

Tensors have data types and dimension counts of the level's row, the same ones where the operator wants them equal. All
Sizes are equal where that is all the operator wants of them, else 1, which most formulas of sizes allow.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

from hypothesis import strategies as st

from dml_tile.descriptors.operator import OperatorDesc
from dml_tile.directml.data_types import TensorDataType
from dml_tile.directml.enums import DML_TENSOR_DIMENSION_COUNT_MAX1, FeatureLevel
from dml_tile.directml.operator_table import OperatorTable
from dml_tile.directml.operators import Field, Operator, enumerations, operator_named, operators
from dml_tile.directml.targets import Target, TargetLike
from dml_tile.rules.operator_fields import FIELD_SENTENCE
from dml_tile.simulation.target import resolve
from dml_tile.testing.drafts import Draft
from tests.helpers.operator_groups import tables, tied_columns

_ZERO: Final = ("Padding", "Offsets", "BatchDimensionCount")
"""The ends of the names of numbers that are 0 in a plain operator; the others are 1."""
_SIZES: Final = st.integers(1, 4)
_DATA_TYPES: Final = range(1, 1 + max(TensorDataType))
_DIMENSION_COUNTS: Final = range(1, 1 + DML_TENSOR_DIMENSION_COUNT_MAX1)
_sampled: Final = lru_cache(maxsize=1024)(st.sampled_from)


def nearly_valid_operators(
    target: TargetLike | None = None, types: Iterable[str] = ()
) -> st.SearchStrategy[OperatorDesc]:
    """Descriptors of any operator that the target's level has, or of the types that are named.

    Data types, dimension counts, arrays and enumerators are those of the level's row; half of the descriptors have one
    fault, which may be none by chance. What an operator wants of its Sizes and attributes is met mostly, not always.
    """
    parsed = None if target is None else Target.parse(target)
    return _operators(parsed, tuple(filter(None, map(operator_named, types))))


@st.composite
def _operators(draw: st.DrawFn, target: Target | None, chosen: tuple[Operator, ...]) -> OperatorDesc:
    level = resolve(target).feature_level
    known = tuple(each for each in chosen or operators().values() if each.level <= level)
    operator = draw(_sampled(known))
    table, attributes = draw(st.sampled_from(tables(operator)))
    fields = _fields(draw, operator, table, level) | attributes
    if draw(st.booleans()):
        draw(_sampled(_FAULTS))(draw, operator, fields)
    return OperatorDesc.model_validate({"Type": operator.c_name, "Desc": fields})


def _fields(draw: st.DrawFn, operator: Operator, table: OperatorTable, level: FeatureLevel) -> Draft:
    by_type, by_count = tied_columns(operator, table, level)
    types, counts = (
        {
            name: value
            for names, known in groups
            for value in [draw(_sampled((*(known or any_value),)))]
            for name in names
        }
        for groups, any_value in ((by_type, _DATA_TYPES), (by_count, _DIMENSION_COUNTS))
    )
    of = {f"DataType of {name}": value for name, value in types.items()}
    of |= {f"DimensionCount of {name}": value for name, value in counts.items()}
    alike = {name for shared in table.same if shared.field == "Sizes" for name in shared.tensors}
    is_alike = not table.sizes and alike == {*operator.tensors}
    sizes = [draw(_SIZES) if is_alike else 1 for _ in range(max(counts.values()))]
    said = {found["field"]: found for each in table.fields if (found := FIELD_SENTENCE.fullmatch(each.text))}
    fields: Draft = {}
    for field in operator.fields:
        if field.is_tensor:
            tensor = {"DataType": types[field.name], "Sizes": sizes[: counts[field.name]]}
            is_null = field.is_optional and draw(st.booleans())
            fields[field.name] = [tensor] if field.kind == "T" else None if is_null else tensor
        else:
            fields[field.name] = _attribute(draw, field, said.get(field.name), of, level)
    for field in operator.fields:
        if field.is_array and not field.is_tensor:
            fields[field.name] = [fields[field.name]] * fields[field.counted_by]
    return fields


def _attribute(
    draw: st.DrawFn, field: Field, said: re.Match[str] | None, of: Mapping[str, int], level: FeatureLevel
) -> Any:
    """Return the value of a field that is no tensor, or an entry of an array."""
    match field.kind:
        case "e" if said and said["tensor"]:
            return of[f"DataType of {said['tensor']}"]
        case "e":
            known = enumerations()[field.enumeration]
            names = zip(known.names, known.levels, strict=True)
            words = said["words"].split() if said else [name for name, since in names if since <= level]
            return known.names.index(draw(_sampled(tuple(words))))
        case "u" | "U" if said and field.name.startswith("Ax"):
            return draw(_sampled(range(of[f"DimensionCount of {said['tensor']}"])))
        case "u" if said and said["tensor"] and said["relation"] == "<":
            return min(1, of[f"DimensionCount of {said['tensor']}"] - 1)
        case "u" if said and said["tensor"] and said["relation"] == "=":
            return max(0, of[f"DimensionCount of {said['tensor']}"] - int(said["less"] or 0))
        case "o" | "s":
            return None
        case "O":
            return {"Type": "ACTIVATION_RELU"}
        case "z":
            return {"Width": 1, "Height": 1}
        case "b":
            return draw(st.booleans())
    return 0 if field.name.endswith(_ZERO) else 1


def _tensor(draw: st.DrawFn, fields: Draft) -> Draft:
    """Return one of the tensors."""
    tensors = [value[0] if isinstance(value, list) else value for value in fields.values()]
    return draw(st.sampled_from([each for each in tensors if isinstance(each, dict) and "Sizes" in each]))


def _other_data_type(draw: st.DrawFn, operator: Operator, fields: Draft) -> None:
    _tensor(draw, fields)["DataType"] = draw(_sampled(_DATA_TYPES))


def _other_dimension_count(draw: st.DrawFn, operator: Operator, fields: Draft) -> None:
    tensor, count = _tensor(draw, fields), draw(_sampled(_DIMENSION_COUNTS))
    tensor["Sizes"] = ([1] * count + tensor["Sizes"])[-count:]


def _other_size(draw: st.DrawFn, operator: Operator, fields: Draft) -> None:
    sizes = _tensor(draw, fields)["Sizes"]
    sizes[draw(st.integers(0, len(sizes) - 1))] = draw(st.integers(0, 9))


def _null_tensor(draw: st.DrawFn, operator: Operator, fields: Draft) -> None:
    fields[draw(st.sampled_from(operator.tensors))] = None


def _other_number(draw: st.DrawFn, operator: Operator, fields: Draft) -> None:
    """Another number or enumerator, among them the counts of arrays, where the operator has one."""
    if numbers := [field.name for field in operator.fields if field.kind in "eui"]:
        fields[draw(st.sampled_from(numbers))] = draw(st.integers(0, 9))


_FAULTS: Final = (_other_data_type, _other_dimension_count, _other_size, _null_tensor, _other_number)
