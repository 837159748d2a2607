"""A node of an ONNX model as a kernel of ONNX Runtime's DirectML provider sees it.

Read in microsoft/onnxruntime, onnxruntime/core/providers/dml/OperatorAuthorHelper/OperatorHelper.cpp, at the tags that
registrations.json names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from numpy.typing import NDArray

from dml_tile.back_ends.descriptions.created import Descriptions
from dml_tile.back_ends.descriptions.refusals import KnownAtRunTime, NotDescribed, ProviderRefusal, require
from dml_tile.back_ends.descriptions.tensors import RIGHT, SMALL_CONSTANT_BYTES, Alignment, Tensor, tensor
from dml_tile.back_ends.kernels import Version
from dml_tile.directml.data_types import TensorDataType

_PLAIN_INDICES_SINCE: Final = (1, 11)


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
    version. With ``is_in_graph``, constants of the node's graph are DirectML's to own. ``groups`` are the first and the
    last release of each quantised group that the node is of. A node differs between releases in ``release`` alone.
    One that is not ``is_static`` is made when it runs: its session does not know all sizes, though they may be given.
    """

    domain: str
    operator: str
    since: int
    release: Version
    inputs: Sequence[Input | None]
    outputs: Sequence[Input | None]
    attributes: Mapping[str, Any]
    is_in_graph: bool = True
    groups: tuple[tuple[Version, Version], ...] = ()
    is_static: bool = True

    @property
    def is_grouped(self) -> bool:
        """True if the node is of a quantised group, of which ONNX Runtime may make other nodes."""
        return any(since <= self.release <= to for since, to in self.groups)

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
        """Return an input's sizes. Raises KnownAtRunTime where one is unknown."""
        return _shape(_given(self.inputs, i, "input"))

    def output_shape(self, i: int = 0) -> list[int]:
        """Return an output's sizes. Raises KnownAtRunTime where one is unknown."""
        return _shape(_given(self.outputs, i, "output"))

    def type(self, i: int = 0) -> TensorDataType:
        """Return the data type of an input.

        Raises KnownAtRunTime if it is unknown, ProviderRefusal for a type that DirectML lacks.
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

        Raises KnownAtRunTime for an input that is none, NotDescribed if they are not read.
        """
        value = _given(self.inputs, i, "input")
        if not value.is_constant:
            raise KnownAtRunTime(f"the value of {value.name}")
        found = value.elements()
        if found is None:
            raise NotDescribed(f"the elements of {value.name} are not read")
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
        value = _given(self.inputs, i, "input")
        if not (self.is_in_graph and value.is_own and value.is_constant):
            return made
        is_large = made.bytes >= SMALL_CONSTANT_BYTES or self.release < (1, 17)
        return made._replace(is_owned=is_large)

    def output(self, i: int = 0, sizes: Sequence[int] | None = None, align: Alignment = RIGHT) -> Tensor:
        """Return the tensor of an output, or one of ``sizes`` in its place."""
        shape = self.output_shape(i) if sizes is None else sizes
        return tensor(self.output_type(i), shape, None, align, _given(self.outputs, i, "output").name)

    def optional_output(self, i: int, align: Alignment = RIGHT) -> Tensor | None:
        """Return the tensor of an output; None for one that is left out."""
        return self.output(i, align=align) if self.gives(i) else None

    def result(self, sizes: Sequence[int], strides: Sequence[int] | None = None) -> Tensor:
        """Return the first output's memory as a tensor of these sizes and strides; none are put in."""
        made = self.output(0, ())
        return made._replace(sizes=tuple(sizes), strides=None if strides is None else tuple(strides))

    def require_plain_indices(self) -> None:
        """Raise NotDescribed for a release that describes 64-bit integers as strided ones of 32 bits."""
        if self.release < _PLAIN_INDICES_SINCE:
            raise NotDescribed("64-bit integers before onnxruntime 1.11")

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
        raise ProviderRefusal(f"{what} {i} is missing")
    return value


def _shape(value: Input) -> list[int]:
    if value.shape is None:
        raise KnownAtRunTime(f"the shape of {value.name}")
    return list(value.shape)


_TYPES: Final = {each.onnx: each for each in TensorDataType if each.bits} | {"bool": TensorDataType.UINT8}
"""The types that the provider's tensors have, by ONNX's names in NumPy's spelling."""


def _type(value: Input) -> TensorDataType:
    if value.type is None:
        raise KnownAtRunTime(f"the type of {value.name}")
    found = _TYPES.get(value.type)
    if found is None:
        raise ProviderRefusal(f"the type {value.type}")
    return found


Table: TypeAlias = Mapping[tuple[str, str], Callable[[KernelNode], Descriptions]]
"""The functions that describe nodes, by their operators' domain and name."""


def table_of(rows: Mapping[str, Callable[[KernelNode], Descriptions]]) -> Table:
    """Return a table; a key is one operator's name or several, with spaces between, behind DOMAIN: if they have one."""
    keys = ((*key.rpartition(":")[::2], function) for key, function in rows.items())
    return {(domain, name): function for domain, names, function in keys for name in names.split()}
