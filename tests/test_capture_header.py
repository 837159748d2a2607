"""dml_tile/capture.h: compiled, run, and its lines compared with what is read where the structs lie.

So is capturing_device.h, before a stand-in device, and under the real DirectMLX.h.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Final

import pytest

from dml_tile.descriptors.operator import OperatorDesc
from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.operators import operator_name, operators
from dml_tile.emit.cpp import get_include
from dml_tile.readers.c_structs import read_operator_desc
from dml_tile.readers.descriptors import read_source
from dml_tile.readers.item import Item
from tests.helpers.command_line import Call
from tests.helpers.compilers import (
    COMPILERS,
    CPP_TESTS,
    DIRECTMLX,
    EACH_HEADERS,
    HEADER_WARNINGS,
    STANDARDS,
    compiled,
    needs_compiler,
    needs_directmlx,
    real_headers,
    require_sanitizers,
    stand_in_headers,
)
from tests.helpers.paths import EXAMPLES

SOURCE: Final = CPP_TESTS / "capture_random.cpp"
DESTINATIONS: Final = CPP_TESTS / "destinations.cpp"
COUNT: Final = 4_000
SANITIZERS: Final = ("", "-fsanitize=address,undefined -fno-sanitize-recover=all", "-fsanitize=thread")
TARGET_VERSIONS: Final = ("0x1000", "0x2000", "0x2100", "0x6400")
"""Values of DML_TARGET_VERSION, of which the headers tell the first three apart."""
VERSIONS: Final = ("", *(f"-DDML_TARGET_VERSION={level}" for level in TARGET_VERSIONS))
BUILDS: Final = ("-fsyntax-only", "-O2 -c", "-fsyntax-only -fno-exceptions -fno-rtti")
"""Only the optimizer gives warnings that parsing does not."""
TRAPS: Final = "-fsanitize=undefined -fsanitize-trap=all"


def each_with(*options: str) -> list[object]:
    """Return each compiler with each of some options, all but one of each option's exhaustive."""
    return [
        pytest.param(compiler, option, marks=[pytest.mark.exhaustive] * (i % len(COMPILERS) != j or i > 1))
        for i, option in enumerate(options)
        for j, compiler in enumerate(COMPILERS)
    ]


pytestmark = [pytest.mark.long, needs_compiler]


def each_build() -> Iterator[object]:
    """Yield each compiler, standard and kind of build; in those that are not exhaustive, any two of these meet."""
    for (i, compiler), standard, (k, options) in product(enumerate(COMPILERS), STANDARDS, enumerate(BUILDS)):
        is_ordinary = standard in STANDARDS[:: len(STANDARDS) - 1] and (i + k + (standard == STANDARDS[0])) % 2
        yield pytest.param(compiler, standard, options, marks=[] if is_ordinary else pytest.mark.exhaustive)


@pytest.mark.parametrize(("compiler", "standard", "options"), [*each_build()])
@pytest.mark.parametrize("headers", EACH_HEADERS)
def test_the_headers_compile_without_a_warning(
    tmp_path: Path, headers: list[str], compiler: str, standard: str, options: str
) -> None:
    # with the stand-in, one version, so that each build meets each standard and each version
    first = STANDARDS.index(standard) + BUILDS.index(options)
    for version in VERSIONS if headers == real_headers() else [VERSIONS[first % len(VERSIONS)]]:
        words = f"-std={standard} {version} {options}".split()
        to = CPP_TESTS / "uses.cpp", "-o", tmp_path / "uses.o"
        compiled(compiler, *words, *HEADER_WARNINGS, *headers, *to)


def macros(compiler: str, text: str, *options: str) -> set[str]:
    """Return the definitions that the preprocessor has at the end of a text."""
    command = [compiler, *options, *stand_in_headers(), "-xc++", "-E", "-dM", "-"]
    return {*subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout.splitlines()}


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("option", ["", "-DDML_TARGET_VERSION=0x1000", "-fno-exceptions"])
def test_the_headers_leave_no_macro_but_their_include_guards(compiler: str, option: str) -> None:
    words, folder = option.split(), Path(get_include(), "dml_tile")
    text = "".join(path.read_text(encoding="utf-8") for path in folder.iterdir())
    others = [name for name in re.findall(r"#include (<.+>)", text) if not re.search("dml_tile|windows", name)]
    before = "".join(f"#include {name}\n" for name in others)
    for last, more in (
        ("capture.h", []),
        ("capturing_device.h", ["CAPTURING_DEVICE"]),
        ("null_device.h", ["CAPTURING_DEVICE", "NULL_DEVICE"]),
    ):
        added = macros(compiler, f"{before}#include <dml_tile/{last}>\n", *words) - macros(compiler, before, *words)
        names = ["CAPTURE", "OPERATOR_FIELDS", *more]
        assert added == {f"#define DML_TILE_{name}_H " for name in names}


