"""Random lives of devices on DirectML and on the emulator, call by call."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from operator import le
from typing import Final

from tests.helpers.played_lives import CRASH, Life, Player, emulated
from tests.recorder.devices import RealDevice, RealDirect3DDevice
from tests.recorder.releases import Release
from tests.recorder.workers import Crash, ask_each, note

LIVES_OF_A_WORKER: Final = 250
"""The stand-in lets go of nothing, and a life takes more of it than a descriptor."""

_PROPERTIES: Final = re.compile(r"(\d+),(\d+),(\d+)")

Results = list[str]
Ask = Callable[[Sequence[Life], Release], Iterator[Results]]


@dataclass(frozen=True, slots=True)
class Difference:
    """A life in which DirectML and the emulator do not do the same."""

    life: Life
    release: Release
    real: Results
    emulated: Results

    def __str__(self) -> str:
        number = next(i for i in range(len(self.real) + 1) if not agree(self.real[: i + 1], self.emulated[: i + 1]))
        said = [results[number] if number < len(results) else "nothing" for results in (self.real, self.emulated)]
        calls = "".join(f"\n  {call}" for call in self.life["calls"])
        return f"{self.release.level}: call {number + 1} came to {said[0]} in DirectML, {said[1]} here:{calls}"


def agree(real: Results, emulated: Results) -> bool:
    """Whether calls came to the same. The three numbers of GetBindingProperties are bounds here."""
    return len(real) == len(emulated) and all(
        one == other or (_PROPERTIES.fullmatch(other) and all(map(le, _numbers(one), _numbers(other))))
        for one, other in zip(real, emulated, strict=True)
    )


def _numbers(properties: str) -> list[float]:
    found = _PROPERTIES.fullmatch(properties)
    return [float(number) for number in found.groups()] if found else [inf] * 3


def real_results(lives: Sequence[Life], release: Release) -> Iterator[Results]:
    """What each life comes to in DirectML, in workers."""

    def play(life: Life) -> Results:
        return Player(RealDirect3DDevice, partial(RealDevice, release), note).play(life)

    for result in ask_each(lives, play, of_a_worker=LIVES_OF_A_WORKER):
        yield [*(result.note or ()), CRASH] if isinstance(result, Crash) else result


def differences(lives: Sequence[Life], release: Release, ask: Ask = real_results) -> list[Difference]:
    """The lives in which a release and the emulator do not do the same."""
    return [
        Difference(life, release, real, expected)
        for life, real in zip(lives, ask(lives, release), strict=True)
        if not agree(real, expected := emulated(life, release.level))
    ]


def shortest(found: Difference, ask: Ask = real_results) -> Difference:
    """The same difference in a life without the calls that it does not take."""
    while True:
        calls = found.life["calls"][: max(len(found.real), len(found.emulated))]
        shorter = [{**found.life, "calls": calls[:i] + calls[i + 1 :]} for i in range(len(calls))]
        still = differences(shorter, found.release, ask)
        if not still:
            return found
        found = still[0]
