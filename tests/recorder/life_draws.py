"""Draws random lives of devices, most of which begin well and go wrong somewhere."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from tests.helpers.played_lives import GOOD_RANGE, GRAPHS, TILES, Life


def draw_life(seed: str) -> Life:
    """The life of a seed."""
    return {"asks": (drawer := _Drawer(seed)).chance(0.7), "calls": drawer.calls()}


SIZES: Final = (0, 4, 12, 23, 24, 30, 32, 216, 301, 304, 1 << 20)


class _Drawer:
    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)
        self.choice = self._random.choice
        self._wrong = self.choice((0, 0.02, 0.1, 0.3))
        """How often an argument is a wrong one."""
        self._counts = dict.fromkeys("hdr", 1)

    def chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def calls(self) -> list[list[Any]]:
        return [self._call() for _ in range(self._random.randint(4, 30))]

    def _call(self) -> list[Any]:
        possible = [name for name, call in CALLS.items() if self._counts.get(call.needs)]
        (name,) = self._random.choices(possible, [CALLS[name].weight for name in possible])
        call = CALLS[name]
        arguments = call.arguments(self)
        if call.makes:
            self._counts[call.makes] = self._counts.get(call.makes, 0) + 1
        return [name, *arguments]

    def object(self, kinds: str) -> str:
        there = [kind for kind in kinds if self._counts.get(kind)] or [kinds[0]]
        kind = self.choice(there)
        latest = self.chance(0.5)
        count = self._counts.get(kind, 1)
        return f"{kind}{count - 1 if latest else self._random.randrange(count)}"

    def _is_wrong(self) -> bool:
        return self.chance(self._wrong)

    def device(self) -> str:
        return self.object("d") if self._is_wrong() else "d0"

    def levels(self) -> list[Any]:
        levels = [self.choice(("1_0", "5_0", "6_2", "6_4")) for _ in range(self._random.randint(0, 3))]
        return [self.device(), levels]

    def operator(self) -> list[Any]:
        bad = self._is_wrong()
        return [self.device(), self._random.randrange(len(TILES) - 2, len(TILES)) if bad else self._tile()]

    def _tile(self) -> int:
        return int(self.choice((0, 0, 1, 1, *range(len(TILES) - 2))))

    def compilation(self) -> list[Any]:
        operator = None if self._is_wrong() else self.object("o")
        return [self.device(), operator, self.choice((0, 0, 0, 4, 4, 1, 2, 7)) + 8 * self._is_wrong()]

    def graph(self) -> list[Any]:
        drawn: Any = None if self._is_wrong() else self._random.randrange(len(GRAPHS))
        return [self.device(), drawn, self.choice((0, 0, 0, 4, 4, 7)) + 8 * self._is_wrong()]

    def operators(self) -> list[str | None] | None:
        if self._is_wrong():
            return None
        number = self.choice((0, 1, 1, 1, 2, 3)) if self._counts.get("c") else 0
        return [
            self.choice((None, self.object("oic"))) if self._is_wrong() else self.object("c") for _ in range(number)
        ]

    def table_desc(self) -> list[Any]:
        if self._is_wrong():
            return []
        dispatchable = self.object("o") if self._is_wrong() else self.object("cci")
        size = self.choice((0, 1, 2, 3, 100)) if self._is_wrong() else None
        handles = [0 if self._is_wrong() else 4096 + self._is_wrong() for _ in range(2)]
        return [None if self._wrong and self.chance(0.005) else dispatchable, size, *handles]

    def bindings(self) -> Any:
        if self._is_wrong():
            return None
        if not self._is_wrong():
            good = [*GOOD_RANGE[:-1], self.object("h")]  # in a buffer of this or of another Direct3D device
            return [good] if self.chance(0.2) else "fit"
        return [self._binding() for _ in range(self.choice((0, 1, 1, 2, 3)))]

    def resource(self) -> list[Any]:
        wrong = self._is_wrong()
        binding = (None if self.chance(0.03) else self._binding()) if wrong else "fit"
        return [self.object("t"), binding]

    def _binding(self) -> Any:
        pick = self._random.random()
        if pick < 0.2:
            return self.choice((0, 0, 0, 0, 1, 2, 3, 7))
        if pick < 0.35:
            ranges = [self._range() for _ in range(self.choice((0, 1, 1, 2)))]
            return ["array", None if self.chance(0.1) else ranges]
        return ["none", self._range()] if pick < 0.4 else self._range()

    def _range(self) -> list[int | str | list[str | int] | None]:
        if self.chance(0.15):
            return [self.choice((0, 0, 16)), self.choice((0, 0, 24))]
        if self.chance(0.4):
            return [self.choice((0, 256, 512)), self.choice((1024, 2048)), 4096, 4, 1, 1, None]
        return [
            self.choice((0, 0, 0, 16, 32, 64, 128, 256, 8, 4000)),
            ["told", self.choice((-256, -4, -1, -1, 0, 0, 0, 1, 4))] if self.chance(0.5) else self.choice(SIZES),
            self.choice((64, 216, 256, 1024, 4096)),
            self.choice((4, 4, 4, 4, 0, 12)),
            self.choice((1, 1, 1, 1, 2, 3, 4)),
            self.choice((1, 1, 1, 1, 1, 3)),
            self.object("h") if self.chance(0.4) else None,
        ]

    def dispatch(self) -> list[Any]:
        dispatchable = self.object("cci") if self._is_wrong() else "fit"
        table = self.object("t")
        if self._is_wrong() and self.chance(0.2):
            nulls: tuple[tuple[str | None, str | None], ...] = ((None, table), (self.object("c"), None), (None, None))
            return ["r0", *self.choice(nulls), 0]
        commands: int | None = self.choice((0, 0, 0, 2))
        if self._is_wrong():
            commands = self.choice((1, 3, 4, 5, -1, -2, None))
        return [self.object("r") if self._is_wrong() else "r0", dispatchable, table, commands]


class _Call(NamedTuple):
    """A call that may be drawn: how often, with which arguments, and the kinds of what it makes and what it needs."""

    weight: float
    arguments: Callable[[_Drawer], list[Any]]
    makes: str = ""
    needs: str = "h"


CALLS: Final = {
    "CreateOperator": _Call(10, _Drawer.operator, "o"),
    "CompileOperator": _Call(10, _Drawer.compilation, "c", "o"),
    "CompileGraph": _Call(6, _Drawer.graph, "c"),
    "CreateOperatorInitializer": _Call(10, lambda drawer: [drawer.device(), drawer.operators()], "i"),
    "initializer.Reset": _Call(5, lambda drawer: [drawer.object("i"), drawer.operators()], "", "i"),
    "CreateBindingTable": _Call(16, lambda drawer: [drawer.device(), *drawer.table_desc()], "t", "o"),
    "table.Reset": _Call(6, lambda drawer: [drawer.object("t"), *drawer.table_desc()], "", "t"),
    "BindInputs": _Call(16, lambda drawer: [drawer.object("t"), drawer.bindings()], "", "t"),
    "BindOutputs": _Call(16, lambda drawer: [drawer.object("t"), drawer.bindings()], "", "t"),
    "BindPersistentResource": _Call(7, _Drawer.resource, "", "t"),
    "BindTemporaryResource": _Call(6, _Drawer.resource, "", "t"),
    "RecordDispatch": _Call(20, _Drawer.dispatch, "", "t"),
    "CheckFeatureSupport": _Call(1, _Drawer.levels),
    "GetDeviceRemovedReason": _Call(3, lambda drawer: [drawer.object("d")]),
    "Remove": _Call(0.5, lambda drawer: [drawer.object("h"), drawer.choice((0x887A0005, 0x887A0006, 0x887A0007))]),
    "ID3D12Device": _Call(1.5, lambda drawer: [], "h"),
    "DMLCreateDevice": _Call(1.5, lambda drawer: [drawer.object("h")], "d"),
    "CreateCommandRecorder": _Call(1, lambda drawer: [drawer.device()], "r"),
}
