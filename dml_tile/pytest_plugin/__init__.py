"""The pytest plugin: tests that run once for each simulated target.

dml           a marker: run the test at each chosen target, or at some of them; it needs no fixture
dml_target    a fixture: the Target that the test runs at
dml_device    a fixture: a Device at that target
dml_calls     a fixture: the list of calls that were made during the test

Targets are chosen with ``--dml-target``, the variable ``DML_TILE_TARGET`` or the ini setting ``dml_target``, the first
of these that is set. A test's target holds in the whole process while the test runs, and in child processes. Importing
this imports pytest, the standard library, ``simulation.calls`` and ``simulation.process`` only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from dml_tile.pytest_plugin.choice import brings_its_own, targets_for, wish_of
from dml_tile.pytest_plugin.running import RUN, TEST, PlannedTest, Run
from dml_tile.simulation.process import PROCESS, VARIABLE

if TYPE_CHECKING:
    from dml_tile.device.device import Device
    from dml_tile.directml.targets import Target
    from dml_tile.simulation.calls import Call

_SCOPES: Final = ("function", "class", "module", "package", "session")
_USE_TARGET: Final = pytest.mark.usefixtures("dml_target")


def pytest_addoption(parser: pytest.Parser) -> None:
    PROCESS.is_watched = True  # before any conftest.py is imported
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
    parser.addini("dml_strict", "fail tests that ask for the target and name none", type="bool", default=False)
    parser.addini("dml_scope", f"the scope of the fixture dml_target: {', '.join(_SCOPES)}", default="function")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "dml(targets=[...], minimum=..., maximum=..., expects_removal=False): run the test at those of the chosen "
        "targets that simulate the same as one of these, from one feature level up to another; it needs no fixture. A "
        "test during which a device is removed fails unless it expects that, or asks the device for the reason.",
    )
    if (scope := config.getini("dml_scope")) not in _SCOPES:
        raise pytest.UsageError(f"the ini setting dml_scope is {scope!r}; expected {', '.join(_SCOPES)}")
    config.stash[RUN] = Run(config)
    PROCESS.publish()


def pytest_report_header(config: pytest.Config) -> str:
    from dml_tile.directml.targets import DEFAULT_TARGET

    return f"dml-tile: simulating {config.stash[RUN].chosen or f'{DEFAULT_TARGET} (choose others with --dml-target)'}"


def pytest_report_collectionfinish(config: pytest.Config) -> list[str]:
    return [*config.stash[RUN].lines("run")]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    terminalreporter.write("".join(f"{line}\n" for line in config.stash[RUN].lines("ran")))


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):  # of xdist, whose controller writes the summary
        session.config.workeroutput["dml_tile"] = dict(session.config.stash[RUN].notes)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    node.config.stash[RUN].notes |= getattr(node, "workeroutput", {}).get("dml_tile", {})  # each collects all tests


def pytest_pycollect_makemodule(module_path: Path) -> None:
    """Make ``st.from_type(TileOperatorDesc)`` work, which ``@given`` may resolve while its module is imported."""
    if all(name in module_path.read_bytes() for name in (b"hypothesis", b"dml_tile")):
        with suppress(ImportError):
            import_module("dml_tile.testing.strategies")


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makeitem(collector: pytest.Module | pytest.Class, name: str, obj: Any) -> None:
    """Let the marker ask for the fixture: on the module or class that is marked, or on the function."""
    every = collector.config.stash[RUN].every_test and isinstance(collector, pytest.Module)
    if _lacks_target(collector.own_markers, marked=every):
        collector.add_marker(_USE_TARGET)
    if not (collector.istestfunction(obj, name) and isinstance(getattr(obj, "pytestmark", []), list)):
        return
    if hasattr(obj, "__dml_simulation__") and not name.startswith("test"):  # python_functions names it a test
        obj.__dml_simulation__.mark(obj)
    if _lacks_target(getattr(obj, "pytestmark", [])):
        _USE_TARGET(obj)


def _lacks_target(marks: list[pytest.Mark], *, marked: bool = False) -> bool:
    return (marked or any(mark.name == "dml" for mark in marks)) and _USE_TARGET.mark not in marks


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    test, chosen = metafunc.definition, metafunc.config.stash[RUN].chosen
    if "dml_target" not in metafunc.fixturenames or brings_its_own(test):
        return
    try:
        kept = targets_for(chosen, wish_of(test))
    except ValueError as error:
        raise pytest.Collector.CollectError(f"{test.nodeid}: {error}") from None
    kept = kept or targets_for(chosen, None)[:1]  # to be deselected: pytest would skip a test without parameters
    ids = [target.spelling if target.spelling.startswith(target.name) else target.name for target in kept]
    metafunc.parametrize("dml_target", kept, indirect=True, ids=ids)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    run = config.stash[RUN]
    for item in items:
        item.stash[TEST] = PlannedTest(item, run)
    if excluded := [item for item in items if not item.stash[TEST].is_selected]:
        config.hook.pytest_deselected(items=excluded)
        items[:] = [item for item in items if item.stash[TEST].is_selected]


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    (item.stash.get(TEST, None) or PlannedTest(item, item.config.stash[RUN])).begin()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    (test,) = item.config.stash[RUN].tests
    test.require_target()
    result = yield
    test.require_nothing_wrong()
    return result


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Iterator[None]:
    tests = [*item.config.stash[RUN].tests]  # none, if another plugin has skipped it
    try:
        result = yield
    finally:
        wrong = [(test, test.end()) for test in tests]
    for test, reasons in wrong:
        test.fail(*reasons)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    for test in item.config.stash[RUN].tests if call.excinfo is not None else ():
        test.hidden()  # it has failed, and says why
    report: Any = yield
    mismatch = re.search(r"ScopeMismatch: .*\bdml_target\b.* with a (\w+) scoped", report.longreprtext)
    if mismatch:
        report.sections.append(("dml-tile", f"set `dml_scope = {mismatch[1]}` in the ini file"))
    return report  # type: ignore[no-any-return]


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> Iterator[None]:
    if fixturedef.scope == "function" or fixturedef.argname == "dml_target":
        return (yield)
    with request.config.stash[RUN].set_up(fixturedef, request):
        return (yield)


@pytest.fixture(scope=lambda fixture_name, config: config.getini("dml_scope"))
def dml_target(request: pytest.FixtureRequest) -> Target:
    """The target that the test runs at, which is meant wherever none is named; a test runs once for each chosen one."""
    if hasattr(request, "param"):
        from dml_tile.directml.targets import Target

        return Target.parse(request.param)
    return request.config.stash[RUN].tests[0].late_target()


@pytest.fixture
def dml_device(dml_target: Target) -> Device:
    """A device at ``dml_target``; a call that would remove it raises DmlError."""
    from dml_tile.device.device import Device

    return Device(dml_target, raise_on_removal=True)


@pytest.fixture
def dml_calls(request: pytest.FixtureRequest) -> list[Call]:
    """The calls of dml_tile during the test, in order: what was checked, created, bound, dispatched and tiled."""
    return request.config.stash[RUN].tests[0].calls()
