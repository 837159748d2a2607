"""Reading models in a process of its own: what it gives, and what becomes of files that break it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import closing
from itertools import takewhile
from pathlib import Path
from typing import Any, Final

import pytest

from dml_tile.findings import Finding, unreadable
from dml_tile.readers.model_names import KnownShapes, ModelFacts
from dml_tile.readers.model_tile import DIALECTS, TileNode, ValueOrigin, ValueSource
from dml_tile.readers.sandbox import parent
from dml_tile.readers.sandbox.child import Order, answer_line, read_answer
from dml_tile.readers.sandbox.parent import MAX_MEMORY_BYTES, ModelReader
from tests.helpers.command_line import Call, errors_of
from tests.helpers.ir_models import MODELS, burn_tile, many_repeats, nested_ifs
from tests.helpers.model_process import ModelProcess
from tests.helpers.paths import ROOT

pytestmark = pytest.mark.long

BURN_XML, BURN_ONNX, LITE = (MODELS / name for name in ("burn_tile.ir.xml", "burn_tile.onnx", "tile.tflite"))
QUANTISED: Final = ROOT / "tests" / "data" / "qdq8.onnx"
BURN = TileNode("output_tensor", DIALECTS["OpenVINO Tile-1"], "f32", (2, 2), (2, 2))
LONG = 300  # seconds, on a machine that has much else to do


def read(path: Path, *paths: Path, known_shapes: KnownShapes | None = None, **bounds: Any) -> list[list[Any]]:
    """Return what a reader gives for each file."""
    with closing(ModelReader(known_shapes or KnownShapes(), **{"seconds": LONG, **bounds})) as reader:
        return [list(reader.parts(each)) for each in (path, *paths)]


# The real process


@pytest.mark.parametrize("part", [1, 32], ids=["all of the memory", "the smallest part of it that jobs share"])
def test_models_of_every_kind_are_read(part: int) -> None:
    xml, onnx, lite, graph = read(BURN_XML, BURN_ONNX, LITE, MODELS / "tile.pb", memory=MAX_MEMORY_BYTES // part)
    assert xml == [BURN]
    assert [(node.dialect.name, node.shape, node.repeats) for node in onnx] == [("ONNX Tile-13", (2, 2), (2, 2))]
    assert [node.shape for node in lite] == [(None, 2)]
    assert [node.repeats for node in graph] == [(2, 5)]


@pytest.mark.posix
@pytest.mark.parametrize(
    ("name", "message"),
    [("missing.xml", "No such file or directory"), ("folder.onnx", "not a regular file"), ("pipe.pb", "not a regular")],
)
def test_what_is_no_file_is_a_problem(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "folder.onnx").mkdir()
    os.mkfifo(tmp_path / "pipe.pb")
    (parts,) = read(tmp_path / name, command=["no such command"])
    assert [message in part.message for part in parts] == [True]


@pytest.mark.parametrize("name", ["bad.onnx", "bad.pb", "deep.xml"])
def test_a_file_that_is_no_model_or_crashes_openvino_costs_that_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    if name == "deep.xml":
        nested_ifs(path, 3000)
    else:
        path.write_bytes(b"no model, whatever its name is" * 100)
    bad, good = read(path, BURN_XML)
    assert [type(part) for part in bad] == [Finding]
    assert good == [BURN]


def test_a_model_that_wants_too_much_memory_costs_that_file(tmp_path: Path) -> None:
    read_parts = read(many_repeats(tmp_path / "many.xml", 2**28), BURN_XML, memory=2**30)
    assert read_parts == [[unreadable("", "reading ran out of its 1 GiB of memory")], [BURN]]


def test_weights_are_mapped_not_loaded(tmp_path: Path) -> None:
    path = burn_tile(tmp_path / "m.xml", ('offset="0"', f'offset="{2**33}"'))
    with path.with_suffix(".bin").open("rb+") as weights:
        repeats = weights.read()
        weights.seek(2**33)  # most of the file takes no place on the disk
        weights.write(repeats)
    assert read(path, memory=2**30) == [[BURN]]


def test_what_libraries_print_is_not_shown(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "text.pb"
    path.write_bytes(b"OpenVINO's reader of TensorFlow prints that this is no text format")
    read(path)
    assert capfd.readouterr() == ("", "")


def test_a_module_of_the_current_folder_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("json", "numpy", "onnx", "openvino", "resource"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit")
    monkeypatch.chdir(tmp_path)
    assert read(BURN_XML) == [[BURN]]


@pytest.mark.parametrize(("package", "path"), [("onnx", BURN_ONNX), ("openvino", BURN_XML)])
def test_the_extra_is_named_where_a_package_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str, path: Path
) -> None:
    (tmp_path / f"{package}.py").write_text("raise ImportError")
    monkeypatch.syspath_prepend(tmp_path)
    ((problem,),) = read(path)
    wanted = {"onnx": "'onnx>=1.19'", "openvino": "openvino"}[package]
    assert problem.message.endswith(f"needs {package}: pip install {wanted}")


IMPORTS_NEITHER = """
import sys
from contextlib import closing
from pathlib import Path
from dml_tile.readers.model_names import KnownShapes, ModelFacts
from dml_tile.readers.sandbox.parent import ModelReader

