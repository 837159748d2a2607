"""Documents and models that are built to cost much: time, memory and output are bounded, as docs/limits.md says."""

from __future__ import annotations

import json
import pkgutil
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import islice, product
from pathlib import Path
from time import process_time
from typing import Any, Final

import pytest
from pydantic import BaseModel, ConfigDict, ValidationError

import dml_tile
from dml_tile import input_errors
from dml_tile.back_ends import kernels
from dml_tile.checking import check
from dml_tile.checks import baseline, files
from dml_tile.cli import config
from dml_tile.descriptors.graph import GraphDesc, InputGraphEdge, OutputGraphEdge
from dml_tile.descriptors.structs import Struct
from dml_tile.descriptors.tile import BufferTensorDesc, TileOperatorDesc
from dml_tile.device.plans import plan_of_graph
from dml_tile.directml.operator_table import tables_of
from dml_tile.directml.operators import operator_named
from dml_tile.directml.targets import DEFAULT_TARGET
from dml_tile.dxdispatch import resources, runner
from dml_tile.dxdispatch.model import MAX_BOUND, read_model
from dml_tile.errors import InputError
from dml_tile.execution import call
from dml_tile.files import paths, repository, whole
from dml_tile.findings import Finding, unreadable
from dml_tile.geometry import layout
from dml_tile.input_errors import MAX_KEYS, MAX_PROBLEMS_COUNTED, Record
from dml_tile.readers import contents, model_tile, sources
from dml_tile.readers.descriptors import read_document
from dml_tile.readers.item import MAX_OPERATOR, Item
from dml_tile.readers.onnx import file, folding, functions
from dml_tile.readers.sandbox import parent
from dml_tile.reports import bounds
from dml_tile.rules import shapes
from dml_tile.rules.equations import code
from dml_tile.text import MAX_NAME
from tests.helpers.costs import BYTES_PER_BYTE, SECONDS_PER_BYTE, at_most, cost_of, grows_at_most
from tests.helpers.dxdispatch_models import Json, dispatch, model, show, write_file, zeros
from tests.helpers.paths import ROOT

FLAT = {"DataType": "FLOAT32", "Sizes": [2]}
TILE = {"InputTensor": FLAT, "OutputTensor": FLAT, "Repeats": [1], "RepeatsCount": 1}
MORE_MEMORY = 50 * 2**20
NUMBERED = dict.fromkeys(map(str, range(100_000)), 1)


@pytest.mark.long
def test_a_graph_of_many_inputs_and_outputs_is_compiled_in_linear_time() -> None:
    tile = TileOperatorDesc.from_input(data_type="FLOAT32", sizes=[2], repeats=[1])

    def seconds(count: int) -> float:
        graph = GraphDesc(
            input_count=count,
            output_count=count,
            nodes=[tile] * count,
            input_edges=[InputGraphEdge(graph_input_index=i, to_node_index=i) for i in range(count)],
            output_edges=[OutputGraphEdge(from_node_index=i, graph_output_index=i) for i in range(count)],
        )
        before = process_time()
        plan_of_graph(graph, DEFAULT_TARGET)
        return process_time() - before

    assert grows_at_most(15, lambda: seconds(1000), lambda: seconds(10_000), floor=0.1)


def test_nulls_of_a_list_or_of_lines_are_reported_once_with_their_number() -> None:
    for text in (b"[null, %s, null, null]", b"null\n%s\nnull\n\nnull\n"):
        first, tile, more = read_document(text % json.dumps(TILE).encode())
        assert first == Item("/0")
        assert isinstance(tile, Item)
        assert more == unreadable("", "2 more descriptors are null")
    operators = read_document(b'[{"Type": 70, "Desc": null}, {"Type": 70, "Desc": null}, null]')
    assert all(isinstance(part, Item) for part in operators)


def test_only_as_many_repeats_as_a_tensor_may_have_dimensions_are_findings() -> None:
    (tile,) = read_document(json.dumps(TILE | {"Repeats": [0] * 99, "RepeatsCount": 99}).encode())
    assert isinstance(tile, Item)
    found = [finding.path for finding in check(tile.desc) if finding.rule == "DML-TILE-Repeats-zero"]
    assert found == [f"Repeats[{i}]" for i in range(8)]


