"""The back ends by name, and what DirectML says of what they hand to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from dml_tile.back_ends.chromium import from_chromium
from dml_tile.back_ends.directmlx import from_directmlx
from dml_tile.back_ends.onnxruntime import CURRENT, FIRST, MIDDLE, from_onnxruntime
from dml_tile.back_ends.tensorflow import from_tensorflow
from dml_tile.enums import FeatureLevel
from dml_tile.findings import Against, Finding, bases_of
from dml_tile.readers.model_tile import TileNode
from dml_tile.rules.back_end import BACK_END_RULES, Fate, Handover
from dml_tile.rules.check import check
from dml_tile.rules.dialect import sizes_fit
from dml_tile.simulation import resolve
from dml_tile.targets import Target, TargetLike
from dml_tile.text import did_you_mean
from dml_tile.tile_request import Request

_L = FeatureLevel.parse
_ORT: Final = "microsoft/onnxruntime/{}/main/onnxruntime/core/providers/dml/DmlExecutionProvider/src/Operators"


@dataclass(frozen=True, slots=True)
class BackEnd:
    """What lowers a tile to DirectML.

    ``title`` is what it is, ``source`` the page of the file that does it. ``dialects`` are those that it takes, None
    for all, as if the tile were converted. It makes no device below ``minimum_level``; ``advice`` is what to try there.
    ``needs_constant_repeats`` tells whether repeats that are known at run time only keep the tile from it,
    ``keeps_dimensions`` whether DirectML is given as many as the tile has, whatever their sizes.
    """

    name: str
    title: str
    source: str
    hand_over: Callable[[Request, Target], Handover]
    dialects: tuple[str, ...] | None = None
    minimum_level: FeatureLevel = FeatureLevel.DML_FEATURE_LEVEL_1_0
    advice: str | None = None
    needs_constant_repeats: bool = False
    keeps_dimensions: bool = False


_ALL: Final = (
    BackEnd(
        "ort",
        "ONNX Runtime's DirectML provider",
        f"https://github.com/{_ORT.format('blob')}/DmlOperatorTile.cpp",
        partial(from_onnxruntime, CURRENT),
        dialects=("ONNX Tile-6", "ONNX Tile-13"),
        minimum_level=_L("5_0"),
        advice="take onnxruntime-directml-VERSION as the target: its wheel brings a DirectML of its own",
    ),
    BackEnd(
        "ort-middle",
        "ONNX Runtime's DirectML provider (older, with emulated 64-bit integers)",
        f"https://github.com/{_ORT.format('commits')}/OperatorRegistration.cpp",
        partial(from_onnxruntime, MIDDLE),
        dialects=("ONNX Tile-6",),
        minimum_level=_L("2_0"),
    ),
    BackEnd(
        "ort-first",
        "ONNX Runtime's DirectML provider (at first)",
        f"https://github.com/{_ORT.format('commits')}/DmlOperatorTile.cpp",
        partial(from_onnxruntime, FIRST),
        dialects=("ONNX Tile-6",),
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
    """The back end of this name. Raises ValueError, with the nearest names, for any other."""
    if name not in BACK_ENDS:
        hint = did_you_mean(name, BACK_ENDS, f"expected one of {', '.join(BACK_ENDS)}", count=2)
        raise ValueError(f"there is no back end {name!r}; {hint}")
    return BACK_ENDS[name]


def hand_over(request: Request, target: TargetLike | None, back_end: str) -> Handover:
    """What a back end makes of a tile at a target, where None means the simulated one, else 6_4.

    Raises ValueError for an unknown target or back end.
    """
    chosen, target = back_end_named(back_end), resolve(target)
    if target.feature_level < chosen.minimum_level:
        note = f"{chosen.title} makes no device below {chosen.minimum_level.name}; the target is {target.label}"
        return Handover(Fate.REFUSED, note=note, suggestion=chosen.advice)
    if chosen.dialects is not None and request.dialect not in chosen.dialects:
        note = f"{chosen.title} registers {' and '.join(chosen.dialects)}; {request.dialect} is left to others"
        return Handover(Fate.ELSEWHERE, note=note)
    return chosen.hand_over(request, target)


def checked(
    request: Request, target: TargetLike | None, back_end: str, against: Against = "both"
) -> tuple[Finding, ...]:
    """The findings on a tile that goes through a back end: its own, else what DirectML has on what it hands over.

    ``against`` is for DirectML's; the back end's are told in any case. A tile that another operator does, and an empty
    result, for which nothing is dispatched, have none. Raises ValueError as ``hand_over`` does, and for an unknown
    ``against``.
    """
    bases_of(against)
    target = resolve(target)
    handover = hand_over(request, target, back_end)
    if own := _own_findings(handover, target, back_end):
        return own
    lost = tuple(sizes_fit.findings(request, target))  # a conversion to UINT makes another tile of it
    return lost + (check(handover.desc, target, against) if handover.desc else ())


def checked_node(
    node: TileNode, target: TargetLike | None, back_end: str, against: Against = "both"
) -> tuple[Finding, ...]:
    """The findings on a model's tile that its dialect accepts.

    Where a part of it is known at run time only, they are the back end's own, and those on the data type, and on the
    number of dimensions where it is known what DirectML is given. Raises ValueError as ``checked`` does.
    """
    findings = checked(node.request, target, back_end, against)
    if not node.unknown:
        return findings
    of_back_ends = {rule.id for rule in BACK_END_RULES}
    chosen = back_end_named(back_end)
    fields: tuple[str, ...] = (".DataType",)
    if chosen.keeps_dimensions and node.shape is not None:
        fields += (".DimensionCount",)
    told = tuple(finding for finding in findings if finding.rule in of_back_ends or finding.path.endswith(fields))
    if node.repeats is None and chosen.needs_constant_repeats:
        note = "they are computed at run time; what is taken is numbers, when a graph is built"
        elsewhere = Handover(Fate.ELSEWHERE, note=note, path="Repeats")
        told += _own_findings(elsewhere, resolve(target), back_end)
    return told


def note_on(node: TileNode, target: TargetLike | None, back_end: str) -> str:
    """What there is to know of what a back end makes of a model's tile.

    That another operator does it is told only of a tile of which all is known before it is run. Raises ValueError as
    ``hand_over`` does.
    """
    handover = hand_over(node.request, target, back_end)
    return "" if node.unknown and handover.fate is Fate.OTHER_OPERATOR else handover.note


def _own_findings(handover: Handover, target: Target, back_end: str) -> tuple[Finding, ...]:
    found = (finding for rule in BACK_END_RULES for finding in rule.findings(handover, target))
    return tuple(replace(finding, url=back_end_named(back_end).source) for finding in found)
