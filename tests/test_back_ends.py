"""Each back end's descriptor of a tile, field by field, and DirectML's answer to it."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dml_tile.back_ends import BACK_ENDS, BackEnd
from dml_tile.back_ends.back_end import Outcome
from dml_tile.back_ends.dialects import ONNX_TILE_1, ONNX_TILE_6, ONNX_TILE_13, OPENVINO_TILE_1, WEBNN_TILE, Request
from dml_tile.checking import check
from dml_tile.checks.via import check_node, check_via, lowest_level_through
from dml_tile.descriptors.tile import BufferTensorDesc, TileOperatorDesc, described
from dml_tile.directml.data_types import CARRIERS, TensorDataType
from dml_tile.directml.enums import UINT_MAX, FeatureLevel
from dml_tile.directml.targets import Target, TargetLike
from dml_tile.execution.executor import execute
from dml_tile.findings import OWN, Against, Basis, Severity
from dml_tile.readers.model_tile import DIALECTS, TileNode, tile_node
from tests.helpers.descriptors import at


def in_a_line(desc: TileOperatorDesc | None) -> str:
    """Return a line of each tensor's data type, sizes, strides if there are, and bytes; and of the repeats."""
    assert desc is not None
    assert desc.repeats_count == len(desc.repeats or ())
    return f"{' -> '.join(map(tensor_in_a_line, described(desc)))} by {list(desc.repeats or ())}"


def tensor_in_a_line(buffer: BufferTensorDesc) -> str:
    assert buffer.dimension_count == len(buffer.sizes or ())
    assert (buffer.flags, buffer.guaranteed_base_offset_alignment) == (0, 0)
    name, sizes = TensorDataType(buffer.data_type).name, list(buffer.sizes or ())
    strides = f" / {list(buffer.strides)}" if buffer.strides else ""
    return f"{name} {sizes}{strides} {buffer.total_tensor_size_in_bytes}"


def asked(data_type: str, shape: list[int], repeats: list[int]) -> Request:
    return ONNX_TILE_6.request(data_type, shape, repeats)


ORT, CHROMIUM = BACK_ENDS

PLAIN: Final = asked("float32", [2, 3], [1, 2])
ONES: Final = asked("float16", [1, 3, 1, 2], [1, 1, 1, 3])
LONG: Final = asked("int64", [2, 3], [1, 2])
BOOL: Final = asked("bool", [3], [3])
SCALAR: Final = asked("float32", [], [])
SINGLE: Final = asked("float32", [1, 1], [1, 1])
RANK_6: Final = asked("float32", [2, 1, 1, 1, 1, 2], [1, 3, 1, 1, 1, 2])
RANK_9: Final = asked("float32", [1] * 8 + [2], [1] * 8 + [2])
BEYOND: Final = asked("int8", [2, 3], [2**31 + 1, 2])

