"""The back ends, by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from dml_tile.back_ends.chromium import from_chromium
from dml_tile.back_ends.directmlx import from_directmlx
from dml_tile.back_ends.onnxruntime import CURRENT, FIRST, MIDDLE, from_onnxruntime
from dml_tile.back_ends.rules import Fate, Handover
from dml_tile.back_ends.tensorflow import from_tensorflow
from dml_tile.dialects import onnx
from dml_tile.dialects.request import Dialect, Request
from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.targets import Target, TargetLike
from dml_tile.simulation.target import resolve
from dml_tile.text import did_you_mean

_L = FeatureLevel.parse
_ORT: Final = "microsoft/onnxruntime/{}/main/onnxruntime/core/providers/dml/DmlExecutionProvider/src/Operators"


@dataclass(frozen=True, slots=True)
class BackEnd:
    """A runtime that hands tiles to DirectML.

    ``title`` is its full name, ``source`` the page of the file that ``convert`` follows.
    """

    name: str
    title: str
    source: str
    convert: Callable[[Request, Target], Handover]
    """The handover at a target that the back end supports, of a tile of a dialect that it takes."""
    dialects: tuple[Dialect, ...] | None = None
    """The dialects that it takes; None for all, as if they were converted to its own."""
    minimum_level: FeatureLevel = FeatureLevel.DML_FEATURE_LEVEL_1_0
    """The lowest feature level at which it creates a device."""
    advice: str | None = None
    """The suggestion for targets below the minimum level."""
    needs_constant_repeats: bool = False
    """True if it refuses repeats computed at run time."""
    folds_constants: bool = False
    """True if onnxruntime optimises the graph first: it folds constants, and removes nodes that nothing uses."""
    keeps_dimensions: bool = False
    """True if the descriptor has as many dimensions as the tile, even where sizes are 1."""

    def hand_over(self, request: Request, target: Target) -> Handover:
        """Return the descriptor that it hands to DirectML for a tile, or the reason that it hands over none."""
        if target.feature_level < self.minimum_level:
            note = f"{self.title} makes no device below {self.minimum_level.name}; the target is {target.label}"
            return Handover(Fate.REFUSED, note=note, suggestion=self.advice)
        if self.dialects is not None and request.dialect not in self.dialects:
            registered = " and ".join(dialect.name for dialect in self.dialects)
            note = f"{self.title} registers {registered}; {request.dialect} is left to other providers"
            return Handover(Fate.ELSEWHERE, note=note)
        return self.convert(request, target)


_ALL: Final = (
    BackEnd(
        "ort",
        "ONNX Runtime's DirectML provider",
        f"https://github.com/{_ORT.format('blob')}/DmlOperatorTile.cpp",
        partial(from_onnxruntime, CURRENT),
        dialects=(onnx.TILE_6, onnx.TILE_13),
        minimum_level=_L("5_0"),
        folds_constants=True,
        advice="take onnxruntime-directml-VERSION as the target: its wheel brings a DirectML of its own",
    ),
    BackEnd(
        "ort-middle",
        "ONNX Runtime's DirectML provider (older, with emulated 64-bit integers; of which releases is not known)",
        f"https://github.com/{_ORT.format('commits')}/OperatorRegistration.cpp",
        partial(from_onnxruntime, MIDDLE),
        dialects=(onnx.TILE_6,),
        minimum_level=_L("2_0"),
        folds_constants=True,
    ),
    BackEnd(
        "ort-first",
        "ONNX Runtime's DirectML provider (at first; of which releases is not known)",
        f"https://github.com/{_ORT.format('commits')}/DmlOperatorTile.cpp",
        partial(from_onnxruntime, FIRST),
        dialects=(onnx.TILE_6,),
        folds_constants=True,
    ),
    BackEnd(
        "chromium",
        "Chromium's WebNN over DirectML",
        "https://github.com/chromium/chromium/blob/c80028acacc05ac6687d44d9af5c95851b88b11e/services/webnn/dml/"
        "graph_impl_dml.cc",
        from_chromium,
        minimum_level=_L("4_0"),
        needs_constant_repeats=True,
        keeps_dimensions=True,
    ),
    BackEnd(
        "tensorflow",
        "TensorFlow-DirectML",
        "https://github.com/microsoft/tensorflow-directml/blob/14ec9e33a9ead95a458eb5e70c394bdd837713f5/tensorflow/core/"
        "kernels/dml_tile_op.cc",
        from_tensorflow,
    ),
    BackEnd(
        "directmlx",
        "DirectMLX",
        "https://github.com/microsoft/DirectML/blob/master/Libraries/DirectMLX.h",
        from_directmlx,
        keeps_dimensions=True,
    ),
)

BACK_ENDS: Final[dict[str, BackEnd]] = {back_end.name: back_end for back_end in _ALL}
"""The back ends by name, as ``check --via`` takes them."""


def back_end_named(name: str) -> BackEnd:
    """The back end with this name. Raises ValueError, with the nearest names, if there is none."""
    if name not in BACK_ENDS:
        hint = did_you_mean(name, BACK_ENDS, f"expected one of {', '.join(BACK_ENDS)}", count=2)
        raise ValueError(f"there is no back end {name!r}; {hint}")
    return BACK_ENDS[name]


def hand_over(request: Request, target: TargetLike | None, back_end: str) -> Handover:
    """Return the named back end's handover of a tile at a target; None means the current target.

    Raises ValueError for an unknown target or back end.
    """
    return back_end_named(back_end).hand_over(request, resolve(target))
