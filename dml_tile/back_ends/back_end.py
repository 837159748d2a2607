"""A runtime that passes tiles to DirectML, its result for a tile, and rules for tiles that it does not pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from dml_tile.back_ends.deployment import Deployment, deployed
from dml_tile.back_ends.dialects import Request
from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.directml import pages
from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.targets import NEWEST_PROVIDER, Target, TargetLike, provider_release
from dml_tile.findings import Basis, Rules, Violation
from dml_tile.simulation.target import resolve


class Outcome(Enum):
    """The action of a back end on a tile."""

    TILE = "describes a tile to DirectML"
    NOTHING = "dispatches nothing"
    ELSEWHERE = "leaves the tile to something other than DirectML"
    REFUSED = "raises an error"


@dataclass(frozen=True, slots=True)
class BackEndResult:
    """The descriptor that a back end makes of a tile, or the reason why it makes none.

    ``desc`` is None unless the outcome is TILE; ``reason`` says why, and ``path`` names the field, if any, in C names.
    ``url`` is the page of the file that decides; empty for the back end's own. ``rule`` is the package's own id of the
    reason, where it is one of placing a node; empty for a rule of back ends.
    """

    outcome: Outcome
    path: str = ""
    reason: str = ""
    suggestion: str | None = None
    desc: TileOperatorDesc | None = None
    url: str = ""
    rule: str = ""


@dataclass(frozen=True, slots=True)
class BackEnd:
    """A runtime that passes tiles to DirectML.

    ``title`` is its full name, ``source`` the page of the file that ``convert`` follows, ``device_page`` that of what
    it needs to create a device. ``release`` is the release of ONNX Runtime that a name such as ``ort-1.20`` has; if
    empty, it is that of the target, or the newest.
    """

    name: str
    title: str
    source: str
    convert: Callable[[Request, Deployment], BackEndResult]
    """The result for a tile at a target with a device."""
    device_page: str
    device_level: Callable[[Deployment], FeatureLevel]
    """The lowest level of a device of the release."""
    advice: Callable[[Deployment], str] | None = None
    """Returns the suggestion for targets whose DirectML is too old for the release; None: nothing can be shipped."""
    places_nodes: bool = False
    """True for ONNX Runtime, which optimises a model's graph, and of which it is known where it places each node."""

    release: str = ""

    def deployed(self, target: Target) -> Deployment:
        """Return the release of ONNX Runtime that runs over a target's DirectML.

        Raises ValueError for a target that is a package of another release than the back end's.
        """
        return deployed(target, self.release)

    def minimum_level(self, target: Target) -> FeatureLevel:
        """Return the lowest level of a device of the release that runs at a target."""
        return self.device_level(self.deployed(target))

    def creates_a_device(self, target: Target) -> bool:
        """Return True if the target's release creates a device there."""
        return target.feature_level >= self.minimum_level(target)

    def needs(self, target: Target) -> str:
        """Return, in a sentence, what the target's release needs to create a device."""
        newest = ".".join(map(str, NEWEST_PROVIDER))
        is_newest = self.places_nodes and not (self.release or provider_release(target.name))
        as_of = f" (as of {newest}, the newest onnxruntime-directml)" if is_newest else ""
        as_of = f" (as of {self.release})" if self.release else as_of
        return f"{self.title} makes no device below {self.minimum_level(target).name}{as_of}"

    def describe(self, request: Request, target: TargetLike | None = None) -> BackEndResult:
        """Return the descriptor that it passes to DirectML for a tile, or the reason why there is none.

        None means the current target. Raises ValueError for an unknown target, and for one that is a package of another
        release than the back end's.
        """
        target = resolve(target)
        deployment = self.deployed(target)
        if target.feature_level < self.device_level(deployment):
            reason = f"{self.needs(target)}; the target is {target.label}"
            advice = self.advice and self.advice(deployment)
            return BackEndResult(Outcome.REFUSED, "", reason, advice, url=self.device_page)
        return self.convert(request, deployment)


BACK_END_RULES: Final = Rules[BackEndResult](basis=Basis.INFERRED, url=pages.TILE, hresult=None)


@BACK_END_RULES.add("DML-VIA-refused")
def back_end_accepts_the_tile(result: BackEndResult, target: Target) -> Iterator[Violation]:
    """The back end must accept the tile."""
    if result.outcome is Outcome.REFUSED:
        yield Violation(result.path, result.reason, result.suggestion)
