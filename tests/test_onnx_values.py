"""What is known of an ONNX value by two sources, and of one that may be either of two."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from onnx import TypeProto, helper

from dml_tile.readers.onnx.inference import is_kept, without_shape
from dml_tile.readers.onnx.values import Value, common, dimensions, merged
from tests.helpers.onnx_graphs import FLOAT, INT64

Type = TypeProto | None


def of(shape: Sequence[int | str | None] | None, element: int = FLOAT) -> TypeProto:
    return helper.make_tensor_type_proto(element, shape)


@pytest.mark.parametrize(
    ("inferred", "declared", "expected"),
    [
        (None, None, None),
        (of([2]), None, of([2])),
        (None, of([2]), of([2])),
        (of(None), of([2, 3]), of([2, 3])),
        (of([2, "N"]), of(None), of([2, "N"])),
        (of([None, 3]), of([2, None]), of([2, 3])),
        (of([2]), of([2], INT64), of([2])),
        (of([2, 3]), of([6]), of([2, 3])),
    ],
)
def test_what_is_inferred_is_filled_in_from_what_is_declared(inferred: Type, declared: Type, expected: Type) -> None:
    assert merged(inferred, declared) == expected


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (of([2, 3]), of([2, 3]), of([2, 3])),
        (of([2, 3]), of([2, 4]), of([2, None])),
        (of([2, 3]), of([2]), of(None)),
        (of([2, 3]), of(None), of(None)),
        (of([2]), of([2], INT64), None),
        (None, of([2]), None),
    ],
)
def test_what_two_types_share_is_common_to_them(first: Type, second: Type, expected: Type) -> None:
    assert common(first, second) == common(second, first) == expected


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        (of([2, 3]), of([2, 3]), True),
        (of([2, 3]), of([2, 4]), False),
        (of([2, 3]), of(None), False),
        (of([2, 3]), None, False),
        (of(None), of([2]), True),
        (None, of([2]), True),
    ],
)
def test_an_iteration_keeps_a_shape_that_it_hands_on(before: Type, after: Type, kept: bool) -> None:
    assert is_kept([before], [after]) is kept


def test_a_type_without_its_shape_keeps_its_elements() -> None:
    assert without_shape(None) is None
    shapeless = without_shape(of([2, 3], INT64))
    assert shapeless is not None
    assert dimensions(shapeless) is None
    assert shapeless.tensor_type.elem_type == INT64


def test_a_value_masks_the_elements_that_are_unknown() -> None:
    partly = Value(of([2], INT64), np.array([4, 1]), np.array([True, False]))
    assert partly.argument is not None
    assert partly.argument.tolist() == [4, None]
    assert partly.constant is None
    assert partly.mask.tolist() == [True, False]
    whole = Value(of([2], INT64), np.array([4, 1]))
    assert whole.constant is whole.argument is whole.elements
    assert whole.mask.all()
    with pytest.raises(ValueError, match="no element is known"):
        Value().mask  # noqa: B018  # it raises
