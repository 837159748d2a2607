"""The nodes that onnxruntime fuses into one that a provider's kernel computes, a pattern each.

Before a provider is asked (level 1): GELU and layer normalisation, where the opset has the operator. Behind that
(level 2), of nodes that are all on DirectML: these two, the GELUs with a bias or by tanh or sigmoid, and products of
transposed and scaled matrices.

Source: microsoft/onnxruntime, onnxruntime/core/optimizer/: graph_transformer_utils.cc, and a file for each fusion, read
at the tags of 1.14 to 1.22, the branches of 1.23 and 1.24, and main of 2026-08
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain
from math import prod, sqrt
from typing import Final, NamedTuple

import numpy as np

from dml_tile.back_ends.descriptions.node import Input, KernelNode
from dml_tile.back_ends.kernels import Version
from dml_tile.back_ends.placement import Edge, Fusion
from dml_tile.readers.onnx.matches import (
    EVER,
    Graph,
    Match,
    before_gemm,
    early_shape,
    is_kind,
    is_number,
    is_scalar,
    item,
)
from dml_tile.readers.onnx.nodes import Node
from dml_tile.readers.onnx.operators import resolved
from dml_tile.readers.onnx.products import products

MICROSOFT: Final = "com.microsoft"


class _Row(NamedTuple):
    """Releases, first and last, that fuse a pattern at a level in models of opsets, first and last."""

    domain: str
    level: int
    since: Version
    to: Version = EVER
    opsets: tuple[int, int] = (7, 1000)


_ROWS: Final = {
    "Gelu": (
        _Row("", 1, (1, 20), opsets=(20, 1000)),
        _Row(MICROSOFT, 2, (1, 20), opsets=(7, 19)),
        _Row(MICROSOFT, 2, (1, 14), (1, 19)),
    ),
    "LayerNormalization": (
        _Row("", 1, (1, 20), opsets=(17, 1000)),
        _Row("", 2, (1, 20), opsets=(7, 16)),
        _Row("", 2, (1, 14), (1, 19)),
    ),
    "BiasGelu": (_Row(MICROSOFT, 2, (1, 14)),),
    "QuickGelu": (_Row(MICROSOFT, 2, (1, 15)),),
    "FastGelu": (_Row(MICROSOFT, 2, (1, 18)),),
    "FusedMatMul": (_Row(MICROSOFT, 2, (1, 14)),),
}


def _gelu(graph: Graph, div: Node) -> Iterator[Match]:
    """Divide by the root of 2; Erf; add 1; multiply by the input, and by 0.5 at either place."""
    links = graph.chain(div, "Erf", "Add", "Mul") if div.kind == "Div" else []
    if not links or graph.beside(div, sqrt(2), 1.4142099618911743) != 0 or graph.beside(links[1], 1) < 0:
        return
    x, mul = graph.names(div)[0], links[-1]
    half, since, to = graph.parent(mul, "Mul"), (0, 0), EVER
    is_official = graph.opset >= _ROWS["Gelu"][0].opsets[0]
    if half and (made := graph.taken.get(half)) and made.parts[-1] is half:
        half, since = None, _ROWS[made.operator][-1].since  # no Mul then
        to = (1, 19) if is_official and made.operator != "Gelu" else EVER
    if half:
        i = graph.beside(half, 0.5)
        if i < 0 or graph.names(half)[i] != x or len(graph.users(half)) != 1:
            return
        parts = [div, *links[:-1], half, mul]
    else:
        last = graph.chain(mul, "Mul")
        if not last or x not in graph.names(mul) or graph.beside(last[0], 0.5) < 0:
            return
        parts = [div, *links, *last]
    yield from _biased(graph, "BiasGelu", parts, div, 0, to=(1, 19) if is_official else EVER)
    yield Match("Gelu", parts, [(div, 0)], since, to)


def _biased(
    graph: Graph, operator: str, parts: Sequence[Node], node: Node, i: int, to: Version = EVER
) -> Iterator[Match]:
    """Yield the match with the Add of a bias before a GELU, whose input is that of a node."""
    add = graph.maker(node, i)
    if add is None or add.kind != "Add" or not (users := graph.users(add)) or not set(users) <= {*parts}:
        return
    shapes = [early_shape(value) or () for value in add.inputs]
    bias = next((i for i, shape in enumerate(shapes) if len(shape) == 1), None)
    last = {shape[-1] for shape in shapes if shape}
    if bias is None or not all(shapes) or len(last) != 1 or None in last:
        return
    product = graph.parent(add, "MatMul")
    to = min(to, before_gemm(graph, product)) if product else to
    yield Match(operator, [add, *parts], [(add, 1 - bias), (add, bias)], to=to)


def _microsoft_gelu(graph: Graph, node: Node) -> Iterator[Match]:
    """Com.microsoft's own GELUs, of which those with a bias are fused."""
    if node.kind == f"{MICROSOFT}.Gelu":
        yield from _biased(graph, "BiasGelu", [node], node, 0)
    elif node.kind == f"{MICROSOFT}.FastGelu" and len(node.proto.input) == 1:
        yield from _biased(graph, "FastGelu", [node], node, 0)


