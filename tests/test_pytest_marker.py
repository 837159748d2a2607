"""Markers and decorators of tests: they narrow the targets of the run, or choose them, and need no fixture."""

from __future__ import annotations

import pytest

from tests.helpers.plugin_runs import passed, run, says

NOT_CHOSEN: list[str] = []
CHOSEN = ["--dml-target=windows-10-2004,directml-1.6.0,4_1,6_4"]

HEAD = """
import unittest
import pytest
from hypothesis import given, settings, strategies as st
from dml_tile import Target, current_target, simulate

def is_right(request): return f"[{current_target().name}]" in request.node.name
"""


@pytest.mark.parametrize(
    ("marker", "chosen", "names"),
    [
        ("", CHOSEN, ["windows-10-2004", "directml-1.6.0", "4_1", "6_4"]),
        ("minimum='3_1'", CHOSEN, ["directml-1.6.0", "4_1", "6_4"]),
        ("maximum=0x4100", CHOSEN, ["windows-10-2004", "directml-1.6.0", "4_1"]),
        ("minimum='windows-11-21h2', maximum='directml-1.7.0'", CHOSEN, ["directml-1.6.0", "4_1"]),
        ("targets=['windows-11-21h2', '6.4']", CHOSEN, ["directml-1.6.0", "6_4"]),
        ("", NOT_CHOSEN, ["6_4"]),
        ("minimum='3_1'", NOT_CHOSEN, ["6_4"]),
        ("maximum='windows-11-21h2'", NOT_CHOSEN, ["windows-11-21h2"]),
        ("minimum='3_1', maximum='5_2+no-typed-uav-loads'", NOT_CHOSEN, ["5_2+no-typed-uav-loads"]),
        ("targets=['windows-11-21h2', '2_0', '2.0']", NOT_CHOSEN, ["windows-11-21h2", "2_0"]),
        ("targets=['windows-11-21h2', '2_0'], minimum='3_1'", NOT_CHOSEN, ["windows-11-21h2"]),
    ],
)
def test_the_marker_narrows_and_needs_no_fixture(
    pytester: pytest.Pytester, marker: str, chosen: list[str], names: list[str]
) -> None:
    source = f"{HEAD}\n@pytest.mark.dml({marker})\ndef test_it(request): assert is_right(request)"
    assert passed(run(pytester, source, *chosen)) == [f"test_it[{name}]" for name in names]


MODULE = "pytestmark = pytest.mark.dml(targets=['2_0'], maximum='5_2')\n"
CLOSEST = {
    "the module": (MODULE + "def test_it(request): assert is_right(request)", ["test_it[2_0]"]),
    "a function": (
        MODULE + "@pytest.mark.dml(targets=['4_0'])\ndef test_it(request): assert is_right(request)",
        ["test_it[4_0]"],
    ),
    "a decorated function": (
        MODULE + "@simulate('4_0')\ndef test_it(request): assert is_right(request)",
        ["test_it[4_0]"],
    ),
    "a decorator and a marker that agree": (
        "@simulate('4_0')\n@pytest.mark.dml(targets=['windows-11-21h2'])\ndef test_it(): pass",
        ["test_it[4_0]"],
    ),
    "a decorator and bounds": (
        "@pytest.mark.dml(minimum='3_1')\n@simulate('4_0')\ndef test_it(request): assert is_right(request)",
        ["test_it[4_0]"],
    ),
    "a function of another name": (
        "@simulate('4_0')\ndef check_it(request): assert is_right(request)",
        ["check_it[4_0]"],
    ),
    "classes": (
        MODULE
        + """
@simulate("4_0")
class TestOuter:
    def test_it(self, request): assert is_right(request)
    @pytest.mark.dml(targets=["3_0"])
    def test_own(self, request): assert is_right(request)
    @simulate("3_1")
    async def test_task(self, request): pass
    @staticmethod
    def test_static(request): assert is_right(request)

    class TestInner:
        def test_it(self, request): assert is_right(request)
    @pytest.mark.dml(targets=["4_1"])
    class TestMarked:
        def test_it(self, request): assert is_right(request)

class TestHeir(TestOuter):
    def test_more(self, request): assert is_right(request)
@simulate("5_0")
class TestDecorated(TestOuter): pass
@pytest.mark.dml(targets=["5_1"])
class TestMarked(TestOuter): pass
class TestBoth(TestMarked, TestDecorated): pass
""",
        [
            f"{cls}::{test}"
            for cls, target in {
                "TestOuter": "4_0",
                "TestHeir": "4_0",
                "TestDecorated": "5_0",
                "TestMarked": "5_1",
                "TestBoth": "5_1",
            }.items()
            for test in [
                f"test_it[{target}]",
                "test_own[3_0]",
                f"test_static[{target}]",
                f"TestInner::test_it[{target}]",
                "TestMarked::test_it[4_1]",
                *([f"test_more[{target}]"] if cls == "TestHeir" else []),
            ]
        ],
    ),
    "TestCases": (
        MODULE
        + """
@simulate("4_0")
class Base(unittest.TestCase):
    TARGET = "4_0"
    def setUp(self): self.level = current_target().name
    def test_it(self): assert self.level == current_target().name == self.TARGET
class Heir(Base): pass
@simulate("5_0")
class Own(Base): TARGET = "5_0"
@pytest.mark.dml(targets=["5_1"])
class Marked(Base): TARGET = "5_1"
class Method(Base):
    @simulate("3_1")
    def test_it(self): assert self.level == current_target().name == "3_1"
class Plain(unittest.TestCase):
    def test_it(self): assert current_target().name == "2_0"
""",
        [f"{cls}::test_it" for cls in ("Base", "Heir", "Own", "Marked", "Method", "Plain")],
    ),
}


