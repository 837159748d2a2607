#!/usr/bin/env bash
# DirectML 6_2 for Linux (torch-directml 0.2.5.dev240914), over a stand-in for Direct3D 12: DML_GATHER_OPERATOR_DESC.
# Behaviour: of the five examples on its page CreateOperator takes four, and refuses Example 3 (swapped columns) with
#   E_INVALIDARG. It takes the example with an IndexDimensions of 1 instead of 2.
# One would have guessed: an example on the page of an operator is a descriptor that the operator takes.
# Concerns: whoever begins from that example; the refusal names no field.
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

FLOAT32, UINT32, GATHER = 1, 3, 67


class GatherDesc(Structure):
    _fields_ = [("InputTensor", c_void_p), ("IndicesTensor", c_void_p), ("OutputTensor", c_void_p), ("Axis", c_uint32),
                ("IndexDimensions", c_uint32)]


# Axis, IndexDimensions, and the Sizes of the input, the indices and the output, by the number of the example
EXAMPLES = {
    "1": (0, 1, (4,), (5,), (5,)),
    "2": (0, 1, (3, 2), (1, 4), (4, 2)),
    "3": (1, 2, (3, 2), (1, 2), (3, 2)),
    "3, IndexDimensions 1": (1, 1, (3, 2), (1, 2), (3, 2)),
    "4": (2, 2, (1, 3, 3), (1, 1, 2), (3, 1, 2)),
    "5": (1, 2, (1, 3, 2), (1, 2, 2), (2, 2, 2)),
}
library, direct3d_device = directml.load()
_, device = directml.create_device(library, direct3d_device, 0x1000)
answers = {}
for name, (axis, index_dimensions, *sizes) in EXAMPLES.items():
    tensors = [directml.Tensor(data_type, each) for data_type, each in zip((FLOAT32, UINT32, FLOAT32), sizes, strict=True)]
    gather = GatherDesc(*(tensor.address for tensor in tensors), axis, index_dimensions)
    answers[name] = directml.create_operator(device, GATHER, gather)
    print(f"Example {name}: {answers[name]:#010x}")
assert answers == {**dict.fromkeys(EXAMPLES, 0), "3": 0x80070057}
PYTHON
