"""The targets of a run: how they are chosen, and which tests run at them."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import pytest

from dml_tile.directml.targets import DEFAULT_TARGET
from tests.helpers.plugin_runs import failed, passed, run, says

TESTS = """
    import unittest
    import pytest
    from dml_tile import current_target

    def test_plain(request):
        chosen = request.config.getoption("--dml-target") or request.config.getini("dml_target")
        assert len(chosen) == 1 or current_target().name == "6_4"

    def test_target(dml_target):
        assert current_target() is dml_target
"""


@pytest.mark.parametrize(
    ("option", "variable", "ini", "names", "source"),
    [
        ([], None, "", ["6_4"], None),
        (["4_0", "6_4"], None, "", ["4_0", "6_4"], "--dml-target"),
        (["4_0,windows-10-2004"], None, "", ["4_0", "windows-10-2004"], "--dml-target"),
        (["4.0", "4_0", "WINDOWS-10-2004,windows-10-2004"], None, "", ["4_0", "windows-10-2004"], "--dml-target"),
        ([], "3_1, 2_0 4_0", "", ["3_1", "2_0", "4_0"], "DML_TILE_TARGET"),
        ([], None, "3_1 2_0", ["3_1", "2_0"], "the ini setting dml_target"),
        ([], None, "\n    3_1\n    directml-1.1.0", ["3_1", "directml-1.1.0"], "the ini setting dml_target"),
        (["5_0"], "4_0", "3_0", ["5_0"], "--dml-target"),
        ([], "4_0", "3_0", ["4_0"], "DML_TILE_TARGET"),
    ],
)
def test_targets_are_chosen_by_option_before_variable_before_ini(
    pytester: pytest.Pytester, option: list[str], variable: str | None, ini: str, names: list[str], source: str | None
) -> None:
    tests = TESTS.replace("len(chosen) == 1", str(len(names) == 1))
    result = run(pytester, tests, *(f"--dml-target={target}" for target in option), variable=variable, ini=ini)
    assert passed(result) == ["test_plain", *(f"test_target[{name}]" for name in names)]
    (header,) = [line for line in result.outlines if line.startswith("dml-tile: simulating ")]
    assert header.endswith(f" (from {source})" if source else " 6_4 (choose others with --dml-target)")


def test_the_header_names_the_targets_with_their_levels(pytester: pytest.Pytester) -> None:
    result = run(pytester, TESTS, "--dml-target=windows-10-2004,windows-11-21h2", "--dml-target=6_4")
    assert (
        "dml-tile: simulating windows-10-2004 (2_0), windows-11-21h2 (4_0), 6_4 (from --dml-target)" in result.outlines
    )


def test_the_header_s_default_is_the_simulation_s() -> None:
    assert DEFAULT_TARGET.label == "6_4"


def test_a_pyproject_can_choose(pytester: pytest.Pytester) -> None:
    file = pytester.makepyprojecttoml("[tool.pytest.ini_options]\ndml_target = ['4_0', 'windows-10-2004']")
    result = run(pytester, TESTS, "-c", str(file))
    assert passed(result) == ["test_plain", "test_target[4_0]", "test_target[windows-10-2004]"]


@pytest.mark.parametrize(
    ("where", "chosen"),
    [
        ("--dml-target", {}),
        ("DML_TILE_TARGET", {"variable": "4_0 windows-11-21h1"}),
        ("the ini setting dml_target", {"ini": "windows-11-21h1"}),
    ],
)
def test_an_unknown_target_is_a_usage_error_that_names_its_place(
    pytester: pytest.Pytester, where: str, chosen: dict[str, Any]
) -> None:
    result = run(pytester, TESTS, *(() if chosen else ["--dml-target=windows-11-21h1"]), **chosen)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    (line,) = [line for line in result.errlines if line]
    assert line.startswith(f"ERROR: {where}: 'windows-11-21h1' is no known target; ")
    assert "did you mean windows-11-21h2" in line


@pytest.mark.parametrize(
    ("option", "variable", "message"),
    [
        ("--dml-target=", None, "--dml-target is empty; name a target, or leave it out"),
        ("--dml-target= , ", "4_0", "--dml-target is empty; *"),
        ("-v", "", "DML_TILE_TARGET is empty; *"),
        ("-v", " ", "DML_TILE_TARGET is empty; *"),
        ("-odml_scope=file", None, "the ini setting dml_scope is 'file'; expected function, class, module, *"),
    ],
)
def test_an_empty_choice_and_an_unknown_scope_are_usage_errors(
    pytester: pytest.Pytester, option: str, variable: str | None, message: str
) -> None:
    result = run(pytester, TESTS, option, variable=variable)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: {message}"])


EVERY_KIND = """
    import unittest
    import pytest
    from dml_tile import current_target

    class TestCase(unittest.TestCase):
        @classmethod
        def setUpClass(cls): cls.name = current_target().name
        def test_it(self): self.assertEqual((self.name, current_target().name), (AT, AT))

    @pytest.fixture(scope="module", autouse=True)
    def wide(): return current_target().name

    def test_plain(wide): assert wide == current_target().name == AT

    @pytest.mark.dml
    def test_marked(wide): assert wide == current_target().name == AT
