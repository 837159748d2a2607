"""What the C++ headers write of any operator and of graphs, and how their lines are read."""

from __future__ import annotations

import ctypes
import json
import re
import subprocess
from collections.abc import Callable
from ctypes import addressof
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings

from dml_tile.descriptors.operator import OperatorDesc, OperatorFields
from dml_tile.directml.operators import operator_named, operators
from dml_tile.emit.cpp import get_include
from dml_tile.readers.c_structs import write_operator_desc
from dml_tile.readers.descriptors import read_document
from dml_tile.readers.item import Item
from docs.generator.cpp_fields import cpp_fields
from tests.helpers.command_line import Call, errors_of
from tests.helpers.compilers import (
    COMPILERS,
    EACH_HEADERS,
    compiled,
    needs_compiler,
    real_headers,
    stand_in_headers,
    write_operators_header,
)
from tests.helpers.paths import EXAMPLES, ROOT
from tests.helpers.rule_cases import quantize
from tests.test_operator_desc import descriptors

CAPTURE = """
#include <dml_tile/capture.h>
#include <string>
static std::string last;
extern "C" const char* captured(const DML_OPERATOR_DESC* desc)
{
    dml_tile::capture([](const char* line, std::size_t size) { last.assign(line, size); }, desc);
    return last.c_str();
}
"""
LINES = [
    line.replace('"null_device":true,', "") if i % 2 == 0 else line.replace("null", '"0x00000000"')
    for i, line in enumerate((EXAMPLES / "operators.jsonl").read_text().splitlines())
]
"""The example, as if a real device had taken each call."""


def test_cpp_has_the_strings_of_the_table() -> None:
    assert Path(get_include(), "dml_tile", "operator_fields.h").read_text(encoding="utf-8") == cpp_fields()
    strings = [line.fields_text for line in operators().values()]
    assert all(string.count(",") < 32 for string in strings), "capture.h keeps the offsets of 32 fields"


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], OperatorDesc | None]:
    """Return what a line says that the header writes of the struct at an address."""
    folder = tmp_path_factory.mktemp("capture")
    (folder / "capture.cpp").write_text(CAPTURE)
    options = ["-std=c++11", "-shared", "-fPIC", *stand_in_headers()]
    compiled(COMPILERS[0], *options, folder / "capture.cpp", "-o", folder / "c.so")
    library = ctypes.CDLL(str(folder / "c.so"))
    library.captured.argtypes, library.captured.restype = [ctypes.c_void_p], ctypes.c_char_p

    def captured(address: int) -> OperatorDesc | None:
        (part,) = read_document(library.captured(address))
        assert isinstance(part, Item), part
        assert isinstance(part.desc, OperatorDesc | None)
        return part.desc

    return captured


@needs_compiler
@pytest.mark.long
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(desc=descriptors())
def test_a_line_holds_any_operator_s_fields(capture: Callable[[int], OperatorDesc | None], desc: OperatorDesc) -> None:
    struct = write_operator_desc(desc)
    assert capture(addressof(struct)) == desc


@needs_compiler
@pytest.mark.long
def test_counts_are_bounded_before_they_are_walked(capture: Callable[[int], OperatorDesc | None]) -> None:
    values = (ctypes.c_uint64 * 4)(2**32 - 1, 16, 0, 0)  # a JOIN of as many tensors as a UINT counts, at no address
    join = operator_named("JOIN")
    assert join
    struct = (ctypes.c_uint64 * 2)(join.value, addressof(values))
    desc = capture(addressof(struct))
    assert desc is not None
    assert isinstance(desc.desc, OperatorFields)
    assert (desc.desc["InputCount"], desc.desc["InputTensors"]) == (2**32 - 1, ())


@needs_compiler
@pytest.mark.long
@pytest.mark.parametrize("headers", EACH_HEADERS)
@pytest.mark.parametrize("compiler", COMPILERS)
def test_fields_are_where_the_compiler_puts_them(tmp_path: Path, compiler: str, headers: list[str]) -> None:
    checks = [
        f'check({operator.value}, {i}, offsetof({operator.struct}, {field.name}), "{operator.name}.{field.name}");'
        for operator in operators().values()
        for i, field in enumerate(operator.fields)
    ]
    assert len(checks) == 917
    source, program = tmp_path / "offsets.cpp", tmp_path / "offsets"
    write_operators_header(tmp_path)
    lines = "\n".join(checks)
    source.write_text(f"""
#include <dml_tile/capture.h>
static void check(unsigned type, int index, std::size_t offset, const char* name)
{{
    dml_tile::detail::Fields field(dml_tile_fields::of_operator(type), nullptr);
    while (index-- >= 0) {{ field.next(); }}
    if (field.offset() != offset) {{ std::printf("%s\\n", name); }}
}}
namespace table
{{
{"" if headers == real_headers() else f'#include "{tmp_path}/DirectML.h"'}
static void check_all()
{{
{lines}
}}
}}
int main() {{ table::check_all(); }}
""")
    compiled(compiler, "-std=c++17", "-Wno-invalid-offsetof", *headers, source, "-o", program)
    assert subprocess.run([program], capture_output=True, check=True, text=True, timeout=60).stdout == ""


