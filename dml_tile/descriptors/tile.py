"""The pydantic mirrors of DML_TENSOR_DESC, DML_BUFFER_TENSOR_DESC and DML_TILE_OPERATOR_DESC."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from operator import index, mul
from typing import TYPE_CHECKING, Annotated, Any, Final, Self, SupportsIndex, TypeAlias

from pydantic import Field, TypeAdapter, model_validator

from dml_tile.descriptors.structs import (
    SEQUENCE,
    DataTypes,
    Enumerator,
    Flags,
    OperatorTypes,
    Struct,
    also_reads,
    is_sequence,
    left_out,
    ordered,
    unsigned,
)
from dml_tile.directml.data_types import ELEMENT_SIZES, TensorDataType
from dml_tile.directml.enums import (
    DML_TENSOR_DIMENSION_COUNT_MAX1,
    UINT64_MAX,
    UINT_MAX,
    OperatorType,
    TensorFlags,
    TensorType,
)
from dml_tile.geometry.layout import wrapping_size_in_bytes
from dml_tile.text import MAX_SHOWN, shortened

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAX_ENTRIES: Final = 16
"""The entries of an array that a line shows; DirectML's tensors have at most 8 dimensions."""


def tile_line(input_tensor: str, repeats: str, output_tensor: str) -> str:
    """Return a tile in one line: ``INT64 {2,3,4} x {1,2,1} -> {2,6,4}``, made of the texts of its parts."""
    return f"{input_tensor} x {repeats} -> {output_tensor}"


def tensor_text(data_type: str, sizes: str, strides: str = "") -> str:
    """Return a tensor's text: ``INT64 {2,3,4} strides {24,8,2}``. Empty parts are left out."""
    return " ".join(word for word in (data_type, sizes, strides and f"strides {strides}") if word)


def array_text(values: Sequence[object] | None) -> str:
    """Return an array's text: ``{2,3,4}``, or ``null``. A long array is cut, and its length follows."""
    if values is None:
        return "null"
    shown = ",".join(map(str, values[:MAX_ENTRIES]))
    return f"{{{shown}}}" if len(values) <= MAX_ENTRIES else f"{{{shown},…}} of {len(values)}"


DataTypeLike: TypeAlias = "SupportsIndex | str | np.dtype[Any] | type[np.generic]"
"""A data type: an enumerator, its value, its name in any case, or a NumPy dtype or scalar type."""

TensorFlagsLike: TypeAlias = "SupportsIndex | str | Sequence[SupportsIndex | str]"
"""Flags: their value, a name, or several to be ORed."""

IntegersLike: TypeAlias = "Sequence[SupportsIndex] | NDArray[np.integer[Any]]"
"""Several integers, Python's or NumPy's, or an array of them."""

UINT = Annotated[int, unsigned(UINT_MAX)]
"""An integer from 0 to 2^32-1."""
UINT64 = Annotated[int, unsigned(UINT64_MAX)]
"""An integer from 0 to 2^64-1."""
UINTS = Annotated[tuple[UINT, ...], Field(fail_fast=True), ordered()]
"""A sequence of UINTs. Reports the first wrong value only."""

DATA_TYPE = DataTypes(TensorDataType.__members__, "DML_TENSOR_DATA_TYPE_")
TENSOR_TYPE = Enumerator(TensorType.__members__, "DML_TENSOR_TYPE_")
OPERATOR_TYPE = OperatorTypes(OperatorType.__members__, "DML_OPERATOR_")
TENSOR_FLAGS = Flags(TensorFlags.__members__, "DML_TENSOR_FLAG_")

_ORDINARY_SEQUENCES: Final = (list, tuple)
_TYPE_KEYS: Final = ("Type", "type")
_KEYS_OF_A_TENSOR: Final = frozenset((*_TYPE_KEYS, "Desc", "desc", "NullDesc"))
"""The keys without which an object is a tensor's buffer alone."""


