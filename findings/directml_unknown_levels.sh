#!/usr/bin/env bash
# DirectML 6_2 for Linux (torch-directml 0.2.5.dev240914), over a stand-in for Direct3D 12: FEATURE_LEVELS.
# Behaviour: CheckFeatureSupport answers with the highest number asked for that is not above its own level, also if no
#   header has a level of that number (0x5300, 0x1234).
# One would have guessed: MaxSupportedFeatureLevel is a level that the library has, and others are ignored.
# Concerns: programs that list levels by formula, or turn the answer into an enumerator, as bindings of other languages do.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
here=$(cd "$(dirname "$0")" && pwd)
cd "$folder"
"${PYTHON:-python3}" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --python-version 3.10 \
    --platform manylinux2010_x86_64 --platform manylinux2014_x86_64 torch-directml==0.2.5.dev240914
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$here "${PYTHON:-python3}" - <<'PYTHON'
import ctypes

import directml

library, direct3d_device = directml.load()
_, device = directml.create_device(library, direct3d_device, 0x1000)
for levels, expected in (([0x5000, 0x6200, 0x6400], 0x6200), ([0x5000, 0x5300, 0x6400], 0x5300), ([0x1234], 0x1234)):
    array = (ctypes.c_uint32 * len(levels))(*levels)
    query = (ctypes.c_uint64 * 2)(len(levels), ctypes.addressof(array))
    answer = ctypes.c_uint32()
    size, given = ctypes.c_uint32, ctypes.c_void_p
    arguments = size(1), size(16), given(ctypes.addressof(query)), size(4), given(ctypes.addressof(answer))
    result = directml.call(device, 7, *arguments)
    print(f"FEATURE_LEVELS of {[hex(level) for level in levels]}: {answer.value:#x}")
    assert (result, answer.value) == (0, expected)
PYTHON
