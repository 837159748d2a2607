"""The functions that are fuzzed: each raises where bytes make anything but a result or a clear error."""

from __future__ import annotations

import builtins
import inspect
import json
import os
import re
import resource
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final, get_args
from xml.etree import ElementTree

import atheris
import numpy as np

import dml_tile
from dml_tile.back_ends.dialects import ONNX_TILE_13
from dml_tile.checks.judging import judged
from dml_tile.checks.lowerings import lower_item
from dml_tile.checks.result import CheckedFile
from dml_tile.descriptors.graph import GraphDesc
from dml_tile.directml.targets import Target
from dml_tile.dxdispatch import resources, runner
from dml_tile.dxdispatch.resources import read_npy_header
from dml_tile.dxdispatch.runner import run_model
from dml_tile.emit.source import LanguageName, lowering_model, lowering_source, source_text, why_left_out
from dml_tile.errors import DmlError, DmlTileError, InputError
from dml_tile.files.paths import AllowedFolders
from dml_tile.files.whole import read_into
from dml_tile.findings import Finding, unreadable
from dml_tile.json_text import parse_document
from dml_tile.pictures.labels import picture_of
from dml_tile.pictures.picture import picture_svg
from dml_tile.readers.descriptors import read_document
from dml_tile.readers.item import Item, item_of
from dml_tile.readers.model_names import KnownShapes
from dml_tile.readers.model_tile import DIALECTS, TileNode, ValueOrigin
from dml_tile.readers.onnx.tiles import read_nodes
from dml_tile.readers.sandbox.child import answer_line, read_answer
from dml_tile.readers.sandbox.parent import ModelReader
from dml_tile.reports.report import FORMATS
from dml_tile.reports.text import result_lines
from tests.fuzz import seeds
from tests.helpers.check_files import BAD
from tests.helpers.command_line import invoke
from tests.helpers.outputs import require_safe_log, require_well_formed
from tests.helpers.paths import EXAMPLES
from tests.helpers.report_pages import checked, report_of

_TARGETS: Final = (Target.parse("6_4"), Target.parse("4_0"))
_TILE: Final = (EXAMPLES / "tile.json").read_bytes()
_BAD_TILE: Final = (EXAMPLES / "int64.json").read_bytes()
_FORMATS: Final = (*FORMATS,)
_LANGUAGES: Final[tuple[LanguageName, ...]] = get_args(LanguageName)
_MAX_RESOURCE_BYTES: Final = 2**24
"""Of the resources of a model that is run here; the package allows more, which would only take longer."""
_MAX_WRITTEN_BYTES: Final = 2**16
_MAX_PRINTED_BYTES: Final = 2**12
_MAX_NPY_HEADERS: Final = 2**13
_READER_SECONDS: Final = 20
_READER_BYTES: Final = 2**31
_CARELESS: Final = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, UnboundLocalError)


@dataclass(frozen=True, slots=True)
class FuzzTarget:
    """What is fuzzed, the inputs that it begins with, and whether these are JSON."""

    run: Callable[[bytes], object]
    seeds: Callable[[], Iterator[bytes]]
    is_json: bool = False

    def mutate(self, data: bytes, max_size: int, seed: int) -> bytes:
        """Another input made from this one; most of those made from JSON are JSON."""
        changed = seeds.mutated(data, seed) if self.is_json and seed % 4 else None
        return changed if changed is not None and len(changed) <= max_size else bytes(atheris.Mutate(data, max_size))


def _called(*arguments: str, stdin: bytes | None = None) -> str:
    """Calls the command line; returns what it prints on standard output."""
    result = invoke(*arguments, stdin=stdin)
    assert result.exit_code in (0, 1, 2), result.exit_code
    require_safe_log(result.stderr)
    return result.stdout


def _reported(form: str, source: str, parts: Iterable[Item | Finding]) -> str:
    """What ``check`` writes of a source's parts in a format, at two targets."""
    found, problems = [], []
    for part in parts:
        if isinstance(part, Finding):
            problems.append(replace(part, source=source))
        elif results := checked(part, *_TARGETS, source=source):  # none for a whole model of which nothing is to say
            found.append(results)
    return report_of(form, found, problems, [CheckedFile(source, is_model=False, operators=len(found))])


