"""onnx's Backend interface over the simulated device, for models of Tile and what prepares its inputs.

    model = TileBackend.prepare(onnx.load("model.onnx"), target="windows-11-21h2")
    (output,) = model.run([x, repeats])

Tile is dispatched on a simulated ``Device``; Constant, Identity, Cast and Reshape are onnx's reference implementation.
No other operator is run.

Page: https://onnx.ai/onnx/api/backend.html
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

try:
    import onnx
except ImportError as error:
    raise ImportError("dml_tile.arrays.onnx_backend needs onnx: pip install 'onnx>=1.19'") from error

from onnx import checker, defs, external_data_helper, helper, numpy_helper
from onnx.backend import base
from onnx.reference import ReferenceEvaluator

from dml_tile.arrays.numpy import onnx_type, tiled
from dml_tile.descriptors import TileOperatorDesc
from dml_tile.device import BindingTableDesc, Buffer, BufferBinding, CompiledOperator, Device
from dml_tile.dialects.directml import findings, tile_desc
from dml_tile.dialects.onnx import tile_of_opset
from dml_tile.errors import OnnxModelError
from dml_tile.rules.check import lowest_level
from dml_tile.targets import TargetLike
from dml_tile.tile_request import Dialect, Request

Array = NDArray[Any]

MAX_PREPARED: Final = 64
"""The tiles of a node, by the types and shapes of its inputs and the values of its repeats, that are kept ready."""

OPERATORS: Final = {"Tile": 1, "Constant": 1, "Identity": 1, "Cast": 6, "Reshape": 5}
"""The operators that are run, with the first opset of each; older Cast and Reshape have attributes for inputs."""


class TileModel(base.BackendRep):
    """A model that can be run any number of times; each Tile is created, compiled and dispatched on its device."""

    def __init__(self, model: onnx.ModelProto, device: Device) -> None:
        graph = model.graph
        self.device = device
        self._constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
        self._inputs = [_Declared.of(value) for value in graph.input if value.name not in self._constants]
        self._names = [declared.name for declared in self._inputs]
        self._outputs = [value.name for value in graph.output]
        self._outputs_type = base.namedtupledict("Outputs", self._outputs)
        opset = _opset_of(model)
        self._steps = [_Step(node, opset, device) for node in graph.node]

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """The outputs, in the model's order and by name, of inputs in the model's order, without its initialisers.

        Raises DmlError where the target refuses a Tile that another feature level takes, DialectError where ONNX rules
        it out, OnnxModelError for inputs of another number, type or shape than the model declares.
        """
        given = _arrays(inputs, self._names)
        for declared, array in zip(self._inputs, given, strict=True):
            declared.require(array)
        values: dict[str, Array] = self._constants | dict(zip(self._names, given, strict=True))
        for step in self._steps:
            values[step.output] = step.run([values[name] for name in step.inputs])
        return self._outputs_type(*(values[name] for name in self._outputs))


class TileBackend(base.Backend):
    """onnx.backend.base.Backend on the simulated device, which is a "CPU".

    ``target`` is whatever ``Target.parse`` takes; None means the simulated one, else 6_4. A Tile whose descriptor
    passes ``check`` at the target is dispatched there, bools and bfloat16 as bits. Where the target refuses it and
    another feature level takes it, DmlError is raised, for a test at that target to see. What no level takes (an empty
    result, strings, complex numbers, float64, more than 8 dimensions that cannot be merged) is tiled as ONNX says,
    without the device: there is nothing to ask it for.
    """

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> bool:
        """Return True if ``prepare`` takes the model."""
        try:
            cls.prepare(model, device, **kwargs)
        except (OnnxModelError, checker.ValidationError):
            return False
        return True

    @classmethod
    def prepare(
        cls, model: onnx.ModelProto, device: str = "CPU", *, target: TargetLike | None = None, **kwargs: Any
    ) -> TileModel:
        """The model, ready to be run; other options, such as those of onnx's test runner, change nothing.

        Raises OnnxModelError for a model with other operators than OPERATORS, local functions, sparse or external data,
        inputs that are no tensors, or for another device than the CPU; onnx's ValidationError for an invalid one;
        ValueError for an unknown target.
        """
        _require_device(device)
        if not isinstance(model, onnx.ModelProto):
            raise TypeError(f"model is a {type(model).__name__}; an onnx.ModelProto was expected")
        _require_runnable(model)
        checker.check_model(model)
        return TileModel(model, Device(target, raise_on_removal=True))

    @classmethod
    def run_model(cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        """The outputs of a model that is run once; see ``prepare`` and ``TileModel.run``."""
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(  # type: ignore[override]  # onnx declares each option a dict, and hands on an integer
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[np.dtype[Any], tuple[int, ...]]] | None = None,
        *,
        target: TargetLike | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """The output of one node, of ``opset_version``, by default the latest; raises what a model of it would."""
        _require_device(device)
        opset = kwargs.get("opset_version", defs.onnx_opset_version())
        _require_operator(node, opset)
        super().run_node(node, inputs, device, outputs_info, **kwargs)
        step = _Step(node, opset, Device(target, raise_on_removal=True))
        output = step.run(_arrays(inputs, step.inputs))
        return base.namedtupledict("Outputs", [step.output])(output)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Return True for ``CPU``, with or without a number."""
        return device.split(":")[0] == "CPU"


