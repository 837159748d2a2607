"""Each table of the package names its source; those of ONNX Runtime are what their command writes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Final

import pytest

from docs.generator import onnxruntime
from tests.helpers.paths import ROOT

FILES: Final = [path for kind in ("json", "toml", "txt") for path in (ROOT / "dml_tile").rglob(f"*.{kind}")]
TABLES: Final = sorted(path for path in FILES if not path.name.endswith(".schema.json"))  # a format is no table
SOURCES: Final = ("python -m docs.generator.", "python tests/recorder", "by hand", "https://", "(MIT)")
CHECKOUTS: Final = os.environ.get("DML_TILE_TESTS_ONNXRUNTIME", "").split(os.pathsep)
"""Checkouts of onnx and of ONNX Runtime with the commits of all releases."""

TABLE_CPP: Final = """
enum class SupportedTensorDataTypes : uint32_t
{
    Float32 = 1<<0, // comments go
    Int64 = 1<<1,
    String = 1<<2,
    All = static_cast<uint32_t>(-1),
    Ints = Int64,
};
Add(Test(SupportedTensorDataTypes::Float32)); Add(Test(SupportedTensorDataTypes::Int64));
#if DML_TARGET_VERSION >= 0x6300
constexpr static std::array<const char*, 1> newer = {"T"};
#endif
"""


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.name)
def test_a_table_names_its_command_or_its_source(table: Path) -> None:
    first, *_ = table.read_text(encoding="utf-8").partition("\n\n")
    source = json.loads(table.read_text(encoding="utf-8"))["source"] if table.suffix == ".json" else first[:400]
    assert any(words in str(source) for words in SOURCES)


def test_flags_become_letters_of_the_types_that_are_used() -> None:
    flags = onnxruntime.TypeFlags(onnxruntime.plain(TABLE_CPP))
    letters = [flags.letters(f"SupportedTensorDataTypes::{name}") for name in ("Float32", "Ints", "All")]
    assert letters == ["f", "l", "*"]


@pytest.mark.parametrize(("level", "kept"), [("6_2", False), ("6_3", True)])
def test_what_a_newer_level_guards_is_not_built(level: str, kept: bool) -> None:
    assert ("newer" in onnxruntime.arrays(onnxruntime.built(TABLE_CPP, level), r"const char\*")) == kept


@pytest.mark.skipif(CHECKOUTS == [""], reason="needs DML_TILE_TESTS_ONNXRUNTIME")
def test_the_tables_are_those_that_the_command_writes() -> None:
    old = {name: json.loads((onnxruntime.FOLDER / f"{name}.json").read_text("utf-8")) for name in onnxruntime.TABLES}
    refs = {name: (row["ref"], row["commit"]) for name, row in old["registrations"]["releases"].items()}
    for name, text in onnxruntime.tables(old, refs, CHECKOUTS).items():
        assert text == (onnxruntime.FOLDER / f"{name}.json").read_text("utf-8")