def read(*lines: str) -> list[Any]:
    return list(read_document("\n".join(lines).encode()))


def test_two_lines_make_one_call(check: Call) -> None:
    parts = read(*LINES)
    assert [part.pointer for part in parts] == ["/0/operator", "/2/operator", "/4/operator", "/6/graph"]
    assert all(part.capture.hresult == 0 and not part.capture.open for part in parts)
    shared = parts[3].desc.nodes[1].operator
    assert shared is parts[1].desc, "the operators of a graph are not copied"
    opened = "\n".join(LINES[:3])
    printed = check("-", "-t", "6_2", stdin=opened).stdout
    assert "warning[DML-CAPTURE-open]" in printed
    assert printed.count("CreateOperator has not returned") == 1


def test_sessions_are_told_apart_and_a_label_is_shown(check: Call) -> None:
    line = json.loads(LINES[0])
    (one,) = read(json.dumps(line | {"label": "encoder"}))
    assert one.capture.label == "encoder"
    other = json.dumps({"dml_tile_capture": 1, "hresult": "0x00000000", "session": "other", "call": 1})
    result = check("-", stdin=f"{LINES[0]}\n{other}\n")
    assert "completes a call that no line before it describes" in result.stderr
    assert "encoder: GATHER InputTensor" in check("-", stdin=json.dumps(line | {"label": "encoder"}) + "\n").stdout


REFUSED: Final = LINES[2].replace('"Repeats":[1,1,1,2]', '"Repeats":[1,1,1,3]')
REFUSAL: Final = LINES[3].replace("0x00000000", "0x80070057")


@pytest.mark.parametrize(
    "lines",
    [
        (LINES[2], REFUSED),
        (REFUSED, LINES[2], LINES[3], LINES[3]),
        (LINES[2], REFUSED, LINES[3], REFUSAL),
        (LINES[2], LINES[3], REFUSED, REFUSAL),
    ],
    ids=["without answers", "at once", "answers in order", "one after the other"],
)
def test_a_call_that_two_lines_begin_keeps_both_operators(check: Call, lines: tuple[str, ...]) -> None:
    """As two processes wrote them in one session; which of them a graph's node names is unknown."""
    graph = LINES[6].replace('"Operator":1', '"Operator":2').replace('"Operator":3', '"Operator":2')
    result = check("-", "-t", "6_2", stdin="\n".join([*lines, graph, LINES[7]]))
    assert result.exit_code == 2
    second = max(lines.index(LINES[2]), lines.index(REFUSED))
    assert f"-:{second + 1}: call is 2" in result.stderr
    assert "3 operators: 1 refused, 1 accepted in part, 1 accepted" in result.stdout
    assert "Nodes[0].Operator" in result.stdout
    assert "completes a call" not in result.stderr
    assert "DML-CAPTURE-HRESULT" not in result.stdout


@pytest.mark.parametrize("order", ["operator", "graph"])
def test_a_line_with_an_operator_and_a_graph_is_unreadable(check: Call, order: str) -> None:
    both = json.loads(REFUSED) | json.loads(LINES[6])
    both = {order: both.pop(order)} | both
    errors = errors_of(check, "-", "-t", "6_2", stdin="\n".join([*LINES[:2], json.dumps(both)]))
    assert "-:3: operator and graph were provided; one of them was expected" in errors
    assert check("-", stdin=json.dumps(both | {"operator": None})).exit_code == 2


