"""Random DxDispatch models as texts, most of them a valid one with a few changes."""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any, Final

Json = dict[str, Any]
_FLOATS: Final = ("FLOAT16", "FLOAT32", "FLOAT64")
_INTEGERS: Final = ("UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64")
_DATA_TYPES: Final = _FLOATS + _INTEGERS
_ODD_FLOATS: Final = (
    0.0, -0.0, 1.2, 3.4, 5.6, 0.3, 0.7, 65504, 65505, 65519.9, 65520, 65535, 65536, 1e6, -1e6, 2049, 2051, -2051, 6e-8,
    5.9e-8, 3e-8, -3e-8, 6.1e-5, 1e-46, 1.5e-45, 3.4e38, 3.5e38, -4e38, 1e300, 1e-320, 5e-324, 16777217, 2**53 + 1,
    2**53 + 2, -(2**63), 2**63, 2**63 + 1025, 2**64 - 1, 2**64, 10**25, 123456789, 0.1, 1 / 3, 2.5e-7,
    "nan", "NaN", "inf", "-inf", "INF", "-Inf",
)  # fmt: skip
_NO_NUMBERS: Final[tuple[Any, ...]] = (None, True, "x", "Infinity", "+inf", "", [], {}, [1], "1")
_NO_INTEGERS: Final[tuple[Any, ...]] = (1.0, 1.5, -1, "1", None, True, 2**32, 2**64, [], {})


class Draws(Random):
    """Random choices. In the calm half of the models ``odd`` is never true, so that the parser accepts most of them."""

    calm = False

    def odd(self, probability: float) -> bool:
        return not self.calm and self.random() < probability

    def either(self, probability: float, odd: tuple[Any, ...], usual: tuple[Any, ...]) -> Any:
        """One of the odd values, or of the usual ones."""
        return self.choice(odd) if self.odd(probability) else self.choice(usual)


def draw(random: Draws) -> str:
    """The text of one model."""
    random.calm = random.random() < 0.5
    names = ["In", "Out", "a b", "R/1"][: random.choice((1, 2, 2, 2, 3))]
    resources = {name: _resource(random) for name in names}
    dispatchables = {name: _dispatchable(random, names) for name in ["t", "u"][: random.choice((0, 1, 1, 1, 2))]}
    model: Json = {
        "resources": resources,
        "dispatchables": dispatchables,
        "commands": [_command(random, names, [*dispatchables]) for _ in range(random.choice((0, 0, 1, 1, 2)))],
    }
    if random.odd(0.02):
        _change(random, model, [*model], (None, [], {}, 1, "x", [1], {"a": 1}))
    if random.odd(0.03):
        model["comment"] = random.choice((None, 1, "x", [], {}))
    return _text(random, model)


def _text(random: Draws, model: Json) -> str:
    text = json.dumps(model, separators=(",", ":"))
    kind = random.random()
    if kind < 0.02:
        text = text[:-1] + ",}"
    elif kind < 0.04:
        text = text.replace("]", ",]", 1)
    elif kind < 0.06:
        text = "/* model */ " + text.replace(",", ", // next\n", 1)
    elif kind < 0.09:
        text += random.choice((" trailing", "{}", "\n\n]", "\n[1]", " // done", " /* open", "\n\n" + text, '"', " 1"))
    elif kind < 0.1 and not random.calm:
        text = random.choice((" \n" + text, "\ufeff" + text, "," + text, text[:-1], "", "[" + text + "]", "[]", "null"))
    elif 0.1 < kind < 0.11:
        text = text.replace(":1,", ":1e400,", 1).replace(":2,", ":1E+2,", 1)
    return text


def _change(random: Draws, data: Json, keys: list[str], values: tuple[Any, ...]) -> None:
    """Leave a key out, or give it another value."""
    key = random.choice(keys)
    if random.random() < 0.4:
        data.pop(key, None)
    else:
        data[key] = random.choice(values)


