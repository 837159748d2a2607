"""The pytest plugin: tests that run once for each simulated target.

dml_target    a fixture: the Target, which is meant wherever none is named while the test runs
dml_device    a fixture: a Device at that target
dml           a marker: narrows the targets of a test, and simulates them also for one that names neither fixture

Targets are chosen with ``--dml-target``, the variable ``DML_TILE_TARGET`` or the ini setting ``dml_target``, the first
of these that names any; without one, 6_4 is simulated. Importing this imports pytest and the standard library only.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from dml_tile.device import Device
    from dml_tile.enums import FeatureLevel
    from dml_tile.targets import Target, TargetLike

_VARIABLE: Final = "DML_TILE_TARGET"
_DEFAULT: Final = "6_4"

_MARKER: Final = (
    "dml(targets=[...], minimum=..., maximum=...): run the test at those of the chosen targets that simulate the same "
    "as one of these, from one feature level up to another; it needs no fixture"
)


@dataclass(frozen=True)
class Chosen:
    """The targets that are chosen for the whole run, and where."""

    source: str
    targets: tuple[Target, ...]


@dataclass(frozen=True)
class Bounds:
    """What one ``dml`` marker narrows the targets to; None: no bound."""

    targets: tuple[Target, ...] | None = None
    minimum: FeatureLevel | None = None
    maximum: FeatureLevel | None = None

    @classmethod
    def read(cls, marker: pytest.Mark) -> Bounds:
        """The bounds that a marker's arguments give. Raises ValueError where they give none."""
        if marker.args:
            raise ValueError(f"the dml marker takes keywords only, not {', '.join(map(repr, marker.args))}")
        unknown = marker.kwargs.keys() - {"targets", "minimum", "maximum"}
        if unknown:
            raise ValueError(f"the dml marker takes targets, minimum and maximum, not {', '.join(sorted(unknown))}")
        parsed = {key: _parsed(key, marker.kwargs[key]) for key in ("minimum", "maximum") if key in marker.kwargs}
        bounds = cls(_targets_in(marker), **{key: target.feature_level for key, target in parsed.items()})
        if bounds.minimum is not None and bounds.maximum is not None and bounds.minimum > bounds.maximum:
            raise ValueError(f"the dml marker's minimum {bounds.minimum} is above its maximum {bounds.maximum}")
        return bounds

    def keep(self, target: Target) -> bool:
        """Whether a target is within the bounds."""
        return (
            (self.targets is None or _simulation_of(target) in map(_simulation_of, self.targets))
            and (self.minimum is None or target.feature_level >= self.minimum)
            and (self.maximum is None or target.feature_level <= self.maximum)
        )


def _targets_in(marker: pytest.Mark) -> tuple[Target, ...] | None:
    if "targets" not in marker.kwargs:
        return None
    targets = marker.kwargs["targets"]
    if not isinstance(targets, list | tuple) or not targets:
        raise ValueError(f"the dml marker takes a list of targets that is not empty, not {targets!r}")
    return tuple(dict.fromkeys(_parsed("targets", target) for target in targets))


def _parsed(argument: str, value: TargetLike) -> Target:
    """The target that is, or is in, an argument of a marker. Raises ValueError, which names the argument."""
    from dml_tile.targets import Target

    try:
        return Target.parse(value)
    except ValueError as error:
        raise ValueError(f"the dml marker's {argument}: {error}") from None


def _simulation_of(target: Target) -> tuple[object, ...]:
    return target.feature_level, target.double_precision, target.typed_uav_loads


_USE_TARGET: Final = pytest.mark.usefixtures("dml_target")
_CHOSEN: Final = pytest.StashKey[Chosen | None]()
_REFUSAL: Final = pytest.StashKey[str]()
"""What is wrong with an item's markers that only the item shows: pytest has no collection error for it."""


def pytest_addoption(parser: pytest.Parser) -> None:
    what = "the targets to simulate: feature levels, DirectML versions, Windows or onnxruntime-directml releases"
    parser.getgroup("dml-tile").addoption(
        "--dml-target",
        action="append",
        default=[],
        metavar="TARGET",
        help=f"{what}; repeatable, or separated by commas. It goes before the variable {_VARIABLE}.",
    )
    parser.addini("dml_target", what, type="linelist", default=[])


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)
    config.stash[_CHOSEN] = _chosen(config)


def _chosen(config: pytest.Config) -> Chosen | None:
    sources: dict[str, Iterable[str]] = {
        "--dml-target": config.getoption("--dml-target"),
        _VARIABLE: [os.environ.get(_VARIABLE, "")],
        "the ini setting dml_target": config.getini("dml_target"),
    }
    for source, texts in sources.items():
        if names := [name for text in texts for name in re.split(r"[\s,]+", text) if name]:
            from dml_tile.targets import Target

            try:
                return Chosen(source, tuple(dict.fromkeys(map(Target.parse, names))))
            except ValueError as error:
                raise pytest.UsageError(f"{source}: {error}") from None
    return None


