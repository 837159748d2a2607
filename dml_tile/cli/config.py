"""The settings of ``dml-tile check``: the table ``[tool.dml-tile]`` of the nearest pyproject.toml that has it.

An option replaces the setting with its name. The values of both are parsed here: targets, back ends, sizes of models.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, TypeVar

import typer
from pydantic import AfterValidator, ConfigDict, Field, ValidationError, ValidationInfo
from pydantic_core import PydanticCustomError

from dml_tile.checks.files import NO_EXCLUSION, Exclusion
from dml_tile.checks.selection import FileIgnores, Selection, known_rules
from dml_tile.cli.console import FailOn
from dml_tile.directml.targets import Target
from dml_tile.errors import ConfigError, TargetError
from dml_tile.files.links import GIT, lies_in
from dml_tile.files.paths import MAX_PARTS, ProjectPath
from dml_tile.files.repository import root_above
from dml_tile.files.whole import open_regular, read_whole
from dml_tile.findings import Against
from dml_tile.input_errors import Record, problems_of
from dml_tile.readers.model_names import KnownShapes
from dml_tile.readers.sources import may_hold_descriptors
from dml_tile.simulation.process import PROCESS, TARGET_VARIABLE
from dml_tile.simulation.target import current_target, named_targets
from dml_tile.text import shown

if TYPE_CHECKING:
    from dml_tile.back_ends import BackEnd

Parsed = TypeVar("Parsed")

MAX_SETTINGS_BYTES: Final = 2**18
"""The size of the largest pyproject.toml that is read."""

MAX_ENTRIES: Final = 1000
"""The entries of a setting's longest list, such as the patterns of ``exclude``."""

MAX_KEY_PARTS: Final = 100
"""The parts of the longest dotted key: tomllib takes quadratic time for them."""

MAX_TARGETS: Final = 100
"""The most targets of a command: it has an answer for each about every operator."""

_KEY_PART: Final = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_NEXT_PART: Final = rf"[ \t]*+\.[ \t]*+{_KEY_PART}"
_KEY: Final = rf"{_KEY_PART}(?:{_NEXT_PART}){{0,{MAX_KEY_PARTS - 1}}}+({_NEXT_PART})?+"
"""A key, or a word, with a group if it has too many parts. Matched as a whole, so that no part is looked at again."""

_FILE: Final = "pyproject.toml"
_TABLE: Final = "tool.dml-tile"


def _inside(path: str, info: ValidationInfo) -> ProjectPath:
    """Return a path below the folder of pyproject.toml as seen from the current one."""
    folder = info.context
    assert isinstance(folder, Path)
    if (count := len(PurePath(path).parts)) > MAX_PARTS:
        raise PydanticCustomError("too_many", f"has {count} parts; a path or a pattern may have {MAX_PARTS}")
    try:
        is_inside = lies_in(str((folder / path).resolve()), str(folder.resolve()))
    except (OSError, RuntimeError, ValueError):  # a loop of links, or a NUL in the name
        is_inside = False
    if not is_inside:
        raise PydanticCustomError("path_outside", f"a path below the folder of {_FILE} was expected")
    return ProjectPath(os.path.relpath(folder / path), folder)


_LIST: Final = Field(fail_fast=True, max_length=MAX_ENTRIES)
_Texts = Annotated[tuple[str, ...], _LIST]


class Settings(Record):
    """Defaults for the options of ``check``. ``paths`` and ``baseline`` are relative to the current folder."""

    model_config = ConfigDict(alias_generator=lambda name: name.replace("_", "-"))

    targets: _Texts = ()
    select: _Texts = ()
    ignore: _Texts = ()
    against: Against = "both"
    via: str | None = None
    dim: _Texts = ()
    input_shape: _Texts = ()
    exclude: _Texts = ()
    strict_files: bool = Field(default=False, strict=True)
    require_operators: bool = Field(default=False, strict=True)
    per_file_ignores: Annotated[dict[str, _Texts], Field(max_length=MAX_ENTRIES)] = Field(default_factory=dict)
    fail_on: FailOn = "warning"
    max_cpu_nodes: Annotated[int, Field(ge=0, strict=True)] | None = None
    baseline: Annotated[str, AfterValidator(_inside)] = ""
    paths: Annotated[tuple[Annotated[str, AfterValidator(_inside)], ...], _LIST] = ()


