"""Reading DxDispatch's models and making their resources: each spelling, and what is wrong with one."""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from dml_tile.descriptors.tile import TensorDesc, TileOperatorDesc
from dml_tile.directml.dtypes import DTYPES
from dml_tile.dxdispatch import MODEL_KEYS
from dml_tile.dxdispatch.model import Model, OtherDispatchable, TileDispatchable, read_model
from dml_tile.dxdispatch.printing import printed
from dml_tile.dxdispatch.resources import Contents, allocate, read_npy_header
from dml_tile.dxdispatch.rules import model_findings, model_parts
from dml_tile.errors import InputError
from dml_tile.files.paths import AllowedFolders
from dml_tile.findings import Finding, Severity
from dml_tile.json_text import parse_document
from dml_tile.readers.descriptors import read_document
from tests.helpers.costs import at_most
from tests.helpers.dxdispatch_models import Json, dispatch, model, printing, show, source, tile_json, values

RECORDED: Final = Path(__file__).parent / "data" / "dxdispatch_models.jsonl"
"""Random models, each with the parser's answer."""

KNOWN_DIFFERENCES: Final = (
    "deferred resources are made by ONNX models only",
    "resources are bound; a tensor takes one",
)
"""What the parser accepts and this package refuses; docs/dxdispatch.md names them."""


def digest(text: str) -> str:
    """A short text itself; of a long one, its hash."""
    return text if len(text) <= 32 else hashlib.sha256(text.encode()).hexdigest()[:16]


def differences(text: str, answer: Json) -> Iterator[str]:
    """Where dml_tile differs from what the parser answered to a model; nothing where it does not."""
    problems = [part.text for part in read_document(text.encode()) if isinstance(part, Finding)]
    errors = [] if problems else _parser_errors(text)
    if "refused" in answer:
        if not problems and not errors:
            yield f"it is refused there: {answer['refused']}"
        return
    if problems or errors:
        if not all(any(known in problem for known in KNOWN_DIFFERENCES) for problem in problems + errors):
            yield f"it is accepted there: {problems + errors}"
        return
    model = read_model(parse_document(text.encode()).value)
    memory = allocate(model.resources, AllowedFolders((Path(),)))
    for name, expected in answer["resources"].items():
        if (made := _resource(memory[name])) != expected:
            yield f"resource {name!r}: {made}, there {expected}"
    for name, expected in answer["dispatchables"].items():
        if (read := _dispatchable(model, name)) != expected:
            yield f"dispatchable {name!r}: {read}, there {expected}"
    if len(model.commands) != answer["commands"]:
        yield f"{len(model.commands)} commands"


def _parser_errors(text: str) -> list[str]:
    document = parse_document(text.encode())
    if not isinstance(document.value, dict):
        return ["no model"]
    found = model_findings(dict(model_parts(document)))
    errors = [each for findings in found.values() for each in findings if each.severity is Severity.ERROR]
    return [str(each) for each in errors if each.rule != "DML-DXDISPATCH-elementOffset"]  # which is found when it binds


def _resource(memory: Contents) -> list[Any]:
    data = memory.bytes[: memory.shown_bytes]
    texts = [_text(memory, verbose=verbose) if memory.data_type else None for verbose in (False, True)]
    return [int(memory.data_type), memory.bytes.nbytes, digest(data.tobytes().hex()), *texts]


def _text(memory: Contents, *, verbose: bool) -> str:
    values = memory.bytes[: memory.shown_bytes].view(DTYPES[memory.data_type])
    parts = printed(values, verbose=verbose, as_dxdispatch=True)
    return digest("".join(parts).encode(errors="surrogateescape").decode("latin-1"))


