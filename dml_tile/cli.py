"""The command line: ``dml-tile check``, ``lower``, ``run``, ``emit``, ``levels``, ``explain`` and ``schema``.

Exit status: 0 clean, 1 findings, 2 wrong usage or an input that cannot be read.
"""

from __future__ import annotations

import os
import re
import sys
from enum import StrEnum
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dml_tile.terminal import CLEAN, FINDINGS, UNREADABLE, complain, console_of, forget_output, write_while_read

if TYPE_CHECKING:  # what a command needs is imported when it is called, so that --help costs nothing
    from collections.abc import Iterator, Sequence

    from dml_tile.frontends.nodes import Fixed
    from dml_tile.frontends.problems import Problem
    from dml_tile.targets import Target

app = typer.Typer(
    name="dml-tile",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"dml-tile {version('dml-tile')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Would DirectML accept this tile? Checks and runs DML_TILE_OPERATOR_DESC descriptors, anywhere."""


class Against(StrEnum):
    DOCUMENTATION = "documentation"
    RUNTIME = "runtime"
    BOTH = "both"


class Format(StrEnum):
    TEXT = "text"
    JSON = "json"


class LoweringFormat(StrEnum):
    TEXT = "text"
    JSON = "json"
    CPP = "cpp"
    PYTHON = "python"


class LevelsFormat(StrEnum):
    TEXT = "text"
    WEBNN = "webnn"


class Language(StrEnum):
    CPP = "cpp"
    JSON = "json"
    PYTHON = "python"


TargetsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        "-t",
        metavar="TARGET",
        help="A feature level (4_1), directml-1.6.0, windows-11-21h2 or onnxruntime-directml-1.16.3; check takes "
        "several. By default 6_4.",
    ),
]
DimsOption = Annotated[
    list[str] | None, typer.Option("--dim", metavar="NAME=SIZE", help="The size of a named dimension of ONNX models.")
]
InputShapesOption = Annotated[
    list[str] | None,
    typer.Option("--input-shape", metavar="INPUT=1,3,224,224", help="The shape of a model's input."),
]
AgainstOption = Annotated[Against, typer.Option(help="The contract to hold descriptors to; both: what breaks either.")]


@app.command()
def check(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="ONNX models, what OpenVINO reads, DxDispatch models, descriptors, lists of them or JSON lines, and "
            "folders of all these; - is standard input.",
        ),
    ],
    targets: TargetsOption = None,
    against: AgainstOption = Against.BOTH,
    output_format: Annotated[Format, typer.Option("--format", help="For people, or for programs.")] = Format.TEXT,
    dims: DimsOption = None,
    input_shapes: InputShapesOption = None,
    via: Annotated[
        str | None,
        typer.Option(
            metavar="BACKEND",
            help="Check what a back end makes of models: ort, ort-middle, ort-first, chromium, tensorflow, directmlx.",
        ),
    ] = None,
) -> None:
    """Say which tiles DirectML would accept at each target, and why not."""
    from dml_tile.checking import Checking
    from dml_tile.reports.json import json_report
    from dml_tile.reports.summary import summary_table
    from dml_tile.reports.text import print_results

    if via is not None:
        _require_back_end(via)
    checking = Checking(_targets(targets), against.value, _fixed(dims, input_shapes), via)
    results = checking.results(files)
    try:
        if output_format == Format.JSON:
            for part in json_report(results, checking.problems):
                sys.stdout.buffer.write(part.encode())  # JSON is UTF-8 whatever the terminal speaks
        else:
            console = console_of()
            print_results(console, results, with_lowest_level=against == Against.BOTH)
            if checking.models:
                console.print(summary_table(checking.models))
        sys.stdout.flush()  # while it can still be told that it fails
    except BrokenPipeError:  # nobody reads on, as in `dml-tile check many.jsonl | head`; the status is still true
        forget_output()
        for _ in results:
            pass
    raise typer.Exit(checking.status)