@pytest.mark.parametrize("standard", ["c++11", "c++17"])
def test_lines_go_to_files_of_any_name_and_to_functions(tmp_path: Path, standard: str) -> None:
    program = tmp_path / "program"
    compiled(COMPILERS[0], f"-std={standard}", *HEADER_WARNINGS, *stand_in_headers(), DESTINATIONS, "-o", program)
    subprocess.run([program, tmp_path], check=True, timeout=60)
    line = '{"dml_tile_capture":1,"hresult":null,"feature_level":null,"operator":{"Type":70,"Desc":null}}'
    returned = line.replace("null", '"0x00000000"', 1)
    lines = (tmp_path / "lines.jsonl").read_text().splitlines()
    assert lines == [line, line, returned, line, line, returned.replace('0000"', '0001"', 1), line, line]
    assert (tmp_path / "torn.jsonl").read_text().splitlines() == ['{"dml_tile_capture":1,"hres', returned, returned]


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("to", ["7", "desc", "std::string().begin()"])
def test_another_destination_is_refused_with_a_sentence(tmp_path: Path, compiler: str, to: str) -> None:
    wrong = f"bool wrong(const DML_OPERATOR_DESC& desc) {{ return dml_tile::capture({to}, desc); }}\n"
    (tmp_path / "wrong.cpp").write_text(f"#include <dml_tile/capture.h>\n#include <string>\n{wrong}")
    command: list[str | Path] = [compiler, "-std=c++11", *stand_in_headers(), "-fsyntax-only", tmp_path / "wrong.cpp"]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "dml_tile::capture takes the name of a file, as const char*" in refused.stderr
    assert refused.stderr.count("error:") == 1


def standard_with(sanitizers: str) -> str:
    """Return the standard to compile for: the oldest without sanitizers."""
    return "-std=c++17" if sanitizers else "-std=c++11"


def build(compiler: str, output: Path, *options: str) -> None:
    compiled(compiler, *options, *HEADER_WARNINGS, *stand_in_headers(), "-pthread", SOURCE, "-o", output)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """A library that makes the descriptors which the programs capture."""
    path = tmp_path_factory.mktemp("library") / "library.so"
    build(COMPILERS[0], path, "-std=c++11", "-shared", "-fPIC")
    loaded = ctypes.CDLL(str(path))
    loaded.random_desc.argtypes, loaded.random_desc.restype = [ctypes.c_uint64], ctypes.c_void_p
    return loaded


@pytest.mark.parametrize(("compiler", "sanitizers"), each_with(*SANITIZERS, TRAPS))
def test_lines_hold_the_fields_in_memory(compiler: str, sanitizers: str, tmp_path: Path, library: ctypes.CDLL) -> None:
    require_sanitizers(compiler, sanitizers)
    program, file = tmp_path / "program", tmp_path / "tiles.jsonl"
    build(compiler, program, standard_with(sanitizers), *sanitizers.split(), "-g")
    subprocess.run([program, file, str(COUNT)], check=True, timeout=300)
    seeds = [int(json.loads(line)["hresult"], 16) for line in file.read_text().splitlines() if line]
    assert sorted(seeds) == list(range(COUNT)), "lines of two threads are whole, and none is lost"
    tiles = 0
    for seed, part in zip(seeds, read_source(str(file)), strict=True):
        assert isinstance(part, Item)
        there = read_operator_desc(library.random_desc(seed))
        if there is not None and part.other is not None:
            assert part.other == operator_name(int(there.type))
        elif isinstance(there, OperatorDesc) and operators().get(int(there.type)) is None:
            # the line does not say what lies in the memory of an unknown type
            assert isinstance(part.desc, OperatorDesc)
            assert part.desc.type == there.type
        else:
            assert part.desc == there
            tiles += there is not None
        if part.capture and part.other is None:
            assert (part.capture.hresult, part.capture.feature_level) == (seed, FeatureLevel.DML_FEATURE_LEVEL_5_2)
    assert tiles > COUNT // 2


def test_several_processes_write_to_one_file(tmp_path: Path) -> None:
    program, file = tmp_path / "program", tmp_path / "tiles.jsonl"
    build(COMPILERS[0], program, "-std=c++17")
    running = [subprocess.Popen([program, file, "300", "12"]) for _ in range(6)]
    assert [each.wait(60) for each in running] == [0] * 6
    lines = [json.loads(line) for line in file.read_text().splitlines() if line]
    assert sorted(int(line["hresult"], 16) for line in lines) == sorted([*range(300)] * 6)