class _Declared(NamedTuple):
    """An input as the model declares it; a size of None is any."""

    name: str
    dtype: np.dtype[Any]
    onnx_type: str
    sizes: tuple[int | None, ...]

    @classmethod
    def of(cls, value: onnx.ValueInfoProto) -> Self:
        declared = value.type.tensor_type
        dtype = helper.tensor_dtype_to_np_dtype(declared.elem_type)
        sizes = tuple(dim.dim_value if dim.HasField("dim_value") else None for dim in declared.shape.dim)
        is_text = declared.elem_type == onnx.TensorProto.STRING
        return cls(value.name, dtype, "string" if is_text else dtype.name, sizes)

    def require(self, array: Array) -> None:
        """Raise OnnxModelError for an array of another type, rank or fixed size."""
        if onnx_type(array) != self.onnx_type:
            raise OnnxModelError(f"the input {self.name!r} is of {array.dtype}; {self.dtype} was expected")
        if len(self.sizes) != array.ndim or any(
            size not in (None, given) for size, given in zip(self.sizes, array.shape, strict=True)
        ):
            shape = ", ".join("any" if size is None else str(size) for size in self.sizes)
            raise OnnxModelError(f"the input {self.name!r} is of shape {array.shape}; ({shape}) was expected")


class _Step:
    """One node, ready to be run."""

    def __init__(self, node: onnx.NodeProto, opset: int, device: Device) -> None:
        self.inputs = list(node.input)
        self.output = node.output[0]
        self._named = _named(node)
        self._device = device
        self._prepared: dict[Any, tuple[Request, CompiledOperator | None]] = {}
        self._tile = tile_of_opset(opset) if node.op_type == "Tile" else None
        with self._blamed():
            self._reference = None if self._tile else _evaluator(node, opset)

    def run(self, inputs: Sequence[Array]) -> Array:
        with self._blamed():
            if self._reference:
                (output,) = self._reference.run(None, dict(zip(self.inputs, inputs, strict=True)))
                return np.asarray(output)
            assert self._tile is not None
            array, *others = inputs
            key = onnx_type(array), array.shape, *((other.dtype, other.shape, other.tobytes()) for other in others)
            if (prepared := self._prepared.get(key)) is None:
                if len(self._prepared) >= MAX_PREPARED:
                    self._prepared.clear()
                prepared = self._prepared[key] = self._prepare(self._tile, array, others)
            request, compiled = prepared
            if compiled is None:
                return tiled(array, request)
            return _dispatched(self._device, compiled, array, request)

    def _prepare(self, tile: Dialect, array: Array, others: Sequence[Array]) -> tuple[Request, CompiledOperator | None]:
        """The tile of such inputs, and the operator that does it; None for a tile that no feature level accepts."""
        request = tile.request(onnx_type(array), array.shape, *others)
        if findings(request):
            return request, None
        desc = tile_desc(request)
        return request, None if lowest_level(desc) is None else _initialised(self._device, desc)

    @contextmanager
    def _blamed(self) -> Iterator[None]:
        """Within the block, an error tells the node that it comes from."""
        try:
            yield
        except Exception as error:
            error.add_note(f"from {self._named}")
            raise


def _initialised(device: Device, desc: TileOperatorDesc) -> CompiledOperator:
    compiled = device.compile_operator(device.create_operator(desc))
    initializer = device.create_operator_initializer([compiled])
    table = device.create_binding_table(BindingTableDesc(initializer))
    device.create_command_recorder().record_dispatch(initializer, table)
    return compiled


