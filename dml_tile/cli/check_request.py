"""The request of ``dml-tile check``: its options, the settings that they do not replace, and the named files."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any, Final

import typer

from dml_tile.checks.baseline import Baseline, written_before
from dml_tile.checks.catalogue import Selection, known_rules
from dml_tile.checks.file_check import STANDARD_INPUT, FileCheck
from dml_tile.checks.files import files_named, forbidden, names_in
from dml_tile.cli.config import Config
from dml_tile.cli.console import Deadline, ExitStatus, complain
from dml_tile.cli.formats import require_other_files, wanted_formats
from dml_tile.cli.values import chosen_back_end, chosen_targets, known_shapes, split
from dml_tile.errors import Problem
from dml_tile.files.repository import repository_root
from dml_tile.files.urls import source_named
from dml_tile.findings import Severity
from dml_tile.readers.sources import EXCLUDED, PassedOver, is_model_file
from dml_tile.reports.report import Format
from dml_tile.simulation.process import TARGET_VARIABLE

_NO_FILE: Final = "name files or folders, or set paths in pyproject.toml"


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """The options of ``check`` that are no settings, by the names of the command's parameters."""

    files_from: str | None
    stdin_filename: str | None
    formats: Sequence[str] | None
    output: str | None
    page: str | None
    write_baseline: str | None
    prune: bool
    require_operators: bool
    quiet: bool
    verbose: bool
    statistics: bool
    skip_others: bool
    no_ignore: bool
    root: str | None
    show_settings: bool
    jobs: int | None
    dask: str | None

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> CheckOptions:
        """Return the options among the parameters. Raises typer.BadParameter for options that exclude each other."""
        options = cls(**{field.name: parameters[field.name] for field in fields(cls)})
        if parameters["baseline"] and options.write_baseline:
            raise typer.BadParameter("writes all findings, and takes no --baseline", param_hint="--write-baseline")
        if options.files_from == STANDARD_INPUT and STANDARD_INPUT in (parameters["paths"] or ()):
            raise typer.BadParameter("- is checked, and cannot also be a list of files", param_hint="--files-from")
        if options.prune and not options.write_baseline:
            raise typer.BadParameter("takes entries out of the file of --write-baseline", param_hint="--prune")
        if options.root is not None and not Path(options.root).is_dir():
            raise typer.BadParameter(f"{options.root} is no folder", param_hint="--root")
        return options

    def wanted_formats(self) -> list[Format]:
        """Return the formats asked for. Raises typer.BadParameter."""
        return wanted_formats(self.formats, self.output, self.page, with_statistics=self.statistics)

    @property
    def accepts_findings(self) -> bool:
        """True where all findings are written to a baseline, and so fail nothing."""
        return bool(self.write_baseline) and not self.prune


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """The options, the settings in force, the names of files and folders, and the questions that each file is asked.

    Reports name files from ``root`` on. ``old_baseline`` is what the file of --write-baseline holds already.
    """

    options: CheckOptions
    config: Config
    formats: Sequence[Format]
    names: Sequence[str]
    root: str
    old_baseline: Baseline | None
    questions: FileCheck

    @property
    def is_project(self) -> bool:
        """True if the settings name what is checked, or the command names the settings' folder."""
        is_chosen = "paths" in self.config.options or self.options.files_from
        return not is_chosen or any(map(self._is_settings_folder, self.names))

    def _is_settings_folder(self, name: str) -> bool:
        try:
            return Path(self.config.file).parent.samefile(name)
        except (OSError, ValueError):  # there is no such folder, or its name has a NUL
            return False

    def setting_lines(self) -> str:
        """Return all settings in force, and their origins, as text."""
        is_by_variable = TARGET_VARIABLE in os.environ and "targets" not in self.config.options
        targets = [target.name for target in self.questions.targets]
        in_force: dict[str, tuple[object, str]] = {
            "paths": (self.names, self.config.origin("paths") if not self.options.files_from else "option"),
            "targets": (targets, TARGET_VARIABLE if is_by_variable else self.config.origin("targets")),
            "root": (self.root, "default" if self.options.root is None else "option"),
        }
        return "".join(self.config.lines(in_force))


def check_request(options: CheckOptions, config: Config, deadline: Deadline) -> CheckRequest:
    """Return what is asked. Raises typer.BadParameter, and ConfigError; the deadline may cut a list of files."""
    formats = options.wanted_formats()
    names = _names(options, config, deadline)
    stdin_name = _stdin_name(options.stdin_filename, names)
    shown_names = [stdin_name if name == STANDARD_INPUT else name for name in names]
    known_file = options.write_baseline if options.prune else config.settings.baseline
    known = Baseline(known_file) if known_file and not options.accepts_findings else None
    questions = FileCheck(
        targets=tuple(chosen_targets(config.settings.targets if "targets" in config.options else (), config)),
        against=config.settings.against,
        known_shapes=known_shapes(config),
        via=chosen_back_end(config),
        selection=Selection(_rules(config, "select"), _rules(config, "ignore")),
        baseline=known,
        fail_on=None if config.settings.fail_on == "never" else Severity[config.settings.fail_on.upper()],
        file_ignores=config.file_ignores(),
        is_strict=config.settings.strict_files,
        names_all=any(one.names_all for one in formats),
        stdin_name=stdin_name,
    )
    return CheckRequest(
        options,
        config,
        formats,
        names,
        repository_root(shown_names) if options.root is None else options.root,
        written_before(options.write_baseline) if options.write_baseline and not options.prune else known,
        questions,
    )


def _rules(config: Config, name: str) -> frozenset[str]:
    return frozenset(config.parsed(name, lambda rules: known_rules(split(rules))))


def _names(options: CheckOptions, config: Config, deadline: Deadline) -> list[str]:
    names = list[str]()
    if "paths" in config.options:
        names += map(source_named, config.settings.paths)
    elif not options.files_from:
        names += config.settings.paths
    if options.files_from:
        names += deadline.cut(names_in, options.files_from) or ()
    return names


def _stdin_name(given: str | None, names: Sequence[str]) -> str:
    """Return what standard input is called, ``-`` unless --stdin-filename gives a name. Raises typer.BadParameter."""
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


def listed_files(request: CheckRequest, status: ExitStatus, deadline: Deadline) -> tuple[list[str], list[PassedOver]]:
    """Return the files to check, and what is passed over; complains of names that stand for nothing to check."""
    options, config = request.options, request.config
    if not (request.names or options.files_from):
        raise typer.BadParameter(_NO_FILE, param_hint="FILE")
    named = [request.questions.name_of(name) for name in request.names]
    require_other_files(request.formats, [*named, *filter(None, [options.files_from])])
    exclusion = config.exclusion()
    listing = partial(
        files_named,
        request.names,
        status.complain,
        exclusion=exclusion,
        skips_others=options.skip_others,
        ignores_none=options.no_ignore,
        via=request.questions.via,
    )
    files, passed_over = deadline.cut(listing) or ([], [])
    excluding = "--exclude" if "exclude" in config.options else f"exclude in {config.file}"
    for one in passed_over:
        if one.reason == EXCLUDED and one.name in request.names:
            complain(one.name, [Problem("", f"is not checked; {excluding} leaves it out")])
    if request.is_project:
        for number, pattern in enumerate(exclusion.patterns.lines):
            if number not in exclusion.patterns.met:
                complain("check", [Problem("", f"{excluding}: {pattern!r} matches nothing")])
    if request.questions.is_strict:
        for one in passed_over:
            if not one.is_left_out:
                status.complain(one.name, forbidden(one.reason))
        passed_over = [one for one in passed_over if one.is_left_out]
    return files, passed_over