_KEYS: Final = {name: field.alias or name for name, field in Settings.model_fields.items()}
"""The keys of settings in pyproject.toml, which are the names of options too, by their names here."""


class Config(NamedTuple):
    """The settings, the file that they were read from (``""`` without one), and those that an option replaced."""

    file: str = ""
    settings: Settings = Settings.model_construct()  # which needs no validator
    options: frozenset[str] = frozenset()

    def with_options(self, options: Mapping[str, object]) -> Config:
        """Return the settings with the options of a command, by the settings' names; None is one that was not given."""
        given = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in options.items()
            if name in _KEYS and value is not None
        }
        return self._replace(settings=self.settings.model_copy(update=given), options=frozenset(given))

    def parsed(self, name: str, parse: Callable[[Any], Parsed]) -> Parsed:
        """Return the value of a setting, parsed by a function that raises ValueError."""
        try:
            return parse(getattr(self.settings, name))
        except ValueError as error:
            if name in self.options:
                raise typer.BadParameter(str(error), param_hint=f"--{_KEYS[name]}") from None
            raise ConfigError(self.file, f"{_TABLE}.{_KEYS[name]}: {error}") from None

    def selection(self) -> Selection:
        """Return the rules whose findings count. Raises ValueError for an unknown rule."""
        if not (self.settings.select or self.settings.ignore):
            return Selection()
        select, ignore = (self.parsed(name, lambda rules: known_rules(split(rules))) for name in ("select", "ignore"))
        return Selection(frozenset(select), frozenset(ignore))

    def known_shapes(self) -> KnownShapes:
        """Return the sizes and shapes of models."""
        if not (self.settings.dim or self.settings.input_shape):
            return KnownShapes()
        return KnownShapes(self.parsed("dim", _sizes_by_name), self.parsed("input_shape", _shapes_by_name))

    def back_end(self, targets: Iterable[Target]) -> BackEnd | None:
        """Return the back end, which must run at these targets; an empty name is none."""
        if not self.settings.via:
            return None
        from dml_tile.back_ends import back_end_named

        return self.parsed("via", lambda name: back_end_named(name, targets))

    def exclusion(self) -> Exclusion:
        """Return the excluded patterns."""
        exclude = self.settings.exclude
        return Exclusion(exclude) if "exclude" in self.options else self._matching(exclude)

    def file_ignores(self) -> FileIgnores:
        """Return what the settings ignore in some files. Raises ConfigError for an unknown rule."""
        ignores = self.settings.per_file_ignores
        if not ignores:
            return FileIgnores()
        self.parsed("per_file_ignores", lambda rules: known_rules(chain.from_iterable(rules.values())))
        return FileIgnores(self._matching(ignores), tuple(ignores.values()))

    def _matching(self, patterns: Collection[str]) -> Exclusion:
        """Return patterns of paths relative to the settings file's folder."""
        return Exclusion(patterns, str(Path(self.file).parent) if self.file else ".") if patterns else NO_EXCLUSION

    def origin(self, name: str) -> str:
        """Return what gives a setting its value: the word ``option``, the settings' file, or the word ``default``."""
        if name in self.options:
            return "option"
        return self.file if name in self.settings.model_fields_set else "default"

    def lines(self, otherwise: dict[str, tuple[object, str]]) -> Iterator[str]:
        """Yield the settings in force, a key a line: its value in JSON, and its origin.

        ``otherwise`` has values and their origins that are neither an option's nor a setting's.
        """
        yield f"settings = {json.dumps(self.file or None)}  # the nearest pyproject.toml with [{_TABLE}]\n"
        values = self.settings.model_dump()
        in_force = {_KEYS[name]: (value, self.origin(name)) for name, value in values.items()} | otherwise
        for key, (value, origin) in in_force.items():
            yield f"{key} = {json.dumps(value)}  # {origin}\n"


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
                try:
                    return Config(file, Settings.model_validate(table, context=folder))
                except ValidationError as error:
                    first, *_ = problems_of(error, table, names=[*_KEYS.values()])
                    raise ConfigError(file, f"{_TABLE}{'.' if first.path else ': '}{first.message}") from None
        if os.path.exists(folder / GIT):  # noqa: PTH110
            break
    return Config()


