"""The pytest plugin, in runs of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import pytest

from dml_tile.directml.targets import DEFAULT_TARGET
from tests.helpers.plugin_runs import passed, run

TESTS = """
    import pytest
    from dml_tile.simulation.target import resolve

    def test_plain():
        pass

    def test_target(dml_target):
        assert resolve(None) is dml_target
"""


@pytest.mark.parametrize(
    ("option", "variable", "ini", "names", "source"),
    [
        ([], None, "", ["6_4"], None),
        ([], " ", "", ["6_4"], None),
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
    pytester: pytest.Pytester,
    option: list[str],
    variable: str | None,
    ini: str,
    names: list[str],
    source: str | None,
) -> None:
    result = run(pytester, TESTS, *(f"--dml-target={target}" for target in option), variable=variable, ini=ini)
    assert passed(result) == ["test_plain", *(f"test_target[{name}]" for name in names)]
    (header,) = [line for line in result.outlines if line.startswith("dml-tile: ")]
    assert header.endswith(f" (from {source})" if source else ": simulating 6_4 (choose others with --dml-target)")


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


def test_the_device_is_at_the_target(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
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
        """,
        "--dml-target=windows-11-21h2,6_4",
    )
    assert passed(result) == [
        "test_device[windows-11-21h2]",
        "test_device[6_4]",
        "test_both[windows-11-21h2]",
        "test_both[6_4]",
    ]


TEST_CASE = """
    import unittest

    import pytest

    class TestCase(unittest.TestCase):
        def test_plain(self): pass

    @pytest.mark.usefixtures("dml_target")
    class TestTarget(unittest.TestCase):
        def test_target(self): pass
"""


def test_a_test_case_runs_at_the_only_target(pytester: pytest.Pytester) -> None:
    assert passed(run(pytester, TEST_CASE)) == ["TestCase::test_plain", "TestTarget::test_target"]
    result = run(pytester, TEST_CASE, "--dml-target=4_0,4_1")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        ["*::TestTarget::test_target: 2 targets are chosen (4_0, 4_1), but pytest cannot run *"]
    )


BRINGS_ITS_OWN = """
    import pytest
    from dml_tile.simulation.target import resolve

    @pytest.mark.parametrize("dml_target", ["4_0", "windows-10-2004"], indirect=True)
    def test_own(dml_target):
        assert dml_target == resolve(None)

    @pytest.mark.dml(minimum="3_1")
    @pytest.mark.parametrize(("other", "dml_target"), [(1, "4_0"), (2, "2_0")], indirect=["dml_target"])
    def test_narrowed(dml_target, other): pass
"""


def test_a_test_may_bring_its_own_targets(pytester: pytest.Pytester) -> None:
    result = run(pytester, BRINGS_ITS_OWN, "--dml-target=6_4")
    assert passed(result) == ["test_own[4_0]", "test_own[windows-10-2004]", "test_narrowed[1-4_0]"]


@pytest.mark.parametrize("arguments", ["", ", indirect=False", ", False", ", indirect=['other']"])
def test_targets_that_would_simulate_nothing_are_a_collection_error(pytester: pytest.Pytester, arguments: str) -> None:
    source = f"""
        import pytest

        @pytest.fixture
        def other(request): return request.param

        @pytest.mark.parametrize("other, dml_target", [(1, "4_0"), (2, "6_4")]{arguments})
        def test_own(other, dml_target): pass
    """
    result = run(pytester, source)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*.py::test_own: parametrize(*) simulates nothing without indirect=[[]*]"])
    assert "pytest_plugin.py" not in result.stdout.str()


@pytest.mark.long
def test_workers_run_each_test_once_for_each_target(pytester: pytest.Pytester) -> None:
    source = TESTS + "\n    @pytest.mark.dml(maximum='4_0')\n    def test_marked(): pass"
    result = run(pytester, source, "-n2", "--dml-target=4_0,windows-11-24h2,6_4", in_a_process=True)
    result.assert_outcomes(passed=5)
    assert sorted(re.findall(r"PASSED .*::(\S+)", result.stdout.str())) == [
        "test_marked[4_0]",
        "test_plain",
        "test_target[4_0]",
        "test_target[6_4]",
        "test_target[windows-11-24h2]",
    ]


def test_the_marker_and_the_fixtures_are_described(pytester: pytest.Pytester) -> None:
    assert (
        "@pytest.mark.dml(targets=[...], minimum=..., maximum=..., expects_removal=False): "
        in run(pytester, "", "--markers").stdout.str()
    )
    fixtures = run(pytester, "", "--fixtures").stdout.str()
    assert "dml_target -- " in fixtures
    assert "dml_device -- " in fixtures
    assert "dml_calls -- " in fixtures


UNUSED = """
import sys
import pytest

assert pytest.main(["-q", "-p", "no:hypothesispytest", "--rootdir=.", "test_unused.py"]) == 0
loaded = {name for name in sys.modules if name.partition(".")[0] in ("numpy", "pydantic", "rich", "typer", "dml_tile")}
print(sorted({".".join(name.split(".")[:2]) for name in loaded}))
"""


def test_an_unused_plugin_imports_nothing_else(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DML_TILE_TARGET", raising=False)
    pytester.makepyfile(test_unused="def test_it(): pass")
    done = subprocess.run([sys.executable, "-c", UNUSED], capture_output=True, check=True, text=True)
    assert done.stdout.splitlines()[-1] == "['dml_tile', 'dml_tile.pytest_plugin', 'dml_tile.simulation']"
