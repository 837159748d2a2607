"""The settings of ``dml-tile check``: the table ``[tool.dml-tile]`` of the nearest pyproject.toml that has it."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path, PurePath
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, ValidationInfo
from pydantic_core import PydanticCustomError

from dml_tile.checks.catalogue import known_rules
from dml_tile.checks.files import Exclusion
from dml_tile.checks.suppressions import FileIgnores
from dml_tile.cli.console import MAX_SECONDS, FailOn
from dml_tile.errors import ConfigError
from dml_tile.files.paths import MAX_PARTS, ProjectPath
from dml_tile.files.repository import GIT, root_above
from dml_tile.files.whole import open_regular
from dml_tile.findings import Against
from dml_tile.input_errors import Record, problems_of
from dml_tile.text import shown

MAX_BYTES: Final = 2**18
"""The size of the largest pyproject.toml that is read."""

MAX_ENTRIES: Final = 1000
"""The entries of a setting's longest list, such as the patterns of ``exclude``."""

MAX_KEY_PARTS: Final = 100
"""The parts of the longest dotted key: tomllib takes quadratic time for them."""

_KEY_PART: Final = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_NEXT_PART: Final = rf"[ \t]*+\.[ \t]*+{_KEY_PART}"
_KEY: Final = re.compile(rf"{_KEY_PART}(?:{_NEXT_PART}){{0,{MAX_KEY_PARTS - 1}}}+({_NEXT_PART})?+")
"""A key, or a word, with a group if it has too many parts. Matched as a whole, so that no part is looked at again."""

_FILE: Final = "pyproject.toml"
_TABLE: Final = "tool.dml-tile"


def _bounded(value: object) -> object:
    """Return a list or a table that has few entries: looking at each takes time."""
    if isinstance(value, (list, dict)) and len(value) > MAX_ENTRIES:
        raise PydanticCustomError("too_many", f"at most {MAX_ENTRIES} entries are read")
    return value


def _inside(path: str, info: ValidationInfo) -> ProjectPath:
    """Return a path below the folder of pyproject.toml as seen from the current one."""
    folder = info.context
    assert isinstance(folder, Path)
    if (count := len(PurePath(path).parts)) > MAX_PARTS:
        raise PydanticCustomError("too_many", f"has {count} parts; a path or a pattern may have {MAX_PARTS}")
    try:
        is_inside = (folder / path).resolve().is_relative_to(folder.resolve())
    except (OSError, RuntimeError, ValueError):  # a loop of links, or a NUL in the name
        is_inside = False
    if not is_inside:
        raise PydanticCustomError("path_outside", f"a path below the folder of {_FILE} was expected")
    return ProjectPath(os.path.relpath(folder / path), folder)


_Bounded: Final = BeforeValidator(_bounded)
_Texts = Annotated[tuple[str, ...], Field(fail_fast=True), _Bounded]


class Settings(Record):
    """Defaults for the options of ``check``. ``paths`` and ``baseline`` are relative to the current folder."""

    targets: _Texts = ()
    select: _Texts = ()
    ignore: _Texts = ()
    against: Against | None = None
    via: str | None = None
    dim: _Texts = ()
    input_shape: _Texts = Field(default=(), alias="input-shape")
    exclude: _Texts = ()
    strict_files: bool = Field(default=False, alias="strict-files", strict=True)
    per_file_ignores: Annotated[dict[str, _Texts], _Bounded] = Field(default_factory=dict, alias="per-file-ignores")
    fail_on: FailOn | None = Field(default=None, alias="fail-on")
    max_time: Annotated[int, Field(ge=1, le=MAX_SECONDS)] | None = Field(default=None, alias="max-time")
    baseline: Annotated[str, AfterValidator(_inside)] = ""
    paths: Annotated[tuple[Annotated[str, AfterValidator(_inside)], ...], Field(fail_fast=True), _Bounded] = ()


