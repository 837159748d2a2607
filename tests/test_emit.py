"""Source text: what is printed is compiled, run and read, and builds the descriptor that it was made from."""

from __future__ import annotations

import ctypes
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from onnx import TensorProto
from typer.testing import Result

import dml_tile
from dml_tile.back_ends.descriptions import describe
from dml_tile.back_ends.graphs import graph_desc, member_of, numbered
from dml_tile.checking import check
from dml_tile.descriptors.graph import GraphDesc
from dml_tile.descriptors.operator import OperatorDesc
from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.directml.enums import UINT64_MAX, UINT_MAX, OperatorType
from dml_tile.emit.cpp import cpp_text
from dml_tile.emit.source import LanguageName, python_text, source_text
from dml_tile.findings import Severity
from dml_tile.readers.c_structs import read_operator_desc, write_operator_desc
from dml_tile.readers.descriptors import read_document, read_source
from dml_tile.readers.item import Item
from dml_tile.text import json_pointer
from tests.helpers.check_files import GATHER, TILE, write
from tests.helpers.command_line import Call, invoke
from tests.helpers.compilers import (
    COMPILERS,
    WARNINGS,
    compiled,
    needs_compiler,
    stand_in_headers,
    write_operators_header,
)
from tests.helpers.descriptors import GOOD, OPERATOR, page_tile, row
from tests.helpers.kernel_nodes import kernel_node
from tests.helpers.onnx_graphs import tensor, typed
from tests.helpers.paths import EXAMPLES
from tests.helpers.recorded_answers import rows_of
from tests.test_model_nodes import save

HOSTILE: dict[str, OperatorDesc | TileOperatorDesc | None] = {
    "tile": GOOD,
    "tile_input": row("INT64", [1, 2, 1, 2, 1, 2, 1, 2], [2, 1, 2, 1, 2, 1, 2, 1]),
    "Tile": OperatorDesc(type=OperatorType.TILE, desc=row("UINT8", [3], [2], InputTensor__Flags="OWNED_BY_DML")),
    "": row("UINT8", [2, 3], [2, 1], InputTensor__Strides=[4, 1], OutputTensor__Strides=[8, 1]),
    "0": page_tile(
        InputTensor__DataType=99, InputTensor__Flags=6, OutputTensor__Type=7, OutputTensor__DataType=UINT_MAX
    ),
    "class": page_tile(
        InputTensor__TotalTensorSizeInBytes=UINT64_MAX,
        OutputTensor__TotalTensorSizeInBytes=2**63,
        OutputTensor__Sizes=[UINT_MAX] * 8,
        OutputTensor__DimensionCount=8,
        OutputTensor__GuaranteedBaseOffsetAlignment=2**31,
    ),
    "dml_tile": page_tile(InputTensor=None, OutputTensor=None, Repeats=None),
    "ends in \\": page_tile(InputTensor__Desc=None, OutputTensor__Sizes=None),
    "ends in ??/": page_tile(InputTensor__Sizes=[], InputTensor__DimensionCount=0, Repeats=[], RepeatsCount=0),
    "\nint x = broken;\r\x0b\x0c\x85\u2028import broken\n": page_tile(Repeats=[], RepeatsCount=UINT_MAX),
    "*/ /* \"' %s {}": page_tile(RepeatsCount=2, InputTensor__DimensionCount=6, OutputTensor__DimensionCount=9),
    "naïve \u202e☃": OperatorDesc(type=OperatorType.TILE, desc=None),
    "\ud800 alone": OperatorDesc(type=5, desc=None),
    "coding: utf-7": OperatorDesc(type=UINT_MAX, desc=None),
    "-*- __ -*-": None,
    "long " * 10_000: GOOD,
    "a/b~c": page_tile(InputTensor__Type=0),
    "a b c": GOOD,
}
"""Descriptors by names from strangers' files."""
DESCRIBED = [Item(json_pointer(["dispatchables", name]), desc) for name, desc in HOSTILE.items()]
SOURCE = "a file \\??/\n.json"

Descriptor = OperatorDesc | TileOperatorDesc | None


