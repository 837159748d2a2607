"""The names of the package: complete, sorted, lazy, and imported one way."""

from __future__ import annotations

import doctest
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import dml_tile

PACKAGE = Path(dml_tile.__file__).parent


def test_the_names_are_sorted_and_each_is_there() -> None:
    assert dml_tile.__all__ == sorted(dml_tile.__all__)
    for name in dml_tile.__all__:
        assert getattr(dml_tile, name) is not None
        assert name in dir(dml_tile)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'tiles'"):
        _ = dml_tile.tiles  # type: ignore[attr-defined]


def test_the_version_is_the_installed_one() -> None:
    assert dml_tile.__version__ == version("dml-tile")


def test_importing_the_package_imports_nothing_else() -> None:
    code = "import sys, dml_tile; print(sorted({'numpy', 'pydantic', 'rich', 'typer', 'onnx'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout == "[]\n"


def test_the_docstring_s_example_is_true() -> None:
    assert doctest.testmod(dml_tile).failed == 0


def test_the_package_is_typed() -> None:
    assert (PACKAGE / "py.typed").exists()


def test_every_module_says_what_it_is_for() -> None:
    assert not [path for path in PACKAGE.rglob("*.py") if not path.read_text().startswith('"""')]
