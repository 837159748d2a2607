"""A release of ONNX Runtime over a target's DirectML, which need not be the one that it was built with."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from dml_tile.back_ends.kernels import difference_of, releases, version_of, version_text
from dml_tile.directml.targets import NEWEST_PROVIDER, Target, package_of, provider_release


class Deployment(NamedTuple):
    """A release over a target's DirectML; ``difference`` is that of a patch release from its minor release's tables."""

    target: Target
    release: tuple[int, int]
    difference: str = ""


@lru_cache(maxsize=64)  # asked for each tile of a model, several times
def deployed(target: Target, release: str = "") -> Deployment:
    """Return the release that runs over a target's DirectML.

    It is the one that is named, such as ``1.20``, else that of the target, if it is a package, else the newest
    onnxruntime-directml. Raises ValueError for a target that is a package of another release than the named one.
    """
    packaged, own = provider_release(target.name), difference_of(target.name)
    if not release:
        return Deployment(target, packaged or NEWEST_PROVIDER, own)
    version, difference = version_of(release), difference_of(release)
    if packaged and (packaged != version or (difference and difference != own)):
        advice = "name the Windows or the DirectML over which it runs"
        raise ValueError(f"{target.name} is a package of another release than {release}; {advice}")
    return Deployment(target, version, difference or own)


_BESIDE_ITSELF: Final = (1, 21)
"""The first release that loads the DirectML beside onnxruntime.dll; earlier ones look beside the executable."""


NO_GRAPHS: Final = "{} has no IDMLDevice1, with which ONNX Runtime's provider compiles nodes of known sizes"
"""Why sessions fail over a target's DirectML below 2_1, which has a device for releases up to 1.13.

onnxruntime/core/providers/dml/DmlExecutionProvider/src/FusedGraphKernel.cpp asks for the interface.
"""


def shipped(deployment: Deployment) -> str:
    """Return the advice to ship the DirectML that a release was built with, where its loader looks."""
    package = package_of(deployment.release)
    where = "onnxruntime.dll" if deployment.release >= _BESIDE_ITSELF else "the executable"
    return (
        f"ship DirectML {package.directml}, as in {package.package} {version_text(deployment.release)}, beside {where}"
    )


def known_release(text: str) -> str:
    """Return a release by its minor release, such as ``1.20``; a patch release that differs from the tables as it is.

    Raises ValueError, with the nearest, for a release that was not read, and if the text names none.
    """
    parts = re.fullmatch(r"([0-9]{1,5})\.([0-9]{1,5})(\.[0-9]{1,5})?", text)
    if not parts:
        raise ValueError(f"{text!r} is no release; MAJOR.MINOR was expected, such as {version_text(NEWEST_PROVIDER)}")
    version = int(parts[1]), int(parts[2])
    if version not in releases():
        oldest, *_, newest = releases()
        nearest = version_text(min(max(version, oldest), newest))
        read = f"{version_text(oldest)} to {version_text(newest)}"
        raise ValueError(f"{text} is no known release of ONNX Runtime, as {read} are; did you mean ort-{nearest}?")
    return text if difference_of(text) else version_text(version)
