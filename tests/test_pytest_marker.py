"""Markers and decorators of tests: they narrow the targets of the run, or choose them, and need no fixture."""

from __future__ import annotations

import re

import pytest

from tests.helpers.plugin_runs import TEST_CASES, failed, module_of, passed, run, says

CHOSEN = ["--dml-target=windows-10-2004,directml-1.6.0,4_1,6_4"]

NARROWED = {
    "": ["windows-10-2004", "directml-1.6.0", "4_1", "6_4"],
    "minimum='3_1'": ["directml-1.6.0", "4_1", "6_4"],
    "maximum=0x4100": ["windows-10-2004", "directml-1.6.0", "4_1"],
    "minimum='windows-11-21h2', maximum='directml-1.7.0'": ["directml-1.6.0", "4_1"],
    "targets=['windows-11-21h2', '6.4']": ["directml-1.6.0", "6_4"],
    "simulate('4_0')": ["directml-1.6.0"],
}
WEAK = "Target('5_0', name='weak', typed_uav_loads=False)"
WITHOUT_A_CHOICE = {
    "": ["6_4"],
    "minimum='3_1'": ["6_4"],
    "maximum='windows-11-21h2'": ["windows-11-21h2"],
    "minimum='3_1', maximum='5_2+no-typed-uav-loads'": ["5_2+no-typed-uav-loads"],
    "targets=['windows-11-21h2', '2_0', '2.0']": ["windows-11-21h2", "2_0"],
    "targets=['windows-11-21h2', '2_0'], minimum='3_1'": ["windows-11-21h2"],
    f"targets=[{WEAK}, '5_0']": ["weak", "5_0"],
    "simulate('4_0')": ["4_0"],
}


@pytest.mark.parametrize(("chosen", "markers"), [(CHOSEN, NARROWED), ([], WITHOUT_A_CHOICE)])
def test_a_marker_or_a_decorator_narrows_and_needs_no_fixture(
    pytester: pytest.Pytester, chosen: list[str], markers: dict[str, list[str]]
) -> None:
    decorators = [marker if marker.startswith("simulate(") else f"pytest.mark.dml({marker})" for marker in markers]
    tests = [f"@{each}\ndef test_{i:02}(request): assert is_right(request)" for i, each in enumerate(decorators)]
    expected = [f"test_{i:02}[{name}]" for i, names in enumerate(markers.values()) for name in names]
    assert passed(run(pytester, "\n".join(tests), *chosen)) == expected


MODULE = "pytestmark = pytest.mark.dml(targets=['2_0'], maximum='5_2')\n"
IT = "def test_it(request): assert is_right(request)"
CLASSES = """
@simulate("4_0")
class TestOuter:
    def test_it(self, request): assert is_right(request)
    @pytest.mark.dml(targets=["3_0"])
    def test_own(self, request): assert is_right(request)
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
"""
MARKED_CASES = """
@pytest.mark.dml(targets=["5_1"])
class Marked(Base): LEVEL = "5_1"
class Method(Base):
    LEVEL = "3_1"
    @simulate("3_1")
    def test_it(self): self.require_level()
class Plain(unittest.TestCase):
    def test_it(self): assert level() == "2_0"
"""
FIXTURES = """
@pytest.fixture(autouse=True)
def prepared(): return level()
@pytest.fixture
@simulate("3_1")
def decorated(): return level()

def test_fixture(prepared, decorated): assert (prepared, decorated, level()) == ("6_4", "3_1", "6_4")

@simulate("4_0")
class TestIt:
    @classmethod
    def setup_class(cls): cls.seen = level()
    def setup_method(self): assert self.seen == level()
    def test_it(self, prepared): assert self.seen == prepared == level() == "4_0"
"""
HEIRS = """
class Base:
    def test_it(self): assert level() == "6_4"
@pytest.mark.dml
class TestMarked(Base): pass
class TestPlain(Base): pass
"""
CASES = ("Base", "Heir", "Own", "HeirOfOwn", "Tasks", "Mixed", "Marked", "Method", "Plain")
OF_CLASSES = {"TestOuter": "4_0", "TestHeir": "4_0", "TestDecorated": "5_0", "TestMarked": "5_1", "TestBoth": "5_1"}
OF_MEMBERS = ["test_it[{}]", "test_own[3_0]", "test_static[{}]", "TestInner::test_it[{}]", "TestMarked::test_it[4_1]"]
CLOSEST = {
    "module": (MODULE + IT, ["test_it[2_0]"]),
    "function": (f"{MODULE}@pytest.mark.dml(targets=['4_0'])\n{IT}", ["test_it[4_0]"]),
    "decorated function": (f"{MODULE}@simulate('4_0')\n{IT}", ["test_it[4_0]"]),
    "agreement": (f"@simulate('4_0')\n@pytest.mark.dml(targets=['windows-11-21h2'])\n{IT}", ["test_it[4_0]"]),
    "bounds": (f"@pytest.mark.dml(minimum='3_1')\n@simulate('4_0')\n{IT}", ["test_it[4_0]"]),
    "function of another name": (f"@simulate('4_0')\n{IT.replace('test_it', 'check_it')}", ["check_it[4_0]"]),
    "adapter": (f"{MODULE.replace('2_0', '5_0')}@pytest.mark.dml(targets=[{WEAK}])\n{IT}", ["test_it[weak]"]),
    "fixtures": (FIXTURES, ["test_fixture", "TestIt::test_it[4_0]"]),
    "heirs": (HEIRS, ["TestMarked::test_it[6_4]", "TestPlain::test_it"]),
    "TestCases": (
        MODULE + TEST_CASES + MARKED_CASES,
        ["Mixed::test_own", *(f"{cls}::test_it" for cls in CASES)],
    ),
    "classes": (
        MODULE + CLASSES,
        ["TestHeir::test_more[4_0]"]
        + [f"{cls}::{test.format(target)}" for cls, target in OF_CLASSES.items() for test in OF_MEMBERS],
    ),
}