def pytest_report_header(config: pytest.Config) -> str:
    chosen = config.stash[_CHOSEN]
    if chosen is None:
        return f"dml-tile: simulating {_DEFAULT} (choose others with --dml-target)"
    return f"dml-tile: simulating {', '.join(target.label for target in chosen.targets)} (from {chosen.source})"


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Module | pytest.Class, name: str, obj: object) -> None:
    """Let the marker ask for the fixture: on the module or class that is marked, or on the function."""
    if _lacks_target(collector.own_markers):
        collector.add_marker(_USE_TARGET)
    marks = getattr(obj, "pytestmark", None) if collector.istestfunction(obj, name) else None
    if isinstance(marks, list) and _lacks_target(marks):
        _USE_TARGET(obj)


def _lacks_target(marks: list[pytest.Mark]) -> bool:
    return any(mark.name == "dml" for mark in marks) and _USE_TARGET.mark not in marks


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "dml_target" not in metafunc.fixturenames:
        return
    try:
        if _is_parametrized(metafunc.definition):
            return
        bounds = _bounds(metafunc.definition)
    except ValueError as error:
        raise pytest.Collector.CollectError(f"{metafunc.definition.nodeid}: {error}") from None
    targets = _targets(metafunc.config, bounds)
    kept = [target for target in targets if all(bound.keep(target) for bound in bounds)]
    kept = kept or list(targets[:1])  # to be deselected: pytest would report a test without parameters as skipped
    metafunc.parametrize("dml_target", kept, indirect=True, ids=[target.name for target in kept])


def _is_parametrized(node: pytest.Item) -> bool:
    """Whether a test brings its own targets, as in ``parametrize("dml_target", ["4_1"], indirect=True)``.

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


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    excluded = {item for item in items if item.get_closest_marker("dml") and not _is_within_bounds(item)}
    if excluded:
        config.hook.pytest_deselected(items=[item for item in items if item in excluded])
        items[:] = [item for item in items if item not in excluded]


def _is_within_bounds(item: pytest.Item) -> bool:
    """Whether all markers keep the item's target; those on single parameters are seen here for the first time."""
    from dml_tile.targets import Target

    callspec = getattr(item, "callspec", None)
    try:
        if callspec is None or "dml_target" not in callspec.params:
            raise ValueError(
                "the dml marker is for test functions, as pytest collects them; this runs for no target (in a "
                'TestCase, use `with dml_tile.simulate("4_1"):`)'
            )
        target = Target.parse(callspec.params["dml_target"])
        return all(bound.keep(target) for bound in _bounds(item))
    except ValueError as error:
        item.stash[_REFUSAL] = f"{item.nodeid}: {error}"
        return True


def pytest_runtest_setup(item: pytest.Item) -> None:
    if refusal := item.stash.get(_REFUSAL, None):
        pytest.fail(refusal, pytrace=False)


def _bounds(node: pytest.Item) -> list[Bounds]:
    """The bounds of all markers of a test, the closest first."""
    return list(map(Bounds.read, node.iter_markers("dml")))


def _targets(config: pytest.Config, bounds: Iterable[Bounds]) -> tuple[Target, ...]:
    """The chosen targets; where none are, those of the closest marker that names any, or the default."""
    from dml_tile.simulation import DEFAULT_TARGET

    if chosen := config.stash[_CHOSEN]:
        return chosen.targets
    return next((bound.targets for bound in bounds if bound.targets), (DEFAULT_TARGET,))


@pytest.fixture
def dml_target(request: pytest.FixtureRequest) -> Iterator[Target]:
    """The simulated target, which is meant wherever none is named; a test runs once for each chosen one."""
    from dml_tile.simulation import simulate

    with simulate(request.param if hasattr(request, "param") else _only_target(request.config)) as target:
        yield target


@pytest.fixture
def dml_device(dml_target: Target) -> Device:
    """A device at ``dml_target``; a call that would remove it raises DmlError."""
    from dml_tile.device import Device

    return Device(dml_target, raise_on_removal=True)


def _only_target(config: pytest.Config) -> Target:
    """The target for what pytest does not parametrise: a TestCase, or a fixture that is asked for while tests run."""
    target, *others = _targets(config, ())
    if others:
        pytest.fail(
            f"{1 + len(others)} targets are chosen; a test function runs for each if its arguments name dml_target, or "
            'if it has the dml marker (in a TestCase, use `with dml_tile.simulate("4_1"):`)',
            pytrace=False,
        )
    return target
