"""The edges at which tile's specifications differ, and what becomes of each in DirectML's terms."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any, Final

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

from dml_tile.arrays import tile_as
from dml_tile.back_ends import directml
from dml_tile.back_ends.dialects import (
    INT64_MAX,
    NUMPY_TILE,
    ONNX_TILE_1,
    ONNX_TILE_6,
    ONNX_TILE_13,
    ONNX_TILES,
    OPENVINO_TILE_1,
    WEBNN_TILE,
    Dialect,
    Request,
)
from dml_tile.back_ends.directml import SPECIFICATION_RULES, merged_dimensions
from dml_tile.checking import check
from dml_tile.checks.catalogue import RULES
from dml_tile.directml.data_types import CARRIERS
from dml_tile.directml.enums import UINT_MAX
from dml_tile.errors import DialectError, DmlError
from dml_tile.findings import Rule
from tests.helpers.descriptors import at

ONNX, OPENVINO, WEBNN, NUMPY = "onnx", "openvino", "webnn", "numpy"
TILES: Final = {ONNX: ONNX_TILE_13, OPENVINO: OPENVINO_TILE_1, WEBNN: WEBNN_TILE, NUMPY: NUMPY_TILE}

# shape, repeats, and the output's shape by dialect; None: an error
EDGES: Final[dict[str, tuple[list[int], Any, dict[str, list[int] | None]]]] = {
    "as it should be": ([2, 3], [1, 2], {ONNX: [2, 6], OPENVINO: [2, 6], WEBNN: [2, 6], NUMPY: [2, 6]}),
    "a repeat of 0": ([2, 3], [0, 2], {ONNX: [0, 6], OPENVINO: [0, 6], WEBNN: None, NUMPY: [0, 6]}),
    "a negative repeat": ([2, 3], [1, -2], {ONNX: None, OPENVINO: [2, 0], WEBNN: None, NUMPY: None}),
    "a negative repeat of nothing": ([0], [-1], {ONNX: None, OPENVINO: [0], WEBNN: None, NUMPY: None}),
    "a scalar": ([], [], {ONNX: [], OPENVINO: [], WEBNN: [], NUMPY: []}),
    "a scalar and a repeat": ([], [2], {ONNX: None, OPENVINO: [2], WEBNN: None, NUMPY: [2]}),
    "fewer repeats": ([2, 3], [2], {ONNX: None, OPENVINO: [2, 6], WEBNN: None, NUMPY: [2, 6]}),
    "more repeats": ([3], [2, 2], {ONNX: None, OPENVINO: [2, 6], WEBNN: None, NUMPY: [2, 6]}),
    "repeats of rank 2": ([2, 3], np.array([[1, 2]]), dict.fromkeys(TILES)),
    "nested repeats": ([2, 3], [[1, 2]], dict.fromkeys(TILES)),
    "repeats of rank 0": ([2], np.array(2), dict.fromkeys(TILES)),
    "a bare integer": ([2], 2, dict.fromkeys(TILES)),
    "repeats of int32": ([2], np.array([2], np.int32), {ONNX: None, OPENVINO: [4], WEBNN: [4], NUMPY: [4]}),
    "repeats of float": ([2], np.array([2.0]), dict.fromkeys(TILES)),
    "repeats of bool": ([2], np.array([True]), dict.fromkeys(TILES)),
    "a float among the repeats": ([2], [2.0], dict.fromkeys(TILES)),
    "an empty input": ([0, 3], [1, 2], {ONNX: [0, 6], OPENVINO: [0, 6], WEBNN: None, NUMPY: [0, 6]}),
    "a negative size": ([-1], [2], dict.fromkeys(TILES)),
    "beyond a uint32": ([2], [2**31], {ONNX: [2**32], OPENVINO: [2**32], WEBNN: None, NUMPY: [2**32]}),
    "up to int64": ([1], [INT64_MAX], {ONNX: [INT64_MAX], OPENVINO: [INT64_MAX], WEBNN: None, NUMPY: [INT64_MAX]}),
    "beyond int64": ([2], [2**62], dict.fromkeys(TILES)),
    "of rank 9": ([1] * 9, [2] * 9, {dialect: [2] * 9 for dialect in TILES}),
}


@pytest.mark.parametrize("dialect", TILES)
@pytest.mark.parametrize("edge", EDGES)
def test_an_edge_is_handled_as_the_specification_says(edge: str, dialect: str) -> None:
    shape, repeats, expected = EDGES[edge]
    data_type = TILES[dialect].type_name("float32")
    if expected[dialect] is None:
        with pytest.raises(DialectError):
            TILES[dialect].request(data_type, shape, repeats)
    else:
        assert list(TILES[dialect].request(data_type, shape, repeats).output_shape) == expected[dialect]


@pytest.mark.parametrize(
    ("dialect", "arguments", "message"),
    [
        (ONNX_TILE_13, ("float8e5m2", [2], [2]), "ONNX Tile-13: data type: float8e5m2 is not one of bfloat16"),
        (ONNX_TILE_6, ("bfloat16", [2], [2]), "ONNX Tile-6: data type: bfloat16 is not one of bool,"),
        (ONNX_TILE_13, ("int8", [2, 3], [2]), "repeats: has 1 values; the input has 2 dimensions"),
        (ONNX_TILE_13, ("int8", [2], [-3]), r"repeats\[0\]: is -3; repeats must not contain negative"),
        (ONNX_TILE_13, ("int8", [2], np.array([2], "i4")), "repeats: is of int32; int64 was expected"),
        (ONNX_TILE_13, ("int8", [2], [2**63]), "overflows; an output size is at most 9223372036854775807"),
        (OPENVINO_TILE_1, ("float32", [2], [2]), "OpenVINO Tile-1: data type: float32 is not one of bf16"),
        (WEBNN_TILE, ("float64", [2], [2]), "WebNN tile: data type: float64 is not one of float16"),
        (WEBNN_TILE, ("int8", [2], [0]), r"repetitions\[0\]: TypeError: is 0; it must be from 1 to 4294967295"),
        (NUMPY_TILE, ("int8", [2], [-1]), r"numpy.tile: reps\[0\]: is -1; negative values are not allowed"),
    ],
)
def test_an_error_is_told_in_the_dialect_s_terms(dialect: Dialect, arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(DialectError, match=message) as error:
        dialect.request(*arguments)
    copy = pickle.loads(pickle.dumps(error.value))
    assert (copy.dialect, copy.field, str(copy)) == (error.value.dialect, error.value.field, str(error.value))


@pytest.mark.parametrize(
    ("dialect", "arguments", "message"),
    [
        (ONNX_TILE_1, (2,), "ONNX Tile-1 takes tiles and axis; 1 arguments were given"),
        (WEBNN_TILE, (), "WebNN tile takes repetitions; 0 arguments were given"),
        (NUMPY_TILE, (2, 3), "numpy.tile takes reps; 2 arguments were given"),
    ],
)
def test_another_number_of_arguments_is_refused(dialect: Dialect, arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        tile_as(dialect, np.ones(2, np.float32), *arguments)


@pytest.mark.parametrize(
    ("tiles", "axis", "expected"),
    [
        (2, 0, (4, 3)),
        (2.0, 1.0, (2, 6)),
        (np.array([3], np.float16), np.array(1, np.int64), (2, 9)),
        (0, 1, (2, 0)),
        *((tiles, 0, None) for tiles in (1.5, float("nan"), float("inf"), -1, np.array([1, 2]), "2")),
        *((2, axis, None) for axis in (2, -1)),
    ],
)
def test_tile_1_repeats_along_one_axis(tiles: Any, axis: Any, expected: tuple[int, ...] | None) -> None:
    if expected is None:
        with pytest.raises(DialectError):
            ONNX_TILE_1.request("float32", [2, 3], tiles, axis)
    else:
        assert ONNX_TILE_1.request("float32", [2, 3], tiles, axis).output_shape == expected
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        repeats = [1, 1]
        repeats[int(np.asarray(axis).item())] = int(np.asarray(tiles).item())
        np.testing.assert_array_equal(tile_as(ONNX_TILE_1, x, tiles, axis), np.tile(x, repeats))


def test_scalars_texts_and_arrays_of_any_strides_are_taken() -> None:
    base = np.arange(24, dtype=np.complex128).reshape(2, 3, 4)
    words = np.array([[["a", "bc"], ["naïve", "\0"]]])
    for array in (base, base[:, ::-1, ::2], base.T, base[:0], np.asfortranarray(base), words, words.astype(object)):
        for dialect in (ONNX_TILE_6, ONNX_TILE_13):
            np.testing.assert_array_equal(tile_as(dialect, array, [2, 1, 2]), np.tile(array, (2, 1, 2)))
    assert tile_as(ONNX_TILE_13, np.float32(3), []).shape == ()
    assert tile_as(OPENVINO_TILE_1, np.int8(3), [2, 2]).tolist() == [[3, 3], [3, 3]]
    assert tile_as(WEBNN_TILE, np.ones((2, 1), np.float32), [1, 3]).shape == (2, 3)


@pytest.mark.parametrize("dtype", [np.float16, str, object])
@pytest.mark.parametrize("last", [0, 1], ids=["empty", "too large"])
def test_results_that_no_array_can_hold_are_refused(dtype: type, last: int) -> None:
    with pytest.raises(ValueError, match="array is too big"):
        tile_as(ONNX_TILE_13, np.zeros((3, 3, 1), dtype), [4, 2**61, last])
    assert tile_as(ONNX_TILE_13, np.zeros((3, 3, 1), dtype), [2, 2, 0]).shape == (6, 6, 0)


def test_a_type_that_no_dialect_has_is_refused() -> None:
    with pytest.raises(DialectError, match=r"longdouble|float\d+ is not one of"):
        tile_as(ONNX_TILE_13, np.ones(2, np.longdouble), [2])


# In DirectML's terms

EIGHT, ONES = "{2,1,1,1,2,2,1,2}", "{1,1,1,1,1,1,1,1}"


def test_each_type_has_a_carrier_or_none() -> None:
    without = {"string", "complex64", "complex128", "f4e2m1", "nf4", "u1", "u2", "u3", "u6"}
    listed = ONNX_TILE_13.data_types | OPENVINO_TILE_1.data_types | WEBNN_TILE.data_types
    assert listed == set(CARRIERS) | without


@pytest.mark.parametrize(
    ("request_", "line"),
    [
        (ONNX_TILE_13.request("bool", [2, 3], [1, 2]), "UINT8 {2,3} x {1,2} -> {2,6}"),
        (ONNX_TILE_13.request("bfloat16", [2, 3], [1, 2]), "UINT16 {2,3} x {1,2} -> {2,6}"),
        (ONNX_TILE_13.request("int64", [2, 3], [1, 2]), "INT64 {2,3} x {1,2} -> {2,6}"),
        (WEBNN_TILE.request("float32", [], []), "FLOAT32 {1} x {1} -> {1}"),
        (ONNX_TILE_13.request("int8", [2, 1, 1, 1, 2, 2, 1, 2], [1] * 8), f"INT8 {EIGHT} x {ONES} -> {EIGHT}"),
        (ONNX_TILE_13.request("int8", [1, 2, 1, 3, 1, 2, 1, 1, 2, 3], [2, 1, 3, 1, 1, 2, 1, 1, 2, 1]), None),
    ],
    ids=["bool", "bfloat16", "int64", "a scalar", "8 dimensions stay", "10 are merged"],
)
def test_a_request_becomes_the_descriptor_that_tiles_the_same_bits(request_: Request, line: str | None) -> None:
    desc = directml.tile_desc(request_)
    assert str(desc) == line or (line is None and desc.repeats_count <= 8)
    assert not check(desc)


RULE_CASES: Final = [
    # a rule, what it refuses, what it accepts, where, besides the calls of docs/generator/call_examples.py
    ("DML-DIALECT-data-type", ("string", [2], [2]), ("bool", [2], [2]), "InputTensor.DataType"),
    ("DML-DIALECT-empty", ("int8", [0, 3], [1, 1]), ("int8", [1, 3], [1, 1]), "InputTensor.Sizes[0]"),
    ("DML-DIALECT-size", ("int8", [2], [2**31]), ("int8", [1], [UINT_MAX]), "OutputTensor.Sizes[0]"),
]


@pytest.mark.parametrize(("rule", "refused", "accepted", "path"), RULE_CASES)
def test_a_rule_refuses_and_accepts(rule: str, refused: Any, accepted: Any, path: str) -> None:
    request = ONNX_TILE_13.request(*refused)
    (finding,) = RULES[rule].findings(request, at("6_4"))
    assert finding.path == path
    assert finding in directml.findings(request)
    with pytest.raises(DmlError, match=rule) as error:
        directml.tile_desc(request)
    assert error.value.hresult is None
    assert not directml.findings(ONNX_TILE_13.request(*accepted))
    directml.tile_desc(ONNX_TILE_13.request(*accepted))


@pytest.mark.parametrize("rule", SPECIFICATION_RULES.values(), ids=lambda rule: rule.id)
def test_a_specification_s_error_is_a_finding(rule: Rule[str]) -> None:
    (finding,) = rule.findings("repeats: is wrong", at("6_4"))
    assert (finding.path, finding.message) == ("", "repeats: is wrong")
    assert list(rule.findings("", at("6_4"))) == []


def test_merging_leaves_the_values_where_they_were() -> None:
    rng = np.random.default_rng(11)
    for _ in range(300):
        rank = int(rng.integers(0, 7))
        shape, repeats = (rng.integers(1, 4, rank).tolist() for _ in range(2))
        array = np.arange(np.prod(shape, dtype=int)).reshape(shape)
        fewer, counts = merged_dimensions(shape, repeats)
        assert len(fewer) == len(counts) <= rank
        expected = np.tile(array, repeats).reshape(-1)
        np.testing.assert_array_equal(np.tile(array.reshape(fewer), counts).reshape(-1), expected)


# The cases of public test suites

Case = dict[str, Any]

DATA: Final = Path(__file__).parent / "data" / "cases"

DIALECTS: Final = {
    "numpy": NUMPY_TILE,
    "onnx-6": ONNX_TILE_6,
    "onnx-13": ONNX_TILE_13,
    "openvino-1": OPENVINO_TILE_1,
    "webnn": WEBNN_TILE,
}

NOT_RUN: Final = {
    "array-api-test_tile": "a property of random arrays; the property tests hold it",
    "onnxsi-rank": "the repeats are known at run time only; its answer is the rank",
    "ovfe-tile": "the repeats are known at run time only; its answer is the declared shape",
}


CASES: Final = {
    case["id"]: case for path in sorted(DATA.glob("*.json")) for case in json.loads(path.read_text()).get("cases", ())
}


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


@pytest.mark.parametrize("case", [pytest.param(CASES[name], id=name) for name in CASES if name not in NOT_RUN])
def test_a_case_agrees(case: Case) -> None:
    dialect = DIALECTS[case["dialect"]]
    name = dialect.type_name(case["dtype"])
    shape, repeats, expected = case["input_shape"], repeats_of(case), case["expect"]
    if "error" in expected:
        with pytest.raises(DialectError):
            dialect.request(name, shape, repeats)
        return
    if "shape" in expected:
        assert dialect.request(name, shape, repeats).output_shape == tuple(expected["shape"])
    dtype = np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else case["dtype"])
    given = array_of(case["input"], shape, dtype)
    result = tile_as(dialect, given, repeats)
    wanted = expected.get("output", "numpy.tile")
    if wanted == "numpy.tile":
        wanted = np.tile(given, repeats if isinstance(repeats, list) else repeats.tolist())
    else:
        wanted = array_of(wanted, expected["shape"], dtype)
    assert result.shape == wanted.shape
    assert result.tobytes() == wanted.tobytes()
    assert not np.shares_memory(result, given)


def test_there_are_cases_of_each_dialect() -> None:
    assert {case["dialect"] for case in CASES.values()} == DIALECTS.keys()
    assert len(CASES) == 320
    assert NOT_RUN.keys() < CASES.keys()


def test_the_types_are_those_of_onnx_s_schemas() -> None:
    names = {"float": "float32", "double": "float64"}
    schemas = json.loads((DATA / "onnx_schemas.facts.json").read_text())["schemas"]
    for schema in schemas:
        listed = [kind.removeprefix("tensor(").removesuffix(")") for kind in schema["types"]["T"]]
        assert ONNX_TILES[schema["since_version"]].data_types == {names.get(kind, kind) for kind in listed}
    assert {schema["since_version"] for schema in schemas} == ONNX_TILES.keys()
