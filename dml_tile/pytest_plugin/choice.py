"""The targets of a run, and the targets that a test's markers choose from them."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import pytest

from dml_tile.simulation.process import TARGET_VARIABLE

if TYPE_CHECKING:
    from dml_tile.directml.targets import Target

KEYWORDS: Final = ("targets", "minimum", "maximum", "expects_removal")
_SETTING: Final = "dml_target"
_INI: Final = f"the ini setting {_SETTING}"
_level: Final = attrgetter("feature_level")


@dataclass(frozen=True)
class RunTargets:
    """The targets chosen for the whole run, and the option, variable or setting that names them."""

    source: str
    targets: tuple[Target, ...]

    def __str__(self) -> str:
        return f"{', '.join(target.label for target in self.targets)} (from {self.source})"


def read_choice(config: pytest.Config, options: argparse.Namespace) -> RunTargets | None:
    """Return the choice by option, else by the variable, else by the ini setting. Raises pytest.UsageError."""
    variable = os.environ.get(TARGET_VARIABLE)
    sources: dict[str, list[str] | None] = {
        "--dml-target": options.dml_target or None,
        TARGET_VARIABLE: None if variable is None else [variable],
        _INI: config.getini(_SETTING),
    }
    return next((_parsed(source, texts) for source, texts in sources.items() if texts is not None), None)


def read_setting(config: pytest.Config) -> RunTargets | None:
    """Return the targets of the ini setting, chosen or not; None if it is not set. Raises pytest.UsageError."""
    texts = config.getini(_SETTING)
    return None if texts is None else _parsed(_INI, texts)


def _parsed(source: str, texts: list[str]) -> RunTargets:
    from dml_tile.simulation.target import targets_in

    try:
        targets = targets_in(" ".join(texts))
    except ValueError as error:
        raise pytest.UsageError(f"{source}: {error}") from None
    if not targets:
        raise pytest.UsageError(f"{source} is empty; name a target, or leave it out")
    return RunTargets(source, targets)


@dataclass(frozen=True)
class MarkerTargets:
    """The request of one ``dml`` marker, or of all markers of a test; None: no bound."""

    text: str
    targets: tuple[Target, ...] | None = None
    minimum: Target | None = None
    maximum: Target | None = None

    @classmethod
    def of(cls, marker: pytest.Mark) -> MarkerTargets:
        """Return a marker's request. Raises ValueError for arguments that make no sense."""
        from dml_tile.directml.targets import Target

        given = dict(marker.kwargs)
        simulation = given.pop("simulation", None)  # of a decorator
        if marker.args:
            raise ValueError(f"the dml marker takes keywords only, not {', '.join(map(repr, marker.args))}")
        if unknown := given.keys() - set(KEYWORDS):
            expected = f"{', '.join(KEYWORDS[:-1])} and {KEYWORDS[-1]}"
            raise ValueError(f"the dml marker takes {expected}, not {', '.join(sorted(unknown))}")
        if not isinstance(expects := given.pop("expects_removal", False), bool):
            raise ValueError(f"the dml marker's expects_removal is {expects!r}; True or False was expected")
        if "targets" in given and not (isinstance(given["targets"], list | tuple) and given["targets"]):
            raise ValueError(f"the dml marker takes a list of targets that is not empty, not {given['targets']!r}")
        shown = ", ".join(f"{key}={value!r}" for key, value in given.items())
        parsed: dict[str, Any] = {}
        for key, value in given.items():
            try:
                parsed[key] = tuple(map(Target.parse, value)) if key == "targets" else Target.parse(value)
            except ValueError as error:
                raise ValueError(f"the dml marker's {key}: {error}") from None
        return cls(repr(simulation) if simulation else f"dml({shown})", **parsed)

    def keeps(self, target: Target) -> bool:
        """Return True if a target is one of the targets, and within the levels."""
        return (
            (self.targets is None or any(map(target.simulates_as, self.targets)))
            and (self.minimum is None or target.feature_level >= self.minimum.feature_level)
            and (self.maximum is None or target.feature_level <= self.maximum.feature_level)
        )

    def narrowed(self, other: MarkerTargets) -> MarkerTargets:
        """Return what both ask for, with the targets as they are spelled here. Raises ValueError if none meets both."""
        texts = [marked.text for marked in (self, other) if marked.targets or marked.minimum or marked.maximum]
        minimum = max(filter(None, (self.minimum, other.minimum)), key=_level, default=None)
        maximum = min(filter(None, (self.maximum, other.maximum)), key=_level, default=None)
        both = MarkerTargets(" and ".join(texts), None, minimum, maximum)
        named = self.targets or other.targets
        targets = named and tuple(dict.fromkeys(one for one in named if both.keeps(one) and other.keeps(one)))
        if targets == () or (minimum and maximum and _level(minimum) > _level(maximum)):
            raise ValueError(f"no target can meet {both.text}")
        return replace(both, targets=targets)