"""


@pytest.mark.parametrize(
    "chosen", [["--dml-target=windows-10-2004"], {"variable": "windows-10-2004"}, {"ini": "windows-10-2004"}]
)
@pytest.mark.parametrize("order", ["", "-odml_scope=module", "-prandomly"])
def test_one_chosen_target_holds_for_every_test(pytester: pytest.Pytester, chosen: Any, order: str) -> None:
    source = f'    AT = "windows-10-2004"{EVERY_KIND}'
    options, where = (chosen, {}) if isinstance(chosen, list) else ([], chosen)
    plugins = ["randomly"] if order == "-prandomly" else []
    order = "" if plugins else order
    names = passed(run(pytester, source, *options, *filter(None, [order]), plugins=plugins, **where))
    assert sorted(names) == ["TestCase::test_it", "test_marked[windows-10-2004]", "test_plain"]


def test_marked_and_unmarked_tests_agree_about_a_variable_that_a_fixture_sets(pytester: pytest.Pytester) -> None:
    source = """
        import os
        import pytest
        from dml_tile import current_target, simulate

        @pytest.fixture(scope="session", autouse=True)
        def environment(): os.environ["DML_TILE_TARGET"] = "3_1"

        @pytest.mark.dml(targets=["4_0"])
        def test_first(): assert current_target().name == "4_0" and os.environ["DML_TILE_TARGET"] == "3_1"
        def test_plain(): assert current_target().name == os.environ["DML_TILE_TARGET"] == "3_1"
        @pytest.mark.dml(targets=["5_0"])
        def test_last(): assert current_target().name == "5_0"
        def test_after(): assert current_target().name == os.environ.pop("DML_TILE_TARGET") == "3_1"
        def test_without(): assert current_target().name == "6_4"
    """
    assert len(passed(run(pytester, source))) == 5


AT_DEFAULT = "at 6_4, naming no target (dml_every_test = true runs every test at each)"


def test_of_several_targets_tests_that_name_none_run_at_6_4_and_are_counted(pytester: pytest.Pytester) -> None:
    source = '    AT = "6_4"' + EVERY_KIND.replace("wide == ", "")
    for arguments in (["--dml-target=4_0,6_4"], ["-n2", "--dml-target=4_0,6_4"]):
        result = run(pytester, source, "-k", "not marked", *arguments, in_a_process="-n2" in arguments)
        result.assert_outcomes(passed=2)
        says(result, f"dml-tile: 2 tests {AT_DEFAULT}")
    result = run(pytester, source, "-k", "not marked", "--dml-target=4_0,6_4", "--collect-only")
    says(result, f"dml-tile: 2 tests {AT_DEFAULT}")
    for arguments in (["--dml-target=6_4"], ["--dml-target=4_0,6_4", "--dml-every-test"]):
        assert "naming no target" not in run(pytester, source, *arguments).stdout.str()


def test_a_several_s_variable_does_not_keep_a_plain_test_from_asking(pytester: pytest.Pytester) -> None:
    result = run(pytester, TESTS, variable="4_0,5_0")
    assert passed(result) == ["test_plain", "test_target[4_0]", "test_target[5_0]"]


def test_the_device_is_at_the_target(pytester: pytest.Pytester) -> None:
    source = """
        import dml_tile
        import pytest

        def test_device(dml_device):
            desc = dml_tile.TileOperatorDesc.from_input(data_type="INT64", sizes=[2], repeats=[2])
            if dml_device.target.feature_level >= 0x4100:
                dml_device.create_operator(desc)
            else:
                with pytest.raises(dml_tile.DmlError):
                    dml_device.create_operator(desc)

        def test_both(dml_device, dml_target):
            assert dml_device.target is dml_target
    """
    assert passed(run(pytester, source, "--dml-target=windows-11-21h2,6_4")) == [
        "test_device[windows-11-21h2]",
        "test_device[6_4]",
        "test_both[windows-11-21h2]",
        "test_both[6_4]",
    ]


def test_a_test_case_runs_at_the_only_target(pytester: pytest.Pytester) -> None:
    source = """
        import unittest

        import pytest

        class TestCase(unittest.TestCase):
            def test_plain(self): pass

        @pytest.mark.usefixtures("dml_target")
        class TestTarget(unittest.TestCase):
            def test_target(self): pass
    """
    assert passed(run(pytester, source)) == ["TestCase::test_plain", "TestTarget::test_target"]
    result = run(pytester, source, "--dml-target=4_0,4_1")
    result.assert_outcomes(passed=1, errors=1)
    says(result, "*::TestTarget::test_target: 2 targets are chosen (4_0, 4_1), but pytest cannot run *")


BRINGS_ITS_OWN = """
    import pytest
    from dml_tile import Target, current_target

    @pytest.mark.parametrize("dml_target", ["4_0", "windows-10-2004"], indirect=True)
    def test_own(dml_target):
        assert dml_target == current_target()

    @pytest.mark.parametrize("other, dml_target", [(1, "4_0"), (2, "6_4")])
    def test_direct(other, dml_target):
        assert dml_target == current_target().name

    @pytest.mark.dml(minimum="3_1")
    @pytest.mark.parametrize(("other", "dml_target"), [(1, "4_0"), (2, "2_0")], indirect=["dml_target"])
    def test_narrowed(dml_target, other): pass
