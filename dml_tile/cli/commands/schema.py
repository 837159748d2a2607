"""``dml-tile schema``"""

from __future__ import annotations

from typing import Annotated

import typer


def schema(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="A schema's name; without it, their names.")
    ] = None,
) -> None:
    """Print a JSON Schema of what is read or written, or the names of all."""
    import json

    from dml_tile.emit.schemas import schemas

    known = schemas()
    if name is None:
        typer.echo("\n".join(known))
    elif name in known:
        typer.echo(json.dumps(known[name], indent=2))
    else:
        raise typer.BadParameter(f"there is no schema {name!r}; expected one of {', '.join(known)}", param_hint="NAME")