DESCRIBED: Final = [
    (ORT, PLAIN, "FLOAT32 [1, 1, 2, 3] 24 -> FLOAT32 [1, 1, 2, 6] 48 by [1, 1, 1, 2]"),
    (ORT, ONES, "FLOAT16 [1, 1, 3, 2] 12 -> FLOAT16 [1, 1, 3, 6] 36 by [1, 1, 1, 3]"),
    (ORT, BOOL, "UINT8 [1, 1, 1, 3] 4 -> UINT8 [1, 1, 1, 9] 12 by [1, 1, 1, 3]"),
    (ORT, asked("float64", [2], [2]), "FLOAT64 [1, 1, 1, 2] 16 -> FLOAT64 [1, 1, 1, 4] 32 by [1, 1, 1, 2]"),
    (ORT, SCALAR, "FLOAT32 [1, 1, 1, 1] 4 -> FLOAT32 [1, 1, 1, 1] 4 by [1, 1, 1, 1]"),
    (ORT, SINGLE, "FLOAT32 [1, 1, 1, 1] 4 -> FLOAT32 [1, 1, 1, 1] 4 by [1, 1, 1, 1]"),
    (ORT, RANK_6, "FLOAT32 [1, 2, 1, 2] 16 -> FLOAT32 [1, 2, 3, 4] 96 by [1, 1, 3, 2]"),
    (ORT, BEYOND, "INT8 [1, 1, 2, 3] 8 -> INT8 [1, 1, 2, 6] 12 by [1, 1, 2147483649, 2]"),
    # the examples of DmlOperatorTile.cpp's rules
    (ORT, asked("int8", [1, 1, 2, 3], [1, 1, 2, 1]), "INT8 [1, 1, 2, 3] 8 -> INT8 [1, 1, 4, 3] 12 by [1, 1, 2, 1]"),
    (
        ORT,
        asked("int8", [1, 1, 5, 1, 7], [1, 1, 2, 1, 1]),
        "INT8 [1, 1, 5, 7] 36 -> INT8 [1, 1, 10, 7] 72 by [1, 1, 2, 1]",
    ),
    (ORT, asked("int8", [1, 4, 1], [3, 1, 1]), "INT8 [1, 1, 1, 4] 4 -> INT8 [1, 1, 3, 4] 12 by [1, 1, 3, 1]"),
    (ORT, WEBNN_TILE.request("float32", [2], [2]), "FLOAT32 [1, 1, 1, 2] 8 -> FLOAT32 [1, 1, 1, 4] 16 by [1, 1, 1, 2]"),
    (CHROMIUM, PLAIN, "FLOAT32 [2, 3] / [3, 1] 24 -> FLOAT32 [2, 6] / [6, 1] 48 by [1, 2]"),
    (CHROMIUM, LONG, "INT64 [2, 3] / [3, 1] 48 -> INT64 [2, 6] / [6, 1] 96 by [1, 2]"),
    (CHROMIUM, BOOL, "UINT8 [3] / [1] 4 -> UINT8 [9] / [1] 12 by [3]"),
    (CHROMIUM, SCALAR, "FLOAT32 [1] / [1] 4 -> FLOAT32 [1] / [1] 4 by []"),
    (CHROMIUM, OPENVINO_TILE_1.request("f16", [2], [3]), "FLOAT16 [2] / [1] 4 -> FLOAT16 [6] / [1] 12 by [3]"),
    (
        ORT,
        asked("int8", [1], [UINT_MAX + 3]),
        "INT8 [1, 1, 1, 1] 4 -> INT8 [1, 1, 1, 2] 4 by [1, 1, 1, 2]",
    ),  # it wraps there too
]

NOT_DESCRIBED: Final = [
    # why not, and the field that decides
    (ORT, asked("string", [2], [2]), Outcome.ELSEWHERE, "InputTensor.DataType"),
    (ORT, ONNX_TILE_13.request("bfloat16", [2], [2]), Outcome.REFUSED, "InputTensor.DataType"),
    (ORT, asked("complex64", [2], [2]), Outcome.REFUSED, "InputTensor.DataType"),
    (ORT, ONNX_TILE_1.request("float32", [2], 2, 0), Outcome.REFUSED, ""),
    (ORT, OPENVINO_TILE_1.request("f32", [2], [2]), Outcome.REFUSED, ""),
    (ORT, RANK_9, Outcome.REFUSED, "InputTensor.DimensionCount"),
    (ORT, asked("float32", [2], [0]), Outcome.NOTHING, ""),
    (ORT, asked("float32", [0, 2], [1, 1]), Outcome.NOTHING, ""),
    (CHROMIUM, asked("float64", [2], [2]), Outcome.REFUSED, "InputTensor.DataType"),
    (CHROMIUM, WEBNN_TILE.request("int4", [2], [2]), Outcome.REFUSED, "InputTensor.DataType"),
    (CHROMIUM, RANK_9, Outcome.REFUSED, "InputTensor.DimensionCount"),
    (CHROMIUM, asked("float32", [2, 2], [1, 0]), Outcome.REFUSED, "Repeats[1]"),
    (CHROMIUM, asked("float32", [0], [1]), Outcome.REFUSED, "InputTensor.Sizes[0]"),
    (CHROMIUM, asked("float32", [2], [2**29]), Outcome.REFUSED, "OutputTensor.Sizes"),
]