"""


def test_a_test_may_bring_its_own_targets(pytester: pytest.Pytester) -> None:
    result = run(pytester, BRINGS_ITS_OWN, "--dml-target=6_4")
    names = [name.partition("[")[0] for name in passed(result)]
    assert names == ["test_own", "test_own", "test_direct", "test_direct", "test_narrowed"]
    says(result, "dml-tile: 1 test deselected: dml(minimum='3_1') excludes 2_0")


STRICT = """
    import pytest
    from concurrent.futures import ThreadPoolExecutor
    from dml_tile import Device, Target, TileOperatorDesc, check, current_target, simulate

    TILE = TileOperatorDesc.from_input(data_type="INT8", sizes=[1], repeats=[1])

    def test_asks(): check(TILE)
    def test_swallows():
        try:
            Device()
        except Exception:
            pass
    def test_thread():
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(current_target).exception()
    @pytest.fixture
    def asking(): yield check(TILE)
    def test_fixture(asking): pass
    @pytest.fixture
    def late():
        yield
        try: check(TILE)
        except Exception: pass
    def test_late(late): pass

    def test_named(): check(TILE, "4_0")
    def test_silent(): pass
    def test_simulated():
        with simulate("4_0"): check(TILE)
    def test_device(dml_device): check(TILE)
    def test_dynamic(request):
        if not request.config.getoption("--dml-target"):
            assert request.getfixturevalue("dml_target") == current_target()
    @pytest.mark.dml
    def test_marked(): check(TILE)
    @simulate("6_4")
    def test_decorated(): check(TILE)
"""


def test_a_strict_run_fails_tests_that_ask_and_name_no_target(pytester: pytest.Pytester) -> None:
    result = run(pytester, STRICT, "-odml_strict=true")
    assert failed(result) == ["test_asks", "test_swallows", "test_thread", "test_fixture", "test_late"]
    result.assert_outcomes(failed=3, errors=2, passed=8)
    says(result, "*::test_swallows: the target is asked for in a test that names no target, and dml_strict is set: *")
    result = run(pytester, STRICT, "-odml_strict=true", "--dml-target=4_0,6_4")
    assert len(failed(result)) == 5
    assert "naming no target" not in result.stdout.str()
    answered = STRICT.replace(".exception()", ".result()")
    assert passed(run(pytester, answered, "-odml_strict=true", ini="6_4"))
    assert passed(run(pytester, answered, "-odml_strict=true", variable="6_4"))


@pytest.mark.long
def test_workers_run_each_test_once_for_each_target(pytester: pytest.Pytester) -> None:
    source = TESTS + "\n    @pytest.mark.dml(maximum='4_0')\n    def test_marked(): pass"
    source += "\n    @simulate('2_0')\n    def test_old(): pass"
    source = source.replace("import current_target", "import current_target, simulate")
    result = run(pytester, source, "-n2", "--dml-target=4_0,windows-11-24h2,6_4", in_a_process=True)
    result.assert_outcomes(passed=5)
    assert sorted(re.findall(r"PASSED .*::(\S+)", result.stdout.str())) == [
        "test_marked[4_0]",
        "test_plain",
        "test_target[4_0]",
        "test_target[6_4]",
        "test_target[windows-11-24h2]",
    ]
    says(result, "dml-tile: 1 test deselected: simulate('2_0') excludes 4_0, windows-11-24h2 (6_2), 6_4 (from *")


def test_the_marker_and_the_fixtures_are_described(pytester: pytest.Pytester) -> None:
    assert (
        "@pytest.mark.dml(targets=[...], minimum=..., maximum=..., expects_removal=False): "
        in run(pytester, "", "--markers").stdout.str()
    )
    fixtures = run(pytester, "", "--fixtures").stdout.str()
    assert all(f"{name} -- " in fixtures for name in ("dml_target", "dml_device", "dml_calls"))


UNUSED = """
import sys
import pytest

assert pytest.main(["-q", "-p", "no:hypothesispytest", "-p", "no:randomly", "--rootdir=.", "test_unused.py"]) == 0
loaded = {name for name in sys.modules if name.partition(".")[0] in ("numpy", "pydantic", "rich", "typer", "dml_tile")}
print(sorted({".".join(name.split(".")[:2]) for name in loaded}))
"""


def test_an_unused_plugin_imports_nothing_else(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DML_TILE_TARGET", raising=False)
    pytester.makepyfile(test_unused="def test_it(): pass")
    done = subprocess.run([sys.executable, "-c", UNUSED], capture_output=True, check=True, text=True)
    assert done.stdout.splitlines()[-1] == "['dml_tile', 'dml_tile.pytest_plugin', 'dml_tile.simulation']"
