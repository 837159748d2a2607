"""The plugin's marker: it narrows the targets of a test, or chooses them, and needs no fixture."""

from __future__ import annotations

import pytest

from tests.helpers.plugin_runs import passed, run

NOT_CHOSEN: list[str] = []
CHOSEN = ["--dml-target=windows-10-2004,directml-1.6.0,4_1,6_4"]


@pytest.mark.parametrize(
    ("markers", "chosen", "names"),
    [
        ([""], CHOSEN, ["windows-10-2004", "directml-1.6.0", "4_1", "6_4"]),
        (["minimum='3_1'"], CHOSEN, ["directml-1.6.0", "4_1", "6_4"]),
        (["maximum=0x4100"], CHOSEN, ["windows-10-2004", "directml-1.6.0", "4_1"]),
        (["minimum='windows-11-21h2', maximum='directml-1.7.0'"], CHOSEN, ["directml-1.6.0", "4_1"]),
        (["targets=['windows-11-21h2', '6.4']"], CHOSEN, ["directml-1.6.0", "6_4"]),
        (["targets=('2_0', '4_1')", "minimum='3_1'"], CHOSEN, ["4_1"]),
        (["targets=['2_0', '4_1']", "targets=['6_4', '4_1']"], CHOSEN, ["4_1"]),
        (["minimum='3_1'", "maximum='4_0'"], CHOSEN, ["directml-1.6.0"]),
        ([""], NOT_CHOSEN, ["6_4"]),
        (["targets=['windows-11-21h2', '2_0', '2.0']"], NOT_CHOSEN, ["windows-11-21h2", "2_0"]),
        (["targets=['windows-11-21h2', '2_0']", "minimum='3_1'"], NOT_CHOSEN, ["windows-11-21h2"]),
        (["minimum='3_1'", "targets=['windows-11-21h2', '2_0']"], NOT_CHOSEN, ["windows-11-21h2"]),
    ],
)  # fmt: skip
def test_the_marker_narrows_and_needs_no_fixture(
    pytester: pytest.Pytester, markers: list[str], chosen: list[str], names: list[str]
) -> None:
    source = "\n".join(
        [
            "import pytest, dml_tile",
            "from dml_tile.simulation.target import resolve",
            *(f"@pytest.mark.dml({marker})" for marker in markers),
            "def test_it(request): assert f'[{resolve(None).name}]' in request.node.name",
        ]
    )
    assert passed(run(pytester, source, *chosen)) == [f"test_it[{name}]" for name in names]


def test_a_marker_can_ask_for_an_adapter(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import dml_tile, pytest
        from dml_tile.simulation.target import resolve

        WEAK = dml_tile.Target("5_0", name="weak", typed_uav_loads=False)

        @pytest.mark.dml(targets=["5_0"])
        def test_other(): pass

        @pytest.mark.dml(targets=[WEAK, "5_0"])
        def test_both(): pass

        @pytest.mark.dml(targets=["5_0"])
        class TestNone:
            @pytest.mark.dml(targets=[WEAK])
            def test_none(self): raise AssertionError
        """,
    )
    assert passed(result) == ["test_other[5_0]", "test_both[weak]", "test_both[5_0]"]
    result.assert_outcomes(passed=3, deselected=1)


def test_markers_of_module_class_and_function_all_narrow(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import pytest

        pytestmark = pytest.mark.dml(minimum="3_1")

        def test_module(): pass

        @pytest.mark.dml(maximum="4_1")
        class TestClass:
            def test_class(self): pass

            @pytest.mark.dml(minimum="4_1")
            def test_function(self, dml_target): pass

        class TestHeir(TestClass):
            pytestmark = pytest.mark.dml(maximum="4_0")
        """,
        *CHOSEN,
    )
    assert passed(result) == [
        "test_module[directml-1.6.0]",
        "test_module[4_1]",
        "test_module[6_4]",
        "TestClass::test_class[directml-1.6.0]",
        "TestClass::test_class[4_1]",
        "TestClass::test_function[4_1]",
        "TestHeir::test_class[directml-1.6.0]",
    ]


def test_a_marked_heir_leaves_the_others_as_they_are(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import pytest

        class Base:
            def test_it(self): pass

        @pytest.mark.dml
        class TestMarked(Base): pass

        class TestPlain(Base): pass
        """,
        *CHOSEN,
    )
    assert len(passed(result)) == 5
    assert passed(result)[-1] == "TestPlain::test_it"


def test_the_marker_of_a_parameter_narrows_too(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import pytest

        @pytest.mark.parametrize("kind", ["float", pytest.param("long", marks=pytest.mark.dml(minimum="4_1"))])
        def test_it(kind, dml_target): pass
        """,
        "--dml-target=4_0,4_1",
    )
    assert passed(result) == ["test_it[4_0-float]", "test_it[4_1-float]", "test_it[4_1-long]"]
    result.assert_outcomes(passed=3, deselected=1)