@app.command()
def lower(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="What check takes, one file or folder; - is standard input.")
    ],
    targets: TargetsOption = None,
    output_format: Annotated[
        LoweringFormat,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="text: tables; json: a DxDispatch model of one tile; cpp, python: code that builds the steps.",
        ),
    ] = LoweringFormat.TEXT,
    pointer: Annotated[
        str | None,
        typer.Option(metavar="POINTER", help="The one tile to lower: what stands behind # in what check shows."),
    ] = None,
    no_float_carriers: Annotated[
        bool, typer.Option("--no-float-carriers", help="Let no bits travel as another data type's floats.")
    ] = False,
    dims: DimsOption = None,
    input_shapes: InputShapesOption = None,
) -> None:
    """Find the tiles that do the same at an older target; exits with 1 if one has no such lowering."""
    from dml_tile.lowered_files import LoweredFiles

    files = LoweredFiles(
        _one_target(targets, "tiles are lowered for one target"),
        _fixed(dims, input_shapes),
        pointer,
        allow_float_reinterpretation=not no_float_carriers,
    )
    files.write(file, output_format.value)
    raise typer.Exit(files.status)


@app.command()
def run(
    model: Annotated[str, typer.Argument(metavar="MODEL.json", help="A DxDispatch model; - is standard input.")],
    targets: TargetsOption = None,
    against: AgainstOption = Against.BOTH,
    explain_plan: Annotated[
        bool, typer.Option("--explain-plan", help="Tell, on standard error, how the bytes of each tile are moved.")
    ] = False,
) -> None:
    """Run a DxDispatch model: its tiles are checked, then its commands are done in order."""
    from dml_tile.frontends.documents import read_value
    from dml_tile.frontends.dxdispatch.model import read_model
    from dml_tile.frontends.dxdispatch.run import ModelError, run_model
    from dml_tile.frontends.folders import Folders
    from dml_tile.frontends.problems import InputError, Problem
    from dml_tile.reports.text import print_refusals
    from dml_tile.terminal import run_tile

    chosen = _one_target(targets, "a model is run at one target")
    folder = Path() if model == "-" else Path(model).parent
    try:
        read = read_model(read_value(model))
        dispatch = partial(run_tile, explain_plan=explain_plan)
        run_model(read, Folders(folder, Path()), write_while_read, chosen, against.value, dispatch)
    except ModelError as error:
        print_refusals(console_of(stderr=True), model, error.results, chosen)
        raise typer.Exit(FINDINGS) from None
    except InputError as error:
        complain(model, error.problems)
        raise typer.Exit(UNREADABLE) from None
    except OSError as error:
        if error.filename is None:
            raise  # it is standard output's
        complain(model, [Problem("", f"{error.filename}: {error.strerror}")])
        raise typer.Exit(UNREADABLE) from None
    except MemoryError:
        complain(model, [Problem("", "there is not enough memory")])
        raise typer.Exit(UNREADABLE) from None


@app.command()
def emit(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="A DxDispatch model, a descriptor, a list of them or JSON lines; - is standard input.",
        ),
    ],
    language: Annotated[Language, typer.Option("--lang", help="C++ for DirectML.h, DirectML's names in JSON, Python.")],
) -> None:
    """Print source text that builds each descriptor; exits with 1 if operators that are no tiles were left out."""
    from dml_tile.frontends.documents import Described, read_source
    from dml_tile.frontends.problems import Problem
    from dml_tile.reports.source import other_operator, source_text

    described: list[Described] = []
    problems: list[Problem] = []
    left_out: list[Problem] = []
    for part in read_source(file):
        if not isinstance(part, Described):
            problems.append(part)
        elif other := other_operator(part):
            left_out.append(Problem(part.pointer, f"{other} is not a tile; it is left out"))
        else:
            described.append(part)
    complain(file, problems + left_out)
    if problems:
        raise typer.Exit(UNREADABLE)
    for text in source_text(language.value, file, described):
        write_while_read(text)
    raise typer.Exit(FINDINGS if left_out else CLEAN)