def test_of_too_many_problems_the_rest_of_a_source_is_not_read() -> None:
    counted = [*read_document(b"[%s[]]" % (b"[]," * (MAX_PROBLEMS_COUNTED - 1)))]
    assert counted[-1] == unreadable("", f"and {MAX_PROBLEMS_COUNTED - 100} more problems")
    text = b"[%s%s]" % (b"[]," * (MAX_PROBLEMS_COUNTED + 1), json.dumps(TILE).encode())
    *told, last = read_document(text)
    assert len(told) == 100
    assert last == unreadable("", f"and more than {MAX_PROBLEMS_COUNTED - 100} more problems; the rest is not read")


@pytest.mark.parametrize(
    ("count", "more"), [(9, f"{MAX_PROBLEMS_COUNTED - 1}"), (10, f"at least {MAX_PROBLEMS_COUNTED}")]
)
def test_of_too_many_problems_the_rest_of_a_model_is_not_read(count: int, more: str) -> None:
    with pytest.raises(InputError) as caught:
        read_model(model(commands=[1] * (MAX_PROBLEMS_COUNTED + count)))
    assert caught.value.problems[-1].message == f"and {more} more problems"


@pytest.mark.parametrize(("bound", "where"), [("tensors", ""), ("resources", "/InputTensors")])
def test_bindings_name_no_more_than_any_operator_has(bound: str, where: str) -> None:
    def joined(count: int) -> Any:
        several = {f"X{i}": "In" for i in range(count)} if bound == "tensors" else {"InputTensors": ["In"] * count}
        return model(dispatchables={"join": {"type": "JOIN", "desc": {}}}, commands=[dispatch("join", **several)])

    read_model(joined(MAX_BOUND))
    with pytest.raises(InputError, match=f"/bindings{where}: {MAX_BOUND + 1} {bound} are bound; at most {MAX_BOUND} w"):
        read_model(joined(MAX_BOUND + 1))


# Models that read files stop at the first wrong value of a list, and report no unknown key where there are many

ONLY_WRITTEN = ("dml_tile.reports.json", "dml_tile.back_ends.chromium", "dml_tile.checks.devices")
"""The modules whose models read nothing."""

READ_ONE_BY_ONE = {"resources", "dispatchables", "commands", "bindings", "per_file_ignores"}
"""Fields of DxDispatch's models whose parts are read one by one, until there are too many problems; a setting of which
pyproject.toml has room for few."""

WRONG = [object()] * 1000


