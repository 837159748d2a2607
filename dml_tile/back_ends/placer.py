"""Places a model's nodes at a target, in the order of ONNX Runtime.

place()          the errors of a model and the placement of each node: load, functions, level 1, subgraphs, DirectML,
                 CPU, casts of float16
placed_model()   the same at several targets, for reports

The shapes of values never matter; the sources are those of ``dml_tile.back_ends.kernels``, and
onnxruntime/core/framework/fallback_cpu_capability.cc and DmlExecutionProvider/src/ExecutionProvider.cpp there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Final, NamedTuple, TypeAlias

from dml_tile.back_ends.crossings import RESULTS_ON_CPU, crossings
from dml_tile.back_ends.deployment import Deployment
from dml_tile.back_ends.described_node import NodePlace
from dml_tile.back_ends.kernels import (
    Kernel,
    Kernels,
    Version,
    cpu_kernels,
    directml_kernels,
    first_registration,
    known_versions,
    limits_at,
    releases,
    version_text,
)
from dml_tile.back_ends.known import known_departures
from dml_tile.back_ends.model_descriptions import KernelOf, ModelDescriptions
from dml_tile.back_ends.opsets import opset_advice
from dml_tile.back_ends.placement import (
    Crossing,
    Edge,
    LoadedModel,
    ModelNode,
    OpsetAdvice,
    PlacedModel,
    Placement,
    Reason,
)
from dml_tile.back_ends.possible_fusions import possible_fusion
from dml_tile.back_ends.queries import QUERIES
from dml_tile.directml.data_types import CARRIERS
from dml_tile.directml.targets import Target


def placed_model(models: Sequence[LoadedModel], deployments: Sequence[Deployment], kernel_of: KernelOf) -> PlacedModel:
    """Return the placements of a model's nodes, a target each, of which each has the model as its release loads it."""
    reasons: dict[Reason, int] = {}
    errors: list[tuple[int, ...]] = []
    columns: list[dict[NodePlace, tuple[int, int]]] = []
    known: list[list[tuple[NodePlace, int]]] = []
    values: dict[Crossing, int] = {}
    crossed: list[tuple[int, ...]] = []
    opsets: list[OpsetAdvice | None] = []
    pairs = [*zip(models, deployments, strict=True)]
    placements = [place(model, deployment) for model, deployment in pairs]
    descriptions = ModelDescriptions(kernel_of)
    numbers_of = descriptions.numbers_of(
        [(each.nodes, at.release) for each, at in zip(placements, deployments, strict=True)]
    )
    for (model, deployment), placed_nodes, described in zip(pairs, placements, numbers_of, strict=True):
        of_model, found, of_values = placed_nodes
        release = deployment.release
        errors.append(tuple(reasons.setdefault(reason, len(reasons)) for reason in of_model))
        opsets.append(opset_advice(model, found, deployment, lambda *exported: place(*exported).nodes))
        crossed.append(tuple(values.setdefault(each, len(values)) for each in of_values))
        named = [(node.place, node, reason) for node, reason in found]
        on_directml = [each for each in named if each[2].placement is Placement.DIRECTML]
        columns.append(
            {node: (reasons.setdefault(reason, len(reasons)), described.get(n, -1)) for node, n, reason in named}
        )
        departures = ((node, each) for node, whole, _ in on_directml for each in _known(whole, release))
        known.append([(node, reasons.setdefault(each, len(reasons))) for node, each in departures])
    nodes = tuple(_merged(columns))
    absent = (-1, -1)
    placed, of_nodes = (
        tuple(tuple(column.get(node, absent)[each] for node in nodes) for column in columns) for each in (0, 1)
    )
    numbers = {node: i for i, node in enumerate(nodes)}
    notes = tuple(tuple((numbers[node], reason) for node, reason in each) for each in known)
    described_so = (descriptions.distinct, of_nodes)
    by_target = (tuple(crossed), tuple(opsets))
    return PlacedModel(nodes, tuple(reasons), tuple(errors), placed, *described_so, notes, tuple(values), *by_target)


def _known(node: ModelNode, release: Version) -> Iterator[Reason]:
    """Yield the known departures of a node on DirectML, and what it may be fused into."""
    for rule, text, advice in known_departures(node, release):
        yield Reason(Placement.DIRECTML, rule, text, advice)
    for text in filter(None, (possible_fusion(made, release) for made in node.may_become)):
        yield Reason(Placement.DIRECTML, "ORT-OPERATOR-may-fuse", text)


