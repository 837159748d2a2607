"""``dml-tile emit``"""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from dml_tile.cli.commands.formats import print_text
from dml_tile.cli.commands.options import NameOption, NamespaceOption, named_targets, names_in, one_target
from dml_tile.cli.console import CLEAN, FINDINGS, UNREADABLE, ExitStatus, complain


def emit(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A DxDispatch model, a descriptor, a list of them or JSON lines; - is standard input.",
        ),
    ],
    language: Annotated[
        Literal["cpp", "json", "python"],
        typer.Option("--lang", "--format", help="C++ for DirectML.h, DirectML's names in JSON, Python."),
    ],
    targets: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            "-t",
            metavar="TARGET",
            help="Build the tiles that do the same at this target, as lower finds them.",
            autocompletion=named_targets,
        ),
    ] = None,
    name: NameOption = None,
    namespace: NamespaceOption = None,
) -> None:
    """Print source text that builds each descriptor; exits with 1 if it leaves out other operators.

    With --target, also if a tile has no lowering there.
    """
    from dml_tile.emit.source import other_operator, source_text
    from dml_tile.errors import Problem
    from dml_tile.files.urls import source_named
    from dml_tile.readers.descriptors import JsonDescriptor, read_source
    from dml_tile.readers.sources import is_model_file

    file = source_named(file)
    names = names_in(language, name, namespace)
    if is_model_file(file):
        complain(file, [Problem("", "emit reads JSON; `dml-tile lower --format cpp` builds the tiles of models")])
        raise typer.Exit(UNREADABLE)
    described: list[JsonDescriptor] = []
    problems: list[Problem] = []
    left_out: list[Problem] = []
    for part in read_source(file):
        if not isinstance(part, JsonDescriptor):
            problems.append(part)
        elif not part.is_operator:
            continue
        elif other := other_operator(part):
            left_out.append(Problem(part.pointer, f"{other} is not a tile; it is left out"))
        else:
            described.append(part)
    complain(file, problems + left_out)
    if problems:
        raise typer.Exit(UNREADABLE)
    if targets:
        from dml_tile.checks.lowerings import lower_part
        from dml_tile.cli.commands.lower import print_steps

        target = one_target(targets, "tiles are lowered for one target")
        status = ExitStatus()
        if left_out:
            status.count_findings()
        print_steps(language, [lower_part(file, part, target) for part in described], status, names)
        raise typer.Exit(status.code)
    for text in source_text(language, file, described, names):
        print_text(text)
    raise typer.Exit(FINDINGS if left_out else CLEAN)
