"""The command line: ``dml-tile check``, ``run``, ``emit``, ``levels``, ``explain`` and ``schema``.

Exit status: 0 clean, 1 findings, 2 wrong usage or an input that cannot be read.
"""

from __future__ import annotations

import os
import sys
from enum import StrEnum
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:  # what a command needs is imported when it is called, so that --help costs nothing
    from collections.abc import Iterator, Sequence

    from rich.console import Console

    from dml_tile.findings import Against as AgainstName
    from dml_tile.frontends.problems import Problem
    from dml_tile.reports.result import Result
    from dml_tile.targets import Target

CLEAN, FINDINGS, UNREADABLE = 0, 1, 2

_WIDTH_WITHOUT_A_TERMINAL = 120
_FILES_WORTH_A_PROGRESS_BAR = 20

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
AgainstOption = Annotated[Against, typer.Option(help="The contract to hold descriptors to; both: what breaks either.")]


@app.command()
def check(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE",
            help="DxDispatch models, descriptors, lists of them or JSON lines; - is standard input.",
        ),
    ],
    targets: TargetsOption = None,
    against: AgainstOption = Against.BOTH,
    output_format: Annotated[Format, typer.Option("--format", help="For people, or for programs.")] = Format.TEXT,
) -> None:
    """Say which descriptors DirectML would accept at each target, and why not."""
    from dml_tile.reports.json import json_report
    from dml_tile.reports.text import print_results

    outcome = _Outcome(_targets(targets), against.value)
    results = outcome.results(files)
    try:
        if output_format == Format.JSON:
            for part in json_report(results, outcome.problems):
                sys.stdout.buffer.write(part.encode())  # JSON is UTF-8 whatever the terminal speaks
        else:
            print_results(_console(), results, with_lowest_level=against == Against.BOTH)
        sys.stdout.flush()  # while it can still be told that it fails
    except BrokenPipeError:  # nobody reads on, as in `dml-tile check many.jsonl | head`; the status is still true
        _forget_output()
        for _ in results:
            pass
    raise typer.Exit(outcome.status)


@app.command()
def run(
    model: Annotated[str, typer.Argument(metavar="MODEL.json", help="A DxDispatch model; - is standard input.")],
    targets: TargetsOption = None,
    against: AgainstOption = Against.BOTH,
) -> None:
    """Run a DxDispatch model: its tiles are checked, then its commands are done in order."""
    from dml_tile.frontends.documents import read_value
    from dml_tile.frontends.dxdispatch.model import read_model
    from dml_tile.frontends.dxdispatch.run import ModelError, run_model
    from dml_tile.frontends.folders import Folders
    from dml_tile.frontends.problems import InputError, Problem
    from dml_tile.reports.text import print_refusals

    chosen, *others = _targets(targets)
    if others:
        raise typer.BadParameter("a model is run at one target", param_hint="--target")
    folder = Path() if model == "-" else Path(model).parent
    try:
        read = read_model(read_value(model))
        run_model(read, Folders(folder, Path()), _write_while_read, chosen, against.value)
    except ModelError as error:
        print_refusals(_console(stderr=True), model, error.results, chosen)
        raise typer.Exit(FINDINGS) from None
    except InputError as error:
        _complain(model, error.problems)
        raise typer.Exit(UNREADABLE) from None
    except OSError as error:
        if error.filename is None:
            raise  # it is standard output's
        _complain(model, [Problem("", f"{error.filename}: {error.strerror}")])
        raise typer.Exit(UNREADABLE) from None
    except MemoryError:
        _complain(model, [Problem("", "there is not enough memory")])
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
    _complain(file, problems + left_out)
    if problems:
        raise typer.Exit(UNREADABLE)
    for text in source_text(language.value, file, described):
        _write_while_read(text)
    raise typer.Exit(FINDINGS if left_out else CLEAN)


@app.command()
def levels() -> None:
    """Show Tile's support table, and what each Windows release and DirectML version accepts."""
    from dml_tile.reports.tables import levels_table, support_table, target_table

    console = _console()
    console.print(support_table(), "", target_table(), "", levels_table(), sep="\n")


@app.command()
def explain(
    rule: Annotated[str | None, typer.Argument(metavar="RULE", help="A rule's id; without it, all rules.")] = None,
) -> None:
    """Tell what a rule says, what it rests on, what DirectML returns, and the page."""
    from dml_tile.reports.text import print_lines, rule_lines
    from dml_tile.rules import RULES, rule_named

    try:
        rules = RULES.values() if rule is None else [rule_named(rule)]
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="RULE") from None
    console = _console()
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


class _Outcome:
    """Checks files, and remembers what cannot be read, and the exit status that all amounts to."""

    def __init__(self, targets: Sequence[Target], against: AgainstName) -> None:
        self.status = CLEAN
        self.problems: list[tuple[str, Problem]] = []
        self._targets = targets
        self._against: AgainstName = against

    def results(self, files: Sequence[str]) -> Iterator[Result]:
        """The results of all files; what cannot be read is told on stderr as it comes."""
        if len(files) < _FILES_WORTH_A_PROGRESS_BAR or not sys.stderr.isatty():
            for file in files:
                yield from self._results_of(file)
            return
        from rich.progress import track

        console = _console(stderr=True)
        collected: list[Result] = []  # shown when the bar is gone, so that the two do not mix
        for file in track(files, "checking", console=console, transient=True):
            collected += self._results_of(file)
        yield from collected

    def _results_of(self, file: str) -> Iterator[Result]:
        from dml_tile.frontends.documents import Described, read_source
        from dml_tile.reports.result import Result
        from dml_tile.rules import check, lowest_level, not_a_tile

        for part in read_source(file):
            if not isinstance(part, Described):
                _complain(file, [part])
                self.problems.append((file, part))
                self.status = UNREADABLE
                continue
            lowest = lowest_level(part.desc) if part.other is None else None
            for target in self._targets:
                other = part.other
                findings = check(part.desc, target, self._against) if other is None else (not_a_tile(other),)
                if findings:
                    self.status = max(self.status, FINDINGS)
                yield Result(file, part.pointer, target, findings, lowest)


def _targets(names: Sequence[str] | None) -> list[Target]:
    from dml_tile.simulation import DEFAULT_TARGET
    from dml_tile.targets import Target

    try:
        return [Target.parse(name) for name in names] if names else [DEFAULT_TARGET]
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--target") from None


def _complain(source: str, problems: Sequence[Problem]) -> None:
    from dml_tile.frontends.problems import printable

    for problem in problems:
        where = f"{source}#{problem.pointer}" if problem.pointer else source
        typer.echo(f"dml-tile: {printable(where)}: {printable(problem.message)}", err=True)


def _console(stderr: bool = False) -> Console:
    from rich.console import Console

    class PipeConsole(Console):
        def on_broken_pipe(self) -> None:  # rich would exit with a status of its own
            raise BrokenPipeError

    console = PipeConsole(stderr=stderr, highlight=False, markup=False, emoji=False)
    if not console.is_terminal:
        console.width = _WIDTH_WITHOUT_A_TERMINAL
    return console


def _write_while_read(text: str) -> None:
    """Write to standard output; once its reader has gone, a model's later commands are done all the same."""
    try:
        sys.stdout.write(text)
        if text.endswith("\n"):
            sys.stdout.flush()
    except BrokenPipeError:
        _forget_output()


def _forget_output() -> None:
    """Keep Python from complaining, at its end, of what it cannot write to a reader that has gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


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
        _forget_output()
        raise SystemExit(UNREADABLE) from None
