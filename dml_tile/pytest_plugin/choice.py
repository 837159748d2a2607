"""Choice of targets: those of the run, and what the ``dml`` markers of a test make of them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from dml_tile.directml.enums import FeatureLevel
    from dml_tile.directml.targets import Target, TargetLike

VARIABLE: Final = "DML_TILE_TARGET"
KEYWORDS: Final = ("targets", "minimum", "maximum", "expects_removal")


@dataclass(frozen=True)
class Chosen:
    """The targets that are chosen for the whole run, and where."""

    source: str
    targets: tuple[Target, ...]

    @classmethod
    def read(cls, config: pytest.Config) -> Chosen | None:
        """The choice by option, else by the variable, else by the ini setting; None if there is none.

        Raises pytest.UsageError for an unknown target.
        """
        sources: dict[str, Iterable[str]] = {
            "--dml-target": config.getoption("--dml-target"),
            VARIABLE: [os.environ.get(VARIABLE, "")],
            "the ini setting dml_target": config.getini("dml_target"),
        }
        for source, texts in sources.items():
            if text := " ".join(texts).strip(" ,\t\n"):
                from dml_tile.simulation.target import targets_in

                try:
                    return cls(source, targets_in(text))
                except ValueError as error:
                    raise pytest.UsageError(f"{source}: {error}") from None
        return None


@dataclass(frozen=True)
class Bounds:
    """The targets that one ``dml`` marker keeps; None: no bound."""

    targets: tuple[Target, ...] | None = None
    minimum: FeatureLevel | None = None
    maximum: FeatureLevel | None = None

    @classmethod
    def read(cls, marker: pytest.Mark) -> Bounds:
        """The bounds that a marker's arguments give. Raises ValueError for arguments that make no sense."""
        if marker.args:
            raise ValueError(f"the dml marker takes keywords only, not {', '.join(map(repr, marker.args))}")
        if unknown := marker.kwargs.keys() - set(KEYWORDS):
            expected = f"{', '.join(KEYWORDS[:-1])} and {KEYWORDS[-1]}"
            raise ValueError(f"the dml marker takes {expected}, not {', '.join(sorted(unknown))}")
        if not isinstance(marker.kwargs.get("expects_removal", False), bool):
            raise ValueError(
                f"the dml marker's expects_removal is {marker.kwargs['expects_removal']!r}; True or False was expected"
            )
        parsed = {key: _parsed(key, marker.kwargs[key]) for key in ("minimum", "maximum") if key in marker.kwargs}
        bounds = cls(_targets_in(marker), **{key: target.feature_level for key, target in parsed.items()})
        if bounds.minimum is not None and bounds.maximum is not None and bounds.minimum > bounds.maximum:
            raise ValueError(f"the dml marker's minimum {bounds.minimum} is above its maximum {bounds.maximum}")
        return bounds

    def keep(self, target: Target) -> bool:
        """Return True if a target is within the bounds."""
        return (
            (self.targets is None or simulated_by(target) in map(simulated_by, self.targets))
            and (self.minimum is None or target.feature_level >= self.minimum)
            and (self.maximum is None or target.feature_level <= self.maximum)
        )


def simulated_by(target: Target) -> tuple[object, ...]:
    """Return a key that is equal for targets that simulate the same."""
    return target.feature_level, target.capabilities


def targets_for(chosen: Chosen | None, bounds: Sequence[Bounds]) -> tuple[Target, ...]:
    """The targets to choose from: those of the run; without any, those of the closest marker, or the default."""
    from dml_tile.directml.targets import DEFAULT_TARGET

    if chosen:
        return chosen.targets
    return next((bound.targets for bound in bounds if bound.targets), (DEFAULT_TARGET,))


def within(targets: Iterable[Target], bounds: Sequence[Bounds]) -> list[Target]:
    """The targets that all bounds keep."""
    return [target for target in targets if all(bound.keep(target) for bound in bounds)]


def bounds_of(node: pytest.Item) -> list[Bounds]:
    """The bounds of all markers of a test, the closest first. Raises ValueError."""
    return [_read_once(marker) for marker in node.iter_markers("dml")]


def _read_once(marker: pytest.Mark) -> Bounds:
    """Read the bounds of a marker, which many tests may share."""
    _, bounds = _READ.get(id(marker)) or (marker, Bounds.read(marker))
    _READ[id(marker)] = marker, bounds
    return bounds


_READ: Final[dict[int, tuple[pytest.Mark, Bounds]]] = {}
"""Bounds by the identity of their markers, which are kept so that it stays theirs."""


def expects_removal(node: pytest.Item) -> bool:
    """Return True if the closest marker with ``expects_removal`` sets it."""
    said = (mark.kwargs["expects_removal"] for mark in node.iter_markers("dml") if "expects_removal" in mark.kwargs)
    return bool(next(said, False))


def brings_its_own(node: pytest.Item) -> bool:
    """Return True if a test brings its own targets, as in ``parametrize("dml_target", ["4_1"], indirect=True)``.

    Raises ValueError if they would take the fixture's place, so that nothing were simulated.
    """
    for mark in node.iter_markers("parametrize"):
        names = mark.args[0] if mark.args else mark.kwargs["argnames"]
        indirect = mark.args[2] if len(mark.args) > 2 else mark.kwargs.get("indirect", False)
        if "dml_target" in (re.split(r"[\s,]+", names) if isinstance(names, str) else names):
            if indirect is True or (indirect and "dml_target" in indirect):
                return True
            raise ValueError('parametrize("dml_target", …) simulates nothing without indirect=["dml_target"]')
    return False


def _targets_in(marker: pytest.Mark) -> tuple[Target, ...] | None:
    if "targets" not in marker.kwargs:
        return None
    targets = marker.kwargs["targets"]
    if not isinstance(targets, list | tuple) or not targets:
        raise ValueError(f"the dml marker takes a list of targets that is not empty, not {targets!r}")
    return tuple(dict.fromkeys(_parsed("targets", target) for target in targets))


def _parsed(argument: str, value: TargetLike) -> Target:
    """The target that is, or is in, an argument of a marker. Raises ValueError, which names the argument."""
    from dml_tile.directml.targets import Target

    try:
        return Target.parse(value)
    except ValueError as error:
        raise ValueError(f"the dml marker's {argument}: {error}") from None