def _dispatched(device: Device, compiled: CompiledOperator, array: Array, request: Request) -> Array:
    """The output, in memory of its own; the input's is bound as it is if DirectML could read all of it."""
    (read,), (written,) = compiled.input_slots, compiled.output_slots
    array = np.ascontiguousarray(array)
    if array.nbytes != read.size_in_bytes or not array.flags.writeable:
        padded = np.zeros(read.size_in_bytes, np.uint8)
        padded[: array.nbytes] = array.reshape(-1).view(np.uint8)
    else:
        padded = array.reshape(-1).view(np.uint8)
    output = np.empty(written.size_in_bytes, np.uint8)
    table = device.create_binding_table(BindingTableDesc(compiled))
    table.bind_inputs([BufferBinding(Buffer.wrap(padded))])
    table.bind_outputs([BufferBinding(Buffer.wrap(output))])
    device.create_command_recorder().record_dispatch(compiled, table)
    size = math.prod(request.output_shape) * array.itemsize
    return output[:size].view(array.dtype).reshape(request.output_shape)


def _evaluator(node: onnx.NodeProto, opset: int) -> ReferenceEvaluator:
    inputs, outputs = (
        [helper.make_empty_tensor_value_info(name) for name in names] for names in (node.input, node.output)
    )
    return ReferenceEvaluator(helper.make_graph([node], "one node", inputs, outputs), opsets={"": opset})


def _opset_of(model: onnx.ModelProto) -> int:
    return next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), 1)


def _named(node: onnx.NodeProto) -> str:
    """A node as messages tell it: by its name, else by its output."""
    name = repr(node.name) if node.name else f"that gives {', '.join(map(repr, node.output))}"
    return f"the node {name}, a {'.'.join(filter(None, (node.domain, node.op_type)))}"


def _require_device(device: str) -> None:
    if not TileBackend.supports_device(device):
        raise OnnxModelError(f"device is {device!r}; only CPU is simulated")


def _require_operator(node: onnx.NodeProto, opset: int) -> None:
    if node.domain or node.op_type not in OPERATORS:
        raise OnnxModelError(f"{_named(node)}, is not run here; {', '.join(OPERATORS)} are")
    if opset < OPERATORS[node.op_type]:
        raise OnnxModelError(f"{_named(node)}, is of opset {opset}; it is run from opset {OPERATORS[node.op_type]} on")
    for attribute in node.attribute:
        if attribute.HasField("sparse_tensor"):
            raise OnnxModelError(f"{_named(node)}, has a sparse tensor, {attribute.name}, which is not run here")
        if attribute.ref_attr_name:
            raise OnnxModelError(f"{_named(node)}, takes {attribute.name} from a function's attribute; there is none")
        if attribute.HasField("t"):
            _require_own_data(_named(node), attribute.t)


def _require_own_data(where: str, tensor: onnx.TensorProto) -> None:
    if external_data_helper.uses_external_data(tensor):
        raise OnnxModelError(
            f"{where}, keeps its data in another file, which is not read; onnx.load() with the data does"
        )


def _require_runnable(model: onnx.ModelProto) -> None:
    """Raise OnnxModelError for what is not run; comes before onnx's checker, which would look for external data."""
    opset = _opset_of(model)
    for node in model.graph.node:
        _require_operator(node, opset)
    if model.functions:
        raise OnnxModelError(
            f"the model has local functions, such as {model.functions[0].name!r}, which are not run here"
        )
    if model.graph.sparse_initializer:
        raise OnnxModelError("the model has sparse initialisers, which are not run here")
    for tensor in model.graph.initializer:
        _require_own_data(f"the initialiser {tensor.name!r}", tensor)
    for value in model.graph.input:
        if not value.type.HasField("tensor_type"):
            raise OnnxModelError(f"the input {value.name!r} is no tensor")


def _arrays(inputs: Any, names: Sequence[str]) -> list[Array]:
    if not isinstance(inputs, Iterable) or isinstance(inputs, Mapping | str | np.ndarray):
        raise OnnxModelError(f"inputs is a {type(inputs).__name__}; a sequence of arrays was expected")
    arrays = [np.asarray(value) for value in inputs]
    if len(arrays) != len(names):
        raise OnnxModelError(
            f"{len(arrays)} inputs were given; {len(names)} were expected: {', '.join(names) or 'none'}"
        )
    return arrays