def _dispatchable(model: Model, name: str) -> Any:
    read = model.dispatchables[name]
    if isinstance(read, OtherDispatchable):
        return None
    assert isinstance(read, TileDispatchable)
    assert isinstance(read.desc, TileOperatorDesc)
    tensors = [_tensor(tensor) for tensor in (read.desc.input_tensor, read.desc.output_tensor)]
    repeats = None if read.desc.repeats is None else list(read.desc.repeats)
    compile_type = int(read.dml_compile_type == "DmlCompileGraph")
    return [*tensors, read.desc.repeats_count, repeats, int(read.execution_flags), compile_type, sorted(read.bindings)]


def _tensor(tensor: TensorDesc | None) -> list[Any]:
    assert tensor is not None
    buffer = tensor.desc
    assert buffer is not None
    sizes, strides = list(buffer.sizes or ()), None if buffer.strides is None else list(buffer.strides)
    # where an array is too short, the parser reads on
    count = buffer.dimension_count
    is_whole = len(sizes) >= max(count, 1) and (strides is None or len(strides) >= count)
    total = buffer.total_tensor_size_in_bytes if is_whole else None
    counts = [int(tensor.type), int(buffer.data_type), int(buffer.flags), buffer.dimension_count]
    return [*counts, sizes, strides, total, buffer.guaranteed_base_offset_alignment]


# Spellings, and what is wrong with a model


DESC = tile_json([2], [2])


@pytest.mark.parametrize("changes", [{}, {"Repeats": []}], ids=["as it is", "an empty Repeats is a null pointer"])
def test_a_model_s_tile_is_the_bare_descriptor(changes: Json) -> None:
    read = read_model(model(dispatchables={"tile": {"type": "TILE", "desc": DESC | changes}})).dispatchables["tile"]
    assert isinstance(read, TileDispatchable)
    tile = TileOperatorDesc.from_input(data_type="FLOAT32", sizes=[2], repeats=[2])
    assert read.desc == (tile.replace(repeats=None, repeats_count=1) if changes else tile)


@pytest.mark.parametrize("name", [*MODEL_KEYS, *DESC])
def test_all_parts_of_a_model_and_all_fields_of_a_tile_are_required(name: str) -> None:
    data = model()
    del (data if name in data else data["dispatchables"]["tile"]["desc"])[name]
    with pytest.raises(InputError, match=f"{name} is missing"):
        read_model(data)


def test_problems_name_the_field_the_value_and_what_was_expected() -> None:
    data = model()
    data["dispatchables"]["tile"]["desc"]["InputTensor"]["Sizes"] = [2, -1]
    data["dispatchables"]["other"] = {"type": 5}
    with pytest.raises(InputError) as caught:
        read_model(data)
    message = "InputTensor.Sizes[1] is -1; an integer from 0 to 4294967295 was expected"
    assert [problem.text for problem in caught.value.problems] == [
        f"/dispatchables/tile/desc/InputTensor/Sizes/1: {message}",
        "/dispatchables/other/type: type is 5; a string was expected",
    ]


@pytest.mark.parametrize(
    ("changes", "last"),
    [
        ({"commands": [{}] * 25}, "and 15 more problems"),
        ({"commands": [show("X")] * 25}, "and 15 more problems"),
        ({"resources": dict.fromkeys(map(str, range(12)), 1)}, "and 2 more problems"),
        ({"commands": [dispatch(I=[1] * 50)]}, "an object"),
    ],
)
def test_ten_problems_are_reported_and_the_others_counted(changes: Json, last: str) -> None:
    with pytest.raises(InputError) as caught:
        read_model(model(**changes))
    assert last in caught.value.problems[-1].message
    assert len(caught.value.problems) == (11 if "more" in last else 1)


# Random models, and the answers of DxDispatch's own parser

ANSWERS: Final[list[tuple[str, dict[str, Any]]]] = [json.loads(line) for line in RECORDED.read_text().splitlines()]
PARTS: Final = 8


@pytest.mark.parametrize("part", range(PARTS))
def test_models_are_read_as_the_parser_reads_them(part: int) -> None:
    found = [(text, list(differences(text, answer))) for text, answer in ANSWERS[part::PARTS]]
    assert not [(text, different) for text, different in found if different]


