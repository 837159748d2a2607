"""A node of an ONNX model as a kernel of ONNX Runtime's DirectML provider sees it, and the tensors that it describes.

Input          a value: its type, its shape, its elements
KernelNode     a node with its values, its operator's version and the release
Alignment      where a tensor of fewer dimensions than DirectML's gets sizes of 1
Tensor         a DML_BUFFER_TENSOR_DESC, and the value that it describes
Described      a DirectML operator that the provider creates

Read in microsoft/onnxruntime, onnxruntime/core/providers/dml: DmlExecutionProvider/src/TensorDesc.cpp, Operators/ and
OperatorAuthorHelper/OperatorHelper.cpp, at the tags that registrations.json names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dml_tile.back_ends.kernels import Version
from dml_tile.directml.data_types import TensorDataType
from dml_tile.directml.dtypes import DTYPES
from dml_tile.directml.enums import DML_TENSOR_DIMENSION_COUNT_MAX1, UINT_MAX, TensorFlags
from dml_tile.geometry.layout import extent, packed_strides, round_up_4

MAX_DIMENSIONS: Final = DML_TENSOR_DIMENSION_COUNT_MAX1
"""The most dimensions that the provider's tensors hold."""

MIN_DIMENSIONS: Final = 4
"""The provider raises most tensors to this dimension count."""

SMALL_CONSTANT_BYTES: Final = 8
"""A constant below this size is none that DirectML owns, from 1.17 on."""


class ProviderRefusalError(Exception):
    """The provider returns E_INVALIDARG before DirectML is asked."""


class OpenError(Exception):
    """The descriptors of a node are not known; ``operators`` are the names of those that it surely creates."""

    operators: tuple[str, ...] = ()


class KnownAtRunTimeError(OpenError):
    """The kernel is created when the node runs: a shape, or a value that it reads on the CPU, is not known before."""


class NotDescribedError(OpenError):
    """No description covers the operator at this release."""


def require(is_taken: object, reason: str) -> None:
    """Raise ProviderRefusalError with the reason, unless the provider takes it."""
    if not is_taken:
        raise ProviderRefusalError(reason)