def test_the_closest_targets_count_and_bounds_narrow(pytester: pytest.Pytester) -> None:
    sources = {name: source for name, (source, _) in CLOSEST.items()}
    result = run(pytester, sources, "-opython_functions=test check_*", "-opython_classes=Test")
    assert len(passed(result)) == sum(len(names) for _, names in CLOSEST.values())
    for name, (_, names) in CLOSEST.items():
        found = re.findall(rf"^{module_of(name)}\.py::(\S+) PASSED", result.stdout.str(), re.MULTILINE)
        assert sorted(found) == sorted(names)


def test_what_the_chosen_targets_exclude_is_deselected_with_its_reason(pytester: pytest.Pytester) -> None:
    source = """
    @pytest.mark.dml(maximum="4_0")
    @pytest.mark.parametrize("number", [1, 2])
    def test_numbers(number): pass

    @simulate("4_0")
    def test_decorated(): pass

    @simulate("4_0")
    class TestCase(unittest.TestCase):
        def test_it(self): pass

    @pytest.mark.parametrize("kind", ["float", pytest.param("long", marks=pytest.mark.dml(minimum="5_0"))])
    def test_kind(kind, dml_target): pass

    def test_plain(): assert level() == "6_4"
    """
    result = run(pytester, source, "--dml-target=4_1,6_4")
    kinds = ["test_kind[4_1-float]", "test_kind[6_4-float]", "test_kind[6_4-long]"]
    assert sorted(passed(result)) == [*kinds, "test_plain"]
    says(
        result,
        "dml-tile: 2 tests deselected: dml(maximum='4_0') excludes 4_1, 6_4 (from --dml-target)",
        "dml-tile: 2 tests deselected: simulate('4_0') excludes 4_1, 6_4 (from --dml-target)",
        "dml-tile: 1 test deselected: dml(minimum='5_0') excludes 4_1, 6_4 (from --dml-target)",
    )


@pytest.mark.long
def test_the_marker_suits_hypothesis(pytester: pytest.Pytester) -> None:
    source = """
    from hypothesis import given, settings, strategies as st

    QUICK = settings(max_examples=10, database=None, deadline=None)
    TILES = st.integers(1, 99).map(
        lambda size: TileOperatorDesc.from_input(data_type="FLOAT32", sizes=[1, 1, 1, size], repeats=[1, 1, 1, 2])
    )

    @pytest.mark.dml
    @given(desc=TILES)
    @QUICK
    def test_it(desc): assert not check(desc)

    @simulate("6_4")
    @given(desc=TILES)
    @QUICK
    def test_decorated(desc): assert level() == "6_4" and not check(desc)
    """
    names = ["test_it[1_0]", "test_it[6_4]", "test_decorated[6_4]"]
    assert passed(run(pytester, source, "--dml-target=1_0,6_4", in_a_process=True)) == names


