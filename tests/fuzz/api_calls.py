"""Calls of the public API with arguments of any kind: only exceptions that the documentation names may be raised."""

from __future__ import annotations

import builtins
import inspect
import re
import resource
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Final

import atheris
import numpy as np

import dml_tile
from dml_tile.dialects.tiles import ONNX_TILE_13
from dml_tile.errors import DmlTileError

_TILE: Final = dml_tile.TileOperatorDesc.from_input(data_type="FLOAT32", sizes=[2, 3], repeats=[1, 2])
_INT64: Final = dml_tile.TileOperatorDesc.from_input(data_type="INT64", sizes=[2], repeats=[2], strides=[2])
_BUFFER: Final = dml_tile.Buffer(64)
_REQUEST: Final = ONNX_TILE_13.request("float32", (2, 3), (2, 2))

_FUNCTIONS: Final[list[Callable[..., object]]] = [
    function
    for name in dml_tile.__all__
    if inspect.isfunction(function := getattr(dml_tile, name)) and not name.startswith(("read_", "sweep"))
]
_CONSTRUCTORS: Final[list[Callable[..., object]]] = [
    *(dml_tile.BindingDesc, dml_tile.Buffer, dml_tile.BufferArrayBinding, dml_tile.BufferBinding, dml_tile.Device),
    *(dml_tile.BindingTableDesc, dml_tile.CommandList, dml_tile.BufferTensorDesc, dml_tile.TensorDesc),
    *(dml_tile.TileOperatorDesc, dml_tile.OperatorDesc),
]
_METHODS: Final[list[Callable[..., object]]] = [
    *(dml_tile.Target.parse, dml_tile.TileOperatorDesc.from_input, dml_tile.TileOperatorDesc.from_array),
    *(_TILE.replace, _TILE.model_copy, dml_tile.compile_tile(_TILE).bind),
]
CALLS: Final = [*_FUNCTIONS, *_CONSTRUCTORS, *_METHODS]

_VALUES: Final[list[Any]] = [
    *(None, True, False, 0, 1, 2, 3, -1, 8, 70, 2**31, 2**32 - 1, 2**32, 2**63, 2**64, 10**5000, 1.5, float("nan")),
    *("", "FLOAT32", "int64", "6_4", "2_0", "windows-11-21h2", "both", "runtime", "chromium", "x", "\ud800", "../x"),
    *(b"", bytearray(64), memoryview(bytes(64)), memoryview(bytearray(64))[::2], Path("x"), object(), int, len),
    *([], [2], [2, 3], [1, 2], (1, 1), ["x"], [None], [[1]], [2**40, 2**40], {1, 2}, {"a": 1}, range(2), iter([1])),
    *(np.zeros((2, 3), np.float32), np.zeros(()), np.zeros((2, 3), np.int64)[:, ::2], np.zeros(3, ">f4")),
    *(np.array(["a"]), np.array([None]), np.zeros(2, [("a", "i4")]), np.ma.masked_array([1.0, 2.0], [True, False])),
    *(np.zeros(24, np.uint8), np.zeros((2, 6), np.float32), np.int64(3), np.float32(1), np.dtype("f4"), np.bool_(True)),
    *(_TILE, _INT64, dml_tile.OperatorDesc(type=70, desc=_TILE), dml_tile.OperatorDesc(type=5, desc=None)),
    *(_TILE.input_tensor, _TILE.replace(repeats=None), dml_tile.Target.parse("5_0"), dml_tile.FeatureLevel(0x2000)),
    *(_BUFFER, dml_tile.BufferBinding(_BUFFER), dml_tile.DML_OPERATOR_DESC(), _REQUEST, dml_tile.lower(_INT64, "2_0")),
]
_LIKELY: Final[dict[str, list[Any]]] = {
    "request": [_REQUEST],
    "lowering": [dml_tile.lower(_TILE, "2_0")],
    "back_end": ["chromium", "onnxruntime"],
    "desc": [_TILE, _INT64, dml_tile.OperatorDesc(type=70, desc=_TILE)],
    "target": ["6_4", "2_0", "windows-11-21h2", dml_tile.Target.parse("5_0")],
    "array": [np.zeros((2, 3), np.float32), np.zeros((2, 3), np.int64)[:, ::2]],
    "against": ["both", "documentation", "runtime"],
    "repeats": [(1, 2), 2, [2, 3]],
    "sizes": [(2, 3), [1, 2]],
    "data_type": ["FLOAT32", np.dtype("f4"), dml_tile.TensorDataType.INT64],
    "input": [np.zeros((2, 3), np.float32), bytes(24)],
    "output": [np.zeros((2, 6), np.float32), bytearray(48)],
}
_MAX_BYTES: Final = 2**31
"""Of memory, since some calls rightly ask for as much as there is."""
_FIELDS: Final = [*dml_tile.TileOperatorDesc.model_fields, "Repeats", "unknown"]


@cache
def _allowed(call: Callable[..., object]) -> tuple[type[BaseException], ...]:
    """Return the exceptions that a function may raise: wrong types and values, the package's, those it names."""
    documented = (getattr(builtins, name, None) for name in re.findall(r"[A-Z]\w+Error", call.__doc__ or ""))
    return (TypeError, ValueError, DmlTileError, MemoryError, *(each for each in documented if each is not None))


def call_api(data: bytes) -> None:
    """Call one function with arguments that the bytes choose."""
    resource.setrlimit(resource.RLIMIT_DATA, (_MAX_BYTES, _MAX_BYTES))
    chosen = atheris.FuzzedDataProvider(data)
    call = chosen.PickValueInList(CALLS)
    arguments: dict[str, Any] = {}
    for parameter in inspect.signature(call).parameters.values():
        is_any = parameter.kind is parameter.VAR_KEYWORD
        name = chosen.PickValueInList(_FIELDS) if is_any else parameter.name
        if parameter.default is inspect.Parameter.empty or chosen.ConsumeBool():
            values = _LIKELY[name] if name in _LIKELY and chosen.ConsumeBool() else _VALUES
            arguments[name] = chosen.PickValueInList(values)
    try:
        call(**arguments)
    except _allowed(call):
        pass
