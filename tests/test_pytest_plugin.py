"""The targets of a run: how they are chosen, and which tests run at them."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import pytest

from dml_tile.directml.targets import Target
from tests.helpers.plugin_runs import OTHERS, failed, passed, run, says, without

TESTS = """
def test_plain(): assert level() == {!r}
def test_target(dml_target, dml_device): assert current_target() is dml_target is dml_device.target
"""


@pytest.mark.parametrize(
    ("option", "variable", "ini", "names", "source"),
    [
        ([], None, "", ["6_4"], None),
        (["4_0,windows-10-2004"], None, "", ["4_0", "windows-10-2004"], "--dml-target"),
        (["4.0", "4_0", "WINDOWS-10-2004,windows-10-2004"], None, "", ["4_0", "windows-10-2004"], "--dml-target"),
        ([], "3_1, 2_0 4_0", "", ["3_1", "2_0", "4_0"], "DML_TILE_TARGET"),
        ([], None, "3_1 2_0", ["3_1", "2_0"], "the ini setting dml_target"),
        ([], None, "\n    3_1\n    directml-1.1.0", ["3_1", "directml-1.1.0"], "the ini setting dml_target"),
        ([], None, "5_2+no-typed-uav-loads 5_2", ["5_2+no-typed-uav-loads", "5_2"], "the ini setting dml_target"),
        (["5_0"], "4_0", "3_0", ["5_0"], "--dml-target"),
        ([], "4_0", "3_0", ["4_0"], "DML_TILE_TARGET"),
    ],
)
def test_targets_are_chosen_by_option_before_variable_before_ini(
    pytester: pytest.Pytester, option: list[str], variable: str | None, ini: str, names: list[str], source: str | None
) -> None:
    tests = TESTS.format(names[0] if len(names) == 1 else "6_4")
    result = run(pytester, tests, *(f"--dml-target={target}" for target in option), variable=variable, ini=ini)
    assert passed(result) == ["test_plain", *(f"test_target[{name}]" for name in names)]
    labels = ", ".join(Target.parse(name).label for name in names)
    choice = f"from {source}" if source else "choose others with --dml-target"
    assert f"dml-tile: simulating {labels} ({choice})" in result.outlines


def test_a_pyproject_can_choose(pytester: pytest.Pytester) -> None:
    file = pytester.makepyprojecttoml("[tool.pytest.ini_options]\ndml_target = ['4_0', 'windows-10-2004']")
    result = run(pytester, TESTS.format("6_4"), "-c", str(file))
    assert passed(result) == ["test_plain", "test_target[4_0]", "test_target[windows-10-2004]"]


UNKNOWN = "'windows-11-21h1' is no known target; *did you mean windows-11-21h2*"


@pytest.mark.parametrize(
    ("option", "variable", "ini", "message"),
    [
        ("--dml-target=windows-11-21h1", None, "", f"--dml-target: {UNKNOWN}"),
        ("-v", "4_0 windows-11-21h1", "", f"DML_TILE_TARGET: {UNKNOWN}"),
        ("-v", None, "windows-11-21h1", f"the ini setting dml_target: {UNKNOWN}"),
        ("--dml-target=", None, "", "--dml-target is empty; name a target, or leave it out"),
        ("--dml-target= , ", "4_0", "", "--dml-target is empty; *"),
        ("-v", "", "", "DML_TILE_TARGET is empty; *"),
        ("-v", " ", "4_0", "DML_TILE_TARGET is empty; *"),
        ("-odml_target=", None, "", "the ini setting dml_target is empty; *"),
        ("-odml_scope=file", None, "", "the ini setting dml_scope is 'file'; expected function, class, module, *"),
    ],
)
def test_a_choice_that_is_unknown_or_empty_is_a_usage_error_that_names_its_place(
    pytester: pytest.Pytester, option: str, variable: str | None, ini: str, message: str
) -> None:
    result = run(pytester, TESTS, option, variable=variable, ini=ini)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert len([*filter(None, result.errlines)]) == 1
    result.stderr.fnmatch_lines([f"ERROR: {message}"])


EVERY_KIND = """
class TestCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls): cls.name = level()
    def test_it(self): self.assertEqual((self.name, level()), (AT, AT))

@pytest.fixture(scope="module", autouse=True)
def wide(): return level()

def test_plain(wide): assert wide == level() == AT

