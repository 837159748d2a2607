"""``dml-tile check``"""

from __future__ import annotations

import typer

from dml_tile.cli import options
from dml_tile.cli.console import MaxTimeOption
from dml_tile.cli.formats import FormatsOption


def check(
    context: typer.Context,
    paths: options.FilesArgument = None,
    files_from: options.FilesFromOption = None,
    stdin_filename: options.StdinFilenameOption = None,
    targets: options.TargetsOption = None,
    against: options.AgainstOption = None,
    formats: FormatsOption = None,
    output: options.OutputOption = None,
    page: options.PageOption = None,
    select: options.SelectOption = None,
    ignore: options.IgnoreOption = None,
    baseline: options.BaselineOption = None,
    write_baseline: options.WriteBaselineOption = None,
    prune: options.PruneOption = False,
    fail_on: options.FailOnOption = None,
    require_operators: options.RequireOperatorsOption = False,
    quiet: options.QuietOption = False,
    verbose: options.VerboseOption = False,
    statistics: options.StatisticsOption = False,
    exclude: options.ExcludeOption = None,
    skip_others: options.SkipOthersOption = False,
    strict_files: options.StrictFilesOption = False,
    no_ignore: options.NoIgnoreOption = False,
    root: options.RootOption = None,
    show_settings: options.ShowSettingsOption = False,
    dim: options.DimsOption = None,
    input_shape: options.InputShapesOption = None,
    jobs: options.JobsOption = None,
    dask: options.DaskOption = None,
    via: options.ViaOption = None,
    max_time: MaxTimeOption = None,
) -> None:
    """Say which operators DirectML would accept at each target, and why it would refuse the others.

    The table tool.dml-tile of the nearest pyproject.toml may set paths and, under the names of the options, targets,
    select, ignore, baseline, against, via, dim, input-shape, exclude, strict-files, fail-on and max-time; an option
    replaces its setting. per-file-ignores has rules by patterns of files.
    """
    from dml_tile.cli.check_request import CheckOptions
    from dml_tile.cli.check_run import run_check

    # Config.with_options takes the parameters that have the name of a setting, CheckOptions all others
    raise typer.Exit(run_check(context, CheckOptions.of(context.params)))
