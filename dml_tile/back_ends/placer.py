"""Places a model's nodes at a target, in the order of ONNX Runtime.

place()          the errors of a model and the placement of each node: load, functions, level 1, subgraphs, DirectML,
                 CPU, casts of float16
placed_model()   the same at several targets, for reports
runtime_at()     the release of ONNX Runtime at a target

The shapes of values never matter; the sources are those of ``dml_tile.back_ends.kernels``, and
onnxruntime/core/framework/fallback_cpu_capability.cc and DmlExecutionProvider/src/ExecutionProvider.cpp there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import replace
from typing import Final, NamedTuple, TypeAlias

from dml_tile.back_ends.kernels import (
    Kernel,
    Version,
    cpu_kernels,
    directml_kernels,
    known_versions,
    registrations,
    releases,
    version_text,
)
from dml_tile.back_ends.placement import Edge, LoadedModel, ModelNode, NamedNode, PlacedModel, Placement, Reason
from dml_tile.back_ends.queries import QUERIES
from dml_tile.directml.data_types import CARRIERS
from dml_tile.directml.packages import provider_release
from dml_tile.directml.targets import Target


class Runtime(NamedTuple):
    """The release of ONNX Runtime that a target names, ``read`` where its kernels were; the newest for no release."""

    release: Version
    read: Version

    @property
    def is_read(self) -> bool:
        """False for a release after the last whose tables were read."""
        return self.release == self.read


def runtime_at(target: Target) -> Runtime:
    """Return the release of ONNX Runtime at a target, which is the newest that was read unless the name says it."""
    oldest, *_, newest = releases()
    asked = provider_release(target.name) or newest
    return Runtime(asked, min(max(asked, oldest), newest))


NodePlacements: TypeAlias = list[tuple[ModelNode, Reason]]


def placed_model(model: LoadedModel, targets: Sequence[Target]) -> PlacedModel:
    """Return the placements of a model's nodes at targets."""
    nodes: dict[str, tuple[int, NamedNode]] = {}
    reasons: dict[Reason, int] = {}
    errors: list[tuple[int, ...]] = []
    columns: list[dict[int, int]] = []
    for target in targets:
        refused, found = place(model, target)
        errors.append(tuple(reasons.setdefault(reason, len(reasons)) for reason in refused))
        column = {}
        for node, reason in found:
            if node.pointer not in nodes:
                named = NamedNode(node.pointer, node.name, node.domain, node.operator, node.version)
                nodes[node.pointer] = len(nodes), named
            column[nodes[node.pointer][0]] = reasons.setdefault(reason, len(reasons))
        columns.append(column)
    return PlacedModel(
        tuple(node for _, node in nodes.values()),
        tuple(reasons),
        tuple(errors),
        tuple(tuple(column.get(i, -1) for i in range(len(nodes))) for column in columns),
    )


def place(model: LoadedModel, target: Target) -> tuple[list[Reason], NodePlacements]:
    """Return the errors of the model, and the placement of each node, in the order of the file.

    Where a model is not loaded because of its IR version or its opset, none of its nodes is placed.
    """
    runtime = runtime_at(target)
    refused = list(_limits(model, runtime))
    if refused:
        return refused, [(node, refused[0]) for node in _all(model.nodes)]
    errors = [
        Reason(Placement.NONE, "ORT-MODEL-opset-import", f"the model imports no opset of the domain {domain}")
        for domain in model.unimported
    ]
    return errors, list(_Placer(runtime, target).placed(model.nodes))


def _all(nodes: Iterable[ModelNode]) -> Iterator[ModelNode]:
    for node in nodes:
        yield node
        for graph in node.graphs:
            yield from _all(graph)


def _limits(model: LoadedModel, runtime: Runtime) -> Iterator[Reason]:
    limits = releases()[runtime.read]
    bounds = [("ORT-MODEL-ir-version", "IR version", "", model.ir, limits.ir)]
    for domain, opset in model.opsets.items():
        of_domain = f" of {domain}" if domain else ""
        bounds.append(("ORT-MODEL-opset", "opset", of_domain, opset, limits.opsets.get(domain, opset)))
    for rule, what, of_domain, has, most in bounds:
        if has <= most:
            continue
        if runtime.is_read:
            text = f"{what} {has}{of_domain}: onnxruntime {limits.name} loads up to {most}"
            yield Reason(Placement.NONE, rule, text, f"export at {what} {most}{of_domain} or below")
        else:
            later = version_text(runtime.release)
            text = f"{what} {has}{of_domain}: {limits.name} loads up to {most}, and what {later} loads is not known"
            yield Reason(Placement.UNKNOWN, "ORT-UNKNOWN-release", text)


