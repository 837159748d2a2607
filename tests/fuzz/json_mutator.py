"""Mutates JSON by its values, so that most mutants are JSON too."""

from __future__ import annotations

import json
import random
from typing import Any, Final

_VALUES: Final[tuple[Any, ...]] = (
    *(None, True, False, -1, 0, 1, 2, 3, 8, 9, 2**16, 2**31, 2**32 - 1, 2**32, 2**63, 2**64, 1.5, 1e999, 10**30),
    *("", "FLOAT32", "INT64", "UINT4", "DML_TENSOR_FLAG_OWNED_BY_DML", "DML_OPERATOR_TILE", "nan", "\u202e", "../x"),
    *([], {}, [1, 2, 3, 4], [4096, 4096], [1] * 9, {"Desc": None}, "In", "Out", "deferred", ".git/config", "a.npy"),
)
_KEYS: Final = (
    *("Type", "Desc", "InputTensor", "OutputTensor", "Repeats", "RepeatsCount", "DataType", "Flags", "DimensionCount"),
    *("Sizes", "Strides", "TotalTensorSizeInBytes", "GuaranteedBaseOffsetAlignment", "NullDesc", "resources"),
    *("dispatchables", "commands", "type", "desc", "bindings", "initialValues", "initialValuesDataType", "sizeInBytes"),
    *("valueCount", "value", "valueStart", "valueDelta", "sourcePath", "targetPath", "dimensions", "elementOffset"),
    *("elementSizeInBytes", "name", "resource", "dispatchable", "executionFlags", "input_tensor", "data_type"),
)


def mutated(text: bytes, seed: int) -> bytes | None:
    """The document with one to four of its values or names changed; None if it is no JSON."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    chosen = random.Random(seed)
    for _ in range(chosen.randint(1, 4)):
        value = _changed(value, chosen)
    return json.dumps(value).encode()


def _changed(value: Any, chosen: random.Random) -> Any:
    if not value or not isinstance(value, list | dict) or chosen.random() < 0.1:
        return _another(value, chosen)
    items: list[tuple[Any, Any]] = [*value.items()] if isinstance(value, dict) else [*enumerate(value)]
    at = chosen.randrange(len(items))
    key, inner = items[at]
    match chosen.randrange(8):
        case 0:
            del items[at]
        case 1:
            items += [(chosen.choice(_KEYS), inner)] * chosen.randint(1, 9)
        case _:
            items[at] = key, _changed(inner, chosen)
    return dict(items) if isinstance(value, dict) else [each for _, each in items]


def _another(value: Any, chosen: random.Random) -> Any:
    if isinstance(value, int) and chosen.random() < 0.5:
        return value + chosen.choice((-1, 1, value, 2**32))
    return chosen.choice(_VALUES)
