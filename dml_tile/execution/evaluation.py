"""Executing any operator on the CPU: of arrays, and of raw memory. Validation first, then the values."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from dml_tile.bindings.memory import (
    POISON,
    BufferLike,
    Bytes,
    Padding,
    as_array,
    byte_view,
    element_dtype,
    parts_overlap,
    require_data_type,
    require_padding,
)
from dml_tile.bindings.resources import Buffer, BufferBinding
from dml_tile.bindings.slots import TENSOR, BoundRange, Slot
from dml_tile.descriptors.operator import OperatorDesc, OperatorFields, tile_of
from dml_tile.descriptors.tile import BufferTensorDesc, TileOperatorDesc
from dml_tile.directml.data_types import ELEMENT_SIZES, TensorDataType
from dml_tile.directml.dtypes import dtype_of
from dml_tile.directml.enums import OperatorType
from dml_tile.directml.operators import Field, operators
from dml_tile.directml.targets import Target, TargetLike
from dml_tile.errors import DmlError, require_instance
from dml_tile.execution.call import Array, KernelCall, Output, computed_dtype, require_bounded
from dml_tile.execution.operators.table import values_of
from dml_tile.findings import Against, Finding
from dml_tile.geometry.layout import extent, packed_strides
from dml_tile.rules.binding import output_is_apart, range_is_large_enough
from dml_tile.rules.descriptor import refusals_of, why_never_executed
from dml_tile.rules.execution import operator_is_known
from dml_tile.rules.operator_view import table_of
from dml_tile.simulation.calls import record
from dml_tile.simulation.target import resolve
from dml_tile.text import did_you_mean


class TensorArgument(NamedTuple):
    """A tensor that is not null: its path, and what it describes."""

    path: str
    desc: BufferTensorDesc

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.desc.sizes or ())[: self.desc.dimension_count]

    @property
    def strides(self) -> tuple[int, ...]:
        """The strides, in elements."""
        strides = self.desc.strides
        return packed_strides(self.shape) if strides is None else strides[: self.desc.dimension_count]

    @property
    def layout(self) -> tuple[object, ...]:
        """The elements' sizes and strides: tensors of one layout at one address are the same memory."""
        return self.shape, self.strides, ELEMENT_SIZES.get(self.desc.data_type)

    @property
    def is_of_four_bits(self) -> bool:
        return self.desc.data_type not in ELEMENT_SIZES

    @property
    def output(self) -> Output:
        return Output(TensorDataType(self.desc.data_type), self.shape)

    @property
    def size_in_bytes(self) -> int:
        """TotalTensorSizeInBytes; of elements of four bits at least their bytes, since 0 is worked out for them."""
        total = self.desc.total_tensor_size_in_bytes
        return max(total, (extent(self.shape, self.strides) + 1) // 2) if self.is_of_four_bits else total

    def elements(self, memory: Bytes) -> Array:
        """Return the strided view of the tensor's elements in memory; four-bit elements are copied, a byte each."""
        dtype = computed_dtype(self.desc.data_type)
        held = _unpacked(memory, dtype) if self.is_of_four_bits else memory
        return np.ndarray(self.shape, dtype, held, strides=[stride * dtype.itemsize for stride in self.strides])

    def write(self, memory: Bytes, values: Array) -> None:
        """Write elements, or the first rows of them, into memory; nothing else of it is changed."""
        view = self.elements(memory)
        view[tuple(map(slice, values.shape))] = values
        if self.is_of_four_bits:
            assert isinstance(view.base, np.ndarray)
            memory[:] = _packed(view.base)

    def of_array(self, given: Any) -> Array:
        """Return an array of the tensor's DataType and Sizes; it broadcasts along Strides of 0.

        Raises TypeError and ValueError, with the field, for others.
        """
        expected = dtype_of(self.desc.data_type)
        if not hasattr(given, "__array__") and not hasattr(given, "__dlpack__"):
            raise TypeError(f"{self.path} is of type {type(given).__name__}; an array of {expected} was expected")
        array = as_array(given)
        if array.dtype == np.bool_ and expected == np.uint8:
            array = array.view(np.uint8)
        if array.dtype != expected:
            raise TypeError(f"{self.path} holds {array.dtype}; {expected} was expected, as the tensor's DataType says")
        sizes = zip(self.shape, self.strides, array.shape, strict=False)
        if array.ndim != len(self.shape) or not all(n == size or (n == 1 and not step) for size, step, n in sizes):
            raise ValueError(f"{self.path} has the shape {array.shape}; {self.shape} was expected, the tensor's Sizes")
        array = array.astype(computed_dtype(self.desc.data_type), copy=False)
        return array if array.shape == self.shape else np.broadcast_to(array, self.shape)


Tensors: TypeAlias = TensorArgument | list[TensorArgument] | None
"""A field's: one, those of an array, or a null tensor."""


def _each(tensors: Tensors) -> Sequence[TensorArgument]:
    return tensors if isinstance(tensors, list) else [] if tensors is None else [tensors]


@dataclass(frozen=True)
class ExecutableOperator:
    """An operator that passed ``check`` at a target, ready to be executed any number of times."""

    fields: OperatorFields
    target: Target
    inputs: Mapping[str, Tensors]
    outputs: Mapping[str, Tensors]

    def tensors(self, field: str) -> Sequence[TensorArgument]:
        """Return the tensors of a field that are not null; none of a field that the operator does not have."""
        return _each(self.inputs.get(field, self.outputs.get(field)))

    @cached_property
    def read(self) -> list[TensorArgument]:
        """The tensors that are read."""
        return [*chain.from_iterable(map(_each, self.inputs.values()))]

    @cached_property
    def written(self) -> list[TensorArgument]:
        """The tensors that are written."""
        return [*chain.from_iterable(map(_each, self.outputs.values()))]

    @cached_property
    def aliases(self) -> frozenset[tuple[str, str]]:
        """The pairs of an output and an input that may be one range of memory: the page says so, the layouts agree."""
        named = [other for other in self.read if other.path in table_of(self.fields).in_place]
        pairs = ((output, other) for output in self.written for other in named)
        return frozenset((a.path, b.path) for a, b in pairs if a.layout == b.layout)

    @cached_property
    def _results(self) -> dict[str, Output | list[Output] | None]:
        """The computed arrays, by field."""
        return {name: _mapped(tensors, lambda tensor: tensor.output) for name, tensors in self.outputs.items()}

    def findings_of(self, memory: Mapping[str, Bytes]) -> Iterator[Finding]:
        """Yield the findings of buffers that are too small, and of outputs that overlap another tensor, by path."""
        for tensor in (*self.read, *self.written):
            least, given = tensor.size_in_bytes, memory[tensor.path].size
            if given < least:
                bound = BoundRange(Slot(tensor.path, TENSOR, least, 1), BufferBinding(Buffer(given)))
                yield from range_is_large_enough.findings(bound, self.target)
        for i, output in enumerate(self.written):
            for other in (*self.read, *self.written[:i]):
                pair, (above, below) = (output.path, other.path), (memory[output.path], memory[other.path])
                if not parts_overlap(above, output.size_in_bytes, below, other.size_in_bytes):
                    continue
                if pair not in self.aliases or above.ctypes.data != below.ctypes.data:
                    yield from output_is_apart.findings(pair, self.target)

    def values(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the outputs' elements for those of the inputs, all by field. Raises DmlError, as ``evaluate`` does."""
        return values_of(KernelCall(self.fields, inputs, self._results, self.target))

    def run(
        self, reads: Mapping[str, Bytes], writes: Mapping[str, Sequence[Bytes]], padding: Padding = "preserve"
    ) -> None:
        """Execute on the memory of the inputs; write each output to each of its memories, by the tensors' paths.

        Memory is known to be large enough, and apart. Nothing is written before all is read.
        """
        inputs = {
            name: _mapped(tensors, lambda tensor: tensor.elements(reads[tensor.path]))
            for name, tensors in self.inputs.items()
        }
        results = self.values(inputs)
        for name, tensors in self.outputs.items():
            found = results[name] if isinstance(tensors, list) else [results[name]]
            for tensor, values in zip(_each(tensors), found, strict=False):
                for memory in writes.get(tensor.path, ()):
                    written = memory[: tensor.size_in_bytes]
                    if padding == "poison":
                        values = values.copy() if np.may_share_memory(values, written) else values
                        written.fill(POISON)
                    tensor.write(written, values)


def _mapped(tensors: Tensors, function: Callable[[TensorArgument], Any]) -> Any:
    if isinstance(tensors, list):
        return [function(tensor) for tensor in tensors]
    return None if tensors is None else function(tensors)


def _unpacked(memory: Bytes, dtype: np.dtype[Any]) -> Array:
    """Return the elements of four bits in memory, the first of two in the low bits, a byte each."""
    nibbles = np.stack([memory & 15, memory >> 4], -1).ravel()
    return (nibbles ^ 8).view(np.int8) - np.int8(8) if dtype.kind == "i" else nibbles


def _packed(nibbles: Array) -> Bytes:
    pairs = nibbles.view(np.uint8).reshape(-1, 2) & np.uint8(15)
    return pairs[:, 0] | pairs[:, 1] << np.uint8(4)


def executable(
    call: str, desc: OperatorDesc | TileOperatorDesc, target: Target, against: Against
) -> ExecutableOperator:
    """Return an operator that can be executed. Raises what ``prepared`` raises, which is recorded as the call's."""
    try:
        return prepared(desc, target, against)
    except DmlError as error:
        record(call, target, desc, error.findings)
        raise


@lru_cache(maxsize=256)
def prepared(desc: OperatorDesc | TileOperatorDesc, target: Target, against: Against) -> ExecutableOperator:
    """Return an operator that passes ``check``, to be executed.

    Raises DmlError with its findings, also for what the runtime refuses, or takes only because it computes in 32 bits,
    and for an operator that no page describes, or whose tensors take too much memory.
    """
    findings: Sequence[Finding] = refusals_of(desc, target, against)
    if not findings and against != "both":
        findings = refusals_of(desc, target, "runtime") or why_never_executed(desc, target)
    if findings:
        raise DmlError(findings)
    fields = _fields(tile_of(desc) or desc)
    if findings := [*operator_is_known.findings(fields, target)]:
        raise DmlError(findings)
    table, inputs, outputs = table_of(fields), dict[str, Tensors](), dict[str, Tensors]()
    for field in fields.operator.tensor_fields:
        (outputs if table.is_output(field.name) else inputs)[field.name] = _tensors(fields, field)
    operator = ExecutableOperator(fields, target, inputs, outputs)
    for tensor in (*operator.read, *operator.written):  # places and doubles, for example, are computed of any type
        require_bounded(fields.operator.name, target, memory=prod(tensor.shape) * 8)
    return operator


def _fields(desc: OperatorDesc | TileOperatorDesc) -> OperatorFields:
    """Return the fields of an operator that passed ``check``."""
    if isinstance(desc, TileOperatorDesc):
        tensors = {"InputTensor": desc.input_tensor, "OutputTensor": desc.output_tensor}
        repeats = {"RepeatsCount": desc.repeats_count, "Repeats": desc.repeats}
        return OperatorFields(operators()[OperatorType.TILE], tensors | repeats)
    assert isinstance(desc.desc, OperatorFields), "check refuses null"
    return desc.desc


def _tensors(fields: OperatorFields, field: Field) -> Tensors:
    value = fields[field.name]
    if value is None:
        return None
    if not field.is_array:
        return TensorArgument(field.name, value.desc)
    count = fields[field.counted_by]
    return [TensorArgument(f"{field.name}[{i}]", each.desc) for i, each in enumerate(value[:count])]


def evaluate(
    desc: OperatorDesc | TileOperatorDesc,
    inputs: Mapping[str, Any] | ArrayLike,
    target: TargetLike | None = None,
    against: Against = "both",
) -> dict[str, Any]:
    """Return an operator's outputs, by field, for arrays of its inputs: ``{"OutputTensor": array}``.

        >>> from dml_tile import OperatorDesc
        >>> tensor = {"DataType": "FLOAT32", "Sizes": [3]}
        >>> add = dict.fromkeys(["ATensor", "BTensor", "OutputTensor"], tensor)
        >>> desc = OperatorDesc(type="ELEMENT_WISE_ADD", desc=add)
        >>> ones = np.ones(3, np.float32)
        >>> evaluate(desc, {"ATensor": ones, "BTensor": ones})
        {'OutputTensor': array([2., 2., 2.], dtype=float32)}

    ``inputs`` are arrays by field, in C's names or in snake_case, a list for an array of tensors, and None, or nothing,
    for a null tensor; a lone input may be given as its array. Each has the tensor's Sizes, or broadcasts to them along
    Strides of 0, and the dtype of ``dtype_of``, or bool for UINT8; nothing is cast. Outputs are new and packed, None
    for null ones; what DirectML does not write is 0. docs/operators.md says how true each operator's values are.

    Raises DmlError with the findings of ``check`` at ``target``, for an index out of range, and for more work than
    docs/limits.md allows; TypeError and ValueError for an array that does not fit, and for another name.
    """
    require_instance(desc, OperatorDesc, TileOperatorDesc)
    target = resolve(target)
    operator = executable("evaluate", desc, target, against)
    given = by_field(operator.fields, operator.inputs, inputs if isinstance(inputs, Mapping) else {None: inputs})
    arrays = {
        name: _given(name, tensors, given.get(name), TensorArgument.of_array)
        for name, tensors in operator.inputs.items()
    }
    results = operator.values(arrays)
    record("evaluate", target, desc)
    return {name: _new(tensors, results[name]) for name, tensors in operator.outputs.items()}


def by_field(fields: OperatorFields, tensors: Mapping[str, Any], given: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the values given for tensors, by the fields' names in C; a lone value, under None, is the lone tensor's.

    Raises TypeError for a name that is no tensor's, and for a lone value where there are several tensors.
    """
    needed = [name for name, tensor in tensors.items() if tensor is not None]
    names = {spelled: name for name in fields.operator.tensors for spelled in (fields.attributes[name], name)}
    if None in given and len(needed) != 1:
        raise TypeError(
            f"{fields.operator.name} has {', '.join(needed) or 'no tensors'}; a mapping of names was expected"
        )
    found = {}
    for key, value in given.items():
        name = needed[0] if key is None else names.get(key)
        if name is None:
            meant = did_you_mean(str(key), tensors, f"it has {', '.join(tensors)}")
            raise TypeError(f"{key!r} is no tensor of {fields.operator.name}; {meant}")
        if name not in tensors or name in found:
            raise TypeError(f"{name} {'was provided twice' if name in found else 'is an output, which is returned'}")
        found[name] = value
    return found


def _given(name: str, tensors: Tensors, value: Any, read: Callable[[TensorArgument, Any], Any]) -> Any:
    """Return the values given for a field's tensors. Raises TypeError where something is missing, or too much."""
    expected = len(tensors) if isinstance(tensors, list) else None
    if tensors is None or value is None:
        if tensors is not value:
            raise TypeError(f"{name} is {'null; nothing' if tensors is None else 'not given; an array'} was expected")
        return None
    if isinstance(tensors, list):
        if not isinstance(value, list | tuple) or len(value) != expected:
            raise TypeError(f"{name} is an array of {expected} tensors; a list of as many was expected")
        return [read(tensor, each) for tensor, each in zip(tensors, value, strict=True)]
    return read(tensors, value)


def _new(tensors: Tensors, values: Any) -> Any:
    """Return results as packed arrays of their own, in the tensors' dtypes."""
    if isinstance(tensors, list):
        return [_new(tensor, each) for tensor, each in zip(tensors, values, strict=True)]
    if tensors is None:
        return None
    dtype = dtype_of(tensors.desc.data_type)
    if values.shape == tensors.shape:
        return np.array(values, dtype, order="C")
    found = np.zeros(tensors.shape, dtype)
    found[tuple(map(slice, values.shape))] = values
    return found


def execute_operator(
    desc: OperatorDesc,
    buffers: Mapping[str, Any],
    target: TargetLike | None = None,
    against: Against = "both",
    *,
    padding: Padding = "preserve",
) -> None:
    """Execute an operator on raw memory, as ``execute`` does."""
    require_instance(buffers, Mapping)
    require_padding(padding)
    target = resolve(target)
    operator = executable("execute", desc, target, against)
    tensors = {**operator.inputs, **operator.outputs}
    given = by_field(operator.fields, tensors, buffers)
    memory = dict[str, Bytes]()
    for name, each in tensors.items():
        is_output = name in operator.outputs

        def read(tensor: TensorArgument, buffer: BufferLike, is_output: bool = is_output) -> None:
            require_data_type(element_dtype(buffer, tensor.path), tensor.desc.data_type, tensor.path)
            memory[tensor.path] = byte_view(buffer, tensor.path, writable=is_output)

        _given(name, each, given.get(name), read)
    if findings := [*operator.findings_of(memory)]:
        record("execute", target, desc, findings)
        memory.clear()  # else the traceback would keep the caller from closing an mmap
        raise DmlError(findings)
    operator.run(memory, {tensor.path: [memory[tensor.path]] for tensor in operator.written}, padding)
    record("execute", target, desc)
