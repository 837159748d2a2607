"""The packages that contain a DirectML.dll, release by release: its version, from the version resource of the file.

The packages are PyPI's wheels for Windows and npm's onnxruntime-node; those for x64 and arm64 contain the same version.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final, NamedTuple


class Packaged(NamedTuple):
    """The releases of a package from ``first`` to ``last`` and the DirectML in each; ``instead`` is for those without.

    ``instead`` says which DirectML such a release loads.
    """

    package: str
    first: str
    last: str
    directml: str | None
    instead: str = ""


RELEASES: Final = json.loads(Path(__file__).with_name("releases.json").read_text("utf-8"))
"""The versions of DirectML, Windows releases, and releases of packages; a row each, the oldest first."""

PACKAGES: Final = tuple(Packaged(*row) for row in RELEASES["packages"])
"""A row a package and range of releases."""

NEWEST_PROVIDER: Final = (1, 24)
"""The newest release of ONNX Runtime whose DirectML provider was read, for ``--via ort``."""

_PROVIDERS: Final = frozenset({"onnxruntime-directml", "onnxruntime-node", "onnxruntime-windowsml"})
"""The packages whose version is that of the provider in them."""

_PACKAGE: Final = "|".join(dict.fromkeys(row.package for row in PACKAGES))
_NAME: Final = rf"({_PACKAGE})-([0-9]{{1,5}})\.([0-9]{{1,5}})(?:\.(0|[1-9][0-9]{{0,4}}))?"
_NO_PATCH: Final = 10**5
"""Stands for the patch of a name without one: beyond all, so that the newest is the nearest."""


def packaged_directml(name: str) -> tuple[Packaged, str | None] | None:
    """Return the row of ``PACKAGE-VERSION``, and the release of its minor version that was read in its place, if any.

    A name without a patch release means those of the row, unless the minor version has several rows. Returns None for
    other names, and for minor versions of which nothing was read.
    """
    if not (parts := re.fullmatch(_NAME, name)):
        return None
    version = (int(parts[2]), int(parts[3]), int(parts[4]) if parts[4] else _NO_PATCH)
    near = []
    for row in PACKAGES:
        nearest = max(_numbers(row.first), min(version, _numbers(row.last)))
        if row.package == parts[1] and nearest[:2] == version[:2]:
            read = None if nearest == version else ".".join(map(str, nearest))
            near.append((abs(nearest[2] - version[2]), row, read))
    if not near:
        return None
    _, row, read = min(near, key=lambda each: each[0])
    return row, read if parts[4] or len(near) > 1 else None


def provider_release(name: str) -> tuple[int, int] | None:
    """Return the release of ONNX Runtime's DirectML provider in ``PACKAGE-VERSION``; None for other names."""
    parts = re.match(_NAME, name)
    return (int(parts[2]), int(parts[3])) if parts and parts[1] in _PROVIDERS else None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
