"""Calls a function of a C library, and writes what it describes to standard output, a line of JSON each.

python -m dml_tile.readers.sandbox.library_child LIBRARY SYMBOL CAPACITY SECONDS MEMORY
"""

from __future__ import annotations

import ctypes
import json
import signal
import sys
from collections.abc import Iterator
from typing import Any

from dml_tile.readers.c_structs import DML_OPERATOR_DESC, read_operator_desc
from dml_tile.readers.sandbox.limits import bounds, end_with_parent, own_streams


def main() -> None:
    """Load the library, call the function, and answer."""
    library, symbol, capacity, seconds, memory = sys.argv[1:]
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    end_with_parent()
    _, stream = own_streams()
    with stream, bounds(float(seconds), int(memory)):
        for answer in answers(library, symbol, int(capacity)):
            stream.write(json.dumps(answer).encode() + b"\n")


def answers(library: str, symbol: str, capacity: int) -> Iterator[dict[str, Any]]:
    """An operator each, then how many there are; or why there are none."""
    try:
        function = getattr(ctypes.CDLL(library), symbol)
    except OSError as error:
        yield {"error": f"cannot be loaded: {error}"}
        return
    except AttributeError:
        yield {"error": f"has no function {symbol!r}"}
        return
    if capacity == 0:
        function.restype = ctypes.c_void_p
        sources: list[Any] = [function()]
    else:
        function.argtypes, function.restype = [ctypes.c_void_p, ctypes.c_uint32], ctypes.c_uint32
        room = (DML_OPERATOR_DESC * capacity)()
        count = function(room, capacity)
        if count > capacity:
            yield {"error": f"{symbol} returned {count}; it was given room for {capacity} descriptors"}
            return
        sources = list(room[:count])
    for source in sources:
        desc = read_operator_desc(source)
        yield {"operator": desc and desc.model_dump(mode="json", by_alias=True)}
    yield {"count": len(sources)}


if __name__ == "__main__":
    main()