def _merged(columns: Iterable[Iterable[NodePlace]]) -> Iterator[NodePlace]:
    """Yield the nodes of several targets once each, those of each target in its order."""
    after: dict[NodePlace | None, list[NodePlace]] = {None: []}
    for column in columns:
        before = None
        for node in column:
            if node not in after:
                after[before].append(node)
                after[node] = []
            before = node
    left = after[None]
    while left:
        yield (node := left.pop())
        left += after[node]


class PlacedNodes(NamedTuple):
    """The model's errors, the placement of each node, in the order of the file, and the values that cross."""

    errors: list[Reason]
    nodes: list[tuple[ModelNode, Reason]]
    crossings: list[Crossing]


def place(model: LoadedModel, deployment: Deployment) -> PlacedNodes:
    """Return what placing finds of a model.

    Where a model is not loaded because of its IR version or its opsets, none of its nodes is placed.
    """
    target, release, difference = deployment
    refused = list(_limits(model, release))
    if refused:
        return PlacedNodes(refused, [(node, refused[0]) for node in _all(model.nodes)], [])
    of_model = []
    for domain in model.unimported:
        named, opset = domain or "ai.onnx", limits_at(release).opsets[domain]
        text = f"the model imports no opset of {named}: onnxruntime takes its newest, {opset}"
        advice = f"import opset {opset} of {named}"
        of_model.append(Reason(Placement.NONE, "ORT-MODEL-implied-opset", text, advice))
    if difference:
        of_model.append(Reason(Placement.UNKNOWN, "ORT-UNKNOWN-release", f"onnxruntime {difference}"))
    of_model += (fault for since, fault in model.faults if since <= release)
    placer = _Placer(release, target)
    placed = list(placer.placed(model.nodes))
    return PlacedNodes(of_model, placed, list(placer.crossings(placed)))


def _all(nodes: Iterable[ModelNode]) -> Iterator[ModelNode]:
    for node in nodes:
        yield node
        for graph in node.graphs:
            yield from _all(graph)


def _limits(model: LoadedModel, release: Version) -> Iterator[Reason]:
    if not model.opsets:
        yield Reason(Placement.NONE, "ORT-MODEL-opset-import", "the model imports no opset")
    limits = limits_at(release)
    read = version_text(limits.version)
    advice: str | None = f"model.ir_version = {limits.ir}"
    bounds = [("ORT-MODEL-ir-version", "IR version", "", model.ir, limits.ir, advice)]
    for domain, opset in model.opsets.items():
        of_domain, most = f" of {domain}" if domain else "", limits.opsets.get(domain, opset)
        advice = f"export at opset {most}{of_domain} or below"
        if domain in model.unused:
            advice = f"remove the import of {domain or 'ai.onnx'}, which no node uses"
        elif not domain and opset > most:
            advice = _older_opset(model, opset, most)
        bounds.append(("ORT-MODEL-opset", "opset", of_domain, opset, most, advice))
    for rule, what, of_domain, has, most, advice in bounds:
        text = f"{what} {has}{of_domain}"
        if has > most and release == limits.version:
            text = f"{text}: onnxruntime {read} loads up to {most}"
            yield Reason(Placement.NONE, rule, text, advice)
        elif has > most:
            text = f"{text}: {read} loads up to {most}, and what {version_text(release)} loads is not known"
            yield Reason(Placement.UNKNOWN, "ORT-UNKNOWN-release", text)


def _older_opset(model: LoadedModel, opset: int, most: int) -> str | None:
    """Return the advice on a model of an opset above the most that a release loads; None if no release loads it."""
    if all(node.place.domain or node.fits(most) for node in _all(model.nodes)):
        return _exported_at(most)
    later = next((release for release in releases().values() if release.opsets[""] >= opset), None)
    return later and f"use onnxruntime {version_text(later.version)} or later"


_CONVERTER: Final = "with onnx.version_converter, which lacks some operators"
_FIRST_CONVERTED: Final = 14
"""The oldest opset to which onnx's version_converter takes newer models: it converts no Add or Relu from 14 to 13."""


def _exported_at(opset: int) -> str:
    """Return the advice to use an older opset of onnx's operators."""
    is_converted = opset >= _FIRST_CONVERTED
    return f"export at opset {opset} or below{f', or convert the file to it {_CONVERTER}' if is_converted else ''}"


