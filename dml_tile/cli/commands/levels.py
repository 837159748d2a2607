"""``dml-tile levels``"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from dml_tile.cli.commands.options import named_targets, one_target
from dml_tile.cli.console import console_of
from dml_tile.cli.output_files import print_text
from dml_tile.directml.targets import DEFAULT_TARGET


class LevelsFormat(StrEnum):
    TEXT = "text"
    MARKDOWN = "markdown"
    HTML = "html"
    WEBNN = "webnn"


def levels(
    output_format: Annotated[
        LevelsFormat,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help="text: tables; markdown, html: the matrix of Windows releases and data types; webnn: WebNN's "
            "opSupportLimits() of tile at a target.",
        ),
    ] = LevelsFormat.TEXT,
    target: Annotated[
        str | None,
        typer.Option(
            "--target",
            "-t",
            metavar="TARGET",
            help=f"For --format webnn; by default that of DML_TILE_TARGET, or {DEFAULT_TARGET}.",
            autocompletion=named_targets,
        ),
    ] = None,
) -> None:
    """Show which tiles each Windows release and DirectML version accepts, and Tile's support table."""
    if output_format == LevelsFormat.WEBNN:
        _show_op_support_limits(target)
        return
    if target is not None:
        raise typer.BadParameter("the tables are of all targets; --format webnn takes one", param_hint="--target")
    from dml_tile.reports.tables import (
        levels_table,
        matrix_html,
        matrix_markdown,
        matrix_table,
        support_table,
        target_table,
    )

    if output_format == LevelsFormat.MARKDOWN:
        print_text(matrix_markdown())
    elif output_format == LevelsFormat.HTML:
        print_text(matrix_html())
    else:
        console = console_of()
        tables = matrix_table(console.width), "", support_table(), "", target_table(), "", levels_table()
        console.print(*tables, sep="\n")


def _show_op_support_limits(target: str | None) -> None:
    import json

    from dml_tile.back_ends.webnn_limits import op_support_limits
    from dml_tile.errors import DialectError

    chosen = one_target([target] if target is not None else None, "the limits are those of one target")
    try:
        print_text(f"{json.dumps(op_support_limits(chosen), indent=2)}\n")
    except DialectError as error:
        raise typer.BadParameter(error.message, param_hint="--target") from None