class Tensor(NamedTuple):
    """A DML_BUFFER_TENSOR_DESC; ``strides`` None means packed.

    ``of`` names the ONNX value that it describes, or a value inside the kernel.
    """

    data_type: TensorDataType
    sizes: tuple[int, ...]
    strides: tuple[int, ...] | None = None
    is_owned: bool = False
    of: str = ""

    @property
    def bytes(self) -> int:
        """The bytes from the first element to the last, rounded up to 4."""
        strides = packed_strides(self.sizes) if self.strides is None else self.strides
        count = 0 if 0 in self.sizes else extent(self.sizes, strides)
        return round_up_4(-(-count * self.data_type.bits // 8))

    def renamed(self, of: str, data_type: TensorDataType | None = None) -> Tensor:
        """Return the tensor as that of another value, and perhaps of another type."""
        return self._replace(of=of, data_type=data_type or self.data_type, is_owned=False)

    def spread(self, sizes: Sequence[int]) -> Tensor:
        """Return the packed tensor broadcast to ``sizes``, which have as many dimensions at least."""
        return self._replace(sizes=tuple(sizes), strides=_broadcast_strides(self.sizes, len(sizes)))

    def permuted(self, order: Sequence[int]) -> Tensor:
        """Return the tensor with its dimensions in another order, by strides."""
        strides = packed_strides(self.sizes) if self.strides is None else self.strides
        return self._replace(sizes=tuple(self.sizes[i] for i in order), strides=tuple(strides[i] for i in order))

    @property
    def unsigned(self) -> Tensor:
        """The tensor with the unsigned type of the same size."""
        return self._replace(data_type=_UNSIGNED.get(self.data_type, self.data_type))

    @property
    def field(self) -> dict[str, Any]:
        """The tensor as a field of a descriptor."""
        made: dict[str, Any] = {"DataType": self.data_type, "Sizes": self.sizes}
        if self.strides is not None:
            made["Strides"] = self.strides
        if self.is_owned:
            made["Flags"] = TensorFlags.OWNED_BY_DML
        return made


_UNSIGNED: Final = {each: TensorDataType[f"U{each.name}"] for each in TensorDataType if each.name.startswith("INT")}


def _broadcast_strides(actual: Sequence[int], rank: int) -> tuple[int, ...]:
    """Return the strides of a packed tensor whose sizes of 1, and those in front of them, are broadcast."""
    own = (*(1,) * (rank - len(actual)), *actual)
    return tuple(0 if size == 1 else step for size, step in zip(own, packed_strides(own), strict=True))


class Described(NamedTuple):
    """A DirectML operator, by its name without prefix, with its fields; a tensor is a ``Tensor``, or None for null."""

    operator: str
    fields: Mapping[str, Any]

    @property
    def desc(self) -> dict[str, Any]:
        """The DML_OPERATOR_DESC, as ``OperatorDesc`` reads it."""
        return {"Type": self.operator, "Desc": {name: _plain(value) for name, value in self.fields.items()}}


def _plain(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.field
    return [_plain(each) for each in value] if isinstance(value, list) else value


Descriptions: TypeAlias = Sequence[Described]
"""A node's operators, in the provider's order."""


def operator(name: str, /, **fields: Any) -> Described:
    """Return an operator with these fields."""
    return Described(name, fields)


def unary(name: str, source: Tensor, result: Tensor, **fields: Any) -> Described:
    """Return an operator of one input and one output."""
    return operator(name, InputTensor=source, OutputTensor=result, **fields)


def binary(name: str, a: Tensor, b: Tensor, result: Tensor, **fields: Any) -> Described:
    """Return an element-wise operator of two inputs, by its name without ELEMENT_WISE_."""
    return operator(f"ELEMENT_WISE_{name}", ATensor=a, BTensor=b, OutputTensor=result, **fields)


class Alignment(NamedTuple):
    """Where a tensor of fewer than ``least`` dimensions gets sizes of 1.

    At most ``lead`` stand in front, the first ``keep`` of its own sizes behind them, then the ones still missing.
    """

    least: int = MIN_DIMENSIONS
    lead: int = MAX_DIMENSIONS
    keep: int = 0


RIGHT: Final = Alignment()
"""Ones in front."""
LEFT: Final = Alignment(lead=0, keep=MAX_DIMENSIONS)
"""Ones behind."""
SPATIAL: Final = Alignment(lead=0, keep=2)
"""Ones between the channels and the other sizes."""
OWN: Final = Alignment(least=1)
"""The sizes as they are; a scalar has one."""


def at_least(rank: int) -> Alignment:
    """Return the alignment of ones in front, up to ``rank`` dimensions."""
    return Alignment(rank)


def channels(rank: int = MIN_DIMENSIONS) -> Alignment:
    """Return the alignment of a vector along the second of ``rank`` dimensions."""
    return Alignment(rank, 1, MAX_DIMENSIONS)


def tensor(
    data_type: TensorDataType,
    sizes: Sequence[int],
    actual: Sequence[int] | None = None,
    align: Alignment = RIGHT,
    of: str = "",
) -> Tensor:
    """Return the tensor of ``sizes``; ``actual`` is the shape in memory where it is broadcast to them.

    Raises ProviderRefusalError for more dimensions than the provider holds.
    """
    most = f"the provider's tensors have at most {MAX_DIMENSIONS}"
    require(len(sizes) <= MAX_DIMENSIONS, f"{len(sizes)} dimensions; {most}")
    kept, missing = min(align.keep, len(sizes)), max(0, align.least - len(sizes))
    lead = min(align.lead, missing)
    raised = (*(1,) * lead, *sizes[:kept], *(1,) * (missing - lead), *sizes[kept:])
    is_packed = actual is None or tuple(actual) == tuple(sizes)
    return Tensor(data_type, raised, None if is_packed else _broadcast_strides(actual or (), len(raised)), of=of)


def scalar(data_type: TensorDataType, value: float) -> str:
    """Return a DML_SCALAR_UNION's eight bytes, as a descriptor reads them."""
    dtype = DTYPES.get(data_type)
    data = b"" if dtype is None else np.asarray(value).astype(dtype).tobytes()
    return f"0x{int.from_bytes(data, 'little'):016X}"


def uints(values: Iterable[int]) -> list[int]:
    """Return the values modulo 2^32, as C converts them to UINT."""
    return [value & UINT_MAX for value in values]


class Input(NamedTuple):
    """A value: ONNX's name of its type in NumPy's spelling, its sizes, and whether it is constant.

    None stands for what is not known before the model runs. A value ``is_own`` if it is of the node's graph, not from
    outside. ``elements`` returns a constant's, None if they are not read.
    """

    name: str
    type: str | None = None
    shape: tuple[int, ...] | None = None
    is_constant: bool = False
    is_own: bool = True
    elements: Callable[[], NDArray[Any] | None] = lambda: None


class KernelNode(NamedTuple):
    """A node with its values; None stands for an input or an output that it leaves out.

    ``attributes`` have the defaults of the operator's schema. ``since`` is the opset that introduced the operator's
    version. With ``is_in_graph``, constants of the node's graph are DirectML's to own.
    """

    domain: str
    operator: str
    since: int
    release: Version
    inputs: Sequence[Input | None]
    outputs: Sequence[Input | None]
    attributes: Mapping[str, Any]
    is_in_graph: bool = True

    def attribute(self, name: str, default: Any = None) -> Any:
        """Return an attribute; ``default`` where the node and its operator's schema have none."""
        return self.attributes.get(name, default)

    def integer_list(self, name: str, default: Sequence[int] = ()) -> list[int]:
        """Return the integers of an attribute, ``default`` where it is left out or empty."""
        return [*(self.attributes.get(name) or default)]

    def has(self, i: int) -> bool:
        """Return True if the node has an input at this place."""
        return i < len(self.inputs) and self.inputs[i] is not None

    def gives(self, i: int) -> bool:
        """Return True if the node has an output at this place."""
        return i < len(self.outputs) and self.outputs[i] is not None

    def shape(self, i: int = 0) -> list[int]:
        """Return an input's sizes. Raises KnownAtRunTimeError where one is unknown."""
        return _shape(_given(self.inputs, i, "input"))

    def output_shape(self, i: int = 0) -> list[int]:
        """Return an output's sizes. Raises KnownAtRunTimeError where one is unknown."""
        return _shape(_given(self.outputs, i, "output"))

    def type(self, i: int = 0) -> TensorDataType:
        """Return the data type of an input.

        Raises KnownAtRunTimeError if it is unknown, ProviderRefusalError for a type that DirectML lacks.
        """
        return _type(_given(self.inputs, i, "input"))

    def output_type(self, i: int = 0) -> TensorDataType:
        """Return the data type of an output; raises as ``type`` does."""
        return _type(_given(self.outputs, i, "output"))

    def is_constant(self, i: int) -> bool:
        """Return True if an input's elements are known before the model runs."""
        value = self.inputs[i] if i < len(self.inputs) else None
        return value is not None and value.is_constant

    def elements(self, i: int) -> NDArray[Any]:
        """Return the elements of a constant input.

        Raises KnownAtRunTimeError for an input that is none, NotDescribedError if they are not read.
        """
        value = _given(self.inputs, i, "input")
        if not value.is_constant:
            raise KnownAtRunTimeError(f"the value of {value.name}")
        found = value.elements()
        if found is None:
            raise NotDescribedError(f"the elements of {value.name} are not read")
        return found.reshape(-1)

    def number(self, i: int) -> int | float:
        """Return the first element of an input; raises as ``elements`` does."""
        elements = self.elements(i)
        require(elements.size, f"input {i} is empty")
        found: int | float = elements[0].item()
        return found

    def integers(self, i: int, name: str = "") -> list[int]:
        """Return an input's integers, or those of the attribute that older versions have in its place."""
        return [int(each) for each in self.elements(i)] if self.has(i) else self.integer_list(name)

    def input(self, i: int = 0, sizes: Sequence[int] | None = None, align: Alignment = RIGHT) -> Tensor:
        """Return the tensor of an input, broadcast to ``sizes``."""
        shape, value = self.shape(i), _given(self.inputs, i, "input")
        actual = None if sizes is None else shape
        return self._owned(i, tensor(self.type(i), shape if sizes is None else sizes, actual, align, value.name))

    def optional(self, i: int, sizes: Sequence[int] | None = None, align: Alignment = RIGHT) -> Tensor | None:
        """Return the tensor of an input; None for one that is left out."""
        return self.input(i, sizes, align) if self.has(i) else None

    def view(self, i: int, sizes: Sequence[int], strides: Sequence[int] | None = None) -> Tensor:
        """Return an input's memory as a tensor of these sizes and strides; none are put in."""
        steps = None if strides is None else tuple(strides)
        return self._owned(i, Tensor(self.type(i), tuple(sizes), steps, of=_given(self.inputs, i, "input").name))

    def _owned(self, i: int, made: Tensor) -> Tensor:
        is_large = made.bytes >= SMALL_CONSTANT_BYTES or self.release < (1, 17)
        is_taken = self.is_in_graph and _given(self.inputs, i, "input").is_own
        return made._replace(is_owned=is_taken and is_large and self.is_constant(i))

    def output(self, i: int = 0, sizes: Sequence[int] | None = None, align: Alignment = RIGHT) -> Tensor:
        """Return the tensor of an output, or one of ``sizes`` in its place."""
        shape = self.output_shape(i) if sizes is None else sizes
        return tensor(self.output_type(i), shape, None, align, _given(self.outputs, i, "output").name)

    def optional_output(self, i: int, align: Alignment = RIGHT) -> Tensor | None:
        """Return the tensor of an output; None for one that is left out."""
        return self.output(i, align=align) if self.gives(i) else None

    def result(self, sizes: Sequence[int], strides: Sequence[int] | None = None, i: int = 0) -> Tensor:
        """Return an output's memory as a tensor of these sizes and strides; none are put in."""
        made = self.output(i, ())
        return made._replace(sizes=tuple(sizes), strides=None if strides is None else tuple(strides))

    def axis(self, axis: int, rank: int | None = None) -> int:
        """Return an axis, counted from 0, of ``rank`` dimensions, by default the first input's."""
        rank = len(self.shape()) if rank is None else rank
        require(-rank <= axis < max(rank, 1), f"axis {axis} of {rank} dimensions")
        return axis + rank if axis < 0 else axis

    def dimension(self, axis: int, of: Tensor) -> int:
        """Return the dimension of a tensor that an axis of the first input became, raised by ones in front."""
        return self.axis(axis) + len(of.sizes) - len(self.shape())


def _given(values: Sequence[Input | None], i: int, what: str) -> Input:
    value = values[i] if i < len(values) else None
    if value is None:
        raise ProviderRefusalError(f"{what} {i} is missing")
    return value


def _shape(value: Input) -> list[int]:
    if value.shape is None:
        raise KnownAtRunTimeError(f"the shape of {value.name}")
    return list(value.shape)


_TYPES: Final = {each.onnx: each for each in TensorDataType if each.bits} | {"bool": TensorDataType.UINT8}
"""The types that the provider's tensors have, by ONNX's names in NumPy's spelling."""


def _type(value: Input) -> TensorDataType:
    if value.type is None:
        raise KnownAtRunTimeError(f"the type of {value.name}")
    found = _TYPES.get(value.type)
    if found is None:
        raise ProviderRefusalError(f"the type {value.type}")
    return found


Table: TypeAlias = Mapping[tuple[str, str], Callable[[KernelNode], Descriptions]]
"""The functions that describe nodes, by their operators' domain and name."""


def table_of(rows: Mapping[str, Callable[[KernelNode], Descriptions]], domain: str = "") -> Table:
    """Return the table of operators of a domain; a key names one or more, with spaces between them."""
    return {(domain, name): function for names, function in rows.items() for name in names.split()}