class BufferTensorDesc(Struct):
    """DML_BUFFER_TENSOR_DESC: a tensor in a buffer.

    ``sizes`` and ``strides`` are in elements, ``total_tensor_size_in_bytes`` and ``guaranteed_base_offset_alignment``
    in bytes. Only ``data_type`` and ``sizes`` are required. ``dimension_count`` is by default the length of ``sizes``,
    ``total_tensor_size_in_bytes`` what Microsoft's DMLCalcBufferTensorSize gives.
    """

    data_type: Annotated[TensorDataType | int, DATA_TYPE]
    """The type of the tensor's values."""
    flags: Annotated[TensorFlags | int, TENSOR_FLAGS] = TensorFlags.NONE
    """DML_TENSOR_FLAGS."""
    dimension_count: UINT = left_out()
    """The number of dimensions; it is the length of Sizes, and of Strides where given."""
    sizes: UINTS | None
    """The size of each dimension, in elements; none may be 0."""
    strides: UINTS | None = None
    """How far apart neighbours along each dimension lie, in elements, not bytes; null means packed."""
    total_tensor_size_in_bytes: UINT64 = left_out()
    """At least the size that Sizes, Strides and DataType imply, rounded up to a multiple of 4 bytes."""
    guaranteed_base_offset_alignment: UINT = 0
    """In bytes: what the offset of a bound buffer is promised to be a multiple of, or 0 for no promise."""

    @model_validator(mode="after")
    def _work_out_what_is_left_out(self) -> Self:
        values = self.__dict__
        values["strides"] = values["strides"] or None  # DxDispatch passes an empty list on as a null pointer
        if values["dimension_count"] < 0:
            values["dimension_count"] = len(values["sizes"] or ())
        if values["total_tensor_size_in_bytes"] < 0:
            values["total_tensor_size_in_bytes"] = self._worked_out_total()
        return self

    def _worked_out(self) -> dict[str, Any]:
        return {"dimension_count": len(self.sizes or ()), "total_tensor_size_in_bytes": self._worked_out_total()}

    def _worked_out_total(self) -> int:
        # of a packed tensor, DMLCalcBufferTensorSize multiplies Sizes[0] by the others, whatever DimensionCount is
        count = self.dimension_count if self.strides else max(self.dimension_count, 1)
        sizes = (self.sizes or ())[:count]
        element_size = ELEMENT_SIZES.get(self.data_type, 0)
        return wrapping_size_in_bytes(element_size, sizes, self.strides) if self.sizes else 0

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            data_type: DataTypeLike,
            sizes: IntegersLike | None,
            flags: TensorFlagsLike = ...,
            dimension_count: SupportsIndex = ...,
            strides: IntegersLike | None = ...,
            total_tensor_size_in_bytes: SupportsIndex = ...,
            guaranteed_base_offset_alignment: SupportsIndex = ...,
        ) -> None: ...

    def __str__(self) -> str:
        """Return the tensor in a few words: ``INT64 {2,3,4}``, with strides if it has any."""
        sizes = array_text(self.sizes)
        if self.dimension_count != len(self.sizes or ()):
            sizes += f" (DimensionCount {self.dimension_count})"
        strides = "" if self.strides is None else array_text(self.strides)
        return tensor_text(type_name(self.data_type), sizes, strides)


class TensorDesc(Struct):
    """DML_TENSOR_DESC: a tensor's kind, and its description. Reads a bare DML_BUFFER_TENSOR_DESC too."""

    type: Annotated[TensorType | int, TENSOR_TYPE] = TensorType.BUFFER
    """DML_TENSOR_TYPE."""
    desc: BufferTensorDesc | None
    """The DML_BUFFER_TENSOR_DESC, or null."""

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> Self:
        """Read a tensor from Python's objects, in any spelling. Raises pydantic's ValidationError."""
        return super().model_validate(_nested_tensor(obj), **options)

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray, **options: Any) -> Self:
        """Read a tensor from JSON, in any spelling. Raises pydantic's ValidationError."""
        return super().model_validate(_tensor_adapter().validate_json(json_data, **options))

    if TYPE_CHECKING:

        def __init__(self, *, desc: BufferTensorDesc | None, type: SupportsIndex | str = ...) -> None: ...  # noqa: A002

    def __str__(self) -> str:
        """Return the buffer in a few words, as in ``INT64 {2,3,4}``, after a type that is not a buffer's."""
        text = "null" if self.desc is None else str(self.desc)
        return text if self.type == TensorType.BUFFER else f"tensor type {int(self.type)} {text}"


