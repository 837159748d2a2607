"""One device, used from many threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from dml_tile.device import Buffer, BufferBinding, CompiledOperator, Device, dispatches
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


@pytest.mark.parametrize(("owner", "name"), [(Mover, "__call__"), (dispatches, "copy_bytes")], ids=["tile", "input"])
def test_no_lock_is_held_while_bytes_are_copied(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str) -> None:
    device = Device(raise_on_removal=True)
    operators, outputs = [compiled(device, OWNED) for _ in range(2)], [output(), output()]
    both_are_copying, copy = threading.Barrier(2, timeout=30), getattr(owner, name)

    def copy_when_both_are_here(*memory: Any) -> None:
        both_are_copying.wait()
        initialise(device, [compiled(device, GOOD)])
        copy(*memory)

    def live(operator: CompiledOperator, out: BufferBinding) -> None:
        (persistent,) = initialise(device, [operator], [source()])
        execute(device, operator, source(), out, persistent)

    monkeypatch.setattr(owner, name, copy_when_both_are_here)
    run_in_threads(live, list(zip(operators, outputs, strict=True)))
    for out in outputs:
        np.testing.assert_array_equal(written(out), TILED)
