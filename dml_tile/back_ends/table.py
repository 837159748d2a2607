"""The back ends, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from dml_tile.back_ends.chromium import from_chromium
from dml_tile.back_ends.onnxruntime import from_onnxruntime
from dml_tile.back_ends.rules import BackEndResult, Outcome
from dml_tile.dialects.request import Dialect, Request
from dml_tile.dialects.tiles import ONNX_TILE_6, ONNX_TILE_13
from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.targets import Target, TargetLike
from dml_tile.errors import require_instance
from dml_tile.simulation.target import resolve
from dml_tile.text import did_you_mean


@dataclass(frozen=True, slots=True)
class BackEnd:
    """A runtime that passes tiles to DirectML.

    ``title`` is its full name, ``source`` the page of the file that ``convert`` follows.
    """

    name: str
    title: str
    source: str
    convert: Callable[[Request, Target], BackEndResult]
    """The result, at a target that the back end supports, for a tile of a dialect that it takes."""
    minimum_level: FeatureLevel
    """The lowest feature level at which it creates a device."""
    advice: str | None = None
    """The suggestion for targets below the minimum level."""
    dialects: tuple[Dialect, ...] | None = None
    """The dialects that it takes; None for all, as if they were converted to its own."""
    folds_constants: bool = False
    """True if onnxruntime optimises the graph first: it folds Tiles of constants, or used for their shape."""

    def describe(self, request: Request, target: Target) -> BackEndResult:
        """Return the descriptor that it passes to DirectML for a tile, or the reason why there is none."""
        if target.feature_level < self.minimum_level:
            reason = f"{self.title} makes no device below {self.minimum_level.name}; the target is {target.label}"
            return BackEndResult(Outcome.REFUSED, reason=reason, suggestion=self.advice)
        if self.dialects is not None and request.dialect not in self.dialects:
            registered = " and ".join(dialect.name for dialect in self.dialects)
            reason = f"{self.title} registers {registered}; {request.dialect} is left to other providers"
            return BackEndResult(Outcome.ELSEWHERE, reason=reason)
        return self.convert(request, target)


_ALL: Final = (
    BackEnd(
        "ort",
        "ONNX Runtime's DirectML provider",
        "https://github.com/microsoft/onnxruntime/blob/main/onnxruntime/core/providers/dml/DmlExecutionProvider/src/"
        "Operators/DmlOperatorTile.cpp",
        from_onnxruntime,
        FeatureLevel.DML_FEATURE_LEVEL_5_0,
        advice="take onnxruntime-directml-VERSION as the target: its wheel brings a DirectML of its own",
        dialects=(ONNX_TILE_6, ONNX_TILE_13),
        folds_constants=True,
    ),
    BackEnd(
        "chromium",
        "Chromium's WebNN over DirectML",
        "https://github.com/chromium/chromium/blob/c80028acacc05ac6687d44d9af5c95851b88b11e/services/webnn/dml/"
        "graph_impl_dml.cc",
        from_chromium,
        FeatureLevel.DML_FEATURE_LEVEL_4_0,
    ),
)

BACK_ENDS: Final[dict[str, BackEnd]] = {back_end.name: back_end for back_end in _ALL}
"""The back ends by name, as ``check --via`` takes them."""


def back_end_named(name: str) -> BackEnd:
    """Return the back end with this name. Raises ValueError, with the nearest names, if there is none."""
    require_instance(name, str)
    if name not in BACK_ENDS:
        hint = did_you_mean(name, BACK_ENDS, f"expected one of {', '.join(BACK_ENDS)}", count=2)
        raise ValueError(f"there is no back end {name!r}; {hint}")
    return BACK_ENDS[name]


def describe(request: Request, target: TargetLike | None, back_end: str) -> BackEndResult:
    """Return the named back end's result for a tile at a target; None means the current target.

    Raises ValueError for an unknown target or back end.
    """
    return back_end_named(back_end).describe(request, resolve(target))
