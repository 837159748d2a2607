"""Options that several commands share, and their values parsed."""

from __future__ import annotations

import json
import os
import re
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Final, TypeVar

import typer

from dml_tile.directml.targets import DEFAULT_TARGET, target_names
from dml_tile.findings import Against

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from dml_tile.back_ends import BackEnd
    from dml_tile.cli.config import Config
    from dml_tile.directml.targets import Target
    from dml_tile.emit.source import Names
    from dml_tile.readers.model_tile import KnownShapes


Parsed = TypeVar("Parsed")


def _completion(known: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Return the function that completes the beginning of a known name."""
    return lambda incomplete: [name for name in known() if name.startswith(incomplete)]


named_targets = _completion(target_names)
named_operators = _completion(lambda: import_module("dml_tile.directml.operators").operator_names())
rules_named = _completion(lambda: import_module("dml_tile.checks.catalogue").RULES)
explained = _completion(
    lambda: (
        *import_module("dml_tile.checks.catalogue").RULES,
        *import_module("dml_tile.checks.hresults").RESULT_CODES,
    )
)
named_back_ends = _completion(lambda: import_module("dml_tile.back_ends").BACK_ENDS)

TargetsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        "-t",
        metavar="TARGET",
        help="A feature level (4_1), directml-1.6.0, windows-11-21h2 or onnxruntime-directml-1.16.3; check takes "
        f"several, also as 4_1,5_0. By default that of DML_TILE_TARGET, or {DEFAULT_TARGET}.",
        autocompletion=named_targets,
    ),
]
FileArgument = Annotated[
    str, typer.Argument(metavar="FILE", help="What check takes, one file or folder; - is standard input.")
]
NameOption = Annotated[
    str | None,
    typer.Option(
        "--name", metavar="NAME", help="A lone descriptor's name in C++ or Python; those of several begin so."
    ),
]
NamespaceOption = Annotated[
    str | None, typer.Option("--namespace", metavar="NAMESPACE", help="The namespace of C++, such as app::tiles.")
]
DimsOption = Annotated[
    list[str] | None, typer.Option("--dim", metavar="NAME=SIZE", help="The size of a named dimension of ONNX models.")
]
InputShapesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--input-shape",
        metavar="NAME=SIZES",
        help="The shape of a model's input, as x=1,3,224,224; ? leaves a size as it is.",
    ),
]
ViaOption = Annotated[
    str | None,
    typer.Option(
        metavar="BACKEND",
        help="Take what a back end makes of models, such as ort; an unknown name lists all.",
        autocompletion=named_back_ends,
    ),
]
AgainstOption = Annotated[
    Against,
    typer.Option(
        metavar="CONTRACT",
        help="documentation, runtime or both: the contract to check; both reports what breaks either.",
    ),
]


def split(values: Sequence[str]) -> list[str]:
    """Return the names in an option's values, each of which may hold several, separated by commas."""
    return [name for value in values for name in value.split(",")]


def chosen_targets(names: Sequence[str] | None, config: Config | None = None) -> list[Target]:
    """Return the targets of an option, else the simulated one, or those of DML_TILE_TARGET, else of the settings."""
    from dml_tile.directml.targets import Target
    from dml_tile.errors import TargetError
    from dml_tile.simulation.process import VARIABLE
    from dml_tile.simulation.target import current_target, named_targets

    def parse(values: Sequence[str]) -> list[Target]:
        return [Target.parse(name) for name in values]

    try:
        named = parse(split(names)) if names else [*named_targets()]
    except TargetError as error:
        raise typer.BadParameter(str(error)) from None
    except ValueError as error:
        hint = "--target" if names else VARIABLE
        raise typer.BadParameter(str(error).removeprefix(f"{VARIABLE}: "), param_hint=hint) from None
    if not named and config:
        named = chosen("targets", (), config.settings.targets, parse, config)
    return named or [current_target()]


def one_target(names: Sequence[str] | None, complaint: str) -> Target:
    from dml_tile.simulation.process import VARIABLE

    chosen, *others = chosen_targets(names)
    if others:
        raise typer.BadParameter(complaint, param_hint="--target" if names else VARIABLE)
    return chosen


def known_shapes(
    dims: Sequence[str] | None, input_shapes: Sequence[str] | None, config: Config | None = None
) -> KnownShapes:
    """Return the sizes and shapes that options give, or settings where there are some."""
    from dml_tile.cli.config import Config
    from dml_tile.readers.model_tile import KnownShapes

    config = config or Config()
    settings = config.settings
    return KnownShapes(
        chosen("dim", dims, settings.dim, named_sizes, config),
        chosen("input-shape", input_shapes, settings.input_shape, named_shapes, config),
    )


def named_sizes(values: Sequence[str]) -> dict[str, int]:
    """Return the sizes of dimensions by their names, from NAME=SIZE. Raises ValueError for another form."""
    return {name: int(size) for name, size in _named(values, "[0-9]{1,18}", "NAME=SIZE")}


def named_shapes(values: Sequence[str]) -> dict[str, tuple[int | None, ...]]:
    """Return the shapes of inputs by their names, from INPUT=SIZE,?,…. Raises ValueError for another form."""
    size = r"([0-9]{1,18}|\?)"
    return {
        name: tuple(None if size == "?" else int(size) for size in sizes.split(",") if size)
        for name, sizes in _named(values, f"({size}(,{size})*)?", "INPUT=SIZE,SIZE,…")
    }


def _named(values: Sequence[str], form: str, expected: str) -> Iterator[tuple[str, str]]:
    """Yield the two sides of each value NAME=SIZES, of which the right one must match ``form``."""
    for value in values:
        name, _, sizes = value.rpartition("=")
        if not name or not re.fullmatch(form, sizes):
            raise ValueError(f"{value!r} is not of the form {expected}")
        yield name, sizes


def chosen_back_end(name: str | None) -> BackEnd | None:
    """Return the back end of an option. Raises typer.BadParameter for an unknown one."""
    from dml_tile.cli.config import Config

    return chosen("via", [name] if name is not None else [], [""], named_back_end, Config())


def named_back_end(names: Sequence[str]) -> BackEnd | None:
    """Return the back end of the first name, if that is not empty. Raises ValueError for an unknown one."""
    from dml_tile.back_ends import back_end_named

    return back_end_named(names[0]) if names[0] else None


def chosen(
    option: str,
    given: Sequence[str] | None,
    configured: Sequence[str],
    parse: Callable[[Sequence[str]], Parsed],
    config: Config,
) -> Parsed:
    """Return the values of an option, else those of its setting, parsed by a function that raises ValueError."""
    try:
        return parse(given or configured)
    except ValueError as error:
        if given:
            raise typer.BadParameter(str(error), param_hint=f"--{option}") from None
        raise config.error(option, str(error)) from None


_PARAMETERS: Final = {"paths": "files", "dim": "dims", "input-shape": "input_shapes"}
"""The parameters of settings that have other names."""


def setting_lines(context: typer.Context, config: Config, in_force: Mapping[str, object]) -> Iterator[str]:
    """Yield what is in force, a key a line, its value in JSON, and where it comes from.

    ``in_force`` are those that are neither an option's nor a setting's as they are.
    """
    from dml_tile.simulation.process import VARIABLE

    yield f"settings = {json.dumps(config.file or None)}  # the nearest pyproject.toml with [tool.dml-tile]\n"
    for key, setting in {**config.settings.model_dump(by_alias=True), **in_force}.items():
        given = context.params.get(_PARAMETERS.get(key, key.replace("-", "_")))
        variable = VARIABLE if key == "targets" and VARIABLE in os.environ else ""
        origin = "option" if given else variable or config.origin(key)
        value = in_force.get(key) or given or setting or ()
        yield f"{key} = {json.dumps(value)}  # {origin}\n"


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
