"""Random operators of random, odd values: executed, alike by each way to execute them, or refused by a finding."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any, Final, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from dml_tile import Device, evaluate, execute
from dml_tile.descriptors.operator import OperatorDesc, OperatorFields
from dml_tile.directml.dtypes import DTYPES
from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.operators import OperatorRow, operators
from dml_tile.errors import DmlError
from dml_tile.execution.evaluation import TensorArgument
from dml_tile.findings import Against
from dml_tile.rules.operator_view import tensors_of
from tests.recorder.operator_draws import FAULTS, valid

LEVELS: Final = ("5_1", "6_2")
"""Of the descriptors that are drawn; newer operators have no draws."""
TARGETS: Final = (*LEVELS, "6_4")
CONTRACTS: Final[tuple[Against, ...]] = ("both", "runtime", "documentation")
MAX_BYTES: Final = 2**16
"""Of a tensor that is executed here: odd strides need more memory than tests should take."""


class Drawn(NamedTuple):
    """An operator, its inputs and outputs by path, and their memory."""

    desc: OperatorDesc
    inputs: dict[str, TensorArgument]
    outputs: dict[str, TensorArgument]
    memory: dict[str, bytes]


def drawn_desc(operator: OperatorRow, level: FeatureLevel, random: Random) -> OperatorDesc:
    fields = valid(operator, level, random)
    for _ in range(random.choice((0, 0, 1, 2))):
        FAULTS[random.choice((*FAULTS, "attributes", "attributes", "sizes", "strides"))](random, operator, fields)
    return OperatorDesc(type=operator.value, desc=fields)


def odd(data_type: int, count: int, random: Random) -> bytes:
    """Elements: small ones, random bits, or the extremes of the type."""
    dtype, values = DTYPES.get(data_type, np.dtype(np.uint8)), np.random.default_rng(random.getrandbits(64))
    if random.random() < 0.4:
        return values.integers(0, 4, count).astype(dtype).tobytes()
    if random.random() < 0.5:
        return values.bytes(count * dtype.itemsize)
    return values.choice(extremes(dtype), count).tobytes()


def extremes(dtype: np.dtype[Any]) -> NDArray[Any]:
    if dtype.kind == "f":
        floats = np.finfo(dtype)
        return np.array([0, -0.0, 1, np.nan, np.inf, -np.inf, floats.min, floats.max, floats.tiny], dtype)
    integers = np.iinfo(dtype)
    return np.array([0, 1, integers.min, integers.max], dtype)


def tensors(fields: OperatorFields) -> tuple[dict[str, TensorArgument], dict[str, TensorArgument]] | None:
    """Inputs and outputs by path; None where one is no buffer, or too large."""
    sides = tensors_of(fields)
    given = [tensor for side in sides for tensor in side.values() if tensor is not None]
    if any(tensor.desc is None or tensor.desc.total_tensor_size_in_bytes > MAX_BYTES for tensor in given):
        return None
    inputs, outputs = (
        {path: TensorArgument(path, tensor.desc) for path, tensor in side.items() if tensor and tensor.desc}
        for side in sides
    )
    return inputs, outputs


def draw(operator: OperatorRow, random: Random) -> Drawn | None:
    levels = [level for level in map(FeatureLevel.parse, LEVELS) if operator.level <= level]
    desc = drawn_desc(operator, random.choice(levels), random)
    assert isinstance(desc.desc, OperatorFields)
    if (found := tensors(desc.desc)) is None:
        return None
    memory = {path: odd(tensor.desc.data_type, tensor.size_in_bytes, random) for path, tensor in found[0].items()}
    memory |= {path: random.randbytes(tensor.size_in_bytes) for path, tensor in found[1].items()}
    return Drawn(desc, *found, memory)


def by_field(fields: OperatorFields, values: dict[str, Any]) -> dict[str, Any]:
    """Values by paths, those of an array of tensors in a list."""
    found: dict[str, Any] = {}
    for path, value in values.items():
        name = path.partition("[")[0]
        if fields.operator.named[name].is_array:
            found.setdefault(name, []).append(value)
        else:
            found[name] = value
    return found


def written(drawn: Drawn, target: str, against: Against) -> Iterator[tuple[str, dict[str, NDArray[Any]]]]:
    """The outputs' elements after each way to execute an operator, by its name. Raises DmlError where it is refused."""
    fields = drawn.desc.desc
    assert isinstance(fields, OperatorFields)
    device = Device(target, against=against, raise_on_removal=True)

    def after(call: Any, *arguments: Any) -> dict[str, NDArray[Any]]:
        memory = {path: bytearray(given) for path, given in drawn.memory.items()}
        call(drawn.desc, by_field(fields, memory), *arguments)
        return {path: tensor.elements(np.frombuffer(memory[path], np.uint8)) for path, tensor in drawn.outputs.items()}

    yield "execute", after(execute, target, against)
    yield "Device.execute", after(device.execute)
    if all(tensor.desc.data_type in DTYPES for tensor in (drawn.inputs | drawn.outputs).values()):
        arrays = {
            path: tensor.elements(np.frombuffer(drawn.memory[path], np.uint8)) for path, tensor in drawn.inputs.items()
        }
        values = evaluate(drawn.desc, by_field(fields, arrays), target, against)
        listed = {
            path: each
            for name, value in values.items()
            for path, each in (
                ((f"{name}[{i}]", one) for i, one in enumerate(value)) if isinstance(value, list) else [(name, value)]
            )
        }
        yield "evaluate", {path: listed[path] for path in drawn.outputs}


def require_alike(name: str, count: int, seed: int) -> int:
    """Execute random operators of a name; return how many were executed."""
    operator = next(each for each in operators().values() if each.name == name)
    random, executed = Random(f"{seed} {name}"), 0
    for _ in range(count):
        if (drawn := draw(operator, random)) is None:
            continue
        try:
            (_, first), *others = written(drawn, random.choice(TARGETS), random.choice(CONTRACTS))
        except DmlError:
            continue
        executed += 1
        for way, values in others:
            for path, elements in values.items():
                if name == "NONZERO_COORDINATES" and way == "evaluate":  # what is not written is 0
                    assert ((elements == first[path]) | (elements == 0)).all(), (way, path, drawn.desc)
                else:
                    assert elements.tobytes() == first[path].tobytes(), (way, path, drawn.desc)
    return executed


NAMES: Final = [
    each.name
    for each in operators().values()
    if each.name != "TILE" and each.level <= max(map(FeatureLevel.parse, LEVELS))
]


@pytest.mark.parametrize("name", NAMES)
def test_random_operators_are_executed_alike_in_each_way_or_refused(name: str) -> None:
    require_alike(name, 3, seed=1)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", NAMES)
def test_many_random_operators_are_executed_alike_in_each_way_or_refused(name: str) -> None:
    executed = require_alike(name, 200, seed=2)
    assert executed > 3 or name == "ROI_ALIGN_GRAD"  # which is drawn with OutputROIGradientTensor
