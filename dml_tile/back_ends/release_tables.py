"""What a release's tables, and a target's device, say of a model's opsets and of one node, whatever is around it.

why_not_loaded()   why a release loads no model of an IR version and opsets
NodeTables         DirectML's kernel of a node's version and types, what keeps the node from it, and the CPU's

The sources are those of ``dml_tile.back_ends.kernels``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

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
from dml_tile.back_ends.placement import Edge, LoadedModel, ModelNode, Placement, Reason
from dml_tile.directml.data_types import CARRIERS
from dml_tile.directml.targets import Target

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


def all_nodes(nodes: Iterable[ModelNode]) -> Iterator[ModelNode]:
    """Yield the nodes of a graph, and those of the graphs inside them."""
    for node in nodes:
        yield node
        for graph in node.graphs:
            yield from all_nodes(graph)


def why_not_loaded(model: LoadedModel, release: Version) -> Iterator[Reason]:
    """Yield the reasons why a release does not load a model of its IR version and opsets."""
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
    if all(node.place.domain or node.fits(most) for node in all_nodes(model.nodes)):
        return _exported_at(most)
    later = next((release for release in releases().values() if release.opsets[""] >= opset), None)
    return later and f"use onnxruntime {version_text(later.version)} or later"


_NEVER_DIRECTML: Final = frozenset({"string", "complex64", "complex128", "bfloat16"})
_64_BITS: Final = frozenset({"int64", "uint64"})
_TYPES_SINCE: Final = {"double": (1, 10), "int4": (1, 20), "uint4": (1, 20)}
_CONTROL_FLOW: Final = {("", "Loop"), ("", "Scan")}
_THROWING: Final = dict.fromkeys((("", "RNN"), ("", "GRU"), ("", "LSTM")), "layout")
"""Attributes at which the CPU provider's kernels throw, unless they are 0."""
_NUMPY_NAMES: Final = {"float": "float32", "double": "float64"}
"""NumPy's names of the types that ONNX's protobuf calls otherwise."""

_ON_DIRECTML: Final = Reason(Placement.DIRECTML)
_MAY_BE_DIRECTML: Final = {Placement.DIRECTML, Placement.UNKNOWN}
UNKNOWN_TYPE: Final = Reason(
    Placement.UNKNOWN,
    "ORT-UNKNOWN-type",
    "the type of one of its values is not known: an operator before it is custom, or its inference fails",
)

Answer: TypeAlias = tuple[Kernel | None, Reason]
"""DirectML's kernel of a node, and whether DirectML takes the node; on the CPU means that it does not."""


