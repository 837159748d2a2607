"""The values of options, or else of settings, parsed: targets, back ends, sizes of models, names of emitted code."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import typer

from dml_tile.back_ends import BackEnd, back_end_named
from dml_tile.cli.config import Config
from dml_tile.directml.targets import Target
from dml_tile.errors import TargetError
from dml_tile.readers.model_tile import KnownShapes
from dml_tile.simulation.process import TARGET_VARIABLE
from dml_tile.simulation.target import current_target, named_targets

if TYPE_CHECKING:  # most commands emit nothing
    from dml_tile.emit.source import Names

MAX_TARGETS: Final = 100
"""The most targets of a command: it has an answer for each about every operator."""


def split(values: Sequence[str]) -> list[str]:
    """Return the names in an option's values, each of which may hold several, separated by commas."""
    return [name for value in values for name in value.split(",")]


def chosen_targets(names: Sequence[str] | None, config: Config | None = None) -> list[Target]:
    """Return the targets of an option, else the simulated one, or those of DML_TILE_TARGET, else of the settings."""
    try:
        chosen = _parsed_targets(names or ()) or [*named_targets()]
    except TargetError as error:
        raise typer.BadParameter(str(error)) from None
    except ValueError as error:
        hint = "--target" if names else TARGET_VARIABLE
        raise typer.BadParameter(str(error).removeprefix(f"{TARGET_VARIABLE}: "), param_hint=hint) from None
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


def known_shapes(config: Config) -> KnownShapes:
    """Return the sizes and shapes of models that options or settings give."""
    return KnownShapes(config.parsed("dim", _sizes_by_name), config.parsed("input_shape", _shapes_by_name))


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
    """Yield the two sides of each value NAME=SIZES, of which the right one must match ``form``."""
    for value in values:
        name, _, sizes = value.rpartition("=")
        if not name or not re.fullmatch(form, sizes):
            raise ValueError(f"{value!r} is not of the form {expected}")
        yield name, sizes


def chosen_back_end(config: Config) -> BackEnd | None:
    """Return the back end that an option or a setting names; an empty name is none."""
    return config.parsed("via", lambda name: back_end_named(name) if name else None)


def names_in(language: str, name: str | None, namespace: str | None) -> Names:
    """Return the names of emitted source text. Raises typer.BadParameter."""
    from dml_tile.emit.cpp import require_identifier
    from dml_tile.emit.source import Names

    for option, value, languages in ("--name", name, ("cpp", "python")), ("--namespace", namespace, ("cpp",)):
        if value is None:
            continue
        if language not in languages:
            raise typer.BadParameter(f"it is for {' and '.join(languages)}, not {language}", param_hint=option)
        try:
            for identifier in value.split("::") if option == "--namespace" else [value]:
                require_identifier(identifier)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint=option) from None
    return Names(name or "", namespace or "")
