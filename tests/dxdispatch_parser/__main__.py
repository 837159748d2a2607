"""Records what DxDispatch's parser makes of random models, or compares it with what dml_tile makes of them.

python -m tests.dxdispatch_parser DIRECTML DIRECTX_HEADERS [--compare COUNT] [--seed SEED]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tests.dxdispatch_parser.comparison import RECORDED, differences, recorded
from tests.dxdispatch_parser.draws import Draws, draw

HERE: Final = Path(__file__).parent
MODELS: Final = 2200
_STUBS: Final = {
    # what the parser includes and needs nothing of
    "wil/result.h": "#pragma once\n#include <stdexcept>\n#define THROW_HR(hr) throw std::runtime_error(#hr)\n",
    "directml_guids.h": "#pragma once\n",
    "DirectMLX.h": "#pragma once\n#include <DirectML.h>\n"
    "UINT64 DMLCalcBufferTensorSize(DML_TENSOR_DATA_TYPE, UINT, const UINT*, const UINT*);\n",
}
_INCLUDED: Final = ("cassert", "climits", "cmath", "cstring", "directml_guids.h")


def build(directml: Path, headers: Path, folder: Path) -> Path:
    """Compile the parser with the harness, in a folder; return the program."""
    for name, text in _STUBS.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    source = directml / "DxDispatch" / "src"
    executor = (source / "dxdispatch" / "Executor.cpp").read_text()
    view = "template <typename T>\n" + _between(executor, "struct BufferDataView", "void Executor::operator()")
    (folder / "print.inc").write_text(view)
    directmlx = (directml / "Libraries" / "DirectMLX.h").read_text()
    helper = _between(directmlx, "inline UINT64 DMLCalcBufferTensorSize", "\n}\n")
    (folder / "calc_size.inc").write_text(helper.removeprefix("inline ") + "\n}\n")
    include = headers / "include"
    folders = (folder, source / "model", source / "external", include, include / "directx", include / "wsl" / "stubs")
    program = folder / "harness"
    subprocess.run(
        [
            *("clang++", "-std=c++17", "-w", "-O1", "-fms-extensions", "-DRAPIDJSON_ENDIAN=0", "-DFMT_HEADER_ONLY"),
            *(f"-I{each}" for each in folders),
            *(word for name in _INCLUDED for word in ("-include", name)),
            *(source / "model" / "JsonParsers.cpp", source / "model" / "Model.cpp", HERE / "harness.cpp"),
            *("-o", program),
        ],
        check=True,
    )
    return program


def _between(text: str, beginning: str, end: str) -> str:
    start = text.index(beginning)
    return text[start : text.index(end, start)]


class Parser:
    """DxDispatch's parser, which is started anew where it dies."""

    def __init__(self, program: Path) -> None:
        self._program = program
        self._process: subprocess.Popen[bytes] | None = None

    def __call__(self, text: str) -> dict[str, Any] | None:
        """The parser's answer to a model; None where it dies of it."""
        if self._process is None:
            self._process = subprocess.Popen([self._program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        process, encoded = self._process, text.encode()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"%d\n%s\n" % (len(encoded), encoded))
        process.stdin.flush()
        if line := process.stdout.readline():
            answer: dict[str, Any] = json.loads(line)
            return answer
        process.wait()
        self._process = None
        return None

    def close(self) -> None:
        """End the process."""
        if self._process:
            self._process.communicate()


def _answered(parser: Parser, seed: int, count: int) -> Iterator[tuple[str, dict[str, Any]]]:
    random = Draws(seed)
    for _ in range(count):
        text = draw(random)
        if (answer := parser(text)) is not None:
            yield text, recorded(answer)
    parser.close()


def main() -> None:
    """Record, or compare."""
    parsed = argparse.ArgumentParser(description=__doc__)
    parsed.add_argument("directml", type=Path)
    parsed.add_argument("directx_headers", type=Path)
    parsed.add_argument("--compare", type=int, metavar="COUNT")
    parsed.add_argument("--seed", type=int, default=1)
    given = parsed.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        parser = Parser(build(given.directml, given.directx_headers, Path(folder)))
        answers = _answered(parser, given.seed, given.compare or MODELS)
        if given.compare is None:
            RECORDED.write_text("".join(json.dumps([text, answer]) + "\n" for text, answer in answers))
            return
        count = refused = different = 0
        for text, answer in answers:
            count, refused = count + 1, refused + ("refused" in answer)
            for difference in differences(text, answer):
                different += 1
                print(f"{difference}\n  {text}")  # noqa: T201
        print(f"{count} models, of which the parser refused {refused}; differences: {different}")  # noqa: T201


if __name__ == "__main__":
    main()