@pytest.mark.dml
def test_marked(wide): assert level() in (AT, "4_0")
"""


@pytest.mark.parametrize(
    ("options", "choice"),
    [
        pytest.param(["--dml-target=windows-10-2004"], {"plugins": ["randomly"]}, marks=pytest.mark.long),
        (["--dml-target=windows-10-2004"], {}),
        (["-odml_scope=module"], {"ini": "windows-10-2004"}),
    ],
)
def test_one_chosen_target_holds_for_every_test(pytester: pytest.Pytester, options: list[str], choice: Any) -> None:
    names = passed(run(pytester, f"AT = 'windows-10-2004'\n{EVERY_KIND}", *options, **choice))
    assert sorted(names) == ["TestCase::test_it", "test_marked[windows-10-2004]", "test_plain"]


def test_of_several_targets_tests_that_name_none_run_at_6_4_and_are_counted(pytester: pytest.Pytester) -> None:
    source, both = f"AT = '6_4'\n{EVERY_KIND}", "--dml-target=4_0,6_4"
    result = run(pytester, source, both, "-k", "not marked")
    result.assert_outcomes(passed=2)
    line = "dml-tile: 2 tests ran at 6_4, since they name no target (dml_every_test = true runs them at each)"
    assert result.outlines.count(line) == 1
    for arguments in (["--dml-target=6_4"], [both, "--dml-every-test"]):
        assert "no target" not in run(pytester, source, *arguments).stdout.str()


LATER = """
@pytest.fixture
def older(monkeypatch): monkeypatch.setenv("DML_TILE_TARGET", "3_0")

def at(): return level(), os.environ["DML_TILE_TARGET"]
ASK = "import dml_tile; print(dml_tile.current_target().name)"

def test_plain(): assert at() == ("6_4", "6_4")
def test_sets(monkeypatch): monkeypatch.setenv("DML_TILE_TARGET", "2_1")
def test_older(older): assert level() == "6_4"
def test_deletes(monkeypatch): monkeypatch.delenv("DML_TILE_TARGET", raising=False)
def test_simulates(dml_simulate):
    dml_simulate("2_0")
    assert dml_simulate("3_0") == current_target()
    assert at() == ("3_0", "3_0")
@pytest.mark.dml
def test_marked():
    done = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True)
    assert at() == (done.stdout.strip(),) * 2
def test_again(): assert at() == ("6_4", "6_4")
"""


@pytest.mark.parametrize("choice", [{"variable": "4_0,6_4"}, {"ini": "4_0 6_4"}])
def test_a_test_that_sets_the_variable_fails_and_names_the_fixture(pytester: pytest.Pytester, choice: Any) -> None:
    result = run(pytester, LATER, **choice)
    assert failed(result) == ["test_sets", "test_older", "test_deletes"]
    says(
        result,
        "*::test_sets: the variable DML_TILE_TARGET is '2_1' in the test, not '6_4'; *the fixture dml_simulate",
        "*::test_older: the variable DML_TILE_TARGET is '3_0' in the test, not '6_4'; *",
        "*::test_deletes: the variable DML_TILE_TARGET is None in the test, not '6_4'; *",
    )
    result.assert_outcomes(passed=5, failed=3)


@pytest.mark.parametrize("ini", ["", "6_4"])
def test_what_a_fixture_undoes_too_late_leaves_no_target_behind(pytester: pytest.Pytester, ini: str) -> None:
    """Monkeypatch, which is set up first, puts back what it met within the fixture's simulation."""
    source = f"""
    @pytest.fixture
    def old(monkeypatch):
        with simulate("2_0"):
            monkeypatch.setenv("DML_TILE_TARGET", "2_0")
            yield
    def test_old(old): assert level() == "2_0"
    def test_next(): assert level() == "6_4" and os.environ.get("DML_TILE_TARGET") == ({ini!r} or None)
    """
    assert len(passed(run(pytester, source, ini=ini))) == 2


