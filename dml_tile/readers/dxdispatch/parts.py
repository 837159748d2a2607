"""The parts of a model that DxDispatch's own parser looks at, with the rules that it holds them to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dml_tile.findings import Finding
from dml_tile.readers.json.syntax import Document
from dml_tile.rules.dxdispatch import ModelPart, PartKind, part_findings
from dml_tile.text import json_pointer


def model_parts(document: Document) -> Iterator[tuple[str, ModelPart]]:
    """Yield the parts of a model with their JSON pointers; of its commands, those that dispatch a tile."""
    yield "", ModelPart(PartKind.MODEL, document.value, document.rest, document.has_mark)
    data: dict[str, Any] = document.value
    resources, dispatchables, commands = (data.get(name) for name in ("resources", "dispatchables", "commands"))
    for name, value in resources.items() if isinstance(resources, dict) else ():
        yield json_pointer(["resources", name]), ModelPart(PartKind.RESOURCE, value)
    tiles = set()
    for name, value in dispatchables.items() if isinstance(dispatchables, dict) else ():
        part = ModelPart(PartKind.DISPATCHABLE, value)
        yield json_pointer(["dispatchables", name]), part
        if part.is_tile:
            tiles.add(name)
    for i, value in enumerate(commands if isinstance(commands, list) else ()):
        part = ModelPart(PartKind.COMMAND, value)
        dispatchable = part.fields.get("dispatchable")
        if isinstance(dispatchable, str) and dispatchable in tiles:
            yield json_pointer(["commands", i]), part


def model_findings(document: Document) -> dict[str, tuple[Finding, ...]]:
    """Return the findings on the parts of a model that have any, by their JSON pointers."""
    return {pointer: found for pointer, part in model_parts(document) if (found := part_findings(part))}
