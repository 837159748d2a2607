"""Nodes as a kernel of ONNX Runtime's DirectML provider sees them, written in one line each.

    com.microsoft:MatMulNBits-1 @1.24 N=16 K=32: float32[2,32] uint8[16,1,16] float32[16] -> float32[2,16]

An input is a type and sizes; ``_`` is one that is left out, ``?`` stands for an unknown size. ``int64[2]=1,2`` is
constant, and so is ``float32[2]=`` with elements that are drawn: numbers that suit a scale or a zero point for scalars.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from dml_tile.back_ends.descriptions import Described, KernelNode, describe
from dml_tile.back_ends.descriptions.node import Input
from dml_tile.back_ends.kernels import version_of
from dml_tile.descriptors.operator import OperatorDesc

_VALUE: Final = re.compile(r"(?P<type>\w+)\[(?P<sizes>[\d,?]*)\](?P<constant>=(?P<elements>[-\d.,]*))?")


def kernel_node(text: str) -> KernelNode:
    """The node that one line describes."""
    head, _, values = text.partition(": ")
    name, *words = head.split()
    given, _, made = values.partition("->")
    domain, _, operator = name.rpartition(":")
    operator, _, since = operator.partition("-")
    release = next((word[1:] for word in words if word[0] == "@"), "1.24")
    attributes = dict(word.split("=", 1) for word in words if word[0] != "@")
    inputs, outputs = ([*_values(each.split(), side)] for each, side in ((given, "i"), (made, "o")))
    return KernelNode(
        *(domain, operator, int(since or 1), version_of(release), inputs, outputs),
        {key: _attribute(value) for key, value in attributes.items()},
    )


def _attribute(value: str) -> Any:
    try:
        return json.loads(value)
    except ValueError:
        return value


def _values(texts: Iterable[str], side: str) -> Iterable[Input | None]:
    for i, text in enumerate(texts):
        parts = _VALUE.fullmatch(text)
        if parts is None:
            assert text == "_", text
            yield None
            continue
        sizes = [size for size in parts["sizes"].split(",") if size]
        shape = None if "?" in sizes else tuple(map(int, sizes))
        elements = partial(_elements, parts["type"], shape or (), parts["elements"], i)
        yield Input(f"{side}{i}", parts["type"], shape, bool(parts["constant"]), elements=elements)


def _elements(name: str, shape: Sequence[int], text: str | None, seed: int) -> Any:
    dtype, rng = np.dtype(name if name in np.sctypeDict else "uint8"), np.random.default_rng(seed)
    if text:
        return np.array([float(each) for each in text.split(",")]).astype(dtype).reshape(shape)
    if dtype.kind == "f":
        return np.asarray(rng.standard_normal(shape) if shape else 0.05, dtype)
    most = np.iinfo(dtype).max if dtype in (np.int8, np.uint8) else 2
    return np.asarray(rng.integers(0, most, shape) if shape else most // 2, dtype)


def operator_descs(described: Iterable[Described]) -> list[OperatorDesc]:
    return [OperatorDesc.model_validate(each.desc) for each in described]


def names(text: str) -> str:
    """The names of the operators that a node becomes."""
    return " ".join(each.operator for each in describe(kernel_node(text)))