def test_a_conftest_may_set_the_variable_before_the_run_is_configured(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("import os\nos.environ['DML_TILE_TARGET'] = '3_1'")
    source = "def test_it(): assert level() == os.environ['DML_TILE_TARGET'] == '3_1'"
    assert passed(run(pytester, source)) == ["test_it"]


def test_a_test_may_bring_its_own_targets(pytester: pytest.Pytester) -> None:
    source = """
    @pytest.mark.parametrize("dml_target", ["4_0", "windows-10-2004"], indirect=True)
    def test_own(dml_target): assert dml_target == current_target()

    @pytest.mark.parametrize("other, dml_target", [(1, "4_0"), (2, "6_4")])
    def test_direct(other, dml_target): assert dml_target == level()

    @pytest.mark.dml(minimum="3_1")
    @pytest.mark.parametrize(("other", "dml_target"), [(1, "4_0"), (2, "2_0")], indirect=["dml_target"])
    def test_narrowed(dml_target, other): pass
    """
    result = run(pytester, source, "--dml-target=6_4")
    names = [name.partition("[")[0] for name in passed(result)]
    assert names == ["test_own", "test_own", "test_direct", "test_direct", "test_narrowed"]
    says(result, "dml-tile: 1 test deselected: dml(minimum='3_1') excludes 2_0")


STRICT = """
def test_asks(): check(LONGS)
def test_swallows():
    try:
        Device()
    except Exception:
        pass
def test_thread():
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(current_target).exception()
@pytest.fixture
def asking(): yield check(LONGS)
def test_fixture(asking): pass
@pytest.fixture
def late():
    yield
    try: check(LONGS)
    except Exception: pass
def test_late(late): pass

def test_named(): check(LONGS, "4_0")
def test_silent(): pass
def test_simulated():
    with simulate("4_0"): check(LONGS)
def test_device(dml_device): check(LONGS)
def test_dynamic(request):
    if not request.config.getoption("--dml-target"):
        assert request.getfixturevalue("dml_target") == current_target()
@pytest.mark.dml
def test_marked(): check(LONGS)
@simulate("6_4")
def test_decorated(): check(LONGS)
"""


def test_a_strict_run_fails_tests_that_ask_and_name_no_target(pytester: pytest.Pytester) -> None:
    result = run(pytester, STRICT, "-odml_strict=true")
    assert failed(result) == ["test_asks", "test_swallows", "test_thread", "test_fixture", "test_late"]
    result.assert_outcomes(failed=3, errors=2, passed=8)
    says(result, "*::test_swallows: the target is asked for in a test that names no target, and dml_strict is set: *")
    result = run(pytester, STRICT, "-odml_strict=true", "--dml-target=4_0,6_4")
    assert len(failed(result)) == 5
    assert "since they name no target" not in result.stdout.str()
    answered = STRICT.replace(".exception()", ".result()")
    assert passed(run(pytester, answered, "-odml_strict=true", ini="6_4"))
    assert passed(run(pytester, answered, "-odml_strict=true", variable="6_4"))


MARKED = """
@pytest.mark.dml(targets=["4_1"])
def test_listed(): level()
@pytest.mark.dml(targets=["windows-11-21h2"])
def test_same_as_listed(): level()
@pytest.mark.dml(targets=["5_0"])
def test_not_listed(): level()
@pytest.mark.dml(minimum="4_1")
def test_bound(): level()
@simulate("5_0")
def test_decorated(): level()
@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.dml(targets=["5_0"]))])
def test_parameter(x): level()
"""


def test_a_strict_run_fails_tests_whose_targets_the_ini_setting_lacks(pytester: pytest.Pytester) -> None:
    strict, ini = "-odml_strict=true", "4_0 4_1"
    result = run(pytester, MARKED, strict, ini=ini)
    assert failed(result) == ["test_not_listed[4_0]", "test_decorated[4_0]", "test_parameter[1]"]
    says(result, "*::test_not_listed*: dml(targets=['5_0']) names 5_0, which no run chooses: it is not in 4_0, 4_1 (*")
    for variable, option in (("4_1", "-odml_strict=true"), (None, "--dml-target=4_1")):
        others = run(pytester, MARKED, strict, option, ini=ini, variable=variable)
        assert [name.replace("4_1", "4_0") for name in failed(others)] == failed(result)
        says(others, "dml-tile: 1 test deselected: dml(targets=['windows-11-21h2']) excludes 4_1 *")
    assert not failed(run(pytester, MARKED, ini=ini))
    assert not failed(run(pytester, MARKED, strict))


@pytest.mark.long
def test_workers_run_each_test_once_for_each_target(pytester: pytest.Pytester) -> None:
    source = f"""{TESTS.format("6_4")}
@pytest.mark.dml(maximum='4_0')
def test_marked(): pass
@simulate('2_0')
def test_old(): pass
"""
    result = run(pytester, source, "-n2", "--dml-target=4_0,windows-11-24h2,6_4", in_a_process=True)
    result.assert_outcomes(passed=5)
    names = ["test_marked[4_0]", "test_plain", *(f"test_target[{name}]" for name in ("4_0", "6_4", "windows-11-24h2"))]
    assert sorted(re.findall(r"PASSED .*::(\S+)", result.stdout.str())) == names
    says(
        result,
        "dml-tile: 1 test ran at 6_4, since it names no target (dml_every_test = true runs it at each)",
        "dml-tile: 1 test deselected: simulate('2_0') excludes 4_0, windows-11-24h2 (6_2), 6_4 (from --dml-target)",
    )


def test_the_marker_and_the_fixtures_are_described(pytester: pytest.Pytester) -> None:
    marker = "@pytest.mark.dml(targets=[...], minimum=..., maximum=..., expects_removal=False): "
    assert marker in run(pytester, "", "--markers").stdout.str()
    fixtures = run(pytester, "", "--fixtures").stdout.str()
    assert all(f"{name} -- " in fixtures for name in ("dml_target", "dml_device", "dml_calls"))


UNUSED = """
import sys
import pytest

assert pytest.main([*sys.argv[1:], "-q", "--rootdir=.", "test_unused.py"]) == 0
loaded = {name for name in sys.modules if name.partition(".")[0] in ("numpy", "pydantic", "rich", "typer", "dml_tile")}
print(sorted({".".join(name.split(".")[:2]) for name in loaded}))
"""


def test_an_unused_plugin_imports_nothing_else(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DML_TILE_TARGET", raising=False)
    pytester.makepyfile(test_unused="def test_it(): pass")
    command = [sys.executable, "-c", UNUSED, *without("hypothesispytest", *OTHERS)]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    assert done.stdout.splitlines()[-1] == "['dml_tile', 'dml_tile.pytest_plugin', 'dml_tile.simulation']"
