"""The tree of exceptions: complete, as its module tells it, and able to travel between processes."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dml_tile
from dml_tile import errors
from dml_tile.back_ends import back_end_named
from dml_tile.checking import check
from dml_tile.directml.enums import HRESULT
from dml_tile.findings import unreadable
from tests.helpers.descriptors import page_tile

PACKAGE = Path(dml_tile.__file__).parent

FINDINGS = check(page_tile(RepeatsCount=3))

INSTANCES = (
    errors.DmlTileError("a reason"),
    errors.DmlError(FINDINGS),
    errors.DmlError(FINDINGS, "CreateOperator"),
    errors.DmlError(findings=FINDINGS, call="CreateOperator"),
    errors.RefusedModelError({"/a": FINDINGS}),
    errors.DialectError("ONNX Tile-13", "repeats", "is null"),
    errors.DialectError(dialect="ONNX Tile-13", field="repeats", message="is null"),
    errors.InputError([unreadable("/a", "b"), unreadable("", "c")]),
    errors.ConfigError("pyproject.toml", "a key"),
    errors.OutputError("a.json", "no space"),
    errors.TargetError("a reason"),
)


def tree(error: type[errors.DmlTileError], depth: int = 0) -> list[tuple[int, str]]:
    """Each class below ``error``, with its depth, in the order of their definitions."""
    return [(depth, error.__name__), *(line for kind in error.__subclasses__() for line in tree(kind, depth + 1))]


def test_the_overview_lists_every_exception_and_says_which_are_value_errors() -> None:
    overview = re.findall(r"^( *)[*+-] (\w+)( \(ValueError\))?", str(errors.__doc__), re.MULTILINE)
    assert [(len(indent) // 2, name) for indent, name, _ in overview] == tree(errors.DmlTileError)
    value_errors = {kind.__name__ for kind in errors.DmlTileError.__subclasses__() if issubclass(kind, ValueError)}
    assert {name for _, name, is_value_error in overview if is_value_error} == value_errors


def test_no_other_module_defines_a_public_exception() -> None:
    modules = {
        path for path in PACKAGE.rglob("*.py") if re.search(r"^ *class [a-zA-Z]\w*Error\b", path.read_text(), re.M)
    }
    assert modules == {PACKAGE / "errors.py"}


@pytest.mark.parametrize("error", INSTANCES, ids=lambda error: type(error).__name__)
def test_errors_travel_between_processes(error: errors.DmlTileError) -> None:
    arrived = pickle.loads(pickle.dumps(error))
    assert type(arrived) is type(error)
    assert (str(arrived), vars(arrived)) == (str(error), vars(error))
    assert {type(error).__name__ for error in INSTANCES} == {name for _, name in tree(errors.DmlTileError)}


def test_a_dml_error_has_the_result_and_the_call_first() -> None:
    assert errors.DmlError(FINDINGS).hresult is HRESULT.E_INVALIDARG
    assert str(errors.DmlError(FINDINGS)).startswith("E_INVALIDARG 0x80070057\n  [DML-TILE-RepeatsCount]")
    assert str(errors.DmlError(FINDINGS, "CreateOperator")).startswith("CreateOperator: E_INVALIDARG")


@pytest.mark.parametrize("value", [1, "x", object()])
@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (dml_tile.write_operator_desc, "an OperatorDesc or a TileOperatorDesc"),
        (dml_tile.write_tile_operator_desc, "a TileOperatorDesc"),
        (lambda value: dml_tile.run_lowering(value, b"", bytearray()), "a Lowering"),
        (lambda value: dml_tile.check_via(value, "6_4", "chromium"), "a Request"),
        (lambda value: back_end_named([value]), "a str"),  # type: ignore[arg-type]
        (lambda value: dml_tile.check_model("a.onnx", dims=value), "a Mapping"),
        (lambda value: dml_tile.Device(direct3d_device=value), "a Direct3DDevice"),
        (lambda value: page_tile().model_copy(update=value), "a Mapping"),
    ],
)
def test_a_value_of_a_wrong_type_is_a_type_error(call: Callable[[Any], object], expected: str, value: Any) -> None:
    with pytest.raises(TypeError, match=rf"^{expected} was expected, not a "):
        call(value)
