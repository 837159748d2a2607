"""Answers that are kept: those asked for while tests are collected, by wide fixtures, and in objects."""

from __future__ import annotations

import pytest

from tests.helpers.plugin_runs import failed, module_of, passed, run, says

BOTH = "--dml-target=windows-10-2004,6_4"

COLLECTED = {
    "condition": "@pytest.mark.skipif(not check(LONGS), reason='')\ndef test_it(): pass",
    "parameters": "@pytest.mark.parametrize('target', [current_target()])\ndef test_it(target): pass",
    "constant": "HAS_LONGS = not check(LONGS)\ndef test_it(): pass",
    "hidden": "try: current_target()\nexcept Exception: pass\ndef test_it(): pass",
}


@pytest.mark.parametrize(("arguments", "ini"), [([BOTH], ""), (["-odml_strict=true"], ""), ([], "4_0 6_4")])
def test_asking_while_tests_are_collected_is_an_error_where_no_one_target_is_chosen(
    pytester: pytest.Pytester, arguments: list[str], ini: str
) -> None:
    result = run(pytester, COLLECTED, *arguments, ini=ini)
    assert result.parseoutcomes() == {"errors": len(COLLECTED)}
    for name in COLLECTED:
        asked = f"(asked at *test_{name}.py:1*"
        says(result, f"*the target is asked for in the collection of tests, *: ask in the test, * {asked}")


ANSWERED = """
AT_IMPORT = level()

@pytest.mark.skipif("current_target().name != AT_IMPORT")
def test_it(): assert AT_IMPORT == EXPECTED
"""


@pytest.mark.parametrize(("arguments", "level"), [([], "6_4"), (["--dml-target=4_0", "-odml_strict=true"], "4_0")])
def test_one_chosen_target_or_the_default_answers_while_tests_are_collected(
    pytester: pytest.Pytester, arguments: list[str], level: str
) -> None:
    pytester.makeconftest(f"import dml_tile\nassert dml_tile.current_target().name == {level!r}")
    assert passed(run(pytester, f"EXPECTED = {level!r}\n{ANSWERED}", *arguments)) == ["test_it"]


def test_a_string_condition_is_asked_in_the_test(pytester: pytest.Pytester) -> None:
    source = """
    @pytest.mark.skipif("check(LONGS)")
    @pytest.mark.dml
    def test_it(): assert level() == "6_4"
    """
    assert run(pytester, source, BOTH).parseoutcomes() == {"passed": 1, "skipped": 1}


@pytest.mark.parametrize("hook", ["", "def pytest_collection_modifyitems(items): "])
def test_a_conftest_that_asks_is_held_to_the_same(pytester: pytest.Pytester, hook: str) -> None:
    pytester.makeconftest(f"import dml_tile\n{hook}dml_tile.current_target()")
    result = run(pytester, "def test_it(): pass", BOTH)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "the target is asked for in the collection of tests, " in result.stderr.str()


ASKING_CONFTEST = """
import dml_tile, pytest
@pytest.fixture(scope="session")
def wide(): return dml_tile.current_target().name
"""
WIDE = {
    "getfixturevalue": """
@pytest.fixture(scope="session")
def inner(): return level()
@pytest.fixture(scope="module")
def wide(request): return request.getfixturevalue("inner")
""",
    "getfixturevalue of one that was made before": """
@pytest.fixture(scope="session", autouse=True)
def inner(): return level()
@pytest.fixture(scope="module")
def wide(request): return request.getfixturevalue("inner")
""",
    "an override of itself": """
@pytest.fixture(scope="module")
def wide(wide): return wide
""",
    "setup_module": """
seen = []
def setup_module(): seen.append(level())
@pytest.fixture
def wide(): return seen[-1]
""",
}
WIDE_TEST = """
@pytest.mark.dml
def test_it(wide): assert wide == "windows-10-2004"
"""


