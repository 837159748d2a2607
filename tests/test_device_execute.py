"""A tile's whole life on a device, in one call; and the calls that it makes."""

from __future__ import annotations

import numpy as np
import pytest

from dml_tile.descriptors.tile import TileOperatorDesc
from dml_tile.device import BindingTableDesc, Buffer, BufferBinding, Device
from dml_tile.errors import DmlError
from dml_tile.testing import record_calls
from tests.helpers.descriptors import GOOD, page_tile, row
from tests.helpers.devices import NUMBERS, OWNED, TILED, floats


@pytest.mark.parametrize("desc", [GOOD, OWNED], ids=["bound", "owned"])
@pytest.mark.parametrize("raise_on_removal", [True, False])
def test_it_tiles_arrays_bytes_and_buffers(desc: TileOperatorDesc, raise_on_removal: bool) -> None:
    device = Device(raise_on_removal=raise_on_removal)
    for given in (NUMBERS, NUMBERS.tobytes(), Buffer.wrap(NUMBERS.copy())):
        out = np.zeros((6, 9), np.float32)
        device.execute(desc, given, out)
        np.testing.assert_array_equal(out, TILED)
        output = Buffer(216)
        device.execute(desc, given, output)
        np.testing.assert_array_equal(floats(output).reshape(6, 9), TILED)


@pytest.mark.parametrize("desc", [GOOD, OWNED], ids=["bound", "owned"])
@pytest.mark.parametrize("raise_on_removal", [True, False])
@pytest.mark.parametrize(("sizes", "call"), [((23, 216), "BindInputs"), ((24, 215), "BindOutputs")])
def test_a_buffer_that_is_too_small_is_an_error_and_removes_the_device(
    desc: TileOperatorDesc, raise_on_removal: bool, sizes: tuple[int, int], call: str
) -> None:
    device = Device(raise_on_removal=raise_on_removal)
    with pytest.raises(DmlError, match=f"{call}: .*\n.*DML-BINDING-SizeInBytes"):
        device.execute(desc, bytes(sizes[0]), bytearray(sizes[1]))
    assert device.removal is not None
    assert device.removal.call == call


def test_a_refused_descriptor_leaves_the_device() -> None:
    device = Device("4_0")
    with pytest.raises(DmlError, match="CreateOperator: E_INVALIDARG"):
        device.execute(row("INT64", [2], [2]), bytes(16), bytearray(32))
    with pytest.raises(ValueError, match="read-only"):
        device.execute(GOOD, bytes(24), bytes(216))
    assert device.removal is None


def test_calls_are_recorded_while_they_are_asked_for() -> None:
    device, refused = Device(), page_tile(Repeats=None)
    with record_calls() as calls:
        device.execute(GOOD, bytes(24), bytearray(216))
        with record_calls() as inner, pytest.raises(DmlError):
            device.create_operator(refused)
    device.create_operator(GOOD)
    names = [call.name for call in calls]
    assert names[:2] == ["CreateOperator", "CompileOperator"]
    assert names[-2:] == ["RecordDispatch", "CreateOperator"]
    assert inner == calls[-1:]
    assert (inner[0].desc, inner[0].target) == (refused, device.target)
    assert [finding.crash for finding in inner[0].findings] == [True]


def test_a_refused_compilation_and_a_binding_are_recorded_with_their_descriptor() -> None:
    device = Device()
    operator = device.create_operator(GOOD)
    table = device.create_binding_table(BindingTableDesc(device.compile_operator(operator)))
    with record_calls() as calls:
        with pytest.raises(DmlError):
            device.compile_operator(operator, 2**31)
        table.bind_inputs([BufferBinding(Buffer(24))])
        table.bind_outputs([BufferBinding(Buffer(4))])
    assert device.removal is not None
    assert [(call.name, call.desc, bool(call.findings)) for call in calls] == [
        ("CompileOperator", GOOD, True),
        ("BindInputs", GOOD, False),
        ("BindOutputs", GOOD, True),
    ]


@pytest.mark.parametrize(("offset", "is_noticed"), [(4, True), (2**64 - 4, False)])
def test_a_range_beyond_its_buffer_says_whether_directml_notices(offset: int, is_noticed: bool) -> None:
    device = Device()
    table = device.create_binding_table(BindingTableDesc(device.compile_operator(device.create_operator(GOOD))))
    table.bind_inputs([BufferBinding(Buffer(24), offset, 24)])
    assert device.removal is not None
    (message,) = (each.message for each in device.removal.findings if each.rule == "DML-BINDING-range")
    assert ("does not notice" in message) is not is_noticed
