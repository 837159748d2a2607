"""The examples of Microsoft's pages: the numbers that they give come out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dml_tile import OperatorDesc, data_type_of, evaluate
from tests.helpers.recorded_answers import rows_of

ROWS = rows_of("page_examples.jsonl")


def tensor(value: Any) -> Any:
    """The descriptor of a tensor of a row, or of an array of them."""
    if isinstance(value, list):
        return [*map(tensor, value)]
    return {"DataType": data_type_of(value["type"]).name, "Sizes": value["sizes"]}


def array(value: Any) -> Any:
    if isinstance(value, list):
        return [*map(array, value)]
    return np.array(value["values"], value["type"]).reshape(value["sizes"])


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['operator']}-{i}" for i, row in enumerate(ROWS)])
def test_the_numbers_of_a_page_come_out(row: dict[str, Any]) -> None:
    """A row that is ``mended`` says where its page contradicts itself."""
    tensors = {name: tensor(value) for name, value in (row["inputs"] | row["outputs"]).items()}
    desc = OperatorDesc(type=row["operator"], desc=row["fields"] | tensors)
    found = evaluate(desc, {name: array(value) for name, value in row["inputs"].items()}, "6_4")
    for name, value in row["outputs"].items():
        np.testing.assert_array_equal(found[name], array(value))