def _converted_to(first: int, last: int | None) -> str:
    """Return the advice to use a newer opset of onnx's operators, up to the last, if there is one."""
    end = " or later" if last is None else f" to {last}" if last > first else ""
    return f"convert the file to opset {first}{end} {_CONVERTER}"


_NOT_OPTIMISED: Final = {"model": ((1, 12), (1, 16)), "onnx": ((1, 12), (10**6, 0))}
"""The first and last release that leaves the nodes of a function's body as they are, by the kind of function.

Measured with wheels of 1.9 to 1.24: before, functions are replaced when the model is loaded.
"""
_UNSORTED_SINCE: Final = (1, 17)
"""The first release that refuses a node replaced by several, directly in the graph of one that was replaced before it.

Measured with wheels of 1.15 to 1.24: HardSwish and SequenceMap in the body of a SequenceMap; deeper ones load.
"""
_NEVER_DIRECTML: Final = frozenset({"string", "complex64", "complex128", "bfloat16"})
_64_BITS: Final = frozenset({"int64", "uint64"})
_TYPES_SINCE: Final = {"double": (1, 10), "int4": (1, 20), "uint4": (1, 20)}
MAX_SMALL_ELEMENTS: Final = 100
"""The most elements of an initialiser that a node on the CPU may read."""
_STAYS_ON_DIRECTML: Final = ("float16", "bfloat16", "float8", "float4")
_CONTROL_FLOW: Final = {("", "Loop"), ("", "Scan")}
_THROWING: Final = dict.fromkeys((("", "RNN"), ("", "GRU"), ("", "LSTM")), "layout")
"""Attributes at which the CPU provider's kernels throw, unless they are 0."""
_NUMPY_NAMES: Final = {"float": "float32", "double": "float64"}
"""NumPy's names of the types that ONNX's protobuf calls otherwise."""

_ON_DIRECTML: Final = Reason(Placement.DIRECTML)
_MAY_BE_DIRECTML: Final = {Placement.DIRECTML, Placement.UNKNOWN}
_UNKNOWN_TYPE: Final = Reason(
    Placement.UNKNOWN,
    "ORT-UNKNOWN-type",
    "the type of one of its values is not known: an operator before it is custom, or its inference fails",
)

_Answer: TypeAlias = tuple[Kernel | None, Reason, Reason | None]
"""DirectML's kernel of a node, whether DirectML takes the node (on the CPU means that it does not), and why the CPU
provider does not take it as it is; None if it does."""


