"""Each dialect against the cases of public test suites."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest
from numpy.typing import NDArray

from dml_tile.arrays.numpy import tiled
from dml_tile.dialects import numpy as numpy_dialect
from dml_tile.dialects import onnx as onnx_dialect
from dml_tile.dialects import openvino as openvino_dialect
from dml_tile.dialects import webnn as webnn_dialect
from dml_tile.dialects.request import Request
from dml_tile.errors import DialectError

Case = dict[str, Any]

DATA: Final = Path(__file__).parent / "data" / "cases"

DIALECTS: Final[dict[str, Callable[..., Request]]] = {
    "numpy": numpy_dialect.tile,
    "onnx-6": onnx_dialect.tile_6,
    "onnx-13": onnx_dialect.tile_13,
    "openvino-1": openvino_dialect.tile_1,
    "webnn": webnn_dialect.tile,
}
OPENVINO_NAMES: Final = {"float32": "f32", "int16": "i16"}

COUNTS: Final = {
    # the cases of each file that are run here
    "array_api_property": 0,
    "jax_testtile": 240,
    "numpy_testtile": 45,
    "onnx_backend_node": 2,
    "onnx_shape_inference": 11,
    "openvino_cpu_shape_infer": 7,
    "openvino_docs_ir_fe": 5,
    "ort_js_tile": 5,
    "webnn_baseline": 2,
}
NOT_RUN: Final = {
    "array-api-test_tile": "a property of random arrays; the property tests hold it",
    "onnxsi-rank": "the repeats are known at run time only; its answer is the rank",
    "ovfe-tile": "the repeats are known at run time only; its answer is the declared shape",
}


def cases_of(name: str) -> list[Case]:
    cases: list[Case] = json.loads((DATA / f"{name}.json").read_text())["cases"]
    return cases


CASES: Final = [case for name in COUNTS for case in cases_of(name)]
RUN: Final = [case for case in CASES if case["id"] not in NOT_RUN]


def repeats_of(case: Case) -> Any:
    """Return the repeats, as an array where the case says which."""
    values = [2] if case["repeats"] is None else case["repeats"]
    if "repeats_shape" in case or "repeats_dtype" in case:
        shape = case.get("repeats_shape", [len(values)])
        return np.resize(np.array(values, case.get("repeats_dtype", "int64")), shape)
    return values


def array_of(values: Any, shape: list[int], dtype: np.dtype[Any]) -> NDArray[Any]:
    match values:
        case None:
            noise = np.random.default_rng(1).integers(0, 256, [*shape, dtype.itemsize], np.uint8)
            return noise.view(dtype).reshape(shape)
        case {"ref": path}:
            array: NDArray[Any] = np.load(DATA / path)
            return array
        case {"arange": count}:
            return np.arange(count, dtype=dtype)
    return np.array(values, dtype).reshape(shape)


@pytest.mark.parametrize("case", RUN, ids=lambda case: case["id"])
def test_a_case_agrees(case: Case) -> None:
    name = OPENVINO_NAMES[case["dtype"]] if case["dialect"] == "openvino-1" else case["dtype"]
    shape, repeats, expected = case["input_shape"], repeats_of(case), case["expect"]
    if "error" in expected:
        with pytest.raises(DialectError):
            DIALECTS[case["dialect"]](name, shape, repeats)
        return
    request = DIALECTS[case["dialect"]](name, shape, repeats)
    if "shape" in expected:
        assert request.output_shape == tuple(expected["shape"])
    dtype = np.dtype("uint16" if name == "bfloat16" else case["dtype"])
    given = array_of(case["input"], shape, dtype)
    result = tiled(given, request)
    wanted = expected.get("output", "numpy.tile")
    if wanted == "numpy.tile":
        wanted = np.tile(given, repeats if isinstance(repeats, list) else repeats.tolist())
    else:
        wanted = array_of(wanted, expected["shape"], dtype)
    assert result.shape == wanted.shape
    assert result.tobytes() == wanted.tobytes()
    assert not np.shares_memory(result, given)


def test_the_files_have_as_many_cases_as_they_should() -> None:
    run = {name: sum(case["id"] not in NOT_RUN for case in cases_of(name)) for name in COUNTS}
    assert run == COUNTS
    assert {case["id"] for case in CASES} - {case["id"] for case in RUN} == set(NOT_RUN)
    assert Counter(case["dialect"] for case in RUN).keys() == DIALECTS.keys()


def test_the_types_are_those_of_onnx_s_schemas() -> None:
    names = {"float": "float32", "double": "float64"}
    schemas = json.loads((DATA / "onnx_schemas.facts.json").read_text())["schemas"]
    types = {1: onnx_dialect.TILE_1_TYPES, 6: onnx_dialect.TILE_6_TYPES, 13: onnx_dialect.TILE_13_TYPES}
    for schema in schemas:
        listed = [kind.removeprefix("tensor(").removesuffix(")") for kind in schema["types"]["T"]]
        assert types[schema["since_version"]] == {names.get(kind, kind) for kind in listed}
    assert {schema["since_version"] for schema in schemas} == types.keys() == onnx_dialect.TILES.keys()
