#!/usr/bin/env bash
# DirectML 6_2 for Linux (torch-directml 0.2.5.dev240914), over a stand-in for Direct3D 12: DML_LSTM_OPERATOR_DESC.
# Behaviour: CreateOperator refuses an LSTM whose only output is OutputCellSingleTensor, with E_INVALIDARG. It takes each of
#   the other two outputs alone, and the cell beside either.
# One would have guessed: any of the three outputs will do, since each is optional on the page and in the header.
# Concerns: who needs the last state of the cell only, as in a step of a sequence; the refusal names no field.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
here=$(cd "$(dirname "$0")" && pwd)
cd "$folder"
"${PYTHON:-python3}" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --python-version 3.10 \
    --platform manylinux2010_x86_64 --platform manylinux2014_x86_64 torch-directml==0.2.5.dev240914
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$here "${PYTHON:-python3}" - <<'PYTHON'
from ctypes import Structure, addressof, c_float, c_uint32, c_void_p
from itertools import chain, combinations

import directml

FLOAT32, SIGMOID, TANH, LSTM = 1, 47, 51, 77
LENGTH, BATCH, SIZE, HIDDEN = 5, 2, 4, 3
# the Sizes of inputs and outputs in the order of the struct; None is an optional tensor that is left out
INPUTS = (
    (1, LENGTH, BATCH, SIZE),
    (1, 1, 4 * HIDDEN, SIZE),
    (1, 1, 4 * HIDDEN, HIDDEN),
    *(None, None, None, None, None),
)
OUTPUTS = {"Sequence": (LENGTH, 1, BATCH, HIDDEN), "Single": (1, 1, BATCH, HIDDEN), "CellSingle": (1, 1, BATCH, HIDDEN)}


class ActivationDesc(Structure):
    _fields_ = [("InputTensor", c_void_p), ("OutputTensor", c_void_p)]


class LstmDesc(Structure):
    _fields_ = [("Tensors", c_void_p * 11), ("ActivationDescCount", c_uint32), ("ActivationDescs", c_void_p),
                ("Direction", c_uint32), ("ClipThreshold", c_float), ("UseClipThreshold", c_uint32),
                ("CoupleInputForget", c_uint32)]


library, direct3d_device = directml.load()
_, device = directml.create_device(library, direct3d_device, 0x1000)
activation = ActivationDesc()
activations = (directml.Desc * 3)(*(directml.Desc(kind, addressof(activation)) for kind in (SIGMOID, TANH, TANH)))
answers = {}
for given in chain.from_iterable(combinations(OUTPUTS, count) for count in (1, 2, 3)):
    sizes = (*INPUTS, *(OUTPUTS[name] if name in given else None for name in OUTPUTS))
    tensors = [each and directml.Tensor(FLOAT32, each) for each in sizes]
    addresses = (c_void_p * 11)(*(tensor and tensor.address for tensor in tensors))
    lstm = LstmDesc(addresses, 3, addressof(activations), 0, 0, 0, 0)
    answers[given] = directml.create_operator(device, LSTM, lstm)
    print(f"{', '.join(f'Output{name}Tensor' for name in given)}: {answers[given]:#010x}")
assert answers.pop(("CellSingle",)) == 0x80070057
assert not any(answers.values())
PYTHON
