"""Executed operators against the bytes that Microsoft's DirectML wrote on a software driver."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from dml_tile import execute
from dml_tile.descriptors.operator import OperatorDesc, OperatorFields
from dml_tile.descriptors.tile import BufferTensorDesc, TensorDesc
from dml_tile.directml.operator_table import tables_of
from dml_tile.directml.operators import operators
from dml_tile.directml.targets import Target
from dml_tile.directml.values import Values, values
from dml_tile.execution.evaluation import TensorArgument, prepared
from dml_tile.execution.operators.fused import kernel_of
from dml_tile.execution.operators.table import KERNELS
from dml_tile.rules.operator_view import table_of
from tests.helpers.paths import ROOT
from tests.helpers.recorded_answers import rows_of

WRITES_LAST_WORD: Final = {"ELEMENT_WISE_QUANTIZED_LINEAR_ADD", "QUANTIZED_LINEAR_AVERAGE_POOLING"}
"""The operators that write the whole of the last 4-byte word; the emulator writes elements only."""
FLOAT16_TOLERANCE: Final = (4e-3, 1e-4)
"""Relative and absolute, as docs/operators.md says, of any operator that is not equal in every byte."""


class Written(NamedTuple):
    """A tensor that was written: its bytes before, as the emulator wrote them, and as DirectML did."""

    tensor: TensorArgument
    before: bytes
    ours: bytearray
    theirs: bytes

    def elements(self, memory: bytes | bytearray) -> NDArray[Any]:
        return self.tensor.elements(np.frombuffer(memory, np.uint8))

    def gaps(self, memory: bytes | bytearray) -> bytes:
        """The memory with its elements set to 0."""
        blank = np.frombuffer(memory, np.uint8).copy()
        self.tensor.write(blank, np.zeros(self.tensor.shape, self.elements(memory).dtype))
        return blank.tobytes()

    @property
    def is_equal(self) -> bool:
        return self.elements(self.ours).tobytes() == self.elements(self.theirs).tobytes()

    def is_within(self, row: Values) -> bool:
        ours, theirs = self.elements(self.ours), self.elements(self.theirs)
        if ours.dtype.kind != "f":
            return np.array_equal(ours, theirs)
        relative, absolute = row.within if ours.dtype != np.float16 else FLOAT16_TOLERANCE
        with np.errstate(invalid="ignore"):  # signalling NaNs
            given = ours.astype(np.float64), theirs.astype(np.float64)
            return np.allclose(*given, rtol=relative, atol=absolute, equal_nan=True)


@cache
def recorded() -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in rows_of("executed_operators.jsonl.xz"):
        found.setdefault(row["desc"]["Type"].removeprefix("DML_OPERATOR_"), []).append(row)
    return found


def tensors_of(desc: OperatorFields, name: str) -> list[TensorDesc | None]:
    value = desc[name]
    return [*value] if isinstance(value, tuple) else [value]


def executed(row: dict[str, Any], over: tuple[str, str] | None = None) -> Iterator[Written]:
    """Execute a recorded operator on its bytes; yield what was written. ``over``: an output, and the input below it."""
    desc = OperatorDesc.model_validate(row["desc"])
    assert isinstance(desc.desc, OperatorFields)
    recorded_bytes = {key: iter(row[key]) for key in ("inputs", "before", "after")}
    buffers, written = dict[str, Any](), list[Written]()
    for field in desc.desc.operator.tensor_fields:
        is_output = table_of(desc.desc).is_output(field.name)
        given = list[Any]()
        for tensor in tensors_of(desc.desc, field.name):
            memory = _bytes(next(recorded_bytes["before" if is_output else "inputs"]))
            given.append(memory)
            if is_output and (after := _bytes(next(recorded_bytes["after"]))) is not None and tensor is not None:
                assert isinstance(tensor.desc, BufferTensorDesc)
                assert memory is not None
                ours = given[-1] = bytearray(memory)
                written.append(Written(TensorArgument(field.name, tensor.desc), memory, ours, after))
        buffers[field.name] = given if field.is_array else given[0]
    if over is not None:
        output, below = over
        both = buffers[output] = buffers[below] = bytearray(buffers[below] + buffers[output][len(buffers[below]) :])
        written = [each._replace(ours=both) if each.tensor.path == output else each for each in written]
    has_doubles = "FLOAT64" in str(row["desc"])
    target = replace(Target.parse(row["level"]), native_16_bit_ops=row["native_16_bit_ops"])
    execute(desc, buffers, replace(target, double_precision=True) if has_doubles else target, "runtime")
    yield from written


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)


def test_the_record_has_168_operators_at_three_levels_with_and_without_native_16_bit_operations() -> None:
    rows = [*chain.from_iterable(recorded().values())]
    assert (len(rows), len(recorded())) == (5836, 168)
    assert {(row["level"], row["native_16_bit_ops"]) for row in rows} >= {("6_2", True), ("5_2", False), ("5_0", False)}
    unrecorded = {name for name, row in values().items() if not row.recorded}
    assert recorded().keys() | unrecorded | {"TILE"} == values().keys()
    assert {operator.name for operator in operators().values()} - values().keys() == {"MULTIHEAD_ATTENTION1"}
    assert all(kernel_of(name, KERNELS) for name in values())


@pytest.mark.parametrize("operator", sorted(recorded()))
def test_operators_write_what_directml_wrote(operator: str) -> None:
    """As their rows in values.toml say; bytes outside of elements are never touched."""
    row, apart, unequal = values()[operator], 0, 0
    for case in recorded()[operator]:
        outputs = [*executed(case)]
        for each in outputs:
            assert each.gaps(each.ours) == each.gaps(each.before)
            assert operator in WRITES_LAST_WORD or each.gaps(each.theirs) == each.gaps(each.before)
        unequal += not all(each.is_equal for each in outputs)
        apart += not all(each.is_within(row) for each in outputs)
    assert apart == row.apart
    assert (row.label == "bytes") == (unequal == 0)


def test_readme_says_how_many_operators_are_equal_in_every_byte_and_how_many_cases_are_apart() -> None:
    equal = sum(row.label == "bytes" and row.recorded for row in values().values()) - 1  # TILE is recorded elsewhere
    apart = sum(row.apart for row in values().values())
    assert (equal >= 80, apart <= 0.03 * 5836) == (True, True)
    assert f"{equal} operators: 0; {apart} cases" in (ROOT / "README.md").read_text("utf-8")
    assert all(bool(row.apart) == bool(row.why) for row in values().values())


def test_an_output_may_lie_over_an_input_where_the_page_says_so() -> None:
    """Values are those of tensors that lie apart."""
    in_place = {each.name for each in operators().values() for _, table in tables_of(each) if table.in_place}
    done = set[str]()
    for row in chain.from_iterable(recorded()[name][:10] for name in in_place & recorded().keys()):
        desc = OperatorDesc.model_validate(row["desc"])
        for pair in prepared(desc, Target.parse(row["level"]), "runtime").aliases:
            for apart, above in zip(executed(row), executed(row, pair), strict=True):
                assert apart.elements(apart.ours).tobytes() == above.elements(above.ours).tobytes(), (row["desc"], pair)
            done.add(row["desc"]["Type"].removeprefix("DML_OPERATOR_"))
    assert done == in_place
