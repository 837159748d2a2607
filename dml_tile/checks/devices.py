"""Tells whether a target, or a back end at a target, has a DirectML device, and what to ship if not."""

from __future__ import annotations

from typing import Any

from dml_tile.back_ends import BackEnd
from dml_tile.back_ends.deployment import NO_GRAPHS
from dml_tile.back_ends.kernels import version_text
from dml_tile.directml.enums import HRESULT
from dml_tile.directml.targets import (
    DIRECTML_VERSIONS,
    WINDOWS_RELEASES,
    Target,
    oldest_windows,
    package_of,
    packaged_directml,
)
from dml_tile.findings import apply_rules
from dml_tile.rules.device import EXPORT_RULES, Creation


def device_at(target: Target, via: BackEnd | None = None) -> dict[str, Any]:
    """Return whether a target has a device, as a record of JSON, which device_output.schema.json describes.

    An application without a back end needs no feature level.
    """
    hresult, reason = _refusal(target, via) if via else (None, None)
    deployment = via.deployed(target) if via and via.places_nodes else None
    return {
        "target": target.name,
        "feature_level": target.feature_level.short,
        "directml": directml_of(target),
        "via": via.name if via else "",
        "release": version_text(deployment.release) if deployment else None,
        "created": not reason,
        "needed": via.minimum_level(target).short if via else None,
        "built_with": package_of(deployment.release).directml if deployment else None,
        "hresult": hresult.hex if hresult else None,
        "reason": reason,
        "ship": _what_to_ship(via, target) if via and reason else None,
        "url": via.device_page if via else None,
        "note": target.note,
    }


def _refusal(target: Target, via: BackEnd) -> tuple[HRESULT | None, str | None]:
    """Return the error that a back end gets in place of a device, if it is one of DirectML's, and why."""
    if not via.creates_a_device(target):
        without = apply_rules(EXPORT_RULES, Creation(0, via.minimum_level(target)), target)
        returned = HRESULT.DXGI_ERROR_UNSUPPORTED if target.level.exports_create_device1 else None
        return returned, next((finding.message for finding in without), via.needs(target))
    if via.places_nodes and not target.level.has_graphs:
        return HRESULT.E_NOINTERFACE, NO_GRAPHS.format(target.name)
    return None, None


def directml_of(target: Target) -> str:
    """Return a target's DirectML and its origin."""
    name = target.name.partition("+")[0].lower()
    if row := next((row for row in WINDOWS_RELEASES if row.name == name), None):
        return f"DirectML {row.directml}, in the box of {row.name}"
    if found := packaged_directml(name):
        return f"DirectML {found[0].directml}, in the package"
    if name.startswith("directml-"):
        return f"DirectML {name.removeprefix('directml-')}, which the application ships"
    first = next((row.version for row in DIRECTML_VERSIONS if row.level >= target.feature_level), None)
    return f"DirectML {first}.0 or another of this level" if first else "a DirectML of this level"


def _what_to_ship(via: BackEnd, target: Target) -> str:
    needed = via.minimum_level(target)
    if via.advice is None:
        return f"nothing, since a page brings no DirectML: {oldest_windows(needed)} and later have it in the box"
    return f"{via.advice(via.deployed(target))}; without one there, that of Windows is loaded"