@pytest.mark.parametrize("where", CLOSEST)
def test_the_closest_targets_count_and_all_bounds_narrow(pytester: pytest.Pytester, where: str) -> None:
    source, names = CLOSEST[where]
    source = source.replace("async def test_task(self, request): pass", "def helper(self): pass")
    result = run(pytester, HEAD + source, "-opython_functions=test check", "-opython_classes=Test")
    assert sorted(passed(result)) == sorted(names)


def test_a_marked_heir_leaves_the_others_as_they_are(pytester: pytest.Pytester) -> None:
    source = """
        import pytest

        class Base:
            def test_it(self): pass

        @pytest.mark.dml
        class TestMarked(Base): pass

        class TestPlain(Base): pass
    """
    result = run(pytester, source, *CHOSEN)
    assert len(passed(result)) == 5
    assert passed(result)[-1] == "TestPlain::test_it"


def test_a_marker_can_ask_for_an_adapter(pytester: pytest.Pytester) -> None:
    source = """
WEAK = Target("5_0", name="weak", typed_uav_loads=False)

@pytest.mark.dml(targets=["5_0"])
def test_other(): pass

@pytest.mark.dml(targets=[WEAK, "5_0"])
def test_both(): pass

@pytest.mark.dml(targets=["5_0"])
class TestIt:
    @pytest.mark.dml(targets=[WEAK])
    def test_weak(self, request): assert is_right(request)
"""
    names = ["test_other[5_0]", "test_both[weak]", "test_both[5_0]", "TestIt::test_weak[weak]"]
    assert passed(run(pytester, HEAD + source)) == names


@pytest.mark.parametrize(
    ("source", "chosen", "kept", "reason"),
    [
        (
            "@pytest.mark.dml(maximum='4_0')\n@pytest.mark.parametrize('number', [1, 2])\ndef test_it(number): pass",
            "4_1,6_4",
            [],
            "2 tests deselected: dml(maximum='4_0') excludes 4_1, 6_4 (from --dml-target)",
        ),
        (
            "@simulate('4_0')\ndef test_it(): pass",
            "6_4",
            [],
            "1 test deselected: simulate('4_0') excludes 6_4 (from --dml-target)",
        ),
        (
            "@simulate('4_0')\nclass TestIt(unittest.TestCase):\n    def test_it(self): pass",
            "6_4",
            [],
            "1 test deselected: simulate('4_0') excludes 6_4 (from --dml-target)",
        ),
        (
            """
KINDS = ["float", pytest.param("long", marks=pytest.mark.dml(minimum="4_1"))]
@pytest.mark.parametrize("kind", KINDS)
def test_it(kind, dml_target): pass
""",
            "4_0,4_1",
            ["test_it[4_0-float]", "test_it[4_1-float]", "test_it[4_1-long]"],
            "1 test deselected: dml(minimum='4_1') excludes 4_0, 4_1 (from --dml-target)",
        ),
    ],
)
def test_what_the_chosen_targets_exclude_is_deselected_with_its_reason(
    pytester: pytest.Pytester, source: str, chosen: str, kept: list[str], reason: str
) -> None:
    result = run(pytester, HEAD + source + "\ndef test_plain(): pass\n", f"--dml-target={chosen}")
    assert passed(result) == [*kept, "test_plain"]
    says(result, f"dml-tile: {reason}")


