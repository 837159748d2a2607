"""The target of a test holds from its first fixture to its last, in all threads and in child processes."""

from __future__ import annotations

import pytest

from tests.helpers.plugin_runs import failed, passed, run, says

OLD = "windows-10-2004"
BOTH = [f"--dml-target={OLD},6_4"]

SETUPS = """
seen = []

@pytest.fixture(autouse=True)
def prepare(): seen.append(level())

def setup_function(): seen.append(level())

@pytest.fixture
def before(request):
    yield level()
    assert is_right(request)

@pytest.mark.dml
def test_function(before, request):
    assert {*seen, before} == {level()} and is_right(request)
    seen.clear()

def test_argument(before, dml_target, request):
    assert {*seen, before, dml_target.name} == {level()} and is_right(request)
    seen.clear()

class TestIt:
    @pytest.fixture(autouse=True)
    def prepare_class(self): self.prepared = level()
    def setup_method(self): self.seen = level()
    def teardown_method(self): assert level() == self.seen

    @pytest.mark.dml
    def test_method(self, request):
        assert self.prepared == self.seen == level() and is_right(request)
        seen.clear()
"""


def test_what_prepares_a_test_is_at_its_target(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        "import pytest, dml_tile\n@pytest.fixture(autouse=True)\ndef prepare_all(request):\n"
        "    assert f'[{dml_tile.current_target().name}]' in request.node.name\n"
    )
    names = ["test_function", "test_argument", "TestIt::test_method"]
    assert passed(run(pytester, SETUPS, *BOTH)) == [f"{name}[{target}]" for name in names for target in (OLD, "6_4")]


WIDE = """
@pytest.fixture(scope="{}")
def wide(dml_target):
    before = level()
    yield before
    assert level() == before

@pytest.mark.dml
class TestIt:
    def test_it(self, wide, request): assert wide == level() and is_right(request)
    def test_also(self, wide, request): assert wide == level() and is_right(request)
    def test_fetched(self, request): assert request.getfixturevalue("wide") == level() and is_right(request)
"""


@pytest.mark.parametrize("scope", ["class", "module", "session"])
def test_a_wide_fixture_takes_the_target_in_its_own_scope_alone(pytester: pytest.Pytester, scope: str) -> None:
    source = WIDE.format(scope)
    assert len(passed(run(pytester, source, *BOTH, "-o", f"dml_scope={scope}"))) == 6
    result = run(pytester, source, *BOTH, "-k", "also")
    result.assert_outcomes(errors=2)
    says(result, f"set `dml_scope = {scope}` in the ini file")


def test_a_wide_fixture_that_is_fetched_while_the_test_runs_is_held_to_the_same(pytester: pytest.Pytester) -> None:
    source = """
    @pytest.fixture(scope="session")
    def wide(): return level()

    @pytest.fixture
    def fetched(request): return request.getfixturevalue("wide")

    @pytest.mark.dml
    def test_body(request): request.getfixturevalue("wide")

    @pytest.mark.dml
    def test_fixture(fetched): raise AssertionError

    def test_alone(request): request.getfixturevalue("wide")

    @pytest.mark.dml(targets=["windows-10-2004"])
    def test_same(wide): assert wide == level()

    @pytest.fixture(scope="session")
    def asks_nothing(): return level

    @pytest.mark.dml
    def test_later(asks_nothing, request): assert f"[{asks_nothing()}]" in request.node.name
    """
    result = run(pytester, source, *BOTH)
    names = ["test_body[6_4]", f"test_fixture[{OLD}]", "test_fixture[6_4]", "test_alone"]
    assert failed(result) == names
    for test in ("test_body[6_4]", *names[2:]):
        says(result, f"*::{test}: the session-scoped fixture wide asked * when it was made for {OLD} (2_0); *")


TEST_CASE = """
class TestCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls): cls.seen = [level()]
    def setUp(self):
        self.seen.append(level())
        self.addCleanup(lambda: self.assertEqual(level(), "windows-10-2004"))
    def test_it(self): self.assertEqual({*self.seen, level()}, {"windows-10-2004"})
"""


def test_a_test_case_runs_at_the_one_target_that_is_left(pytester: pytest.Pytester) -> None:
    marks = {"marked": "dml", "fixture": "usefixtures('dml_target')", "plain": "skipif(False, reason='')"}
    sources = {name: f"pytestmark = pytest.mark.{mark}\n{TEST_CASE}" for name, mark in marks.items()}
    every = "--dml-every-test"
    assert len(passed(run(pytester, sources, f"--dml-target={OLD}"))) == 3
    result = run(pytester, sources, *BOTH, every)
    assert result.parseoutcomes() == {"errors": 3}
    says(result, f"*::TestCase::test_it: 2 targets are chosen ({OLD}, 6_4), but pytest cannot run *")
    narrowed = f"pytestmark = pytest.mark.dml(maximum='4_0')\n{TEST_CASE}\ndef test_function(): level()"
    assert len(passed(run(pytester, dict.fromkeys(sources, narrowed), *BOTH))) == 6
    run(pytester, dict.fromkeys(sources, narrowed), "--dml-target=4_1").assert_outcomes(deselected=6)


def test_every_test_can_run_at_each_target(pytester: pytest.Pytester) -> None:
    source = """
    def test_plain(request): assert is_right(request)

    class TestIt:
        def test_method(self, request): assert is_right(request)

    @pytest.mark.dml(minimum="5_0")
    def test_marked(request): assert is_right(request)
    """
    names = ["test_plain[{}]", "TestIt::test_method[{}]", "test_marked[6_4]"]
    expected = [test.format(name) for test in names[:2] for name in (OLD, "6_4")] + names[2:]
    for chosen in ("--dml-every-test", "-odml_every_test=true"):
        assert passed(run(pytester, source, *BOTH, chosen)) == expected


def test_a_target_that_is_asked_for_too_late_is_an_error(pytester: pytest.Pytester) -> None:
    source = "def test_it(request): assert request.getfixturevalue('dml_target').name == level()"
    assert passed(run(pytester, source)) == passed(run(pytester, source, f"--dml-target={OLD}")) == ["test_it"]
    result = run(pytester, source, *BOTH)
    result.assert_outcomes(failed=1)
    says(result, "*::test_it: dml_target was asked for while the test runs, too late for several targets: *")