@cache
def _tensor_adapter() -> TypeAdapter[TensorDesc]:
    """Return what reads a tensor in any spelling; made once, since making it takes longer than reading."""
    return TypeAdapter(Annotated[TensorDesc, TENSOR])


def _nested_tensor(data: Any) -> Any:
    """Put a buffer's fields that stand beside ``Type`` under ``Desc``; ``NullDesc`` stands for a null one."""
    if type(data) is TensorDesc:  # asking a model's class whether something else is one takes half a microsecond
        return data
    if not isinstance(data, dict):
        return {"Desc": data} if isinstance(data, BufferTensorDesc) else data
    if _KEYS_OF_A_TENSOR.isdisjoint(data):
        return {"Desc": data}
    match data.get("NullDesc"):
        case True:
            return _set_desc(data, None)
        case False:
            data = {key: value for key, value in data.items() if key != "NullDesc"}
    return nested(data)


TENSOR = also_reads(_nested_tensor, BufferTensorDesc)
"""Reads a tensor, its buffer alone, or its buffer's fields beside ``Type``."""


class TileOperatorDesc(Struct):
    """DML_TILE_OPERATOR_DESC: the output holds ``repeats[i]`` copies of the input along each dimension i."""

    input_tensor: Annotated[TensorDesc | None, TENSOR]
    """The tensor to read from."""
    output_tensor: Annotated[TensorDesc | None, TENSOR]
    """The tensor to write to: OutputTensor.Sizes[i] = InputTensor.Sizes[i] * Repeats[i]."""
    repeats_count: UINT = left_out()
    """The length of Repeats; it is the same as InputTensor.DimensionCount."""
    repeats: UINTS | None
    """The number of tiled copies of each dimension; all are larger than 0."""

    @model_validator(mode="after")
    def _work_out_what_is_left_out(self) -> Self:
        values = self.__dict__
        if values["repeats_count"] < 0:
            values["repeats_count"] = len(values["repeats"] or ())
        return self

    def _worked_out(self) -> dict[str, Any]:
        return {"repeats_count": len(self.repeats or ())}

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            input_tensor: TensorDesc | BufferTensorDesc | None,
            output_tensor: TensorDesc | BufferTensorDesc | None,
            repeats: IntegersLike | None,
            repeats_count: SupportsIndex = ...,
        ) -> None: ...

    @classmethod
    def from_input(
        cls,
        *,
        data_type: DataTypeLike,
        sizes: IntegersLike,
        repeats: IntegersLike,
        strides: IntegersLike | None = None,
        flags: TensorFlagsLike = TensorFlags.NONE,
        output_strides: IntegersLike | None = None,
    ) -> Self:
        """Describe the tile of an input; the output's sizes are inferred, its data type is the input's.

        ``sizes``, ``strides`` and ``output_strides`` are in elements; ``flags`` are the input's. ``data_type`` may be a
        NumPy dtype. Equal ones among the last few hundred packed tiles are the same object.

        Raises pydantic's ValidationError where a C field cannot hold a value, so also where an output size exceeds a
        UINT, and ValueError where there are not as many repeats as sizes.
        """
        if type(sizes) not in _ORDINARY_SEQUENCES:
            sizes = _as_tuple("sizes", sizes)
        if type(repeats) not in _ORDINARY_SEQUENCES:
            repeats = _as_tuple("repeats", repeats)
        if len(sizes) != len(repeats):
            raise ValueError(f"{len(sizes)} sizes take as many repeats; {len(repeats)} were provided")
        if strides is None and output_strides is None and len(sizes) <= DML_TENSOR_DIMENSION_COUNT_MAX1:
            try:  # suppress() takes a tenth as long as all of this
                return _packed_tile(cls, data_type, flags, *sizes, *repeats)  # type: ignore[arg-type,return-value]
            except TypeError:  # something is not hashable
                pass
        return cls._from_input(data_type, sizes, repeats, flags, strides, output_strides)

    @classmethod
    def _from_input(
        cls,
        data_type: DataTypeLike,
        sizes: IntegersLike,
        repeats: IntegersLike,
        flags: TensorFlagsLike,
        strides: IntegersLike | None = None,
        output_strides: IntegersLike | None = None,
    ) -> Self:
        source: dict[str, Any] = {"DataType": data_type, "Sizes": sizes}
        output: dict[str, Any] = {"DataType": data_type, "Sizes": _products(sizes, repeats)}
        if strides is not None:
            source["Strides"] = strides
        if flags is not TensorFlags.NONE:
            source["Flags"] = flags
        if output_strides is not None:
            output["Strides"] = output_strides
        return cls.model_validate(
            {"InputTensor": {"Desc": source}, "OutputTensor": {"Desc": output}, "Repeats": repeats}
        )

    @classmethod
    def from_array(cls, array: NDArray[Any], repeats: IntegersLike) -> Self:
        """Describe the tile of an array as it lies: its dtype, its shape and, unless it is packed, its strides.

        The first element is at byte 0; the output is packed. bool is described as UINT8; an array without dimensions
        has the sizes {1}, and is not repeated. Raises TypeError for other objects, a masked array and a dtype
        without a DirectML type, ValueError for strides that are negative or no multiple of an element's size, and what
        ``from_input`` raises.
        """
        from dml_tile.directml.dtypes import array_layout

        data_type, sizes, strides = array_layout(array)
        return cls.from_input(
            data_type=data_type, sizes=sizes, repeats=repeats if array.ndim else (1,), strides=strides
        )

    def _with(self, changes: dict[str, Any]) -> Self:
        tile = super()._with(changes)
        output = None if "output_tensor" in changes or tile.output_tensor is None else tile.output_tensor.desc
        before, after = self._inferred_output(), tile._inferred_output()
        if output is None or not before or not after or before != {name: getattr(output, name) for name in before}:
            return tile
        assert tile.output_tensor is not None
        return super()._with(changes | {"output_tensor": tile.output_tensor.replace(desc=output.replace(**after))})

    def _inferred_output(self) -> dict[str, Any]:
        """Return the data type and sizes of the output that the input has; empty if there is nothing to infer from."""
        source = self.input_tensor.desc if self.input_tensor is not None else None
        if source is None or source.sizes is None or len(source.sizes) != len(self.repeats or ()):
            return {}
        return {"data_type": source.data_type, "sizes": tuple(map(mul, source.sizes, self.repeats or ()))}

    def __hash__(self) -> int:
        """Hash two arrays only: tiles are keys of caches, and hashing all fields takes as long as a small tile."""
        source = self.input_tensor
        return hash((self.repeats, source and source.desc and source.desc.sizes))

    def __str__(self) -> str:
        """Return the tile in one line: ``INT64 {2,3,4} x {1,2,1} -> {2,6,4}``, with strides if there are any.

        The output's data type is left out if it is the input's, counts if they are the lengths of their arrays.
        """
        repeats = array_text(self.repeats)
        if self.repeats_count != len(self.repeats or ()):
            repeats += f" (RepeatsCount {self.repeats_count})"
        texts = ["null" if tensor is None else str(tensor) for tensor in (self.input_tensor, self.output_tensor)]
        if self.input_tensor is not None and self.input_tensor.desc is not None:
            texts[1] = texts[1].removeprefix(f"{type_name(self.input_tensor.desc.data_type)} ")
        return tile_line(texts[0], repeats, texts[1])

    def __repr__(self) -> str:
        """Return the call that makes an equal descriptor: that of ``from_input`` if it can."""
        arguments = self._arguments_of_from_input()
        if arguments is None:
            return super().__repr__()
        return (
            f"{type(self).__name__}.from_input({', '.join(f'{name}={value!r}' for name, value in arguments.items())})"
        )

    def _arguments_of_from_input(self) -> dict[str, Any] | None:
        """Return the arguments with which ``from_input`` makes an equal descriptor; None if there are none."""
        source, output = self.input_tensor, self.output_tensor
        if not (source and source.desc and output and output.desc):
            return None
        given = dict(source.desc.__repr_args__())
        arguments = {"data_type": given.pop("data_type"), "sizes": given.pop("sizes"), "repeats": self.repeats, **given}
        if output.desc.strides is not None:
            arguments["output_strides"] = output.desc.strides
        try:
            return arguments if type(self).from_input(**arguments) == self else None
        except (TypeError, ValueError):  # it takes no such argument, or cannot infer
            return None


