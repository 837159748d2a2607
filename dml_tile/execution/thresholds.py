"""The sizes by which copies are planned and moved, chosen by measuring."""

from __future__ import annotations

from typing import Final

SHORT: Final = 512
"""Runs of fewer bytes are short: repeats make 27 GB/s of 48 bytes, 84 of 128, 130 of 448, and 100 of any more."""
FEW: Final = 256
"""So many elements are moved in one call, however short its inner loops: a call takes 0.3 µs, as long as they do."""
LINE: Final = 64
"""The bytes of a processor's cache line."""
SCRATCH: Final = 2**18
"""The bytes of scratch memory, or of the input, that are read again and again; a quarter of the second-level cache."""
BLOCK: Final = 2**20
"""The bytes of the output that are written as one block: 20 µs or more, where a block costs Python 3 µs."""
