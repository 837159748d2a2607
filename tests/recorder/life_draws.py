"""Draws random lives of devices, most of which begin well and go wrong somewhere."""

from __future__ import annotations

import random
from typing import Any, Final

from tests.helpers.played_lives import GRAPHS, TILES, Life

WEIGHTS: Final = {
    "CreateOperator": 10,
    "CompileOperator": 10,
    "CompileGraph": 6,
    "CreateOperatorInitializer": 10,
    "initializer.Reset": 5,
    "CreateBindingTable": 16,
    "table.Reset": 6,
    "BindInputs": 16,
    "BindOutputs": 16,
    "BindPersistentResource": 7,
    "BindTemporaryResource": 6,
    "RecordDispatch": 20,
    "CheckFeatureSupport": 1,
    "GetDeviceRemovedReason": 3,
    "Remove": 0.5,
    "ID3D12Device": 0.3,
    "DMLCreateDevice": 0.8,
    "CreateCommandRecorder": 1,
}
MADE: Final = {
    "ID3D12Device": "h",
    "DMLCreateDevice": "d",
    "CreateCommandRecorder": "r",
    "CreateOperator": "o",
    "CompileOperator": "c",
    "CompileGraph": "c",
    "CreateOperatorInitializer": "i",
    "CreateBindingTable": "t",
}
NEEDED: Final = {"CompileOperator": "o", "initializer.Reset": "i", "CreateBindingTable": "o", "RecordDispatch": "t"}


def draw_life(seed: str) -> Life:
    """The life of a seed."""
    return {"asks": (drawer := _Drawer(seed)).chance(0.7), "calls": drawer.calls()}