def _fast_gelu(graph: Graph, first: Node) -> Iterator[Match]:
    """GELU by tanh, with x * x or the third power of x."""
    if first.kind == "Mul" and (i := graph.beside(first, 0.044715)) >= 0:
        x = graph.names(first)[i]
        links = graph.chain(first, "Mul", "Add", "Mul", "Tanh", "Add", "Mul")
        root = graph.parent(links[2], "Mul") if links else None
        if root is None or x not in graph.names(links[0]) or graph.beside(links[1], 1) < 0:
            return
        if (j := graph.beside(root, 0.7978845834732056)) < 0 or graph.names(root)[j] != x:
            return
        if len(graph.users(root)) != 1:
            return
        parts = [first, *links[:3], root, *links[3:]]
    elif first.kind == "Pow" and is_number(first.inputs[1], 3):
        i, x = 0, graph.names(first)[0]
        links = graph.chain(first, "Mul", "Add", "Mul", "Tanh", "Add", "Mul")
        if not links or graph.beside(links[0], 0.044714998453855515) < 0 or x not in graph.names(links[1]):
            return
        if graph.beside(links[2], 0.7978845834732056) < 0 or graph.parent(first, "Cast"):
            return
        parts = [first, *links]
    else:
        return
    add, last = parts[-2:]
    half = next((graph.maker(last, j) for j in (0, 1) if graph.maker(last, j) is not add), None)
    if half is None or half.kind != "Mul" or graph.beside(add, 1) < 0 or not graph.users(last):
        return
    if (j := graph.beside(half, 0.5)) >= 0 and graph.names(half)[j] == x and len(graph.users(half)) == 1:
        parts = [*parts[:-1], half, last]
        yield from _biased(graph, "FastGelu", parts, first, i)
        yield Match("FastGelu", parts, [(first, i)])


def _quick_gelu(graph: Graph, sigmoid: Node) -> Iterator[Match]:
    """Multiply a value by the Sigmoid of its product with a number, or of itself."""
    last = graph.chain(sigmoid, "Mul") if sigmoid.kind == "Sigmoid" else []
    if not last:
        return
    scale = graph.maker(sigmoid)
    if scale and scale.kind == "Mul" and graph.users(scale) == [sigmoid] and len(scale.inputs) == len("AB"):
        i = next((1 - i for i in (0, 1) if is_scalar(scale.inputs[i])), -1)
        if i >= 0 and graph.names(scale)[i] in graph.names(last[0]):
            alpha = item(scale.inputs[1 - i])
            yield Match("QuickGelu", [scale, sigmoid, *last], [(scale, i)], attributes={"alpha": alpha})
            return
    if graph.names(sigmoid)[0] in graph.names(last[0]):
        yield Match("QuickGelu", [sigmoid, *last], [(sigmoid, 0)], attributes={"alpha": 1.0})


def _layer_norm(graph: Graph, mean: Node) -> Iterator[Match]:
    """Subtract the mean, divide by the root of the mean square, scale by a vector and add one, with Casts between."""
    subs = graph.users(mean) if mean.kind == "ReduceMean" else []
    x = graph.names(mean)[:1]
    if len(subs) not in (1, 2) or any(sub.kind != "Sub" or x[0] not in graph.names(sub) for sub in subs):
        return
    parts, source = [mean, *subs], mean
    leading, sub = graph.maker(mean), subs[0]
    if leading and is_kind(leading, "Cast") and len(graph.users(leading)) == len(subs) + 1:
        parts, source = [leading, *parts], leading
    cast = next(iter(graph.chain(sub, "Cast")), None) if len(subs) == 1 else None
    if cast and len(graph.users(cast)) == 2:
        parts.append(cast)
    else:
        cast = None
    if len(graph.users(sub)) != (2 if len(subs) == 1 and not cast else 1):
        return
    after = [*graph.users(cast or sub), *(user for each in subs[1:] for user in graph.users(each))]
    div = next((each for each in after if each.kind == "Div"), None)
    tail = div and (graph.chain(div, "Mul", "Add") or graph.chain(div, "Cast", "Mul", "Add"))
    root = div and graph.parent(div, "Sqrt")
    add = root and graph.parent(root, "Add")
    square = add and graph.parent(add, "ReduceMean")
    power = square and graph.maker(square)
    if not (div and tail and root and add and square and power) or power.kind != "Pow":
        return
    if any(len(graph.users(each)) != 1 for each in (root, add, square, power)):
        return
    parts += [div, root, add, square, power]
    other = graph.parent(power, "Cast")
    if other and other is not cast:
        if len(graph.users(other)) != 1:
            return
        parts.append(other)
    elif not other and graph.parent(power, "Sub") not in subs:
        return
    scale, bias = (next((i for i in (1, 0) if len(early_shape(each.inputs[i]) or ()) == 1), None) for each in tail[-2:])
    if scale is None or bias is None:
        return
    vectors = tail[-2].inputs[scale], tail[-1].inputs[bias]
    first, second = (size if isinstance(size, int) else 0 for value in vectors for size in early_shape(value) or ())
    if first != second:
        return
    is_known = all(each.is_folded or (each.edge and each.edge.is_input) for each in vectors)
    is_last = all(_is_last(each) for each in (mean, square))
    inputs = [(source, 0), (tail[-2], scale), (tail[-1], bias)]
    given = add.inputs[1]
    epsilon = item(given) if is_scalar(given) and given.data_type == "float32" else 1e-5
    yield Match(
        "LayerNormalization",
        [*parts, *tail],
        inputs,
        since=(1, 14) if is_known else (1, 17),
        to=EVER if is_last else (1, 15),
        attributes={"axis": -1, "epsilon": epsilon},
    )