def test_a_wide_fixture_asks_what_it_lets_others_ask(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(ASKING_CONFTEST)
    result = run(pytester, {name: source + WIDE_TEST for name, source in WIDE.items()}, BOTH)
    result.assert_outcomes(passed=len(WIDE), failed=len(WIDE))
    for name in WIDE:
        fixture = f"*{name}_fixture_*" if "setup" in name else "*"
        scope = "session" if "before" in name else "module"
        says(
            result,
            f"*{module_of(name)}.py::test_it[6_4]: the {scope}-scoped fixture {fixture} asked which target is "
            "simulated when it was made for windows-10-2004 (2_0); this test runs at 6_4: let it take dml_target as an "
            f"argument, with `dml_scope = {scope}` in the ini file, *",
        )


def test_a_fixture_is_not_blamed_for_another_of_its_name(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(ASKING_CONFTEST)
    asks = "@pytest.mark.dml(targets=['windows-10-2004'])\ndef test_asks(wide): assert wide == level()"
    own = (
        "@pytest.fixture(scope='session')\ndef wide(): return 1\n@pytest.mark.dml\ndef test_own(wide): assert wide == 1"
    )
    names = ["test_asks[windows-10-2004]", "test_own[windows-10-2004]", "test_own[6_4]"]
    assert passed(run(pytester, {"a": asks, "b": own}, BOTH)) == names


KEPT = """
from functools import lru_cache
import numpy as np
from dml_tile import compile_tile, lower, run_lowering

TILE = TileOperatorDesc.from_input(data_type="FLOAT32", sizes=[1, 1, 1, 2], repeats=[1, 1, 1, 2])

@lru_cache
def compiled(): return compile_tile(TILE)
@lru_cache
def bound(): return compiled().bind(bytes(8), bytearray(16))
@lru_cache
def lowered(): return lower(TILE)
@lru_cache
def device(): return Device(current_target())
EARLY = Device()
NAMED = [compile_tile(TILE, "6_4"), lower(TILE, "6_4"), Device("6_4")]
USES = {
    "compiled tile": lambda: compiled().execute(bytes(8), bytearray(16)),
    "compiled tile, which is bound": lambda: compiled().bind(bytes(8), bytearray(16)),
    "compiled tile, bound before": lambda: bound().run(),
    "lowering": lambda: lowered().steps,
    "lowering, which is run": lambda: run_lowering(lowered(), bytes(8), bytearray(16)),
    "device": lambda: device().create_operator(TILE),
    "device, which executes": lambda: device().execute(TILE, bytes(8), bytearray(16)),
    "device, which is asked for its target": lambda: device().target,
    "device, which is asked what it takes": lambda: device().check_feature_support(1, [0x1000]),
    "device, made before all": lambda: EARLY.create_operator(TILE),
}
every = pytest.mark.parametrize("use", USES.values(), ids=USES)

@pytest.mark.dml(targets=["6_4"])
@every
def test_makes(use): bound(), use()

@pytest.mark.dml(targets=["4_0"])
@every
def test_uses(use):
    try: use()
    except DmlError: pass  # a back end falls back

@pytest.mark.dml(targets=["4_0"])
def test_swallows():
    try: device().create_operator(TILE)
    except Exception: pass

@pytest.mark.dml(targets=["directml-1.15.4"])
@every
def test_same(use): use()

def test_plain(): device().create_operator(TILE)

@pytest.fixture
def made(): return Device()

@pytest.mark.dml(targets=["4_0"])
def test_named(made):
    NAMED[0].execute(bytes(8), bytearray(16))
    assert NAMED[1].steps and NAMED[2].create_operator(TILE) and made.create_operator(TILE)
    assert repr(device()) == "<Device at 6_4>" and made.target.name == "4_0"
    with simulate("5_0"): own = Device()
    assert own.target.name == "5_0"
"""


def test_what_is_made_for_one_target_is_not_used_at_another(pytester: pytest.Pytester) -> None:
    result = run(pytester, KEPT)
    result.assert_outcomes(passed=22, failed=11)
    text = "made at *.py:* in another test or before all, is used in a test for 4_0: make it in the test, or name its *"
    for what in ("compiled tile", "lowering", "device"):
        says(result, f"*TargetError: a {what} for 6_4, {text}")
    says(result, f"*::test_swallows[4_0]: a device for 6_4, {text}")


COMPLAINTS = """
@pytest.mark.xfail(reason="expected")
def test_swallows():
    try: check(LONGS)
    except Exception: pass

@pytest.mark.xfail(reason="expected")
def test_asks(): check(LONGS)

@pytest.mark.xfail(reason="expected")
def test_leaves(): simulate("4_0").__enter__()

@pytest.mark.xfail(reason="expected")
def test_own(): raise ValueError
"""


@pytest.mark.long
def test_a_complaint_is_no_expected_failure_and_the_test_is_not_tried_again(pytester: pytest.Pytester) -> None:
    result = run(pytester, COMPLAINTS, "-odml_strict=true", "--reruns=2", plugins=["rerunfailures"])
    assert failed(result) == ["test_swallows", "test_asks", "test_leaves"]
    assert "rerun" not in result.parseoutcomes()


FAULTS = """
from dml_tile import Direct3DDevice, HRESULT, tile
TILE = TileOperatorDesc.from_input(data_type="FLOAT32", sizes=[2], repeats=[2])

def test_fails(dml_calls):
    device = Device()
    device.fail("CreateOperator", HRESULT.E_OUTOFMEMORY, at=3)
    device.create_operator(TILE), device.create_operator(TILE)
    with pytest.raises(DmlError, match="DML-DEVICE-fault") as error: device.create_operator(TILE)
    assert error.value.hresult is HRESULT.E_OUTOFMEMORY and error.value.call == "CreateOperator"
    device.create_operator(TILE)
    assert repr(dml_calls).splitlines()[-2:] == [
        "CreateOperator at 6_4: DML-DEVICE-fault",
        "CreateOperator at 6_4: FLOAT32 {2} x {2} -> {4}",
    ]

def test_removes(dml_calls):
    direct3d_device = Direct3DDevice()
    direct3d_device.remove(HRESULT.DXGI_ERROR_DEVICE_HUNG, after_dispatches=3)
    device = Device(direct3d_device=direct3d_device)
    device.execute(TILE, bytes(8), bytearray(16))  # initialises, and executes
    device.execute(TILE, bytes(8), output := bytearray(b"-" * 16))
    assert device.get_device_removed_reason() is HRESULT.DXGI_ERROR_DEVICE_HUNG
    assert output == b"-" * 16
    assert [call.name for call in dml_calls if call.findings] == ["RemoveDevice"]

def test_unmet(): Device().fail("CompileGraph", HRESULT.E_OUTOFMEMORY)
def test_unmet_removal(): Direct3DDevice().remove(after_dispatches=1)

@pytest.mark.parametrize(("call", "result", "at", "text"), [
    ("CreateOperators", HRESULT.E_OUTOFMEMORY, 1, "did you mean CreateOperator"),
    ("BindInputs", HRESULT.E_OUTOFMEMORY, 1, "call is 'BindInputs'"),
    ("CreateOperator", HRESULT.S_OK, 1, "S_OK is no failure"),
    ("CreateOperator", HRESULT.E_OUTOFMEMORY, 0, "at is 0; it must be at least 1"),
])
def test_wrong(call, result, at, text):
    with pytest.raises(ValueError, match=text): Device().fail(call, result, at=at)
    with pytest.raises(ValueError, match="after_dispatches is -1; it must be at least 0"):
        Direct3DDevice().remove(after_dispatches=-1)

"""


def test_faults_come_when_a_test_asks_for_them_and_have_to_be_met(pytester: pytest.Pytester) -> None:
    result = run(pytester, FAULTS)
    result.assert_outcomes(passed=8, errors=2)
    says(
        result,
        "*::test_unmet: Device.fail('CompileGraph', HRESULT.E_OUTOFMEMORY, at=1) of *test_it.py:* was never met",
        "*::test_unmet_removal: Direct3DDevice.remove(HRESULT.DXGI_*REMOVED, after_dispatches=1) of * was never met",
    )
