"""``dml-tile run``"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from io import UnsupportedOperation
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from dml_tile.cli.console import FINDINGS, UNREADABLE, complain, print_stderr
from dml_tile.cli.formats import console_of, print_bytes, print_text, require_writable
from dml_tile.cli.options import AgainstOption, RootOption, TargetsOption, folder_of_links

if TYPE_CHECKING:
    from dml_tile.files.paths import AllowedFolders


def run(
    model: str = typer.Argument(..., metavar="MODEL.json", help="A DxDispatch model; - is standard input."),
    targets: TargetsOption = None,
    against: AgainstOption = None,
    output_dir: Path = typer.Option(
        Path(), help="The only folder that the model may write to; by default the current one.", file_okay=False
    ),
    allow_hidden: bool = typer.Option(
        False, "--allow-hidden", help="Let the model use files of which a part begins with a dot."
    ),
    dxdispatch_output: bool = typer.Option(
        False,
        "--dxdispatch-output",
        help="Print exactly what DxDispatch prints: 8-bit integers as characters, and no rows on a terminal.",
    ),
    overwrite: bool = typer.Option(False, "--overwrite", help="Let the model replace files that were there before."),
    root: RootOption = None,
) -> None:
    """Check the operators of a DxDispatch model, then run its commands in order.

    On a terminal, resources are printed in rows of the last dimension of the tensor that they are bound to; elsewhere,
    each in one line, as by DxDispatch.
    """
    from dml_tile.cli.config import one_target
    from dml_tile.dxdispatch.runner import run_model
    from dml_tile.errors import InputError, RefusedModelError, input_error
    from dml_tile.files.paths import why_refused
    from dml_tile.findings import unreadable
    from dml_tile.readers.descriptors import parse_source
    from dml_tile.readers.sources import is_model_file
    from dml_tile.reports.text import print_refusals

    target = one_target(targets, "a model is run at one target")
    require_writable(str(output_dir))
    try:
        if refused := why_refused(model, folder_of_links(root), may_be_special=True):
            raise input_error("", refused)
        if is_model_file(model):
            raise input_error("", "is no DxDispatch model, which run takes; `dml-tile check` checks such a file")
        notes, values = run_model(
            parse_source(model),
            _allowed_folders(model, output_dir, allow_hidden, overwrite),
            print_bytes if dxdispatch_output else print_text,
            target,
            against or "both",
            as_dxdispatch=dxdispatch_output,
            in_rows=sys.stdout.isatty(),
        )
        print_refusals(console_of(sys.stderr), model, notes, target)
        if values:
            print_stderr(f"dml-tile: not DirectML's in every byte: {values}")
    except RefusedModelError as error:
        print_refusals(console_of(sys.stderr), model, error.results, target)
        raise typer.Exit(FINDINGS) from None
    except InputError as error:
        complain(model, error.problems)
        raise typer.Exit(UNREADABLE) from None
    except OSError as error:
        complain(model, [unreadable("", f"{error.filename}: {error.strerror}")])
        raise typer.Exit(UNREADABLE) from None


def _allowed_folders(model: str, output_dir: Path, allow_hidden: bool, overwrite: bool) -> AllowedFolders:
    """Return the folders that the model may use, but for its own file."""
    from dml_tile.files.paths import STANDARD_INPUT, AllowedFolders

    folder = Path() if model == STANDARD_INPUT else Path(model).parent
    folders = AllowedFolders((folder, Path()), output_dir, allow_hidden, overwrite)
    with suppress(UnsupportedOperation):  # by a stream that is no file
        folders.protect(os.fstat(sys.stdin.fileno()) if model == STANDARD_INPUT else Path(model).stat())
    return folders
