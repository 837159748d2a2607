"""The initial values of a model's resources."""

from __future__ import annotations

import json
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dml_tile.dxdispatch import resources
from dml_tile.dxdispatch.model import read_model
from dml_tile.dxdispatch.resources import allocate
from dml_tile.errors import InputError
from dml_tile.files.paths import AllowedFolders
from tests.helpers.dxdispatch_models import Json, model, values

FACTS = json.loads((Path(__file__).parent / "data" / "dxdispatch_json.facts.json").read_text())["cases"]


@pytest.mark.parametrize("case", [case for case in FACTS if case["kind"] == "resource"], ids=lambda case: case["id"])
def test_a_resource_is_made_as_dxdispatch_makes_it(case: Json, tmp_path: Path) -> None:
    read = read_model(model(resources={"R": case["json"], "In": values(1), "Out": values(1)}))
    if "error" in case["expect"]:
        with pytest.raises(InputError, match="/resources/R/sizeInBytes"):
            allocate(read.resources, AllowedFolders((tmp_path,)))
        return
    memory = allocate(read.resources, AllowedFolders((tmp_path,)))["R"]
    assert memory.bytes.nbytes == case["expect"]["sizeInBytes"]
    if case["json"]["initialValuesDataType"] == "FLOAT32":
        assert memory.bytes[:16].view(np.float32).tolist() == case["json"]["initialValues"]
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


def test_halves_are_rounded_toward_zero_at_each_step(tmp_path: Path) -> None:
    """The bits that DxDispatch's own parser gives."""
    listed = values(1.2, 3.4, 5.6, 0.3, 65520, 2051, 0.7, -1e6, 5.9e-8, data_type="FLOAT16")
    steps = {"initialValuesDataType": "FLOAT16", "initialValues": {"valueCount": 5, "valueStart": 0, "valueDelta": 0.1}}
    made = allocate(read_model(model(resources={"L": listed, "S": steps}, commands=[])).resources, AllowedFolders(()))
    shown = {name: memory.bytes[: memory.shown_bytes].view(np.uint16) for name, memory in made.items()}
    bits = {name: [f"{each:04x}" for each in array] for name, array in shown.items()}
    assert bits["L"] == ["3ccc", "42cc", "4599", "34cc", "7bff", "6801", "3999", "fc00", "0000"]
    assert bits["S"] == ["0000", "2e66", "3266", "34cc", "3665"]


@pytest.mark.parametrize("count", [1, 3, 2**16 + 5])
def test_a_sequence_of_halves_that_repeats_itself_goes_on(count: int) -> None:
    resource = {"valueCount": count, "valueStart": "-inf", "valueDelta": 1}
    read = read_model(
        model(resources={"R": {"initialValuesDataType": "FLOAT16", "initialValues": resource}}, commands=[])
    )
    made = allocate(read.resources, AllowedFolders(()))["R"].bytes[: 2 * count].view(np.float16)
    assert np.all(made == -np.inf)


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
def test_resources_are_limited_before_memory_is_taken(
    run: Callable[..., str], resource: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(np, "zeros", lambda *arguments: pytest.fail("memory was taken"))
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


@pytest.mark.parametrize("name", ["in.npy", "in.dat"])
@pytest.mark.parametrize("left", [0, 1, 3])
def test_a_source_that_shrinks_while_it_is_read_is_refused(
    run: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, left: int
) -> None:
    path, zeros = tmp_path / name, np.zeros
    np.save(tmp_path / "in.npy", np.arange(1000, dtype=np.uint8))
    np.arange(1000, dtype=np.uint8).tofile(tmp_path / "in.dat")
    before = path.stat().st_size - 1000

    def shrunk(*arguments: object) -> object:  # between the look at the file and the reading
        os.truncate(path, before + left)
        return zeros(*arguments)  # type: ignore[call-overload]

    monkeypatch.setattr(np, "zeros", shrunk)
    resource = {"initialValuesDataType": "UINT8", "initialValues": {"sourcePath": name}}
    data = model(resources={"R": resource}, dispatchables={}, commands=[{"type": "print", "resource": "R"}])
    with pytest.raises(InputError, match=f"it changed while it was read: {left} of 1000 bytes are left") as caught:
        run(data)
    assert caught.value.problems[0].pointer == "/resources/R/initialValues/sourcePath"


@pytest.mark.parametrize("becomes", ["gone", "pipe", "link"])
def test_a_source_that_becomes_something_else_is_refused(
    run: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, becomes: str
) -> None:
    path, zeros = tmp_path / "in.dat", np.zeros
    path.write_bytes(b"12")
    (tmp_path / "secret").write_bytes(b"34")

    def replaced(*arguments: object) -> object:
        path.unlink()
        if becomes == "pipe":
            os.mkfifo(path)
        elif becomes == "link":
            path.symlink_to("secret")
        return zeros(*arguments)  # type: ignore[call-overload]

    monkeypatch.setattr(np, "zeros", replaced)
    resource = {"initialValuesDataType": "UINT8", "initialValues": {"sourcePath": "in.dat"}}
    with pytest.raises(InputError, match=r"'in\.dat' cannot be read"):
        run(model(resources={"R": resource}, dispatchables={}, commands=[{"type": "print", "resource": "R"}]))


def test_an_array_in_fortran_order_counts_twice(
    run: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "f.npy", np.ones((10, 10), np.uint8, order="F"))
    data = model(resources={"R": {"initialValues": {"sourcePath": "f.npy"}}}, dispatchables={}, commands=[])
    monkeypatch.setattr(resources, "MAX_RESOURCE_BYTES", 199)
    with pytest.raises(InputError, match="200 bytes would be needed"):
        run(data)
    monkeypatch.setattr(resources, "MAX_RESOURCE_BYTES", 200)
    assert run(data) == ""
