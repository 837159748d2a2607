"""A DirectML-style operator descriptor emulator for DML_TILE_OPERATOR_DESC that runs anywhere.

    >>> import dml_tile
    >>> desc = dml_tile.TileOperatorDesc.from_input(data_type="INT64", sizes=[1, 1, 2, 3], repeats=[1, 1, 3, 3])
    >>> [finding.rule for finding in dml_tile.check(desc, "windows-11-21h2")]
    ['DML-TILE-DataType-level', 'DML-TILE-DataType-level']
    >>> print(dml_tile.lowest_level(desc))
    4_1

The names that ``__init__.pyi`` lists are imported when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.2.0"  # pyproject.toml's; importlib.metadata takes longer to find it than Python to start

_HOMES: dict[str, str] = {}
with open(f"{__file__.rpartition('.')[0]}.pyi", encoding="utf-8") as _stub:  # noqa: PTH123  # pathlib takes long
    for _line in _stub:
        if _line.startswith("from "):
            _, _home, _, _name, *_ = _line.split()
            _HOMES[_name] = _home.removeprefix(f"{__name__}.")

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
