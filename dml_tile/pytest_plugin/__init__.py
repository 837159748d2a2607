"""The pytest plugin: tests that run once for each simulated target.

dml           a marker: run the test at each chosen target, or at some of them; it needs no fixture
dml_target    a fixture: the Target that the test runs at
dml_device    a fixture: a Device at that target
dml_calls     a fixture: the list of calls that were made during the test

Targets are chosen with ``--dml-target``, the variable ``DML_TILE_TARGET`` or the ini setting ``dml_target``, the first
of these that names any; without one, the default is simulated. A test's target holds in the whole process while the
test runs, fixtures and threads included, and in child processes. Importing this imports pytest, the standard library
and ``dml_tile.simulation.calls`` only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import pytest

from dml_tile.pytest_plugin.choice import VARIABLE, Chosen, bounds_of, brings_its_own, targets_for, within
from dml_tile.pytest_plugin.running import CHOSEN, EVERY_TEST, RUN, Run, own_target
from dml_tile.pytest_plugin.wide_fixtures import SCOPES, scope_advice

if TYPE_CHECKING:
    from dml_tile.device import Device
    from dml_tile.directml.targets import Target
    from dml_tile.simulation.calls import Call

_MARKER: Final = (
    "dml(targets=[...], minimum=..., maximum=..., expects_removal=False): run the test at those of the chosen targets "
    "that simulate the same as one of these, from one feature level up to another; it needs no fixture. A test during "
    "which a device is removed fails unless it expects that, or asks the device for the reason."
)
_USE_TARGET: Final = pytest.mark.usefixtures("dml_target")


def pytest_addoption(parser: pytest.Parser) -> None:
    targets = "the targets to simulate: feature levels, DirectML versions, Windows or onnxruntime-directml releases"
    every = "run every test at each target, without a marker"
    group = parser.getgroup("dml-tile")
    group.addoption(
        "--dml-target",
        action="append",
        default=[],
        metavar="TARGET",
        help=f"{targets}; repeatable, or separated by commas. It goes before the variable {VARIABLE}.",
    )
    group.addoption("--dml-every-test", action="store_true", default=None, help=every)
    parser.addini("dml_target", targets, type="linelist", default=[])
    parser.addini("dml_every_test", every, type="bool", default=False)
    parser.addini("dml_scope", f"the scope of the fixture dml_target: {', '.join(SCOPES)}", default="function")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)
    if config.getini("dml_scope") not in SCOPES:
        expected = ", ".join(SCOPES)
        raise pytest.UsageError(f"the ini setting dml_scope is {config.getini('dml_scope')!r}; expected {expected}")
    config.stash[CHOSEN] = Chosen.read(config)
    config.stash[EVERY_TEST] = config.getoption("--dml-every-test") or config.getini("dml_every_test")
    config.stash[RUN] = Run(config)


def pytest_report_header(config: pytest.Config) -> str:
    chosen = config.stash[CHOSEN]
    if chosen is None:
        from dml_tile.directml.targets import DEFAULT_TARGET

        return f"dml-tile: simulating {DEFAULT_TARGET} (choose others with --dml-target)"
    return f"dml-tile: simulating {', '.join(target.label for target in chosen.targets)} (from {chosen.source})"


# Collection


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Module | pytest.Class, name: str, obj: object) -> None:
    """Let the marker ask for the fixture: on the module or class that is marked, or on the function."""
    every = collector.config.stash[EVERY_TEST] and isinstance(collector, pytest.Module)
    if _lacks_target(collector.own_markers, marked=every):
        collector.add_marker(_USE_TARGET)
    marks = getattr(obj, "pytestmark", None) if collector.istestfunction(obj, name) else None
    if isinstance(marks, list) and _lacks_target(marks):
        _USE_TARGET(obj)


def _lacks_target(marks: list[pytest.Mark], *, marked: bool = False) -> bool:
    return (marked or any(mark.name == "dml" for mark in marks)) and _USE_TARGET.mark not in marks


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "dml_target" not in metafunc.fixturenames:
        return
    try:
        if brings_its_own(metafunc.definition):
            return
        bounds = bounds_of(metafunc.definition)
    except ValueError as error:
        raise pytest.Collector.CollectError(f"{metafunc.definition.nodeid}: {error}") from None
    own = own_target(metafunc.function, metafunc.cls)
    targets = (own,) if own else targets_for(metafunc.config.stash[CHOSEN], bounds)
    kept = within(targets, bounds)
    kept = kept or list(targets[:1])  # to be deselected: pytest would report a test without parameters as skipped
    metafunc.parametrize("dml_target", kept, indirect=True, ids=[_id(target) for target in kept])


def _id(target: Target) -> str:
    """The target's name, with what its adapter lacks if the name is one that ``Target.parse`` reads."""
    return target.spelling if target.spelling.startswith(target.name) else target.name


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    run = config.stash[RUN]
    excluded = {item for item in items if not run.plan(item)}
    if excluded:
        config.hook.pytest_deselected(items=[item for item in items if item in excluded])
        items[:] = [item for item in items if item not in excluded]


# Running


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    with item.config.stash[RUN].test(item):
        return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    run = item.config.stash[RUN]
    run.require_no_refusal()
    if run.target is not None and isinstance(item, pytest.Function) and "dml_target" in item.fixturenames:
        item.funcargs["dml_target"] = (
            run.target
        )  # the marker alone is spared the fixture, which takes a tenth of a test


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    run = item.config.stash[RUN]
    run.require_target()
    try:
        result = yield
    except BaseException:
        run.forget_removals()  # the test has failed, and says why
        raise
    run.require_fixtures()
    run.require_devices(at_end_of_call=True)
    return result


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    run = item.config.stash[RUN]
    try:
        result = yield
    finally:
        left_open = run.end_simulations()
    run.require_none_open(left_open)
    run.require_devices()
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    report: Any = yield
    if report.when == "setup" and report.failed and (advice := scope_advice(report.longreprtext)):
        report.sections.append(("dml-tile", advice))
    return report  # type: ignore[no-any-return]


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> Iterator[None]:
    if fixturedef.scope == "function" or fixturedef.argname == "dml_target":
        return (yield)
    run = request.config.stash[RUN]
    with run.wide_fixtures.setup(fixturedef, request, run.target):
        return (yield)


# Fixtures


def _scope(fixture_name: str, config: pytest.Config) -> Any:
    return config.getini("dml_scope")


@pytest.fixture(scope=_scope)
def dml_target(request: pytest.FixtureRequest) -> Target:
    """The target that the test runs at, which is meant wherever none is named; a test runs once for each chosen one."""
    if hasattr(request, "param"):
        from dml_tile.directml.targets import Target

        return Target.parse(request.param)
    return request.config.stash[RUN].only_target()


@pytest.fixture
def dml_device(dml_target: Target) -> Device:
    """A device at ``dml_target``; a call that would remove it raises DmlError."""
    from dml_tile.device import Device

    return Device(dml_target, raise_on_removal=True)


@pytest.fixture
def dml_calls(request: pytest.FixtureRequest) -> list[Call]:
    """The calls of dml_tile during the test, in order: what was checked, created, bound, dispatched and tiled."""
    return request.config.stash[RUN].calls()
