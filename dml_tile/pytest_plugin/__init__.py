"""The pytest plugin: tests that run once for each simulated target.

dml           a marker: run the test at each chosen target, or at some of them; it needs no fixture
dml_target    a fixture: the Target that the test runs at
dml_device    a fixture: a Device at that target
dml_calls     a fixture: the list of calls that were made during the test
dml_simulate  a fixture: a function that simulates a target until the test has ended

Targets are chosen with ``--dml-target``, the variable ``DML_TILE_TARGET`` or the ini setting ``dml_target``, the first
of these that is set. A test's target holds in the whole process while the test runs, and in those started meanwhile.
Importing this imports pytest, the standard library, ``simulation.calls`` and ``simulation.process`` only.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pytest

from dml_tile.pytest_plugin.choice import brings_its_own, marker_targets, targets_for
from dml_tile.pytest_plugin.running import RUN, TEST, PlannedTest, Run
from dml_tile.simulation.process import PROCESS, TARGET_VARIABLE

if TYPE_CHECKING:
    from dml_tile.device.device import Device
    from dml_tile.directml.targets import Target, TargetLike
    from dml_tile.simulation.calls import Calls

_SCOPES: Final = ("function", "class", "module", "package", "session")
_USE_TARGET: Final = pytest.mark.usefixtures("dml_target")


def pytest_addoption(parser: pytest.Parser) -> None:
    PROCESS.is_watched = True  # before any conftest.py is imported
    targets = "the targets to simulate: feature levels, DirectML versions, releases of Windows or of packages"
    every = "run every test at each target, without a marker"
    group = parser.getgroup("dml-tile")
    group.addoption(
        "--dml-target",
        action="append",
        default=[],
        metavar="TARGET",
        help=f"{targets}; repeatable, or separated by commas. It goes before the variable {TARGET_VARIABLE}.",
    )
    group.addoption("--dml-every-test", action="store_true", default=None, help=every)
    parser.addini("dml_target", targets, type="linelist", default=None)
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
    PROCESS.read_outside()
    config.stash[RUN] = Run(config, config.option)


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> Iterator[None]:
    early_config.add_cleanup(partial(setattr, PROCESS, "outside", PROCESS.outside))  # of a run within another
    PROCESS.read_outside()
    with Run(early_config, early_config.known_args_namespace).collecting():
        return (yield)


def pytest_report_header(config: pytest.Config) -> str:
    from dml_tile.simulation.target import current_target

    chosen = config.stash[RUN].chosen or f"{current_target()} (choose others with --dml-target)"
    return f"dml-tile: simulating {chosen}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    terminalreporter.write("".join(f"{line}\n" for line in config.stash[RUN].lines()))


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):  # of xdist, whose controller writes the summary
        run = session.config.stash[RUN]
        session.config.workeroutput["dml_tile"] = dict(run.deselected), dict(run.ran)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    run = node.config.stash[RUN]
    deselected, ran = getattr(node, "workeroutput", {}).get("dml_tile", ({}, {}))
    run.deselected |= deselected  # each worker collects all tests
    run.ran.update(ran)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    with session.config.stash[RUN].collecting():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Iterator[None]:
    report: Any = yield
    hidden, PROCESS.test_errors = PROCESS.test_errors, []
    if hidden and report.passed:
        report.outcome, report.longrepr = "failed", "\n".join(hidden)
    return report  # type: ignore[no-any-return]


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
        kept = targets_for(chosen, marker_targets(test))
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


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    test = item.stash.get(TEST, None)
    errors = test.hidden() if test is not None and call.excinfo is not None else []  # it has failed, and says why
    report: Any = yield
    if test is not None and test.has_errors and not report.passed:
        if hasattr(report, "wasxfail"):
            del report.wasxfail
            report.outcome = "failed"
            report.longrepr = "\n".join(errors) or str(call.excinfo and call.excinfo.value)
        if item.config.pluginmanager.hasplugin("rerunfailures"):
            item.add_marker(pytest.mark.flaky(condition=False), append=False)
    text = report.longreprtext if report.longrepr else ""  # built for each phase of each test otherwise
    if mismatch := re.search(r"ScopeMismatch: .*\bdml_target\b.* with a (\w+) scoped", text):
        report.sections.append(("dml-tile", f"set `dml_scope = {mismatch[1]}` in the ini file"))
    return report  # type: ignore[no-any-return]


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest) -> Iterator[None]:
    run, function = request.config.stash[RUN], fixturedef.func
    is_wide = fixturedef.scope != "function" and fixturedef.argname != "dml_target"
    is_synchronous = not (inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function))
    with run.set_up(fixturedef, request) if is_wide else nullcontext():
        value = yield
        if PROCESS.open and is_synchronous:
            run.tests[0].require_reach(fixturedef)
        return value


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
def dml_simulate() -> Iterator[Callable[[TargetLike], Target]]:
    """A function that simulates a target until the test has ended, and returns it; raises what ``simulate`` raises."""
    from dml_tile.simulation.target import simulate

    with ExitStack() as stack:
        yield lambda target: stack.enter_context(simulate(target))


@pytest.fixture
def dml_calls(request: pytest.FixtureRequest) -> Calls:
    """The calls of dml_tile during the test, in order: checks, creations, bindings, dispatches and tiles."""
    return request.config.stash[RUN].tests[0].calls()