_KEYS: Final = [field.alias or name for name, field in Settings.model_fields.items()]


@dataclass(frozen=True, slots=True)
class Config:
    """The settings, and the file that they were read from: ``""`` without one."""

    file: str = ""
    settings: Settings = field(default_factory=Settings)

    def exclusion(self) -> Exclusion:
        """Return what the settings exclude."""
        return self._matching(self.settings.exclude)

    def file_ignores(self) -> FileIgnores:
        """Return what the settings ignore in some files. Raises ConfigError for an unknown rule."""
        ignores = self.settings.per_file_ignores
        try:
            known_rules(chain.from_iterable(ignores.values()))
        except ValueError as error:
            raise self.error("per-file-ignores", str(error)) from None
        return FileIgnores(self._matching(ignores), tuple(ignores.values()))

    def _matching(self, patterns: Iterable[str]) -> Exclusion:
        """Return patterns of paths relative to the settings file's folder."""
        return Exclusion(patterns, str(Path(self.file).parent) if self.file else ".")

    def origin(self, key: str) -> str:
        """Return the file that sets a key; ``default`` if none does."""
        names = {field.alias or name: name for name, field in Settings.model_fields.items()}
        return self.file if names.get(key) in self.settings.model_fields_set else "default"

    def error(self, key: str, message: str) -> ConfigError:
        """Return the error for the value of a key."""
        return ConfigError(self.file, f"{_TABLE}.{key}: {message}")


def nearest_config() -> Config:
    """Return the configuration of the nearest pyproject.toml that has the table, else none. Raises ConfigError.

    It is looked for from the current folder up to the repository's root; without a repository, up to the first folder.
    """
    try:
        here = Path.cwd()
    except OSError:  # it was removed
        return Config()
    for folder in (here, *here.parents):
        if os.path.isfile(folder / _FILE):  # noqa: PTH113  # Path's raises where nobody may look into the folder
            file = os.path.relpath(folder / _FILE)
            table = _table(folder / _FILE, file)
            if table is not None:
                return Config(file, _settings(table, folder, file))
        if os.path.exists(folder / GIT):  # noqa: PTH110
            break
    return Config()


def _settings(table: dict[str, Any], folder: Path, file: str) -> Settings:
    try:
        return Settings.model_validate(table, context=folder)
    except ValidationError as error:
        first, *_ = problems_of(error, table, names=_KEYS)
        raise ConfigError(file, f"{_TABLE}.{first.message}") from None


def _table(path: Path, file: str) -> dict[str, Any] | None:
    """Return the table of a file; None if it has none. Raises ConfigError.

    The file may be a link, within the repository or else its folder.
    """
    try:
        real = path.resolve()
        if not real.is_relative_to(Path(root_above(str(path.parent)) or path.parent).resolve()):
            raise ConfigError(file, "is a link that leads out of the repository")
        with open_regular(real) as opened:
            text = opened.read(MAX_BYTES + 1)
    except OSError as error:
        raise ConfigError(file, error.strerror or str(error)) from None
    if len(text) > MAX_BYTES:
        raise ConfigError(file, f"larger than {MAX_BYTES} bytes")
    try:
        decoded = text.decode()
        if any(key[1] for key in _KEY.finditer(decoded)):
            raise ConfigError(file, f"a key has more than {MAX_KEY_PARTS} parts")
        tool = tomllib.loads(decoded).get("tool")
    except (ValueError, RecursionError) as error:
        raise ConfigError(file, f"unreadable TOML: {error}") from None
    if not isinstance(tool, dict):
        return None
    if "dml_tile" in tool:
        raise ConfigError(file, f"[tool.dml_tile] is not read; [{_TABLE}] was expected")
    table = tool.get("dml-tile")
    if not (table is None or isinstance(table, dict)):
        raise ConfigError(file, f"{_TABLE} is {shown(table)}; a table was expected")
    return table
