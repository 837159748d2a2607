"""``dml-tile check``"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from dml_tile.cli.commands.formats import FormatsOption, reports_in, require_other_files, wanted_formats
from dml_tile.cli.commands.options import (
    Against,
    DimsOption,
    InputShapesOption,
    TargetsOption,
    chosen_targets,
    known_shapes,
    named_back_ends,
    require_back_end,
    rules_named,
    split,
)
from dml_tile.cli.console import CLEAN, FINDINGS, ExitStatus, exit_on_file_errors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dml_tile.checks.selection import Selection
    from dml_tile.cli.config import Config
    from dml_tile.targets import Target


def check(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE",
            help="ONNX models, what OpenVINO reads, DxDispatch models, descriptors, lists of them or JSON lines, and "
            "folders of all these; - is standard input. By default the paths of pyproject.toml.",
        ),
    ] = None,
    targets: TargetsOption = None,
    against: Annotated[
        Against | None,
        typer.Option(help="The contract to hold descriptors to; both, the default: what breaks either."),
    ] = None,
    formats: FormatsOption = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write there what would be printed; whole, or not at all."),
    ] = None,
    page: Annotated[
        str | None,
        typer.Option("--report", metavar="FILE", help="Also write a page for a browser: --format html:FILE."),
    ] = None,
    select: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE",
            help="Only findings of these rules count: ids, or the first words of several, as DML-BUFFER. "
            "The lowest level is by all rules.",
            autocompletion=rules_named,
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE",
            help="Findings of these rules do not count, unless --select names them with more words.",
            autocompletion=rules_named,
        ),
    ] = None,
    exit_zero: Annotated[bool, typer.Option("--exit-zero", help="Exit with 0 where there are findings, too.")] = False,
    statistics: Annotated[
        bool, typer.Option("--statistics", help="Tell how many findings there are of each rule (text and json).")
    ] = False,
    skip_others: Annotated[
        bool, typer.Option("--skip-others", help="Pass over files that have no tiles, as in folders.")
    ] = False,
    dims: DimsOption = None,
    input_shapes: InputShapesOption = None,
    via: Annotated[
        str | None,
        typer.Option(
            metavar="BACKEND",
            help="Check what a back end makes of models: ort, ort-middle, ort-first, chromium, tensorflow, directmlx.",
            autocompletion=named_back_ends,
        ),
    ] = None,
) -> None:
    """Say which tiles DirectML would accept at each target, and why not.

    The table tool.dml-tile of the nearest pyproject.toml may have targets, select, ignore, against and paths; options
    win over it.
    """
    from dml_tile.checks.files import Checking
    from dml_tile.cli.check_files import checked_files
    from dml_tile.cli.config import nearest_config

    wanted = wanted_formats(formats, output, page, with_statistics=statistics)
    if via is not None:
        require_back_end(via)
    shapes = known_shapes(dims, input_shapes)
    status = ExitStatus()
    with exit_on_file_errors():
        config = nearest_config()
        held_to = against.value if against else config.against or "both"
        checking = Checking(
            _targets(targets, config),
            held_to,
            shapes,
            status.complain,
            via,
            selection=_selection(split(select or ()), split(ignore or ()), config),
            skips_others=skip_others,
        )
        names = files or config.paths
        if not names:
            raise typer.BadParameter("name files or folders, or set paths in pyproject.toml", param_hint="FILE")
        require_other_files(wanted, names)
        with reports_in(wanted, held_to, with_statistics=statistics) as reports:
            for results in checked_files(checking, names):
                if any(result.findings for result in results):
                    status.count_findings()
                for report in reports:
                    report.add(results)
            for report in reports:
                report.end(checking.problems, checking.models)
    raise typer.Exit(CLEAN if exit_zero and status.code == FINDINGS else status.code)


def _targets(names: Sequence[str] | None, config: Config) -> list[Target]:
    if names or not config.targets:
        return chosen_targets(names)
    from dml_tile.targets import Target

    try:
        return [Target.parse(name) for name in config.targets]
    except ValueError as error:
        raise config.error("targets", str(error)) from None


def _selection(select: Sequence[str], ignore: Sequence[str], config: Config) -> Selection:
    """What is given takes the place of what the project says, each for itself."""
    from dml_tile.checks.selection import Selection

    for option, given, configured in (("select", select, config.select), ("ignore", ignore, config.ignore)):
        try:
            Selection(**{option: tuple(given or configured)})
        except ValueError as error:
            if given:
                raise typer.BadParameter(str(error), param_hint=f"--{option}") from None
            raise config.error(option, str(error)) from None
    return Selection(tuple(select or config.select), tuple(ignore or config.ignore))