def _check_document(data: bytes) -> None:
    form = _FORMATS[len(data) % len(_FORMATS)]
    require_well_formed(form, _reported(form, "-", read_document(data)))


def _use_document(data: bytes) -> None:
    """Lowers the tiles of a document, draws them, and writes source text for them."""
    parts = [part for part in read_document(data) if isinstance(part, Item)]
    lowered = [lower_item("-", part, _TARGETS[1]) for part in parts]
    tiles = [part for part in parts if not why_left_out(part)]
    for language in _LANGUAGES:
        require_safe_log("".join(source_text(language, "-", tiles)))
    require_safe_log("".join(lowering_source("cpp", lowered)))
    for tile in lowered:
        if tile.lowering:
            json.dumps(lowering_model(tile.lowering), allow_nan=False)
    for part in tiles:
        if isinstance(part.desc, GraphDesc):
            continue
        picture = picture_of(part.desc)
        if picture.tensors:
            (result,) = judged("-", part, _TARGETS[1:], "both")
            lines = [*result_lines(result, with_operator=False)]
            ElementTree.fromstring(picture_svg(picture, lines))


def _run_model(data: bytes) -> None:
    resources.MAX_RESOURCE_BYTES = _MAX_RESOURCE_BYTES  # type: ignore[misc]
    runner.MAX_WRITTEN_BYTES = _MAX_WRITTEN_BYTES  # type: ignore[misc]
    runner.MAX_PRINTED_BYTES = _MAX_PRINTED_BYTES  # type: ignore[misc]
    shutil.rmtree("out", ignore_errors=True)
    Path("in.bin").write_bytes(bytes(64))
    require_safe_log(_reported("text", "-", read_document(data)))
    printed: list[str] = []
    folders = AllowedFolders((Path(),), Path("out"), overwrite=True)
    with suppress(DmlError, InputError, OSError):
        try:
            document = parse_document(data)
        except ValueError:
            return
        run_model(document, folders, printed.append)
    require_safe_log("".join(printed))
    assert len("".join(printed).encode()) <= _MAX_PRINTED_BYTES
    written = sum(path.stat().st_size for path in Path("out").rglob("*"))
    assert written <= _MAX_WRITTEN_BYTES + _MAX_NPY_HEADERS, written
    assert {path.name for path in Path().iterdir()} <= {"in.bin", "out"}


def _read_onnx(data: bytes) -> None:
    path = Path("m.onnx")
    path.write_bytes(data)
    try:
        for part in read_nodes(path, KnownShapes()):
            assert read_answer(answer_line(part)) == part
    except InputError:
        pass
    except Exception as error:
        # a library may raise anything, which the child makes a problem of; these the reader itself has raised
        if isinstance(error, _CARELESS) and "dml_tile" in traceback.extract_tb(error.__traceback__)[-1].filename:
            raise


def _reader_of(name: str) -> Callable[[bytes], None]:
    """Reads models with OpenVINO, in the process of its own that the command line reads them in."""
    readers: list[ModelReader] = []

    def read(data: bytes) -> None:
        if not readers:
            readers.append(ModelReader(KnownShapes(), seconds=_READER_SECONDS, memory=_READER_BYTES))
        path = Path(name)
        path.write_bytes(data)
        path.with_suffix(".bin").write_bytes(np.array([1, 2], np.int64).tobytes() * 8)
        for part in readers[0].parts(path):
            assert isinstance(part, Finding | TileNode)
            assert "longer than" not in str(part), part
            assert "a malformed reply" not in str(part), part

    return read


def _read_settings(data: bytes) -> None:
    Path("pyproject.toml").write_bytes(data)
    Path("a.json").write_bytes(_TILE)
    with _nothing_reached():
        require_safe_log(_called("check", "a.json"))
        printed = _called("check", stdin=_TILE)
    require_safe_log(printed)
    assert not printed.startswith("-"), "standard input is read"


def _read_baseline(data: bytes) -> None:
    Path("a.json").write_bytes(_BAD_TILE)
    Path("base.json").write_bytes(data)
    require_safe_log(_called("check", "a.json", "--baseline", "base.json"))


