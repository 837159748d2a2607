"""``dml-tile check``, as typer takes it."""

from __future__ import annotations

from inspect import Parameter, signature
from typing import Any, Final

import typer

from dml_tile.cli.console import let_typer_take
from dml_tile.cli.options import CheckOptions


def check(context: typer.Context, **options: Any) -> None:
    """Say which operators DirectML would take at each target, and with --via ort which nodes of a model, and why.

    The table tool.dml-tile of the nearest pyproject.toml may set paths and, under the names of the options, targets,
    select, ignore, baseline, against, via, dim, input-shape, exclude, strict-files and fail-on; an option replaces
    its setting. per-file-ignores has rules by patterns of files.
    """
    from dml_tile.cli.check_run import run_check

    raise typer.Exit(run_check(context, CheckOptions(**options)))


_CONTEXT: Final = Parameter("context", Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
let_typer_take(check, [_CONTEXT, *signature(CheckOptions, eval_str=True).parameters.values()])
