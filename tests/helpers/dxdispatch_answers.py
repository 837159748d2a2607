"""A model as dml_tile reads it, in the words of the recorded answers, and where the two differ."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from dml_tile.descriptors.tile import TensorDesc, TileOperatorDesc
from dml_tile.dxdispatch.fields import model_findings
from dml_tile.dxdispatch.model import Model, OtherDispatchable, TileDispatchable, read_model
from dml_tile.dxdispatch.resources import Contents, allocate
from dml_tile.dxdispatch.values import printed
from dml_tile.errors import Problem
from dml_tile.files.paths import AllowedFolders
from dml_tile.findings import Severity
from dml_tile.formats.json_text import parse_document
from dml_tile.readers.descriptors import read_document

Json = dict[str, Any]

RECORDED: Final = Path(__file__).parent.parent / "data" / "dxdispatch_models.jsonl"
"""Random models, each with the parser's answer."""

KNOWN_DIFFERENCES: Final = {
    # what the parser accepts and this package refuses: docs/dxdispatch.md tells them
    "deferred resources are made by ONNX models only": "deferred",
    "resources are bound; a tensor takes one": "several resources",
}


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
    is_whole = len(sizes) >= buffer.dimension_count > 0 and (strides is None or len(strides) >= buffer.dimension_count)
    total = buffer.total_tensor_size_in_bytes if is_whole else None
    counts = [int(tensor.type), int(buffer.data_type), int(buffer.flags), buffer.dimension_count]
    return [*counts, sizes, strides, total, buffer.guaranteed_base_offset_alignment]
