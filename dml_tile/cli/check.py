"""``dml-tile check``, as typer takes it."""

from __future__ import annotations

from inspect import Parameter, Signature
from typing import Any, Final, get_type_hints

import typer

from dml_tile.cli.options import CheckOptions


def check(context: typer.Context, **options: Any) -> None:
    """Say which operators DirectML would take at each target, and with --via ort which nodes of a model, and why.

    The table tool.dml-tile of the nearest pyproject.toml may set paths and, under the names of the options, targets,
    select, ignore, baseline, against, via, dim, input-shape, exclude, strict-files, require-operators and fail-on; an
    option replaces its setting. per-file-ignores has rules by patterns of files.
    """
    from dml_tile.cli.check_run import run_check

    raise typer.Exit(run_check(context, CheckOptions(**options)))


_ANNOTATIONS: Final = {"context": typer.Context, **get_type_hints(CheckOptions, include_extras=True)}
_DEFAULTS: Final = {"context": Parameter.empty, **CheckOptions._field_defaults}
check.__signature__ = Signature(  # type: ignore[attr-defined]  # typer takes the function for one of these parameters
    [
        Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=_DEFAULTS[name], annotation=annotation)
        for name, annotation in _ANNOTATIONS.items()
    ]
)
check.__annotations__ = _ANNOTATIONS
