"""The settings of a project's checks: the table ``[tool.dml-tile]`` of the nearest pyproject.toml."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final

from dml_tile.errors import ConfigError
from dml_tile.findings import BASES, Against
from dml_tile.text import did_you_mean, shown

MAX_BYTES: Final = 2**20
"""How large a pyproject.toml may be that is read."""

_FILE: Final = "pyproject.toml"
_TABLE: Final = "tool.dml-tile"


@dataclass(frozen=True, slots=True)
class Config:
    """What the command line need not say; what is empty is not said. ``paths`` lead there from the current folder."""

    targets: tuple[str, ...] = ()
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    against: Against | None = None
    paths: tuple[str, ...] = ()
    file: str = ""

    def error(self, key: str, message: str) -> ConfigError:
        """The error that a key's value makes no sense."""
        return ConfigError(self.file, f"{_TABLE}.{key}: {message}")


_KEYS: Final = tuple(field.name for field in fields(Config) if field.name != "file")


def nearest_config() -> Config:
    """The table of the first pyproject.toml in the current folder or above it; an empty one if there is none.

    Raises ConfigError.
    """
    try:
        here = Path.cwd()
    except OSError:  # it was removed
        return Config()
    found = next((folder for folder in (here, *here.parents) if _has_one(folder)), None)
    return _config(found) if found else Config()


def _config(folder: Path) -> Config:
    file = os.path.relpath(folder / _FILE)
    table = _table(folder / _FILE, file)
    for key, value in table.items():
        if key not in _KEYS:
            hint = did_you_mean(key, _KEYS, f"the keys are {', '.join(_KEYS)}")
            raise ConfigError(file, f"{_TABLE}.{key} is unknown; {hint}")
        if key != "against" and not (isinstance(value, list) and all(isinstance(item, str) for item in value)):
            raise ConfigError(file, f"{_TABLE}.{key} is {shown(value)}; an array of strings was expected")
    against = table.pop("against", None)
    if against is not None and against not in [*BASES]:
        raise ConfigError(file, f"{_TABLE}.against is {shown(against)}; one of {', '.join(BASES)} was expected")
    paths = table.pop("paths", ())
    for path in paths:
        if not _is_inside(folder, path):
            raise ConfigError(file, f"{_TABLE}.paths: {shown(path)} leads nowhere below the folder of {_FILE}")
    return Config(
        against=against,
        paths=tuple(os.path.relpath(folder / path) for path in paths),
        file=file,
        **{key: tuple(value) for key, value in table.items()},
    )


def _has_one(folder: Path) -> bool:
    try:
        return (folder / _FILE).is_file()
    except OSError:  # nobody may look into the folder
        return False


def _is_inside(folder: Path, path: str) -> bool:
    try:
        return (folder / path).resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):  # a loop of links, or a NUL in the name
        return False


def _table(path: Path, file: str) -> dict[str, Any]:
    try:
        with path.open("rb") as opened:
            text = opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(file, error.strerror or str(error)) from None
    if len(text) > MAX_BYTES:
        raise ConfigError(file, f"larger than {MAX_BYTES} bytes")
    try:
        tool = tomllib.loads(text.decode()).get("tool")
    except (ValueError, RecursionError) as error:
        raise ConfigError(file, f"unreadable TOML: {error}") from None
    table = tool.get("dml-tile", {}) if isinstance(tool, dict) else {}
    if not isinstance(table, dict):
        raise ConfigError(file, f"{_TABLE} is {shown(table)}; a table was expected")
    return table