def _data_type(random: Draws, names: tuple[str, ...] = _DATA_TYPES) -> Any:
    if random.odd(0.04):
        return random.choice((1, 2, 0, None, "float32", "FLOAT8", "UNKNOWN", "DML_TENSOR_DATA_TYPE_UNKNOWN", "UINT4",
                              "DML_TENSOR_DATA_TYPE_INT4", "", " FLOAT32", True, []))  # fmt: skip
    return random.choice(("", "", "", "DML_TENSOR_DATA_TYPE_")) + random.choice(names)


def _number(random: Draws, data_type: str) -> Any:
    if random.odd(0.015):
        return random.choice(_NO_NUMBERS)
    if data_type.endswith(_FLOATS):
        if random.random() < 0.5:
            return random.choice(_ODD_FLOATS)
        return random.choice((random.uniform(-10, 10), random.uniform(-70000, 70000), random.randint(-4000, 4000)))
    bits = int(data_type.rpartition("INT")[2] or 8) if "INT" in data_type else 8
    least, most = (0, 2**bits - 1) if "UINT" in data_type else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if random.odd(0.02):
        return random.choice((least - 1, most + 1, 1.0, 0.5, "nan", 1e2, -0.0))
    return random.choice((least, most, 0, 1, random.randint(least, most)))


def _resource(random: Draws) -> Any:
    if random.odd(0.005):
        return random.choice((None, 1, [], "x"))
    data_type = _data_type(random)
    drawn_as = data_type if isinstance(data_type, str) else "FLOAT32"
    kind = random.random()
    values: Any
    if kind < 0.5:
        values = [_number(random, drawn_as) for _ in range(random.choice((1, 2, 3, 4, 5)))]
    elif kind < 0.62:
        values = {"valueCount": _count(random), "value": _number(random, drawn_as)}
    elif kind < 0.85:
        values = {
            "valueCount": _count(random),
            "valueStart": _number(random, drawn_as),
            "valueDelta": _number(random, drawn_as),
        }
    elif kind < 0.97:
        values = [_typed_value(random) for _ in range(random.choice((1, 2, 3)))]
        data_type = random.choice(("UNKNOWN", "UNKNOWN", "DML_TENSOR_DATA_TYPE_UNKNOWN", data_type))
    elif random.calm:
        values = [1]
    else:
        values = random.choice(("deferred", "later", [], None, 1, {}, {"value": 1}, {"valueCount": 2}, True, {"x": 1}))
    resource = {"initialValuesDataType": data_type, "initialValues": values}
    if isinstance(values, dict) and random.odd(0.05):
        _change(random, values, ["value", "valueStart", "valueDelta", "valueCount"], _NO_NUMBERS)
    if random.random() < 0.1:
        resource["sizeInBytes"] = random.either(0.6, (1, 4, None, -1, 1.0, "4", 0, True), (320, 1000))
    if random.odd(0.06):
        resource["initialValuesOffsetInBytes"] = random.either(0.4, (None, -1, 1.5, "4", 10**6), (0, 1, 4, 8))
        if random.random() < 0.8:
            resource.setdefault("sizeInBytes", 1000)
    if random.odd(0.03):
        _change(random, resource, [*resource], _NO_NUMBERS)
    if random.odd(0.02):
        resource["unknown"] = None
    return resource


def _count(random: Draws) -> Any:
    return random.choice(_NO_INTEGERS) if random.odd(0.04) else random.choice((1, 2, 3, 5, 8, 40))


def _typed_value(random: Draws) -> Any:
    if random.odd(0.02):
        return random.choice((1, None, [], {}))
    data_type = _data_type(random, (*_DATA_TYPES, *_INTEGERS) if random.odd(0.5) else (*_DATA_TYPES[1:],))
    value = {"type": data_type, "value": _number(random, data_type if isinstance(data_type, str) else "UINT8")}
    if random.odd(0.04):
        _change(random, value, ["type", "value", "name"], (None, 1, "x"))
    return value