class _Placer:
    """Places the nodes of one model at one target."""

    def __init__(self, release: Version, target: Target) -> None:
        self._limits = limits_at(release)
        self._release = self._limits.version
        self._is_read = release == self._release
        # a device that does not come into being is taken to be the least that would
        level = self._limits.device_level
        self._target = replace(target, feature_level=level) if target.feature_level < level else target
        self._directml = directml_kernels(self._release)
        self._answers: dict[tuple[object, ...], _Answer] = {}
        self._made_by_directml: set[Edge] = set()
        self._kept: dict[Edge | None, Edge | None] = {}
        """Values that take the place of others, whose nodes are gone."""
        self._in_bodies: set[ModelNode] = set()
        """Nodes that are directly in a graph of a node of an operator's own function."""
        self._computed: set[Edge] = set()
        """Values that other releases fold, and this one computes as the model runs."""

    def placed(self, nodes: Sequence[ModelNode]) -> Iterator[tuple[ModelNode, Reason]]:
        """Yield the nodes of a graph with their placements, and those of the graphs inside them."""
        found = list(self._claimed(nodes))
        preferred = self._cpu_preferred(found) if self._limits.cpu_preferred else set()
        placed: dict[ModelNode, Reason] = {}
        for node, _, reason in found:
            if node in preferred and reason.placement is Placement.DIRECTML:
                reason = Reason(Placement.CPU, "ORT-CPU-preferred", "all that it needs is in the CPU's memory")
                reason = self._on_cpu(node, reason, self._answer(node)[2])
            placed[node] = reason
        on_directml = {node for node, reason in placed.items() if reason.placement is Placement.DIRECTML}
        fused = self._fused(placed, 2, on_directml)
        for node, reason in placed.items():
            made = fused.get(node)
            if isinstance(made, Reason):
                reason = made
            elif made:
                node, reason = made, self._answer(made)[1]
            yield node, reason
            for graph in () if reason.placement is Placement.GONE else node.graphs:
                yield from self.placed(graph)

    def crossings(self, placed: Iterable[tuple[ModelNode, Reason]]) -> Iterator[Crossing]:
        """Yield the values that cross between DirectML and the CPU, of nodes that were all placed before."""
        return crossings(placed, lambda node: self._answer(node)[0], self._read)

    def _fused(
        self, nodes: Iterable[ModelNode], level: int, among: Set[ModelNode]
    ) -> Mapping[ModelNode, ModelNode | Reason]:
        """Return the node that a level fuses from parts ``among`` these, by the last, and why the others are gone."""
        fused: dict[ModelNode, ModelNode | Reason] = {}
        for node in nodes:
            for fusion in node.fusions:
                is_made = fusion.level == level and fusion.since <= self._release <= fusion.to
                if is_made and level > 1:  # which makes no node that another provider would have to take
                    is_made = self._answer(fusion.node)[1].placement is Placement.DIRECTML
                if is_made and among >= {*fusion.parts} and fused.keys().isdisjoint(fusion.parts):
                    at = fusion.node.place
                    text = f"it is part of {at.operator}-{at.version} at {at.pointer}; onnxruntime fuses them"
                    fused |= dict.fromkeys((*fusion.dropped, *fusion.parts), Reason(Placement.GONE, why=text))
                    fused[node] = fusion.node
        return fused

    def _claimed(
        self, nodes: Iterable[ModelNode], outer: str = ""
    ) -> Iterator[tuple[ModelNode, Kernel | None, Reason]]:
        """Yield nodes with DirectML's kernel for them, and with their placements but for what the CPU prefers.

        A node that no provider has as it is, is replaced by its body. ``outer`` says why the node that they are in is
        gone.
        """
        nodes = list(nodes)
        fused = self._fused(nodes, 1, {node for node in nodes if self._is_optimised(node)}) if not outer else {}
        for node in nodes:
            made = fused.get(node, node)
            if isinstance(made, Reason):
                yield node, None, made
                continue
            node = made
            if node.fault is None and (gone := outer or self._why_gone(node)):
                if node.gone and not outer:
                    self._kept.update(zip(node.outputs, map(self._read, node.gone.kept), strict=False))
                yield node, None, Reason(Placement.GONE, why=gone)
                is_unwrapped = not outer and node.gone is not None and node.gone.is_unwrapped
                for graph in node.graphs:
                    yield from self._claimed(graph, "" if is_unwrapped else gone)
                continue
            kernel, reason, lacking = self._answer(node)
            if kernel and kernel.query:
                reason = self._query(node, kernel.query) or reason
            if reason.placement is Placement.CPU:
                # the CPU provider has the node cast, or not at all
                is_replaced = self._is_read and lacking and lacking.placement is not Placement.UNKNOWN
                if is_replaced and node.body is not None:
                    if body := node.body():
                        yield from self._replaced(node, body)
                        continue
                    lacking = _UNKNOWN_TYPE if body is None else lacking
                reason = self._on_cpu(node, reason, lacking)
            if reason.placement is Placement.DIRECTML:
                self._made_by_directml.update(filter(None, node.outputs))
            yield node, kernel, reason

    def _replaced(
        self, node: ModelNode, body: Sequence[ModelNode]
    ) -> Iterator[tuple[ModelNode, Kernel | None, Reason]]:
        """Yield the nodes that replace one, as ``_claimed`` does."""
        is_several = sum(each.place.operator != "Constant" for each in body) > 1
        if node in self._in_bodies and is_several and self._release >= _UNSORTED_SINCE:
            why = (
                "has no kernel, and onnxruntime does not sort the nodes that replace it here: the session does not load"
            )
            advice = "export its parts in its place"
            yield node, None, Reason(Placement.NONE, "ORT-NODE-no-kernel", why, advice, node.place.operator, " ")
            return
        self._in_bodies.update(inner for each in body for graph in each.graphs for inner in graph)
        yield from self._claimed(body)

    def _why_gone(self, node: ModelNode) -> str:
        """Return why the release drops or folds a node; empty if it keeps it."""
        gone = node.gone
        if gone is None:
            return ""
        is_optimised = self._is_optimised(node) or node.place.operator == "Constant"
        is_computed = not gone.is_computed or (
            self._computed.isdisjoint(node.inputs) and cpu_provider_has(node, self._release)
        )
        if is_optimised and is_computed and gone.since <= self._release:
            return gone.reason
        self._computed.update(filter(None, node.outputs))
        return ""

    def _read(self, edge: Edge | None) -> Edge | None:
        """Return the value that is read in place of one whose node is gone; any other value itself."""
        return self._kept.get(edge, edge)

    def _is_optimised(self, node: ModelNode) -> bool:
        first, last = _NOT_OPTIMISED.get(node.place.function, ((0, 0), (0, 0)))
        return not first <= self._release <= last

    def _query(self, node: ModelNode, query: str) -> Reason | None:
        """Return why a support query refuses a node; None if it does not."""
        try:
            refused = QUERIES[query](node, self._release)
        except ValueError as error:
            return Reason(Placement.NONE, "ORT-NODE-query", f"{error}: the session does not load")
        return Reason(Placement.CPU, "ORT-CPU-query", f"DirectML does not take it: {refused}") if refused else None

    def _answer(self, node: ModelNode) -> _Answer:
        """Return what the providers' tables, and the device, say of a node's version and types."""
        if node.fault is not None:
            return None, node.fault, None
        made = self._made_by_directml
        strided = self._limits.int64 != "direct" and tuple(self._read(edge) in made for edge in node.inputs)
        # a type is empty if its value is left out, None if it is unknown
        types = tuple(
            tuple(edge.type if edge else "" for edge in edges) for edges in (node.inputs, node.outputs, node.implicit)
        )
        key = (node.place.domain, node.place.operator, node.place.version, types, strided)
        if key not in self._answers:
            self._answers[key] = *self._kernel(node), self._why_not_on_cpu(node)
        return self._answers[key]

    def _kernel(self, node: ModelNode) -> tuple[Kernel | None, Reason]:
        """Return DirectML's kernel by version and types, and whether the device has the types."""
        kernel, mismatch = _fitting(node, self._directml)
        if kernel:
            return kernel, self._device_reason(node, kernel)
        if mismatch is None:
            mismatch = self._unregistered(node)
        elif mismatch is not _UNKNOWN_TYPE:
            mismatch = mismatch._replace(suggestion=self._later(directml_kernels, node))
        return None, mismatch

    def _unregistered(self, node: ModelNode) -> Reason:
        """Return the reason why the release has no kernel for the node's version."""
        operator, name = (node.place.domain, node.place.operator), f"{node.place.operator}-{node.place.version}"
        kernels = self._directml.get(operator, ())
        if operator in _CONTROL_FLOW:
            return Reason(Placement.CPU, "ORT-CPU-control-flow", f"{node.place.operator} is always the CPU provider's")
        first = first_registration(*operator)
        ways = list(filter(None, [self._later(directml_kernels, node)]))
        if first is None:
            text = f"no release registers {node.place.operator}"
            if node.parts:
                text = f"{text}, which onnxruntime fuses from {node.parts} nodes at opset {node.introduced} and above"
            if node.parts and node.introduced > 1:
                ways.append(f"export at opset {node.introduced - 1} or below")
            elif node.body and node.introduced > 1:
                ways.append(f"export at opset {node.introduced - 1} or below: the exporter then writes its parts")
        elif not kernels:
            since = version_text(first)
            text = f"not registered in onnxruntime {version_text(self._release)}; {operator[1]} is from {since} on"
        else:
            versions = sorted({kernel.since for kernel in kernels})
            text = f"registered at {', '.join(map(str, versions))}"
            below = [version for version in versions if version < node.place.version]
            nearest = (below[-1:] or versions)[-1 if below else 0]
            _, there = self._kernel(replace(node, place=node.place._replace(version=nearest)))
            may_take = there.placement in _MAY_BE_DIRECTML
            if may_take and not node.place.domain and (not below or node.fits(nearest)):
                others = sorted((known_versions(*operator) | {node.place.version}) - {*versions})
                end = next((each - 1 for each in others if each > nearest), None)
                ways.append(_exported_at(end) if below and end else _converted_to(nearest, end))
        rule = "ORT-CPU-version" if kernels else "ORT-CPU-unregistered"
        return Reason(Placement.CPU, rule, text, ", or ".join(ways) or None, name, ": ")

    def _later(self, kernels: Callable[[Version], Kernels], node: ModelNode) -> str | None:
        """Return the advice to use the first later release with a provider's kernel for a node; None if none has."""
        for release in releases():
            if release > self._release:
                kernel, mismatch = _fitting(node, kernels(release))
                if kernel or mismatch is _UNKNOWN_TYPE:
                    return f"use onnxruntime {version_text(release)} or later"
        return None

    def _device_reason(self, node: ModelNode, kernel: Kernel) -> Reason:
        """Return whether the device's data types keep a node from DirectML."""
        inputs = ((edge, i in kernel.cpu_inputs) for i, edge in enumerate(node.inputs))
        others = ((edge, False) for edge in (*node.implicit, *node.outputs))
        for edge, is_on_cpu in (*inputs, *others):
            if edge is None:
                continue
            if not edge.type:
                return _UNKNOWN_TYPE
            is_made = edge in node.outputs or self._read(edge) in self._made_by_directml
            if refused := self._refused_type(edge.type, kernel, is_on_cpu=is_on_cpu, is_made=is_made):
                return Reason(Placement.CPU, "ORT-CPU-device-type", f"{edge.type}: {refused}")
        return _ON_DIRECTML

    def _refused_type(self, name: str, kernel: Kernel, *, is_on_cpu: bool, is_made: bool) -> str:
        """Return why DirectML does not take a value of this type; empty if it does.

        A value ``is_on_cpu`` if the kernel reads it there; it ``is_made`` by this node of DirectML's or another.
        """
        if name.startswith("seq("):
            return "" if kernel.sequences else "DirectML takes no sequences here"
        carrier = CARRIERS.get(_NUMPY_NAMES.get(name, name))
        if carrier is None or name in _NEVER_DIRECTML:
            return "DirectML has no such type"
        if name == "float16" and kernel.shader and not self._target.native_16_bit_ops:
            return "the device lacks Native16BitShaderOpsSupported, which the shader needs"
        if is_on_cpu:
            return ""
        if self._release < (since := _TYPES_SINCE.get(name, (0, 0))):
            return f"not taken before onnxruntime {version_text(since)}"
        has_type = self._target.supports_data_type(carrier)
        if name not in _64_BITS or self._limits.int64 == "direct":
            return "" if has_type else f"the device at {self._target.name} lacks it"
        # 1.9 and 1.10 take 64-bit integers as such, or as strided ones of 32 bits
        way, _, direct = kernel.int64.partition("+")
        if has_type and self._limits.int64 != "strided" and (direct or not kernel.int64):
            return ""
        if not way:
            return f"taken neither as such nor by strides at onnxruntime {version_text(self._release)}"
        is_taken = way != "dml" or is_made
        return "" if is_taken else "taken by 32-bit strides, but only of another DirectML node's result"

    def _on_cpu(self, node: ModelNode, reason: Reason, lacking: Reason | None) -> Reason:
        """Return the placement of a node that DirectML does not take, for this reason."""
        if lacking is None:
            attribute = _THROWING.get((node.place.domain, node.place.operator), "")
            if not node.attributes.get(attribute):
                return reason
            text = f"the CPU provider's kernel throws where {attribute} is set, and the session does not load"
            return Reason(Placement.CPU, "ORT-NODE-kernel", f"{reason.text}; {text}", f"export with {attribute} 0")
        if lacking.placement is Placement.UNKNOWN:
            return lacking
        why = f"{reason.why}; {lacking.text}"
        if lacking.placement is Placement.CPU:
            return reason._replace(why=why)
        if not self._is_read:
            why = f"{why} in {version_text(self._release)}, later ones are not known"
            return reason._replace(placement=Placement.UNKNOWN, rule="ORT-UNKNOWN-release", why=why, suggestion=None)
        is_bfloat16 = any(edge.type == "bfloat16" for edge in node.inputs if edge)
        cast = "Cast to float32 before it and back to bfloat16 behind it, which is exact" if is_bfloat16 else None
        advice = reason.suggestion or lacking.suggestion or cast
        return reason._replace(placement=Placement.NONE, rule="ORT-NODE-no-kernel", why=why, suggestion=advice)

    def _why_not_on_cpu(self, node: ModelNode) -> Reason | None:
        """Return None if the CPU provider takes a node as it is; else whether it takes it cast, or why not."""
        kernel, mismatch = _fitting(node, cpu_kernels(self._release))
        if kernel or mismatch is _UNKNOWN_TYPE:
            return mismatch
        if not node.graphs and any(edge.type == "float16" for edge in node.inputs if edge):
            cast = replace(node, inputs=_cast(node.inputs), outputs=_cast(node.outputs))
            if cpu_provider_has(cast, self._release):
                return Reason(Placement.CPU, why="its float16 values are cast to float32 and back")
        text = f"the CPU provider has none{' of these types' if mismatch else ''}"
        later = self._later(cpu_kernels, node)
        return Reason(Placement.NONE, why=text, suggestion=later and f"{later}, whose CPU provider has it")

    def _cpu_preferred(self, found: Iterable[tuple[ModelNode, Kernel | None, Reason]]) -> set[ModelNode]:
        """Return the nodes that stay on the CPU, since all that they need is there: what follows from shapes."""
        there: set[Edge | None] = set()
        preferred: set[ModelNode] = set()
        for node, kernel, reason in found:
            if reason.placement is Placement.GONE:
                continue
            inputs, implicit = (list(map(self._read, edges)) for edges in (node.inputs, node.implicit))
            follows = stays_there = not there.isdisjoint((*inputs, *implicit))
            if kernel:
                if follows and all(self._is_there(i, edge, kernel, there) for i, edge in enumerate(inputs)):
                    preferred.add(node)
                stays_there = node in preferred or (node.place.domain, node.place.operator) in RESULTS_ON_CPU
            if stays_there:
                there.update(filter(None, node.outputs))
        return preferred

    def _is_there(self, i: int, edge: Edge | None, kernel: Kernel, there: Set[Edge | None]) -> bool:
        """Return True if an input is ``there``, in the CPU's memory, and not for the kernel alone."""
        if edge is None or (edge.type or "").startswith(_STAYS_ON_DIRECTML):
            return False
        is_small = edge.is_initialiser and edge.elements is not None and edge.elements <= MAX_SMALL_ELEMENTS
        is_constant = is_small and edge not in self._computed
        return is_constant or edge.is_input or (edge in there and i not in kernel.cpu_inputs)