def text_of(language: LanguageName, *descs: Descriptor) -> str:
    return "".join(source_text(language, "a.json", [Item(f"/{i}", desc) for i, desc in enumerate(descs)]))


# C++: a library that has each descriptor twice, in a namespace and in a function.


def defined(text: str) -> list[str]:
    """Return the operators that a C++ text defines, as pointers."""
    found = re.findall(r"^const DML_OPERATOR_DESC(\*?) (?:const )?([A-Za-z]\w*) = ", text, re.MULTILINE)
    return [name if is_pointer else f"&{name}" for is_pointer, name in found]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Return the compiled descriptors of HOSTILE, by their numbers."""
    folder = tmp_path_factory.mktemp("cpp")
    parts = ["".join(source_text("cpp", SOURCE, DESCRIBED))]
    for i, (address, desc) in enumerate(zip(defined(parts[0]), HOSTILE.values(), strict=True)):
        inside = cpp_text(desc, "mine")
        (local,) = defined(inside)
        parts.append(f'extern "C" const DML_OPERATOR_DESC* outer_{i}() {{ return {address}; }}\n')
        parts.append(
            f'extern "C" void inner_{i}(void (*visit)(const DML_OPERATOR_DESC*))\n{{\n{inside}visit({local});\n}}\n'
        )
    (folder / "tiles.cpp").write_text("".join(parts), encoding="ascii")
    options = "-std=c++17", *WARNINGS, *stand_in_headers(), "-shared", "-fPIC"
    compiled(COMPILERS[0], *options, folder / "tiles.cpp", "-o", folder / "tiles.so")
    return ctypes.CDLL(str(folder / "tiles.so"))


@needs_compiler
@pytest.mark.parametrize(("i", "desc"), list(enumerate(HOSTILE.values())), ids=[ascii(name)[:20] for name in HOSTILE])
def test_compiled_cpp_is_read_back_from_its_memory(library: ctypes.CDLL, i: int, desc: Descriptor) -> None:
    operator = OperatorDesc(type=OperatorType.TILE, desc=desc) if isinstance(desc, TileOperatorDesc) else desc
    expected = operator and read_operator_desc(write_operator_desc(operator))
    outer = library[f"outer_{i}"]
    outer.restype = ctypes.c_void_p
    read = [read_operator_desc(outer())]
    visit = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda address: read.append(read_operator_desc(address)))
    library[f"inner_{i}"](visit)
    assert read == [expected] * 2


def test_cpp_reads_as_a_person_would_write_it() -> None:
    lines = cpp_text(row("INT8", [2, 3], [2, 1], InputTensor__Strides=[4, 1]), "rows").splitlines()
    assert lines[:6] == [
        "const UINT rows_input_sizes[] = {2, 3};",
        "const UINT rows_input_strides[] = {4, 1};",
        "const DML_BUFFER_TENSOR_DESC rows_input_buffer = {",
        "    DML_TENSOR_DATA_TYPE_INT8, DML_TENSOR_FLAG_NONE, 2, rows_input_sizes, /*Strides*/ rows_input_strides,",
        "    /*TotalTensorSizeInBytes*/ 8, /*GuaranteedBaseOffsetAlignment*/ 0};",
        "const DML_TENSOR_DESC rows_input_tensor = {DML_TENSOR_TYPE_BUFFER, &rows_input_buffer};",
    ]
    assert lines[-3:] == [
        "const UINT rows_repeats[] = {2, 1};",
        "const DML_TILE_OPERATOR_DESC rows_desc = {&rows_input_tensor, &rows_output_tensor, 2, rows_repeats};",
        "const DML_OPERATOR_DESC rows_operator = {DML_OPERATOR_TILE, &rows_desc};",
    ]


@pytest.mark.parametrize("name", ["1x", "", "a b", "naïve", "a::b"])
def test_a_name_that_is_no_identifier_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"^'{name}' is no identifier; write letters, digits and _"):
        cpp_text(GOOD, name)
    with pytest.raises(TypeError, match="a str was expected, not a range"):
        cpp_text(GOOD, range(2))  # type: ignore[arg-type]


def test_python_builds_equal_descriptors() -> None:
    text = "".join(source_text("python", SOURCE, DESCRIBED))
    names: dict[str, Any] = {}
    exec(compile(text.encode(), "<emitted>", "exec"), names)
    assert names.pop("dml_tile") is dml_tile
    assert [value for name, value in names.items() if name.endswith("_desc")] == list(HOSTILE.values())


def test_python_uses_the_public_names() -> None:
    text = python_text(page_tile(InputTensor__Flags=6), "tile")
    assert text.startswith("tile_desc = dml_tile.TileOperatorDesc(\n    input_tensor=dml_tile.TensorDesc(\n")
    assert "data_type=dml_tile.TensorDataType.FLOAT32,\n            flags=6,\n" in text
    assert set(re.findall(r"dml_tile\.(\w+)", text)) <= set(dml_tile.__all__)


@pytest.mark.parametrize("width", [88, 120])
def test_python_is_formatted_as_ruff_would_do_it(tmp_path: Path, width: int) -> None:
    pytest.importorskip("ruff", reason="ruff is not installed")
    path = tmp_path / "emitted.py"
    path.write_text("".join(source_text("python", SOURCE, DESCRIBED)))
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "--diff", f"--line-length={width}", str(path)]
    assert subprocess.run(command, capture_output=True, check=False, text=True).stdout == ""


def test_json_is_one_value_or_an_array_of_several_with_full_names() -> None:
    assert text_of("json", GOOD).startswith('{\n  "InputTensor": {\n    "Type": "DML_TENSOR_TYPE_BUFFER",\n')
    assert text_of("json") == "[]\n"
    descs = [GOOD, OPERATOR, None]
    read = list(read_document(text_of("json", *descs).encode()))
    assert read == [Item(f"/{i}", desc) for i, desc in enumerate(descs)]


@pytest.mark.parametrize(
    ("keys", "names"),
    [
        (["0", "12"], ["tile_0", "tile_12"]),
        (["my tile", "my-tile", "my_tile_2"], ["my_tile", "my_tile_2", "my_tile_2_2"]),
        (["__x__y", "~/", "☃", ""], ["x_y", "tile", "tile_2", "tile_3"]),
        (["a/b", "x" * 99, "y" * 39 + " z"], ["a_b", "x" * 40, "y" * 39]),
    ],
)
def test_variables_are_named_after_the_end_of_the_json_pointer(keys: list[str], names: list[str]) -> None:
    text = "".join(source_text("python", "a.json", [Item(json_pointer(["", key])) for key in keys]))
    assert re.findall(r"^(\w+)_desc = None$", text, re.MULTILINE) == names


# The command


def emit(*arguments: str, stdin: Any = None) -> Result:
    given = stdin if stdin is None or isinstance(stdin, str | bytes) else json.dumps(stdin)
    return invoke("emit", *arguments, stdin=given)


@pytest.mark.parametrize("language", ["cpp", "json", "python"])
def test_the_tiles_of_a_model_are_printed(language: LanguageName) -> None:
    file = str(EXAMPLES / "tile.json")
    (tile,) = [part for part in read_source(file) if isinstance(part, Item) and part.is_operator]
    result = emit("--lang", language, file)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "".join(source_text(language, file, [tile]))


@pytest.mark.parametrize(
    ("stdin", "name", "names"),
    [(TILE, "halves", ["halves"]), ([TILE, TILE], "halves", ["halves_0", "halves_1"]), (TILE, None, ["tile"])],
)
@pytest.mark.parametrize("language", ["cpp", "python"])
def test_a_name_is_given_to_one_descriptor_and_begins_those_of_several(
    stdin: Any, name: str | None, names: list[str], language: str
) -> None:
    text = emit("--lang", language, *(("--name", name) if name else ()), "-", stdin=stdin).stdout
    assert re.findall(r"(\w+)_desc = (?:\{|dml)", text) == names


@needs_compiler
def test_outputs_with_names_or_namespaces_of_their_own_share_a_file(tmp_path: Path) -> None:
    lowered = "lower", "-", "--format", "cpp", "-t", "2_0"
    outputs = [
        emit("--lang", "cpp", "-", *options, stdin=TILE)
        for options in ([], ["--name", "a"], ["--namespace", "b"], ["--name", "a", "--namespace", "b::c"])
    ] + [invoke(*lowered, *options, stdin=json.dumps(TILE)) for options in ([], ["--namespace", "d", "--name", "a"])]
    (tmp_path / "all.cpp").write_text("".join(output.stdout for output in outputs))
    compiled(COMPILERS[0], "-std=c++11", *WARNINGS, *stand_in_headers(), "-fsyntax-only", tmp_path / "all.cpp")


def test_json_lines_and_what_directml_refuses_are_printed_the_same_again() -> None:
    refused = TILE | {"Repeats": None, "RepeatsCount": 1}
    result = emit("--lang", "json", "-", stdin=f"{json.dumps(refused)}\n{json.dumps(TILE)}\n")
    assert result.exit_code == 0
    assert [desc["Repeats"] for desc in json.loads(result.stdout)] == [None, [1]]
    assert emit("--lang", "json", "-", stdin=result.stdout).stdout == result.stdout


CLASSIFIER = EXAMPLES / "models" / "classifier.onnx"
NEGATIVE = [TILE, TILE | {"Repeats": [-1]}]
GRAPH = {"InputCount": 1, "OutputCount": 1}


@pytest.mark.parametrize(
    ("arguments", "stdin", "message"),
    [
        ("--lang cpp --name 1x -", TILE, "--name: '1x' is no identifier"),
        ("--lang cpp --namespace a:: -", TILE, "--namespace: '' is no identifier"),
        ("--lang json --name a -", TILE, "--name: it is for cpp and python, not json"),
        ("--lang python --namespace a -", TILE, "--namespace: it is for cpp, not python"),
        ("--lang cpp -", NEGATIVE, "-:1:129#/1: Repeats[0] is -1; an integer from 0 to 4294967295 was expected"),
        ("--lang cpp -", [{"Type": "GEMM", "Desc": None}, 7], "dml-tile: -:1:34#/1: 7 was provided, but a tile"),
        ("--lang cpp -", "{", "dml-tile: -:1:1: unreadable JSON: EOF"),
        ("--lang cpp -", f"{json.dumps(TILE)}\n{{\n", "dml-tile: -:2: unreadable JSON: EOF"),
        ("--lang cpp -", b"\xff", "dml-tile: -:1:1: unreadable JSON"),
        ("--lang cpp missing.json", None, "dml-tile: missing.json: No such file or directory\n"),
        ("--lang cpp model.onnx", None, "`dml-tile lower --format cpp` builds the tiles of models"),
        ("a.json", None, "--lang"),
        ("--lang rust a.json", None, "--format': 'rust' is not one of 'cpp', 'json', 'python'."),
        ("--lang cpp --target 2_0 -", TILE, "targets, sizes and --graph are for --via ort"),
        ("--lang json --dim x=1 -", TILE, "--via"),
        ("--lang cpp", None, "FILE"),
        ("--lang json --via ort -", TILE, "--via ort takes ONNX models"),
        ("--lang json MODEL", None, "`--via ort --lang json` describes their nodes"),
        ("--lang json --via chromium MODEL", None, "--via ort --lang json"),
        ("--lang python --via ort MODEL", None, "--via ort --lang json"),
        ("--lang cpp --via ort --graph MODEL", None, "--graph: it is for json"),
        ("--lang json --via ort --dim x=1 MODEL", None, "names a dimension 'x'"),
        ("--lang json --via ort -t onnxruntime-directml-1.11 MODEL", None, "opset 22: onnxruntime 1.11 loads up to 16"),
    ],
)
def test_nothing_is_printed_where_an_option_or_a_part_is_wrong(
    call: Call, arguments: str, stdin: Any, message: str
) -> None:
    result = emit(*arguments.replace("MODEL", str(CLASSIFIER)).split(), stdin=stdin)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


@pytest.mark.parametrize("language", ["cpp", "json", "python"])
def test_other_operators_and_graphs_of_them_are_named_and_left_out_in_each_language(language: LanguageName) -> None:
    graph = GRAPH | {"Nodes": [None, {"Operator": TILE}, {"Operator": GATHER}]}
    of_tiles = GRAPH | {"Nodes": [{"Operator": TILE}, None]}
    constant = GRAPH | {"Nodes": [{"Type": "CONSTANT", "Operator": None, "DataSize": 4}]}
    result = emit("--lang", language, "-", stdin=[GATHER, {"Type": 53, "Desc": None}, graph, of_tiles, constant])
    assert result.exit_code == 1
    built = Item("/3", dml_tile.GraphDesc.model_validate(of_tiles))
    assert result.stdout == "".join(source_text(language, "-", [built]))
    assert result.stderr.splitlines() == [
        "dml-tile: -#/0: DML_OPERATOR_GATHER is not a tile; it is left out",
        "dml-tile: -#/1: DML_OPERATOR_CONVOLUTION is not a tile; it is left out",
        "dml-tile: -#/2: Nodes[2] is DML_OPERATOR_GATHER, which is not a tile; the graph is left out",
        "dml-tile: -#/4: Nodes[0] is a constant, which is not a tile; the graph is left out",
    ]
    with pytest.raises(ValueError, match=r"^Nodes\[0\] is a constant"):
        cpp_text(dml_tile.GraphDesc.model_validate(constant), "mine")


def test_python_builds_a_captured_graph_of_tiles_too() -> None:
    line = {"dml_tile_capture": 1, "hresult": None, "session": "0x1", "feature_level": "0x00006200"}
    called = (
        {"operator": {"Type": 70, "Desc": TILE}, "call": 1},
        {"graph": GRAPH | {"Nodes": [{"Operator": 1}]}, "call": 2},
    )
    result = emit("--lang", "python", "-", stdin="".join(f"{json.dumps(line | each)}\n" for each in called))
    assert (result.exit_code, result.stderr) == (0, "")
    names: dict[str, Any] = {}
    exec(result.stdout, names)
    assert names["graph_desc"] == dml_tile.GraphDesc.model_validate(GRAPH | {"Nodes": [{"Operator": TILE}]})


def described(*options: str, model: str = str(CLASSIFIER), language: str = "json") -> Result:
    return emit(model, "--via", "ort", "--lang", language, *options)


def test_emit_prints_the_operators_of_a_model_as_lines_that_check_reads(call: Call) -> None:
    result = described("--dim", "batch=2")
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.exit_code == 0
    assert [line["label"] for line in lines][-1] == "8 Softmax 'softmax'"
    assert lines[-1]["operator"]["Type"] == "DML_OPERATOR_ACTIVATION_SOFTMAX1"
    checked = call("check", write("model.jsonl", result.stdout), "-t", "windows-11-23h2,6_4")
    assert f"{len(lines)} operators: 1 refused" in checked.stdout
    assert "Softmax 'softmax'" in checked.stdout


def test_emit_prints_the_graphs_of_a_model_that_check_reads(call: Call) -> None:
    text = "a = Abs(x); n = RandomNormalLike(a); b = Softmax(a); c = Mul(b, half); y = Add(c, n); z = NonZero(y)"
    half = tensor("half", [0.5], "float32")
    result = described("--graph", model=save(text, "a.onnx", initializer=[half]))
    first, second = [GraphDesc.model_validate_json(line) for line in result.stdout.splitlines()]
    names = [[node.name for node in graph.nodes or () if node] for graph in (first, second)]
    assert names == [["0 Abs", "2 Softmax", "3 Mul", "3 Mul input 1"], ["4 Add"]]
    assert (first.input_count, first.output_count, second.input_count) == (1, 2, 2), "others read Abs and Mul"
    assert result.exit_code == 1
    assert "#5: NonZero is not described: its kernel is part of no graph" in result.stderr
    checked = call("check", write("graphs.jsonl", result.stdout), "-t", "onnxruntime-directml-1.24.4,6_1")
    assert "2 operators: 1 refused" in checked.stdout
    assert "Nodes[3].Type: DML_GRAPH_NODE_TYPE_CONSTANT needs DML_FEATURE_LEVEL_6_2" in checked.stdout


def test_emit_says_why_a_node_has_no_operators_or_is_part_of_no_graph(call: Call) -> None:
    result = described()
    assert (result.exit_code, result.stdout) == (1, "")
    said = "#8: Softmax is known at run time only: the shape of scores; it creates ACTIVATION_SOFTMAX1"
    assert said in result.stderr
    path = save("z = Sum(x, x, x); y = Relu(u)", "a.onnx", inputs=[typed("x", [2, 3]), typed("u", ["N", 3])])
    result = described("--graph", "--dim", "N=2", model=path)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.count("its kernel is part of no graph") == 2
    result = described("--graph", model=save("y = Relu(x); z = Abs(x)", "b.onnx"))
    assert (result.exit_code, result.stdout.count("\n")) == (1, 1)
    assert "#0: Relu is not described: nothing reads its outputs" in result.stderr


def test_what_nodes_in_a_function_s_place_compute_of_initialisers_is_no_constant(call: Call) -> None:
    scores, labels = tensor("s", [[0.5] * 5] * 3, "float32"), typed("t", [3], TensorProto.INT64)
    model = save("y = SoftmaxCrossEntropyLoss(s, t)", "a.onnx", inputs=[labels], initializer=[scores])
    graphs = described("--graph", model=model).stdout
    assert "LogSoftmax" in graphs
    checked = call("check", write("graphs.jsonl", graphs), "-t", "onnxruntime-directml-1.24.4")
    assert "refused" not in checked.stdout


def test_a_kernel_of_several_operators_is_a_graph_of_them() -> None:
    described = "com.microsoft:QuickGelu-1 alpha=1.5: float32[2,3] -> float32[2,3]"
    node = numbered(kernel_node(described))
    graph = GraphDesc.model_validate(graph_desc([member_of("gelu", node, describe(node), ["x", "y"])]))
    edges = [(each.from_node_index, each.to_node_index) for each in graph.intermediate_edges or () if each]
    assert (graph.node_count, graph.input_count, graph.output_count, len(edges)) == (3, 1, 1, 2)
    assert not [each for each in check(graph, "6_4") if each.severity is Severity.ERROR]


def test_cpp_builds_the_operators_of_a_model(call: Call) -> None:
    result = described("--dim", "batch=2", "--namespace", "model", language="cpp")
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[:2] == ["#include <limits>", "#include <DirectML.h>"]
    assert f"// {CLASSIFIER}#8 Softmax 'softmax':" in lines
    assert "const DML_OPERATOR_DESC node_8_operator = {DML_OPERATOR_ACTIVATION_SOFTMAX1, &node_8_desc};" in lines
    named = described("--dim", "batch=2", "--name", "mine", language="cpp").stdout
    without_namespace = re.sub(r"\n(namespace model {|}  // namespace model)\n", "", result.stdout)
    assert named == without_namespace.replace("node_", "mine_")


@needs_compiler
def test_compiled_cpp_of_any_operator_is_read_back_from_its_memory(tmp_path: Path) -> None:
    rows = rows_of("described_operators.jsonl.xz") + rows_of("executed_operators.jsonl.xz")[::8]
    written = [OperatorDesc.model_validate(row["desc"]) for row in rows[::3]]
    write_operators_header(tmp_path)
    texts = [cpp_text(desc, f"it{i}") for i, desc in enumerate(written)]
    addresses = ", ".join(f"&it{i}_operator" for i in range(len(written)))
    texts.append(f'extern "C" const DML_OPERATOR_DESC* const all[] = {{{addresses}}};\n')
    (tmp_path / "all.cpp").write_text("\n".join(["#include <limits>", "#include <DirectML.h>", *texts]))
    options = "-std=c++11", *WARNINGS, f"-I{tmp_path}", "-shared", "-fPIC"
    compiled(COMPILERS[0], *options, tmp_path / "all.cpp", "-o", tmp_path / "all.so")
    found = (ctypes.c_void_p * len(written)).in_dll(ctypes.CDLL(str(tmp_path / "all.so")), "all")
    for address, desc in zip(found, written, strict=True):
        assert read_operator_desc(address) == read_operator_desc(write_operator_desc(desc))