def _array(random: Draws, values: list[int]) -> Any:
    if random.odd(0.04):
        return random.choice((None, [], 1, "1", {}, [1.0], [-1], [2**32], ["1"], [None], [True], [1, 2, 3]))
    return values


def _tensor(random: Draws, data_type: Any, sizes: list[int]) -> Any:
    if random.odd(0.01):
        return random.choice((None, 1, [], {}, "x"))
    buffer: Json = {"DataType": data_type, "Sizes": _array(random, sizes)}
    if random.random() < 0.15:
        buffer["Strides"] = _array(random, [random.choice((0, 1, 2, 4, 8)) for _ in sizes])
    if random.random() < 0.1:
        buffer["DimensionCount"] = random.choice((None, 1.0, -1, "1", 2**32)) if random.odd(0.4) else len(sizes)
        if buffer["DimensionCount"] == len(sizes) and not _fits(buffer):
            del buffer["DimensionCount"]
    if random.random() < 0.15:
        buffer["TotalTensorSizeInBytes"] = (
            random.choice((None, -1, 1.0, "4", 2**64))
            if random.odd(0.3)
            else random.choice((0, 4, 16, 64, 1000, 2**40))
        )
    if random.random() < 0.1:
        buffer["GuaranteedBaseOffsetAlignment"] = random.either(0.3, (None, -1, 1.0, 2**32), (0, 16, 64))
    if random.random() < 0.12:
        buffer["Flags"] = _flags(random, "DML_TENSOR_FLAG_", ("NONE", "OWNED_BY_DML"))
    tensor: Json = dict(buffer)
    if random.random() < 0.15:
        tensor = {"Desc": random.choice((None, 1)) if random.odd(0.1) else buffer}
    if random.random() < 0.15:
        tensor["Type"] = (
            random.choice((1, None, "buffer", []))
            if random.odd(0.3)
            else random.choice(("BUFFER", "DML_TENSOR_TYPE_BUFFER", "INVALID"))
        )
    if random.odd(0.03):
        tensor[random.choice(("comment", "desc", "data_type", "NullDesc"))] = random.choice((None, 1, {}))
    if random.odd(0.04):
        _change(random, tensor, [*tensor], (None, 1, [], {}, "x"))
    return tensor


def _fits(buffer: Json) -> bool:
    """Whether the arrays are as long as they were drawn: the parser does not read beyond them then."""
    return isinstance(buffer["Sizes"], list) and len(buffer["Sizes"]) == buffer["DimensionCount"]


def _flags(random: Draws, prefix: str, names: tuple[str, ...]) -> Any:
    if random.odd(0.2):
        return random.choice((0, 1, None, [1], "owned_by_dml", [None], {}, "", True))
    one = [random.choice(("", prefix)) + random.choice(names) for _ in range(random.choice((0, 1, 2)))]
    return random.choice((one, (one or ["NONE"])[0]))


