"""A new level, operator and data type take a row each, which a copy of the package is given here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from shutil import copytree, ignore_patterns
from typing import Final

import pytest

import dml_tile
from dml_tile import FeatureLevel, check
from tests.helpers.descriptors import row
from tests.helpers.rule_cases import gather, other

PACKAGE: Final = Path(dml_tile.__file__).parent

ROWS: Final = {
    # by the file: what a row follows, and the row
    "data_types.py": ('INT4 = 13, "int4", 4, "i4", False', '    BFLOAT16 = 14, "bfloat16", 16, "bf16", False'),
    "enums.py": ("DML_FEATURE_LEVEL_6_4 = 0x6400", "    DML_FEATURE_LEVEL_6_5 = 0x6500"),
    "levels.py": (
        'Level(_L("6_4"), _AS_6_2, tiles_are_measured=True),',
        '        Level(_L("6_5"), _AS_6_2, new_types=("bfloat16",)),',
    ),
    "releases.json": ('["1.15", [0, 1, 2, 3, 4], "6_4"]', '  , ["1.16", [0], "6_5"]'),
    "operators.toml": ('4_1 = ["1-8 float int int64"]\n# FLOAT64: S_OK', '6_5 = ["1-8 all BFLOAT16"]'),
}
OPERATOR: Final = "182 MADE_UP 6_5: t InputTensor, t OutputTensor, u Axis"
ENTRY: Final = """
[MADE_UP]
tensors = ["*"]
same = ["DataType DimensionCount Sizes *"]
fields = ["Axis < DimensionCount of InputTensor"]
6_5 = ["1-8 BFLOAT16"]
"""
DESCRIPTORS: Final = (
    row("FLOAT64", [2], [2]), row("INT64", [2], [2]), gather("INT64"), other("ACTIVATION_GELU")
)  # fmt: skip

PROGRAM: Final = """
import importlib, json, pkgutil, sys
import dml_tile
from dml_tile.readers.descriptors import read_document

for module in pkgutil.walk_packages(dml_tile.__path__, "dml_tile."):
    if not module.name.endswith(("__main__", ".readers.openvino")):  # which needs a package
        importlib.import_module(module.name)

def verdicts(desc):
    return {
        level.short: [str(finding.basis) for finding in dml_tile.check(desc, level)]
        for level in dml_tile.FeatureLevel
    }

def said(change, level):
    desc = dml_tile.OperatorDesc.model_validate(made_up | change)
    return [finding.message for finding in dml_tile.check(desc, level)]

tensor = {"DataType": "BFLOAT16", "Sizes": [2, 3]}
made_up = {"Type": "MADE_UP", "Desc": {"InputTensor": tensor, "OutputTensor": tensor, "Axis": 1}}
tile = dml_tile.TileOperatorDesc.from_input(data_type="BFLOAT16", sizes=[2], repeats=[2])
output = bytearray(8)
dml_tile.execute(tile, b"\\1\\2\\3\\4", output, "6_5")
read = [part.desc for text in sys.stdin.read().splitlines() for part in read_document(text.encode())]
json.dump({
    "older": [verdicts(desc) for desc in read],
    "made up": [said({}, "6_5"), said({}, "6_4"), said({"Desc": made_up["Desc"] | {"Axis": 2}}, "6_5")],
    "lowest": [str(dml_tile.lowest_level(desc)) for desc in (tile, dml_tile.OperatorDesc.model_validate(made_up))],
    "tile": [finding.message for finding in dml_tile.check(tile, "6_4", against="documentation")],
    "output": output.hex(),
}, sys.stdout)
"""


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a copy of the package with the rows."""
    copy = tmp_path_factory.mktemp("rows") / "dml_tile"
    copytree(PACKAGE, copy, ignore=ignore_patterns("__pycache__"))
    facts = copy / "directml"
    for name, (before, added) in ROWS.items():
        text = (facts / name).read_text(encoding="utf-8")
        assert text.count(before) == 1, name
        first, newline, rest = before.partition("\n")
        (facts / name).write_text(text.replace(before, f"{first}\n{added}{newline}{rest}"), encoding="utf-8")
    header = (facts / "header.txt").read_text(encoding="utf-8")
    (facts / "header.txt").write_text(header.replace("\n\n", f"\n{OPERATOR}\n\n", 1), encoding="utf-8")
    with (facts / "operators.toml").open("a", encoding="utf-8") as table:
        table.write(ENTRY)
    return copy.parent


def test_rows_alone_bring_a_level_an_operator_and_a_type_that_numpy_lacks(copied: Path) -> None:
    lines = "\n".join(desc.model_dump_json(by_alias=True) for desc in DESCRIPTORS)
    program = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=copied, input=lines, capture_output=True, text=True, check=False
    )
    assert program.returncode == 0, program.stderr
    said = json.loads(program.stdout)
    older = [{level.short: [str(each.basis) for each in check(desc, level)] for level in FeatureLevel}
             for desc in DESCRIPTORS]  # fmt: skip
    newest = [verdicts.pop("6_5") for verdicts in said["older"]]
    assert said["older"] == older
    assert newest[0] == []  # FLOAT64, which its row has from there on
    assert said["made up"] == [
        [],
        ["DML_OPERATOR_MADE_UP needs DML_FEATURE_LEVEL_6_5; the target has 6_4"],
        ["2 was provided, but less than InputTensor.DimensionCount = 2 was expected"],
    ]
    assert said["lowest"] == ["6_5", "6_5"]
    assert said["tile"][0] == "BFLOAT16 needs DML_FEATURE_LEVEL_6_5; the target has 6_4"
    assert said["output"] == "0102030401020304"


def test_a_command_runs_with_the_rows(copied: Path) -> None:
    model = Path(__file__).parents[1] / "examples" / "tile.json"
    for arguments in (["levels", "MADE_UP"], ["check", str(model), "--target", "6_5"]):
        program = subprocess.run(
            [sys.executable, "-m", "dml_tile", *arguments], cwd=copied, capture_output=True, text=True, check=False
        )
        assert program.returncode == 0, program.stdout + program.stderr
