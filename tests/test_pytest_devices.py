"""No test passes on a removed device, and a test can list the calls that were made during it."""

from __future__ import annotations

import copy
import pickle

import pytest

from dml_tile import Device
from tests.helpers.plugin_runs import module_of, passed, run, says

LIBRARY = """
import numpy as np
from dml_tile import Buffer, BufferBinding, BindingTableDesc, Feature, execute, lower, tile
from dml_tile.back_ends.dialects import ONNX_TILE_13

TILE = TileOperatorDesc.from_input(data_type="FLOAT32", sizes=[1, 1, 2, 3], repeats=[1, 1, 3, 3])

def remove(device):
    table = device.create_binding_table(BindingTableDesc(device.compile_operator(device.create_operator(TILE))))
    table.bind_inputs([BufferBinding(Buffer(4))])
    return table

def swallow():
    device = Device(raise_on_removal=True)
    try:
        remove(device)
    except DmlError:
        pass  # a fallback hides it
    return device
"""

UNNOTICED = {
    "of the test": "def test_it(): remove(Device())",
    "of the library": "def test_it(): swallow()",
    "of the fixture": """
def test_it(dml_device):
    with pytest.raises(DmlError): remove(dml_device)
""",
    "in a thread": """
def test_it():
    with ThreadPoolExecutor(1) as pool: pool.submit(swallow).result()
""",
    "asked before": """
def test_it():
    device = Device()
    assert device.removal is None
    remove(device)
""",
    "in a setup": """
@pytest.fixture
def broken(): return swallow()
def test_it(broken): pass
""",
    "of an earlier test": """
@pytest.fixture(scope="module")
def device(): return Device()

@pytest.fixture(scope="module")
def tables(): return []

def test_removed(device, tables):
    tables.append(remove(device))
    assert device.removal

def test_it(device, tables): tables[0].bind_outputs([BufferBinding(Buffer(216))])

def test_other(device): check(TILE)
""",
}
OTHERWISE_WRONG = """
@pytest.fixture
def late():
    yield
    swallow()
def test_late(late): pass

@pytest.mark.dml(expects_removal=True)
def test_expects(): Device()

def test_own_failure():
    swallow()
    assert 1 == 2
"""


def test_a_removed_device_fails_the_test_with_the_reason(pytester: pytest.Pytester) -> None:
    modules = {name: LIBRARY + source for name, source in UNNOTICED.items()} | {"wrong": LIBRARY + OTHERWISE_WRONG}
    result = run(pytester, modules)
    result.assert_outcomes(passed=3, failed=len(UNNOTICED) + 2, errors=1)
    for name in UNNOTICED:
        says(result, f"{module_of(name)}*::test_it*: A device at 6_4 was removed by BindInputs: [DML-BINDING-Size*] *")
    says(
        result,
        "A test that expects this asks for the reason (device.removal), or says so: *",
        "*::test_expects[6_4]: the test expects that a device is removed, and none was",
        "E * assert 1 == 2",
    )


NOTICED = """
def test_asks():
    device = Device()
    remove(device)
    assert device.removal.call == "BindInputs"

def test_asks_as_c_does(): assert swallow().get_device_removed_reason().name == "DXGI_ERROR_DEVICE_REMOVED"

@pytest.mark.dml(expects_removal=True)
class TestExpects:
    def test_it(self): swallow()

    @pytest.mark.dml(expects_removal=False)
    def test_whole(self): check(TILE)
"""


def test_a_test_may_ask_for_the_reason_or_expect_it(pytester: pytest.Pytester) -> None:
    assert len(passed(run(pytester, LIBRARY + NOTICED))) == 4


def test_a_device_is_not_copied_and_says_so() -> None:
    for copied in (copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match=r"^a device is one object, as in C, and is not copied or pickled; make "):
            copied(Device())


