"""The sizes by which copies are planned and moved, chosen by measuring."""

from __future__ import annotations

from typing import Final

LINE: Final = 64
"""The bytes of a processor's cache line."""
SHORT: Final = 512
"""Runs of fewer bytes are short: repeats make 14 GB/s of 48 bytes, 50 of 128, 80 of 512, and 100 of 2 KB."""
PASSES: Final = 8
"""Python loops over at most so many indices of short axes: 12 passes of 8 bytes take 7.5 µs, loops of NumPy 4.0."""
FEW: Final = 512
"""So many elements are moved in one call, however short its loops: 1.6 µs, which two calls and their views take."""
SCRATCH: Final = 2**18
"""The bytes of scratch memory, or of the input, that are read again and again; a quarter of the second-level cache."""
BLOCK: Final = 2**22
"""The bytes of the output that are written as one block: 50 to 130 µs, where one that is run once costs Python 4 µs."""
LARGE: Final = 2**24
"""Outputs of more bytes are written to main memory, in blocks, by several threads; one thread writes smaller ones to
the cache with 50 to 90 GB/s. Two threads gained nothing from 3 to 12 MB (0.92 to 1.02), and 1.11 from 12 to 17."""
