#!/usr/bin/env bash
# DirectML 6_2 for Linux (torch-directml 0.2.5.dev240914), over a stand-in for Direct3D 12: GuaranteedBaseOffsetAlignment.
# Behaviour: CreateOperator refuses 4 and 8 for a FLOAT32 tensor with E_INVALIDARG, and takes 0, 16 and 2^31. Its page asks
#   for 0 or a power of two that is at least as large as an element.
# One would have guessed: 4, the size of an element, is fine, as the page says.
# Concerns: whoever fills in the alignment that an allocator gives; the refusal names no field.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
here=$(cd "$(dirname "$0")" && pwd)
cd "$folder"
"${PYTHON:-python3}" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --python-version 3.10 \
    --platform manylinux2010_x86_64 --platform manylinux2014_x86_64 torch-directml==0.2.5.dev240914
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$here "${PYTHON:-python3}" - <<'PYTHON'
from ctypes import Structure, addressof, c_uint32, c_void_p

import directml

FLOAT32, TILE = 1, 70


class TileDesc(Structure):
    _fields_ = [("InputTensor", c_void_p), ("OutputTensor", c_void_p), ("RepeatsCount", c_uint32), ("Repeats", c_void_p)]


library, direct3d_device = directml.load()
_, device = directml.create_device(library, direct3d_device, 0x1000)
repeats = (c_uint32 * 4)(1, 1, 1, 2)
answers = {}
for alignment in (0, 4, 8, 16, 2**31):
    tensors = directml.Tensor(FLOAT32, (1, 1, 2, 3), alignment), directml.Tensor(FLOAT32, (1, 1, 2, 6))
    tile = TileDesc(*(tensor.address for tensor in tensors), 4, addressof(repeats))
    answers[alignment] = directml.create_operator(device, TILE, tile)
    print(f"GuaranteedBaseOffsetAlignment {alignment}: {answers[alignment]:#010x}")
assert answers == {0: 0, 4: 0x80070057, 8: 0x80070057, 16: 0, 2**31: 0}
PYTHON