CALLS = """
def names(calls): return " ".join(call.name for call in calls)

@pytest.mark.dml(targets=["windows-10-2004", "6_4"])
def test_it(dml_calls, dml_target):
    check(LONGS)
    tile(np.zeros((1, 1, 1, 2), np.float32), (1, 1, 1, 2))
    execute(TILE, bytes(24), bytearray(216))
    Device().execute(TILE, bytes(24), bytearray(216))
    assert names(dml_calls) == (
        "check tile execute DMLCreateDevice CreateOperator CompileOperator CreateOperatorInitializer "
        "CreateBindingTable RecordDispatch Reset BindInputs BindOutputs RecordDispatch"
    )
    assert {call.target for call in dml_calls} == {dml_target}
    first, *others = dml_calls
    assert first.desc is LONGS
    assert bool(first.findings) == (dml_target.name != "6_4")
    assert not any(call.findings for call in others)
    assert [call.desc for call in others[2:]] == [None, TILE, TILE, *[None] * 3, *[TILE] * 4]

def test_refused(dml_calls):
    for refused in (
        lambda: tile(np.zeros(2, np.int64), 2, "4_0"),
        lambda: execute(LONGS, bytes(16), bytearray(32), "4_0"),
        lambda: execute(LONGS, bytes(8), bytearray(32)),
        lambda: Device("4_0").create_operator(LONGS),
        lambda: Device().compile_operator(None),
        lambda: Device("4_0", "4_1"),
        lambda: Device().check_feature_support(7, 0),
        lambda: Device().create_operator_initializer(None),
        lambda: Device().create_binding_table(BindingTableDesc(None)),
        lambda: lower(TileOperatorDesc.from_input(data_type="INT8", sizes=[2], repeats=[0]), "4_0"),
    ):
        with pytest.raises(DmlError): refused()
    refused = [call for call in dml_calls if call.findings]
    assert {call.name for call in dml_calls if not call.findings} == {"DMLCreateDevice"}
    assert names(refused) == (
        "tile execute execute CreateOperator CompileOperator DMLCreateDevice1 CheckFeatureSupport "
        "CreateOperatorInitializer CreateBindingTable lower"
    )
    assert [call.target.name for call in refused] == ["4_0", "4_0", "6_4", "4_0", "6_4", "4_0", *["6_4"] * 3, "4_0"]
    level, size, null = "DML-TILE-DataType-level", "DML-BINDING-SizeInBytes", "DML-COMPILE-op-null"
    assert [call.findings[0].rule for call in refused[:5]] == [level, level, size, level, null]
    assert refused[1].desc is LONGS and refused[4].desc is None

def test_accepted(dml_calls):
    device = Device("4_0")
    assert device.check_feature_support(Feature.TENSOR_DATA_TYPE_SUPPORT, 1)
    lower(LONGS, device.target)
    lower(ONNX_TILE_13.request("float32", [2], [3]), device.target)
    assert names(dml_calls) == "DMLCreateDevice CheckFeatureSupport lower lower"
    assert dml_calls[2].desc is LONGS and not any(call.findings for call in dml_calls)
    assert {call.target for call in dml_calls} == {device.target}

def test_removed(dml_calls):
    assert swallow().removal
    assert names(dml_calls) == "DMLCreateDevice CreateOperator CompileOperator CreateBindingTable BindInputs"
    assert [call.name for call in dml_calls if call.findings] == ["BindInputs"]

@pytest.fixture
def before(): check(TILE)

def test_fixtures_and_threads_are_listed_too(before, dml_calls):
    with ThreadPoolExecutor(1) as pool: pool.submit(check, LONGS).result()
    assert [call.desc for call in dml_calls] == [TILE, LONGS]

def test_from_now_on(request):
    check(TILE)
    calls = request.getfixturevalue("dml_calls")
    check(LONGS)
    assert [call.desc for call in calls] == [LONGS]

def test_nothing_is_left(dml_calls): assert not dml_calls
"""


def test_the_calls_of_a_test_are_listed_with_their_findings(pytester: pytest.Pytester) -> None:
    assert len(passed(run(pytester, LIBRARY + CALLS))) == 8