def test_a_decorated_test_is_selected_like_a_marked_one(pytester: pytest.Pytester) -> None:
    source = """
@simulate("4_0")
def test_function(request): assert is_right(request)

@simulate("4_0")
class TestCase(unittest.TestCase):
    def test_it(self): self.assertEqual(current_target().name, "directml-1.6.0")

def test_after(): assert current_target().name == "6_4"
"""
    names = ["test_function[directml-1.6.0]", "TestCase::test_it", "test_after"]
    assert passed(run(pytester, HEAD + source, *CHOSEN)) == names
    every = passed(run(pytester, HEAD + source.replace('== "6_4"', ""), *CHOSEN, "--dml-every-test"))
    assert every == names[:2] + [f"test_after[{name}]" for name in CHOSEN[0].partition("=")[2].split(",")]


def test_the_marker_suits_hypothesis(pytester: pytest.Pytester) -> None:
    source = """
        import pytest
        from hypothesis import given, settings, strategies as st
        from dml_tile import TileOperatorDesc, check, simulate
        from dml_tile.testing import strategies

        QUICK = settings(max_examples=10, database=None, deadline=None)

        @pytest.mark.dml
        @given(desc=strategies.tiles())
        @QUICK
        def test_it(desc): assert not check(desc)

        @simulate("6_4")
        @given(desc=st.from_type(TileOperatorDesc))
        @QUICK
        def test_type(desc): assert not check(desc)
    """
    assert passed(run(pytester, source, "--dml-target=1_0,6_4")) == ["test_it[1_0]", "test_it[6_4]", "test_type[6_4]"]


WRONG = {
    "@pytest.mark.dml('4_1')": "the dml marker takes keywords only, not '4_1'",
    "@pytest.mark.dml(target=['4_1'], min='4_1')": (
        "the dml marker takes targets, minimum, maximum and expects_removal, not min, target"
    ),
    "@pytest.mark.dml(targets=['windows-7'])": (
        "the dml marker's targets: 'windows-7' is no known target; *did you mean *"
    ),
    "@pytest.mark.dml(targets='4_1')": "the dml marker takes a list of targets that is not empty, not '4_1'",
    "@pytest.mark.dml(targets=[])": "the dml marker takes a list of targets that is not empty, not []",
    "@pytest.mark.dml(targets=[None])": "the dml marker's targets: None is no feature level; *",
    "@pytest.mark.dml(minimum='4_9')": "the dml marker's minimum: '4_9' is no known target; *",
    "@pytest.mark.dml(maximum=1.5)": "the dml marker's maximum: 1.5 is no feature level; *",
    "@pytest.mark.dml(expects_removal='yes')": (
        "the dml marker's expects_removal is 'yes'; True or False was expected"
    ),
    "@pytest.mark.dml(minimum='5_0', maximum='4_0')": "no target can meet dml(minimum='5_0', maximum='4_0')",
    "@pytest.mark.dml(minimum='5_0')\n@pytest.mark.dml(maximum='4_0')": (
        "no target can meet dml(minimum='5_0') and dml(maximum='4_0')"
    ),
    "@pytest.mark.dml(minimum='5_0')\n@simulate('4_0')": "no target can meet dml(minimum='5_0') and simulate('4_0')",
    "@pytest.mark.dml(targets=['4_0', '4_1'], minimum='5_0')": "no target can meet dml(targets=['4_0', '4_1'], *",
    "@pytest.mark.dml(targets=['5_0'])\n@simulate('4_0')": (
        "dml(targets=['5_0']) and simulate('4_0') disagree; keep one of them"
    ),
    "@given(st.none())\n@simulate('4_0')": "@given stands outside @simulate, *",
}


