"""The bytes of a remote file, fetched where they are looked at."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, Self, overload

PART_BYTES: Final = 2**18
"""The bytes that are fetched at once."""
MAX_PARTS: Final = 64
"""The parts that are kept."""


class RemoteParts:
    """A sequence of a file's bytes. ``check`` is called before each request, and may raise.

    ``fetched`` counts the bytes that were asked for.
    """

    def __init__(self, system: Any, path: str, check: Callable[[], None]) -> None:
        self._file = system.open(path, "rb", cache_type="none") if system.size(path) else None
        self._size = int(system.size(path) or 0)
        self._check = check
        self._parts: OrderedDict[int, bytes] = OrderedDict()
        self.fetched = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            self._file.close()

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, place: int) -> int: ...
    @overload
    def __getitem__(self, place: slice) -> bytes: ...
    def __getitem__(self, place: int | slice) -> int | bytes:
        if isinstance(place, int):
            number, offset = divmod(place, PART_BYTES)
            return self._part(number)[offset]
        begin, end, _ = place.indices(self._size)
        pieces = []
        for number in range(begin // PART_BYTES, -(-end // PART_BYTES) if end > begin else 0):
            first = number * PART_BYTES
            pieces.append(self._part(number)[max(begin - first, 0) : end - first])
        return b"".join(pieces)

    def _part(self, number: int) -> bytes:
        if number in self._parts:
            self._parts.move_to_end(number)
            return self._parts[number]
        self._check()
        assert self._file is not None
        self._file.seek(number * PART_BYTES)
        wanted = min(PART_BYTES, self._size - number * PART_BYTES)
        part: bytes = self._file.read(wanted)
        if len(part) < wanted:
            raise OSError("it changed while it was read")
        self.fetched += wanted
        self._parts[number] = part
        if len(self._parts) > MAX_PARTS:
            self._parts.popitem(last=False)
        return part
