"""The tensors that the provider's kernels describe, raised by sizes of 1 to DirectML's dimension counts.

Read in microsoft/onnxruntime, onnxruntime/core/providers/dml/DmlExecutionProvider/src/TensorDesc.cpp, at the tags that
registrations.json names.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from dml_tile.back_ends.descriptions.refusals import require
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
        count = 0 if 0 in self.sizes else extent(self.sizes, self.strides)
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


class Alignment(NamedTuple):
    """Pads a tensor of fewer than ``least`` dimensions with sizes of 1.

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

    Raises ProviderRefusal for more dimensions than the provider holds.
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
