"""``dml-tile levels``"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from dml_tile.commands.options import chosen_targets
from dml_tile.terminal import console_of


class LevelsFormat(StrEnum):
    TEXT = "text"
    WEBNN = "webnn"


def levels(
    output_format: Annotated[
        LevelsFormat,
        typer.Option("--format", help="Tables, or what WebNN's opSupportLimits() tells of tile at a target."),
    ] = LevelsFormat.TEXT,
    target: Annotated[
        str | None, typer.Option("--target", "-t", metavar="TARGET", help="For --format webnn; by default 6_4.")
    ] = None,
) -> None:
    """Show Tile's support table, and what each Windows release and DirectML version accepts."""
    if output_format == LevelsFormat.WEBNN:
        _show_op_support_limits(target)
        return
    if target is not None:
        raise typer.BadParameter("the tables are of all targets; --format webnn takes one", param_hint="--target")
    from dml_tile.reports.tables import levels_table, support_table, target_table

    console = console_of()
    console.print(support_table(), "", target_table(), "", levels_table(), sep="\n")


def _show_op_support_limits(target: str | None) -> None:
    import json

    from dml_tile.dialects.request import DialectError
    from dml_tile.frontends.webnn import op_support_limits

    (chosen,) = chosen_targets([target] if target is not None else None)
    try:
        typer.echo(json.dumps(op_support_limits(chosen), indent=2))
    except DialectError as error:
        raise typer.BadParameter(error.message, param_hint="--target") from None
