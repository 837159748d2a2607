"""Which Windows releases take a tile as they are, and what does it write?"""

import numpy as np

import dml_tile

desc = dml_tile.TileOperatorDesc.from_input(data_type="UINT8", sizes=[1, 1, 2, 3], repeats=[1, 1, 2, 2])

for release in ("windows-10-2004", "windows-11-21h2"):
    findings = dml_tile.check(desc, release)
    print(f"{release}: {findings[0].message if findings else 'accepted'}")

lowest = dml_tile.lowest_level(desc)
print(f"lowest level: {lowest.short if lowest else 'none'}")

image = np.arange(6, dtype=np.uint8)
output = bytearray(24)
dml_tile.execute(desc, bytes(image) + bytes(2), output)  # DirectML wants the 6 bytes rounded up to 8
print(np.frombuffer(output, np.uint8).reshape(4, 6))
