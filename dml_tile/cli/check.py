"""``dml-tile check``"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from dml_tile.cli.console import (
    ExitStatus,
    FailOn,
    MaxTimeOption,
    at_most,
    complain,
    count_passed_over,
    exit_on_file_errors,
    print_stderr,
)
from dml_tile.cli.formats import (
    FormatsOption,
    has_place,
    invocation_of,
    print_text,
    replaced,
    reports_in,
    require_other_files,
    wanted_formats,
)
from dml_tile.cli.options import (
    DimsOption,
    InputShapesOption,
    TargetsOption,
    ViaOption,
    chosen,
    chosen_targets,
    known_shapes,
    named_back_end,
    named_shapes,
    named_sizes,
    rules_named,
    setting_lines,
    split,
)
from dml_tile.directml.targets import DEFAULT_TARGET
from dml_tile.errors import Problem
from dml_tile.findings import Against, Severity
from dml_tile.readers.file_kinds import read_kinds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dml_tile.checks.notices import Notice
    from dml_tile.checks.summary import SourceSummary

DEFAULT_TARGET_NOTICE: Final = (
    f"dml-tile: checked at {DEFAULT_TARGET}, which no Windows has in the box; name your users' oldest Windows, as in "
    "--target windows-10-22h2"
)


def check(
    context: typer.Context,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE",
            help=f"Files, and folders of them: {read_kinds()}; - is standard input. By default the paths of "
            "pyproject.toml.",
        ),
    ] = None,
    files_from: Annotated[
        str | None,
        typer.Option(
            "--files-from",
            metavar="FILE",
            help="Also check the files that this one lists, one a line or each ended by NUL; - is standard input.",
        ),
    ] = None,
    stdin_filename: Annotated[
        str | None,
        typer.Option(
            "--stdin-filename",
            metavar="NAME",
            help="The file that standard input is the text of: its name in the output, and its per-file-ignores.",
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
    verbose: Annotated[
        bool, typer.Option("--verbose", help="Name each file that is passed over, on standard error.")
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
    strict_files: Annotated[
        bool,
        typer.Option(
            "--strict-files",
            help="Exit with 2 if there is nothing to check in a file of a kind that is read, unless it is excluded.",
        ),
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
    via: ViaOption = None,
    max_time: MaxTimeOption = None,
) -> None:
    """Say which tiles DirectML would accept at each target, and why it would refuse the others.

    The table tool.dml-tile of the nearest pyproject.toml may set paths and, under the names of the options, targets,
    select, ignore, baseline, against, via, dim, input-shape, exclude, strict-files, fail-on and max-time; an option
    replaces its setting. per-file-ignores has rules by patterns of files.
    """
    from dml_tile.checks import notices
    from dml_tile.checks.baseline import Baseline, Entry, baseline_text, entries_of, written_before
    from dml_tile.checks.catalogue import Selection, known_rules
    from dml_tile.checks.file_check import STANDARD_INPUT, FileCheck, checked_here
    from dml_tile.checks.files import Exclusion, files_named, forbidden, names_in, unknown_names
    from dml_tile.checks.summary import SourceSummary
    from dml_tile.checks.suppressions import Suppression
    from dml_tile.cli.config import nearest_config
    from dml_tile.cli.jobs import chosen_workers, counted_files
    from dml_tile.files.repository import repository_root
    from dml_tile.files.urls import source_named
    from dml_tile.readers.model_tile import KnownShapes, ModelNames
    from dml_tile.readers.sources import EMPTY, EXCLUDED, PassedOver
    from dml_tile.reports.report import ReportOptions

    if baseline and write_baseline:
        raise typer.BadParameter("writes all findings, and takes no --baseline", param_hint="--write-baseline")
    if files_from == STANDARD_INPUT and STANDARD_INPUT in (files or ()):
        raise typer.BadParameter("- is checked, and cannot also be a list of files", param_hint="--files-from")
    if prune and not write_baseline:
        raise typer.BadParameter("takes entries out of the file of --write-baseline", param_hint="--prune")
    if root is not None and not Path(root).is_dir():
        raise typer.BadParameter(f"{root} is no folder", param_hint="--root")
    wanted = wanted_formats(formats, output, page, with_statistics=statistics)
    status = ExitStatus()
    with ExitStack() as stack, exit_on_file_errors():
        config = nearest_config()
        settings = config.settings
        contract = against or settings.against or "both"
        failing = fail_on or settings.fail_on or "warning"
        threshold = None if failing == "never" else Severity[failing.upper()]
        known_file = (write_baseline if prune else "") if write_baseline else baseline or settings.baseline
        selection = Selection(
            frozenset(chosen("select", split(select or ()), settings.select, known_rules, config)),
            frozenset(chosen("ignore", split(ignore or ()), settings.ignore, known_rules, config)),
        )
        at = chosen_targets(targets, config)
        seconds = max_time or settings.max_time
        deadline = stack.enter_context(at_most(seconds, ends_block=False))
        is_project = not (files or files_from)
        names = settings.paths if is_project else [*map(source_named, files or ())]
        if files_from:
            context.params["files"] = names = [*names, *(deadline.cut(names_in, files_from) or ())]
        called = stdin_name(stdin_filename, names)
        shown_names = [called if name == STANDARD_INPUT else name for name in names]
        base = root if root is not None else repository_root(shown_names)
        at_names = [target.name for target in at]
        if show_settings:
            in_force = {"targets": at_names, "against": contract, "fail-on": failing, "root": base}
            print_text("".join(setting_lines(context, config, in_force)))
            raise typer.Exit
        known = Baseline(known_file) if known_file else None
        old = known if prune or not write_baseline else written_before(write_baseline)
        entries = set[Entry]()
        file_check = FileCheck(
            tuple(at),
            contract,
            known_shapes(dims, input_shapes, config),
            chosen("via", [via] if via is not None else [], [settings.via or ""], named_back_end, config),
            selection,
            known,
            threshold,
            config.file_ignores(),
            is_strict := strict_files or settings.strict_files,
            any(one.names_all for one in wanted),
            called,
        )
        if not names and not files_from:
            raise typer.BadParameter("name files or folders, or set paths in pyproject.toml", param_hint="FILE")
        require_other_files(wanted, [*shown_names, *filter(None, [files_from])])
        excluding = "--exclude" if exclude else f"exclude in {config.file}"
        exclusion = Exclusion(exclude) if exclude else config.exclusion()
        listing = partial(
            files_named,
            names,
            status.complain,
            exclusion=exclusion,
            skips_others=skip_others,
            ignores_none=no_ignore,
            via=file_check.via,
        )
        named, passed_over = deadline.cut(listing) or ([], [])
        for one in passed_over:
            if one.reason == EXCLUDED and one.name in names:
                complain(one.name, [Problem("", f"is not checked; {excluding} leaves it out")])
        if is_project:
            for number, pattern in enumerate(exclusion.patterns.lines):
                if number not in exclusion.patterns.met:
                    complain("check", [Problem("", f"{excluding}: {pattern!r} matches nothing")])
        for one in passed_over:
            if is_strict and not one.is_left_out:
                status.complain(one.name, forbidden(one.reason))
        passed_over = [one for one in passed_over if one.is_left_out or not is_strict]
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

            def take(notice: Notice) -> None:
                if not selection.takes(notice.rule):
                    return
                is_failing = threshold is not None and notice.severity >= threshold
                status.count_findings(are_failing=is_failing and (prune or not write_baseline))
                for report in reports:
                    report.add_notice(notice)

            for name, problem in status.problems:
                for report in reports:
                    report.add_problem(name, problem)
            events = workers.events(file_check, named) if workers else checked_here(file_check, named)
            for listed, event in counted_files(deadline.cut_short(events), len(named)):
                file = file_check.name_of(listed)
                match event:
                    case Problem():
                        status.complain(file, event)
                        for report in reports:
                            report.add_problem(file, event)
                    case SourceSummary():
                        sources.append(event)
                        for notice in event.notices:
                            take(notice)
                        if event.is_empty and not is_strict:
                            passed_over.append(PassedOver(file, EMPTY))
                    case results:
                        if known:
                            known.note(results)
                        if write_baseline:
                            entries |= entries_of(results, write_baseline)
                        if prune or not write_baseline:
                            status.count_findings(are_failing=not all(result.passes(threshold) for result in results))
                        for report in reports:
                            report.add(results)
            if deadline.has_cut:
                if workers:
                    from dml_tile.checks.sweep import end_processes

                    end_processes()
                left = len(named) - len(sources)
                first = file_check.name_of([*named[len(sources) :], *names, "check"][0])
                partial_check = Problem("", _cut_message(seconds, left))
                status.complain(first, partial_check)
                for report in reports:
                    report.is_complete = False
                    report.add_problem(first, partial_check)
            missing = known.missing(sources, at_names, selection) if known else []
            ignores = file_check.file_ignores
            met = set[Suppression]().union(*(source.met for source in sources))
            matching = frozenset[int]().union(*(source.patterns for source in sources))
            is_whole = is_project and not deadline.has_cut
            for notice in notices.of_file_ignores(config.file, ignores, met, matching, is_whole=is_whole):
                take(notice)
            for notice in notices.of_baseline(known_file, missing if not prune else []):
                take(notice)
            for report in reports:
                report.pass_over(passed_over)
                report.end(sources)
        if write_baseline and not deadline.has_cut:
            unchecked = old.entries - old.looked_for(sources, at_names, selection) if old else frozenset[Entry]()
            written = old.entries.difference(missing) if prune and old else entries | unchecked
            with replaced(write_baseline) as replacing:
                replacing.write(baseline_text(written))
            dropped = len(old.entries - written) if old else 0
            kept = len(unchecked - entries)
            counts = f"{len(written)} entries written, {kept} of them kept unchecked; {dropped} dropped"
            complain(write_baseline, [Problem("", counts)])
    if not (quiet or has_place(wanted)):
        count_passed_over(passed_over)
    if verbose:
        for one in passed_over:
            complain(one.name, [Problem("", f"passed over, {one.reason}")])
    for source in sources:
        complain(source.name, [Problem("", text) for text in source.contradictions])
    has_tiles = any(source.tiles for source in sources)
    model_names = ModelNames(
        frozenset().union(*(source.names.dimensions for source in sources)),
        frozenset().union(*(source.names.inputs for source in sources)),
    )
    read = [source.name for source in sources if source.is_whole]
    given = KnownShapes(named_sizes(dims or ()), named_shapes(input_shapes or ()))
    for option, unknown in unknown_names(given, model_names, read):
        status.complain(option, Problem("", unknown))
    if not (has_tiles or status.problems):
        no_tile = Problem("", "no tile was checked")
        if require_tiles:
            status.complain("check", no_tile)
        else:
            complain("check", [no_tile])
    elif has_tiles and at[0] is DEFAULT_TARGET and not quiet:  # itself: no option, variable or setting names one
        print_stderr(DEFAULT_TARGET_NOTICE)
    raise typer.Exit(status.code)


def stdin_name(given: str | None, names: Sequence[str]) -> str:
    """Return what standard input is called, ``-`` unless --stdin-filename gives a name. Raises typer.BadParameter."""
    from dml_tile.checks.file_check import STANDARD_INPUT
    from dml_tile.readers.sources import is_model_file

    if given is None:
        return STANDARD_INPUT
    wrong = ""
    if STANDARD_INPUT not in names:
        wrong = "names what - reads, and no file is -"
    elif not given:
        wrong = "names no file"
    elif is_model_file(given):
        wrong = "models are read from files"
    if wrong:
        raise typer.BadParameter(wrong, param_hint="--stdin-filename")
    return given


def _cut_message(seconds: int | None, left: int) -> str:
    """Return why the first file of those that are left was not checked, or not to its end."""
    others = f"; nor {'was 1 file' if left == 2 else f'were {left - 1} files'} after it" if left > 1 else ""
    return f"was not checked to its end: the check took longer than {seconds} s (--max-time){others}"
