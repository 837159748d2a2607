"""Tells whether a target, or a back end at a target, has a DirectML device, and what to ship if not."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from dml_tile.back_ends import BackEnd
from dml_tile.directml.enums import HRESULT
from dml_tile.directml.targets import DIRECTML_VERSIONS, WINDOWS_RELEASES, Target, oldest_windows, packaged_directml
from dml_tile.findings import apply_rules
from dml_tile.input_errors import Record
from dml_tile.rules.device import EXPORT_RULES, Creation
from dml_tile.rules.tile import upgrade_advice

_LOADED: Final = "if DirectML.dll of Microsoft.AI.DirectML is not beside the executable, that of Windows is loaded"


class DeviceOutput(Record):
    """A line of the output of `dml-tile device --format json`: whether a target has a device."""

    target: str
    feature_level: str = Field(examples=["2_0"])
    """The feature level of the target's DirectML."""
    directml: str
    """The DirectML that is asked for the device, and where it comes from."""
    via: str
    """The back end that asks for the device; empty for an application itself."""
    created: bool
    """Whether the device comes into being."""
    needed: str | None
    """The lowest feature level that is taken; null if any is."""
    hresult: str | None
    """The error of DMLCreateDevice1; null if it succeeds, or if DirectML does not have it."""
    reason: str | None
    """Why no device comes into being; null if one does."""
    ship: str | None
    """The DirectML to ship for a device; null if there is one."""
    url: str | None
    """The page of what the back end needs; null without one."""
    note: str
    """The inferred facts about the target; empty without any."""


def device_at(target: Target, via: BackEnd | None = None) -> DeviceOutput:
    """Return whether a target has a device; an application without a back end needs no feature level."""
    reason = ship = None
    if via and not via.creates_a_device(target):
        without = apply_rules(EXPORT_RULES, Creation(0, via.minimum_level(target)), target)
        reason = next((finding.message for finding in without), via.needs(target))
        ship = _what_to_ship(via, target)
    return DeviceOutput(
        target=target.name,
        feature_level=target.feature_level.short,
        directml=directml_of(target),
        via=via.name if via else "",
        created=not reason,
        needed=via.minimum_level(target).short if via else None,
        hresult=HRESULT.DXGI_ERROR_UNSUPPORTED.hex if reason and target.level.exports_create_device1 else None,
        reason=reason,
        ship=ship,
        url=via.device_page if via else None,
        note=target.note,
    )


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
    return f"{upgrade_advice(needed)}; {_LOADED}"