class NodeTables:
    """The tables of one release, or of the nearest that was read, over a target's device."""

    def __init__(self, release: Version, target: Target) -> None:
        self.limits = limits_at(release)
        self.release = self.limits.version
        self.is_read = release == self.release
        # a device that does not come into being is taken to be the least that would
        level = self.limits.device_level
        self._target = replace(target, feature_level=level) if target.feature_level < level else target
        self._directml = directml_kernels(self.release)
        self._answers: dict[tuple[object, ...], Answer] = {}
        self._lacking: dict[tuple[object, ...], Reason | None] = {}

    def answer(self, node: ModelNode, made: tuple[bool, ...] = ()) -> Answer:
        """Return what the tables, and the device, say of a node's version and types.

        ``made`` says of each input, then of each value that the graphs inside the node read, whether a node on DirectML
        makes it; none does by default.
        """
        if node.fault is not None:
            return None, node.fault
        key = *_signature(node), made
        if key not in self._answers:
            self._answers[key] = self._kernel(node, made)
        return self._answers[key]

    def alone(self, node: ModelNode) -> Reason:
        """Return the placement of a node without a body or a support query, in a graph of its own."""
        _, reason = self.answer(node)
        return self.on_cpu(node, reason, self.why_not_on_cpu(node)) if reason.placement is Placement.CPU else reason

    def _kernel(self, node: ModelNode, made: Sequence[bool]) -> tuple[Kernel | None, Reason]:
        """Return DirectML's kernel by version and types, and whether the device has the types."""
        kernel, mismatch = _fitting(node, self._directml)
        if kernel:
            return kernel, self._device_reason(node, kernel, made)
        if mismatch is None:
            mismatch = self._unregistered(node, made)
        elif mismatch is not UNKNOWN_TYPE:
            mismatch = mismatch._replace(suggestion=self._later(directml_kernels, node))
        return None, mismatch

    def _unregistered(self, node: ModelNode, made: Sequence[bool]) -> Reason:
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
            text = f"not registered in onnxruntime {version_text(self.release)}; {operator[1]} is from {since} on"
        else:
            versions = sorted({kernel.since for kernel in kernels})
            text = f"registered at {', '.join(map(str, versions))}"
            below = [version for version in versions if version < node.place.version]
            nearest = (below[-1:] or versions)[-1 if below else 0]
            _, there = self._kernel(replace(node, place=node.place._replace(version=nearest)), made)
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
            if release > self.release:
                kernel, mismatch = _fitting(node, kernels(release))
                if kernel or mismatch is UNKNOWN_TYPE:
                    return f"use onnxruntime {version_text(release)} or later"
        return None

    def _device_reason(self, node: ModelNode, kernel: Kernel, made: Sequence[bool]) -> Reason:
        """Return whether the device's data types keep a node from DirectML."""
        values = (*node.inputs, *node.implicit, *node.outputs)
        are_made = (*(made or (False,) * (len(values) - len(node.outputs))), *(True for _ in node.outputs))
        for i, (edge, is_made) in enumerate(zip(values, are_made, strict=True)):
            if edge is None:
                continue
            if not edge.type:
                return UNKNOWN_TYPE
            if refused := self._refused_type(
                edge.type, kernel, is_on_cpu=i < len(node.inputs) and i in kernel.cpu_inputs, is_made=is_made
            ):
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
        if self.release < (since := _TYPES_SINCE.get(name, (0, 0))):
            return f"not taken before onnxruntime {version_text(since)}"
        has_type = self._target.supports_data_type(carrier)
        if name not in _64_BITS or self.limits.int64 == "direct":
            return "" if has_type else f"the device at {self._target.name} lacks it"
        # 1.9 and 1.10 take 64-bit integers as such, or as strided ones of 32 bits
        way, _, direct = kernel.int64.partition("+")
        if has_type and self.limits.int64 != "strided" and (direct or not kernel.int64):
            return ""
        if not way:
            return f"taken neither as such nor by strides at onnxruntime {version_text(self.release)}"
        is_taken = way != "dml" or is_made
        return "" if is_taken else "taken by 32-bit strides, but only of another DirectML node's result"

    def on_cpu(self, node: ModelNode, reason: Reason, lacking: Reason | None) -> Reason:
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
        if not self.is_read:
            why = f"{why} in {version_text(self.release)}, later ones are not known"
            return reason._replace(placement=Placement.UNKNOWN, rule="ORT-UNKNOWN-release", why=why, suggestion=None)
        is_bfloat16 = any(edge.type == "bfloat16" for edge in node.inputs if edge)
        cast = "Cast to float32 before it and back to bfloat16 behind it, which is exact" if is_bfloat16 else None
        advice = reason.suggestion or lacking.suggestion or cast
        return reason._replace(placement=Placement.NONE, rule="ORT-NODE-no-kernel", why=why, suggestion=advice)

    def why_not_on_cpu(self, node: ModelNode) -> Reason | None:
        """Return None if the CPU provider takes a node as it is; else whether it takes it cast, or why not."""
        if node.fault is not None:
            return None
        key = _signature(node)
        if key not in self._lacking:
            self._lacking[key] = self._why_not_on_cpu(node)
        return self._lacking[key]

    def _why_not_on_cpu(self, node: ModelNode) -> Reason | None:
        kernel, mismatch = _fitting(node, cpu_kernels(self.release))
        if kernel or mismatch is UNKNOWN_TYPE:
            return mismatch
        if not node.graphs and any(edge.type == "float16" for edge in node.inputs if edge):
            cast = replace(node, inputs=_cast(node.inputs), outputs=_cast(node.outputs))
            if cpu_provider_has(cast, self.release):
                return Reason(Placement.CPU, why="its float16 values are cast to float32 and back")
        text = f"the CPU provider has none{' of these types' if mismatch else ''}"
        later = self._later(cpu_kernels, node)
        return Reason(Placement.NONE, why=text, suggestion=later and f"{later}, whose CPU provider has it")


def _signature(node: ModelNode) -> tuple[object, ...]:
    """Return what the tables look at: a type is empty if its value is left out, None if it is unknown."""
    edges = (node.inputs, node.outputs, node.implicit)
    types = tuple(tuple(edge.type if edge else "" for edge in each) for each in edges)
    return node.place.domain, node.place.operator, node.place.version, types


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
    return None, UNKNOWN_TYPE if UNKNOWN_TYPE in mismatches else next(iter(mismatches), None)


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
            unknown = UNKNOWN_TYPE
        elif edge and edge.type not in types:
            text = f"{constraint} is {edge.type}; {name} is registered for {', '.join(sorted(types)) or 'no type'}"
            return Reason(Placement.CPU, "ORT-CPU-type", text)
    return unknown


def _cast(edges: Iterable[Edge | None]) -> tuple[Edge | None, ...]:
    return tuple(Edge("float") if edge and edge.type == "float16" else edge for edge in edges)