@app.command()
def levels(
    output_format: Annotated[
        LevelsFormat,
        typer.Option("--format", help="Tables, or what WebNN's opSupportLimits() tells of tile at a target."),
    ] = LevelsFormat.TEXT,
    target: Annotated[
        str | None, typer.Option("--target", "-t", metavar="TARGET", help="For --format webnn; by default 6_4.")
    ] = None,
) -> None:
    """Show Tile's support table, and what each Windows release and DirectML version accepts."""
    if output_format == LevelsFormat.WEBNN:
        _show_op_support_limits(target)
        return
    if target is not None:
        raise typer.BadParameter("the tables are of all targets; --format webnn takes one", param_hint="--target")
    from dml_tile.reports.tables import levels_table, support_table, target_table

    console = console_of()
    console.print(support_table(), "", target_table(), "", levels_table(), sep="\n")


@app.command()
def explain(
    rule: Annotated[str | None, typer.Argument(metavar="RULE", help="A rule's id; without it, all rules.")] = None,
) -> None:
    """Tell what a rule says, what it rests on, what DirectML returns, and the page."""
    from dml_tile.reports.text import print_lines, rule_lines
    from dml_tile.rulebook import RULES, rule_named

    try:
        rules = RULES.values() if rule is None else [rule_named(rule)]
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="RULE") from None
    console = console_of()
    for known in rules:
        print_lines(console, rule_lines(known))
    sys.stdout.flush()


@app.command()
def schema(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="A schema's name; without it, their names.")
    ] = None,
) -> None:
    """Print a JSON Schema of what is read or written, or the names of all."""
    import json

    from dml_tile.schemas import schemas

    known = schemas()
    if name is None:
        typer.echo("\n".join(known))
    elif name in known:
        typer.echo(json.dumps(known[name], indent=2))
    else:
        raise typer.BadParameter(f"there is no schema {name!r}; expected one of {', '.join(known)}", param_hint="NAME")


def _show_op_support_limits(target: str | None) -> None:
    import json

    from dml_tile.dialects.request import DialectError
    from dml_tile.frontends.webnn import op_support_limits

    (chosen,) = _targets([target] if target is not None else None)
    try:
        typer.echo(json.dumps(op_support_limits(chosen), indent=2))
    except DialectError as error:
        raise typer.BadParameter(error.message, param_hint="--target") from None


def _targets(names: Sequence[str] | None) -> list[Target]:
    from dml_tile.simulation import DEFAULT_TARGET
    from dml_tile.targets import Target

    try:
        return [Target.parse(name) for name in names] if names else [DEFAULT_TARGET]
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--target") from None


def _one_target(names: Sequence[str] | None, complaint: str) -> Target:
    chosen, *others = _targets(names)
    if others:
        raise typer.BadParameter(complaint, param_hint="--target")
    return chosen


def _fixed(dims: Sequence[str] | None, input_shapes: Sequence[str] | None) -> Fixed:
    from dml_tile.frontends.nodes import Fixed

    return Fixed(
        {name: size for name, (size,) in _named_sizes("--dim", dims, 1)},
        dict(_named_sizes("--input-shape", input_shapes)),
    )


def _require_back_end(name: str) -> None:
    from dml_tile.frontends.backends import back_end_named

    try:
        back_end_named(name)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--via") from None


def _named_sizes(option: str, values: Sequence[str] | None, count: int | None = None) -> Iterator[tuple[str, Any]]:
    """The names and sizes of an option's values, NAME=SIZE,SIZE,…; ``count`` is how many sizes each has."""
    for value in values or ():
        name, _, text = value.rpartition("=")
        sizes = text.split(",") if text else []
        if (
            not name
            or len(sizes) != (count or len(sizes))
            or not all(re.fullmatch("[0-9]{1,18}", size) for size in sizes)
        ):
            expected = "NAME=SIZE" if count == 1 else "INPUT=SIZE,SIZE,…"
            raise typer.BadParameter(f"{value!r} is not of the form {expected}", param_hint=option)
        yield name, tuple(map(int, sizes))


def main() -> None:
    """Run the command line."""
    if sys.stdout is None:  # closed by the caller
        sys.stdout = Path(os.devnull).open("w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except OSError as error:  # standard output cannot be written to
        typer.echo(f"dml-tile: standard output: {error.strerror}", err=True)
        forget_output()
        raise SystemExit(UNREADABLE) from None
