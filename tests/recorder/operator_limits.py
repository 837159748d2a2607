"""Descriptors of operators with fields at their limits or one beyond, the others as valid descriptors have them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Final

from dml_tile.directml.enums import UINT64_MAX, UINT_MAX
from dml_tile.directml.operators import Field, OperatorRow, enumerations
from dml_tile.geometry.layout import packed_strides
from tests.recorder.draws import ALIGNMENTS, EDGES, TOTAL_CHANGES
from tests.recorder.operator_bases import Fields
from tests.recorder.operator_draws import INTEGERS, SCALES, Faults, minimum_total

FLOATS: Final = (0.0, -0.0, -1.0, 0.5, 1.0, 2.0, 1e-45, 2**-23, 1e30, 3.4028234663852886e38)
VALUES: Final[dict[str, tuple[Any, ...]]] = {
    "u": (*EDGES, 6, 2**16 - 1, 2**31 + 1),
    "i": (*INTEGERS, 3, 5, 1 - 2**31),
    "b": (0, 1, 2, -1, 256, 2**31 - 1),
    "f": (*FLOATS, "Infinity", "-Infinity", "NaN"),
    "s": (None, *({"Scale": scale, "Bias": bias} for scale, bias in (*SCALES, ("NaN", 0.0), (1.0, "NaN"), (1.0, 5.0)))),
    "t": (None,),
}
"""What fields of each kind are set to."""
RESIZED: Final[tuple[Callable[[list[int]], list[int]], ...]] = (
    lambda sizes: [1, *sizes],
    lambda sizes: [2, *sizes],
    lambda sizes: [*sizes, 1],
    lambda sizes: sizes[1:] or [2],
    lambda sizes: sizes[:-1] or [2],
    lambda sizes: sizes[::-1],
    *(lambda sizes, count=count: [1] * (count - len(sizes)) + sizes for count in (5, 8, 9)),
)


def at_a_limit(random: Random, operator: OperatorRow, fields: Fields) -> None:
    """Another value of one field, or of all tensors at once."""
    fields.update(random.choice([*changes(operator, fields)]))


LIMITS: Final[Faults] = {"limits": at_a_limit}


def changes(operator: OperatorRow, fields: Fields) -> Iterator[Fields]:
    """Yield the fields to change, with their new values."""
    for field in operator.fields:
        yield from ({field.name: new} for new in _values(field, fields[field.name]))
    tensors = {field.name: fields[field.name] for field in operator.fields if field.is_tensor and fields[field.name]}
    every = list[Fields]()
    for name, value in tensors.items():
        of_field = value if isinstance(value, list) else [value]
        every += of_field
        for i, tensor in enumerate(of_field):
            for new in _of_tensor(tensor):
                yield {name: [*value[:i], new, *value[i + 1 :]] if isinstance(value, list) else new}
    for changed in map(iter, _of_all(every)):
        yield {
            name: [next(changed) for _ in value] if isinstance(value, list) else next(changed)
            for name, value in tensors.items()
        }


def _values(field: Field, value: Any) -> Iterator[Any]:
    match field.kind:
        case "e":
            yield from (*range(len(enumerations()[field.enumeration].names) + 2), 99, 2**31 - 1, 2**31, UINT_MAX)
        case "z":
            yield from (value | {name: new} for name in value for new in VALUES["u"])
        case "U" | "I" | "F" as kind if value:
            yield from ([*value[:i], new, *value[i + 1 :]] for i in range(len(value)) for new in VALUES[kind.lower()])
        case kind:
            yield from VALUES.get(kind, ())


def _of_tensor(tensor: Fields) -> Iterator[Fields]:
    """Yield the tensor with another value of each of its fields."""
    sizes, total = tensor["Sizes"], tensor["TotalTensorSizeInBytes"]
    yield from (_changed(tensor, DataType=new) for new in range(16))
    for i, size in enumerate(sizes):
        for new in sorted({0, 1, 2, 2**16, 2**31, UINT_MAX, abs(size - 1), *_limited(size)}):
            yield _changed(tensor, Sizes=[*sizes[:i], new, *sizes[i + 1 :]])
    yield from (_changed(tensor, Sizes=resized(sizes), Strides=None) for resized in RESIZED)
    packed = [stride & UINT_MAX for stride in packed_strides(sizes)]
    strides = [[0] * len(sizes), [1] * len(sizes), packed, packed[::-1], [2 * stride & UINT_MAX for stride in packed]]
    strides += [[new, *packed[1:]] for new in (0, UINT_MAX)] + [[*packed[:-1], new] for new in (0, 2**31)]
    yield from (_changed(tensor, Strides=new) for new in strides)
    totals = [min(max(0, total + change), UINT64_MAX) for change in TOTAL_CHANGES]
    yield from (tensor | {"TotalTensorSizeInBytes": new} for new in totals)
    yield from (tensor | {"Flags": new} for new in (1, 2, 3, 2**31))
    yield from (tensor | {"GuaranteedBaseOffsetAlignment": new} for new in ALIGNMENTS)


def _of_all(tensors: list[Fields]) -> Iterator[list[Fields]]:
    """Yield all tensors with another size wherever they have one, other dimension counts, or another data type."""
    for old in sorted({size for tensor in tensors for size in tensor["Sizes"]}):
        for new in (0, 2**16, 2**31, UINT_MAX, *_limited(old)):
            yield [_changed(each, Sizes=[new if size == old else size for size in each["Sizes"]]) for each in tensors]
    for resized in RESIZED:
        yield [_changed(each, Sizes=resized(each["Sizes"]), Strides=None) for each in tensors]
    for data_type in range(1, 14):
        yield [_changed(each, DataType=data_type) for each in tensors]


def _limited(size: int) -> list[int]:
    return [min(new, UINT_MAX) for new in (size + 1, 2 * size)]


def _changed(tensor: Fields, **changes: Any) -> Fields:
    """The tensor with these values, the count and the total that they need."""
    changed = tensor | changes
    total = min(minimum_total(changed), UINT64_MAX - 3)
    return changed | {"DimensionCount": len(changed["Sizes"]), "TotalTensorSizeInBytes": total}
