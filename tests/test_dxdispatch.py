"""DxDispatch's models: what is read, what running them does, and what is refused before anything is written."""

from __future__ import annotations

import json
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dml_tile.descriptors import TileOperatorDesc
from dml_tile.frontends.dxdispatch import resources
from dml_tile.frontends.dxdispatch.model import Model, OtherDispatchable, TileDispatchable, read_model
from dml_tile.frontends.dxdispatch.resources import allocate
from dml_tile.frontends.dxdispatch.run import ModelError, run_model
from dml_tile.frontends.folders import Folders
from dml_tile.frontends.problems import InputError

FACTS = json.loads((Path(__file__).parent / "data" / "dxdispatch_json.facts.json").read_text())["cases"]

Json = dict[str, Any]


def tile(sizes: list[int], repeats: list[int], data_type: str = "FLOAT32", **fields: Any) -> Json:
    """A tile's fields, as a model writes them."""
    products = [size * repeat for size, repeat in zip(sizes, repeats, strict=True)]
    return {
        "InputTensor": {"DataType": data_type, "Sizes": sizes} | fields.pop("input", {}),
        "OutputTensor": {"DataType": data_type, "Sizes": products} | fields.pop("output", {}),
        "RepeatsCount": len(repeats),
        "Repeats": repeats,
    } | fields


def values(*numbers: Any, data_type: str = "FLOAT32", **fields: Any) -> Json:
    return {"initialValuesDataType": data_type, "initialValues": list(numbers)} | fields


def zeros(count: int, data_type: str = "FLOAT32", **fields: Any) -> Json:
    return {"initialValuesDataType": data_type, "initialValues": {"valueCount": count, "value": 0}} | fields