class _Drawer:
    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)
        self._wrong = self._random.choice((0, 0.02, 0.1, 0.3))
        """How often an argument is a wrong one."""
        self._counts = dict.fromkeys("hdr", 1)

    def chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def calls(self) -> list[list[Any]]:
        return [self._call() for _ in range(self._random.randint(4, 30))]

    def _call(self) -> list[Any]:
        possible = [name for name in WEIGHTS if self._is_possible(name)]
        (name,) = self._random.choices(possible, [WEIGHTS[name] for name in possible])
        arguments = getattr(self, f"_{name.lower().replace('.', '_')}")()
        if name in MADE:
            self._counts[MADE[name]] = self._counts.get(MADE[name], 0) + 1
        return [name, *arguments]

    def _is_possible(self, name: str) -> bool:
        needed = NEEDED.get(name) or ("t" if name.startswith(("Bind", "table")) else "h")
        return bool(self._counts.get(needed))

    def _object(self, kinds: str) -> str:
        there = [kind for kind in kinds if self._counts.get(kind)] or [kinds[0]]
        kind = self._random.choice(there)
        latest = self.chance(0.5)
        count = self._counts.get(kind, 1)
        return f"{kind}{count - 1 if latest else self._random.randrange(count)}"

    def _is_wrong(self) -> bool:
        return self.chance(self._wrong)

    def _device(self) -> str:
        return self._object("d") if self._is_wrong() else "d0"

    def _remove(self) -> list[Any]:
        return [self._object("h"), self._random.choice((0x887A0005, 0x887A0006, 0x887A0007))]

    def _id3d12device(self) -> list[Any]:
        return []

    def _dmlcreatedevice(self) -> list[Any]:
        return [self._object("h")]

    def _getdeviceremovedreason(self) -> list[Any]:
        return [self._object("d")]

    def _checkfeaturesupport(self) -> list[Any]:
        levels = [self._random.choice(("1_0", "5_0", "6_2", "6_4")) for _ in range(self._random.randint(0, 3))]
        return [self._device(), levels]

    def _createcommandrecorder(self) -> list[Any]:
        return [self._device()]

    def _createoperator(self) -> list[Any]:
        bad = self._is_wrong()
        return [self._device(), self._random.randrange(len(TILES) - 2, len(TILES)) if bad else self._tile()]

    def _tile(self) -> int:
        return int(self._random.choice((0, 0, 1, 1, *range(len(TILES) - 2))))

    def _compileoperator(self) -> list[Any]:
        operator = None if self._is_wrong() else self._object("o")
        return [self._device(), operator, self._random.choice((0, 0, 0, 4, 4, 1, 2, 7)) + 8 * self._is_wrong()]

    def _compilegraph(self) -> list[Any]:
        drawn: Any = None if self._is_wrong() else self._random.randrange(len(GRAPHS))
        return [self._device(), drawn, self._random.choice((0, 0, 0, 4, 4, 7)) + 8 * self._is_wrong()]

    def _createoperatorinitializer(self) -> list[Any]:
        return [self._device(), self._operators()]

    def _initializer_reset(self) -> list[Any]:
        return [self._object("i"), self._operators()]

    def _operators(self) -> list[str | None] | None:
        if self._is_wrong():
            return None
        number = self._random.choice((0, 1, 1, 1, 2, 3)) if self._counts.get("c") else 0
        return [
            self._random.choice((None, self._object("oic"))) if self._is_wrong() else self._object("c")
            for _ in range(number)
        ]

    def _createbindingtable(self) -> list[Any]:
        return [self._device(), *self._table_desc()]

    def _table_reset(self) -> list[Any]:
        return [self._object("t"), *self._table_desc()]

    def _table_desc(self) -> list[Any]:
        if self._is_wrong():
            return []
        dispatchable = self._object("o") if self._is_wrong() else self._object("cci")
        size = self._random.choice((0, 1, 2, 3, 100)) if self._is_wrong() else None
        handles = [0 if self._is_wrong() else 4096 + self._is_wrong() for _ in range(2)]
        return [None if self._wrong and self.chance(0.005) else dispatchable, size, *handles]

    def _bindinputs(self) -> list[Any]:
        return [self._object("t"), self._bindings()]

    _bindoutputs = _bindinputs

    def _bindings(self) -> Any:
        if self._is_wrong():
            return None
        if not self._is_wrong():
            return "fit"
        return [self._binding() for _ in range(self._random.choice((0, 1, 1, 2, 3)))]

    def _bindtemporaryresource(self) -> list[Any]:
        wrong = self._is_wrong()
        binding = (None if self.chance(0.03) else self._binding()) if wrong else "fit"
        return [self._object("t"), binding]

    _bindpersistentresource = _bindtemporaryresource

    def _binding(self) -> Any:
        pick = self._random.random()
        if pick < 0.2:
            return self._random.choice((0, 0, 0, 0, 1, 2, 3, 7))
        if pick < 0.35:
            ranges = [self._range() for _ in range(self._random.choice((0, 1, 1, 2)))]
            return ["array", None if self.chance(0.1) else ranges]
        return ["none", self._range()] if pick < 0.4 else self._range()

    def _range(self) -> list[int | str | None]:
        choice = self._random.choice
        if self.chance(0.15):
            return [choice((0, 0, 16)), choice((0, 0, 24))]
        if self.chance(0.4):
            return [choice((0, 256, 512)), choice((1024, 2048)), 4096, 4, 1, 1, None]
        return [
            choice((0, 0, 0, 16, 32, 64, 128, 256, 8, 4000)),
            choice((0, 4, 12, 23, 24, 30, 32, 216, 301, 304, 1 << 20)),
            choice((64, 216, 256, 1024, 4096)),
            choice((4, 4, 4, 4, 0, 12)),
            choice((1, 1, 1, 1, 2, 3, 4)),
            choice((1, 1, 1, 1, 1, 3)),
            self._object("h") if self.chance(0.2) else None,
        ]

    def _recorddispatch(self) -> list[Any]:
        dispatchable = self._object("cci") if self._is_wrong() else "fit"
        table = self._object("t")
        if self._is_wrong() and self.chance(0.2):
            nulls: tuple[tuple[str | None, str | None], ...] = ((None, table), (self._object("c"), None), (None, None))
            return ["r0", *self._random.choice(nulls), 0]
        commands: int | None = self._random.choice((0, 0, 0, 2))
        if self._is_wrong():
            commands = self._random.choice((1, 3, 4, 5, -1, -2, None))
        return [self._object("r") if self._is_wrong() else "r0", dispatchable, table, commands]