_NOT_OPTIMISED: Final = {"model": ((1, 12), (1, 16)), "onnx": ((1, 12), (10**6, 0))}
"""The first and last release that leaves the nodes of a function's body as they are, by the kind of function.

Measured with wheels of 1.9 to 1.24: before, functions are replaced when the model is loaded.
"""
_NEVER_DIRECTML: Final = frozenset({"string", "complex64", "complex128", "bfloat16"})
_64_BITS: Final = frozenset({"int64", "uint64"})
_TYPES_SINCE: Final = {"double": (1, 10), "int4": (1, 20), "uint4": (1, 20)}
_SEQUENCES_OF_DIRECTML: Final = "ConcatFromSequence"
_CONSTRAINTS_THROW_SINCE: Final = (1, 13)
MAX_SMALL_ELEMENTS: Final = 100
"""The most elements of an initialiser that a node on the CPU may read."""
_STAYS_ON_DIRECTML: Final = ("float16", "bfloat16", "float8", "float4")
_ON_CPU: Final = {("", "Shape"), ("", "Size"), ("", "SequenceLength")}
"""Operators whose results DirectML's kernels leave in the CPU's memory."""
_CONTROL_FLOW: Final = {("", "Loop"), ("", "Scan")}
_THROWING: Final = dict.fromkeys(("RNN", "GRU", "LSTM"), ("layout",))
"""Attributes of onnx's own operators at which the CPU provider's kernels throw, unless they are 0."""

_ON_DIRECTML: Final = Reason(Placement.DIRECTML)


