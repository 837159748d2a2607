"""Numbers in the structs of operators: INT, FLOAT, BOOL and DML_SCALAR_UNION, and the structs of two of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from math import inf, isfinite, isnan, nan
from struct import pack, unpack_from
from typing import TYPE_CHECKING, Annotated, Any, Final, SupportsIndex

from pydantic import Field as ModelField
from pydantic import (
    GetCoreSchemaHandler,
    GetPydanticSchema,
    PlainSerializer,
    PlainValidator,
    SerializeAsAny,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from dml_tile.descriptors.structs import Struct
from dml_tile.descriptors.tile import UINT
from dml_tile.directml.data_types import TensorDataType
from dml_tile.errors import integer_of

_FLOAT_MAX: Final = 2.0**128 - 2.0**104
_WORDS: Final[dict[object, float]] = {"Infinity": inf, "-Infinity": -inf, "NaN": nan}
"""The words for the numbers that JSON lacks."""


def _float(value: Any, format_: str = "f") -> float:
    """Return a number as a float. Raises ValueError for what no number of a C type is, given as struct's format."""
    try:
        number = _WORDS[value] if isinstance(value, bool | str | bytes) else float(value)
        pack(f"<{format_}", number)
    except (LookupError, OverflowError, TypeError):
        raise ValueError("no number of the type") from None
    return number


def _schema_of_float(source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
    return core_schema.union_schema(
        [
            core_schema.float_schema(strict=True, ge=-_FLOAT_MAX, le=_FLOAT_MAX),
            core_schema.no_info_plain_validator_function(_float),
        ],
        mode="left_to_right",
        custom_error_type="float32",
        custom_error_message="Input should be {expected}",
        custom_error_context={"expected": _NUMBER_OF.format("FLOAT", "3.4028235e38")},
    )


_NUMBER_OF: Final = 'a {0} (a number from -{1} to {1}, "Infinity", "-Infinity" or "NaN")'
SCALAR_BITS: Final = re.compile("0x[0-9A-Fa-f]{16}")
"""A DML_SCALAR_UNION of an unknown type, by its 8 bytes as one number."""
SCALAR_FORMATS: Final[Mapping[int, str]] = {
    TensorDataType.FLOAT32: "f",
    TensorDataType.FLOAT64: "d",
    TensorDataType.UINT8: "B",
    TensorDataType.UINT16: "H",
    TensorDataType.UINT32: "I",
    TensorDataType.UINT64: "Q",
    TensorDataType.INT8: "b",
    TensorDataType.INT16: "h",
    TensorDataType.INT32: "i",
    TensorDataType.INT64: "q",
}
"""The members of DML_SCALAR_UNION by data type, as formats of the module struct."""
_FLOATS: Final = {
    TensorDataType.FLOAT16: ("e", "65504"),
    TensorDataType.FLOAT32: ("f", "3.4028235e38"),
    TensorDataType.FLOAT64: ("d", "1.7976931348623157e308"),
}
"""Floats as formats of the module struct, and the largest of each."""


def _boolean(value: Any, handler: ValidatorFunctionWrapHandler) -> bool | int:
    """Return a BOOL: its values 0 and 1 are False and True."""
    number: int = handler(int(value) if isinstance(value, bool) else value)
    return bool(number) if number in (0, 1) else number


def _scalar(value: Any) -> int | float | str:
    """Return a number, or its bytes as in ``0x000000003f800000`` where the type of the union is unknown."""
    if isinstance(value, str) and SCALAR_BITS.fullmatch(value):
        return value.lower()
    if (number := integer_of(value)) is not None and -(2**63) <= number < 2**64:
        return number
    try:
        return _float(value, "d")
    except ValueError:
        raise PydanticCustomError("scalar", "Input should be {expected}", {"expected": _SCALAR}) from None


_SCALAR: Final = 'a number, "Infinity", "-Infinity", "NaN", or the 8 bytes of a DML_SCALAR_UNION as 0x and 16 digits'


def _json_number(value: Any) -> Any:
    """Return a number, by the word for it where JSON has no such number."""
    if not isinstance(value, float) or isfinite(value):
        return value
    return "NaN" if isnan(value) else "Infinity" if value > 0 else "-Infinity"


INT = Annotated[int, ModelField(strict=True, ge=-(2**31), lt=2**31)]
"""An integer of 32 bits with a sign."""
BOOL = SerializeAsAny[Annotated[INT, WrapValidator(_boolean)]]
"""True or False, or another integer that C holds."""
_JSON_NUMBER: Final = PlainSerializer(_json_number, when_used="json")
FLOAT = Annotated[float, GetPydanticSchema(_schema_of_float), _JSON_NUMBER]
"""A float of 32 bits, as Python's; infinities and NaN may be words, as in JSON."""
SCALAR = Annotated[Any, PlainValidator(_scalar), _JSON_NUMBER]
"""A DML_SCALAR_UNION."""


class ScaleBias(Struct):
    """DML_SCALE_BIAS: the factor of an input's elements, and the term added to the product."""

    scale: FLOAT
    bias: FLOAT

    if TYPE_CHECKING:

        def __init__(self, *, scale: float, bias: float) -> None: ...

    @property
    def changes_nothing(self) -> bool:
        """True for a scale of 1 and a bias of 0."""
        return self.scale == 1 and self.bias == 0


class Size2D(Struct):
    """DML_SIZE_2D: a width and a height."""

    width: UINT
    height: UINT

    if TYPE_CHECKING:

        def __init__(self, *, width: SupportsIndex, height: SupportsIndex) -> None: ...


def number_of(scalar: float | str, data_type: int) -> Any:
    """Return the value of a DML_SCALAR_UNION, given as a number or by its bytes; these, if its type is unknown.

    Raises PydanticCustomError for a number that its type does not hold.
    """
    kind = data_type if isinstance(data_type, TensorDataType) else TensorDataType.UNKNOWN
    if isinstance(scalar, str):
        format_ = SCALAR_FORMATS.get(kind)
        return unpack_from(f"<{format_}", int(scalar, 16).to_bytes(8, "little"))[0] if format_ else scalar
    if kind in _FLOATS:
        format_, largest = _FLOATS[kind]
        with suppress(ValueError):
            _float(scalar, format_)
            return scalar
        expected = _NUMBER_OF.format(kind.name, largest)
    elif kind.bits:
        least = -(2 ** (kind.bits - 1)) if kind.name.startswith("INT") else 0
        most = 2**kind.bits - 1 + least
        if least <= scalar <= most and scalar == int(scalar):
            return int(scalar)
        expected = f"{'an' if least else 'a'} {kind.name} (an integer from {least} to {most})"
    else:
        return scalar
    raise PydanticCustomError("scalar", "Input should be {expected}", {"expected": expected})


def scalar_bits(scalar: Any, data_type: int) -> int:
    """Return the 8 bytes of a DML_SCALAR_UNION as one number, all of them if its type is unknown."""
    if isinstance(scalar, str):
        return int(scalar, 16)
    format_ = SCALAR_FORMATS.get(data_type)
    format_ = format_ or ("d" if isinstance(scalar, float) else "q" if scalar < 0 else "Q")
    return int.from_bytes(pack(f"<{format_}", scalar), "little")