def subclasses(kind: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for each in kind.__subclasses__():
        yield each
        yield from subclasses(each)


def models() -> list[type[BaseModel]]:
    for module in pkgutil.walk_packages(dml_tile.__path__, "dml_tile."):
        if not module.name.endswith(("__main__", ".readers.openvino")):  # which needs a package, and has no models
            import_module(module.name)
    found = {each for each in subclasses(BaseModel) if each.__module__.startswith("dml_tile.")}
    return sorted((each for each in found if each.__module__ not in ONLY_WRITTEN), key=lambda each: each.__qualname__)


def errors_of(model: type[BaseModel], field: str, value: Any) -> int:
    """Return how many errors a model has of a field's value; readers refuse C structs of many keys before."""
    try:
        model.model_validate({field: value})
    except ValidationError as error:
        return sum(one["type"] != "extra_forbidden" for one in error.errors())
    return 0


def test_a_list_from_a_file_is_read_up_to_its_first_wrong_value() -> None:
    values = (WRONG, dict.fromkeys(map(str, range(1000)), object()), {"x": WRONG}, [WRONG], [{"x": WRONG}])
    for kind in models():
        for name in kind.model_fields.keys() - READ_ONE_BY_ONE:
            alias = kind.model_fields[name].alias or name
            assert all(errors_of(kind, alias, value) <= MAX_KEYS for value in values), (kind, name)


def test_an_object_from_a_file_has_few_errors_for_unknown_keys() -> None:
    """Others ignore unknown keys; the readers of C structs refuse many, as tried below."""
    for kind in models():
        assert kind.model_config.get("extra") != "forbid" or issubclass(kind, Record | Struct), kind


def test_a_list_of_flags_is_read_up_to_its_first_wrong_value_too() -> None:
    read: list[str] = []

    class Word(str):
        def __hash__(self) -> int:
            read.append(self)
            return super().__hash__()

    assert errors_of(BufferTensorDesc, "Flags", [Word("no such flag")] * 1000)
    assert len(read) < 10


@pytest.mark.parametrize(
    ("data", "where"),
    [
        (TILE | NUMBERED, ""),
        (TILE | {"InputTensor": FLAT | NUMBERED}, "InputTensor: "),
        ({"Type": "TILE", "Desc": TILE | {"OutputTensor": {"Desc": FLAT | NUMBERED}}}, "OutputTensor.Desc: "),
        ({"InputCount": 1, "OutputCount": 1, "Nodes": [{"Operator": TILE | NUMBERED}]}, "Nodes[0].Operator: "),
    ],
)
def test_an_object_of_too_many_keys_is_refused_wherever_it_stands(data: Any, where: str) -> None:
    (problem,) = read_document(json.dumps(data).encode())
    assert isinstance(problem, Finding)
    assert re.fullmatch(
        rf"{re.escape(where)}[0-9]+ keys were provided; at most {MAX_KEYS} were expected", problem.message
    )


@pytest.mark.parametrize("strict", [True, False])
def test_of_many_keys_none_is_reported(strict: bool) -> None:
    class One(Record):
        model_config = ConfigDict(strict=strict)
        key: int = 0

    for count, errors in ((MAX_KEYS, MAX_KEYS), (MAX_KEYS + 1, 1), (10**5, 1)):
        with pytest.raises(ValidationError) as caught:
            One.model_validate({f"{i}": 1 for i in range(count)})
        assert caught.value.error_count() == errors


# Runs of DxDispatch models


def only(resource: Json, *commands: Json) -> Json:
    return model(resources={"R": resource}, dispatchables={}, commands=list(commands))


@pytest.mark.parametrize(
    ("size", "paths", "is_allowed"),
    [
        (2**14, ["a.bin"], True),
        (2**14 + 4, ["a.bin"], False),
        (2**13, ["a.bin", "b.bin"], True),
        (2**13 + 4, ["a.bin", "a.bin"], False),
        (1, ["a", "b", "c", "d"], True),
        (1, ["a", "b", "c", "d", "e"], False),
        (1, ["a/b/c/d"], True),
        (1, ["a/b/c/d/e"], False),
    ],
)
def test_files_and_folders_that_would_take_too_many_bytes_are_refused_before_the_run(
    run: Callable[..., str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    size: int,
    paths: list[str],
    is_allowed: bool,
) -> None:
    monkeypatch.setattr(runner, "MAX_WRITTEN_BYTES", 2**14)
    data = only(zeros(size, "UINT8"), show("R"), *(write_file("R", path) for path in paths))
    if is_allowed:
        assert run(data).count(" written to ") == len(paths)
    else:
        with pytest.raises(
            InputError, match=rf"^/commands/{len(paths)}/resource: the model would write more than 16384"
        ):
            run(data)
        assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("options", [{}, {"verbose": True}], ids=["one line", "verbose"])
@pytest.mark.parametrize("as_dxdispatch", [False, True])
def test_what_is_printed_has_a_bound_and_the_rest_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Callable[..., str], options: Json, as_dxdispatch: bool
) -> None:
    count, printed = 3 * 4096, show("R", **options)
    text = run(only(zeros(count), printed), as_dxdispatch=as_dxdispatch)
    room = len(text) + len(text) // 2
    monkeypatch.setattr(runner, "MAX_PRINTED_BYTES", room)
    assert run(only(zeros(count), printed), as_dxdispatch=as_dxdispatch) == text
    data = only(zeros(count), printed, printed, write_file("R", "after.bin"), show("R"))
    message = rf"^/commands/1: the model prints more than {room} bytes; {2 * 4096 + count} values were left out$"
    with pytest.raises(InputError, match=message):
        run(data, as_dxdispatch=as_dxdispatch)
    assert (tmp_path / "after.bin").stat().st_size == 4 * count, "the commands after it are run"


@pytest.mark.long
def test_a_small_model_prints_64_mebibytes_and_writes_a_gibibyte_at_most(tmp_path: Path) -> None:
    printing = only(zeros(2**26), *[show("R")] * 3)
    writing = only(zeros(2**29, "UINT8"), *[write_file("R", f"{i}.bin") for i in range(3)])
    costs = []
    for data in (printing, writing):
        (tmp_path / "m.json").write_text(json.dumps(data))
        costs.append(cost_of("run", "m.json", folder=tmp_path))
        assert costs[-1].status == 2
        assert [path.name for path in tmp_path.iterdir()] == ["m.json"]
    printed, written = costs
    assert len(printed.printed) <= runner.MAX_PRINTED_BYTES + 200
    assert b"values were left out" in printed.printed[-200:]
    assert printed.is_within(30)
    assert printed.peak_bytes < 2**28 + 2**29
    assert b"m.json#/commands/2/resource: the model would write more than 1073741824 bytes" in written.printed


# The figures of docs/limits.md


UNITS: Final = {"KiB": 10, "MiB": 20, "GiB": 30}
BOUNDS: Final[dict[str, tuple[int, ...]]] = {
    "a JSON document, or a line of JSON lines, and its nesting": (contents.MAX_DOCUMENT_BYTES,),
    "the resources of a DxDispatch model, with the copies that tiles own": (resources.MAX_RESOURCE_BYTES,),
    "problems reported": (input_errors.MAX_PROBLEMS, input_errors.MAX_PROBLEMS_OF_A_SOURCE, MAX_PROBLEMS_COUNTED),
    "in reports": (MAX_NAME, bounds.MAX_MESSAGE, MAX_OPERATOR, bounds.MAX_FINDINGS, bounds.MAX_FIELDS),
    "tensors that one `bindings` names, resources of one of them": (MAX_BOUND,),
    "keys of an object of a descriptor, a baseline or a captured line": (MAX_KEYS,),
    "differences of addresses looked at for whether an output's elements share one": (layout.MAX_DIFFERENCES,),
    "pyproject.toml": (config.MAX_SETTINGS_BYTES, config.MAX_KEY_PARTS, config.MAX_ENTRIES, config.MAX_TARGETS),
    "the parts of a pattern, and of a path that a file names": (paths.MAX_PARTS,),
    "a baseline, a list of files": (baseline.MAX_BASELINE_BYTES, files.MAX_LIST_BYTES),
    "a .gitignore": (repository.MAX_GITIGNORE_BYTES, repository.MAX_PATTERNS),
    "for each byte of a JSON document": (round(SECONDS_PER_BYTE * 1e6), BYTES_PER_BYTE),
    "dimensions of a model's tile": (model_tile.MAX_DIMENSIONS,),
    "reading one model": (parent.MAX_SECONDS, parent.MAX_MEMORY_BYTES),
    "the answer about one model": (parent.MAX_ANSWER_BYTES,),
    "an ONNX file": (file.MAX_MODEL_BYTES + 1, file.MAX_ELEMENTS),
    "from the 100th model of 1,000 nodes to the 1,000th": (MORE_MEMORY,),  # which tests/test_report_nodes.py measures
    "of an ONNX model, what calls": (functions.MAX_NODES, functions.MAX_BYTES, functions.DEEPEST),
    "of an ONNX model, nodes": (folding.MAX_FOLDED_NODES, folding.MAX_COST),
    "a file that `sweep` gets opened": (sources.MAX_STORED_BYTES + 1,),
    "waiting for a pipe that is named as a file": (whole.MAX_SECONDS_WITHOUT_WRITER,),
    "executing an operator": (call.MAX_BYTES, call.MAX_STEPS),
    "`run`: the bytes that its dispatches write, together": (runner.MAX_MOVED_BYTES,),
    "`run`: its files": (runner.MAX_WRITTEN_BYTES,),
    "`run`: what it prints": (runner.MAX_PRINTED_BYTES,),
}
"""The first words of each row of the table, and the constants that its figures begin with."""


def test_the_bounds_of_the_page_are_those_of_the_code() -> None:
    _, _, page = (ROOT / "docs/limits.md").read_text(encoding="utf-8").partition("| what | at most |")
    rows = re.findall(r"^ +\| ([^|]*) \| ([^|]*) \|$", page, re.MULTILINE)
    for (name, text), (words, constants) in zip(rows, BOUNDS.items(), strict=True):
        figures = [
            int(figure.replace(",", "")) ** int(power or 1) * 2 ** UNITS.get(unit, 0)
            for figure, power, unit in re.findall(r"([\d,]*\d)(?:\^(\d+))?(?: ([KMG]iB))?", text)
        ]
        assert name.startswith(words)
        assert tuple(figures[: len(constants)]) == constants, name


def test_names_of_operators_that_no_release_has_are_not_remembered() -> None:
    kernels.queried_attributes("", "Tile")  # reads the table
    with at_most(2**16):
        assert not any(kernels.queried_attributes("", f"Unknown{i}") for i in range(5000))


def test_the_tests_of_shapes_are_shared_by_dimension_counts() -> None:
    operator = operator_named("LSTM")
    assert operator is not None
    ((_, table),) = tables_of(operator)
    before = code.cache_info().currsize
    for counts in islice(product(range(1, 9), repeat=3), 400):
        ranks = tuple(zip(operator.tensors, counts, strict=False))
        shapes._plan(operator, table, ranks, tuple(0 for _ in shapes._choosers(table)))
    assert code.cache_info().currsize - before < 100