@pytest.mark.parametrize(("back_end", "request_", "expected"), DESCRIBED)
def test_a_back_end_describes_a_tile_with_just_this_descriptor(back_end: str, request_: Request, expected: str) -> None:
    result = BACK_ENDS[back_end].describe(request_, "6_4")
    assert result.outcome is Outcome.TILE
    assert in_a_line(result.desc) == expected


@pytest.mark.parametrize(("back_end", "request_", "outcome", "path"), NOT_DESCRIBED)
def test_a_back_end_says_why_it_makes_no_tile(back_end: str, request_: Request, outcome: Outcome, path: str) -> None:
    result = BACK_ENDS[back_end].describe(request_, "6_4")
    assert (result.outcome, result.desc, result.path) == (outcome, None, path)
    if outcome is Outcome.NOTHING:
        assert not check_via(request_, "6_4", back_end)
        return
    rule = result.rule or "DML-VIA-refused"
    own = OWN.get(rule)
    against: Against
    for against in ("documentation", "runtime", "both"):
        (finding,) = check_via(request_, "6_4", back_end, against)
        assert (finding.rule, finding.hresult) == (rule, None)
        assert finding.basis == (Basis(0) if own else Basis.INFERRED)
        url = own.url if own else result.url or BACK_ENDS[back_end].source
        assert (finding.path, finding.message, finding.url) == (path, result.reason, url)
        assert result.reason


def test_a_finding_links_to_the_file_where_the_check_is() -> None:
    files = {
        (ORT, RANK_9): "TensorDesc.cpp",
        (ORT, asked("string", [2], [2])): "OperatorKernels.md",
        (CHROMIUM, RANK_9): "context_impl_dml.cc",
    }
    for (back_end, request), file in files.items():
        assert [finding.url.rpartition("/")[2] for finding in check_via(request, "6_4", back_end)] == [file]
    assert check_via(PLAIN, "4_0", ORT)[0].url == "https://github.com/microsoft/onnxruntime/pull/14172"


@pytest.mark.parametrize(
    ("target", "creates", "rules"),
    [
        ("onnxruntime-directml-1.9.0", True, {"ORT-CPU-type"}),
        ("onnxruntime-directml-1.10.0", True, set()),
        ("onnxruntime-directml-1.13.1", True, set()),
        ("onnxruntime-directml-1.14.0", True, set()),
        ("onnxruntime-node-1.18.0", True, set()),
        ("onnxruntime-windowsml-1.30.0", True, set()),
        ("4_1", False, {"DML-VIA-refused"}),
        ("5_0", True, set()),
        ("directml-1.7.0", False, {"DML-VIA-refused"}),
    ],
)
def test_what_onnx_runtime_asks_of_a_device_is_that_of_the_named_release_or_of_the_newest(
    target: str, creates: bool, rules: set[str]
) -> None:
    assert BACK_ENDS[ORT].creates_a_device(at(target)) == creates
    assert {finding.rule for finding in check_via(LONG, target, ORT)} == rules


def test_the_release_that_is_meant_is_named() -> None:
    newest = Target.parse("3_0")
    for package in ("directml", "node", "windowsml"):
        old = Target(newest.feature_level, f"onnxruntime-{package}-1.14.0")
        assert "newest" not in BACK_ENDS[ORT].needs(old)
    assert BACK_ENDS[ORT].needs(newest).endswith("(as of 1.24, the newest onnxruntime-directml)")
    tile = node("float32", [2, 3, 4, 5], [2, 2, 2, 2])
    for target, level in ((at("onnxruntime-directml-1.12.1"), "2_0"), (at("6_4"), "5_0")):
        assert lowest_level_through(tile, BACK_ENDS[ORT], target) == at(level).feature_level