@pytest.mark.parametrize("decorators", WRONG)
def test_what_cannot_hold_is_a_collection_error_that_names_the_test(pytester: pytest.Pytester, decorators: str) -> None:
    parameter = "_" if "given" in decorators else ""
    result = run(pytester, f"{HEAD}\n{decorators}\ndef test_it({parameter}): pass")
    result.assert_outcomes(errors=1)
    says(result, f"*.py::test_it: {WRONG[decorators]}")
    assert "Traceback" not in result.stdout.str()
    assert "pytest_plugin" not in result.stdout.str()


def test_bounds_that_no_target_can_meet_name_both(pytester: pytest.Pytester) -> None:
    source = """
class TestBase:
    @pytest.mark.dml(minimum="4_1")
    def test_it(self): pass

@pytest.mark.dml(maximum="4_0")
class TestHeir(TestBase): pass
"""
    result = run(pytester, HEAD + source)
    result.assert_outcomes(errors=1)
    says(result, "*::TestHeir::test_it: no target can meet dml(minimum='4_1') and dml(maximum='4_0')")


@pytest.mark.parametrize(
    ("mark", "reason"),
    [
        ("min='4_1'", "the dml marker takes *, not min"),
        ("targets=['4_0']", "no target can meet dml(targets=['6_4']) and dml(targets=['4_0'])"),
    ],
)
def test_a_wrong_marker_of_a_parameter_is_an_error_that_names_the_test(
    pytester: pytest.Pytester, mark: str, reason: str
) -> None:
    source = f"""
@pytest.mark.dml(targets=["6_4"])
@pytest.mark.parametrize("kind", ["float", pytest.param("long", marks=pytest.mark.dml({mark}))])
def test_it(kind): pass
"""
    result = run(pytester, HEAD + source)
    result.assert_outcomes(passed=1, errors=1)
    says(result, f"*::test_it[6_4-long]: {reason}")
    assert "pytest_plugin" not in result.stdout.str()


@pytest.mark.parametrize("before", ["@pytest.mark.dml(maximum='4_0')", "pytestmark = pytest.mark.dml(maximum='4_0')"])
def test_a_marked_test_case_runs_at_the_target_that_is_left(pytester: pytest.Pytester, before: str) -> None:
    source = f"""
{before}
class TestCase(unittest.TestCase):
    def test_it(self): assert current_target().name == "directml-1.6.0"
"""
    assert passed(run(pytester, HEAD + source, "--dml-target=directml-1.6.0,4_1")) == ["TestCase::test_it"]
    run(pytester, HEAD + source, "--dml-target=4_1").assert_outcomes(deselected=1)


@pytest.mark.parametrize("order", ["tryfirst", "trylast"])
def test_a_marker_that_comes_too_late_is_an_error_that_names_the_setting(pytester: pytest.Pytester, order: str) -> None:
    pytester.makeconftest(
        f"""
        import pytest

        @pytest.hookimpl({order}=True)
        def pytest_collection_modifyitems(items):
            for item in items: item.add_marker(pytest.mark.dml)
        """
    )
    result = run(pytester, "def test_it(): pass", *CHOSEN)
    result.assert_outcomes(errors=1)
    says(result, "*::test_it: the dml marker came too late *`dml_every_test = true` in the ini file*")


def test_a_marker_that_is_added_at_setup_is_an_error(pytester: pytest.Pytester) -> None:
    source = """
@pytest.fixture
def marking(request): request.node.add_marker(pytest.mark.dml(targets=["2_0"]))

def test_plain(marking): raise AssertionError

@pytest.mark.dml
def test_marked(marking): raise AssertionError
"""
    result = run(pytester, HEAD + source)
    result.assert_outcomes(failed=2)
    says(result, "*::test_plain: the dml marker came too late *", "*::test_marked[6_4]: the dml marker came too late *")


def test_a_marker_on_a_parameter_alone_says_why_not(pytester: pytest.Pytester) -> None:
    source = """
@pytest.mark.parametrize("kind", ["float", pytest.param("long", marks=pytest.mark.dml(minimum="4_1"))])
def test_it(kind): pass
"""
    result = run(pytester, HEAD + source, *CHOSEN)
    result.assert_outcomes(passed=1, errors=1)
    says(result, "*::test_it[long]: * one on a pytest.param can only narrow the targets of a marked *")