# The initial values of resources


def sequence(data_type: str, count: int, start: Any) -> Json:
    steps = {"valueCount": count, "valueStart": start, "valueDelta": 1}
    return {"initialValuesDataType": data_type, "initialValues": steps}


def test_a_long_resource_is_printed_in_parts(run: Callable[..., str]) -> None:
    assert run(printing(sequence("UINT32", 10_000, 0))) == f"Resource 'R': {', '.join(map(str, range(10_000)))}\n"


@pytest.mark.parametrize("count", [1, 3, 2**16 + 5])
def test_a_sequence_of_halves_that_repeats_itself_goes_on(count: int) -> None:
    read = read_model(model(resources={"R": sequence("FLOAT16", count, "-inf")}, commands=[]))
    made = allocate(read.resources, AllowedFolders(()))["R"].bytes[: 2 * count].view(np.float16)
    assert np.all(made == -np.inf)


@pytest.mark.parametrize(
    ("resource", "pointer", "message"),
    [
        ({"initialValues": "deferred"}, "", "deferred resources are made by ONNX models only"),
        ({"initialValues": "later"}, "", "'deferred'"),
        ({"initialValues": []}, "", "an array that is not empty"),
        ({"initialValues": {"value": 1, "valueStart": 1}}, "", "exactly one of value, valueStart and sourcePath"),
        ({"initialValues": {"valueCount": 0, "value": 1}}, "/valueCount", "at least 1"),
        ({"initialValues": {"valueCount": "3", "value": 1}}, "/valueCount", "an integer"),
        ({"initialValues": {"value": 1}}, "", "valueCount is missing"),
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
        (source("in.png", "UINT8"), "/sourcePath", "is an image; only .npy files and raw bytes"),
        (source("missing.npy"), "/sourcePath", "does not exist"),
        (source("../outside.bin", "UINT8"), "/sourcePath", "outside|does not exist"),
        (source("/etc/passwd", "UINT8"), "/sourcePath", "leads outside"),
        (source("objects.npy"), "/sourcePath", "cannot be read as .npy"),
        (source("empty.npy"), "/sourcePath", "holds no values"),
        (source("empty.bin", "UINT8"), "/sourcePath", "holds no values"),
        (source("good.npy", "INT8"), "/sourcePath", "holds FLOAT32"),
    ],
)
def test_unusable_values_are_reported_with_their_place(
    run: Callable[..., str], tmp_path: Path, resource: Json, pointer: str, message: str
) -> None:
    np.save(tmp_path / "good.npy", np.zeros(2, np.float32))
    np.save(tmp_path / "empty.npy", np.zeros(0, np.float32))
    np.save(tmp_path / "objects.npy", np.array([{}]), allow_pickle=True)
    (tmp_path / "empty.bin").touch()
    (tmp_path / "in.png").write_bytes(b"x")
    with pytest.raises(InputError, match=message) as caught:
        run(printing({"initialValuesDataType": "FLOAT32"} | resource))
    assert caught.value.problems[0].path == f"/resources/R/initialValues{pointer}"