def cpu_provider_has(node: ModelNode, release: Version) -> bool:
    """Return True if the CPU provider of a release that was read has a node as it is."""
    return _fitting(node, cpu_kernels(release))[0] is not None


def _fitting(node: ModelNode, table: Kernels) -> tuple[Kernel | None, Reason | None]:
    """Return a provider's kernel for a node's version and types; else why none fits, None if there is none at all."""
    kernels = table.get((node.place.domain, node.place.operator), ())
    mismatches = []
    for kernel in kernels:
        if kernel.since <= node.place.version <= kernel.to:
            mismatch = _mismatch(node, kernel)
            if mismatch is None:
                return kernel, None
            mismatches.append(mismatch)
    # an unknown type may yet fit
    return None, _UNKNOWN_TYPE if _UNKNOWN_TYPE in mismatches else next(iter(mismatches), None)


def _mismatch(node: ModelNode, kernel: Kernel) -> Reason | None:
    """Return the first constraint of a kernel that a node's types do not meet; None if they meet all.

    A constraint names a type variable, or else a value. The first value of it that is there counts.
    """
    name, unknown = f"{node.place.operator}-{node.place.version}", None
    if kernel.throws:
        text = f"has no type {next(iter(kernel.types))}, which its registration names"
        text = f"{text}: the look-up throws, and the session does not load"
        return Reason(Placement.NONE, "ORT-NODE-look-up", text, operator=name, joint=" ")
    values = [
        *zip(node.formals.inputs, node.inputs, strict=False),
        *zip(node.formals.outputs, node.outputs, strict=False),
    ]
    for constraint, types in kernel.types.items():
        of_variable = (edge for (_, variable), edge in values if variable == constraint)
        of_name = (edge for (value, _), edge in values if value == constraint)
        edge = next(filter(None, (*of_variable, *of_name)), None)
        if edge and not edge.type:
            unknown = _UNKNOWN_TYPE
        elif edge and edge.type not in types:
            text = f"{constraint} is {edge.type}; {name} is registered for {', '.join(sorted(types)) or 'no type'}"
            return Reason(Placement.CPU, "ORT-CPU-type", text)
    return unknown


def _cast(edges: Iterable[Edge | None]) -> tuple[Edge | None, ...]:
    return tuple(Edge("float") if edge and edge.type == "float16" else edge for edge in edges)