@lru_cache(maxsize=256, typed=True)
def _packed_tile(
    kind: type[TileOperatorDesc], data_type: DataTypeLike, flags: TensorFlagsLike, *lengths: SupportsIndex
) -> TileOperatorDesc:
    """Return a tile of packed tensors, one object for equal ones; ``lengths`` are its sizes, then as many repeats."""
    rank = len(lengths) // 2
    return kind._from_input(data_type, lengths[:rank], lengths[rank:], flags)


def described(desc: TileOperatorDesc) -> tuple[BufferTensorDesc, BufferTensorDesc]:
    """Return the two buffers of a descriptor that passed ``check``, which refuses null ones."""
    assert desc.input_tensor is not None
    assert desc.input_tensor.desc is not None
    assert desc.output_tensor is not None
    assert desc.output_tensor.desc is not None
    return desc.input_tensor.desc, desc.output_tensor.desc


def type_name(data_type: int) -> str:
    """Return a data type as messages name it: ``INT64``, or ``data type 99``."""
    return data_type.name if isinstance(data_type, TensorDataType) else f"data type {data_type}"


def c_path(location: Sequence[str | int]) -> str:
    """Return a field's path in C names, as in ``InputTensor.Sizes[2]``: the steps of a location without ``Desc``."""
    path = ""
    for i, step in enumerate(location, start=1):
        if isinstance(step, int):
            path += f"[{step}]"
        elif step not in ("Desc", "desc") or i == len(location):
            path += f".{step}"
    return path.removeprefix(".")


def nested(data: dict[str, Any]) -> dict[str, Any]:
    """Put the fields beside ``Type`` under ``Desc``, unless there is one already."""
    if "Desc" in data or "desc" in data:
        return data
    return _set_desc(data, {key: value for key, value in data.items() if key not in _TYPE_KEYS})


def _set_desc(data: dict[str, Any], desc: dict[str, Any] | None) -> dict[str, Any]:
    return {**{key: data[key] for key in _TYPE_KEYS if key in data}, "Desc": desc}


def _as_tuple(name: str, values: Any) -> tuple[Any, ...]:
    """Return the values of a sequence. Raises TypeError for anything else."""
    if not is_sequence(values):
        raise TypeError(f"{name} is {shortened(repr(values), MAX_SHOWN)}; {SEQUENCE} was expected")
    return tuple(values)


def _products(sizes: IntegersLike, repeats: IntegersLike) -> IntegersLike:
    """Return the sizes of an output; where a value is no integer, the input's sizes, which pydantic then refuses."""
    try:
        return list(map(mul, map(index, sizes), map(index, repeats)))
    except TypeError:
        return sizes