def model(**changes: Any) -> Json:
    """A model that tiles [1, 2] twice and prints the result, with some of its parts replaced."""
    return {
        "resources": {"In": values(1, 2), "Out": zeros(4)},
        "dispatchables": {"tile": {"type": "DML_OPERATOR_TILE", "desc": tile([2], [2])}},
        "commands": [
            {
                "type": "dispatch",
                "dispatchable": "tile",
                "bindings": {"InputTensor": "In", "OutputTensor": "Out"},
            },
            {"type": "print", "resource": "Out"},
        ],
    } | changes


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Runs a model in a folder of its own, and gives what it prints."""
    monkeypatch.chdir(tmp_path)

    def run_it(data: Json, **where: Any) -> str:
        printed: list[str] = []
        run_model(read_model(data), Folders(tmp_path, Path()), printed.append, **where)
        return "".join(printed)

    return run_it


def test_a_model_runs_and_prints_as_dxdispatch_does(run: Callable[..., str]) -> None:
    assert run(model()) == "Resource 'Out': 1, 2, 1, 2\n"


@pytest.mark.parametrize(
    "dispatchable",
    [
        {"type": "TILE", "desc": tile([2], [2])},
        {"type": "DML_OPERATOR_TILE", "Desc": tile([2], [2])},
        {"Type": "TILE", "Desc": tile([2], [2])},
        {"type": "TILE"} | tile([2], [2]),
        {"type": "TILE", "desc": tile([2], [2]), "dmlCompileType": "DmlCompileGraph", "bindings": {}},
        {"type": "TILE", "desc": tile([2], [2]), "executionFlags": ["DESCRIPTORS_VOLATILE", "DISABLE_META_COMMANDS"]},
        {"type": "TILE", "desc": tile([2], [2], input={"TotalTensorSizeInBytes": 0, "Strides": []})},
        {"type": "TILE", "comment": 1, "desc": tile([2], [2], comment=2, input={"comment": 3})},
        {
            "type": "TILE",
            "desc": tile([2], [2], InputTensor={"Type": "BUFFER", "Desc": {"DataType": 1, "Sizes": [2], "Foo": 1}}),
        },
    ],
)
def test_a_tile_is_read_in_each_spelling(run: Callable[..., str], dispatchable: Json) -> None:
    assert run(model(dispatchables={"tile": dispatchable})) == "Resource 'Out': 1, 2, 1, 2\n"


@pytest.mark.parametrize("case", [case for case in FACTS if case["kind"] == "resource"], ids=lambda case: case["id"])
def test_a_resource_is_made_as_dxdispatch_makes_it(case: Json, tmp_path: Path) -> None:
    read = read_model(model(resources={"R": case["json"], "In": values(1), "Out": values(1)}))
    if "error" in case["expect"]:
        with pytest.raises(InputError, match="/resources/R/sizeInBytes"):
            allocate(read.resources, Folders(tmp_path, tmp_path))
        return
    memory = allocate(read.resources, Folders(tmp_path, tmp_path))["R"]
    assert memory.bytes.nbytes == case["expect"]["sizeInBytes"]
    offset = case["expect"].get("initialValuesOffsetInBytes", 0)
    if case["json"]["initialValuesDataType"] == "FLOAT32":
        assert memory.bytes[offset : offset + 16].view(np.float32).tolist() == case["json"]["initialValues"]
    assert memory.shown_bytes == case["expect"].get("unpadded", 16)


@pytest.mark.parametrize(
    ("resource", "shown"),
    [
        (values(65504, -65504, 4, 3, -4, -6, "nan", "inf", "-inf", data_type="FLOAT16"),
         "65504, -65504, 4, 3, -4, -6, nan, inf, -inf"),
        (values("NaN", "INF", "-Inf", 1e-7, 1234567, 0.1, 1e300), "nan, inf, -inf, 1e-07, 1.23457e+06, 0.1, inf"),
        (values(0.1, 1e300, 10**400, data_type="FLOAT64"), "0.1, 1e+300, inf"),
        ({"initialValuesDataType": "FLOAT32", "initialValues": {"valueCount": 4, "valueStart": 1, "valueDelta": 2.5}},
         "1, 3.5, 6, 8.5"),
        ({"initialValuesDataType": "UINT8", "initialValues": {"valueCount": 4, "valueStart": 250, "valueDelta": 3}},
         "250, 253, 0, 3"),
        ({"initialValuesDataType": "INT16", "initialValues": {"valueCount": 3, "value": -7}}, "-7, -7, -7"),
        (values(2**64 - 1, data_type="UINT64"), "18446744073709551615"),
        (values(1, 2, 3, data_type="UINT8", sizeInBytes=100), "1, 2, 3"),
        (values(-(2**63), data_type="DML_TENSOR_DATA_TYPE_INT64"), "-9223372036854775808"),
    ],
)  # fmt: skip
def test_initial_values_are_printed_as_cpp_streams_do(run: Callable[..., str], resource: Json, shown: str) -> None:
    data = model(resources={"R": resource}, dispatchables={}, commands=[{"type": "PRINT", "resource": "R"}])
    assert run(data) == f"Resource 'R': {shown}\n"


def test_a_long_resource_is_printed_in_parts(run: Callable[..., str]) -> None:
    count = 10_000
    sequence = {
        "initialValuesDataType": "UINT32",
        "initialValues": {"valueCount": count, "valueStart": 0, "valueDelta": 1},
    }
    data = model(resources={"R": sequence}, dispatchables={}, commands=[{"type": "print", "resource": "R"}])
    assert run(data) == f"Resource 'R': {', '.join(map(str, range(count)))}\n"


def test_float_sequences_are_added_up_in_their_own_type(tmp_path: Path) -> None:
    steps = {"valueCount": 5, "valueStart": 0, "valueDelta": 0.1}
    read = read_model(model(resources={"R": {"initialValuesDataType": "FLOAT16", "initialValues": steps}}, commands=[]))
    made = allocate(read.resources, Folders(tmp_path, tmp_path))["R"].bytes[:10].view(np.float16)
    total, expected = np.float16(0), []
    for _ in range(5):
        expected.append(total)
        total = np.float16(total + np.float16(0.1))
    assert made.tolist() == expected


def test_commands_are_done_in_order_and_change_resources_for_good(run: Callable[..., str]) -> None:
    dispatch = model()["commands"][0]
    show = {"type": "print", "resource": "Out"}
    again = dispatch | {"bindings": {"InputTensor": {"name": "Out"}, "OutputTensor": ["In4"]}}
    data = model(
        resources={"In": values(1, 2), "Out": zeros(4), "In4": zeros(8)},
        commands=[show, dispatch, show, again, {"type": "print", "resource": "In4"}],
    )
    assert run(data) == (
        "Resource 'Out': 0, 0, 0, 0\nResource 'Out': 1, 2, 1, 2\nResource 'In4': 1, 2, 1, 2, 0, 0, 0, 0\n"
    )


def test_a_binding_may_begin_within_a_resource(run: Callable[..., str]) -> None:
    bindings = {
        "InputTensor": {"name": "In", "elementOffset": 4},
        "OutputTensor": {"name": "Out", "elementOffset": 1, "elementSizeInBytes": 16},
    }
    data = model(resources={"In": values(9, 9, 9, 9, 1, 2), "Out": zeros(9)})
    data["commands"][0]["bindings"] = bindings
    assert run(data) == "Resource 'Out': 0, 0, 0, 0, 1, 2, 1, 2, 0\n"


OWNED = {"type": "TILE", "desc": tile([2], [2], input={"Flags": "OWNED_BY_DML"}), "bindings": {"InputTensor": "In"}}


def test_an_owned_input_is_bound_at_initialisation_and_kept(run: Callable[..., str]) -> None:
    overwrite = {"type": "TILE", "desc": tile([1], [2])}
    data = model(
        resources={"In": values(1, 2), "Out": zeros(4), "Nines": values(9)},
        dispatchables={"tile": OWNED, "overwrite": overwrite},
        commands=[
            {
                "type": "dispatch",
                "dispatchable": "overwrite",
                "bindings": {"InputTensor": "Nines", "OutputTensor": "In"},
            },
            {"type": "print", "resource": "In"},
            {"type": "dispatch", "dispatchable": "tile", "bindings": {"OutputTensor": "Out"}},
            {"type": "print", "resource": "Out"},
        ],
    )
    assert run(data) == "Resource 'In': 9, 9\nResource 'Out': 1, 2, 1, 2\n"


@pytest.mark.parametrize(
    ("changes", "rule", "path"),
    [
        ({"bindings": {"OutputTensor": "Out"}}, "DML-BINDING-missing", "InputTensor"),
        ({"bindings": {"InputTensor": "In"}}, "DML-BINDING-missing", "OutputTensor"),
        ({"bindings": {"InputTensor": "In", "OutputTensor": "Small"}}, "DML-BINDING-SizeInBytes", "OutputTensor"),
        ({"bindings": {"InputTensor": "Out", "OutputTensor": "Out"}}, "DML-BINDING-overlap", "OutputTensor"),
        (
            {"bindings": {"InputTensor": {"name": "Long", "elementOffset": 1}, "OutputTensor": "Out"}},
            "DML-BINDING-Offset",
            "InputTensor",
        ),
        (
            {"bindings": {"InputTensor": {"name": "In", "elementOffset": 2**60}, "OutputTensor": "Out"}},
            "DML-BINDING-SizeInBytes",
            "InputTensor",
        ),
        (
            {"dispatchable": "owned", "bindings": {"InputTensor": "In", "OutputTensor": "Out"}},
            "DML-BINDING-owned",
            "InputTensor",
        ),
    ],
)
def test_a_wrong_binding_is_a_finding_of_its_command(
    run: Callable[..., str], tmp_path: Path, changes: Json, rule: str, path: str
) -> None:
    data = model(resources={"In": values(1, 2), "Out": zeros(4), "Small": zeros(3), "Long": zeros(3)})
    data["dispatchables"]["owned"] = OWNED
    write = {"type": "writeFile", "resource": "In", "targetPath": "early.bin"}
    data["commands"] = [write, data["commands"][0] | changes]
    with pytest.raises(ModelError) as caught:
        run(data)
    ((pointer, findings),) = caught.value.results.items()
    assert pointer == "/commands/1"
    assert [(finding.rule, finding.path) for finding in findings] == [(rule, path)]
    assert not list(tmp_path.iterdir()), "nothing is written before all bindings are known to be good"


@pytest.mark.parametrize(
    ("dispatchable", "rule"),
    [
        (OWNED | {"bindings": {}}, "DML-BINDING-missing"),
        (OWNED | {"bindings": None}, "DML-BINDING-missing"),
        (OWNED | {"bindings": {"InputTensor": {"name": "In", "elementOffset": 1}}}, "DML-BINDING-Offset"),
        (OWNED | {"bindings": {"InputTensor": {"name": "In", "elementOffset": 4}}}, "DML-BINDING-SizeInBytes"),
        ({"type": "TILE", "desc": tile([2], [2]), "bindings": {"InputTensor": "In"}}, "DML-BINDING-owned"),
    ],
)
def test_a_wrong_binding_at_initialisation_is_a_finding_of_its_dispatchable(
    run: Callable[..., str], dispatchable: Json, rule: str
) -> None:
    for commands in ([], [{"type": "dispatch", "dispatchable": "tile", "bindings": {"OutputTensor": "Out"}}]):
        padded = values(1, 2, 3, 4, 5)
        data = model(resources={"In": padded, "Out": zeros(4)}, dispatchables={"tile": dispatchable}, commands=commands)
        with pytest.raises(ModelError) as caught:
            run(data)
        assert {pointer: [finding.rule for finding in found] for pointer, found in caught.value.results.items()} == {
            "/dispatchables/tile": [rule]
        }


def test_only_the_tensor_of_an_owned_input_is_kept(run: Callable[..., str]) -> None:
    """Many tiles that own the start of one large resource do not each copy all of it."""
    large = {"initialValuesDataType": "FLOAT32", "initialValues": [1, 2], "sizeInBytes": 2**28}
    data = model(resources={"In": large, "Out": zeros(4)}, commands=[])
    data["dispatchables"] = {str(i): OWNED for i in range(20)}
    tracemalloc.start()
    try:
        run(data)
        assert tracemalloc.get_traced_memory()[1] < 2 * 2**28
    finally:
        tracemalloc.stop()


def test_a_bind_point_of_a_tile_takes_one_resource(run: Callable[..., str]) -> None:
    data = model()
    data["commands"][0]["bindings"]["InputTensor"] = ["In", "In"]
    with pytest.raises(InputError, match="/commands/0/bindings/InputTensor: 2 resources are bound; a tensor takes one"):
        run(data)


def test_bind_points_of_other_operators_may_take_several() -> None:
    data = model()
    data["dispatchables"]["join"] = {
        "type": "DML_OPERATOR_JOIN",
        "desc": {},
        "bindings": {"InputTensors": ["In", "In"]},
    }
    data["commands"].append({"type": "dispatch", "dispatchable": "join", "bindings": {"InputTensors": ["In", "Out"]}})
    assert len(read_model(data).commands) == 3


def test_all_refused_tiles_are_told_at_once(run: Callable[..., str]) -> None:
    data = model()
    data["dispatchables"] |= {"a/b": {"type": "TILE", "desc": tile([2], [3], RepeatsCount=2)}, "gemm": {"type": "GEMM"}}
    with pytest.raises(ModelError) as caught:
        run(data)
    assert {pointer: [finding.rule for finding in found] for pointer, found in caught.value.results.items()} == {
        "/dispatchables/a~1b": ["DML-TILE-RepeatsCount", "DML-TILE-Repeats-length"],
        "/dispatchables/gemm": ["DML-OPERATOR-not-a-tile"],
    }


def test_the_target_and_the_contract_decide(run: Callable[..., str]) -> None:
    with pytest.raises(ModelError, match="a dimension count of 1 needs DML_FEATURE_LEVEL_3_1"):
        run(model(), target="2_0")
    doubles = model(
        resources={"In": values(1.5, data_type="FLOAT64"), "Out": zeros(2, "FLOAT64")},
        dispatchables={"tile": {"type": "TILE", "desc": tile([1], [2], "FLOAT64")}},
    )
    with pytest.raises(ModelError, match="FLOAT64"):
        run(doubles)
    assert run(doubles, against="runtime") == "Resource 'Out': 1.5, 1.5\n"


def test_files_are_read_and_written(run: Callable[..., str], tmp_path: Path) -> None:
    np.save(tmp_path / "in.npy", np.array([[1, 2]], ">f4"))
    (tmp_path / "raw.dat").write_bytes(np.array([7, 8], np.float32).tobytes())
    data = model(
        resources={
            "In": {"initialValues": {"sourcePath": "in.npy"}},
            "Raw": {"initialValuesDataType": "FLOAT32", "initialValues": {"sourcePath": "raw.dat"}},
            "Out": zeros(4),
        },
        commands=[
            model()["commands"][0],
            {"type": "print", "resource": "Raw"},
            {"type": "writeFile", "resource": "Out", "targetPath": "sub/out.npy", "dimensions": [2, 2]},
            {"type": "writefile", "resource": "Out", "targetPath": "flat.NPY"},
            {"type": "writeFile", "resource": "Out", "targetPath": "out.bin"},
        ],
    )
    assert run(data) == (
        "Resource 'Raw': 7, 8\nResource 'Out' written to 'sub/out.npy'\n"
        "Resource 'Out' written to 'flat.NPY'\nResource 'Out' written to 'out.bin'\n"
    )
    assert np.load(tmp_path / "sub" / "out.npy").tolist() == [[1, 2], [1, 2]]
    assert np.load(tmp_path / "flat.NPY").tolist() == [1, 2, 1, 2]
    assert np.fromfile(tmp_path / "out.bin", np.float32).tolist() == [1, 2, 1, 2]


def lying_npy(path: Path) -> None:
    np.save(path, np.zeros(2, np.float32))
    path.write_bytes(path.read_bytes().replace(b"(2,)", b"(9999999999999,)"))


@pytest.mark.parametrize(
    ("resource", "pointer", "message"),
    [
        ({"initialValues": "deferred"}, "", "deferred resources are made by ONNX models only"),
        ({"initialValues": "later"}, "", "'deferred'"),
        ({"initialValues": []}, "", "an array that is not empty"),
        ({"initialValues": {"value": 1, "valueStart": 1}}, "", "exactly one of value, valueStart and sourcePath"),
        ({"initialValues": {"valueCount": 0, "value": 1}}, "/valueCount", "at least 1"),
        ({"initialValues": {"valueCount": "3", "value": 1}}, "/valueCount", "an integer"),
        ({"initialValues": {"value": 1}}, "/valueCount|", "valueCount is missing"),
        (values(1, "x"), "/1", "'x' was provided, but a number"),
        (values(1, None), "/1", "null was provided"),
        (values(True), "", "true was provided"),
        (values(256, data_type="UINT8"), "", "256 was provided, but an integer that fits UINT8 was expected"),
        (values(1, 1.0, data_type="INT32"), "/1", "1.0 was provided, but an integer that fits INT32"),
        (values("nan", data_type="INT32"), "", "'nan' was provided"),
        (values(2**63, data_type="INT64"), "", "an integer that fits INT64"),
        (values({"type": "FLOAT32"}, data_type="UNKNOWN"), "/0", "value is missing"),
        (values({"type": "UINT4", "value": 1}, data_type="UNKNOWN"), "/0/type", "DML_TENSOR_DATA_TYPE_UINT4"),
        (values(3, data_type="UNKNOWN"), "/0", "3; an object was expected"),
        ({"initialValues": {"sourcePath": "in.png"}}, "/sourcePath", "is an image; only .npy files and raw bytes"),
        ({"initialValues": {"sourcePath": "missing.npy"}}, "/sourcePath", "does not exist"),
        ({"initialValues": {"sourcePath": "../outside.bin"}}, "/sourcePath", "outside|does not exist"),
        ({"initialValues": {"sourcePath": "/etc/passwd"}}, "/sourcePath", "leads outside"),
        ({"initialValues": {"sourcePath": "lying.npy"}}, "/sourcePath", "cannot be read as .npy"),
        ({"initialValues": {"sourcePath": "objects.npy"}}, "/sourcePath", "cannot be read as .npy"),
        ({"initialValues": {"sourcePath": "short.npy"}}, "/sourcePath", "cannot be read as .npy"),
        ({"initialValues": {"sourcePath": "complex.npy"}}, "/sourcePath", "complex64, which is no tensor data type"),
        ({"initialValues": {"sourcePath": "empty.npy"}}, "/sourcePath", "cannot be read as .npy|holds no values"),
        ({"initialValues": {"sourcePath": "empty.bin"}}, "/sourcePath", "holds no values"),
        (
            {"initialValuesDataType": "INT8", "initialValues": {"sourcePath": "good.npy"}},
            "/sourcePath",
            "holds FLOAT32",
        ),
    ],
)
def test_unusable_values_are_told_by_their_place(
    run: Callable[..., str], tmp_path: Path, resource: Json, pointer: str, message: str
) -> None:
    lying_npy(tmp_path / "lying.npy")
    np.save(tmp_path / "good.npy", np.zeros(2, np.float32))
    np.save(tmp_path / "complex.npy", np.zeros(2, np.complex64))
    np.save(tmp_path / "empty.npy", np.zeros(0, np.float32))
    np.save(tmp_path / "objects.npy", np.array([{}]), allow_pickle=True)
    for name, contents in {"short.npy": b"\x93NUMPY", "empty.bin": b"", "in.png": b"x"}.items():
        (tmp_path / name).write_bytes(contents)
    data = model(resources={"R": {"initialValuesDataType": "FLOAT32"} | resource}, dispatchables={}, commands=[])
    if "sourcePath" in str(resource) and "initialValuesDataType" not in resource:
        data["resources"]["R"]["initialValuesDataType"] = "UNKNOWN" if ".npy" in str(resource) else "UINT8"
    with pytest.raises(InputError, match=message) as caught:
        run(data)
    places = [f"/resources/R/initialValues{end}" for end in pointer.split("|")]
    assert caught.value.problems[0].pointer in places


@pytest.mark.parametrize(
    "resource",
    [
        {"initialValues": {"valueCount": 2**32 - 1, "value": 1}},
        {"initialValues": {"valueCount": 2**31, "valueStart": 1, "valueDelta": 1}},
        {"initialValues": [1], "sizeInBytes": 2**62},
    ],
)
def test_resources_are_limited_before_memory_is_taken(run: Callable[..., str], resource: Json) -> None:
    resources = {name: {"initialValuesDataType": "UINT32"} | resource for name in "AB"}
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"/resources: .* the resources of a model may take 4294967296"):
            run(model(resources=resources, dispatchables={}, commands=[]))
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_resources_are_limited_together(run: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "MAX_RESOURCE_BYTES", 20)
    with pytest.raises(InputError, match="24 bytes would be needed; the resources of a model may take 20"):
        run(model())


@pytest.mark.parametrize("path", ["../out.bin", "/out.bin", "link/out.bin", "link.bin"])
def test_a_file_outside_is_never_written(run: Callable[..., str], tmp_path: Path, path: str) -> None:
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    (tmp_path / "link").symlink_to(outside)
    (tmp_path / "link.bin").symlink_to(outside / "out.bin")
    with pytest.raises(InputError, match=r"/commands/0/targetPath: .* leads outside"):
        run(model(commands=[{"type": "writeFile", "resource": "In", "targetPath": path}]))
    assert not os.listdir(outside)  # noqa: PTH208


@pytest.mark.parametrize(
    ("command", "pointer", "message"),
    [
        ({"type": "print", "resource": "X"}, "/commands/0/resource", "no resource is called 'X'"),
        ({"type": "writeFile", "resource": "X", "targetPath": "a"}, "/commands/0/resource", "no resource is called"),
        ({"type": "dispatch", "dispatchable": "X", "bindings": {}}, "/commands/0/dispatchable", "no dispatchable"),
        (
            {"type": "dispatch", "dispatchable": "tile", "bindings": {"InputTensor": "X"}},
            "/commands/0/bindings/InputTensor",
            "no resource is called 'X'",
        ),
        ({"type": "explode"}, "/commands/0", "'dispatch', 'print', 'writefile'"),
        ({"type": "print"}, "/commands/0", "resource is missing"),
        (7, "/commands/0", "an object was expected"),
        ({"type": "print", "resource": "Mixed"}, "/commands/0/resource", "mixes types"),
        ({"type": "writeFile", "resource": "In", "targetPath": "a.png"}, "/commands/0/targetPath", "is an image"),
        (
            {"type": "writeFile", "resource": "In", "targetPath": "a.npy", "dimensions": [3]},
            "/commands/0/dimensions",
            "3 elements are promised, but the resource has 2",
        ),
        (
            {"type": "writeFile", "resource": "In", "targetPath": "a.npy", "dimensions": [1] * 65},
            "/commands/0/dimensions",
            "at most 32 were expected",
        ),
        (
            {"type": "writeFile", "resource": "In", "targetPath": "a.npy", "dimensions": [0, 2**32 - 1]},
            "/commands/0/dimensions/0",
            "at least 1 was expected",
        ),
    ],
)
def test_an_unusable_command_is_told_by_its_place(
    run: Callable[..., str], command: Any, pointer: str, message: str
) -> None:
    mixed = values({"name": "n", "type": "FLOAT32", "value": 1}, {"type": "UINT8", "value": 2}, data_type="UNKNOWN")
    with pytest.raises(InputError, match=message) as caught:
        run(model(resources={"In": values(1, 2), "Mixed": mixed}, commands=[command]))
    assert caught.value.problems[0].pointer == pointer


@pytest.mark.parametrize("part", ["resources", "dispatchables", "commands"])
def test_all_three_parts_are_required(part: str) -> None:
    data = model()
    del data[part]
    with pytest.raises(InputError, match=f"{part} is missing"):
        read_model(data)


@pytest.mark.parametrize("field", ["InputTensor", "OutputTensor", "RepeatsCount", "Repeats"])
def test_dxdispatch_requires_all_fields_of_a_tile(field: str) -> None:
    data = model()
    del data["dispatchables"]["tile"]["desc"][field]
    with pytest.raises(InputError, match=f"{field} is missing"):
        read_model(data)


def test_an_empty_repeats_is_a_null_pointer() -> None:
    data = model()
    data["dispatchables"]["tile"]["desc"]["Repeats"] = []
    tile_read = read_model(data).dispatchables["tile"]
    assert isinstance(tile_read, TileDispatchable)
    assert tile_read.desc is not None
    assert tile_read.desc.repeats is None


def test_problems_name_the_field_the_value_and_what_was_expected() -> None:
    data = model()
    data["dispatchables"]["tile"]["desc"]["InputTensor"]["Sizes"] = [2, -1]
    data["dispatchables"]["other"] = {"type": 5}
    with pytest.raises(InputError) as caught:
        read_model(data)
    assert [str(problem) for problem in caught.value.problems] == [
        "/dispatchables/tile/desc/InputTensor/Sizes/1: InputTensor.Sizes[1] is -1; at least 0 was expected",
        "/dispatchables/other/type: type is 5; a string was expected",
    ]


def test_other_dispatchables_are_kept_by_name() -> None:
    read = read_model(model(dispatchables={"net": {"type": "onnx", "sourcePath": "x.onnx"}}, commands=[]))
    assert read == Model(resources=read.resources, dispatchables={"net": OtherDispatchable(type="onnx")}, commands=())


def test_a_model_s_tile_is_the_bare_descriptor() -> None:
    read = read_model(model()).dispatchables["tile"]
    assert isinstance(read, TileDispatchable)
    assert read.desc == TileOperatorDesc.from_input(data_type="FLOAT32", sizes=[2], repeats=[2])
