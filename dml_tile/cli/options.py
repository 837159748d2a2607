"""The options of ``check``, and those that several commands share, with what completes them in a shell."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from dml_tile.cli.console import FailOn
from dml_tile.directml.targets import DEFAULT_TARGET, target_names
from dml_tile.files.links import unlinked
from dml_tile.findings import Against
from dml_tile.readers.file_kinds import read_kinds
from dml_tile.reports.report import FORMATS
from dml_tile.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def _completion(known: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Return the function that completes the beginning of a known name."""
    return lambda incomplete: [name for name in known() if name.startswith(incomplete)]


def _rules_and_results() -> Iterable[str]:
    from dml_tile.checks.catalogue import RULES, result_codes

    return *RULES, *result_codes()


complete_target = _completion(target_names)
complete_format = _completion(lambda: FORMATS)
complete_operator = _completion(lambda: import_module("dml_tile.directml.operators").operator_names())
complete_rule = _completion(lambda: import_module("dml_tile.checks.catalogue").RULES)
complete_rule_or_result = _completion(_rules_and_results)
complete_back_end = _completion(lambda: import_module("dml_tile.back_ends").back_end_names())

TargetsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--target",
        "-t",
        metavar="TARGET",
        help="A feature level (4_1), directml-1.6.0, windows-11-21h2 or onnxruntime-directml-1.16.3; check takes "
        f"several, also as 4_1,5_0. By default that of DML_TILE_TARGET, or {DEFAULT_TARGET}.",
        autocompletion=complete_target,
    ),
]
FileArgument = Annotated[
    str, typer.Argument(metavar="FILE", help="What check takes, one file or folder; - is standard input.")
]
NameOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="A lone descriptor's name in C++ or Python; those of several begin so."),
]
NamespaceOption = Annotated[
    str | None, typer.Option(metavar="NAMESPACE", help="The namespace of C++, such as app::tiles.")
]
DimsOption = Annotated[
    list[str] | None, typer.Option(metavar="NAME=SIZE", help="The size of a named dimension of ONNX models.")
]
InputShapesOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=SIZES", help="The shape of a model's input, as x=1,3,224,224; ? leaves a size as it is."
    ),
]
ViaOption = Annotated[
    str | None,
    typer.Option(
        metavar="BACKEND",
        help="Take what a back end makes of models: ort, ONNX Runtime's DirectML provider (check also says which "
        "nodes it takes), ort-1.20, that release over any DirectML, or chromium, its WebNN.",
        autocompletion=complete_back_end,
    ),
]
AgainstOption = Annotated[
    Against | None,
    typer.Option(
        metavar="CONTRACT",
        help="documentation, runtime or both: the contract to check; both, the default, reports what breaks either.",
    ),
]


RootOption = Annotated[
    str | None, typer.Option(metavar="DIR", help="A folder below which links of the repository may lead.")
]


def folder_of_links(root: str | None) -> str:
    """Return the path without links of --root, ``""`` without one.

    Raises BadParameter if it is no folder, or a link in a repository decides which it is.
    """
    if root is None:
        return ""
    try:
        if Path(place := unlinked(root)).is_dir():
            return place
        problem = f"{root} is no folder"
    except OSError as error:
        problem = error.strerror or str(error)
    raise typer.BadParameter(printable(problem), param_hint="--root")


class CheckOptions(NamedTuple):
    """The options of ``check``, as typer takes them. ``Config.with_options`` takes those that have a setting's name."""

    paths: list[str] | None = typer.Argument(
        None,
        metavar="FILE",
        help=f"Files, and folders of them: {read_kinds()}; - is standard input. By default the paths of "
        "pyproject.toml.",
    )
    files_from: str | None = typer.Option(
        None,
        metavar="FILE",
        help="Also check the files that this one lists, one a line or each ended by NUL; - is standard input.",
    )
    stdin_filename: str | None = typer.Option(
        None,
        metavar="NAME",
        help="The file that standard input is the text of: its name in the output, and its per-file-ignores.",
    )
    targets: TargetsOption = None
    against: AgainstOption = None
    formats: list[str] | None = typer.Option(
        None,
        "--format",
        metavar="FORMAT[:FILE]",
        help=f"{', '.join(FORMATS)}; the first by default. Several may be given, all but one with a file.",
        autocompletion=complete_format,
    )
    select: list[str] | None = typer.Option(
        None,
        metavar="RULE",
        help="Only findings of these rules count: ids, or prefixes such as DML-BUFFER. "
        "The lowest level follows all rules.",
        autocompletion=complete_rule,
    )
    ignore: list[str] | None = typer.Option(
        None,
        metavar="RULE",
        help="Findings of these rules do not count, unless --select has a longer prefix.",
        autocompletion=complete_rule,
    )
    baseline: str | None = typer.Option(
        None, metavar="FILE", help="Findings that are in this file do not count; the others fail as ever."
    )
    write_baseline: str | None = typer.Option(
        None, metavar="FILE", help="Write all findings that count to this file, and let them pass."
    )
    fail_on: FailOn | None = typer.Option(
        None,
        metavar="SEVERITY",
        help="error, warning, note or never: the severity of findings from which on the exit status is 1; by "
        "default warning. What is known at run time only counts as a note.",
    )
    require_operators: bool | None = typer.Option(
        None, "--require-operators", help="Exit with 2 if nothing was checked."
    )
    quiet: bool = typer.Option(False, "--quiet", "-q", help="Print only what fails (text); no summary.")
    verbose: bool = typer.Option(
        False, "--verbose", help="Print each node, all of a captured operator, and each skipped file."
    )
    exclude: list[str] | None = typer.Option(
        None, metavar="GLOB", help="Pass over files and folders that match, such as build or '*.tmp.onnx'."
    )
    skip_others: bool = typer.Option(False, "--skip-others", help="Skip files without operators, as in folders.")
    strict_files: bool | None = typer.Option(
        None,
        "--strict-files",
        help="Exit with 2 if there is nothing to check in a file of a kind that is read, unless it is excluded.",
    )
    no_ignore: bool = typer.Option(
        False,
        "--no-ignore",
        help="In folders, also check what .gitignore names, hidden folders, node_modules and virtual environments.",
    )
    root: str | None = typer.Option(
        None,
        metavar="DIR",
        help="The folder from which reports for machines name files, by default the repository's; links of the "
        "repository may also lead below it.",
    )
    show_settings: bool = typer.Option(
        False, "--show-settings", help="Print the settings in force and their origins, and exit."
    )
    dim: DimsOption = None
    input_shape: InputShapesOption = None
    jobs: int | None = typer.Option(
        None,
        "--jobs",
        "-j",
        metavar="N",
        min=1,
        max=32,  # each reads models in its part of 4 GiB, and must be able to import onnx
        help="Check files in N processes; by default in one, or up to 8 where files are many.",
    )
    dask: str | None = typer.Option(
        None,
        metavar="ADDRESS",
        help="Check files on a Dask cluster, by its scheduler's address, such as tcp://scheduler:8786; "
        "pip install distributed.",
    )
    via: ViaOption = None