with closing(ModelReader(KnownShapes())) as reader:
    print([len(reader.parts(Path(name))) for name in sys.argv[1:]])
print({"onnx", "openvino"} & {*sys.modules})
"""


def test_the_package_itself_imports_neither_onnx_nor_openvino() -> None:
    command = [sys.executable, "-c", IMPORTS_NEITHER, str(BURN_XML), str(BURN_ONNX)]
    assert subprocess.run(command, capture_output=True, check=True, text=True).stdout == "[1, 1]\nset()\n"


# The end of the real process


CHILD = [sys.executable, "-m", "dml_tile.readers.sandbox.child"]


def started() -> subprocess.Popen[bytes]:
    return subprocess.Popen(CHILD, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def answered(process: subprocess.Popen[bytes], path: Path, seconds: float = LONG) -> list[Any]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(Order(str(path), "OpenVINO", KnownShapes(), seconds, 2**32).line())
    process.stdin.flush()
    answers = iter(lambda: read_answer(process.stdout.readline()), None)  # type: ignore[union-attr]
    return list(takewhile(lambda part: not isinstance(part, ModelFacts), answers))


def test_the_process_ends_with_its_input_and_leaves_interrupts_to_its_parent() -> None:
    with started() as process:
        assert answered(process, BURN_XML) == [BURN]
        process.send_signal(signal.SIGINT)
        assert answered(process, BURN_XML) == [BURN]
        assert process.communicate(timeout=LONG) == (b"", b"")
    assert process.returncode == 0


@pytest.mark.posix
def test_the_process_ends_in_time_where_nobody_is_left_to_end_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "m.xml")
    with started() as process, pytest.raises(ValueError, match="EOF"):  # at the end of its answers
        answered(process, tmp_path / "m.xml", seconds=-8)
    assert process.returncode == -signal.SIGALRM


# A stand-in that does what the files say


OBEDIENT = """
import json, os, signal, sys, time

def say(text):
    print(text, flush=True)

def problem(message):
    say(json.dumps({"pointer": "", "message": str(message)}))

def end():
    say('{"dimensions": [], "inputs": [], "nodes": 0, "contradictions": []}')

for line in sys.stdin:
    exec(open(json.loads(line)["path"]).read())