def _dispatchable(random: Draws, resources: list[str]) -> Any:
    if random.odd(0.005):
        return random.choice((None, 1, [], "x"))
    rank = random.choice((1, 1, 2, 3))
    sizes = [random.choice((1, 2, 3)) for _ in range(rank)]
    repeats = [random.choice((1, 2, 3)) for _ in range(rank)]
    data_type = _data_type(random)
    tile: Json = {
        "InputTensor": _tensor(random, data_type, sizes),
        "OutputTensor": _tensor(
            random, data_type, [size * repeat for size, repeat in zip(sizes, repeats, strict=True)]
        ),
        "RepeatsCount": random.choice(_NO_INTEGERS) if random.odd(0.04) else rank,
        "Repeats": _array(random, repeats),
    }
    if random.odd(0.04):
        _change(random, tile, [*tile], (None, 1, [], {}, "x"))
    name: Any = random.choice(("TILE", "DML_OPERATOR_TILE"))
    if random.odd(0.04):
        name = random.choice(("Tile", "tile", None, 70, "DML_OPERATOR_TILES", "", [], "INVALID"))
    key = random.choice(("Type", "type")) if random.odd(0.06) else "type"
    dispatchable: Json = {key: name} | (tile if random.random() < 0.1 else {random.choice(("desc", "Desc")): tile})
    if random.odd(0.02):
        dispatchable["Type"] = random.choice(("TILE", "Tile", 1, None))
    if random.odd(0.02):
        dispatchable["Desc"] = random.choice((None, 1, tile))
    if random.random() < 0.08:
        dispatchable["dmlCompileType"] = (
            random.choice(("dmlcompileop", None, 1, ""))
            if random.odd(0.3)
            else random.choice(("DmlCompileOp", "DmlCompileGraph"))
        )
    if random.random() < 0.1:
        names = ("NONE", "ALLOW_HALF_PRECISION_COMPUTATION", "DISABLE_META_COMMANDS", "DESCRIPTORS_VOLATILE")
        dispatchable["executionFlags"] = _flags(random, "DML_EXECUTION_FLAG_", names)
    if random.random() < 0.12:
        dispatchable["bindings"] = _bindings(random, resources)
    return dispatchable


def _bindings(random: Draws, resources: list[str]) -> Any:
    if random.odd(0.05):
        return random.choice((None, [], 1, "In"))
    points = ["InputTensor", "OutputTensor", "BTensor"][: random.choice((0, 1, 2, 2, 2, 3))]
    return {point: _source(random, resources) for point in points}


def _source(random: Draws, resources: list[str]) -> Any:
    name = random.choice((*resources, *resources, "X")) if random.odd(0.1) else random.choice(resources)
    if random.random() < 0.7:
        return name
    source: Json = {"name": name}
    for key in ("elementCount", "elementSizeInBytes", "elementOffset"):
        if random.random() < 0.3:
            source[key] = random.choice(_NO_INTEGERS) if random.odd(0.1) else random.choice((0, 1, 4, 16))
    odd: list[Callable[[], tuple[str, Any]]] = [
        lambda: ("format", random.choice(("DXGI_FORMAT_R32_FLOAT", "R8_UINT", "x", 1, None))),
        lambda: ("shape", random.choice(([1, -1], [], [1.0], None, "x"))),
        lambda: ("counter", random.choice(("In", "X", None, 1))),
        lambda: ("name", random.choice((None, 1, ""))),
        lambda: ("unknown", None),
    ]
    if random.odd(0.15):
        key, value = random.choice(odd)()
        source[key] = value
    if random.random() < 0.1:
        return [source]
    return random.choice((None, 1, [], [None], True)) if random.odd(0.03) else source


def _command(random: Draws, resources: list[str], dispatchables: list[str]) -> Any:
    if random.odd(0.01):
        return random.choice(({}, {"type": 1}, {"type": "x"}, {"type": None}))
    kind = random.choice(("dispatch", "dispatch", "print", "writeFile") if dispatchables else ("print", "writeFile"))
    name = "X" if random.odd(0.04) else random.choice(resources)
    command: Json = {"type": random.choice((kind, kind, kind.upper(), kind.lower()))}
    if kind == "dispatch":
        command["dispatchable"] = "X" if random.odd(0.04) or not dispatchables else random.choice(dispatchables)
        command["bindings"] = _bindings(random, resources)
        if random.odd(0.05):
            command["threadGroupCount"] = random.choice(([1, 2, 3], [1], None, "x"))
    elif kind == "print":
        command["resource"] = name
        if random.random() < 0.3:
            command["verbose"] = random.either(0.3, (None, 1, "true"), (True, False))
    else:
        command |= {"resource": name, "targetPath": "x.bin"}
        if random.random() < 0.3:
            command["dimensions"] = _array(random, [1, 2])
    if random.odd(0.04):
        _change(random, command, [*command], (None, 1, [], {}, "x"))
    return command
