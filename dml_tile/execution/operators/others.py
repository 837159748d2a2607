"""Random numbers, and the optimiser."""

from __future__ import annotations

from typing import Final

import numpy as np

from dml_tile.execution.call import Array, KernelCall, OperatorKernels

_MULTIPLIERS: Final = 0xD2511F53, 0xCD9E8D57
_KEY_STEPS: Final = 0x9E3779B9, 0xBB67AE85
_WORD: Final = 0xFFFFFFFF
_ROUNDS: Final = 10


def random_generator(c: KernelCall) -> tuple[Array, Array]:
    """Return the numbers of Philox 4x32-10, and the state, whose counter goes up by blocks of four.

    Salmon et al., 2011, "Parallel random numbers: as easy as 1, 2, 3".
    """
    state, count = [int(word) for word in c.raw["InputStateTensor"].ravel()], -(-c.out.size // 4)
    counter, low, word = sum(word << 32 * i for i, word in enumerate(state[:4])), np.uint64(32), np.uint64(_WORD)
    steps = np.arange(count, dtype=np.uint64)
    first = np.uint64(counter % 2**64) + steps
    second = np.uint64(counter >> 64) + (first < steps)  # carried
    x = [first & word, first >> low, second & word, second >> low]
    key = state[4:]
    for _ in range(_ROUNDS):
        a, b = (np.uint64(each) * x[i] for each, i in zip(_MULTIPLIERS, (0, 2), strict=True))
        first, third = (b >> low) ^ x[1] ^ np.uint64(key[0]), (a >> low) ^ x[3] ^ np.uint64(key[1])
        x = [first, b & np.uint64(_WORD), third, a & np.uint64(_WORD)]
        key = [(word + step) & _WORD for word, step in zip(key, _KEY_STEPS, strict=True)]
    words = [((counter + count) >> 32 * i) & _WORD for i in range(4)]
    return np.stack(x, 1).ravel()[: c.out.size].astype(np.uint32), np.array(words + state[4:], np.uint32)


def adam_optimizer(c: KernelCall) -> tuple[Array, Array, Array]:
    """Return the parameters and both moments after a step, of the bias correction by TrainingStepTensor.

    Page: ns-directml-dml_adam_optimizer_operator_desc
    """
    names = ("InputParameters", "InputFirstMoment", "InputSecondMoment", "Gradient")
    x, first, second, gradient = (c[f"{name}Tensor"] for name in names)
    step = int(c.raw["TrainingStepTensor"].ravel()[0])
    first = first + (1 - c.Beta1) * (gradient - first)
    second = second + (1 - c.Beta2) * (gradient * gradient - second)
    alpha = np.sqrt(1 - np.float64(c.Beta2) ** step) / (1 - np.float64(c.Beta1) ** step)
    rate = (c.LearningRate * alpha).astype(np.float32)
    return x - rate * first / (np.sqrt(second) + c.Epsilon), first, second


KERNELS: Final[OperatorKernels] = {"ADAM_OPTIMIZER": adam_optimizer, "RANDOM_GENERATOR": random_generator}