def test_a_test_without_targets_is_deselected(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import pytest

        @pytest.mark.dml(maximum="4_0")
        @pytest.mark.parametrize("number", [1, 2])
        def test_old(number): raise AssertionError

        def test_it(dml_target): pass
        """,
    )
    assert passed(result) == ["test_it[6_4]"]
    result.assert_outcomes(passed=1, deselected=2)


def test_a_marked_test_simulates_for_its_fixtures_and_for_no_other_test(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import pytest
        from dml_tile.simulation.target import resolve

        @pytest.fixture
        def narrow(): return resolve(None).name

        @pytest.fixture(scope="module")
        def wide(): return resolve(None).name

        @pytest.mark.dml(targets=["2_0"])
        def test_it(narrow, wide): assert (narrow, wide) == ("2_0", "2_0")

        def test_after(): assert resolve(None).name == "6_4"
        """,
    )
    assert passed(result) == ["test_it[2_0]", "test_after"]


def test_the_marker_suits_hypothesis(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import pytest
        from hypothesis import given, settings
        from dml_tile import check
        from dml_tile.testing import strategies

        @pytest.mark.dml
        @given(desc=strategies.tiles())
        @settings(max_examples=10, database=None, deadline=None)
        def test_it(desc): assert not check(desc)
        """,
        "--dml-target=1_0,6_4",
    )
    assert passed(result) == ["test_it[1_0]", "test_it[6_4]"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("'4_1'", "the dml marker takes keywords only, not '4_1'"),
        (
            "target=['4_1'], min='4_1'",
            "the dml marker takes targets, minimum, maximum and expects_removal, not min, target",
        ),
        ("targets=['windows-7']", "the dml marker's targets: 'windows-7' is no known target; *did you mean *"),
        ("targets='4_1'", "the dml marker takes a list of targets that is not empty, not '4_1'"),
        ("targets=[]", "the dml marker takes a list of targets that is not empty, not []"),
        ("targets=[None]", "the dml marker's targets: None is no feature level; *"),
        ("minimum='4_9'", "the dml marker's minimum: '4_9' is no known target; *"),
        ("maximum=1.5", "the dml marker's maximum: 1.5 is no feature level; *"),
        ("expects_removal='yes'", "the dml marker's expects_removal is 'yes'; True or False was expected"),
        ("minimum='5_0', maximum='4_0'", "the dml marker's minimum 5_0 is above its maximum 4_0"),
    ],
)
def test_a_wrong_marker_is_a_collection_error_that_names_the_test(
    pytester: pytest.Pytester, arguments: str, message: str
) -> None:
    source = f"import pytest\n@pytest.mark.dml({arguments})\ndef test_it(): pass"
    result = run(pytester, source)
    result.assert_outcomes(errors=1)
    escaped = message.replace("[", "[[]")
    result.stdout.fnmatch_lines([f"*.py::test_it: {escaped}"])
    assert "Traceback" not in result.stdout.str()
    assert "pytest_plugin.py" not in result.stdout.str()


def test_a_wrong_marker_of_a_parameter_is_an_error_that_names_the_test(pytester: pytest.Pytester) -> None:
    result = run(
        pytester,
        """
        import pytest

        @pytest.mark.parametrize("kind", ["float", pytest.param("long", marks=pytest.mark.dml(min="4_1"))])
        def test_it(kind, dml_target): pass
        """,
    )
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["*::test_it[[]6_4-long]: the dml marker takes *, not min"])
    assert "pytest_plugin.py" not in result.stdout.str()


@pytest.mark.parametrize("before", ["@pytest.mark.dml(maximum='4_0')", "pytestmark = pytest.mark.dml(maximum='4_0')"])
def test_a_marked_test_case_runs_at_the_target_that_is_left(pytester: pytest.Pytester, before: str) -> None:
    source = f"""
import unittest, pytest
from dml_tile import current_target

{before}
class TestCase(unittest.TestCase):
    def test_it(self): assert current_target().name == "directml-1.6.0"
"""
    assert passed(run(pytester, source, "--dml-target=directml-1.6.0,4_1")) == ["TestCase::test_it"]
    run(pytester, source, "--dml-target=4_1").assert_outcomes(deselected=1)
