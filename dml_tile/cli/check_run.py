"""A run of ``dml-tile check``: options and settings are read, files checked, reports and a baseline written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import typer

from dml_tile.checks.files import HOLDS_NOTHING, files_named, forbidden, names_in, unknown_names, unread_through
from dml_tile.checks.questions import Event, Questions, checked_here
from dml_tile.checks.result import CheckedFile
from dml_tile.checks.selection import Suppression
from dml_tile.cli.config import Config, chosen_targets, nearest_config, require_models
from dml_tile.cli.console import CLEAN, UNREADABLE, ExitStatus, complain, count_passed_over, print_stderr
from dml_tile.cli.formats import (
    print_text,
    replaced,
    reports_in,
    require_other_files,
    require_writable,
    shows_passed_over,
    wanted_formats,
)
from dml_tile.cli.jobs import chosen_workers, counted_files
from dml_tile.cli.options import CheckOptions, folder_of_links
from dml_tile.directml.targets import DEFAULT_TARGET
from dml_tile.files.paths import STANDARD_INPUT
from dml_tile.files.repository import repository_root
from dml_tile.findings import CONTRADICTION, OWN, Finding, Severity, unreadable
from dml_tile.readers.model_names import KnownShapes, ModelFacts
from dml_tile.readers.sources import EMPTY, EXCLUDED, is_left_out, is_model_file, passing_over
from dml_tile.reports.bounds import bounded, bounded_finding, bounded_nodes
from dml_tile.reports.report import Report, ReportOptions
from dml_tile.simulation.process import PROCESS, TARGET_VARIABLE
from dml_tile.text import as_typed

if TYPE_CHECKING:
    from dml_tile.checks.baseline import Baseline, Entry

DEFAULT_TARGET_NOTICE: Final = (
    f"dml-tile: checked at {DEFAULT_TARGET}, which no Windows has in the box; name your users' oldest Windows, as in "
    "--target windows-10-22h2"
)


def run_check(context: typer.Context, options: CheckOptions) -> int:
    """Check files, and return the exit status.

    Raises typer.BadParameter for options that exclude each other, ConfigError and OutputError.
    """
    if options.baseline and options.write_baseline:
        raise typer.BadParameter("writes all findings, and takes no --baseline", param_hint="--write-baseline")
    if options.files_from == STANDARD_INPUT and STANDARD_INPUT in (options.paths or ()):
        raise typer.BadParameter("- is checked, and cannot also be a list of files", param_hint="--files-from")
    run = CheckRun(options, nearest_config().with_options(options._asdict()))
    if options.show_settings:
        print_text(run.setting_lines())
        return CLEAN
    files = run.listed_files()
    # empty where another program calls this function
    command = as_typed(["dml-tile", *context.obj]) if context.obj else ""
    run.check(files, command)
    if options.write_baseline:
        run.write_baseline(options.write_baseline)
    run.print_remarks()
    return run.status.code


def _stdin_name(given: str | None, names: Sequence[str]) -> str:
    """Return what standard input is called, ``-`` unless --stdin-filename gives a name. Raises typer.BadParameter."""
    if given is None:
        return STANDARD_INPUT
    wrong = {
        "names what - reads, and no file is -": STANDARD_INPUT not in names,
        "names no file": not given,
        "models are read from files": is_model_file(given),
    }
    for why, is_so in wrong.items():
        if is_so:
            raise typer.BadParameter(why, param_hint="--stdin-filename")
    return given


def _baselines(known: str, written: str | None, root: str) -> tuple[Baseline | None, Baseline | None]:
    """Return the baseline that lets findings pass, and what the file of --write-baseline, if given, holds already."""
    if not (known or written):
        return None, None
    from dml_tile.checks.baseline import Baseline, written_before  # most checks have none

    require_writable(written)
    return (None, written_before(written)) if written else (Baseline(known, root=root), None)


class CheckRun:
    """One check: its options, the settings in force, the named files, and the findings in them.

    Findings go to the reports as they come; summaries of files, and entries for a baseline, are kept for the end.
    Reports name files from ``root`` on. ``old_baseline`` is what the file of --write-baseline holds already.

    Raises typer.BadParameter, and ConfigError.
    """

    def __init__(self, options: CheckOptions, config: Config) -> None:
        self.options, self.config = options, config
        self._links_root = folder_of_links(options.root)
        self.formats = wanted_formats(options.formats)
        paths: Sequence[str] = () if options.files_from else config.settings.paths
        self.names = [*config.settings.paths] if "paths" in config.options else [*paths]
        self.names += names_in(options.files_from, config.file, self._links_root) if options.files_from else []
        stdin_name = _stdin_name(options.stdin_filename, self.names)
        shown_names = [stdin_name if name == STANDARD_INPUT else name for name in self.names]
        self.root = repository_root(shown_names) if options.root is None else options.root
        known, self.old_baseline = _baselines(config.settings.baseline, options.write_baseline, self._links_root)
        targets = tuple(chosen_targets(config.settings.targets if "targets" in config.options else (), config))
        self.questions = Questions(
            targets=targets,
            against=config.settings.against,
            known_shapes=config.known_shapes(),
            via=config.back_end(targets),
            selection=config.selection(),
            baseline=known,
            fail_on=None if config.settings.fail_on == "never" else Severity[config.settings.fail_on.upper()],
            file_ignores=config.file_ignores(),
            is_strict=config.settings.strict_files,
            max_cpu_nodes=config.settings.max_cpu_nodes,
            locates_all=any(one.locates_all for one in self.formats),
            stdin_name=stdin_name,
        )
        self._via = self.questions.via.name if self.questions.via else ""
        self._target_names = [target.name for target in self.questions.targets]
        self._is_via_an_option = "via" in config.options and self.questions.via is not None
        self.status = ExitStatus(lets_findings_pass=bool(options.write_baseline))
        self._passed_over: list[Finding] = []
        self._contradictions: list[Finding] = []
        self._of_names: Mapping[str, Sequence[str]] = {}
        self._reports: Sequence[Report] = ()
        self._files: list[CheckedFile] = []
        self._entries: set[Entry] = set()

    @cached_property
    def is_project(self) -> bool:
        """True if the settings name the files, or the command names the settings' folder."""
        return not self.names_files or any(map(self._is_settings_folder, self.names))

    @property
    def names_files(self) -> bool:
        """True if the command, not the settings, names the files."""
        return "paths" in self.config.options or bool(self.options.files_from)

    def _is_settings_folder(self, name: str) -> bool:
        try:
            return Path(self.config.file).parent.samefile(name)
        except (OSError, ValueError):  # there is no such folder, or its name has a NUL
            return False

    def setting_lines(self) -> str:
        """Return all settings in force, and their origins, as text."""
        is_by_variable = PROCESS.outside is not None and "targets" not in self.config.options
        in_force: dict[str, tuple[object, str]] = {
            "paths": (self.names, self.config.origin("paths") if not self.options.files_from else "option"),
            "targets": (self._target_names, TARGET_VARIABLE if is_by_variable else self.config.origin("targets")),
            "root": (self.root, "default" if self.options.root is None else "option"),
        }
        return "".join(self.config.lines(in_force))

    def listed_files(self) -> list[str]:
        """Return the files to check; complains of names that stand for nothing to check."""
        options, config = self.options, self.config
        if not (self.names or options.files_from):
            raise typer.BadParameter("name files or folders, or set paths in pyproject.toml", param_hint="FILE")
        named = [self.questions.name_of(name) for name in self.names]
        others = options.files_from, config.settings.baseline, options.write_baseline
        require_other_files(self.formats, [*named, *filter(None, others)])
        exclusion = config.exclusion()
        files, self._passed_over, self._of_names = files_named(
            self.names,
            self.status.complain,
            exclusion=exclusion,
            skips_others=options.skip_others,
            ignores_none=options.no_ignore,
            via=self.questions.via,
            root=self._links_root,
        )
        if self._is_via_an_option and all(self._of_names.get(name) == [name] for name in self.names):
            require_models(config.settings.via or "", files)
        excluding = "--exclude" if "exclude" in config.options else f"exclude in {config.file}"
        for finding in self._passed_over:
            if finding.message == EXCLUDED and finding.source in self.names:
                complain(finding.source, [unreadable("", f"is not checked; {excluding} leaves it out")])
        if self.is_project:
            for number, pattern in enumerate(exclusion.patterns.lines):
                if number not in exclusion.patterns.met:
                    complain("check", [unreadable("", f"{excluding}: {pattern!r} matches nothing")])
        if self.questions.is_strict:
            for finding in self._passed_over:
                if not is_left_out(finding):
                    self.status.complain(finding.source, forbidden(finding.message))
            self._passed_over = [*filter(is_left_out, self._passed_over)]
        return files

    def check(self, files: Sequence[str], command: str) -> None:
        """Check files, and write the reports, which name the ``command``."""
        options, questions = self.options, self.questions
        report_options = partial(
            ReportOptions,
            against=questions.against,
            fail_on=questions.fail_on,
            is_quiet=options.quiet,
            is_verbose=options.verbose,
            command=command,
            root=self.root,
            via=self._via,
        )
        with (
            chosen_workers(options.jobs, options.dask, len(files)) as workers,
            reports_in(self.formats, report_options) as self._reports,
        ):
            for found in self.status.problems:
                self._report(found)
            events = workers.events(questions, files) if workers else checked_here(questions, files)
            for file, event in counted_files(events, len(files)):
                self._take(file, event)
            self._take_notices()
            self._complain_of_empty_names()
            for found in self._passed_over:
                self._report(found)
            for report in self._reports:
                report.end(self._files)

    def _report(self, finding: Finding) -> None:
        finding = bounded_finding(finding)
        for report in self._reports:
            report.finding(finding)

    def _take_finding(self, finding: Finding) -> None:
        """Take a finding about a file."""
        own = OWN.get(finding.rule)
        if own is None or own.is_selectable:  # DirectML's rules are those that refuse operators of a model's nodes
            if not self.questions.selection.takes(finding.rule):
                return
            self.status.count_findings(are_failing=not finding.passes(self.questions.fail_on))
        elif own.status == UNREADABLE:
            self.status.complain(finding.source, finding)
        elif own.id == CONTRADICTION:
            self._contradictions.append(finding)
        self._report(finding)

    def _take(self, file: str, event: Event) -> None:
        match event:
            case Finding():
                self._take_finding(event)
            case CheckedFile():
                event.nodes = None  # the reports have what they list of these
                self._files.append(event)
                if event.is_empty and not (event.is_model or self.questions.is_strict):
                    self._passed_over.append(passing_over(file, EMPTY))
            case found:
                if self.questions.baseline:
                    self.questions.baseline.note(found)
                if self.options.write_baseline:
                    from dml_tile.checks.baseline import new_entries

                    self._entries |= new_entries(found, self.options.write_baseline)
                if not isinstance(found, tuple):
                    nodes = bounded_nodes(found)
                    for report in self._reports:
                        report.nodes(nodes)
                    return
                passes = all(result.passes(self.questions.fail_on) for result in found)
                self.status.count_findings(are_failing=not passes)
                shown = bounded(found)
                for report in self._reports:
                    report.item(shown)

    def _complain_of_empty_names(self) -> None:
        """Complain of names that have to hold something to check, and hold nothing."""
        name_of = self.questions.name_of
        empty = {each.source for each in self._files if each.is_empty and each.is_whole}
        for name, files in self._of_names.items():
            read = [name_of(file) for file in files if not unread_through(file, self.questions.via)]
            is_complained_of = files == [name] and not read
            if empty.issuperset(read) and not is_complained_of:
                self._take_finding(replace(HOLDS_NOTHING, source=name_of(name)))
                self._passed_over = [found for found in self._passed_over if found.source != name_of(name)]

    def _take_notices(self) -> None:
        """Take the notices about settings and about the baseline."""
        questions, config, known = self.questions, self.config, self.questions.baseline
        met = set[Suppression]().union(*(each.met for each in self._files))
        matching = frozenset[int]().union(*(each.patterns for each in self._files))
        notices = [*questions.file_ignores.notices(config.file, met, matching, is_whole=self.is_project)]
        if questions.via is not None:
            from dml_tile.checks.via import back_end_notices

            chosen = self._is_via_an_option
            notices += back_end_notices(questions.via, questions.targets, self._files, is_an_option=chosen)
        if known:
            notices += known.notices(self._files, self._target_names, questions.selection, self._via)
        for found in notices:
            self._take_finding(found)

    def write_baseline(self, file: str) -> None:
        """Write the entries found, and the old ones that this run did not look for."""
        from dml_tile.checks.baseline import baseline_text

        old, entries = self.old_baseline, self._entries
        assert old is not None
        unchecked = old.entries - old.looked_for(self._files, self._target_names, self.questions.selection, self._via)
        written = entries | unchecked
        with replaced(file) as replacing:
            replacing.write(baseline_text(written))
        kept, dropped = len(unchecked - entries), len(old.entries - written)
        counts = f"{len(written)} entries written, {kept} of them kept unchecked; {dropped} dropped"
        complain(file, [unreadable("", counts)])

    def print_remarks(self) -> None:
        """Print on standard error what no report has a place for, and complain of names that no model has."""
        options, files = self.options, self._files
        if not (options.quiet or shows_passed_over(self.formats)):
            count_passed_over(self._passed_over)
        if options.verbose:
            for finding in self._passed_over:
                complain(finding.source, [unreadable("", f"skipped, {finding.message}")])
        for finding in self._contradictions:
            complain(finding.source, [finding])
        self._complain_of_unknown_names()
        has_operators = any(each.is_checked for each in files)
        by_option = "require_operators" in self.config.options
        if not (has_operators or self.status.problems):
            nothing = unreadable("", "no operator was checked")
            if self.config.settings.require_operators and (by_option or not self.names_files):
                self.status.complain("check", nothing)
            else:
                complain("check", [nothing])
        elif has_operators and self.questions.targets[0] is DEFAULT_TARGET and not options.quiet:
            # the target itself: no option, variable or setting names one
            print_stderr(DEFAULT_TARGET_NOTICE)

    def _complain_of_unknown_names(self) -> None:
        """Complain of dimensions and inputs, named by options, that no model has.

        With --skip-others, as from the hook, there need be no model.
        """
        known, given = self.questions.known_shapes, self.config.options
        if given.isdisjoint(("dim", "input_shape")):
            return
        asked = KnownShapes(known.dims if "dim" in given else {}, known.input_shapes if "input_shape" in given else {})
        there = ModelFacts(
            frozenset().union(*(each.facts.dimensions for each in self._files)),
            frozenset().union(*(each.facts.inputs for each in self._files)),
        )
        read = [each.source for each in self._files if each.is_whole]
        need_none = self.options.skip_others or any(each.is_model for each in self._files)  # one that is unreadable
        if need_none and not any(map(is_model_file, read)):
            return
        for option, unknown in unknown_names(asked, there, read):
            self.status.complain(option, unreadable("", unknown))