@pytest.mark.parametrize(
    "resource",
    [
        {"initialValues": {"valueCount": 2**32 - 1, "value": 1}},
        {"initialValues": {"valueCount": 2**29 + 1, "value": 1}},
        {"initialValues": {"valueCount": 2**31, "valueStart": 1, "valueDelta": 1}},
        {"initialValues": [1], "sizeInBytes": 2**62},
    ],
)
def test_resources_are_limited_beforehand(
    run: Callable[..., str], resource: Json, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(np, "zeros", lambda *arguments: pytest.fail("memory was taken"))
    resources = {name: {"initialValuesDataType": "UINT32"} | resource for name in "AB"}
    message = r"/resources: .* the resources of a model may take 4294967296"
    with at_most(2**20), pytest.raises(InputError, match=message):
        run(model(resources=resources, dispatchables={}, commands=[]))


@pytest.mark.posix
@pytest.mark.parametrize("name", ["in.npy", "in.dat"])
@pytest.mark.parametrize("change", [0, 1, 3, "gone", "pipe", "link"])
def test_a_source_that_changes_before_it_is_read_is_refused(
    run: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, change: int | str
) -> None:
    path, zeros = tmp_path / name, np.zeros
    np.save(tmp_path / "in.npy", np.zeros(1000, np.uint8))
    for copy in ("in.dat", "secret"):
        (tmp_path / copy).write_bytes((tmp_path / "in.npy").read_bytes()[-1000:])

    def changed(*arguments: object) -> object:  # between the look at the file and the reading
        if isinstance(change, int):
            os.truncate(path, path.stat().st_size - 1000 + change)
        else:
            path.unlink()
        if change == "pipe":
            os.mkfifo(path)
        elif change == "link":
            path.symlink_to("secret")
        return zeros(*arguments)  # type: ignore[call-overload]

    monkeypatch.setattr(np, "zeros", changed)
    left = f"it changed while it was read: {change} of 1000 bytes are left" if isinstance(change, int) else ""
    with pytest.raises(InputError, match=rf"^/resources/R/initialValues/sourcePath: '{name}' cannot be read: {left}"):
        run(printing(source(name, "UINT8")))


# Headers of .npy files, true and lying ones


def with_header(path: Path, header: str | bytes, version: int = 1, length: int | None = None) -> Path:
    """A file with that header, and 8 bytes of values."""
    text = header if isinstance(header, bytes) else header.encode()
    size = struct.pack("<H" if version == 1 else "<I", len(text) if length is None else length)
    path.write_bytes(b"\x93NUMPY" + bytes([version, 0]) + size + text + bytes(8))
    return path


def header_of(shape: str, descr: str = "'<f4'") -> str:
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}"


@pytest.mark.parametrize(
    ("shape", "version"), [("(2,)", 2), ("(2,)", 3), ("(2L,)", 1), ("(2L,)", 2), (f"({'1, ' * 100}2)", 1)]
)
def test_other_versions_and_many_dimensions_of_one_are_read(tmp_path: Path, shape: str, version: int) -> None:
    *_, nbytes = read_npy_header(with_header(tmp_path / "a.npy", header_of(shape), version))
    assert nbytes == 8


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (header_of("(9999999999999,)"), "promises 39999999999996 bytes"),
        (header_of(f"({10**30},)"), "promises"),
        (header_of("(True, 2)"), "the shape in its header is none"),
        (header_of("(-1,)"), "the shape in its header is none"),
        (header_of("(2,)", "'|O'"), "holds Python objects"),
        (header_of("7"), "no header"),
        ("(" * 9000, "no header"),
        ("{1:" * 3000, "no header"),
        (b"\xff" * 100, "no header"),
        ("", "no header"),
        ("[" * 20000, "no header"),
    ],
)
@pytest.mark.parametrize("version", [1, 2])
def test_a_lying_header_or_none_is_refused(tmp_path: Path, header: str | bytes, message: str, version: int) -> None:
    with pytest.raises(ValueError, match=message):
        read_npy_header(with_header(tmp_path / "a.npy", header, version))


@pytest.mark.parametrize("contents", [b"", b"\x93NUMPY", b"\x93NUMPY\x09\x09", b"PK\x05\x06" + bytes(18)])
def test_what_is_no_npy_file_is_refused(tmp_path: Path, contents: bytes) -> None:
    (tmp_path / "a.npy").write_bytes(contents)
    with pytest.raises(ValueError, match="no header"):
        read_npy_header(tmp_path / "a.npy")


def test_a_promised_length_takes_no_memory(tmp_path: Path) -> None:
    path = with_header(tmp_path / "a.npy", header_of("(2,)"), version=2, length=2**32 - 1)
    with at_most(2**22), pytest.raises(ValueError, match="no header"):
        read_npy_header(path)
