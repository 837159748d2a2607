"""A runtime that passes tiles to DirectML, its result for a tile, and rules for tiles that it does not pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from dml_tile.back_ends.dialects import Dialect, Request
from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.directml import pages
from dml_tile.directml.enums import FeatureLevel
from dml_tile.directml.targets import Target, TargetLike
from dml_tile.findings import ELSEWHERE, Basis, Rules, Severity, Violation
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


class Release(NamedTuple):
    """A runtime's behaviour from a release on, up to the next row's.

    ``minimum_level`` is the lowest feature level at which it creates a device, by the ``page``.
    """

    since: tuple[int, int]
    minimum_level: FeatureLevel
    page: str


def _no_release(target: Target) -> tuple[int, int] | None:
    return None  # a function with a name pickles


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
    releases: tuple[Release, ...]
    """Its releases, the oldest first; ``newest`` is the last one that was read."""
    newest: str = ""
    release_named: Callable[[Target], tuple[int, int] | None] = _no_release
    """Returns the release in a target's name, if any."""
    advice: str | None = None
    """The suggestion for targets at which it creates no device."""
    dialects: tuple[Dialect, ...] | None = None
    """The dialects that it takes; None for all, as if converted to its own."""
    folds_constants: bool = False
    """True if onnxruntime optimises the graph first: it folds Tiles of constants, or used for their shape."""
    places_nodes: bool = False
    """True if it is known where it places each node of a model."""

    def release_at(self, target: Target) -> Release:
        """Return the release that a target names; the newest for a target that names none."""
        named = self.release_named(target)
        return next((row for row in reversed(self.releases) if named is None or row.since <= named), self.releases[0])

    def creates_a_device(self, target: Target) -> bool:
        """Return True if the target's release creates a device there."""
        return target.feature_level >= self.release_at(target).minimum_level

    def needs(self, target: Target) -> str:
        """Return, in a sentence, what the target's release needs to create a device."""
        named = self.release_named(target)
        newest = f" (as of {self.newest}, the newest release that was read)" if self.newest and not named else ""
        return f"{self.title} makes no device below {self.release_at(target).minimum_level.name}{newest}"

    def describe(self, request: Request, target: TargetLike | None = None) -> BackEndResult:
        """Return the descriptor that it passes to DirectML for a tile, or the reason why there is none.

        None means the current target. Raises ValueError for an unknown target.
        """
        target = resolve(target)
        if not self.creates_a_device(target):
            reason = f"{self.needs(target)}; the target is {target.label}"
            return BackEndResult(Outcome.REFUSED, "", reason, self.advice, url=self.release_at(target).page)
        if self.dialects is not None and request.dialect not in self.dialects:
            registered = ", ".join(dialect.name for dialect in self.dialects)
            reason = f"no provider of ONNX Runtime has {request.dialect}; {registered} are taken"
            return BackEndResult(Outcome.REFUSED, reason=reason)
        return self.convert(request, target)


BACK_END_RULES: Final = Rules[BackEndResult](basis=Basis.INFERRED, url=pages.TILE, hresult=None)


@BACK_END_RULES.add("DML-VIA-refused", says="The back end must accept the tile.")
def back_end_accepts_the_tile(result: BackEndResult, target: Target) -> Iterator[Violation]:
    if result.outcome is Outcome.REFUSED:
        yield Violation(result.path, result.reason, result.suggestion)


@BACK_END_RULES.add(ELSEWHERE, says="The back end must hand the tile to DirectML.", severity=Severity.NOTE)
def tile_reaches_directml(result: BackEndResult, target: Target) -> Iterator[Violation]:
    if result.outcome in (Outcome.ELSEWHERE, Outcome.NOTHING):
        yield Violation(result.path, result.reason, result.suggestion)