def require_listed(marked: MarkerTargets, listed: RunTargets) -> None:
    """Raise ValueError for a target of a marker that simulates as none of the listed ones."""
    for target in marked.targets or ():
        if not any(map(target.simulates_as, listed.targets)):
            raise ValueError(f"{marked.text} names {target.name}, which no run chooses: it is not in {listed}")


def marker_targets(item: pytest.Item) -> MarkerTargets | None:
    """Return what the markers of a test ask for together; None if it has none.

    The closest targets count, and the levels of all. Raises ValueError for what makes no sense, or none can meet.
    """
    asked_for = [*_each_marker(item)]
    return reduce(MarkerTargets.narrowed, asked_for, MarkerTargets("")) if asked_for else None


def _each_marker(item: pytest.Item) -> Iterator[MarkerTargets]:
    """Yield what each marker of a test asks for, the closest first; the targets of farther ones do not count."""
    function = next(functions_of(item), None)
    inner = getattr(getattr(function, "hypothesis", None), "inner_test", None)
    if hasattr(inner, "__dml_simulation__") and not hasattr(function, "__dml_simulation__"):
        raise ValueError("@given stands outside @simulate, which then holds in its examples only; write it inside")
    of_parameters = parameter_marks(item)
    numbers = {*map(id, of_parameters)}
    are_named = False
    for node in reversed(item.listchain()):
        marks = [mark for mark in reversed(node.own_markers) if mark.name == "dml" and id(mark) not in numbers]
        asked_for = [MarkerTargets.of(mark) for mark in marks]  # a base class's come last
        own = _marks_of(node, marks)
        named = [
            MarkerTargets(marked.text, marked.targets)
            for mark, marked in zip(marks, asked_for, strict=True)
            if marked.targets and mark in own
        ]
        if not all(one.keeps(target) for one in named for other in named for target in other.targets or ()):
            raise ValueError(f"{' and '.join(marked.text for marked in named)} disagree; keep one of them")
        for marked in asked_for:
            yield replace(marked, targets=None) if are_named else marked
            are_named = are_named or bool(marked.targets)
    yield from (MarkerTargets.of(mark) for mark in of_parameters)


def parameter_marks(item: pytest.Item) -> list[pytest.Mark]:
    """Return the markers that stand on the parameters of a test, by ``pytest.param(…, marks=…)``."""
    return [mark for mark in getattr(getattr(item, "callspec", None), "marks", ()) if mark.name == "dml"]


def _marks_of(node: Any, marks: list[pytest.Mark]) -> list[pytest.Mark]:
    """Return those of a node's markers that do not stand on a base class."""
    if not isinstance(node, pytest.Class):
        return marks
    own: Any = vars(node.obj).get("pytestmark", ())
    own_marks: list[Any] = [getattr(mark, "mark", mark) for mark in (own if isinstance(own, list | tuple) else [own])]
    return own_marks


def targets_for(chosen: RunTargets | None, marked: MarkerTargets | None) -> list[Target]:
    """Return those of the chosen targets that a test asks for; without a choice, its own targets, or its maximum."""
    from dml_tile.directml.targets import DEFAULT_TARGET

    if chosen:
        return [target for target in chosen.targets if marked is None or marked.keeps(target)]
    if marked is not None and marked.targets:
        return [*marked.targets]
    return [marked.maximum if marked is not None and marked.maximum else DEFAULT_TARGET]


def expects_removal(item: pytest.Item) -> bool:
    """Return True if the closest marker with ``expects_removal`` sets it."""
    marks = (mark for node in reversed(item.listchain()) for mark in reversed(node.own_markers) if mark.name == "dml")
    return bool(next((mark.kwargs["expects_removal"] for mark in marks if "expects_removal" in mark.kwargs), False))


def brings_its_own(item: pytest.Item) -> bool:
    """Return True if a test has targets of its own, as by ``parametrize("dml_target", ["4_1"], indirect=True)``."""
    given = (mark.args[0] if mark.args else mark.kwargs["argnames"] for mark in item.iter_markers("parametrize"))
    return any("dml_target" in (re.split(r"[\s,]+", names) if isinstance(names, str) else names) for names in given)


def parameter_of(item: pytest.Item) -> Any:
    """Return the parameter that names the target of a test; None if it has none."""
    callspec = getattr(item, "callspec", None)
    return callspec.params.get("dml_target") if callspec is not None else None


def functions_of(item: pytest.Item) -> Iterator[Any]:
    """Yield the function of a test, not bound to an instance, which would be made for it, and those that it wraps."""
    owner = getattr(item, "cls", None) or getattr(item, "module", None)
    function = getattr(owner, getattr(item, "originalname", None) or item.name, None)
    while function is not None:
        yield function
        function = getattr(function, "__wrapped__", None)
