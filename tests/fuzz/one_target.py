"""Fuzzes one target in this process and its current folder; the arguments after its name are libFuzzer's."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["dml_tile"]):
    from tests.fuzz.targets import TARGETS


def main() -> None:
    _, name, *arguments = sys.argv
    target = TARGETS[name]
    with tempfile.TemporaryDirectory(prefix="corpus-") as corpus:
        for number, seed in enumerate(target.seeds()):
            Path(corpus, str(number)).write_bytes(seed)
        files = [] if any(not argument.startswith("-") for argument in arguments) else [corpus]
        atheris.Setup([sys.argv[0], *arguments, *files], target.run, custom_mutator=target.mutate)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
