"""RNN, LSTM and GRU. Their equations are pictures on their pages; ONNX Runtime's agree with the measured values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from dml_tile.execution.call import Array, KernelCall, OperatorKernel, OperatorKernels
from dml_tile.execution.operators.fused import activated

Cell = Callable[[list[Array], list[Array], Array, Array], tuple[Array, Array]]
"""Takes the products with the input and with h by gate, h, and the cell; returns the next two."""


def split(x: Any, count: int) -> list[Any]:
    """Return the parts of the gates."""
    return np.split(x, count, -1)


def functions_of(c: KernelCall, direction: int, directions: int) -> list[Callable[[Array], Array]]:
    """Return the activations of a direction; the first two are of clipped values with UseClipThreshold."""
    per, clips = len(c.ActivationDescs) // directions, bool(c.get("UseClipThreshold"))

    def function(i: int) -> Callable[[Array], Array]:
        desc, limit = c.ActivationDescs[direction * per + i], c.ClipThreshold if clips and i < 2 else np.inf
        return lambda x: activated(desc, np.clip(x, -limit, limit), c.target)

    return [function(i) for i in range(per)]


def rnn_cell(c: KernelCall, d: int, f: Callable[[Array], Array]) -> Cell:
    return lambda wx, rh, h, cell: (f(wx[0] + rh[0]), cell)


def gru_cell(c: KernelCall, d: int, f: Callable[[Array], Array], g: Callable[[Array], Array]) -> Cell:
    """Return the cell whose gates are update, reset and hidden."""
    weights, bias = c["RecurrenceTensor"][0, d], recurrence_bias(c, d)
    size = weights.shape[-1]

    def step(wx: list[Array], rh: list[Array], h: Array, cell: Array) -> tuple[Array, Array]:
        update, reset = f(wx[0] + rh[0]), f(wx[1] + rh[1])
        part = reset * rh[2] if c.LinearBeforeReset else (reset * h) @ weights[-size:].T + bias[-size:]
        return (1 - update) * g(wx[2] + part) + update * h, cell

    return step


def lstm_cell(c: KernelCall, d: int, f: Callable[[Array], Array], *others: Callable[[Array], Array]) -> Cell:
    """Return the cell whose gates are input, output, forget and cell; the output's peephole takes the new cell."""
    g, last = others
    peephole = [0, 0, 0] if c["PeepholeTensor"] is None else split(c["PeepholeTensor"][0, 0, d], 3)

    def step(wx: list[Array], rh: list[Array], h: Array, cell: Array) -> tuple[Array, Array]:
        into = f(wx[0] + rh[0] + peephole[0] * cell)
        kept = 1 - into if c.CoupleInputForget else f(wx[2] + rh[2] + peephole[2] * cell)
        new = kept * cell + into * g(wx[3] + rh[3])
        return f(wx[1] + rh[1] + peephole[1] * new) * last(new), new

    return step


def recurrence_bias(c: KernelCall, direction: int) -> Any:
    """Return the second half of a direction's biases, 0 without any."""
    count = c["WeightTensor"].shape[-2]
    return np.zeros(count, np.float32) if c["BiasTensor"] is None else c["BiasTensor"][0, 0, direction, count:]


def recurrent(make_cell: Callable[..., Cell]) -> OperatorKernel:
    """Return the kernel of a recurrent network {1, steps, batch, size}; only live steps of a sequence are written."""

    def kernel(c: KernelCall) -> tuple[Array, ...]:
        (x,), weights, r = c["InputTensor"], c["WeightTensor"], c["RecurrenceTensor"]
        (steps, batch, _), (_, directions, rows, _), hidden = x.shape, weights.shape, r.shape[-1]
        lengths, bias = c.raw["SequenceLengthsTensor"], c["BiasTensor"]
        lengths = np.full(batch, steps) if lengths is None else np.minimum(lengths.ravel().astype(int), steps)
        memory = steps * directions * batch * rows * x.itemsize
        c.require(memory=memory, steps=steps * batch * (weights.size + r.size), loops=steps * directions)
        sequence, singles, cells = np.zeros((steps, directions, batch, hidden), x.dtype), list[Array](), list[Array]()
        for d in range(directions):
            step_of = make_cell(c, d, *functions_of(c, d, directions))
            h, cell = (
                np.zeros((batch, hidden), x.dtype) if start is None else start[0, d]
                for start in (c["HiddenInitTensor"], c["CellMemInitTensor"])
            )
            own_bias = np.zeros(rows, x.dtype) if bias is None else bias[0, 0, d, :rows]
            backward = c.Direction == 1 or d == 1
            for step in range(steps):
                live = step < lengths
                at = np.where(live, lengths - 1 - step if backward else step, 0)
                of_input = split(x[at, np.arange(batch)] @ weights[0, d].T + own_bias, rows // hidden)
                of_h = split(h @ r[0, d].T + recurrence_bias(c, d), rows // hidden)
                new, new_cell = step_of(of_input, of_h, h, cell)
                h, cell = (np.where(live[:, None], c.stored(a), b) for a, b in ((new, h), (new_cell, cell)))
                sequence[at[live], d, np.flatnonzero(live)] = h[live]
            singles.append(h)
            cells.append(cell)
        return (sequence, np.stack(singles), np.stack(cells))[: len(c.outputs)]

    return kernel


KERNELS: Final[OperatorKernels] = {"GRU": recurrent(gru_cell), "LSTM": recurrent(lstm_cell), "RNN": recurrent(rnn_cell)}
