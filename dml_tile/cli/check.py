"""``dml-tile check``"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from dml_tile.cli.console import ExitStatus, complain, exit_on_file_errors
from dml_tile.cli.formats import (
    FormatsOption,
    invocation_of,
    print_text,
    replaced,
    reports_in,
    require_other_files,
    wanted_formats,
)
from dml_tile.cli.options import (
    DimsOption,
    FailOn,
    InferOption,
    InputShapesOption,
    TargetsOption,
    chosen,
    chosen_targets,
    known_shapes,
    named_back_end,
    named_back_ends,
    named_sizes,
    rules_named,
    setting_lines,
    split,
)
from dml_tile.errors import Problem
from dml_tile.findings import Against, Severity

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dml_tile.checks.baseline import Entry
    from dml_tile.checks.file_check import FileIgnore, SourceSummary

MAX_LISTED_ENTRIES: Final = 10
"""The entries of a baseline that a message lists."""


def check(
    context: typer.Context,
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
        typer.Option(
            metavar="CONTRACT",
            help="documentation, runtime or both: the contract to check; both, the default, reports what breaks "
            "either.",
        ),
    ] = None,
    formats: FormatsOption = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the output to this file; whole, or not at all."),
    ] = None,
    page: Annotated[
        str | None,
        typer.Option("--report", metavar="FILE", help="Also write a page for a browser: --format html:FILE."),
    ] = None,
    select: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE",
            help="Only findings of these rules count: ids, or prefixes such as DML-BUFFER. "
            "The lowest level follows all rules.",
            autocompletion=rules_named,
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RULE",
            help="Findings of these rules do not count, unless --select has a longer prefix.",
            autocompletion=rules_named,
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Findings that are in this file do not count; the others fail as ever."),
    ] = None,
    write_baseline: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Write all findings that count to this file, and let them pass."),
    ] = None,
    prune: Annotated[
        bool,
        typer.Option("--prune", help="With --write-baseline: only take out of the file what no longer occurs."),
    ] = False,
    fail_on: Annotated[
        FailOn | None,
        typer.Option(
            metavar="SEVERITY",
            help="error, warning, note or never: the severity of findings from which on the exit status is 1; by "
            "default warning. What is known at run time only counts as a note.",
        ),
    ] = None,
    require_tiles: Annotated[bool, typer.Option("--require-tiles", help="Exit with 2 if no tile was checked.")] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Print only the tiles that fail (text); no summary.")
    ] = False,
    statistics: Annotated[
        bool, typer.Option("--statistics", help="Count the findings of each rule (text and json).")
    ] = False,
    exclude: Annotated[
        list[str] | None,
        typer.Option(metavar="GLOB", help="Pass over files and folders that match, such as build or '*.tmp.onnx'."),
    ] = None,
    skip_others: Annotated[
        bool, typer.Option("--skip-others", help="Skip files without tiles, as in folders.")
    ] = False,
    no_ignore: Annotated[
        bool,
        typer.Option(
            "--no-ignore",
            help="In folders, also check what .gitignore names, hidden folders, node_modules and virtual environments.",
        ),
    ] = False,
    root: Annotated[
        str | None,
        typer.Option(
            metavar="DIR", help="The folder from which reports for machines name files; by default the repository's."
        ),
    ] = None,
    show_settings: Annotated[
        bool, typer.Option("--show-settings", help="Print what is in force and where it comes from, and exit.")
    ] = False,
    dims: DimsOption = None,
    input_shapes: InputShapesOption = None,
    infer: InferOption = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs",
            "-j",
            metavar="N",
            min=1,
            max=32,  # each reads models in its part of 4 GiB, and must be able to import onnx
            help="Check files in N processes; by default in one, or up to 8 where files are many.",
        ),
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(
            "--dask",
            metavar="ADDRESS",
            help="Check files on a Dask cluster, by its scheduler's address, such as tcp://scheduler:8786; "
            "pip install distributed.",
        ),
    ] = None,
    via: Annotated[
        str | None,
        typer.Option(
            metavar="BACKEND",
            help="Check what a back end makes of models, such as ort; an unknown name lists all.",
            autocompletion=named_back_ends,
        ),
    ] = None,
) -> None:
    """Say which tiles DirectML would accept at each target, and why it would refuse the others.

    The table tool.dml-tile of the nearest pyproject.toml may set paths and, under the names of the options, targets,
    select, ignore, baseline, against, via, dim, input-shape, exclude and fail-on; an option replaces its setting.
    per-file-ignores has rules by patterns of files.
    """
    from dml_tile.checks.baseline import Baseline, Entry, baseline_text, entries_of
    from dml_tile.checks.catalogue import Selection, known_rules
    from dml_tile.checks.file_check import FileCheck, SourceSummary, checked_here
    from dml_tile.checks.files import Exclusion, files_named, unknown_dimension
    from dml_tile.cli.config import nearest_config
    from dml_tile.cli.jobs import chosen_workers, counted_files
    from dml_tile.files.repository import repository_root
    from dml_tile.files.urls import source_named
    from dml_tile.reports.report import ReportOptions

    if baseline and write_baseline:
        raise typer.BadParameter("writes all findings, and takes no --baseline", param_hint="--write-baseline")
    if prune and not write_baseline:
        raise typer.BadParameter("takes entries out of the file of --write-baseline", param_hint="--prune")
    if root is not None and not Path(root).is_dir():
        raise typer.BadParameter(f"{root} is no folder", param_hint="--root")
    wanted = wanted_formats(formats, output, page, with_statistics=statistics)
    status = ExitStatus()
    with exit_on_file_errors():
        config = nearest_config()
        settings = config.settings
        contract = against or settings.against or "both"
        failing = fail_on or settings.fail_on or "warning"
        threshold = None if failing == "never" else Severity[failing.upper()]
        known_file = (write_baseline if prune else "") if write_baseline else baseline or settings.baseline
        selection = Selection(
            chosen("select", split(select or ()), settings.select, known_rules, config),
            chosen("ignore", split(ignore or ()), settings.ignore, known_rules, config),
        )
        at = chosen_targets(targets, config)
        names = [*map(source_named, files)] if files else settings.paths
        base = root if root is not None else repository_root(names)
        if show_settings:
            at_names = [target.name for target in at]
            in_force = {"targets": at_names, "against": contract, "fail-on": failing, "root": base}
            print_text("".join(setting_lines(context, config, in_force)))
            raise typer.Exit
        known = Baseline(known_file) if known_file else None
        entries = set[Entry]()
        file_check = FileCheck(
            tuple(at),
            contract,
            known_shapes(dims, input_shapes, infer, config),
            chosen("via", [via] if via is not None else [], [settings.via or ""], named_back_end, config),
            selection,
            known,
            threshold,
            config.file_ignores,
        )
        if not names:
            raise typer.BadParameter("name files or folders, or set paths in pyproject.toml", param_hint="FILE")
        require_other_files(wanted, names)
        excluding = "--exclude" if exclude else f"exclude in {config.file}"
        named = files_named(
            names,
            status.complain,
            exclusion=Exclusion(tuple(exclude)) if exclude else config.exclusion,
            skips_others=skip_others,
            ignores_none=no_ignore,
            excluded=lambda name: complain(name, [Problem("", f"is not checked; {excluding} leaves it out")]),
        )
        sources: list[SourceSummary] = []
        options = partial(
            ReportOptions,
            against=contract,
            with_statistics=statistics,
            fail_on=threshold,
            is_quiet=quiet,
            root=base,
            **invocation_of(context, at),
        )
        with chosen_workers(jobs, dask, len(named)) as workers, reports_in(wanted, options) as reports:
            for name, problem in status.problems:
                for report in reports:
                    report.add_problem(name, problem)
            events = workers.events(file_check, named) if workers else checked_here(file_check, named)
            for file, event in counted_files(events, len(named)):
                match event:
                    case Problem():
                        status.complain(file, event)
                        for report in reports:
                            report.add_problem(file, event)
                    case SourceSummary():
                        sources.append(event)
                    case results:
                        if known:
                            known.note(results)
                        if write_baseline:
                            entries |= entries_of(results, write_baseline)
                        if prune or not write_baseline:
                            status.count_findings(are_failing=not all(result.passes(threshold) for result in results))
                        for report in reports:
                            report.add(results)
            for report in reports:
                report.end(sources)
        missing = [*known.missing(sources, {target.name for target in at}, selection)] if known else []
        if write_baseline:
            with replaced(write_baseline) as replacing:
                replacing.write(baseline_text(known.entries.difference(missing) if known else entries))
    _report_missing(known_file, missing, "taken out" if prune else "no longer occurs")
    for source in sources:
        complain(source.name, [Problem("", text) for text in source.contradictions])
    _report_unmet(sources, config.file, file_check.file_ignores, is_whole=not files)
    is_unchecked = not status.problems and not any(source.tiles for source in sources)
    known_dimensions = frozenset[str]().union(*(source.dimension_names for source in sources))
    read = [source.name for source in sources if source.is_whole]
    if unknown := unknown_dimension(named_sizes(dims or ()), known_dimensions, read):
        status.complain("--dim", Problem("", unknown))
    if is_unchecked:
        no_tile = Problem("", "no tile was checked")
        if require_tiles:
            status.complain("check", no_tile)
        else:
            complain("check", [no_tile])
    raise typer.Exit(status.code)


def _report_missing(file: str, missing: Sequence[Entry], what: str) -> None:
    """Report which entries of a baseline no longer occur; they fail nothing."""
    problems = [Problem("", f"{what}: {entry}") for entry in missing[:MAX_LISTED_ENTRIES]]
    if len(missing) > MAX_LISTED_ENTRIES:
        problems.append(Problem("", f"and {len(missing) - MAX_LISTED_ENTRIES} more"))
    complain(file, problems)


def _report_unmet(
    sources: Sequence[SourceSummary], file: str, ignores: Sequence[FileIgnore], *, is_whole: bool
) -> None:
    """Report which comments and per-file-ignores silence nothing; they fail nothing.

    Unless the ``is_whole`` project was checked, patterns that match none of the files are passed over.
    """
    from dml_tile.checks.file_check import FileIgnore, Silence

    silences = [(silence, is_met) for source in sources for silence, is_met in source.silences.items()]
    met = {silence for silence, is_met in silences if is_met}
    matching = {silence for silence, _ in silences}
    for source in sources:
        for (rule, comment), is_met in source.silences.items():
            if not (is_met or isinstance(comment, FileIgnore)):
                complain(source.name, [Problem("", f"ignore[{rule}] silences nothing", comment.position)])
    for ignore in ignores:
        for rule in ignore.rules:
            silence = Silence(rule, ignore)
            if silence not in met and (is_whole or silence in matching):
                complain(file, [Problem("", f"per-file-ignores: {ignore.pattern!r}: {rule} silences nothing")])