WRONG = {
    "@pytest.mark.dml('4_1')": "the dml marker takes keywords only, not '4_1'",
    "@pytest.mark.dml(target=[], min=1)": "the dml marker takes *, maximum and expects_removal, not min, target",
    "@pytest.mark.dml(targets=['windows-7'])": "the dml marker's targets: 'windows-7' is no known *did you mean *",
    "@pytest.mark.dml(targets='4_1')": "the dml marker takes a list of targets that is not empty, not '4_1'",
    "@pytest.mark.dml(targets=[])": "the dml marker takes a list of targets that is not empty, not []",
    "@pytest.mark.dml(targets=[None])": "the dml marker's targets: None is no feature level; *",
    "@pytest.mark.dml(minimum='4_9')": "the dml marker's minimum: '4_9' is no known target; *",
    "@pytest.mark.dml(maximum=1.5)": "the dml marker's maximum: 1.5 is no feature level; *",
    "@pytest.mark.dml(expects_removal=1)": "the dml marker's expects_removal is 1; True or False was expected",
    "@pytest.mark.dml(minimum='5_0', maximum='4_0')": "no target can meet dml(minimum='5_0', maximum='4_0')",
    "@pytest.mark.dml(minimum='5_0')\n@pytest.mark.dml(maximum='4_0')": (
        "no target can meet dml(minimum='5_0') and dml(maximum='4_0')"
    ),
    "pytestmark = pytest.mark.dml(maximum='4_0')\n@pytest.mark.dml(minimum='4_1')": (
        "no target can meet dml(minimum='4_1') and dml(maximum='4_0')"
    ),
    "@pytest.mark.dml(minimum='5_0')\n@simulate('4_0')": "no target can meet dml(minimum='5_0') and simulate('4_0')",
    "@pytest.mark.dml(targets=['4_0', '4_1'], minimum='5_0')": "no target can meet dml(targets=['4_0', '4_1'], *",
    "@pytest.mark.dml(targets=['5_0'])\n@simulate('4_0')": "dml(targets=['5_0']) and simulate('4_0') disagree; *",
    "@pytest.mark.dml(targets=['5_0'])\n@pytest.mark.dml(targets=['4_0'])\nclass TestIt:": (
        "dml(targets=['5_0']) and dml(targets=['4_0']) disagree; *"
    ),
    "@simulate('5_0')\n@simulate('4_0')\nclass TestIt:": "simulate('5_0') and simulate('4_0') disagree; *",
    "pytestmark = [pytest.mark.dml(targets=['5_0']), pytest.mark.dml(targets=['4_0'])]": "dml(* disagree; *",
    "from hypothesis import given\n@given(None)\n@simulate('4_0')": "@given stands outside @simulate, *",
}


def test_what_cannot_hold_is_an_error_that_names_the_test(pytester: pytest.Pytester) -> None:
    method, function = "    def test_it(self): pass", "def test_it({}): pass"
    tests = [method if it.endswith("TestIt:") else function.format("_" * it.count("given(")) for it in WRONG]
    sources = {str(i): f"{before}\n{test}" for i, (before, test) in enumerate(zip(WRONG, tests, strict=True))}
    result = run(pytester, sources)
    result.assert_outcomes(errors=len(WRONG))
    for i, (before, text) in enumerate(WRONG.items()):
        says(result, f"*test_{i}.py::{'TestIt::' * before.endswith('TestIt:')}test_it: {text}")
    assert "Traceback" not in result.stdout.str()
    assert "pytest_plugin" not in result.stdout.str()


TOO_LATE = """
@pytest.fixture
def marking(request): request.node.add_marker(pytest.mark.dml(targets=["2_0"]))

def test_plain(marking): raise AssertionError

@pytest.mark.dml
def test_marked(marking): raise AssertionError

@pytest.mark.parametrize("kind", ["float", pytest.param("long", marks=pytest.mark.dml(minimum="4_1"))])
def test_unmarked(kind): pass

@pytest.mark.dml(targets=["6_4"])
@pytest.mark.parametrize("kind", [
    pytest.param("unknown", marks=pytest.mark.dml(min="4_1")),
    pytest.param("none", marks=pytest.mark.dml(targets=["4_0"])),
])
def test_kind(kind): pass
"""


def test_a_marker_that_is_added_at_setup_or_cannot_hold_for_a_parameter_is_an_error(pytester: pytest.Pytester) -> None:
    result = run(pytester, TOO_LATE)
    result.assert_outcomes(passed=2, failed=2, errors=2)
    says(
        result,
        "*::test_plain: the dml marker came too late *",
        "*::test_marked[6_4]: the dml marker came too late *",
        "*::test_kind[6_4-unknown]: the dml marker takes *, not min",
        "*::test_kind[6_4-none]: no target can meet dml(targets=['6_4']) and dml(targets=['4_0'])",
    )
    assert "pytest_plugin" not in result.stdout.str()


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
    assert failed(result) == ["test_it"]
    says(result, "*::test_it: the dml marker came too late *`dml_every_test = true` in the ini file*")