@pytest.mark.parametrize(
    ("data_type", "lacking"),
    [("float64", at("6_4", double_precision=False)), ("int8", at("5_2", typed_uav_loads=False))],
)
def test_a_type_that_an_adapter_lacks_is_left_to_another_provider(data_type: str, lacking: Target) -> None:
    request = asked(data_type, [2], [2])
    (finding,) = check_via(request, lacking, ORT)
    assert (finding.rule, finding.path) == ("ORT-CPU-device-type", "InputTensor.DataType")
    assert BACK_ENDS[ORT].describe(request, "6_4").outcome is Outcome.TILE


@pytest.mark.parametrize("against", ["documentation", "runtime", "both"])
def test_a_back_end_s_descriptor_is_held_to_the_contract_that_was_asked_for(against: Against) -> None:
    request = asked("float64", [2], [2])
    desc = BACK_ENDS[ORT].describe(request, "6_4").desc
    assert check_via(request, "6_4", ORT, against) == check(desc, "6_4", against)
    assert bool(check(desc, "6_4", against)) == (against != "runtime")


def node(data_type: str | None, shape: Any, repeats: list[int] | None, dialect: str = "ONNX Tile-13") -> TileNode:
    """A model's tile; repeats of -1 are unknown."""
    known = None if repeats is None else np.ma.masked_equal(repeats, -1)
    return tile_node("/graph/t", DIALECTS[dialect], data_type, shape, [known])


OF_OPENVINO: Final = "OpenVINO Tile-1"
TYPES: Final = ("InputTensor.DataType", "OutputTensor.DataType")
BEYOND_BOTH: Final[dict[str, Sequence[str]]] = {
    "DML-DIALECT-size": ["OutputTensor.Sizes[0]"],
    "DML-TILE-OutputTensor-Sizes": ["OutputTensor.Sizes[2]"],
}

NODES: Final[list[tuple[TileNode, str, str, dict[str, Sequence[str]]]]] = [
    # a model's tile, through which back end, where, and which rules are broken at which fields
    (node("float32", [2, 3], [1, 2]), ORT, "6_4", {}),
    (node("int8", [2, 3], [2**31 + 1, 2]), ORT, "6_4", BEYOND_BOTH),
    (node("float32", [2, 3], None), ORT, "6_4", {}),
    (node("float32", [2, 3], None), CHROMIUM, "6_4", {}),
    (node("string", [2, 3], None), ORT, "6_4", {"ORT-CPU-type": ["InputTensor.DataType"]}),
    (node("float64", ["N", 3], [1, 2]), ORT, "6_4", {"DML-TILE-DataType": TYPES}),
    (node("float32", [None] * 9, None), ORT, "6_4", {"DML-VIA-refused": ["InputTensor.DimensionCount"]}),
    (node("float32", [2, 3], [-1, 0]), ORT, "6_4", {}),
    (node("float32", [2, 3], [-1, 2**32]), ORT, "6_4", {"DML-DIALECT-size": ["OutputTensor.Sizes[1]"]}),
    (node("float32", [2, 3], [-1, 2**30]), ORT, "6_4", {}),
    (node("float32", [2, 3], [-1, 0]), CHROMIUM, "6_4", {"DML-VIA-refused": ["Repeats[1]"]}),
    (node(None, None, None), ORT, "6_4", {}),
    (node("f32", None, None, OF_OPENVINO), ORT, "6_4", {"DML-VIA-refused": [""]}),
    (node("bfloat16", ["N"], [2]), ORT, "6_4", {"ORT-NODE-no-kernel": ["InputTensor.DataType"]}),
    (node("f32", ["N"], [2], OF_OPENVINO), CHROMIUM, "3_1", {"DML-VIA-refused": [""]}),
    (node("i64", ["N"], [2], OF_OPENVINO), CHROMIUM, "4_0", {"DML-TILE-DataType-level": TYPES}),
]


