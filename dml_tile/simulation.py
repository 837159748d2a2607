"""Which target is simulated where none is named: a context variable, so that threads and tasks have their own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

from dml_tile.enums import FeatureLevel
from dml_tile.targets import Target, TargetLike

DEFAULT_TARGET: Final = Target(FeatureLevel.DML_FEATURE_LEVEL_6_4)

_simulated: Final = ContextVar("dml_tile_target", default=DEFAULT_TARGET)


def resolve(target: TargetLike | None) -> Target:
    """The target meant by an argument; None means the simulated one, else 6_4."""
    return _simulated.get() if target is None else Target.parse(target)


@contextmanager
def simulate(target: TargetLike) -> Iterator[Target]:
    """Within the ``with`` block, this target is meant wherever none is named: by ``check``, ``tile``, ``Device``, …

    Gives the Target. asyncio's tasks see it; a thread is better given its target. Raises ValueError for an unknown one.

        >>> with simulate("windows-10-22h2") as target:
        ...     print(target.feature_level, resolve(None).name)
        2_0 windows-10-22h2
    """
    chosen = Target.parse(target)
    token = _simulated.set(chosen)
    try:
        yield chosen
    finally:
        _simulated.reset(token)
