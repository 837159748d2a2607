"""``dml-tile schema``"""

from __future__ import annotations

from typing import Annotated

import typer

from dml_tile.cli.output_files import print_text


def schema(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="A schema; without it, the names of all are printed.")
    ] = None,
) -> None:
    """Print the JSON Schema of a format that is read or written, or the names of all schemas."""
    import json

    from dml_tile.emit.schemas import schemas

    known = schemas()
    if name is None:
        print_text("".join(f"{each}\n" for each in known))
    elif name in known:
        print_text(f"{json.dumps(known[name], indent=2)}\n")
    else:
        raise typer.BadParameter(f"there is no schema {name!r}; expected one of {', '.join(known)}", param_hint="NAME")