@pytest.mark.parametrize(("tile", "back_end", "target", "expected"), NODES)
def test_of_a_model_s_tile_as_much_is_judged_as_is_known(
    tile: TileNode, back_end: str, target: str, expected: dict[str, Sequence[str]]
) -> None:
    found = {(finding.rule, finding.path) for finding in check_node(tile, at(target), BACK_ENDS[back_end])}
    assert found == {(rule, path) for rule, paths in expected.items() for path in paths}


@pytest.mark.parametrize("back_end", BACK_ENDS.values(), ids=BACK_ENDS)
@pytest.mark.parametrize("tile", [case[0] for case in NODES])
def test_the_lowest_level_is_the_first_of_all_without_findings_but_notes(tile: TileNode, back_end: BackEnd) -> None:
    findings = {level: check_node(tile, Target(level), back_end) for level in FeatureLevel}
    passing = (level for level in findings if all(each.severity is Severity.NOTE for each in findings[level]))
    assert lowest_level_through(tile, back_end) == next(passing, None)


def test_an_unknown_back_end_or_contract_is_reported() -> None:
    with pytest.raises(ValueError, match="expected one of ort, chromium"):
        check_via(PLAIN, "6_4", "zzz")
    with pytest.raises(ValueError, match="against is 'x'"):
        check_via(PLAIN, "6_4", ORT, "x")  # type: ignore[arg-type]


NUMBERS = sorted(ONNX_TILE_6.data_types - {"string", "complex64", "complex128"})


@st.composite
def shapes(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    rank = draw(st.integers(0, 9))
    sizes, repeats = (draw(st.lists(st.integers(1, 3), min_size=rank, max_size=rank)) for _ in range(2))
    while np.prod(sizes, dtype=int) * np.prod(repeats, dtype=int) > 5000:
        i = int(np.argmax(np.multiply(sizes, repeats)))
        sizes[i] = repeats[i] = 1
    return sizes, repeats


@pytest.mark.parametrize("back_end", BACK_ENDS)
@given(name=st.sampled_from(NUMBERS), shape=shapes(), seed=st.integers(0, 2**32 - 1))
def test_a_descriptor_does_what_numpy_does(
    back_end: str, name: str, shape: tuple[list[int], list[int]], seed: int
) -> None:
    sizes, repeats = shape
    desc = BACK_ENDS[back_end].describe(ONNX_TILE_6.request(name, sizes, repeats), "6_4").desc
    if desc is None or check(desc, "6_4", "runtime"):
        return
    dtype = np.dtype(name)
    noise = np.random.default_rng(seed).integers(0, 256, (*sizes, dtype.itemsize), np.uint8)
    expected = np.tile(noise, (*repeats, 1))
    source, output = (np.zeros(buffer.total_tensor_size_in_bytes, np.uint8) for buffer in described(desc))
    assert noise.size <= source.size < noise.size + 4
    assert expected.size <= output.size < expected.size + 4
    source[: noise.size] = noise.reshape(-1)
    execute(desc, source, output, "6_4", "runtime")
    np.testing.assert_array_equal(output[: expected.size], expected.reshape(-1))


FROM_4_0: Final = [level for level in FeatureLevel if level >= FeatureLevel.DML_FEATURE_LEVEL_4_0]


@pytest.mark.parametrize("target", [*FROM_4_0, at("5_2", typed_uav_loads=False)], ids=str)
def test_exactly_the_types_and_ranks_of_both_pass_through_chromium(target: TargetLike) -> None:
    found = Target.parse(target)
    for name in WEBNN_TILE.data_types:
        taken = CARRIERS[name] in found.tile_support.data_types and found.supports_data_type(CARRIERS[name])
        for rank in range(10):
            request = WEBNN_TILE.request(name, [1] * rank, [2] * rank)
            within = taken and rank in found.tile_support.dimension_counts
            assert (not check_via(request, target, "chromium")) == within


def test_a_back_end_travels_to_other_processes() -> None:
    target = Target.parse("onnxruntime-directml-1.16.3")
    for back_end in BACK_ENDS.values():
        assert pickle.loads(pickle.dumps(back_end)).minimum_level(target) == back_end.minimum_level(target)