class _Placer:
    """Places the nodes of one model at one target."""

    def __init__(self, runtime: Runtime, target: Target) -> None:
        self._runtime = runtime
        self._release = runtime.read
        self._limits = releases()[runtime.read]
        # a device that does not come into being is taken to be the least that would
        level = max(target.feature_level, self._limits.device_level)
        self._target = replace(target, feature_level=level)
        self._directml = directml_kernels(runtime.read)
        self._cpu = cpu_kernels(runtime.read)
        self._known: dict[tuple[object, ...], tuple[Kernel | None, Reason]] = {}
        self._known_cpu: dict[tuple[object, ...], Reason | None] = {}
        self._made_by_directml: set[Edge] = set()
        self._computed: set[Edge] = set()
        """Values that other releases fold, and this one computes as the model runs."""

    def placed(self, nodes: Sequence[ModelNode]) -> Iterator[tuple[ModelNode, Reason]]:
        """Yield the nodes of a graph with their placements, and those of the graphs inside them."""
        found = list(self._claimed(nodes))
        preferred = self._cpu_preferred(found) if self._limits.cpu_preferred else set()
        for node, _, reason in found:
            if node in preferred and reason.placement is Placement.DIRECTML:
                text = "all that it needs is in the CPU's memory"
                reason = self._on_cpu(node, Reason(Placement.CPU, "ORT-CPU-preferred", text))
            yield node, reason
            for graph in () if reason.placement is Placement.GONE else node.graphs:
                yield from self.placed(graph)

    def _claimed(
        self, nodes: Iterable[ModelNode], outer: str = ""
    ) -> Iterator[tuple[ModelNode, Kernel | None, Reason]]:
        """Yield nodes with DirectML's kernel for them, and with their placements but for what the CPU prefers.

        A node that no provider has as it is, is replaced by its body. ``outer`` says why the node that they are in is
        gone.
        """
        for node in nodes:
            if gone := outer or self._why_gone(node):
                yield node, None, Reason(Placement.GONE, text=gone)
                is_unwrapped = not outer and node.gone is not None and node.gone.is_unwrapped
                for graph in node.graphs:
                    yield from self._claimed(graph, "" if is_unwrapped else gone)
                continue
            kernel, reason = self._directml_reason(node)
            if reason.placement is Placement.CPU:
                if self._is_replaced(node) and node.body is not None and (body := node.body()):
                    yield from self._claimed(body)
                    continue
                reason = self._on_cpu(node, reason)
            if reason.placement is Placement.DIRECTML:
                self._made_by_directml.update(edge for edge in node.outputs if edge)
            yield node, kernel, reason

    def _why_gone(self, node: ModelNode) -> str:
        """Return why the release drops or folds a node; empty if it keeps it."""
        gone = node.gone
        if gone is None:
            return ""
        first, last = _NOT_OPTIMISED.get(node.function, ((0, 0), (0, 0)))
        is_optimised = not first <= self._release <= last or node.operator == "Constant"
        is_computed = not gone.is_computed or (
            self._computed.isdisjoint(node.inputs) and cpu_provider_has(node, self._release)
        )
        if is_optimised and is_computed and gone.since <= self._release:
            return gone.reason
        self._computed.update(edge for edge in node.outputs if edge)
        return ""

    def _is_replaced(self, node: ModelNode) -> bool:
        """Return True if the body replaces a node that DirectML does not take: the CPU has it cast, or not at all."""
        found = self._on_cpu_as_is(node)
        return self._runtime.is_read and found is not None and found.placement is not Placement.UNKNOWN

    def _directml_reason(self, node: ModelNode) -> tuple[Kernel | None, Reason]:
        """Return DirectML's kernel of a node, and whether DirectML takes it; on the CPU means that it does not."""
        if node.fault is not None:
            return None, node.fault
        key = (node.domain, node.operator, node.version, node.input_types, node.output_types)
        if key not in self._known:
            self._known[key] = self._kernel(node)
        kernel, reason = self._known[key]
        if kernel is None or (not kernel.query and not node.implicit and self._limits.int64 == "direct"):
            return kernel, reason
        if kernel.query:
            try:
                refused = QUERIES[kernel.query](node, self._release)
            except ValueError as error:
                return kernel, Reason(Placement.NONE, "ORT-NODE-query", f"{error}: the session does not load")
            if refused:
                return kernel, Reason(Placement.CPU, "ORT-CPU-query", f"DirectML does not take it: {refused}")
        return kernel, self._device_reason(node, kernel) or _ON_DIRECTML

    def _kernel(self, node: ModelNode) -> tuple[Kernel | None, Reason]:
        """Return DirectML's kernel by version and types, and whether the device has the types."""
        kernels = self._directml.get((node.domain, node.operator), ())
        fitting = [kernel for kernel in kernels if kernel.since == node.version]
        if not fitting:
            return None, self._unregistered(node, kernels)
        mismatches = []
        for kernel in fitting:
            mismatch = _mismatch(node, kernel, throws=self._release >= _CONSTRAINTS_THROW_SINCE)
            if mismatch is None:
                return kernel, self._device_reason(node, kernel) or _ON_DIRECTML
            mismatches.append(mismatch)
        # the look-up throws before another kernel is tried; what is unknown may yet fit
        worst = min(mismatches, key=lambda reason: _SEVEREST.index(reason.placement))
        return None, worst

    def _unregistered(self, node: ModelNode, kernels: Sequence[Kernel]) -> Reason:
        name, release = f"{node.operator}-{node.version}", self._limits.name
        if (node.domain, node.operator) in _CONTROL_FLOW:
            return Reason(Placement.CPU, "ORT-CPU-control-flow", f"{node.operator} is always the CPU provider's")
        known = registrations().get((node.domain, node.operator), {})
        later = known.get(node.version)
        since = f"onnxruntime {version_text(later)}" if later and later > self._release else ""
        if not kernels:
            if not known:
                text = f"{name}: no release registers {node.operator}"
                return Reason(Placement.CPU, "ORT-CPU-unregistered", text, subject=name)
            first = version_text(min(known.values()))
            text = f"{name}: not registered in onnxruntime {release}; {node.operator} is from {first} on"
            return Reason(Placement.CPU, "ORT-CPU-unregistered", text, f"use {since} or later" if since else None, name)
        versions = sorted({kernel.since for kernel in kernels})
        below = max((version for version in versions if version < node.version), default=None)
        ways = [f"use {since} or later"] if since else []
        if below is not None and not node.domain:
            next_version = min(
                version for version in known_versions("", node.operator, node.version) if version > below
            )
            ways.append(f"export at opset {next_version - 1} or below")
        text = f"{name}: registered at {', '.join(map(str, versions))}"
        return Reason(Placement.CPU, "ORT-CPU-version", text, ", or ".join(ways) or None, name)

    def _device_reason(self, node: ModelNode, kernel: Kernel) -> Reason | None:
        """Return the reason why the device's data types keep a node from DirectML; None if they do not."""
        given = [
            *((edge, i not in kernel.cpu_inputs, True) for i, edge in enumerate(node.inputs)),
            *((edge, True, True) for edge in node.implicit),
            *((edge, True, False) for edge in node.outputs),
        ]
        for edge, is_of_device, is_input in given:
            if edge is None:
                continue
            if not edge.type:
                return _unknown_type()
            if refused := self._refused_type(edge.type, edge, node, kernel, is_of_device, is_input):
                return Reason(Placement.CPU, "ORT-CPU-device-type", f"{edge.type}: {refused}")
        return None

    def _refused_type(
        self, name: str, edge: Edge, node: ModelNode, kernel: Kernel, is_of_device: bool, is_input: bool
    ) -> str:
        """Return why DirectML does not take a value of this type; empty if it does."""
        if name.startswith("seq("):
            if kernel.runs_on_cpu or node.operator == _SEQUENCES_OF_DIRECTML:
                return ""
            return "DirectML takes no sequences here"
        carrier = CARRIERS.get(_NUMPY_NAMES.get(name, name))
        if carrier is None or name in _NEVER_DIRECTML:
            return "DirectML has no such type"
        if name == "float16" and kernel.shader and not self._target.native_16_bit_ops:
            return "the device lacks Native16BitShaderOpsSupported, which the shader needs"
        if not is_of_device:
            return ""
        if self._release < (since := _TYPES_SINCE.get(name, (0, 0))):
            return f"not taken before onnxruntime {version_text(since)}"
        if name in _64_BITS and self._limits.int64 != "direct":
            return self._refused_strided(name, edge, kernel, is_input)
        return "" if self._target.supports_data_type(carrier) else f"the device at {self._target.name} lacks it"

    def _refused_strided(self, name: str, edge: Edge, kernel: Kernel, is_input: bool) -> str:
        """Return why 1.9 and 1.10 do not take 64-bit integers, as such or as strided ones of 32 bits."""
        way, _, direct = kernel.int64.partition("+")
        may_be_direct = self._limits.int64 != "strided" and (direct or not kernel.int64)
        if may_be_direct and self._target.supports_data_type(CARRIERS[name]):
            return ""
        if not way:
            return f"taken neither as such nor by strides at onnxruntime {self._limits.name}"
        if way == "dml" and is_input and edge not in self._made_by_directml:
            return "taken by 32-bit strides, but only of another DirectML node's result"
        return ""

    def _on_cpu(self, node: ModelNode, reason: Reason) -> Reason:
        """Return the placement of a node that DirectML does not take, for this reason."""
        found = self._on_cpu_as_is(node)
        if found is None:
            thrown = next((name for name in _THROWING.get(node.operator, ()) if node.attributes.get(name)), "")
            if not thrown or node.domain:
                return reason
            text = f"the CPU provider's kernel throws where {thrown} is set, and the session does not load"
            return Reason(Placement.CPU, "ORT-NODE-kernel", f"{reason.text}; {text}", f"export with {thrown} 0")
        if found.placement is not Placement.CPU:
            return self._nobody(node, reason, found)
        return reason._replace(text=f"{reason.text}; {found.text}")

    def _on_cpu_as_is(self, node: ModelNode) -> Reason | None:
        key = (node.domain, node.operator, node.version, node.input_types, node.output_types)
        if key not in self._known_cpu:
            self._known_cpu[key] = self._cpu_reason(node)
        return self._known_cpu[key]

    def _cpu_reason(self, node: ModelNode) -> Reason | None:
        """Return None if the CPU provider takes a node as it is; else whether it takes it cast, or why not."""
        kernels = self._cpu.get((node.domain, node.operator), ())
        fitting = [kernel for kernel in kernels if kernel.since <= node.version <= kernel.to]
        mismatches = [_mismatch(node, kernel, throws=False) for kernel in fitting]
        if None in mismatches:
            return None
        if unknown := next((each for each in mismatches if each and each.placement is Placement.UNKNOWN), None):
            return unknown
        if "float16" in node.input_types and not node.graphs:
            cast = replace(node, inputs=_cast(node.inputs), outputs=_cast(node.outputs))
            if None in [_mismatch(cast, kernel, throws=False) for kernel in fitting]:
                return Reason(Placement.CPU, text="its float16 values are cast to float32 and back")
        return Reason(Placement.NONE, text="of these types" if fitting else "")

    def _nobody(self, node: ModelNode, reason: Reason, found: Reason) -> Reason:
        if found.placement is Placement.UNKNOWN:
            return found
        lacks = f"the CPU provider has none{f' {found.text}' if found.text else ''}"
        if not self._runtime.is_read:
            text = f"{reason.text}; {lacks} in {self._limits.name}, later ones are not known"
            return Reason(Placement.UNKNOWN, "ORT-UNKNOWN-release", text, subject=reason.subject)
        is_bfloat16 = "bfloat16" in node.input_types
        advice = "Cast to float32 before it and back to bfloat16 behind it, which is exact" if is_bfloat16 else None
        text, tries = f"{reason.text}; {lacks}", reason.suggestion or advice
        return Reason(Placement.NONE, "ORT-NODE-no-kernel", text, tries, reason.subject)

    def _cpu_preferred(self, found: Iterable[tuple[ModelNode, Kernel | None, Reason]]) -> set[ModelNode]:
        """Return the nodes that stay on the CPU, since all that they need is there: what follows from shapes."""
        there: set[Edge | None] = set()
        preferred: set[ModelNode] = set()
        for node, kernel, reason in found:
            if reason.placement is Placement.GONE:
                continue
            follows = bool(there) and not there.isdisjoint((*node.inputs, *node.implicit))
            if follows and (kernel is None or self._needs_only(node, kernel, there)):
                if kernel is not None:
                    preferred.add(node)
            elif kernel is None or (node.domain, node.operator) not in _ON_CPU:
                continue
            there.update(filter(None, node.outputs))
        return preferred

    def _needs_only(self, node: ModelNode, kernel: Kernel, there: Set[Edge | None]) -> bool:
        """Return True if DirectML leaves a node to the CPU: its inputs are ``there`` and not for its kernel alone."""
        for i, edge in enumerate(node.inputs):
            if edge is None or (edge.type or "").startswith(_STAYS_ON_DIRECTML):
                return False
            is_small = edge.is_initialiser and edge.elements is not None and edge.elements <= MAX_SMALL_ELEMENTS
            is_there = (is_small and edge not in self._computed) or edge.is_input
            if not is_there and (edge not in there or i in kernel.cpu_inputs):
                return False
        return True