@pytest.mark.posix
def test_a_file_that_takes_no_line_does_not_stop_the_application(tmp_path: Path) -> None:
    import fcntl

    source, program = tmp_path / "program.cpp", tmp_path / "program"
    source.write_text(
        "#include <dml_tile/capture.h>\n"
        "int main(int, char** arguments) { const DML_OPERATOR_DESC desc = {DML_OPERATOR_TILE, nullptr};\n"
        "return dml_tile::capture(arguments[1], desc, 0); }\n"
    )
    compiled(COMPILERS[0], "-std=c++17", *stand_in_headers(), source, "-o", program)

    def written(path: str | Path) -> int:
        return subprocess.run([program, path], check=False, timeout=60).returncode

    os.mkfifo(tmp_path / "fifo")
    assert [written(path) for path in ("/dev/full", tmp_path / "fifo")] == [0, 0]
    reading = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    filling = os.open(tmp_path / "fifo", os.O_WRONLY | os.O_NONBLOCK)
    assert written(tmp_path / "fifo") == 1
    assert json.loads(os.read(reading, 4096))["operator"] == {"Type": 70, "Desc": None}
    with suppress(BlockingIOError):
        while True:
            os.write(filling, b"x" * 4096)
    assert written(tmp_path / "fifo") == 0, "the FIFO is full"
    with (tmp_path / "locked.jsonl").open("w") as locked:
        fcntl.flock(locked, fcntl.LOCK_EX)
        assert written(tmp_path / "locked.jsonl") == 1
    assert (tmp_path / "locked.jsonl").read_text().count("\n") == 1


@pytest.mark.parametrize(
    ("compiler", "optimisation"),
    [*each_with("-O0"), *(pytest.param(compiler, "-O2", marks=pytest.mark.exhaustive) for compiler in COMPILERS)],
)
def test_translation_units_may_differ_in_their_target_version(tmp_path: Path, compiler: str, optimisation: str) -> None:
    (tmp_path / "main.cpp").write_text("void newer(const char*);\nint main(int, char** names) { newer(names[1]); }\n")
    options = ["-std=c++11", optimisation, "-fPIC", *HEADER_WARNINGS, *stand_in_headers()]
    compiled(compiler, options[0], "-c", tmp_path / "main.cpp", "-o", tmp_path / "main.o")
    for version in ("0x6400", "0x2000", "0x1000"):
        unit = tmp_path / version
        compiled(
            compiler, *options, f"-DDML_TARGET_VERSION={version}", "-c", CPP_TESTS / "versions.cpp", "-o", f"{unit}.o"
        )
        compiled(compiler, "-shared", f"{unit}.o", "-o", f"{unit}.so")
    for older, kind in product(("0x2000", "0x1000"), (".o", ".so")):
        units = [tmp_path / f"{version}{kind}" for version in (older, "0x6400")]
        for i, ordered in enumerate((units, units[::-1])):
            program, file = tmp_path / f"{older}{kind}{i}", tmp_path / f"{older}{kind}{i}.jsonl"
            compiled(compiler, "-Wl,--no-as-needed", tmp_path / "main.o", *ordered, "-pthread", "-o", program)
            subprocess.run([program, file], check=True, timeout=60)
            lines = [json.loads(line) for line in file.read_text().splitlines()]
            levels = [line["feature_level"] for line in lines if "feature_level" in line]
            seen_by_older = "0x00006200" if older == "0x2000" else None
            assert levels == ["0x00006200", seen_by_older, seen_by_older, "0x00006200", "0x00006200"], program.name