@pytest.mark.parametrize("hresult", ["0x80070057", "0x00000000"])
def test_a_graph_is_judged_beside_its_operators(check: Call, hresult: str) -> None:
    wrong = LINES[6].replace('"ToNodeIndex":2', '"ToNodeIndex":0')
    text = "\n".join([*LINES[:6], wrong, LINES[7].replace("0x00000000", hresult)])
    printed = check("-", "-t", "6_2", stdin=text).stdout
    assert ("note[DML-CAPTURE-HRESULT]" in printed) == (hresult == "0x00000000")
    assert re.search(r"error\[DML-GRAPH-cycle\]", printed)


def test_tensors_of_a_refused_operator_are_not_compared_in_its_graph(check: Call) -> None:
    """Its data type has no size, and its Sizes are null."""
    tile = LINES[2].replace('"DataType":1,"Flags":0,"DimensionCount":4,"Sizes":[1,1,3,8]',
                            '"DataType":99,"Flags":0,"DimensionCount":4,"Sizes":null')  # fmt: skip
    result = check("-", "-t", "6_2", stdin="\n".join([*LINES[:2], tile, *LINES[3:]]))
    assert "DML-BUFFER-Sizes-null" in result.stdout
    assert "graph of 3 nodes" in result.stdout


def test_a_graph_is_checked_without_its_unknown_operators(check: Call) -> None:
    of_another_device = LINES[6].replace('"Operator":2', '"Operator":0')
    printed = check("-", stdin="\n".join([*LINES[2:6], of_another_device, LINES[7]])).stdout
    assert (
        "graph of 3 nodes, 2 inputs, 1 output; not looked at: Nodes[0].Operator and 1 more, which are not known; "
        "lowest level at least 5_1, in the box from windows-11-24h2 or later; its operators: 1 accepted"
    ) in printed
    assert "DML-CAPTURE" not in printed
    opened = check("-", stdin="\n".join([*LINES[2:6], of_another_device])).stdout
    assert "CompileGraph has not returned" in opened


@pytest.mark.parametrize(
    ("change", "target", "rule"),
    [
        (("", ""), "windows-10-22h2", "DML-GRAPH-IDMLDevice1"),
        (('"ToNodeIndex":0', '"ToNodeIndex":1'), "6_2", "DML-GRAPH-index"),
        (('"NodeCount":1', '"NodeCount":2'), "6_2", "DML-GRAPH-array"),
        (("", ""), "6_2", None),
        (('"hresult":"0x00000000"', '"hresult":"0x80070057"'), "6_2", "DML-CAPTURE-unexplained"),
    ],
)
def test_a_graph_of_unknown_operators_is_held_to_what_is_known(
    check: Call, change: tuple[str, str], target: str, rule: str | None
) -> None:
    text = (ROOT / "tests" / "data" / "graph_unknown_operator.jsonl").read_text().replace(*change)
    result = check("-", "-t", target, "--format", "json", stdin=text)
    (found,) = json.loads(result.stdout)["results"]
    assert [finding["rule"] for finding in found["findings"] if finding["severity"] != "note"] == [rule] * bool(rule)
    assert found["not_looked_at"] == ["Nodes[0].Operator, which is not known"]
    assert result.exit_code == bool(rule)


@pytest.mark.parametrize(
    ("lines", "options", "verdict", "operators", "counted"),
    [
        (LINES, ["-t", "6_2"], "accepted", {"accepted": 3}, "4 operators: 4 accepted"),
        (LINES, ["-t", "4_0"], "refused", {"accepted": 2, "refused": 1}, "3 operators: 1 refused, 2 accepted"),
        # it is refused by itself too
        (LINES, ["-t", "2_0"], "refused", {"accepted": 1, "refused": 2}, "4 operators: 3 refused, 1 accepted"),
        (LINES, ["-t", "2_0,4_0"], "refused", {"accepted": 1, "refused": 2}, "4 operators: 3 refused, 1 accepted"),
        (LINES, ["-t", "4_0", "--ignore", "DML-OPERATOR-level"], "accepted", {"accepted": 3}, "4 operators"),
        # the operator's call has not returned
        ([*LINES[:5], *LINES[6:]], ["-t", "4_0"],
         "refused", {"accepted": 2, "refused": 1}, "3 operators: 1 refused, 2 accepted"),
        # what a device of 4_0 took, though nobody measured it
        ([line.replace("0x00006200", "0x00004000") for line in LINES], ["-t", "4_0"],
         "undocumented", {"accepted": 2, "undocumented": 1}, "3 operators: 1 undocumented, 2 accepted"),
    ],
)  # fmt: skip
def test_a_graph_is_as_good_as_the_worst_of_its_operators(
    check: Call, lines: list[str], options: list[str], verdict: str, operators: dict[str, int], counted: str
) -> None:
    text = "\n".join(lines)
    results = json.loads(check("-", *options, "--format", "json", stdin=text).stdout)["results"]
    graph = next(each for each in results if each["pointer"].endswith("/graph"))
    assert (graph["verdict"], graph["operators"]) == (verdict, operators)
    result = check("-", *options, stdin=text)
    assert result.exit_code == (verdict != "accepted")
    said = ", ".join(f"{number} {word}" for word, number in operators.items())
    assert f"; its operators: {said}\n" in result.stdout
    assert counted in result.stdout
    assert "in part" not in result.stdout
    assert (result.stdout.count("DML-GRAPH") > 0) == ("2_0" in options[1])