def _table(path: Path, file: str) -> dict[str, Any] | None:
    """Return the table of a file; None if it has none. Raises ConfigError.

    The file may be a link, within the repository or else its folder.
    """
    try:
        real = path.resolve()
        root = Path(root_above(str(path.parent)) or path.parent).resolve()
        if not lies_in(str(real), str(root)):
            where = f"into {GIT}" if real.is_relative_to(root) else "out of the repository"
            raise ConfigError(file, f"is a link that leads {where}")
        with open_regular(real) as opened:
            text = read_whole(opened, MAX_SETTINGS_BYTES)
    except OSError as error:
        raise ConfigError(file, error.strerror or str(error)) from None
    import tomllib  # most folders above a file have no such file

    try:
        decoded = text.decode()
        if any(key[1] for key in re.finditer(_KEY, decoded)):
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


def require_models(via: str, files: Iterable[str]) -> None:
    """Raise typer.BadParameter if all files, of which there are some, may hold descriptors: no back end gets them."""
    files = list(files)
    if files and all(map(may_hold_descriptors, files)):
        message = f"{via} is for models; descriptors are what DirectML gets, so leave it out"
        raise typer.BadParameter(message, param_hint="--via")


def split(values: Sequence[str]) -> list[str]:
    """Return the names in an option's values, each of which may hold several, separated by commas."""
    return [name for value in values for name in value.split(",")]


def chosen_targets(names: Sequence[str] | None, config: Config | None = None) -> list[Target]:
    """Return the targets of an option, else the simulated one, or those of DML_TILE_TARGET, else of the settings."""
    PROCESS.read_outside()
    try:
        chosen = _parsed_targets(names or ()) or [*named_targets()]
    except TargetError as error:
        raise typer.BadParameter(str(error)) from None
    except ValueError as error:
        hint = "--target" if names else TARGET_VARIABLE
        raise typer.BadParameter(str(error), param_hint=hint) from None
    if not chosen and config:
        chosen = config.parsed("targets", _parsed_targets)
    return chosen or [current_target()]


def _parsed_targets(names: Sequence[str]) -> list[Target]:
    """Return the targets that are named, each once. Raises ValueError."""
    once = dict.fromkeys(name.strip().lower() for name in split(names))
    if len(once) > MAX_TARGETS:
        raise ValueError(f"{len(once)} targets were given; at most {MAX_TARGETS} were expected")
    return [Target.parse(name) for name in once]


def one_target(names: Sequence[str] | None, complaint: str) -> Target:
    """Return the only target. Raises typer.BadParameter with the complaint if there are several."""
    chosen, *others = chosen_targets(names)
    if others:
        raise typer.BadParameter(complaint, param_hint="--target" if names else TARGET_VARIABLE)
    return chosen


def _sizes_by_name(values: Sequence[str]) -> dict[str, int]:
    """Return the sizes of dimensions by their names, from NAME=SIZE. Raises ValueError for another form."""
    return {name: int(size) for name, size in _split_pairs(values, "[0-9]{1,18}", "NAME=SIZE")}


def _shapes_by_name(values: Sequence[str]) -> dict[str, tuple[int | None, ...]]:
    """Return the shapes of inputs by their names, from INPUT=SIZE,?,…. Raises ValueError for another form."""
    size = r"([0-9]{1,18}|\?)"
    return {
        name: tuple(None if size == "?" else int(size) for size in sizes.split(",") if size)
        for name, sizes in _split_pairs(values, f"({size}(,{size})*)?", "INPUT=SIZE,SIZE,…")
    }


def _split_pairs(values: Sequence[str], form: str, expected: str) -> Iterator[tuple[str, str]]:
    """Yield the two sides of each value NAME=SIZES, of which the right one must match ``form`` and be one a name."""
    given = dict[str, str]()
    for value in values:
        name, _, sizes = value.rpartition("=")
        if not name or not re.fullmatch(form, sizes):
            raise ValueError(f"{value!r} is not of the form {expected}, with digits for a size, 18 at most")
        if given.setdefault(name, sizes) != sizes:
            raise ValueError(f"{name!r} is given as {given[name]} and as {sizes}")
        yield name, sizes