@pytest.mark.parametrize("headers", EACH_HEADERS)
@pytest.mark.parametrize(("compiler", "sanitizers"), each_with(*SANITIZERS))
def test_the_capturing_device_is_the_device_but_for_the_lines_it_writes(
    tmp_path: Path, check: Call, compiler: str, sanitizers: str, headers: list[str]
) -> None:
    require_sanitizers(compiler, sanitizers)
    sources = [CPP_TESTS / name for name in ("capturing_device.cpp", "uses.cpp")]
    program, folder = tmp_path / "program", tmp_path / "captured"
    options = [standard_with(sanitizers), *sanitizers.split(), "-g", *HEADER_WARNINGS, *headers, "-pthread"]
    compiled(compiler, *options, *sources, "-o", program)
    folder.mkdir()
    subprocess.run([program, folder], check=True, timeout=300, env={"LC_ALL": "C"})
    written = {path.name: path.read_text().splitlines() for path in folder.iterdir()}
    assert written.keys() == {"inner.jsonl", "\u00fc\u2603\U0001f9e9.jsonl", "forked.jsonl", "threads.jsonl"}
    assert len(written.pop("threads.jsonl")) == 800
    forked = [json.loads(line) for line in written.pop("forked.jsonl")]
    assert sorted(Counter(line["session"] for line in forked).values()) == [4, 6]
    assert len({(line["session"], line["call"]) for line in forked}) == 5
    assert sorted(line["graph"]["Nodes"][0]["Operator"] for line in forked if "graph" in line) == [0, 1]
    judged = check(str(folder / "forked.jsonl"), "--target", "6_2").stdout
    assert "4 operators: 2 refused, 1 accepted in part, 1 accepted" in judged
    inner, outer = ([json.loads(line) for line in lines] for lines in written.values())
    sessions = {line.pop("session") for line in inner}, {line.pop("session") for line in outer}
    assert sessions[0].isdisjoint(sessions[1])
    assert {line.pop("label", "none") for line in outer} == {'outer "device"', "none"}
    assert inner == outer
    assert [line["call"] for line in inner] == sorted([*range(1, 7)] * 2)
    judged = check(str(folder / "inner.jsonl"), "--target", "6_2").stdout
    assert "6 operators: 3 refused, 3 accepted" in judged
    assert judged.count("graph of 2 nodes") == 2
    assert "note[DML-GRAPH-Type-CONSTANT]" in judged
    assert "DML-GRAPH-DataSize" not in judged
    assert "not checked" not in judged
    assert "DML-CAPTURE" not in judged, "the HRESULTs are those of the emulator"
    short = (folder / "inner.jsonl").read_text().replace('"DataSize":8', '"DataSize":7')
    assert "but the constant has 7" in check("-", "--target", "6_2", stdin=short).stdout
    assert "400 times" in check(str(folder / "threads.jsonl"), "--target", "6_2").stdout


@pytest.mark.parametrize("headers", EACH_HEADERS)
def test_operators_and_graphs_are_captured_without_directml(tmp_path: Path, check: Call, headers: list[str]) -> None:
    program, file = tmp_path / "program", tmp_path / "captured.jsonl"
    source = CPP_TESTS / "null_device.cpp"
    options = [*SANITIZERS[1].split(), "-std=c++17", *HEADER_WARNINGS, "-DDML_TARGET_VERSION=0x5000"]
    compiled(COMPILERS[0], *options, *headers, source, "-o", program)
    subprocess.run([program, file], check=True, timeout=60)
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert {line["hresult"] for line in lines} == {None}
    assert [line.get("null_device") for line in lines] == [True, True, None, True, None, True, None]
    assert lines[5]["graph"]["Nodes"] == [{"Type": 1, "Operator": 2, "Name": '\u00e9\u2603 ?????????? "\\'}]
    assert "3 times" in check(str(file), "--target", "6_2").stdout


@needs_directmlx
@pytest.mark.parametrize("sanitizers", [*SANITIZERS[:2], pytest.param(SANITIZERS[2], marks=pytest.mark.exhaustive)])
def test_operators_that_directmlx_creates_are_captured(tmp_path: Path, check: Call, sanitizers: str) -> None:
    require_sanitizers("clang++", sanitizers)
    program, file = tmp_path / "program", tmp_path / "tiles.jsonl"
    options = ["-std=c++17", *sanitizers.split(), "-g", *HEADER_WARNINGS, *real_headers(), "-isystem", DIRECTMLX]
    compiled("clang++", *options, CPP_TESTS / "directmlx.cpp", "-o", program)
    subprocess.run([program, file], check=True, timeout=300)
    text = re.sub('"session":"0x[0-9A-F]{16}"', '"session":"0x18F2A6C05D73B94E"', file.read_text())
    assert text == (EXAMPLES / "operators.jsonl").read_text(), "the example is what is captured"
    assert "4 operators: 4 accepted" in check(str(file), "--target", "6_2").stdout
    assert "error[DML-GRAPH-IDMLDevice1]" in check(str(file), "--target", "windows-10-22h2").stdout
    file.unlink()
    subprocess.run([program, file, "all"], check=True, timeout=300)
    judged = check(str(file), "--target", "6_2").stdout
    assert judged.count("its operators: ") == 3
    assert "17 operators: 17 accepted" in judged, "the graph with a constant is taken"
    assert "not checked" not in judged