def test_equal_operators_and_graphs_are_one_with_the_names_of_all_their_nodes(check: Call) -> None:
    again = [re.sub(r'"(call|Operator)":(\d)', lambda m: f'"{m[1]}":{int(m[2]) + 4}', line) for line in LINES]
    text = "\n".join([*LINES, *again])
    assert check("-", "-t", "6_2", stdin=text).stdout.count("2 times") == 4
    printed = check("-", "-t", "6_2", stdin=text.replace("embedding", "other", 1)).stdout
    assert "-:1: accepted at 6_2: other, embedding: GATHER InputTensor" in printed


@pytest.mark.parametrize("hresult", ["0x80070057", "0x00000000"])
def test_a_captured_null_graph_is_a_graph_that_is_null(check: Call, hresult: str) -> None:
    null = json.dumps(json.loads(LINES[6]) | {"graph": None})
    result = check("-", "-t", "6_2", stdin=f"{null}\n{LINES[7].replace('0x00000000', hresult)}\n")
    assert "error[DML-GRAPH-null]" in result.stdout
    assert "CreateOperator returned" not in result.stdout
    assert ("CompileGraph returned S_OK 0x00000000" in result.stdout) == (hresult == "0x00000000")
    assert result.exit_code == 1


@pytest.mark.parametrize(
    ("hresult", "said"),
    [
        ("0x00000000", ""),
        ("0x80070057", "E_INVALIDARG 0x80070057 at feature level 6_4, and no rule says why; not looked at: Sizes, Q"),
        ("0x80004005", "E_FAIL 0x80004005 at feature level 6_4, and no rule says why; not looked at: Sizes, Quanti"),
    ],
)
def test_a_refusal_without_a_rule_is_told_with_what_was_not_looked_at(check: Call, hresult: str, said: str) -> None:
    operator = quantize().model_dump(mode="json", by_alias=True)
    changes = {"feature_level": "0x00006400", "operator": operator}, {"hresult": hresult}
    lines = [json.dumps(json.loads(line) | change) for line, change in zip(LINES, changes, strict=False)]
    printed = check("-", "-t", "6_4", "--format", "json", stdin="\n".join(lines)).stdout
    (result,) = json.loads(printed)["results"]
    assert (result["verdict"], result["not_looked_at"]) == ("accepted in part", ["Sizes", "QuantizationTensorCount"])
    messages = [finding["message"] for finding in result["findings"]]
    assert [message.startswith(f"CreateOperator returned {said}") for message in messages] == [True] * bool(said)


def test_a_null_operator_and_a_null_graph_are_two(check: Call) -> None:
    line = {"dml_tile_capture": 1, "hresult": None, "session": "s"}
    lines = [json.dumps({**line, "call": i, kind: None}) for i, kind in enumerate(["operator", "graph", "graph"])]
    printed = check("-", "-t", "6_2", stdin="\n".join(lines)).stdout
    assert "2 operators" in printed
    assert ("DML-GRAPH-null" in printed, printed.count("2 times")) == (True, 1)


def test_a_null_graph_is_neither_lowered_nor_emitted_as_an_operator(call: Call) -> None:
    line = json.dumps({"dml_tile_capture": 1, "hresult": None, "session": "s", "call": 1, "graph": None})
    lowered = call("lower", "-", "-t", "4_0", stdin=line)
    assert "Type: a graph is not Tile" in lowered.stdout
    assert "OPERATOR-null" not in lowered.stdout
    for language in ("cpp", "json", "python"):
        emitted = call("emit", "-", "--lang", language, stdin=line)
        assert emitted.stderr == "dml-tile: -#/graph: the graph is null; it is left out\n"
        assert "null" not in emitted.stdout
        assert emitted.exit_code == lowered.exit_code == 1
