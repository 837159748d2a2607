"""One device, used from many threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from dml_tile.bindings.memory import Bytes
from dml_tile.device import Buffer, BufferBinding, Device, dispatches
from dml_tile.execution.mover import Mover
from tests.helpers.descriptors import GOOD
from tests.helpers.devices import (
    OWNED,
    TILED,
    compiled,
    execute,
    initialise,
    output,
    source,
    table,
    written,
)


def run_in_threads(target: Callable[..., object], arguments: Sequence[tuple[Any, ...]]) -> None:
    threads = [threading.Thread(target=target, args=each) for each in arguments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_many_threads_use_one_device() -> None:
    device, count = Device(raise_on_removal=True), 25
    rng = np.random.default_rng(7)
    inputs = rng.random((8, count, 2, 3), np.float32)
    outputs = np.zeros((8, count, 6, 9), np.float32)
    errors: list[BaseException] = []

    def work(i: int) -> None:
        try:
            for j in range(count):
                operator = compiled(device, OWNED if j % 2 else GOOD)
                given = BufferBinding(Buffer.wrap(inputs[i, j]))
                (persistent,) = initialise(device, [operator], [given if operator.owns_input else None])
                execute(device, operator, given, BufferBinding(Buffer.wrap(outputs[i, j])), persistent)
        except BaseException as error:
            errors.append(error)

    run_in_threads(work, [(i,) for i in range(8)])
    assert not errors
    np.testing.assert_array_equal(outputs, np.tile(inputs, (1, 1, 3, 3)))


def test_no_lock_is_held_while_bytes_are_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device(raise_on_removal=True)
    both_are_copying = threading.Barrier(2, timeout=30)
    move = Mover.__call__

    def move_when_both_are_here(self: Mover, *memory: Any) -> None:
        both_are_copying.wait()
        device.create_operator(GOOD)
        initialise(device, [compiled(device, GOOD)])
        move(self, *memory)

    monkeypatch.setattr(Mover, "__call__", move_when_both_are_here)
    operator, outputs = compiled(device, GOOD), [output(), output()]
    initialise(device, [operator])
    run_in_threads(execute, [(device, operator, source(), out) for out in outputs])
    for out in outputs:
        np.testing.assert_array_equal(written(out), TILED)


def test_no_lock_is_held_while_an_input_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device(raise_on_removal=True)
    both_are_copying = threading.Barrier(2, timeout=30)
    copy = dispatches.copy_bytes

    def copy_when_both_are_here(*regions: Bytes) -> None:
        both_are_copying.wait()
        table(device, device.create_operator_initializer())
        copy(*regions)

    monkeypatch.setattr(dispatches, "copy_bytes", copy_when_both_are_here)
    operators = [compiled(device, OWNED) for _ in range(2)]
    run_in_threads(initialise, [(device, [operator], [source()]) for operator in operators])
    assert all(operator.persistent_address for operator in operators)
