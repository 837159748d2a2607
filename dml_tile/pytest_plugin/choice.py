"""Choice of targets: those of the run, and what the markers of a test make of them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import pytest

from dml_tile.simulation.process import VARIABLE

if TYPE_CHECKING:
    from dml_tile.directml.targets import Target

KEYWORDS: Final = ("targets", "minimum", "maximum", "expects_removal")
_level: Final = attrgetter("feature_level")


@dataclass(frozen=True)
class Chosen:
    """The targets that are chosen for the whole run, and where."""

    source: str
    targets: tuple[Target, ...]

    def __str__(self) -> str:
        return f"{', '.join(target.label for target in self.targets)} (from {self.source})"


def read_choice(config: pytest.Config) -> Chosen | None:
    """Return the choice by option, else by the variable, else by the ini setting. Raises pytest.UsageError."""
    sources: dict[str, list[str]] = {
        "--dml-target": config.getoption("--dml-target"),
        VARIABLE: [os.environ[VARIABLE]] if VARIABLE in os.environ else [],
        "the ini setting dml_target": config.getini("dml_target"),
    }
    for source, texts in sources.items():
        if texts:
            from dml_tile.simulation.target import targets_in

            try:
                targets = targets_in(source, " ".join(texts))
            except ValueError as error:
                raise pytest.UsageError(str(error)) from None
            if not targets:
                raise pytest.UsageError(f"{source} is empty; name a target, or leave it out")
            return Chosen(source, targets)
    return None


@dataclass(frozen=True)
class Wish:
    """What one ``dml`` marker asks for, or all those of a test together; None: no bound."""

    text: str
    targets: tuple[Target, ...] | None = None
    minimum: Target | None = None
    maximum: Target | None = None

    @classmethod
    def of(cls, marker: pytest.Mark) -> Wish:
        """Return what a marker asks for. Raises ValueError for arguments that make no sense."""
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

    def narrowed(self, other: Wish) -> Wish:
        """Return what both ask for, with the targets as they are spelled here. Raises ValueError if none meets both."""
        texts = [wish.text for wish in (self, other) if wish.targets or wish.minimum or wish.maximum]
        minimum = max(filter(None, (self.minimum, other.minimum)), key=_level, default=None)
        maximum = min(filter(None, (self.maximum, other.maximum)), key=_level, default=None)
        both = Wish(" and ".join(texts), None, minimum, maximum)
        named = self.targets or other.targets
        targets = named and tuple(dict.fromkeys(one for one in named if both.keeps(one) and other.keeps(one)))
        if targets == () or (minimum and maximum and _level(minimum) > _level(maximum)):
            raise ValueError(f"no target can meet {both.text}")
        return replace(both, targets=targets)


def wish_of(item: pytest.Item) -> Wish | None:
    """Return what the markers of a test ask for together; None if it has none.

    The closest targets count, and the levels of all. Raises ValueError for what makes no sense, or none can meet.
    """
    wishes = [*_wishes(item)]
    return reduce(Wish.narrowed, wishes, Wish("")) if wishes else None


def _wishes(item: pytest.Item) -> Iterator[Wish]:
    """Yield what counts of the wishes of a test, the closest first: of farther ones, no targets."""
    function = next(functions_of(item), None)
    inner = getattr(getattr(function, "hypothesis", None), "inner_test", None)
    if hasattr(inner, "__dml_simulation__") and not hasattr(function, "__dml_simulation__"):
        raise ValueError("@given stands outside @simulate, which then holds in its examples only; write it inside")
    of_parameters = [*map(id, getattr(getattr(item, "callspec", None), "marks", ()))]
    are_named = False
    for node in reversed(item.listchain()):
        marks = [mark for mark in reversed(node.own_markers) if mark.name == "dml"]  # a base class's come first
        wishes = [Wish.of(mark) for mark in marks if id(mark) not in of_parameters]
        named = [Wish(wish.text, wish.targets) for wish in wishes if wish.targets and node is item]
        if not all(one.keeps(target) for one in named for other in named for target in other.targets or ()):
            raise ValueError(f"{' and '.join(wish.text for wish in named)} disagree; keep one of them")
        for wish in wishes:
            yield replace(wish, targets=None) if are_named else wish
            are_named = are_named or bool(wish.targets)
    yield from (Wish.of(mark) for mark in item.own_markers if mark.name == "dml" and id(mark) in of_parameters)


def targets_for(chosen: Chosen | None, wish: Wish | None) -> list[Target]:
    """Return those of the chosen targets that a test asks for; without a choice, its own targets, or its maximum."""
    from dml_tile.directml.targets import DEFAULT_TARGET

    if chosen:
        return [target for target in chosen.targets if wish is None or wish.keeps(target)]
    if wish is not None and wish.targets:
        return [*wish.targets]
    return [wish.maximum if wish is not None and wish.maximum else DEFAULT_TARGET]


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
