"""Reading DxDispatch's models: each spelling, and what is wrong with one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from dml_tile.descriptors.tile import TensorDesc, TileOperatorDesc
from dml_tile.dxdispatch.model import Model, OtherDispatchable, TileDispatchable, read_model
from dml_tile.dxdispatch.resources import Contents, allocate
from dml_tile.dxdispatch.rules import MODEL_KEYS, model_findings
from dml_tile.dxdispatch.runner import printed
from dml_tile.errors import InputError, Problem
from dml_tile.files.paths import AllowedFolders
from dml_tile.findings import Severity
from dml_tile.json_text import parse_document
from dml_tile.readers.descriptors import read_document
from tests.helpers.dxdispatch_models import Json, dispatch, model, show, tile_json

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
    problems = [str(part) for part in read_document(text.encode()) if isinstance(part, Problem)]
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
    found = model_findings(document)
    return [str(each) for findings in found.values() for each in findings if each.severity is Severity.ERROR]


def _resource(memory: Contents) -> list[Any]:
    data = memory.bytes[: memory.shown_bytes]
    texts = [_text(memory, verbose=verbose) if memory.data_type else None for verbose in (False, True)]
    return [int(memory.data_type), memory.bytes.nbytes, digest(data.tobytes().hex()), *texts]


def _text(memory: Contents, *, verbose: bool) -> str:
    parts = printed(memory.data_type, memory.bytes[: memory.shown_bytes], verbose=verbose, as_dxdispatch=True)
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
    assert [str(problem) for problem in caught.value.problems] == [
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


def test_a_difference_would_be_noticed() -> None:
    text, answer = next((text, answer) for text, answer in ANSWERS if answer.get("resources"))
    assert list(differences(text, {"refused": "no reason"}))
    changed = {name: [*values[:2], "00", *values[3:]] for name, values in answer["resources"].items()}
    assert list(differences(text, answer | {"resources": changed}))
    refused = next(text for text, answer in ANSWERS if "refused" in answer)
    assert list(differences(refused, {"resources": {}, "dispatchables": {}, "commands": 0}))