def cpu_provider_has(node: ModelNode, release: Version) -> bool:
    """Return True if the CPU provider of a release that was read has a node as it is."""
    kernels = cpu_kernels(release).get((node.domain, node.operator), ())
    fitting = (kernel for kernel in kernels if kernel.since <= node.version <= kernel.to)
    return any(_mismatch(node, kernel, throws=False) is None for kernel in fitting)


_SEVEREST: Final = (Placement.NONE, Placement.UNKNOWN, Placement.CPU)

_NUMPY_NAMES: Final = {"float": "float32", "double": "float64"}
"""NumPy's names of the types that ONNX's protobuf calls otherwise."""


def _unknown_type() -> Reason:
    text = "the type of one of its values is not known: an operator before it is custom, or its inference fails"
    return Reason(Placement.UNKNOWN, "ORT-UNKNOWN-type", text)


def _mismatch(node: ModelNode, kernel: Kernel, *, throws: bool) -> Reason | None:
    """Return the first constraint of a kernel that a node's types do not meet; None if they meet all.

    Of a constraint the first value that is there counts. A constraint that the operator lacks ``throws``, or is passed.
    """
    unknown = None
    for constraint, types in kernel.types.items():
        places = node.formals.places(constraint)
        if not places and throws and node.formals.is_exact:
            name = f"{node.operator}-{node.version}"
            text = f"{name} has no type {constraint}, which its registration names: the look-up throws, and the session"
            return Reason(Placement.NONE, "ORT-NODE-look-up", f"{text} does not load", subject=name)
        for is_input, i in places:
            edges = node.inputs if is_input else node.outputs
            edge = edges[i] if i < len(edges) else None
            if edge is None:
                continue
            if not edge.type:
                unknown = _unknown_type()
            elif edge.type not in types:
                text = f"{constraint} is {edge.type}; {node.operator}-{node.version} is registered for "
                return Reason(Placement.CPU, "ORT-CPU-type", f"{text}{', '.join(sorted(types)) or 'no type'}")
            break
    return unknown


def _cast(edges: Iterable[Edge | None]) -> tuple[Edge | None, ...]:
    return tuple(Edge("float") if edge and edge.type == "float16" else edge for edge in edges)