def _check_capture(data: bytes) -> None:
    """Checks captured lines, also against a baseline of their own findings."""
    Path("c.jsonl").write_bytes(data)
    form = _FORMATS[len(data) % len(_FORMATS)]
    require_well_formed(form, _called("check", "c.jsonl", "--format", form))
    Path("known.json").unlink(missing_ok=True)
    _called("check", "c.jsonl", "--write-baseline", "known.json")
    if Path("known.json").exists():
        printed = _called("check", "c.jsonl", "--baseline", "known.json", "--format", "concise")
        assert ": error[DML-" not in printed, printed


def _ignore_patterns(data: bytes) -> None:
    """Checks a folder with patterns in its .gitignore, and the same in `exclude`."""
    for name in ("a/b/x.json", "build/[a].json", "keep.json", "ab7.json"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(_TILE)
    Path(".git").mkdir(exist_ok=True)
    Path(".gitignore").write_bytes(data)
    exclude = json.dumps(data.decode(errors="replace").replace("\x7f", "").splitlines()[:50], ensure_ascii=True)
    Path("pyproject.toml").write_text(f"[tool.dml-tile]\nexclude = {exclude}\n")
    require_safe_log(_called("check", ".", "--verbose"))
    Path("pyproject.toml").write_bytes(b"")
    require_safe_log(_called("check", "."))


def _check_list(data: bytes) -> None:
    """Checks the files that a list names: nothing outside of the folder is read, also through a link to it."""
    for name in ("a.json", "sub/b.json"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_bytes(_TILE)
    with suppress(FileExistsError):
        Path("out.json").symlink_to(_secret())
    Path("list.txt").write_bytes(data + f"\n{_secret()}\nout.json".encode())
    with _nothing_reached():
        printed = _called("check", "--files-from", "list.txt", stdin=_TILE)
    require_safe_log(printed)
    assert str(_SECRET) not in printed


_SECRET: Final = 1_876_543_210


@cache
def _secret() -> Path:
    """Return a file outside of the folder in which lists are checked, with a finding that shows its value."""
    secret = Path(tempfile.mkdtemp(), "secret.json")
    secret.write_text(json.dumps(BAD | {"Repeats": [_SECRET]}))
    return secret


def _check_named_files(data: bytes) -> None:
    """Checks a folder whose files have any names: nothing but these files is opened."""
    shutil.rmtree("tree", ignore_errors=True)
    names = [os.fsdecode(name) for name in data.split(b"\n")[:8]]
    for name in names:
        parts = [part for part in name.split("/") if part.strip("\0") not in ("", ".", "..")]
        path = Path("tree", *parts or ["a.json"])
        with suppress(OSError, ValueError):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(_TILE)
    (top := Path("tree")).mkdir(exist_ok=True)
    files = [str(path) for path in top.rglob("*.json") if path.is_file() and "://" not in str(path)]
    with _nothing_reached():
        for arguments in (["tree"], ["tree/**/*.json"], ["--", *files]):
            require_safe_log(_called("check", *arguments))


def _read_answer(data: bytes) -> None:
    """Reads a line that a process which reads models may answer when a hostile file has taken it over."""
    with suppress(ValueError):
        part = read_answer(data)
        assert read_answer(answer_line(part)) == part


_REACHED: Final[list[str]] = []
_READER: Final = "dml_tile.readers.sandbox.child"


def _note_reach(event: str, arguments: tuple[Any, ...]) -> None:
    """Note what an audit hook tells of connections and of processes other than that which reads models."""
    if event in ("socket.connect", "socket.getaddrinfo", "os.system", "os.exec", "os.posix_spawn"):
        _REACHED.append(event)
    if event == "subprocess.Popen" and _READER not in arguments[1]:
        _REACHED.append(event)


sys.addaudithook(_note_reach)


@contextmanager
def _nothing_reached() -> Iterator[None]:
    _REACHED.clear()
    yield
    assert not _REACHED, _REACHED


def _read_npy(data: bytes) -> None:
    path = Path("a.npy")
    path.write_bytes(data)
    try:
        _, offset, nbytes = read_npy_header(path)
        read_into(path, np.zeros(nbytes, np.uint8), offset)
    except (OSError, ValueError):
        pass


def _tell_names(data: bytes) -> None:
    """Reports on a model of any name, whose resources, dispatchables and tensors have it too."""
    name = data.decode(errors="replace")
    tensors = {tensor: {"DataType": 1, "Sizes": [2]} for tensor in ("InputTensor", "OutputTensor")}
    tile = {"type": "TILE", "RepeatsCount": 1, "Repeats": [3], **tensors}
    bindings = {name: {"name": name}}
    model = {
        "resources": {name: {"initialValues": name}},
        "dispatchables": {name: tile, f"{name}2": {"type": name}},
        "commands": [{"type": name}, {"type": "dispatch", "dispatchable": name, "bindings": bindings}],
    }
    file = os.fsdecode(data[:40])
    form = _FORMATS[len(data) % len(_FORMATS)]
    require_well_formed(
        form, _reported(form, file, [*read_document(json.dumps(model).encode()), unreadable(name, name)])
    )
    values = ((ValueOrigin(name),),) * 2
    node = TileNode(name, DIALECTS["ONNX Tile-13"], "float64", (name, 2), (1, 2), name, *values)
    told = read_answer(answer_line(node))
    assert isinstance(told, TileNode)
    require_well_formed(form, _reported(form, file, [item_of(told), unreadable("", name)]))


# Calls of the public API with arguments of any kind: only exceptions that the documentation names may be raised


_DESC: Final = dml_tile.TileOperatorDesc.from_input(data_type="FLOAT32", sizes=[2, 3], repeats=[1, 2])
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
    *(_DESC.replace, _DESC.model_copy, dml_tile.compile_tile(_DESC).bind),
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
    *(_DESC, _INT64, dml_tile.OperatorDesc(type=70, desc=_DESC), dml_tile.OperatorDesc(type=5, desc=None)),
    *(_DESC.input_tensor, _DESC.replace(repeats=None), dml_tile.Target.parse("5_0"), dml_tile.FeatureLevel(0x2000)),
    *(_BUFFER, dml_tile.BufferBinding(_BUFFER), dml_tile.DML_OPERATOR_DESC(), _REQUEST, dml_tile.lower(_INT64, "2_0")),
]
_LIKELY: Final[dict[str, list[Any]]] = {
    "request": [_REQUEST],
    "lowering": [dml_tile.lower(_DESC, "2_0")],
    "back_end": ["chromium", "onnxruntime"],
    "desc": [_DESC, _INT64, dml_tile.OperatorDesc(type=70, desc=_DESC)],
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


TARGETS: Final[dict[str, FuzzTarget]] = {
    "documents": FuzzTarget(_check_document, seeds.documents, is_json=True),
    "operators": FuzzTarget(_check_document, seeds.operators, is_json=True),
    "captures": FuzzTarget(_check_capture, seeds.captures, is_json=True),
    "patterns": FuzzTarget(_ignore_patterns, seeds.patterns),
    "lists": FuzzTarget(_check_list, seeds.lists),
    "uses": FuzzTarget(_use_document, seeds.documents, is_json=True),
    "dxdispatch": FuzzTarget(_run_model, seeds.dxdispatch_models, is_json=True),
    "onnx": FuzzTarget(_read_onnx, lambda: seeds.files("*.onnx")),
    "ir": FuzzTarget(_reader_of("m.xml"), lambda: seeds.files("*.xml")),
    "tflite": FuzzTarget(_reader_of("m.tflite"), lambda: seeds.files("*.tflite")),
    "tensorflow": FuzzTarget(_reader_of("m.pb"), lambda: seeds.files("*.pb")),
    "paddle": FuzzTarget(_reader_of("m.pdmodel"), lambda: seeds.files("*.pdmodel")),
    "answers": FuzzTarget(_read_answer, seeds.answers, is_json=True),
    "settings": FuzzTarget(_read_settings, seeds.settings),
    "baselines": FuzzTarget(_read_baseline, seeds.baselines, is_json=True),
    "npy": FuzzTarget(_read_npy, lambda: seeds.files("*.npy")),
    "names": FuzzTarget(_tell_names, seeds.names),
    "folders": FuzzTarget(_check_named_files, seeds.file_names),
    "api": FuzzTarget(call_api, lambda: iter([bytes(range(64)), bytes(range(64, 128))])),
}
"""What is fuzzed, by name."""