"""
STAND_IN = [sys.executable, "-c", OBEDIENT]
FEW_BYTES: Final = 2**16
SAY_PID = "problem(os.getpid()); end()"
FRESH = "a later file is read by another process"


def obey(folder: Path, *files: str, **bounds: Any) -> list[list[Any]]:
    """Return what a reader gives for files that each command the stand-in."""
    paths = [folder / f"{i}.xml" for i in range(len(files))]
    for path, text in zip(paths, files, strict=True):
        path.write_text(text)
    return read(*paths, command=STAND_IN, **bounds)


def is_gone(parts: Sequence[Finding]) -> bool:
    """Return True if the process that said its number has ended."""
    try:
        os.kill(int(parts[0].message), 0)
    except ProcessLookupError:
        return True
    return False


def test_one_process_reads_all_files_and_is_gone_at_the_end(tmp_path: Path) -> None:
    first, *others = obey(tmp_path, SAY_PID, SAY_PID, SAY_PID)
    assert others == [first, first]
    assert is_gone(first)


FAILURES: Final = {
    "SIGSEGV": ("os.kill(os.getpid(), signal.SIGSEGV)", "OpenVINO's reader crashed (SIGSEGV)"),
    "abort": ("os.abort()", "OpenVINO's reader crashed (SIGABRT)"),
    "an exit in order": ("os._exit(0)", "OpenVINO's reader crashed (status 0x0)"),
    "out of memory": ("os._exit(3)", "reading ran out of its 4 GiB of memory"),
    "half a line": ("sys.stdout.write('{'); sys.stdout.flush(); os._exit(1)", "OpenVINO's reader crashed (status 0x1)"),
    "no JSON": ("say('OpenVINO says hello')", "OpenVINO's reader sent a malformed reply"),
    "deep JSON": ("say('[' * 10000)", "OpenVINO's reader sent a malformed reply"),
    "a long line": (f"say('x' * {FEW_BYTES})", f"has more nodes than {FEW_BYTES} bytes can name"),
    "many lines": ("while True: problem('more')", f"has more nodes than {FEW_BYTES} bytes can name"),
}


@pytest.mark.parametrize(("deed", "message"), FAILURES.values(), ids=FAILURES)
def test_a_failing_process_costs_one(tmp_path: Path, deed: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parent, "MAX_ANSWER_BYTES", FEW_BYTES)
    before, failed, after = obey(tmp_path, SAY_PID, f"problem('so far')\n{deed}", SAY_PID)
    assert failed[0] == unreadable("", "so far")
    assert failed[-1] == unreadable("", message)
    assert len(failed) == 2 or "more nodes" in message
    assert before != after, FRESH
    assert is_gone(before)
    assert is_gone(after)


FIVE: Final = "[0, 0, 0, 0, 0]"
REST: Final = '"descriptions": [], "described": [[], []], "notes": [[], []]'
EMPTY: Final = f'{{"nodes": [], "reasons": [], "errors": [[], []], "placed": [[], []], {REST}}}\n'
WRONG: Final = {
    "another number of targets": (f'[[], []], "placed": [{FIVE}', f'[[], [], []], "placed": [{FIVE}, {FIVE}'),
    "a rule that there is none of": ('["directml", "", ', '["directml", "x", '),
    "a rule that is none of nodes": ('["directml", "", ', '["cpu", "known-at-run-time", '),
    "a departure without a rule": ('["directml", "", ', '["cpu", "", '),
    "an error that is none": ('"errors": [[], []]', '"errors": [[0], []]'),
    "an error without a reason": ('"errors": [[], []]', '"errors": [[], [-1]]'),
    "no such place": ('"place": "2"', '"place": "9"'),
    "a place of another operator": ('"place": "2"', '"place": "1"'),
    "no permutation": ('"transposed": []', '"transposed": [1, 1]'),
    "a permutation of another rank": ('"transposed": []', '"transposed": [0, 1, 2]'),
    "placements twice": ('{"nodes"', EMPTY + '{"nodes"'),
}


class Changed(ModelProcess):
    """Sends something else than a part of each answer."""

    parts = "", ""

    def write(self, line: bytes) -> None:
        super().write(line)
        answer = self.stdout.getvalue().decode()
        assert self.parts[0] in answer
        self.stdout.truncate(0)
        self.stdout.write(answer.replace(*self.parts, 1).encode())
        self.stdout.seek(0)


@pytest.mark.parametrize("parts", WRONG.values(), ids=WRONG)
def test_an_answer_to_another_order_costs_the_file(
    call: Call, monkeypatch: pytest.MonkeyPatch, parts: tuple[str, str]
) -> None:
    monkeypatch.setattr(parent, "started", Changed)
    arguments = "check", str(QUANTISED), "--via", "ort", "-t", "6_4,6_3", "--format", "html:page.html"
    assert call(*arguments).exit_code == 0
    monkeypatch.setattr(Changed, "parts", parts)
    assert errors_of(call, *arguments) == f"dml-tile: {QUANTISED}: ONNX's reader sent a malformed reply\n"


def test_the_page_names_the_rule_of_a_kernel_that_a_placed_tile_lacks(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parent, "started", Changed)
    monkeypatch.setattr(Changed, "parts", ('"quantised": "uint8"', '"quantised": "x"'))
    result = call("check", str(QUANTISED), "--via", "ort", "-t", "6_4", "--format", "html")
    assert (result.exit_code, "ORT-NODE-no-kernel" in result.stdout) == (1, True)


@pytest.mark.parametrize("arguments", ["check {}", "check {} --via chromium", "lower {} -t 4_0"])
def test_placements_that_nobody_asked_for_cost_the_file(
    call: Call, monkeypatch: pytest.MonkeyPatch, arguments: str
) -> None:
    monkeypatch.setattr(parent, "started", Changed)
    monkeypatch.setattr(Changed, "parts", ("", EMPTY))
    assert "sent a malformed reply" in errors_of(call, *arguments.format(QUANTISED).split())


def test_of_many_problems_of_a_file_the_rest_is_counted(tmp_path: Path) -> None:
    many, after = obey(tmp_path, "for i in range(300): problem(i)\nend()", SAY_PID)
    assert many == [*(unreadable("", str(i)) for i in range(100)), unreadable("", "and 200 more problems")]
    assert len(after) == 1


@pytest.mark.parametrize(
    "deed", ["time.sleep(1000)", "os.close(1)\ntime.sleep(1000)", "os.kill(os.getpid(), signal.SIGSTOP)"]
)
def test_a_process_that_takes_too_long_is_ended(tmp_path: Path, deed: str) -> None:
    before, slow, after = obey(tmp_path, SAY_PID, f"problem('so far')\n{deed}", SAY_PID, seconds=3)
    assert slow == [unreadable("", "so far"), unreadable("", "reading took longer than 3 s")]
    assert before != after, FRESH
    assert is_gone(before)


def test_a_process_that_died_between_files_costs_none(tmp_path: Path) -> None:
    (tmp_path / "a.xml").write_text(f"{SAY_PID}; os._exit(0)")
    with closing(ModelReader(KnownShapes(), seconds=LONG, command=STAND_IN)) as reader:
        first: Any = reader.parts(tmp_path / "a.xml")[0]
        os.waitid(os.P_PID, int(first.message), os.WEXITED | os.WNOWAIT)
        second: Any = reader.parts(tmp_path / "a.xml")[0]
    assert second.message.isdecimal()
    assert second != first, FRESH


def test_a_process_that_idles_is_closed_without_its_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    processes: list[subprocess.Popen[bytes]] = []
    start = parent.started

    def recorded(command: Sequence[str]) -> subprocess.Popen[bytes]:
        processes.append(start(command))
        return processes[-1]

    monkeypatch.setattr(parent, "started", recorded)
    monkeypatch.setattr(parent, "SECONDS_IDLE", 0)
    (tmp_path / "a.xml").write_text(SAY_PID)
    reader = ModelReader(KnownShapes(), seconds=LONG, command=STAND_IN)
    for _ in range(2):
        assert reader.parts(tmp_path / "a.xml") == [unreadable("", str(processes[-1].pid))]
        for watching in [thread for thread in threading.enumerate() if "_watch" in thread.name]:
            watching.join()
    assert len(processes) == 2
    for process in processes:
        assert process.returncode == -signal.SIGKILL
        assert all(stream and stream.closed for stream in (process.stdin, process.stdout))


def test_an_interrupt_leaves_no_process(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    interrupt = f"os.kill({os.getpid()}, signal.SIGINT)"
    with pytest.raises(KeyboardInterrupt):
        obey(tmp_path, f"open({str(pid)!r}, 'w').write(str(os.getpid()))\n{interrupt}\ntime.sleep(1000)")
    assert is_gone([unreadable("", pid.read_text())])


# The lines


ORIGINS = (ValueOrigin("Add 'a'", ValueSource("input", "☃"), "save"),), (ValueOrigin(),)
NODE = TileNode("If_3/then_body/☃\n", DIALECTS["ONNX Tile-13"], None, (2, "n", None), (1, 2, 3))


@pytest.mark.parametrize(
    "part",
    [
        NODE,
        TileNode("t", DIALECTS["OpenVINO Tile-1"], "f32", None, None),
        TileNode("t", DIALECTS["ONNX Tile-13"], "int8", (2, None), (None, 2), "", *ORIGINS, True),
        BURN,
        unreadable("/x", 'a "quoted" reason'),
        ModelFacts(),
        ModelFacts(frozenset({"batch", "☃"}), frozenset({"x"})),
    ],
)
def test_a_part_survives_its_line(part: Any) -> None:
    line = answer_line(part)
    assert line.count(b"\n") == 1
    assert read_answer(line) == part


def test_an_order_survives_its_line() -> None:
    known_shapes = KnownShapes({"n": 2**70}, {"x": (), "y": (2, 3)})
    order = Order(os.fsdecode(b"/\xff\n"), "ONNX", known_shapes, 0.5, 2**40)
    assert order.line().count(b"\n") == 1
    assert Order.read(order.line()) == order


def test_a_message_that_is_no_text_is_sent_all_the_same() -> None:
    assert read_answer(answer_line(unreadable("", "a\udcff"))) == unreadable("", "a?")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"ONNX Tile-13"', '"ONNX Tile-14"'),
        *(
            ("[1, 2, 3]", f"[1, 2{other}]")
            for other in ("", ", -3", f", {2**63}", ", 3.0", ", true", f", {'9' * 5000}")
        ),
        ('[2, "n", null]', "null"),
        ('[2, "n", null]', '[-2, "n", null]'),
        ('"error": ""', '"error": null'),
        ('"error": ""', '"error": "", "more": 1'),
        ('"error": ""', '"dimensions": []'),
        ('"data_type": null', '"data_type": 1'),
        ("{", "[{"),
    ],
)
def test_a_line_of_another_form_is_refused(old: str, new: str) -> None:
    text = answer_line(NODE).decode()
    assert old in text
    with pytest.raises(ValueError, match=r"validation error|keys of no answer|at line"):
        read_answer(text.replace(old, new, 1).encode())


@pytest.mark.parametrize("change", [{"shape": [{}] * 1000}, {f"k{i}": 1 for i in range(1000)}], ids=["list", "keys"])
def test_a_line_that_is_wrong_in_many_places_has_few_errors(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"^(2 validation errors|it has the keys of no answer)"):
        read_answer(json.dumps(json.loads(answer_line(NODE)) | change).encode())
