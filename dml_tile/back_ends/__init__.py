"""Tile as other specifications define it, and the descriptors that runtimes pass to DirectML for it.

dialects          ONNX_TILE_1, ONNX_TILE_6, ONNX_TILE_13, OPENVINO_TILE_1, WEBNN_TILE and NUMPY_TILE
directml          the descriptor of a request

BACK_ENDS         the back ends by name, as ``check --via`` takes them
back_end_named()  looks one up; ``ort-1.20`` is that release of ONNX Runtime, whichever DirectML it runs over
BackEnd           a runtime that passes tiles to DirectML; describe() returns its result for a request at a target
BackEndResult     its descriptor of a tile, or the reason why there is none
Outcome           the kinds of results
Deployment        a release of ONNX Runtime over a target's DirectML

The ``request`` of a dialect takes a data type, a shape and repeats, and returns a ``Request`` or raises
``dml_tile.errors.DialectError``:

    request = ONNX_TILE_13.request("float32", [2, 3], [1, 2])
    directml.tile_desc(request)

Each back end follows the source files that it names. The releases with those files are not known.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from typing import Any

from dml_tile.back_ends.back_end import BackEnd, BackEndResult, Outcome
from dml_tile.back_ends.deployment import Deployment, known_release
from dml_tile.back_ends.dialects import Dialect, Integers, Request, ShapeAndRepeats, Specification
from dml_tile.back_ends.kernels import releases, version_text
from dml_tile.directml.targets import Target
from dml_tile.errors import require_instance
from dml_tile.text import did_you_mean

__all__ = [
    "BackEnd",
    "BackEndResult",
    "Deployment",
    "Dialect",
    "Integers",
    "Outcome",
    "Request",
    "ShapeAndRepeats",
    "Specification",
]
__all__ += ["BACK_ENDS", "back_end_named"]

BACK_ENDS: dict[str, BackEnd]
"""The back ends by name, as ``check --via`` takes them."""


@cache
def _back_ends() -> dict[str, BackEnd]:
    """Return the back ends, which are imported when they are first named: lowering needs the dialects alone."""
    from dml_tile.back_ends.chromium import CHROMIUM
    from dml_tile.back_ends.onnxruntime import ORT

    return {back_end.name: back_end for back_end in (ORT, CHROMIUM)}


def __getattr__(name: str) -> Any:
    if name == "BACK_ENDS":
        return _back_ends()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def back_end_names() -> list[str]:
    """Return the names of the back ends, and of the releases of ONNX Runtime."""
    return [*_back_ends(), *(f"ort-{version_text(release)}" for release in releases())]


def back_end_named(name: str, targets: Iterable[Target] = ()) -> BackEnd:
    """Return the back end with this name, or ``ort`` as of a release, such as ``ort-1.20``.

    A patch release is its minor release, unless its kernels differ. Raises ValueError, with the nearest names, if there
    is none, and if one of the targets is a package of another release.
    """
    require_instance(name, str)
    known = _back_ends()
    base, _, release = name.partition("-")
    if release and base in known and known[base].places_nodes:
        release = known_release(release)
        back_end = replace(known[base], name=f"{base}-{release}", release=release)
        for target in targets:
            back_end.deployed(target)
        return back_end
    if name not in known:
        hint = did_you_mean(name, known, f"expected one of {', '.join(known)}", count=2)
        raise ValueError(f"there is no back end {name!r}; {hint}")
    return known[name]