def _is_last(mean: Node) -> bool:
    """Return True for a mean over the last axis alone."""
    given = mean.inputs[1].constant if len(mean.inputs) > 1 else mean.attributes["axes"].ints
    axes = np.array(given if given is not None else ()).ravel().tolist()
    rank = len(early_shape(mean.inputs[0]) or ())
    return axes == [-1] or (axes == [rank - 1] and rank > 1)


_PATTERNS: Final = (_layer_norm, _fast_gelu, _quick_gelu, _gelu, _microsoft_gelu)


def note_fusions(graph: Graph) -> None:
    """Note at the last of the nodes that onnxruntime fuses into which it does, the largest fusion first."""
    opset = graph.opset
    matches = (match for pattern in _PATTERNS for node in graph.nodes for match in pattern(graph, node))
    for match in chain(matches, products(graph)):
        last = match.parts[-1]
        if all(graph.taken.get(part, match).parts[-1] is last for part in match.parts):
            graph.taken |= dict.fromkeys(match.parts, match)
            for row in _ROWS[match.operator]:
                since, to = max(row.since, match.since), min(row.to, match.to)
                if row.opsets[0] <= opset <= row.opsets[1] and since <= to:
                    made = match._replace(since=since, to=to)
                    last.placed.fusions += (fusion_of(made, row.domain, row.level, opset),)


def fusion_of(match: Match, domain: str, level: int, opset: int) -> Fusion:
    """Return the fusion of a match, whose operator is of a domain, at a level."""
    operator = resolved(domain, match.operator, 1 if domain else opset)
    last = match.parts[-1].placed
    makers, base = match.makers or match.parts[-1:], match.base and match.base.placed

    def kernel(release: Version) -> KernelNode:
        kernels = {node: node.placed.kernel for node in (*match.parts, *(node for node, _ in match.inputs))}
        seen = {node: make(release) for node, make in kernels.items() if make}
        own = seen[match.base].attributes if match.base else {}
        return seen[match.parts[-1]]._replace(
            domain=domain,
            operator=match.operator,
            since=operator.version,
            inputs=[_packed(seen[node].inputs[i], match.packed.get(at)) for at, (node, i) in enumerate(match.inputs)],
            outputs=[each for node in makers for each in seen[node].outputs],
            attributes={**own, **match.attributes},
            groups=(),
        )

    made = replace(
        last,
        place=last.place._replace(domain=domain, operator=match.operator, version=operator.version),
        inputs=tuple(
            _packed_edge(node.placed.inputs[i], match.packed.get(at)) for at, (node, i) in enumerate(match.inputs)
        ),
        outputs=tuple(each for node in makers for each in node.placed.outputs),
        formals=operator.formals,
        attributes=base.attributes if base else {},
        body=None,
        introduced=operator.introduced,
        kernel=kernel if last.kernel else None,
        fusions=(),
        parts=len(match.parts),
    )
    gone = tuple(node.placed for node in match.dropped)
    return Fusion(made, tuple(node.placed for node in match.parts), level, match.since, match.to, gone)


def _packed(value: Input | None, sizes: tuple[int, ...] | None) -> Input | None:
    """Return a value as it is, or as bytes of these sizes, whose elements are not read."""
    return value._replace(type="uint8", shape=sizes, elements=lambda: None) if value and sizes else value


def _packed_edge(edge: Edge | None, sizes: tuple[int, ...] | None) -> Edge | None:
    return replace(edge, type="uint8", elements=prod(sizes)) if edge and sizes else edge
